from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polyad.hypergraph.incidence import Adjacency, Hypergraph
from polyad.hypergraph.sparse import expand_ranges, sort_unique
from polyad.model import IntArray

ROWS = 6
PAIRS = st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, 8)), max_size=40)


EDGES = st.lists(st.sets(st.integers(0, ROWS - 1), max_size=ROWS), max_size=9)


def integers(*numbers: int) -> IntArray:
    return np.array(numbers, dtype=np.int64)


def adjacency_of(pairs: list[tuple[int, int]], rows: int = ROWS) -> Adjacency:
    return Adjacency.from_pairs(integers(*(row for row, _ in pairs)), integers(*(other for _, other in pairs)), rows)


def hypergraph(edges: list[set[int]], nodes: int = ROWS) -> Hypergraph:
    pairs = [(node, edge) for edge, members in enumerate(edges) for node in sorted(members)]
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Hypergraph.from_incidences(columns[0], columns[1], nodes, len(edges))


def test_neighbours_are_sorted_and_counted_once() -> None:
    adjacency = adjacency_of([(2, 7), (0, 3), (2, 1), (2, 7), (0, 3)], rows=4)
    assert [adjacency[row].tolist() for row in range(4)] == [[3], [], [1, 7], []]
    assert adjacency.degrees().tolist() == [1, 0, 2, 0]


def test_neighbours_come_in_the_order_of_the_requested_rows() -> None:
    adjacency = adjacency_of([(0, 3), (2, 1), (2, 7)], rows=4)
    neighbours, owners = adjacency.get_neighbours(integers(2, 1, 0, 2))
    assert neighbours.tolist() == [1, 7, 3, 1, 7]
    assert owners.tolist() == [0, 0, 2, 3, 3]


def test_no_rows_have_no_neighbours() -> None:
    for adjacency in (adjacency_of([]), adjacency_of([(0, 0)])):
        neighbours, owners = adjacency.get_neighbours(integers())
        assert (len(neighbours), len(owners)) == (0, 0)
    assert Adjacency.from_pairs(integers(), integers(), 0).degrees().tolist() == []


@given(pairs=PAIRS, requested=st.lists(st.integers(0, ROWS - 1), max_size=10))
def test_an_adjacency_holds_the_set_of_its_pairs(pairs: list[tuple[int, int]], requested: list[int]) -> None:
    expected = defaultdict(set)
    for row, other in pairs:
        expected[row].add(other)
    adjacency = adjacency_of(pairs)
    assert [adjacency[row].tolist() for row in range(ROWS)] == [sorted(expected[row]) for row in range(ROWS)]
    assert adjacency.degrees(integers(*requested)).tolist() == [len(expected[row]) for row in requested]
    neighbours, owners = adjacency.get_neighbours(integers(*requested))
    gathered = list(zip(owners.tolist(), neighbours.tolist(), strict=True))
    assert gathered == [(place, other) for place, row in enumerate(requested) for other in sorted(expected[row])]


@given(numbers=st.lists(st.integers(0, 9)))
def test_sort_unique_sorts_and_drops_duplicates(numbers: list[int]) -> None:
    assert sort_unique(integers(*numbers)).tolist() == sorted(set(numbers))


@given(pairs=PAIRS)
def test_members_and_memberships_are_two_sides_of_one_incidence(pairs: list[tuple[int, int]]) -> None:
    nodes, edges = integers(*(node for node, _ in pairs)), integers(*(edge for _, edge in pairs))
    graph = Hypergraph.from_incidences(nodes, edges, ROWS, 9)
    assert (graph.node_count, graph.edge_count) == (ROWS, 9)
    forth = {(node, edge) for node in range(ROWS) for edge in graph.memberships[node].tolist()}
    back = {(node, edge) for edge in range(9) for node in graph.members[edge].tolist()}
    assert forth == back == set(pairs)


@given(spans=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=8))
def test_expand_ranges_concatenates_ranges(spans: list[tuple[int, int]]) -> None:
    numbers = expand_ranges(integers(*(start for start, _ in spans)), integers(*(count for _, count in spans)))
    assert numbers.tolist() == [number for start, count in spans for number in range(start, start + count)]


@given(first=EDGES, second=EDGES)
def test_hypergraphs_are_equal_when_their_rows_have_the_same_members(
    first: list[set[int]], second: list[set[int]]
) -> None:
    assert hypergraph(first) == hypergraph(list(first))
    assert (hypergraph(first) == hypergraph(second)) == (first == second)


def test_a_hypergraph_with_one_more_isolated_node_is_another() -> None:
    assert hypergraph([{0, 1}], nodes=2) != hypergraph([{0, 1}], nodes=3)
    assert hypergraph([{0, 1}]).members != [[0, 1]]
