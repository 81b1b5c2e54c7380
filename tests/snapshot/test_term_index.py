"""BM25 over the passages of a snapshot, against the plain formula."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.model import FloatArray, IntArray
from polyad.snapshot import term_index as term_module
from polyad.snapshot.columns import StringIndex
from polyad.snapshot.term_index import K1, B, PassageTerms, build_postings
from polyad.text.words import extract_codes, extract_search_terms, extract_terms
from tests.examples import count_examples

VOCABULARY = ["bell", "bells", "tower", "isk", "P-17", "17", "the", "walnut", "café", "东京塔"]
TEXTS = st.lists(st.sampled_from(VOCABULARY), max_size=6).map(" ".join)
QUESTIONS = st.lists(st.sampled_from([*VOCABULARY, "otter"]), min_size=1, max_size=5).map(" ".join)
STEPS = st.lists(
    st.tuples(st.lists(TEXTS, max_size=5), st.sets(st.integers(0, 12), max_size=4)), min_size=1, max_size=4
)
"""Added texts, and deleted rows, in each step."""


class Passages:
    """The terms of passages that are added and deleted, and their texts."""

    def __init__(self) -> None:
        self.index = PassageTerms.empty()
        self.ids = StringIndex.empty()
        self.texts: dict[int, str] = {}
        self.count = 0

    def change(self, texts: list[str], deleted: set[int], *, batch: int = 2) -> None:
        existing = sorted(deleted & self.texts.keys())
        numbers = [
            build_postings(texts[start : start + batch], self.count + start) for start in range(0, len(texts), batch)
        ]
        rows = np.array(existing, dtype=np.int64)
        self.index = self.index.with_changes(self.index.live.with_changes(rows, len(texts)), rows, numbers)
        # Ids in another order than rows; those of equal scores are told apart by them.
        self.ids = self.ids.append([f"{row * 7 % 10}{row}" for row in range(self.count, self.count + len(texts))])
        for row in existing:
            del self.texts[row]
        self.texts |= dict(enumerate(texts, self.count))
        self.count += len(texts)

    def search(self, question: str, k: int) -> tuple[IntArray, FloatArray]:
        return self.index.search(question, k, self.ids.strings)


def counts_of(text: str) -> list[str]:
    return [*extract_terms(text), *extract_codes(text)]


def by_formula(passages: Passages, question: str) -> list[tuple[int, float]]:
    """Return rows and scores of all passages that share a term with the question, best first, ties by id."""
    count = len(passages.texts)
    mean = sum(len(extract_terms(text)) for text in passages.texts.values()) / max(1, count)
    scores: dict[int, float] = {}
    for word in extract_search_terms(question):
        holding = {row: n for row, text in passages.texts.items() if (n := counts_of(text).count(word))}
        idf = max(1e-6, log((count - len(holding) + 0.5) / (len(holding) + 0.5)))
        for row, n in holding.items():
            length = len(extract_terms(passages.texts[row]))
            scores[row] = scores.get(row, 0) + idf * n * (K1 + 1) / (n + K1 * (1 - B + B * length / mean))
    rounded = {row: round(score, 6) for row, score in scores.items()}
    return sorted(rounded.items(), key=lambda pair: (-pair[1], passages.ids.strings.take([pair[0]])))


@settings(max_examples=count_examples(200), deadline=None)
@given(steps=STEPS, question=QUESTIONS, k=st.integers(1, 6), long=st.sampled_from([0, 2000]))
def test_scores_equal_the_bm25_formula(
    steps: list[tuple[list[str], set[int]]], question: str, k: int, long: int
) -> None:
    passages = Passages()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_module, "_LOOKUP_FROM", long)  # above 0 no word of so few passages is left for looking up
        for texts, deleted in steps:
            passages.change(texts, deleted)
            rows, scores = passages.search(question, k)
            expected = by_formula(passages, question)
            assert scores.tolist() == pytest.approx([score for _, score in expected[:k]], abs=2e-6)
            # What differs in the last of the digits kept may change places.
            plain = dict(expected)
            assert [plain[row] for row in rows.tolist()] == pytest.approx(scores.tolist(), abs=2e-6)
            tied = sorted(zip((-scores).tolist(), passages.ids.strings.take(rows), strict=True))
            assert [id for _, id in tied] == passages.ids.strings.take(rows)


@settings(max_examples=count_examples(100), deadline=None)
@given(steps=STEPS, question=QUESTIONS)
def test_document_frequencies_count_live_passages(steps: list[tuple[list[str], set[int]]], question: str) -> None:
    passages = Passages()
    for texts, deleted in steps:
        passages.change(texts, deleted)
    words = extract_search_terms(question)
    rows = np.array(sorted(passages.texts), dtype=np.int64)
    expected = [[word in counts_of(passages.texts[row]) for word in words] for row in rows.tolist()]
    held = passages.index.contains(words, rows)
    assert held.shape == (len(rows), len(words))
    assert held.tolist() == expected
    assert passages.index.document_frequencies(words).tolist() == held.sum(axis=0).tolist()


def test_contains_accepts_passages_in_any_order() -> None:
    passages = Passages()
    passages.change(["The bells of the tower.", "One bell.", "A tower.", "Walnuts."], set())
    words = passages.index
    questions = extract_search_terms("Where is the Bell, the bell of the zinc towers?")
    assert words.document_frequencies(questions).tolist() == [2, 0, 2]
    some: IntArray = np.array([2, 0, 3])
    assert words.contains(questions, some).tolist() == [
        [False, False, True],
        [True, False, True],
        [False, False, False],
    ]
    assert words.contains([], some).shape == (3, 0)
    assert words.document_frequencies([]).tolist() == []


def test_the_language_of_a_short_question_is_that_of_the_passages_after_each_change() -> None:
    passages = Passages()
    assert passages.index.infer_language("Tarner Glocken?") == "en"
    passages.change(["Wir wissen nicht, warum sich die Glocken von Tarn mehr als von Isk verstimmen."] * 3, set())
    assert passages.index.infer_language("Tarner Glocken?") == "de"
    assert passages.index.infer_language("Who cast the bells?") == "en"
    passages.change(["The bells were cast by Ines Moreau and hung with ropes from the tower."] * 4, {0, 1})
    assert passages.index.infer_language("Tarner Glocken?") == "en"


def test_ties_at_the_cutoff_are_broken_by_id() -> None:
    passages = Passages()
    passages.change(["the same words"] * 12, set())
    passages.change(["other"] * 30, {0, 7})
    rows, scores = passages.search("same words", 3)
    there = sorted(passages.ids.strings.take([row for row in range(12) if row not in (0, 7)]))
    assert passages.ids.strings.take(rows) == there[:3]
    assert len(set(scores.tolist())) == 1


@pytest.mark.parametrize("k", [1, 5, 40, 200])
def test_looking_up_a_frequent_term_gives_the_scores_of_a_scan(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    passages, random = Passages(), np.random.default_rng(1)
    texts = ["tower " * int(n) + "bell " * int(n < 2) + "isk " * int(n % 3) for n in random.integers(0, 9, 300)]
    passages.change([f"{text} walnut" if row % 40 == 0 else text for row, text in enumerate(texts)], set(), batch=70)
    passages.change([], {0, 40, 41, 200})
    whole = passages.search("walnut bell tower isk", k)
    looked_up = []
    plain = PassageTerms._score_candidates

    def counting(self: PassageTerms, *arguments: object) -> object:
        looked_up.append(arguments)
        return plain(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PassageTerms, "_score_candidates", counting)
    monkeypatch.setattr(term_module, "_LOOKUP_FROM", 100)
    again = passages.search("walnut bell tower isk", k)
    assert [result.tolist() for result in again] == [result.tolist() for result in whole]
    assert bool(looked_up) == (k < 200), "so many are not reached by the rarer words"


def test_an_empty_question_or_index_has_no_results() -> None:
    passages = Passages()
    assert [result.tolist() for result in passages.search("bell", 3)] == [[], []]
    passages.change(["bell"], set())
    assert [result.tolist() for result in passages.search("?!", 3)] == [[], []]
    assert [result.tolist() for result in passages.search("otter", 3)] == [[], []]
    passages.change([], {0})
    assert [result.tolist() for result in passages.search("bell", 3)] == [[], []]
    assert passages.index.document_frequencies(["bell"]).tolist() == [0]


def test_a_very_frequent_term_in_a_passage_is_counted_up_to_a_limit() -> None:
    postings = build_postings(["bell " * 70_000], 0)
    assert (postings.segment.weights.tolist(), postings.lengths.tolist()) == ([65_535], [70_000])
