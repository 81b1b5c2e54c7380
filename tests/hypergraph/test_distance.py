from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.errors import ConfigurationError
from polyad.hypergraph.distance import (
    Triples,
    build_triples,
    compute_directional_distances,
    encode_triples,
    get_encoding_width,
)
from polyad.hypergraph.incidence import Hypergraph
from polyad.model import IntArray
from tests.examples import count_examples

Edges = list[set[int]]
Triple = tuple[int, int, int]

NODES = 7
EDGES = st.lists(st.sets(st.integers(0, NODES - 1), max_size=5), max_size=7)
ROWS = st.lists(st.integers(0, NODES - 1), max_size=6)
TRIPLES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 9)), max_size=25)


def integers(*numbers: int) -> IntArray:
    return np.array(numbers, dtype=np.int64)


def hypergraph(edges: Edges, nodes: int = NODES) -> Hypergraph:
    pairs = [(node, edge) for edge, members in enumerate(edges) for node in sorted(members)]
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Hypergraph.from_incidences(columns[0], columns[1], nodes, len(edges))


def as_arrays(triples: list[Triple]) -> Triples:
    heads, edges, tails = np.array(triples, dtype=np.int64).reshape(-1, 3).T
    return Triples(heads, edges, tails)


def as_list(triples: Triples) -> list[Triple]:
    return list(zip(triples.heads.tolist(), triples.edges.tolist(), triples.tails.tolist(), strict=True))


def naive(triples: list[Triple], starts: list[int], rounds: int) -> dict[int, list[float]]:
    """Evaluate equations 4 to 7 entity by entity."""
    entities = {head for head, _, _ in triples} | {tail for _, _, tail in triples}
    initial = {entity: 1.0 if entity in starts else 0.0 for entity in entities}
    columns = [initial]
    for head_place, tail_place in ((0, 2), (2, 0)):
        values = initial
        for _ in range(rounds):
            after = {}
            for entity in entities:
                sources = {triple[head_place] for triple in triples if triple[tail_place] == entity}
                after[entity] = sum(values[source] for source in sources) / len(sources) if sources else 0.0
            values = after
            columns.append(values)
    return {entity: [column[entity] for column in columns] for entity in sorted(entities)}


@given(edges=EDGES, data=st.data(), heads=st.none() | ROWS)
def test_triples_are_the_ordered_pairs_within_each_hyperedge_sorted(
    edges: Edges, data: st.DataObject, heads: list[int] | None
) -> None:
    selection = data.draw(st.lists(st.sampled_from(range(len(edges))), max_size=9)) if edges else []
    expected = {
        (head, edge, tail)
        for edge in selection
        for head in edges[edge]
        for tail in edges[edge]
        if head != tail and (heads is None or head in heads)
    }
    triples = build_triples(
        hypergraph(edges).members.get_neighbours, integers(*selection), None if heads is None else integers(*heads)
    )
    assert as_list(triples) == sorted(expected)


def test_a_hyperedge_of_four_has_twelve_triples_or_three_for_each_head() -> None:
    graph = hypergraph([{0, 2, 4, 6}, {1, 3}])
    assert len(build_triples(graph.members.get_neighbours, integers(0))) == 12
    assert as_list(build_triples(graph.members.get_neighbours, integers(0), integers(4, 1))) == [
        (4, 0, 0),
        (4, 0, 2),
        (4, 0, 6),
    ]


@settings(max_examples=count_examples(300))
@given(triples=TRIPLES, starts=st.lists(st.integers(0, 12), max_size=5), rounds=st.integers(0, 4))
def test_distances_equal_the_equations_evaluated_one_by_one(
    triples: list[Triple], starts: list[int], rounds: int
) -> None:
    expected = naive(triples, starts, rounds)
    rows, encodings = compute_directional_distances(as_arrays(triples), integers(*starts), rounds)
    assert rows.tolist() == list(expected)
    assert encodings.dtype == np.float32
    assert encodings.shape == (len(expected), 1 + 2 * rounds)
    np.testing.assert_allclose(encodings, np.array(list(expected.values())).reshape(encodings.shape), rtol=1e-6)
    assert ((encodings >= 0) & (encodings <= 1)).all()


@settings(max_examples=count_examples(100))
@given(triples=TRIPLES, starts=st.lists(st.integers(0, 12), max_size=5), rounds=st.integers(0, 3))
def test_mixed_directions_propagate_the_result_of_each_round(
    triples: list[Triple], starts: list[int], rounds: int
) -> None:
    pairs = {(head, tail) for head, _, tail in triples}
    rows = sorted({row for pair in pairs for row in pair})

    def mean(values: dict[int, float], sources: list[int]) -> float:
        return sum(values[row] for row in sources) / len(sources) if sources else 0.0

    sent = [{row: float(row in starts) for row in rows}]
    expected = list(sent)
    for _ in range(rounds):
        forward = [{row: mean(values, [h for h, t in pairs if t == row]) for row in rows} for values in sent]
        backward = [{row: mean(values, [t for h, t in pairs if h == row]) for row in rows} for values in sent]
        sent = forward + backward
        expected += sent
    numbers, encodings = compute_directional_distances(as_arrays(triples), integers(*starts), rounds, "mixed")
    assert (numbers.tolist(), encodings.shape) == (rows, (len(rows), get_encoding_width(rounds, "mixed")))
    target = np.array([[values[row] for values in expected] for row in rows]).reshape(encodings.shape)
    np.testing.assert_allclose(encodings, target, rtol=1e-5, atol=1e-7)


def by_hand() -> Triples:
    """Of f0 {0, 1, 2}, f1 {0, 2} and f2 {1, 3}, with heads 0 and 1.

    0 -> 1 and 1 -> 0 in f0; 0 -> 2 in f0 and again in f1; 1 -> 2 in f0; 1 -> 3 in f2.
    """
    return build_triples(
        hypergraph([{0, 1, 2}, {0, 2}, {1, 3}], 4).members.get_neighbours, integers(0, 1, 2), integers(0, 1)
    )


def test_two_rounds_by_hand() -> None:
    triples = by_hand()
    assert as_list(triples) == [(0, 0, 1), (0, 0, 2), (0, 1, 2), (1, 0, 0), (1, 0, 2), (1, 2, 3)]

    rows, encodings = compute_directional_distances(triples, integers(0), 2)

    # Distinct heads into 0: {1}; 1: {0}; 2: {0, 1}, though three triples end there; 3: {1}.
    #   s1 = [s0(1), s0(0), (s0(0) + s0(1)) / 2, s0(1)] = [0, 1, 1/2, 0]
    #   s2 = [s1(1), s1(0), (s1(0) + s1(1)) / 2, s1(1)] = [1, 0, 1/2, 1]
    # Distinct tails out of 0: {1, 2}; 1: {0, 2, 3}; of 2 and 3: none.
    #   r1 = [(s0(1) + s0(2)) / 2, (s0(0) + s0(2) + s0(3)) / 3, 0, 0] = [0, 1/3, 0, 0]
    #   r2 = [(r1(1) + r1(2)) / 2, (r1(0) + r1(2) + r1(3)) / 3, 0, 0] = [1/6, 0, 0, 0]
    assert rows.tolist() == [0, 1, 2, 3]
    expected = [
        #  s0  s1   s2   r1     r2
        [1.0, 0.0, 1.0, 0.0, 1 / 6],
        [0.0, 1.0, 0.0, 1 / 3, 0.0],
        [0.0, 0.5, 0.5, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
    ]
    np.testing.assert_allclose(encodings, expected, rtol=1e-6)


def test_a_triple_is_encoded_as_its_head_then_its_tail() -> None:
    rows, encodings = compute_directional_distances(by_hand(), integers(0), 1)
    values = encode_triples(as_arrays([(1, 2, 3), (0, 1, 2)]), rows, encodings)
    assert values.dtype == np.float32
    expected = [[0, 1, 1 / 3, 0, 0, 0], [1, 0, 0, 0, 0.5, 0]]
    np.testing.assert_allclose(values, expected, rtol=1e-6)


@given(triples=TRIPLES, starts=ROWS, rounds=st.integers(0, 3))
def test_each_triple_has_the_rows_of_its_two_entities(triples: list[Triple], starts: list[int], rounds: int) -> None:
    rows, encodings = compute_directional_distances(as_arrays(triples), integers(*starts), rounds)
    row_of = dict(zip(rows.tolist(), encodings.tolist(), strict=True))
    values = encode_triples(as_arrays(triples), rows, encodings)
    assert values.shape == (len(triples), 2 * (1 + 2 * rounds))
    assert values.tolist() == [row_of[head] + row_of[tail] for head, _, tail in triples]


@given(triples=TRIPLES, starts=ROWS, data=st.data())
def test_the_order_of_the_triples_and_the_number_of_hyperedges_that_join_a_pair_change_no_bit(
    triples: list[Triple], starts: list[int], data: st.DataObject
) -> None:
    rows, encodings = compute_directional_distances(as_arrays(triples), integers(*starts), 2)
    more = data.draw(st.permutations(triples + [(head, edge + 10, tail) for head, edge, tail in triples[:4]]))
    again, same = compute_directional_distances(as_arrays(more), integers(*starts[::-1]), 2)
    assert (again.tolist(), same.tolist()) == (rows.tolist(), encodings.tolist())


@given(edges=EDGES, starts=ROWS)
def test_over_all_ordered_pairs_backward_repeats_forward(edges: Edges, starts: list[int]) -> None:
    triples = build_triples(hypergraph(edges).members.get_neighbours, np.arange(len(edges)))
    _, encodings = compute_directional_distances(triples, integers(*starts), 3)
    assert encodings[:, 1:4].tolist() == encodings[:, 4:].tolist()


@given(edges=EDGES)
def test_starting_from_every_head_of_all_ordered_pairs_gives_ones(edges: Edges) -> None:
    triples = build_triples(hypergraph(edges).members.get_neighbours, np.arange(len(edges)))
    _, encodings = compute_directional_distances(triples, triples.heads, 2)
    assert (encodings == 1).all()


def test_starting_from_the_heads_marks_them_where_heads_are_restricted() -> None:
    triples = by_hand()
    rows, encodings = compute_directional_distances(triples, triples.heads, 0)
    assert (rows.tolist(), encodings.tolist()) == ([0, 1, 2, 3], [[1], [1], [0], [0]])


def test_a_start_in_no_triple_is_ignored() -> None:
    rows, encodings = compute_directional_distances(as_arrays([(3, 0, 5)]), integers(4, 900), 1)
    assert (rows.tolist(), encodings.tolist()) == ([3, 5], [[0, 0, 0], [0, 0, 0]])


def test_no_triples_have_no_entities_and_no_features() -> None:
    nothing = build_triples(hypergraph([{0, 1}, {2}]).members.get_neighbours, integers(1))
    rows, encodings = compute_directional_distances(nothing, integers(0), 2)
    assert (rows.shape, encodings.shape) == ((0,), (0, 5))
    assert encode_triples(nothing, rows, encodings).shape == (0, 10)


def test_a_negative_number_of_rounds_raises() -> None:
    with pytest.raises(ConfigurationError, match="rounds is -1; expected 0 or more"):
        compute_directional_distances(by_hand(), integers(0), -1)


@pytest.mark.parametrize("missing", [2, 40])
def test_encoding_an_unknown_entity_raises(missing: int) -> None:
    rows, encodings = compute_directional_distances(as_arrays([(1, 0, 3)]), integers(1), 1)
    with pytest.raises(ValueError, match=f"entity row {missing} has no encoding"):
        encode_triples(as_arrays([(1, 0, missing)]), rows, encodings)
