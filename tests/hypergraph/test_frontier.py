from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.hypergraph.frontier import Walk, expand_frontier
from polyad.hypergraph.incidence import Hypergraph
from polyad.model import FloatArray, IntArray
from tests.examples import count_examples

Edges = list[set[int]]


class Joined:
    """A hypergraph whose rows are in the order of their ids."""

    def __init__(self, hypergraph: Hypergraph) -> None:
        self._hypergraph = hypergraph

    def members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        return self._hypergraph.members.get_neighbours(hyperedges)

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        return self._hypergraph.memberships.get_neighbours(entities)


def by_row(nodes: IntArray) -> IntArray:
    return nodes


def hypergraph(edges: Edges, nodes: int) -> Joined:
    pairs = [(node, edge) for edge, members in enumerate(edges) for node in sorted(members)]
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Joined(Hypergraph.from_incidences(columns[0], columns[1], nodes, len(edges)))


class Recorded:
    """An activation from a table, which records its arguments."""

    def __init__(self, alphas: list[float]) -> None:
        self.alphas = np.array(alphas, dtype=np.float32)
        self.requested: set[int] = set()

    def __call__(self, edges: IntArray) -> FloatArray:
        self.requested.update(edges.tolist())
        result: FloatArray = self.alphas[edges]
        return result


def walk(
    edges: Edges,
    alphas: list[float],
    seeds: dict[int, float],
    *,
    nodes: int = 10,
    depth: int = 4,
    width: int = 30,
    decay: float = 0.5,
) -> Walk:
    return expand_frontier(
        hypergraph(edges, nodes), seeds, Recorded(alphas), by_row, depth=depth, width=width, decay=decay
    )


def naive(
    edges: Edges, alphas: list[float], seeds: dict[int, float], *, depth: int, width: int, decay: float
) -> tuple[dict[int, float], dict[int, float]]:
    """Compute b(u) and a(v) as section 4.2 states them, in single precision."""
    alpha = [np.float32(value) for value in alphas]
    activation = {node: np.float32(value) for node, value in seeds.items()}
    frontier = set(seeds)
    bridges: dict[int, np.float32] = {}
    for hop in range(1, depth + 1):
        through = {}
        for edge, members in enumerate(edges):
            at = [activation[node] for node in members & frontier]
            score = alpha[edge] * max(at) if at else np.float32(0)
            if score > 0:
                through[edge] = score
                bridges[edge] = max(score, bridges.get(edge, score))
        received: dict[int, np.float32] = {}
        for edge, score in through.items():
            for node in edges[edge] - activation.keys():
                received[node] = max(score, received.get(node, score))
        remaining = sorted(received, key=lambda node: (-received[node], node))[:width]
        if not remaining:
            break
        activation |= {node: received[node] * np.float32(decay**hop) for node in remaining}
        frontier = set(remaining)
    return {edge: float(score) for edge, score in bridges.items()}, {n: float(a) for n, a in activation.items()}


NODES = 9
EDGES = st.lists(st.sets(st.integers(0, NODES - 1), max_size=5), max_size=14)
ALPHA = st.sampled_from([0.0, 0.25, 0.5, 0.5, 1.0]) | st.floats(0, 1, width=32)
SEEDS = st.dictionaries(st.integers(0, NODES - 1), st.sampled_from([1.0, 0.5, 0.1]), max_size=4)


@settings(max_examples=count_examples(300), deadline=None)
@given(
    edges=EDGES,
    data=st.data(),
    seeds=SEEDS,
    depth=st.integers(0, 5),
    width=st.integers(1, 4),
    decay=st.sampled_from([1.0, 0.5, 0.3]),
)
def test_expansion_equals_the_formulas_evaluated_one_by_one(
    edges: Edges, data: st.DataObject, seeds: dict[int, float], depth: int, width: int, decay: float
) -> None:
    alphas = data.draw(st.lists(ALPHA, min_size=len(edges), max_size=len(edges)))
    bridges, nodes = naive(edges, alphas, seeds, depth=depth, width=width, decay=decay)

    actual = walk(edges, alphas, seeds, nodes=NODES, depth=depth, width=width, decay=decay)

    assert actual.bridges == bridges
    assert {node: np.float32(a) for node, a in actual.nodes.items()} == {n: np.float32(a) for n, a in nodes.items()}
    assert actual.entered_from.keys() == actual.bridges.keys()
    for edge, node in actual.entered_from.items():
        assert node in edges[edge]
        assert actual.bridges[edge] == pytest.approx(alphas[edge] * actual.nodes[node], rel=1e-6)


def test_three_hops_by_hand() -> None:
    #        0 --e0 (0.8)-- 1 --e1 (0.5)-- 2 --e2 (1.0)-- 3, and e3 (0.4) from 0 to 2 directly
    actual = walk([{0, 1}, {1, 2}, {2, 3}, {0, 2}], [0.8, 0.5, 1.0, 0.4], {0: 1.0}, depth=3)
    # Hop 1: e0 0.8 and e3 0.4 are entered from 0; a(1) = 0.8 / 2, a(2) = 0.4 / 2.
    # Hop 2: e1 is max(0.5 * 0.4, 0.5 * 0.2) from 1, e2 is 1.0 * 0.2 from 2; a(3) = 0.2 / 4.
    # Hop 3: e2 from 3 is 1.0 * 0.05, less than before.
    assert actual.bridges == pytest.approx({0: 0.8, 3: 0.4, 1: 0.2, 2: 0.2})
    assert actual.nodes == pytest.approx({0: 1.0, 1: 0.4, 2: 0.2, 3: 0.05})
    assert actual.entered_from == {0: 0, 3: 0, 1: 1, 2: 2}


def test_depth_zero_reaches_only_the_seeds() -> None:
    activation = Recorded([1.0])
    actual = expand_frontier(hypergraph([{0, 1}], 2), {0: 1.0}, activation, by_row, depth=0, width=5, decay=0.5)
    assert (actual.bridges, actual.nodes, activation.requested) == ({}, {0: 1.0}, set())


def test_without_seeds_or_edges_nothing_is_reached() -> None:
    assert walk([{0, 1}], [1.0], {}) == Walk({}, {}, {})
    assert walk([], [], {3: 1.0}) == Walk({}, {}, {3: 1.0})


def test_an_inactive_hyperedge_is_not_passed() -> None:
    actual = walk([{0, 1}, {1, 2}], [0.0, 1.0], {0: 1.0})
    assert (actual.bridges, actual.nodes) == ({}, {0: 1.0})


def test_activation_is_computed_only_for_incident_hyperedges() -> None:
    activation = Recorded([1.0, 0.0, 1.0, 1.0])
    graph = hypergraph([{0, 1}, {1, 2}, {2, 3}, {4, 5}], 6)
    expand_frontier(graph, {0: 1.0}, activation, by_row, depth=4, width=5, decay=0.5)
    assert activation.requested == {0, 1}


def test_ties_between_nodes_go_to_the_lower_row() -> None:
    actual = walk([{0, 7, 3, 5}], [0.5], {0: 1.0}, width=2, depth=1)
    assert sorted(actual.nodes) == [0, 3, 5]


def test_ties_between_sources_go_to_the_lower_row() -> None:
    assert walk([{2, 6, 4}], [0.5], {6: 1.0, 4: 1.0}, depth=1).entered_from == {0: 4}


def test_ties_are_broken_by_the_sort_key() -> None:
    graph, alphas = hypergraph([{0, 7, 3, 5}], 10), Recorded([0.5])
    actual = expand_frontier(graph, {0: 1.0}, alphas, np.negative, depth=1, width=2, decay=0.5)
    assert sorted(actual.nodes) == [0, 5, 7]
    actual = expand_frontier(graph, {3: 1.0, 5: 1.0}, alphas, np.negative, depth=1, width=1, decay=0.5)
    assert actual.entered_from == {0: 5}


def test_a_hub_gives_its_neighbours_no_more_than_width() -> None:
    spokes = [{0, node} for node in range(1, 500)]
    actual = walk(spokes, [0.5] * 499, {0: 1.0}, nodes=500, depth=3, width=7)
    assert sorted(actual.nodes) == list(range(8))
    assert len(actual.bridges) == 499


def test_the_seeds_may_be_given_in_any_order() -> None:
    edges: Edges = [{0, 1, 2}, {2, 3}, {1, 3, 4}]
    forth = walk(edges, [0.5, 0.5, 0.5], {0: 1.0, 3: 0.5}, width=1)
    assert walk(edges, [0.5, 0.5, 0.5], {3: 0.5, 0: 1.0}, width=1) == forth
