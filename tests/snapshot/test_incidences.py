"""Members and memberships by hand: with name variants, and after documents were added and deleted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from polyad.model import IntArray
from polyad.snapshot.columns import EntityKeys
from polyad.snapshot.incidences import Incidences, NewIncidences

FULL, SHORT, ISK = "ann bea lee", "ann lee", "isk"


def row_of(keys: EntityKeys, key: str) -> int | None:
    row = int(keys.find_rows([key])[0])
    return None if row < 0 else row


class Graph:
    """A hypergraph whose passages are added and deleted; entities are named by keys."""

    def __init__(self) -> None:
        self.incidences = Incidences.empty()
        self.keys = EntityKeys.empty()
        self.edges = 0

    def change(self, came: Mapping[int, list[dict[str, float]]], deleted: tuple[int, ...] = ()) -> set[str]:
        """Add passages, each with the subject strengths of the members of its hyperedges, and delete others.

        Returns:
            The entities whose passages changed.
        """
        new = sorted(
            {key for edges in came.values() for edge in edges for key in edge if row_of(self.keys, key) is None}
        )
        self.keys = self.keys.append(new)
        owners = [passage for passage, edges in sorted(came.items()) for _ in edges]
        edges = [edge for _, edges in sorted(came.items()) for edge in edges]
        parts = [
            (self.row(key), self.edges + place, strength)
            for place, edge in enumerate(edges)
            for key, strength in edge.items()
        ]
        columns = np.array(parts, dtype=np.float64).reshape(-1, 3)
        later, touched = self.incidences.with_changes(
            np.array(deleted, dtype=np.int64),
            NewIncidences(
                len(came),
                np.array(owners, dtype=np.int64),
                np.array([len(edge) for edge in edges], dtype=np.float32),
                columns[:, 0].astype(np.int64),
                columns[:, 1].astype(np.int64),
                columns[:, 2].astype(np.float32),
            ),
        )
        self.incidences, touched = later.update_short_names(self.keys, self.incidences, touched)
        self.edges += len(edges)
        return set(self.keys.strings.take(touched))

    def row(self, key: str) -> int:
        row = row_of(self.keys, key)
        assert row is not None
        return row

    def rows(self, *keys: str) -> IntArray:
        return np.array([self.row(key) for key in keys], dtype=np.int64)

    def members(self, edge: int) -> set[str]:
        return set(self.keys.strings.take(self.incidences.members(np.array([edge]))[0]))

    def stored(self, edge: int) -> set[str]:
        return set(self.keys.strings.take(self.incidences.members(np.array([edge]), variants=False)[0]))

    def memberships(self, key: str) -> list[int]:
        return self.incidences.memberships(self.rows(key))[0].tolist()  # type: ignore[no-any-return]

    def mentions(self, key: str) -> list[int]:
        passages, owners, strengths = self.incidences.mentions(self.rows(key))
        assert not owners.any()
        assert self.incidences.mention_counts(self.rows(key)).tolist() == [len(passages)]
        about = {passage: sure for passage, sure in zip(passages.tolist(), strengths.tolist(), strict=True) if sure > 0}
        assert about == self.about(key), "a mention says how surely its passage is about the entity"
        return passages.tolist()  # type: ignore[no-any-return]

    def about(self, key: str) -> dict[int, float]:
        passages, owners, strengths = self.incidences.mentions(self.rows(key), as_subject=True)
        assert not owners.any()
        return dict(zip(passages.tolist(), strengths.tolist(), strict=True))


@pytest.fixture
def graph() -> Graph:
    """Passage 0 is about Ann Bea Lee, surely in one hyperedge, less so in another; 1 mentions Ann Lee and the Isk."""
    made = Graph()
    made.change({0: [{FULL: 1.0, ISK: 0.0}, {FULL: 0.5}], 1: [{SHORT: 0.0, ISK: 0.0}]})
    return made


def test_variants_of_a_subject_are_members_of_its_hyperedges(graph: Graph) -> None:
    assert [graph.members(edge) for edge in range(3)] == [{FULL, SHORT, ISK}, {FULL, SHORT}, {SHORT, ISK}]
    assert [graph.stored(edge) for edge in range(3)] == [{FULL, ISK}, {FULL}, {SHORT, ISK}]
    assert [graph.memberships(key) for key in (FULL, SHORT, ISK)] == [[0, 1], [0, 1, 2], [0, 2]]
    assert [graph.mentions(key) for key in (FULL, SHORT, ISK)] == [[0], [0, 1], [0, 1]]
    assert [graph.about(key) for key in (FULL, SHORT, ISK)] == [{0: 1.0}, {0: 1.0}, {}]


def test_variants_that_only_excluded_passages_mention_are_no_members(graph: Graph) -> None:
    graph.incidences = graph.incidences.restrict(np.array([True, False]))
    assert [graph.members(edge) for edge in range(3)] == [{FULL, ISK}, {FULL}, set()]


def test_results_of_several_rows_have_the_position_of_each_row(graph: Graph) -> None:
    edges, owners = graph.incidences.memberships(graph.rows(ISK, SHORT, FULL, SHORT))
    results = [edges[owners == place].tolist() for place in range(4)]
    assert results == [[0, 2], [0, 1, 2], [0, 1], [0, 1, 2]]
    assert graph.incidences.mention_counts(graph.rows(ISK, SHORT, FULL, SHORT)).tolist() == [2, 2, 1, 2]
    entities, of_edge = graph.incidences.members(np.array([2, 0]))
    assert of_edge.tolist() == [0, 0, 1, 1, 1]
    assert (np.diff(entities[of_edge == 1]) > 0).all()
    hyperedges, of_passage = graph.incidences.hyperedges(np.array([1, 0]))
    assert (hyperedges.tolist(), of_passage.tolist()) == ([2, 0, 1], [0, 1, 1])
    assert graph.incidences.passages(np.array([2, 0])).tolist() == [1, 0]
    assert graph.incidences.edge_score.take(np.array([2, 1])).tolist() == [2, 1]


def test_variants_get_only_passages_about_the_subject(graph: Graph) -> None:
    graph.change({2: [{FULL: 0.0, ISK: 1.0}]})
    assert graph.mentions(FULL) == [0, 2]
    assert graph.mentions(SHORT) == [0, 1], "passage 2 is not about her"
    assert graph.members(3) == {FULL, ISK}


def test_variants_resolve_while_the_subject_is_a_subject(graph: Graph) -> None:
    assert graph.change({2: [{FULL: 0.0}]}, deleted=(0,)) == {FULL, SHORT, ISK}
    assert graph.memberships(SHORT) == [2]
    assert (graph.about(FULL), graph.about(SHORT)) == ({}, {})
    assert graph.change({3: [{FULL: 0.5}]}) == {FULL, SHORT}
    assert graph.memberships(SHORT) == [2, 4]
    assert graph.about(SHORT) == {3: 0.5}


def test_an_ambiguous_variant_is_not_resolved(graph: Graph) -> None:
    assert graph.change({2: [{"ann cy lee": 1.0}]}) == {"ann cy lee", SHORT}
    assert graph.members(0) == {FULL, ISK}
    assert graph.mentions(SHORT) == [1]
    assert graph.change({}, deleted=(2,)) == {"ann cy lee", SHORT}
    assert graph.mentions(SHORT) == [0, 1]


def test_deleted_rows_are_the_neighbours_of_no_row(graph: Graph) -> None:
    before = graph.incidences
    assert graph.change({}, deleted=(0, 1)) == {FULL, SHORT, ISK}
    assert not graph.incidences.are_live(graph.rows(FULL, SHORT, ISK)).any()
    assert not graph.incidences.are_subjects(graph.rows(FULL, SHORT, ISK)).any()
    assert [graph.memberships(key) for key in (FULL, SHORT, ISK)] == [[], [], []]
    assert [graph.members(edge) for edge in range(3)] == [set(), set(), set()]
    assert graph.incidences.hyperedges(np.array([0, 1]))[0].tolist() == []
    assert before.memberships(graph.rows(ISK))[0].tolist() == [0, 2], "an earlier version has changed"
    graph.change({2: [{ISK: 1.0}]})
    assert graph.memberships(ISK) == [3]


def test_names_resolve_to_current_subjects(graph: Graph) -> None:
    assert graph.incidences.resolve_name_variants(graph.keys, ["a b lee"]) == {"a b lee": graph.row(FULL)}
    graph.change({}, deleted=(0,))
    assert graph.incidences.resolve_name_variants(graph.keys, ["a b lee"]) == {}
