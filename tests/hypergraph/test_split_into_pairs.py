from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polyad.hypergraph.incidence import Hypergraph, split_into_pairs

Edges = list[set[int]]

NODES = 6
EDGES = st.lists(st.sets(st.integers(0, NODES - 1), max_size=NODES), max_size=7)
PAIRS = st.sets(st.integers(0, NODES - 1), min_size=2, max_size=2)


def hypergraph(edges: Edges, nodes: int = NODES) -> Hypergraph:
    pairs = [(node, edge) for edge, members in enumerate(edges) for node in sorted(members)]
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Hypergraph.from_incidences(columns[0], columns[1], nodes, len(edges))


@given(edges=EDGES)
def test_the_binary_hypergraph_has_the_pairs_of_each_hyperedge_in_its_place(edges: Edges) -> None:
    expected = [
        (origin, set(part))
        for origin, members in enumerate(edges)
        for part in (combinations(sorted(members), 2) if len(members) >= 2 else [members])
    ]
    cut, origins = split_into_pairs(hypergraph(edges))
    assert cut == hypergraph([part for _, part in expected])
    assert origins.tolist() == [origin for origin, _ in expected]


def test_a_pair_within_two_hyperedges_is_kept_for_each_and_small_hyperedges_stay() -> None:
    cut, origins = split_into_pairs(hypergraph([{4}, {0, 1, 2}, set(), {1, 2}]))
    assert [cut.members[edge].tolist() for edge in range(cut.edge_count)] == [[4], [0, 1], [0, 2], [1, 2], [], [1, 2]]
    assert origins.tolist() == [0, 1, 1, 1, 2, 3]
    assert cut.node_count == NODES


@given(edges=st.lists(PAIRS, max_size=7))
def test_hyperedges_of_two_stay_as_they_are(edges: Edges) -> None:
    assert split_into_pairs(hypergraph(edges))[0] == hypergraph(edges)


def test_a_hyperedge_of_three_has_the_pairs_of_three_hyperedges_of_two() -> None:
    parts = hypergraph([{0, 1}, {0, 2}, {1, 2}], 3)
    assert split_into_pairs(hypergraph([{0, 1, 2}], 3))[0] == parts
