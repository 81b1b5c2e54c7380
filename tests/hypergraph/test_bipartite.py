from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from polyad.errors import ConfigurationError
from polyad.hypergraph.bipartite import Bipartite, binary, from_bipartite, pairwise, to_bipartite
from polyad.hypergraph.incidence import Hypergraph

Edges = list[set[int]]

NODES = 6
EDGES = st.lists(st.sets(st.integers(0, NODES - 1), max_size=NODES), max_size=7)
PAIRS = st.sets(st.integers(0, NODES - 1), min_size=2, max_size=2)


def hypergraph(edges: Edges, nodes: int = NODES) -> Hypergraph:
    pairs = [(node, edge) for edge, members in enumerate(edges) for node in sorted(members)]
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Hypergraph.from_incidences(columns[0], columns[1], nodes, len(edges))


def bipartite(nodes: int, edges: int, *pairs: tuple[int, int]) -> Bipartite:
    return Bipartite(nodes, edges, np.array(pairs, dtype=np.int64).reshape(-1, 2))


@st.composite
def bipartites(draw: st.DrawFn) -> Bipartite:
    nodes, edges = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    every = [(edge, node) for edge in range(edges) for node in range(nodes)]
    return bipartite(nodes, edges, *sorted(draw(st.sets(st.sampled_from(every)) if every else st.just(set()))))


@given(edges=EDGES, isolated=st.integers(0, 3))
def test_a_hypergraph_read_back_from_its_bipartite_form_is_the_same(edges: Edges, isolated: int) -> None:
    graph = hypergraph(edges, NODES + isolated)
    assert from_bipartite(to_bipartite(graph)) == graph


@given(form=bipartites())
def test_a_bipartite_graph_read_as_a_hypergraph_and_written_again_is_the_same(form: Bipartite) -> None:
    assert to_bipartite(from_bipartite(form)) == form


@given(edges=EDGES, data=st.data())
def test_equal_graphs_have_equal_forms_however_they_were_built(edges: Edges, data: st.DataObject) -> None:
    pairs = [(node, edge) for edge, members in enumerate(edges) for node in sorted(members)]
    again = data.draw(st.permutations(pairs + pairs[:3]))
    columns = np.array(again, dtype=np.int64).reshape(-1, 2).T
    shuffled = Hypergraph.from_incidences(columns[0], columns[1], NODES, len(edges))
    assert to_bipartite(shuffled) == to_bipartite(hypergraph(edges))


@given(first=EDGES, second=EDGES)
def test_different_graphs_have_different_forms(first: Edges, second: Edges) -> None:
    assume(first != second)
    assert to_bipartite(hypergraph(first)) != to_bipartite(hypergraph(second))


def test_the_bipartite_form_by_hand() -> None:
    form = to_bipartite(hypergraph([{2, 0}, set(), {1, 2, 3}], nodes=5))
    assert (form.node_count, form.edge_count) == (5, 3)
    assert form.pairs.tolist() == [[0, 0], [0, 2], [2, 1], [2, 2], [2, 3]]
    assert form != bipartite(5, 4, (0, 0), (0, 2), (2, 1), (2, 2), (2, 3))
    assert form != form.pairs.tolist()


@pytest.mark.parametrize(
    ("pairs", "named"),
    [
        ([(0, 0), (2, 1)], r"pair \(2, 1\) is not in the graph"),
        ([(0, 3)], r"pair \(0, 3\) is not in the graph"),
        ([(0, -1)], r"pair \(0, -1\) is not in the graph"),
        ([(1, 0), (0, 2)], r"pair \(0, 2\) is out of order or there twice"),
        ([(0, 1), (0, 1)], r"pair \(0, 1\) is out of order or there twice"),
    ],
)
def test_pairs_that_are_no_bipartite_form_are_refused_by_name(pairs: list[tuple[int, int]], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        bipartite(3, 2, *pairs)


def test_pairs_of_another_shape_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"shape \(4,\); expected \(incidences, 2\)"):
        Bipartite(2, 2, np.arange(4))


def test_one_fact_of_three_and_three_facts_of_two_have_the_same_pairs_but_not_the_same_bipartite_form() -> None:
    a, b, c = range(3)
    whole, parts = hypergraph([{a, b, c}], 3), hypergraph([{a, b}, {a, c}, {b, c}], 3)
    assert pairwise(whole).tolist() == pairwise(parts).tolist() == [[a, b], [a, c], [b, c]]
    assert to_bipartite(whole) != to_bipartite(parts)


@given(edges=EDGES)
def test_a_pair_is_there_once_if_the_nodes_meet(edges: Edges) -> None:
    graph = hypergraph(edges)
    assert pairwise(graph).tolist() == [list(pair) for pair in combinations(range(NODES), 2) if graph.meet(*pair)]


@given(edges=EDGES)
def test_cutting_hyperedges_into_pairs_keeps_the_pairs_and_loses_the_hypergraph(edges: Edges) -> None:
    graph = hypergraph(edges)
    cut, _ = binary(graph)
    assert pairwise(cut).tolist() == pairwise(graph).tolist()
    assert (to_bipartite(cut) == to_bipartite(graph)) == all(len(members) < 3 for members in edges)


@given(edges=st.lists(PAIRS, max_size=7))
def test_where_all_hyperedges_are_pairs_the_pairs_tell_everything(edges: Edges) -> None:
    graph = hypergraph(edges)
    assert {tuple(pair) for pair in pairwise(graph).tolist()} == {tuple(sorted(members)) for members in edges}
    assert binary(graph)[0] == graph


@given(edges=EDGES)
def test_the_binary_hypergraph_has_the_pairs_of_each_hyperedge_in_its_place(edges: Edges) -> None:
    expected = [
        (origin, set(part))
        for origin, members in enumerate(edges)
        for part in (combinations(sorted(members), 2) if len(members) >= 2 else [members])
    ]
    cut, origins = binary(hypergraph(edges))
    assert cut == hypergraph([part for _, part in expected])
    assert origins.tolist() == [origin for origin, _ in expected]


def test_a_pair_within_two_hyperedges_is_kept_for_each_and_small_hyperedges_stay() -> None:
    cut, origins = binary(hypergraph([{4}, {0, 1, 2}, set(), {1, 2}]))
    assert [cut.members[edge].tolist() for edge in range(cut.edge_count)] == [[4], [0, 1], [0, 2], [1, 2], [], [1, 2]]
    assert origins.tolist() == [0, 1, 1, 1, 2, 3]
    assert cut.node_count == NODES


def test_a_graph_without_nodes_has_no_pairs() -> None:
    assert pairwise(hypergraph([], 0)).shape == (0, 2)
    assert pairwise(hypergraph([set()], 0)).shape == (0, 2)
