"""The words of a question in the six passages of the small index, by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from polyad.engine import Engine
from polyad.model import FloatArray, IntArray, Mention
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.links import FollowedMentions
from polyad.retrieval.default.term_coverage import TermCoverage
from polyad.retrieval.question import LinkedQuestion
from tests.rows import get_document_ids

QUESTION = "Which bronze is in the village of zinc?"
ALL = log(1 + 6 / 1) + log(1 + 6 / 2) + log(1 + 6 / 1)
BRONZE = ZINC = log(1 + 6 / 1) / ALL
"""What the words count: bronze is in the passage on Moreau, zinc in none, which counts as rare as one."""

VILLAGE = log(1 + 6 / 2) / ALL
"""Village is in those on Moreau and on Aldby."""


def build_coverage(question: str, snapshot: Snapshot, passages: IntArray) -> TermCoverage:
    """Return the coverage of a question that names no entity."""
    return TermCoverage.from_question(LinkedQuestion(question, {}, (), question), snapshot, passages)


def covered(words: TermCoverage, passages: IntArray) -> FloatArray:
    return words.compute_coverage(words.find_contained_terms(passages))


def gain(coverage: TermCoverage, passages: IntArray, mentions: FollowedMentions) -> FloatArray:
    return coverage.compute_gain(passages, coverage.find_contained_terms(passages), mentions)


@pytest.fixture
def snapshot(small_engine: Engine) -> Snapshot:
    return small_engine.snapshot()


def rows(snapshot: Snapshot, *documents: str) -> IntArray:
    """The passages of some documents, sorted."""
    count = snapshot.passage_count
    return np.array(
        [row for row, id in enumerate(get_document_ids(snapshot, range(count))) if id in documents], dtype=np.int64
    )


def by_document(snapshot: Snapshot, passages: IntArray, values: FloatArray) -> dict[str, float]:
    """What is above 0."""
    results = zip(passages.tolist(), values.tolist(), strict=True)
    return {get_document_ids(snapshot, [row])[0]: value for row, value in results if value > 0}


def mentions(snapshot: Snapshot, *followed: tuple[str, str, float]) -> FollowedMentions:
    """FollowedMentions by entity, the document of their source, and its weight."""
    weights = np.array([weight for *_, weight in followed], dtype=np.float32)
    return FollowedMentions.from_incidences(
        snapshot,
        np.array([snapshot.find_rows("entity", [key])[key] for key, *_ in followed], dtype=np.int64),
        np.concatenate([rows(snapshot, document) for _, document, _ in followed]),
        weights,
        np.ones(len(followed), dtype=np.float32),
    )


def test_a_passage_covers_the_share_of_the_question_that_its_words_are_of_by_their_rarity(snapshot: Snapshot) -> None:
    every = np.arange(6)
    results = by_document(snapshot, every, covered(build_coverage(QUESTION, snapshot, np.arange(6)), every))
    assert results == pytest.approx({"moreau": BRONZE + VILLAGE, "aldby": VILLAGE})


def test_a_passage_with_all_words_in_any_form_covers_the_question(snapshot: Snapshot) -> None:
    every = np.arange(6)
    results = by_document(snapshot, every, covered(build_coverage("the villages of walnut?", snapshot, every), every))
    assert results["aldby"] == pytest.approx(1)


def test_a_passage_contains_the_words_of_any_name_of_an_entity_that_it_mentions(snapshot: Snapshot) -> None:
    every, question = np.arange(6), "Where was Zanzor?"
    entity = snapshot.find_rows("entity", ["ines moreau"])["ines moreau"]
    linked = LinkedQuestion(question, {entity: Mention("Zanzor", 10, 16)}, (), "Where was ?")
    coverage = TermCoverage.from_question(linked, snapshot, every)
    assert by_document(snapshot, every, covered(coverage, every)) == pytest.approx({"moreau": 1, "bell": 1})
    assert not coverage.is_unknown.any()
    assert build_coverage(question, snapshot, every).is_unknown.all()


def test_a_question_without_words_is_covered_by_nothing(snapshot: Snapshot) -> None:
    assert covered(build_coverage("?!", snapshot, np.arange(6)), np.arange(6)).tolist() == [0] * 6


def test_a_passage_that_shares_an_entity_with_a_source_gains_the_words_that_the_source_lacks(
    snapshot: Snapshot,
) -> None:
    every = np.arange(6)
    words = build_coverage(QUESTION, snapshot, every)
    from_aldby = words.compute_gain(
        every, words.find_contained_terms(every), mentions(snapshot, ("aldby", "aldby", 0.5))
    )
    assert by_document(snapshot, every, from_aldby) == pytest.approx({"moreau": 0.5 * BRONZE}), "both have the village"
    from_bell = words.compute_gain(
        every, words.find_contained_terms(every), mentions(snapshot, ("ines moreau", "bell", 1.0))
    )
    assert by_document(snapshot, every, from_bell) == pytest.approx({"moreau": BRONZE + VILLAGE})


def test_of_several_sources_the_one_that_brings_the_most_counts(snapshot: Snapshot) -> None:
    every = np.arange(6)
    words = build_coverage(QUESTION, snapshot, every)
    both = mentions(snapshot, ("ines moreau", "bell", 0.25), ("aldby", "aldby", 1.0))
    results = by_document(snapshot, every, gain(words, every, both))
    assert results == pytest.approx({"moreau": max(0.25 * (BRONZE + VILLAGE), BRONZE)})


def test_only_the_passages_asked_for_gain_each_in_its_place(snapshot: Snapshot) -> None:
    words, followed = (
        build_coverage(QUESTION, snapshot, np.arange(6)),
        mentions(snapshot, ("ines moreau", "bell", 1.0)),
    )
    some = rows(snapshot, "otter", "moreau")
    assert by_document(snapshot, some, gain(words, some, followed)) == pytest.approx({"moreau": BRONZE + VILLAGE})
    others = rows(snapshot, "bell", "isk")
    assert gain(words, others, followed).tolist() == [0, 0]


def test_without_sources_nothing_is_gained(snapshot: Snapshot) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    none = FollowedMentions.from_incidences(
        snapshot, nothing, nothing, np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.float32)
    )
    every = np.arange(6)
    words = build_coverage(QUESTION, snapshot, every)
    assert gain(words, every, none).tolist() == [0] * 6
