"""The words of a question in the six passages of the small index, by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from polyad.engine import Engine
from polyad.model import FloatArray, IntArray
from polyad.retrieval.default.links import Mentions
from polyad.retrieval.default.question_words import QuestionWords
from polyad.retrieval.snapshot import Snapshot

QUESTION = "Which bronze is in the village of zinc?"
ALL = log(1 + 6 / 1) + log(1 + 6 / 2) + log(1 + 6 / 1)
BRONZE = ZINC = log(1 + 6 / 1) / ALL
"""What the words count: bronze is in the passage on Moreau, zinc in none, which counts as rare as one."""

VILLAGE = log(1 + 6 / 2) / ALL
"""Village is in those on Moreau and on Aldby."""


@pytest.fixture
def snapshot(small_engine: Engine) -> Snapshot:
    return small_engine.training_parts()[0]


def rows(snapshot: Snapshot, *documents: str) -> IntArray:
    """The passages of some documents, sorted."""
    count = snapshot.passage_count
    return np.array([row for row in range(count) if snapshot.document_id(row) in documents], dtype=np.int64)


def by_document(snapshot: Snapshot, passages: IntArray, values: FloatArray) -> dict[str, float]:
    """What is above 0."""
    found = zip(passages.tolist(), values.tolist(), strict=True)
    return {snapshot.document_id(row): value for row, value in found if value > 0}


def mentions(snapshot: Snapshot, *followed: tuple[str, str, float]) -> Mentions:
    """Mentions by entity, the document of their source, and its weight."""
    weights = np.array([weight for *_, weight in followed], dtype=np.float32)
    return Mentions(
        np.array([snapshot.entity_rows[key] for key, *_ in followed], dtype=np.int64),
        np.concatenate([rows(snapshot, document) for _, document, _ in followed]),
        weights,
        np.ones(len(followed), dtype=np.float32),
    )


def test_a_passage_covers_the_share_of_the_question_that_its_words_are_of_by_their_rarity(snapshot: Snapshot) -> None:
    every = np.arange(6)
    found = by_document(snapshot, every, QuestionWords.of(QUESTION, snapshot).coverage(every))
    assert found == pytest.approx({"moreau": BRONZE + VILLAGE, "aldby": VILLAGE})


def test_a_passage_with_all_words_in_any_form_covers_the_question(snapshot: Snapshot) -> None:
    every = np.arange(6)
    found = by_document(snapshot, every, QuestionWords.of("the villages of walnut?", snapshot).coverage(every))
    assert found["aldby"] == pytest.approx(1)


def test_a_question_without_words_is_covered_by_nothing(snapshot: Snapshot) -> None:
    assert QuestionWords.of("?!", snapshot).coverage(np.arange(6)).tolist() == [0] * 6


def test_a_passage_that_shares_an_entity_with_a_source_gains_the_words_that_the_source_lacks(
    snapshot: Snapshot,
) -> None:
    words, every = QuestionWords.of(QUESTION, snapshot), np.arange(6)
    from_aldby = words.gain(every, mentions(snapshot, ("aldby", "aldby", 0.5)), snapshot)
    assert by_document(snapshot, every, from_aldby) == pytest.approx({"moreau": 0.5 * BRONZE}), "both have the village"
    from_bell = words.gain(every, mentions(snapshot, ("ines moreau", "bell", 1.0)), snapshot)
    assert by_document(snapshot, every, from_bell) == pytest.approx({"moreau": BRONZE + VILLAGE})


def test_of_several_sources_the_one_that_brings_the_most_counts(snapshot: Snapshot) -> None:
    words, every = QuestionWords.of(QUESTION, snapshot), np.arange(6)
    both = mentions(snapshot, ("ines moreau", "bell", 0.25), ("aldby", "aldby", 1.0))
    found = by_document(snapshot, every, words.gain(every, both, snapshot))
    assert found == pytest.approx({"moreau": max(0.25 * (BRONZE + VILLAGE), BRONZE)})


def test_only_the_passages_asked_for_gain_each_in_its_place(snapshot: Snapshot) -> None:
    words, followed = QuestionWords.of(QUESTION, snapshot), mentions(snapshot, ("ines moreau", "bell", 1.0))
    some = rows(snapshot, "otter", "moreau")
    assert by_document(snapshot, some, words.gain(some, followed, snapshot)) == pytest.approx(
        {"moreau": BRONZE + VILLAGE}
    )
    others = rows(snapshot, "bell", "isk")
    assert words.gain(others, followed, snapshot).tolist() == [0, 0]


def test_without_sources_nothing_is_gained(snapshot: Snapshot) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    none = Mentions(nothing, nothing, np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.float32))
    assert QuestionWords.of(QUESTION, snapshot).gain(np.arange(6), none, snapshot).tolist() == [0] * 6
