from __future__ import annotations

import pytest
from sentence_evidence import (
    contains_all_evidence,
    contains_sentence,
    evidence_recall,
    evidence_reciprocal_rank,
    normalize_texts,
    tokenize,
)

from polyad_bench.measures.evidence import get_first_words

TEXTS = ["The pump is red. It stands", "in the cellar, near\nthe well-known door.", "Nobody goes there."]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a hyphenated word", "a hyphen-\nated word"),
        ("a well-known word", "a wellknown word"),
        ("the soft hy\u00adphen", "the soft hyphen"),
        ("an _emphatic_ word", "an emphatic word"),
        ("\u201cDon\u2019t\u201d, he said", '"Don\'t", he said'),
        ("the e\ufb03cient o\ufb03ce", "the efficient office"),
        ("use --all, or -a", "use all or a"),
        ("Use THE\tSwitch", "use the  switch"),
    ],
)
def test_spellings_of_different_readers_have_equal_words(written: str, read: str) -> None:
    assert tokenize(written) == tokenize(read)


@pytest.mark.parametrize(("one", "other"), [("one--two", "onetwo"), ("take 1", "take 2"), ("in to", "into")])
def test_other_words_are_not_the_same(one: str, other: str) -> None:
    assert tokenize(one) != tokenize(other)


def test_a_sentence_may_run_from_one_text_into_the_next() -> None:
    assert contains_sentence("It stands in the cellar, near the well-known door.", normalize_texts(TEXTS))


@pytest.mark.parametrize(("budget", "expected"), [(10, False), (11, True), (None, True)])
def test_a_sentence_counts_only_when_it_ends_within_the_budget(budget: int | None, expected: bool) -> None:
    assert contains_sentence("It stands in the cellar, near the", normalize_texts(TEXTS, budget)) is expected


@pytest.mark.parametrize(("budget", "expected"), [(0, []), (2, ["The", "pump"]), (100, " ".join(TEXTS).split())])
def test_the_budget_is_cut_at_white_space(budget: int, expected: list[str]) -> None:
    assert get_first_words(TEXTS, budget) == expected


def test_a_sentence_is_not_found_inside_longer_words() -> None:
    assert not contains_sentence("pump is re", normalize_texts(TEXTS))
    assert not contains_sentence("he pump", normalize_texts(TEXTS))


def test_a_sentence_without_words_is_never_found() -> None:
    assert not contains_sentence("--", normalize_texts(TEXTS))
    assert not contains_sentence("", normalize_texts([]))


def test_recall_is_the_share_of_the_sentences_found() -> None:
    sentences = ["The pump is red.", "Nobody goes there.", "The pump is blue."]
    assert evidence_recall(sentences, normalize_texts(TEXTS)) == pytest.approx(2 / 3)
    assert evidence_recall(sentences, normalize_texts(TEXTS, 5)) == pytest.approx(1 / 3)


def test_all_evidence_needs_every_sentence() -> None:
    sentences = ["The pump is red.", "Nobody goes there."]
    assert contains_all_evidence(sentences, normalize_texts(TEXTS)) == 1
    assert contains_all_evidence(sentences, normalize_texts(TEXTS, 5)) == 0


def test_the_rank_is_that_of_the_first_text_with_a_whole_sentence() -> None:
    assert evidence_reciprocal_rank(["Nobody goes there.", "in the cellar"], TEXTS) == 1 / 2
    assert evidence_reciprocal_rank(["It stands in the cellar"], TEXTS) == 0
