"""Values by row, in two parts: those that lie on disk, and those that came or changed since."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.model import IntArray
from polyad.snapshot.growing import Tail, Values


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A value, or a vector, for each row. Immutable.

    Attributes:
        base: Of the first rows; mapped from a file, or in memory.
        came: Of the rows after these.
        changed: Rows of the base whose value is another now, sorted.
        values: Theirs.
    """

    base: Values
    came: Tail
    changed: IntArray
    values: Values

    @classmethod
    def of(cls, values: Values) -> Column:
        """A column without a tail."""
        return cls(values, Tail.of(values[:0]), np.empty(0, dtype=np.int64), values[:0])

    def __len__(self) -> int:
        return len(self.base) + len(self.came)

    @property
    def tail(self) -> Values:
        """The values of the rows that came after those of the base."""
        return self.came.values

    def at(self, rows: IntArray) -> Values:
        """The values of some rows, in order."""
        before = len(self.base)
        if not len(self.came) or (len(rows) and rows.max() < before):
            found: Values = self.base.take(rows, axis=0)
        else:
            found = np.empty((len(rows), *self.base.shape[1:]), dtype=self.base.dtype)
            is_base = rows < before
            found[is_base] = self.base[rows[is_base]]
            found[~is_base] = self.tail[rows[~is_base] - before]
        if len(self.changed):
            places = np.minimum(np.searchsorted(self.changed, rows), len(self.changed) - 1)
            is_changed = self.changed[places] == rows
            found[is_changed] = self.values[places[is_changed]]
        return found

    def last(self) -> int:
        """The last value; -1 where there is none. Of a column of whole numbers alone."""
        values = self.tail if len(self.came) else self.base
        return int(values[-1]) if len(values) else -1

    def count_below(self, values: IntArray) -> IntArray:
        """How many values are below each of some; of a column of ascending values alone."""
        found: IntArray = np.searchsorted(self.base, values) + np.searchsorted(self.tail, values)
        return found

    def extended(self, values: Values) -> Column:
        """The same with more rows."""
        values = values.astype(self.base.dtype, copy=False)
        if not len(self):
            return Column.of(values)
        return Column(self.base, self.came.extended(values), self.changed, self.values)

    def replaced(self, rows: IntArray, values: Values) -> Column:
        """The same with other values of some rows, which are sorted."""
        before, came = len(self.base), self.came
        is_base = rows < before
        if not is_base.all():
            tail = self.tail.copy()
            tail[rows[~is_base] - before] = values[~is_base]
            came = Tail.of(tail)
        kept = ~np.isin(self.changed, rows)
        changed = np.concatenate([self.changed[kept], rows[is_base]])
        order = np.argsort(changed)
        all_values = np.concatenate([self.values[kept], values[is_base].astype(self.base.dtype, copy=False)])
        return Column(self.base, came, changed[order], all_values[order])

    def whole(self) -> Values:
        """All values in one array."""
        if not len(self.came) and not len(self.changed):
            return self.base
        found = np.concatenate([self.base, self.tail])
        found[self.changed] = self.values
        return found
