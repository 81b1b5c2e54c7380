"""What a search gives back of the passages that a retriever ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.errors import SettingError
from polyad.model import (
    Evidence,
    Hyperedge,
    HyperedgeKind,
    Origin,
    Passage,
    ScoredHyperedge,
    ScoredPassage,
    Span,
    TraceStep,
)
from polyad.retrieval.assembly import assemble_hits
from polyad.retrieval.hits import ScoredSpan
from polyad.retrieval.options import SearchOptions
from polyad.text.words import count_words

SENTENCES = [f"Sentence {number} of {name} speaks of {name} alone." for name in ("a", "b", "c") for number in range(4)]


def cut(
    text: str, document: str = "d", size: int = 100, overlap: int = 0, *, title: str = "", rest: int = 0
) -> list[ScoredPassage]:
    """Passages of so many characters of a text, scored by their place; without white space around them."""
    results = []
    starts = range(rest, len(text), size - overlap)
    for position, start in enumerate(starts):
        part = text[start : start + size]
        begin = start + len(part) - len(part.lstrip())
        words = part.strip()
        passage = Passage(
            f"{document}#{position:04}", document, title, words, begin, begin + len(words), page=position + 1
        )
        results.append(ScoredPassage(passage, 100.0 - position, origin=Origin(document, f"{document}.txt")))
    return results


def ranking(passages: Sequence[ScoredPassage], requested: list[int] | None = None) -> Callable[[int], Evidence]:
    def retrieve(k: int) -> Evidence:
        if requested is not None:
            requested.append(k)
        return Evidence("question", "test", tuple(passages[:k]))

    return retrieve


def nowhere(passages: Sequence[Passage]) -> list[list[ScoredSpan]]:
    return [[ScoredSpan(Span(0, len(passage.text)), 0.0)] for passage in passages]


def by_sentence(*words: str) -> Callable[[Sequence[Passage]], list[list[ScoredSpan]]]:
    """The sentences of a passage; those nearest that have some words, the first of them before all."""

    def parts_of(passage: Passage) -> list[ScoredSpan]:
        parts, start = [], 0
        for sentence in passage.text.split(". "):
            end = min(start + len(sentence) + 1, len(passage.text))
            near = max((10.0 - place for place, word in enumerate(words) if word in sentence.split()), default=0.0)
            parts.append(ScoredSpan(Span(start, end), near))
            start = end + 1
        return sorted(parts, key=lambda part: -part.similarity)

    return lambda passages: list(map(parts_of, passages))


def texts(evidence: Evidence) -> list[str]:
    return [hit.passage.text for hit in evidence.passages]


def test_passages_that_follow_one_another_are_one_hit_with_the_better_score_and_id() -> None:
    text = " ".join(SENTENCES)
    _, second, third, *rest = cut(text, size=100, overlap=30)
    far = rest[-1]
    passages = assemble_hits(ranking([third, far, second]), SearchOptions(k=3), nowhere).passages
    assert [(hit.passage.id, hit.score) for hit in passages] == [("d#0002", 98.0), (far.passage.id, far.score)]
    passage = passages[0].passage
    assert passage.text == text[second.passage.start : third.passage.end]
    assert (passage.start, passage.end, passage.page) == (second.passage.start, third.passage.end, 2)


def test_a_passage_that_parted_two_hits_makes_them_one() -> None:
    text = " ".join(SENTENCES)
    first, second, third, *_ = cut(text, size=90)
    passages = assemble_hits(ranking([third, first, second]), SearchOptions(k=5), nowhere).passages
    assert [(hit.passage.id, hit.passage.text) for hit in passages] == [("d#0002", text[: third.passage.end])]


def test_white_space_between_passages_is_kept_in_length() -> None:
    before, after = Passage("d#0000", "d", "", "One.", 0, 4), Passage("d#0001", "d", "", "Two.", 6, 10)
    evidence = assemble_hits(ranking([ScoredPassage(before, 2.0), ScoredPassage(after, 1.0)]), SearchOptions(), nowhere)
    assert texts(evidence) == ["One.\n\nTwo."]


@pytest.mark.parametrize(
    "change",
    [{"document_id": "e"}, {"title": "Other"}, {"slide": 2}, {"sheet": "Costs"}, {"id": "d#0007"}, {"start": 300}],
)
def test_passages_that_do_not_continue_one_another_stay_apart(change: dict[str, object]) -> None:
    first, second = cut(" ".join(SENTENCES), size=90)[:2]
    passage = replace(second.passage, **change)  # type: ignore[arg-type]
    passage = replace(passage, end=passage.start + len(passage.text))
    evidence = assemble_hits(ranking([first, replace(second, passage=passage)]), SearchOptions(), nowhere)
    assert texts(evidence) == [first.passage.text, passage.text]


def test_places_freed_by_merging_go_to_further_passages() -> None:
    follow = cut(" ".join(SENTENCES), size=90)[:3]
    others = [cut(f"Text number {number}, about thing {number}.", f"o{number}")[0] for number in range(9)]
    requested: list[int] = []
    evidence = assemble_hits(ranking([*follow, *others], requested), SearchOptions(k=5), nowhere)
    assert [hit.passage.document_id for hit in evidence.passages] == ["d", "o0", "o1", "o2", "o3"]
    assert requested == [5, 9]


def test_a_retriever_that_finds_nothing_but_copies_is_not_asked_for_ever() -> None:
    copies = [cut("A text of a few words, and no others.", f"d{number}")[0] for number in range(99)]
    requested: list[int] = []
    evidence = assemble_hits(ranking(copies, requested), SearchOptions(k=2), nowhere)
    assert requested == [2, 4, 6, 9, 13, 19, 28, 32]
    assert len(evidence.passages) == 1
    assert len(evidence.passages[0].copies) == 31


def test_without_merged_hits_the_retriever_runs_once() -> None:
    others = [cut(f"Text number {number}, about thing {number}.", f"o{number}")[0] for number in range(9)]
    requested: list[int] = []
    evidence = assemble_hits(ranking(others, requested), SearchOptions(k=5), nowhere)
    assert requested == [5]
    assert [hit.passage for hit in evidence.passages] == [hit.passage for hit in others[:5]]


def test_without_merging_the_hits_are_what_the_retriever_ranks() -> None:
    follow = cut(" ".join(SENTENCES), size=90)[:3]
    copy = replace(follow[0], passage=replace(follow[0].passage, id="e#0000", document_id="e"))
    evidence = ranking([*follow, copy])(4)
    assert assemble_hits(lambda k: evidence, SearchOptions(k=4, merge=False), nowhere) == evidence


def test_the_same_text_is_shown_once_and_its_copies_are_named() -> None:
    text = "The pump must be bled before it is started, and the valve stays open until then. " * 3
    (page,) = cut(text, "manual.html", 1000)
    (plain,) = cut(text.upper().replace(" ", "\n"), "manual.txt", 1000)
    (other,) = cut("Otters eat fish.", "otter")
    passages = assemble_hits(ranking([page, plain, other]), SearchOptions(k=2), nowhere).passages
    assert [hit.passage.document_id for hit in passages] == ["manual.html", "otter"]
    ((origin, location),) = passages[0].copies
    assert (origin.title, location) == ("manual.txt", plain.passage.location)


def test_a_short_text_under_another_title_is_no_copy() -> None:
    hits = [cut("It is a village in Poland.", name, title=name)[0] for name in ("Osiek", "Lipno")]
    assert len(assemble_hits(ranking(hits), SearchOptions(), nowhere).passages) == 2


def test_a_copy_is_not_shown_because_it_continues_a_hit() -> None:
    text = " ".join(SENTENCES)
    passages, copies = cut(text, "a", 110)[:2], cut(text, "b", 110)[:2]
    evidence = assemble_hits(ranking([passages[0], copies[1], passages[1], copies[0]]), SearchOptions(), nowhere)
    assert texts(evidence) == [passages[0].passage.text, copies[1].passage.text]


def test_the_end_of_a_text_that_mostly_overlaps_is_no_copy() -> None:
    text = " ".join(f"word{place:03}" for place in range(73))
    first, second = cut(text, size=560, overlap=160)[:2]
    assert texts(assemble_hits(ranking([first, second]), SearchOptions(), nowhere)) == [text]


def test_copies_that_follow_one_another_are_one_copy() -> None:
    text = " ".join(SENTENCES)
    passages, copies = cut(text, "a", 110)[:2], cut(text, "b", 110)[:2]
    (hit,) = assemble_hits(ranking([*passages, *copies]), SearchOptions(), nowhere).passages
    ((_, location),) = hit.copies
    assert (location.start, location.end, location.page) == (0, copies[1].passage.end, 1)


def test_a_text_with_another_number_is_no_copy() -> None:
    text = "The pump must be bled for {} minutes before it is started, and the valve stays open until then. " * 3
    hits = [cut(text.format(*[minutes] * 3), f"v{minutes}", 1000)[0] for minutes in (5, 9)]
    assert len(assemble_hits(ranking(hits), SearchOptions(), nowhere).passages) == 2


def test_a_budget_of_words_is_filled_and_not_exceeded() -> None:
    documents = [cut(" ".join(f"w{number}x{word}" for word in range(60)), f"d{number}", 9999)[0] for number in range(9)]
    evidence = assemble_hits(ranking(documents), SearchOptions(max_words=150), by_sentence())
    assert [count_words(text) for text in texts(evidence)] == [60, 60]
    sentences = "Alpha beta gamma delta. Epsilon zeta eta theta. Iota kappa lambda mu."
    evidence = assemble_hits(
        ranking([*documents[:2], cut(sentences, "s")[0]]), SearchOptions(max_words=128), by_sentence("Iota", "Alpha")
    )
    assert texts(evidence)[2] == "Alpha beta gamma delta. … Iota kappa lambda mu."


def test_words_and_k_both_hold() -> None:
    documents = [cut(" ".join(f"w{number}x{word}" for word in range(60)), f"d{number}", 9999)[0] for number in range(9)]
    assert len(assemble_hits(ranking(documents), SearchOptions(max_words=1000, k=3), nowhere).passages) == 3
    assert len(assemble_hits(ranking(documents), SearchOptions(max_words=150, k=3), nowhere).passages) == 2
    assert len(assemble_hits(ranking(documents), SearchOptions(max_words=1000), nowhere).passages) == 9


def test_a_long_passage_is_shown_by_its_nearest_parts_in_their_order() -> None:
    sentences = [" ".join([f"n{place}", *(f"w{place}x{word}" for word in range(98)), "end."]) for place in range(9)]
    (long,) = cut(" ".join(sentences), size=9999)
    (short,) = cut("Otters eat fish.", "otter")
    passages = assemble_hits(ranking([long, short]), SearchOptions(max_words=203), by_sentence("n7", "n3")).passages
    hit, other = passages
    assert hit.passage.text == f"{sentences[3]} … {sentences[7]}"
    assert (hit.passage.start, hit.passage.end) == (long.passage.text.index("n3"), long.passage.text.index("n8") - 1)
    assert other.passage.text == "Otters eat fish."


def test_unused_words_extend_long_passages() -> None:
    sentences = [" ".join([f"n{place}", *(f"w{place}x{word}" for word in range(98)), "end."]) for place in range(9)]
    (long,) = cut(" ".join(sentences), size=9999)
    (hit,) = assemble_hits(ranking([long]), SearchOptions(max_words=700), by_sentence("n7", "n3")).passages
    assert 600 <= count_words(hit.passage.text.replace(" … ", " ")) <= 700
    assert texts(assemble_hits(ranking([long]), SearchOptions(max_words=900), by_sentence("n7"))) == [long.passage.text]


def test_overlap_is_neither_counted_nor_shown_twice() -> None:
    text = " ".join(f"word{place:03}" for place in range(120))
    first, second = cut(text, size=560, overlap=160)[:2]
    assert texts(assemble_hits(ranking([first, second]), SearchOptions(max_words=120), nowhere)) == [
        text[: second.passage.end]
    ]
    assert texts(assemble_hits(ranking([first, second]), SearchOptions(max_words=119), nowhere)) == [first.passage.text]
    apart = replace(second, passage=replace(second.passage, title="Another section"))
    outputs = " ".join(texts(assemble_hits(ranking([first, apart]), SearchOptions(max_words=120), nowhere))).split()
    assert outputs == text[: second.passage.end].split()


def test_at_least_something_is_shown_within_the_smallest_budget() -> None:
    (passage,) = cut("Alpha beta gamma delta. Epsilon zeta eta theta.")
    assert texts(assemble_hits(ranking([passage]), SearchOptions(max_words=2), by_sentence("Epsilon"))) == [
        "Epsilon zeta"
    ]


@given(
    st.lists(st.text("ab .\u6771\n", min_size=1, max_size=40).filter(str.strip), min_size=1, max_size=6),
    st.integers(1, 30),
)
def test_no_budget_is_ever_exceeded(documents: list[str], words: int) -> None:
    passages = [
        hit for place, text in enumerate(documents) for hit in cut(text, f"d{place}", 12, 4) if hit.passage.text
    ]
    evidence = assemble_hits(ranking(passages), SearchOptions(max_words=words), by_sentence("a"))
    assert 0 < sum(count_words(text.replace(" … ", " ")) for text in texts(evidence)) <= words


def edge(id: str, passage: ScoredPassage, start: int, end: int, score: float = 1.0) -> ScoredHyperedge:
    passage_id = passage.passage.id
    text = passage.passage.text[start:end]
    return ScoredHyperedge(Hyperedge(id, HyperedgeKind.SEMANTIC_UNIT, text, passage_id, start, end), (), score)


def test_hyperedges_go_with_the_hit_that_shows_them() -> None:
    first, second, _, deleted = cut(" ".join(SENTENCES), size=90)[:4]
    edges = (
        edge("e1", second, 3, 20, 5.0),
        edge("e0", first, 0, 8),
        edge("e2", deleted, 0, 8),
        edge("e3", deleted, 0, 9),
    )
    trace = (
        TraceStep("e1", second.passage.id, "q", "question", (), 1.0),
        TraceStep("e3", first.passage.id, "q", "link", (), 1.0),
        TraceStep("e2", deleted.passage.id, "q", "question", (), 1.0),
    )
    (other,) = cut("Otters eat fish.", "otter")
    evidence = Evidence("q", "test", (first, second, other, deleted), edges, trace=trace)
    result = assemble_hits(lambda k: evidence, SearchOptions(k=2), nowhere)
    hit, _ = result.passages
    assert [(scored.hyperedge.id, scored.hyperedge.passage_id) for scored in result.hyperedges] == [
        ("e1", "d#0000"),
        ("e0", "d#0000"),
        ("e3", deleted.passage.id),  # stands in no hit, and led to one
    ]
    moved = result.hyperedges[0].hyperedge
    assert Span(moved.start, moved.end).of(hit.passage.text) == moved.text
    assert [(step.hyperedge_id, step.passage_id) for step in result.trace] == [("e1", "d#0000"), ("e3", "d#0000")]


def test_hits_below_the_minimum_relevance_are_left_out() -> None:
    hits = [replace(cut(f"Text {name}.", name)[0], relevance=value) for name, value in (("a", 0.9), ("b", 0.2))]
    evidence = assemble_hits(ranking(hits), SearchOptions(min_relevance=0.5), nowhere)
    assert [hit.passage.document_id for hit in evidence.passages] == ["a"]
    assert evidence.best_relevance is None
    none = assemble_hits(ranking(hits), SearchOptions(min_relevance=0.95), nowhere)
    assert (none.passages, none.hyperedges, none.best_relevance) == ((), (), 0.9)


def test_hyperedges_of_what_is_not_relevant_are_left_out() -> None:
    first, second = (replace(cut(f"Text {name}.", name)[0], relevance=near) for name, near in (("a", 0.9), ("b", 0.2)))
    evidence = Evidence("q", "test", (first, second), (edge("e0", first, 0, 4), edge("e1", second, 0, 4)))
    result = assemble_hits(lambda k: evidence, SearchOptions(min_relevance=0.5), nowhere)
    assert [scored.hyperedge.id for scored in result.hyperedges] == ["e0"]


def test_a_least_relevance_needs_a_retriever_that_measures_it() -> None:
    with pytest.raises(SettingError, match=r"min_relevance is 0\.5; expected 0 with 'test', which does not predict"):
        assemble_hits(ranking(cut("Text.")), SearchOptions(min_relevance=0.5), nowhere)
    assert assemble_hits(ranking([]), SearchOptions(min_relevance=0.5), nowhere).passages == ()


@pytest.mark.parametrize(
    "expected", [{"k": 0}, {"max_words": 0}, {"min_relevance": 1.5}, {"min_relevance": float("nan")}]
)
def test_invalid_search_options_are_errors(expected: dict[str, float]) -> None:
    with pytest.raises(SettingError, match=next(iter(expected))):
        SearchOptions(**expected)  # type: ignore[arg-type]
