from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.snapshot.columns import Column, Values

CHANGES = st.lists(
    st.one_of(
        st.lists(st.integers(0, 99), max_size=4),
        st.dictionaries(st.integers(0, 15), st.integers(100, 199), max_size=4),
    ),
    max_size=8,
)
"""Appended values, or replaced values by row."""


@given(base=st.lists(st.integers(0, 99), max_size=6), changes=CHANGES, wide=st.booleans())
def test_a_column_has_the_values_that_an_array_would_have(
    base: list[int], changes: list[list[int] | dict[int, int]], wide: bool
) -> None:
    def values(numbers: list[int]) -> Values:
        column = np.array(numbers, dtype=np.float32)
        return np.stack([column, -column], axis=1) if wide else column

    column, expected = Column.from_array(values(base)), list(base)
    for change in changes:
        earlier, before = column, values(expected)
        if isinstance(change, list):
            column = column.append(values(change))
            expected += change
        else:
            names = {row: value for row, value in sorted(change.items()) if row < len(expected)}
            column = column.replace(np.array(list(names), dtype=np.int64), values(list(names.values())))
            for row, value in names.items():
                expected[row] = value
        assert np.array_equal(earlier.to_array(), before), "an earlier version has changed"
        assert len(column) == len(expected)
        assert np.array_equal(column.to_array(), values(expected))
        rows = np.random.default_rng(len(expected)).permutation(len(expected))
        assert np.array_equal(column.take(rows), values(expected)[rows])
        assert column.take(rows).dtype == np.float32


def test_the_last_value_is_that_of_the_last_row() -> None:
    column = Column.from_array(np.empty(0, dtype=np.int64))
    assert column.last() == -1
    column = Column.from_array(np.array([3, 5]))
    assert (column.last(), column.append(np.array([9])).last()) == (5, 9)


@pytest.mark.parametrize("cut", [0, 2, 5])
def test_count_below_counts_base_and_appended_values(cut: int) -> None:
    numbers = np.array([1, 4, 4, 9, 12])
    column = Column.from_array(numbers[:cut]).append(numbers[cut:])
    assert column.count_below(np.array([0, 1, 2, 4, 5, 12, 13])).tolist() == [0, 0, 1, 1, 3, 4, 5]
