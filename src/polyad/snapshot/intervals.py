"""The intervals of time in which the rows of a snapshot hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.model import BoolArray, TimeArray
from polyad.snapshot.columns import Column
from polyad.text.validity import UNBOUNDED, Interval


@dataclass(frozen=True, slots=True, eq=False)
class RowIntervals:
    """The interval in which each row holds. Nothing is stored while all rows are unbounded.

    Attributes:
        bounds: Start and end in seconds since 1970, float64 ``[rows, 2]``; without rows if all are unbounded.
    """

    bounds: Column

    @classmethod
    def empty(cls) -> RowIntervals:
        """Return the intervals of an index without rows."""
        return cls(Column.empty(np.float64, 2))

    @property
    def is_bounded(self) -> bool:
        """Whether a row was ever bounded."""
        return len(self.bounds) > 0

    def append(self, row_count: int, intervals: TimeArray) -> RowIntervals:
        """Return the intervals with those of new rows.

        Args:
            row_count: Number of rows before.
            intervals: float64 ``[new rows, 2]``.
        """
        if self.is_bounded:
            return RowIntervals(self.bounds.append(intervals))
        if (intervals == UNBOUNDED).all():
            return self
        earlier = np.full((row_count, 2), UNBOUNDED, dtype=np.float64)
        return RowIntervals(Column.from_array(np.concatenate([earlier, intervals])))

    def contain(self, time: float, row_count: int) -> BoolArray:
        """Return whether each row holds at a time; bool ``[row_count]``."""
        if not self.is_bounded:
            return np.ones(row_count, dtype=bool)
        bounds = self.bounds.to_array()
        is_valid: BoolArray = (bounds[:, 0] <= time) & (time < bounds[:, 1])
        return is_valid

    def find_constant(self, time: float) -> Interval:
        """Return the interval around a time in which no row begins or ceases to hold."""
        bounds = self.bounds.to_array()
        is_past = bounds <= time
        start = bounds.max(initial=UNBOUNDED.start, where=is_past)
        return Interval(float(start), float(bounds.min(initial=UNBOUNDED.end, where=~is_past)))
