"""Columns of a snapshot: a value for each row, mapped from a file and extended or replaced in memory.

A snapshot advances one document at a time while earlier searches read the snapshot before it. All classes here are
immutable, and a longer column shares the memory of a shorter one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.sparse import union
from polyad.model import BoolArray, IntArray

Values = npt.NDArray[Any]

_MERGE_RATIO = 8
"""A run is at least this many times as large as the next one: runs are few, and an entry is rarely copied."""


class _Mergeable(Protocol):
    def __len__(self) -> int: ...

    def merge(self, later: Self) -> Self: ...


Run = TypeVar("Run", bound=_Mergeable)


def append_run(runs: tuple[Run, ...], run: Run) -> tuple[Run, ...]:
    """Append a batch and merge it with earlier batches that are not much larger (LSM tree, O'Neil et al., 1996)."""
    while runs and len(runs[-1]) < _MERGE_RATIO * len(run):
        *larger, last = runs
        runs, run = tuple(larger), last.merge(run)
    return (*runs, run) if len(run) else runs


@dataclass(slots=True, eq=False)
class _Buffer:
    """Allocated memory that several append-only arrays of different lengths share.

    Attributes:
        values: Allocated values, of which the first ``used`` are set.
        used: Length of the longest array.
    """

    values: Values
    used: int


@dataclass(frozen=True, slots=True, eq=False)
class AppendOnlyArray:
    """An immutable prefix of a growing array. Longer prefixes share its memory."""

    buffer: _Buffer
    length: int

    @classmethod
    def from_values(cls, values: Values) -> AppendOnlyArray:
        """Return an array of these values, without copying them."""
        return cls(_Buffer(values, len(values)), len(values))

    def __len__(self) -> int:
        return self.length

    @property
    def values(self) -> Values:
        """The values as a numpy array."""
        return self.buffer.values[: self.length]

    def append(self, values: Values) -> AppendOnlyArray:
        """Return an array of these values followed by the new values."""
        if not len(values):
            return self
        buffer, length = self.buffer, self.length + len(values)
        if buffer.used != self.length or length > len(buffer.values):
            buffer = _Buffer(np.empty((2 * length, *values.shape[1:]), dtype=buffer.values.dtype), 0)
            buffer.values[: self.length] = self.values
        buffer.values[self.length : length] = values
        buffer.used = length
        return AppendOnlyArray(buffer, length)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """An array with a value, or a vector, for each row.

    Columns with appended or replaced rows share its memory. Immutable.

    Attributes:
        base: Values of the first rows; mapped from a file or in memory.
        appended: Values of the rows after these.
        replaced: Rows whose values have been replaced, sorted.
        replacements: The new values of these rows.
    """

    base: Values
    appended: AppendOnlyArray
    replaced: IntArray
    replacements: Values

    @classmethod
    def from_array(cls, values: Values) -> Column:
        """Return a column of these values, without copying them."""
        return cls(values, AppendOnlyArray.from_values(values[:0]), np.empty(0, dtype=np.int64), values[:0])

    @classmethod
    def empty(cls, dtype: npt.DTypeLike, *shape: int) -> Column:
        """Return a column without rows; ``shape`` is the shape of a value."""
        return cls.from_array(np.empty((0, *shape), dtype=dtype))

    def __len__(self) -> int:
        return len(self.base) + len(self.appended)

    def take(self, rows: IntArray) -> Values:
        """Return a copy of the values of rows, in their order."""
        base_count = len(self.base)
        if not len(self.appended) or (len(rows) and rows.max() < base_count):
            values: Values = self.base.take(rows, axis=0)
        else:
            values = np.empty((len(rows), *self.base.shape[1:]), dtype=self.base.dtype)
            is_base = rows < base_count
            values[is_base] = self.base[rows[is_base]]
            values[~is_base] = self.appended.values[rows[~is_base] - base_count]
        if len(self.replaced):
            places = np.minimum(self.replaced.searchsorted(rows), len(self.replaced) - 1)
            is_replaced = self.replaced[places] == rows
            values[is_replaced] = self.replacements[places[is_replaced]]
        return values

    def last(self, default: int = -1) -> int:
        """Return the value of the last row of a column of integers, or ``default`` if the column is empty."""
        return int(self.take(np.array([len(self) - 1]))[0]) if len(self) else default

    def count_below(self, values: IntArray) -> IntArray:
        """Return for each value how many entries of an ascending column are lower."""
        counts: IntArray = np.searchsorted(self.base, values) + np.searchsorted(self.appended.values, values)
        return counts

    def append(self, values: Values) -> Column:
        """Return the column with the values of more rows."""
        values = values.astype(self.base.dtype, copy=False)
        if not len(self):
            return Column.from_array(values)
        return Column(self.base, self.appended.append(values), self.replaced, self.replacements)

    def replace(self, rows: IntArray, values: Values) -> Column:
        """Return the column with new values in the given rows, which are unique."""
        if not len(rows):
            return self
        replaced = union([self.replaced, rows])
        replacements = self.take(replaced)
        replacements[replaced.searchsorted(rows)] = values
        return Column(self.base, self.appended, replaced, replacements)

    def to_array(self) -> Values:
        """Return all values as one array."""
        if not len(self.appended) and not len(self.replaced):
            return self.base
        values = np.concatenate([self.base, self.appended.values])
        values[self.replaced] = self.replacements
        return values


@dataclass(frozen=True, slots=True, eq=False)
class LiveRows:
    """A mask of the rows that are live; the others are deleted (tombstones). Immutable.

    Attributes:
        flags: Whether each row is live; bool ``[rows]``.
        deleted_count: Number of deleted rows.
    """

    flags: AppendOnlyArray
    deleted_count: int

    @classmethod
    def empty(cls) -> LiveRows:
        """Return live rows of an index without rows."""
        return cls.from_mask(np.empty(0, dtype=bool))

    @classmethod
    def from_mask(cls, mask: BoolArray) -> LiveRows:
        """Return live rows from a mask with True for each live row."""
        return cls(AppendOnlyArray.from_values(mask), int(len(mask) - mask.sum()))

    @property
    def mask(self) -> BoolArray:
        """Whether each row is live; ``[rows]``."""
        return self.flags.values

    @property
    def live_count(self) -> int:
        """The number of live rows."""
        return len(self.flags) - self.deleted_count

    def __len__(self) -> int:
        return len(self.flags)

    def are_live(self, rows: IntArray) -> BoolArray:
        """Return whether each row is live."""
        is_live: BoolArray = self.mask[rows]
        return is_live

    def to_rows(self) -> IntArray:
        """Return the live rows, sorted."""
        return self.mask.nonzero()[0]

    def restrict(self, mask: BoolArray) -> LiveRows:
        """Return the live rows that are also in ``mask``."""
        return LiveRows.from_mask(self.mask & mask)

    def advance(self, deleted: IntArray, added_count: int) -> LiveRows:
        """Return the live rows after some rows were deleted and new rows were appended."""
        flags = self.flags
        if len(deleted):
            mask = self.mask.copy()
            mask[deleted] = False
            flags = AppendOnlyArray.from_values(mask)
        return LiveRows(flags.append(np.ones(added_count, dtype=bool)), self.deleted_count + len(deleted))
