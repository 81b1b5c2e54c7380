"""Preferred passages rise, and none is hidden."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from polyad.model import Evidence, Passage, ScoredPassage
from polyad.retrieval.postprocessing import rank_preferred


def build_evidence(count: int) -> Evidence:
    passages = (Passage(f"d#{number}", "d", "", "", 0, 0) for number in range(count))
    return Evidence("?", "dense", tuple(ScoredPassage(passage, 1 / (1 + n)) for n, passage in enumerate(passages)))


def list_ids(evidence: Evidence) -> list[str]:
    return [hit.passage.id for hit in evidence.passages]


@given(st.lists(st.booleans(), max_size=40))
def test_no_preferred_passage_falls_and_none_is_lost(are_preferred: list[bool]) -> None:
    evidence = build_evidence(len(are_preferred))
    ids = list_ids(rank_preferred(evidence, are_preferred, len(are_preferred)))
    before = list_ids(evidence)
    assert sorted(ids) == sorted(before)
    for id, is_preferred in zip(before, are_preferred, strict=True):
        assert not is_preferred or ids.index(id) <= before.index(id)
    for group in (True, False):  # passages of a group stay in their order
        ordered = [id for id, is_preferred in zip(before, are_preferred, strict=True) if is_preferred is group]
        assert [id for id in ids if id in ordered] == ordered
    if len(set(are_preferred)) < 2:
        assert ids == before


def test_a_passage_counts_as_if_it_stood_at_half_of_its_rank() -> None:
    preferred = [False, False, False, False, False, True, False, False]
    assert list_ids(rank_preferred(build_evidence(8), preferred, 8)) == [f"d#{n}" for n in (0, 1, 5, 2, 3, 4, 6, 7)]


def test_passages_behind_the_requested_ones_may_move_up() -> None:
    are_preferred = [number == 5 for number in range(6)]
    assert list_ids(rank_preferred(build_evidence(6), are_preferred, 3)) == ["d#0", "d#1", "d#5"]


def test_a_preferred_passage_overtakes_those_that_are_nearly_as_relevant() -> None:
    evidence = build_evidence(4)
    relevances = (0.93, 0.92, 0.91, 0.5)
    hits = tuple(replace(hit, relevance=value) for hit, value in zip(evidence.passages, relevances, strict=True))
    evidence = replace(evidence, passages=hits)
    assert list_ids(rank_preferred(evidence, [False, False, True, False], 4)) == ["d#2", "d#0", "d#1", "d#3"]
    assert list_ids(rank_preferred(evidence, [False, False, False, True], 4)) == ["d#0", "d#3", "d#1", "d#2"]
