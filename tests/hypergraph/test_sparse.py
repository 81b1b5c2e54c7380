from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.hypergraph.sparse import Scores, find_top_positions, union
from polyad.model import IntArray

VALUES = st.sampled_from([0.0, 0.5, 1.0, -1.0])
PAIRS = st.lists(st.tuples(st.integers(0, 9), VALUES), max_size=20)


def by_row(rows: IntArray) -> IntArray:
    return rows


def as_dict(scores: Scores) -> dict[int, float]:
    assert (np.diff(scores.rows) > 0).all()
    assert scores.values.dtype == np.float32
    return dict(zip(scores.rows.tolist(), scores.values.tolist(), strict=True))


def columns(pairs: list[tuple[int, float]]) -> tuple[IntArray, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    rows = np.array([row for row, _ in pairs], dtype=np.int64)
    return rows, np.array([value for _, value in pairs], dtype=np.float32)


@given(scores=st.lists(VALUES, max_size=12), k=st.integers(-1, 15))
def test_top_k_returns_the_highest_scores_and_breaks_ties_by_sort_key(scores: list[float], k: int) -> None:
    values, places = np.array(scores, dtype=np.float32), range(len(scores))
    lower = sorted(places, key=lambda place: (-scores[place], place))
    assert find_top_positions(values, k, by_row).tolist() == lower[: max(0, k)]
    higher = sorted(places, key=lambda place: (-scores[place], -place))
    assert find_top_positions(values, k, np.negative).tolist() == higher[: max(0, k)]


@given(pairs=PAIRS)
def test_from_max_takes_the_highest_value_of_each_row(pairs: list[tuple[int, float]]) -> None:
    expected = {row: max(0.0, *(value for other, value in pairs if other == row)) for row, _ in pairs}
    assert as_dict(Scores.from_max(*columns(pairs))) == expected


@given(pairs=PAIRS)
def test_from_sum_adds_the_values_of_each_row(pairs: list[tuple[int, float]]) -> None:
    expected = {row: sum(value for other, value in pairs if other == row) for row, _ in pairs}
    assert as_dict(Scores.from_sum(*columns(pairs))) == expected


@given(names=st.dictionaries(st.integers(0, 9), VALUES), requested=st.lists(st.integers(0, 12), max_size=8))
def test_rows_without_a_score_have_0(names: dict[int, float], requested: list[int]) -> None:
    scores = Scores.from_pairs(*columns(list(names.items())))
    assert as_dict(scores) == names
    assert len(scores) == len(names)
    assert scores.get(np.array(requested, dtype=np.int64)).tolist() == [names.get(row, 0.0) for row in requested]


def test_find_positions_returns_positions_and_membership() -> None:
    places, there = Scores.from_pairs(*columns([(7, 1.0), (3, 0.5)])).find_positions(np.array([3, 4, 7, 9]))
    assert there.tolist() == [True, False, True, False]
    assert places[there].tolist() == [0, 1]


def test_scores_above_a_threshold_are_ranked() -> None:
    scores = Scores.from_pairs(*columns([(0, 1.0), (1, 3.0), (2, 2.0), (3, 3.0), (4, 0.0)]))
    assert scores.above(0.0).top_k(3, by_row).tolist() == [1, 3, 2]
    assert scores.above(2.0).top_k(9, by_row).tolist() == [1, 3]
    assert scores.above(2.0).top_k(1, np.negative).tolist() == [3]
    assert scores.above(3.0).top_k(9, by_row).tolist() == []
    assert Scores.empty().above(0.0).top_k(9, by_row).tolist() == []


def test_added_scores_are_merged_by_row() -> None:
    scores = Scores.empty().add(*columns([(5, 1.0)])).add(*columns([(2, 0.5), (9, 0.25)]))
    assert as_dict(scores) == {2: 0.5, 5: 1.0, 9: 0.25}


@pytest.mark.parametrize(("arrays", "expected"), [([], []), ([[]], []), ([[3, 1], [1, 2, 3], []], [1, 2, 3])])
def test_a_union_has_each_row_once(arrays: list[list[int]], expected: list[int]) -> None:
    assert union(np.array(rows, dtype=np.int64) for rows in arrays).tolist() == expected
