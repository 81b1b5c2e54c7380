"""Columns of a snapshot: a value for each row, mapped from a file and extended or replaced in memory.

A snapshot advances one document at a time while earlier searches read the snapshot before it. All classes here are
immutable, and a longer column shares the memory of a shorter one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.sparse import union
from polyad.model import BoolArray, FloatArray, IntArray, TimeArray
from polyad.snapshot.segments import Hashes, Segment, SegmentList
from polyad.text.keys import build_name_key
from polyad.text.validity import UNBOUNDED, Interval

Values = npt.NDArray[Any]


@dataclass(slots=True, eq=False)
class _Buffer:
    """A block of memory with free space at its end, shared by several append-only arrays of different lengths.

    Attributes:
        values: Allocated values, of which the first ``used`` are set.
        used: Length of the longest array.
    """

    values: Values
    used: int


@dataclass(frozen=True, slots=True, eq=False)
class AppendOnlyArray:
    """An immutable array; appending returns a longer array that shares memory with the shorter array."""

    buffer: _Buffer
    length: int

    @classmethod
    def from_values(cls, values: Values) -> AppendOnlyArray:
        """Return an append-only array that uses ``values`` without copying them."""
        return cls(_Buffer(values, len(values)), len(values))

    def __len__(self) -> int:
        return self.length

    @property
    def values(self) -> Values:
        """A numpy array of all values, which shares memory with this append-only array."""
        return self.buffer.values[: self.length]

    def append(self, values: Values) -> AppendOnlyArray:
        """Return the array extended by ``values``; both arrays share memory if possible."""
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
    """An immutable table column with one value or vector for each row; appending or replacing returns another column.

    A column with appended or replaced rows shares the memory of the column before.

    Attributes:
        base: Values of the first rows; mapped from a file or in memory.
        appended: Values of the rows after the rows of ``base``.
        replaced: Rows whose values have been replaced, sorted.
        replacements: The new values of the rows in ``replaced``.
    """

    base: Values
    appended: AppendOnlyArray
    replaced: IntArray
    replacements: Values

    @classmethod
    def from_array(cls, values: Values) -> Column:
        """Return a column that uses ``values`` without copying them."""
        return cls(values, AppendOnlyArray.from_values(values[:0]), np.empty(0, dtype=np.int64), values[:0])

    @classmethod
    def empty(cls, dtype: npt.DTypeLike, *shape: int) -> Column:
        """Return a column without rows, for numbers of the numpy type ``dtype`` or for vectors of such numbers.

        With ``shape``, a value is an array of this shape.
        """
        return cls.from_array(np.empty((0, *shape), dtype=dtype))

    def __len__(self) -> int:
        return len(self.base) + len(self.appended)

    def take(self, rows: IntArray) -> Values:
        """Return the values of ``rows`` as a copy, in the order of ``rows``."""
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
        """Return the last value of an integer column, or ``default`` if the column is empty."""
        return int(self.take(np.array([len(self) - 1]))[0]) if len(self) else default

    def count_below(self, values: IntArray) -> IntArray:
        """Return for each of ``values`` how many values in this column, which must be sorted, are lower."""
        counts: IntArray = np.searchsorted(self.base, values) + np.searchsorted(self.appended.values, values)
        return counts

    def append(self, values: Values) -> Column:
        """Return the column with new rows at its end, one for each of ``values``."""
        values = values.astype(self.base.dtype, copy=False)
        if not len(self):
            return Column.from_array(values)
        return Column(self.base, self.appended.append(values), self.replaced, self.replacements)

    def replace(self, rows: IntArray, values: Values) -> Column:
        """Return the column in which the rows numbered ``rows`` (unique) have the new ``values``."""
        if not len(rows):
            return self
        replaced = union([self.replaced, rows])
        replacements = self.take(replaced)
        replacements[replaced.searchsorted(rows)] = values
        return Column(self.base, self.appended, replaced, replacements)

    def to_array(self) -> Values:
        """Return the current values of all rows as one array."""
        if not len(self.appended) and not len(self.replaced):
            return self.base
        values = np.concatenate([self.base, self.appended.values])
        values[self.replaced] = self.replacements
        return values


@dataclass(frozen=True, slots=True, eq=False)
class LiveRows:
    """An immutable boolean mask of rows: True for live rows, False for deleted rows (tombstones).

    Attributes:
        flags: Whether each row is live; bool ``[rows]``.
        deleted_count: Number of deleted rows.
    """

    flags: AppendOnlyArray
    deleted_count: int

    @classmethod
    def empty(cls) -> LiveRows:
        """Return an empty mask, of a table without rows."""
        return cls.from_mask(np.empty(0, dtype=bool))

    @classmethod
    def from_mask(cls, mask: BoolArray) -> LiveRows:
        """Build the live rows from a boolean ``mask``, which is True for live rows."""
        return cls(AppendOnlyArray.from_values(mask), int(len(mask) - mask.sum()))

    @property
    def mask(self) -> BoolArray:
        """Whether each row is live (not deleted); bool ``[rows]``."""
        return self.flags.values

    @property
    def live_count(self) -> int:
        """The number of live rows."""
        return len(self.flags) - self.deleted_count

    def __len__(self) -> int:
        return len(self.flags)

    def are_live(self, rows: IntArray) -> BoolArray:
        """Return whether each of ``rows`` is live (not deleted); bool ``[rows]``."""
        is_live: BoolArray = self.mask.take(rows)  # an int32 index takes a third of the time of mask[rows]
        return is_live

    def to_rows(self) -> IntArray:
        """Return the sorted row numbers of the live rows."""
        return self.mask.nonzero()[0]

    def restrict(self, mask: BoolArray) -> LiveRows:
        """Return a mask in which a row is live if it is live in this mask and True in ``mask``."""
        return LiveRows.from_mask(self.mask & mask)

    def with_changes(self, deleted: IntArray, added_count: int) -> LiveRows:
        """Return the mask with the rows ``deleted`` marked as deleted, and ``added_count`` live rows at the end."""
        flags = self.flags
        if len(deleted):
            mask = self.mask.copy()
            mask[deleted] = False
            flags = AppendOnlyArray.from_values(mask)
        return LiveRows(flags.append(np.ones(added_count, dtype=bool)), self.deleted_count + len(deleted))


@dataclass(frozen=True, slots=True, eq=False)
class RowIntervals:
    """The validity period of each row, such as the years in which a fact is true.

    Attributes:
        bounds: Start and end in seconds since 1970, float64 ``[rows, 2]``; without rows if all are unbounded.
    """

    bounds: Column

    @classmethod
    def empty(cls) -> RowIntervals:
        """Return a column of validity periods without rows."""
        return cls(Column.empty(np.float64, 2))

    @property
    def is_bounded(self) -> bool:
        """Whether any row has a validity period that starts or ends."""
        return len(self.bounds) > 0

    def append(self, row_count: int, intervals: TimeArray) -> RowIntervals:
        """Return the validity periods of ``row_count`` earlier rows and of new rows, whose periods are ``intervals``.

        Args:
            row_count: Number of earlier rows, for which no periods are stored as long as all are unbounded.
            intervals: float64 ``[new rows, 2]``.
        """
        if self.is_bounded:
            return RowIntervals(self.bounds.append(intervals))
        if (intervals == UNBOUNDED).all():
            return self
        earlier = np.full((row_count, 2), UNBOUNDED, dtype=np.float64)
        return RowIntervals(Column.from_array(np.concatenate([earlier, intervals])))

    def contain(self, time: float, row_count: int) -> BoolArray:
        """Return whether the validity interval of each row contains ``time``; bool ``[row_count]``."""
        if not self.is_bounded:
            return np.ones(row_count, dtype=bool)
        bounds = self.bounds.to_array()
        is_valid: BoolArray = (bounds[:, 0] <= time) & (time < bounds[:, 1])
        return is_valid

    def find_unchanged_period(self, time: float) -> Interval:
        """Return the longest period that contains ``time`` and during which no row becomes valid or invalid."""
        bounds = self.bounds.to_array()
        is_past = bounds <= time
        start = bounds.max(initial=UNBOUNDED.start, where=is_past)
        return Interval(float(start), float(bounds.min(initial=UNBOUNDED.end, where=~is_past)))


_PLAIN_KEY = re.compile("[a-z0-9 ]+")
_ARTICLES = ("the ", "a ", "an ")


@dataclass(frozen=True, slots=True, eq=False)
class StringColumn:
    """An immutable column of strings, stored as one array of UTF-8 bytes.

    Attributes:
        offsets: Row i is ``data[offsets[i]:offsets[i + 1]]``; int64 ``[rows + 1]``.
        data: uint8 ``[bytes]``.
    """

    offsets: Column
    data: Column

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> StringColumn:
        """Return a column of ``strings``, one for each row."""
        return cls(Column.from_array(np.zeros(1, dtype=np.int64)), Column.empty(np.uint8)).append(strings)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: IntArray | Sequence[int]) -> list[str]:
        """Return the strings of ``rows``, in the order of ``rows``."""
        return [text.decode("utf-8", "surrogatepass") for text in self._take_encoded(np.asarray(rows, dtype=np.int64))]

    def rank(self, rows: IntArray) -> FloatArray:
        """Return float32 sort keys of ``rows``: rows sorted by these keys are in the order of their strings."""
        encoded = self._take_encoded(rows)  # UTF-8 bytes have the sort order of the strings
        ranks = {string: rank for rank, string in enumerate(sorted(set(encoded)))}
        return np.fromiter(map(ranks.__getitem__, encoded), dtype=np.float32, count=len(encoded))

    def _take_encoded(self, rows: IntArray) -> list[bytes]:
        base, base_size, appended = self.data.base.data, len(self.data.base), self.data.appended.values
        starts, ends = self.offsets.take(np.concatenate([rows, rows + 1])).reshape(2, -1).tolist()
        return [
            bytes(base[start:end]) if end <= base_size else appended[start - base_size : end - base_size].tobytes()
            for start, end in zip(starts, ends, strict=True)
        ]

    def append(self, strings: Iterable[str]) -> StringColumn:
        """Return the string column extended by ``strings``, one for each new row."""
        encoded = list(map(_encode, strings))
        ends = self.offsets.last() + np.cumsum([len(data) for data in encoded], dtype=np.int64)
        return StringColumn(self.offsets.append(ends), self.data.append(np.frombuffer(b"".join(encoded), np.uint8)))


@dataclass(frozen=True, slots=True, eq=False)
class StringIndex:
    """A two-way index between row numbers and string ids, such as passage ids.

    Immutable; deleted rows keep their ids.

    Attributes:
        strings: The ids by row.
        lookup: Rows by the hashes of ids.
    """

    strings: StringColumn
    lookup: SegmentList

    @classmethod
    def empty(cls) -> Self:
        """Return a string index without rows."""
        return cls(StringColumn.from_strings([]), SegmentList.empty())

    def __len__(self) -> int:
        return len(self.strings)

    def find_rows(self, ids: Sequence[str]) -> IntArray:
        """Return the row number of each id; -1 for an id without a row.

        An id that was deleted and added again has its highest row.
        """
        rows = np.full(len(ids), -1)
        for position, row, string in self.find_candidates(ids):
            if string == ids[position]:
                rows[position] = max(rows[position], row)
        return rows

    def find_candidates(self, ids: Sequence[str]) -> list[tuple[int, int, str]]:
        """Return the rows whose id has the hash of one of ``ids``, as tuples (index in ``ids``, row, id of the row)."""
        rows, positions, _ = self.lookup.get_neighbours(hash_strings(ids))
        return list(zip(positions.tolist(), rows.tolist(), self.strings.take(rows), strict=True))

    def append(self, ids: Sequence[str]) -> Self:
        """Return the string index with new rows at its end, one for each of ``ids``.

        A deleted id may be added again as a new row.
        """
        if not ids:
            return self
        aliases = [(row, alias) for row, id in enumerate(ids, start=len(self)) for alias in self.get_aliases(id)]
        hashes = hash_strings([*ids, *(alias for _, alias in aliases)])
        rows = np.array([*range(len(self), len(self) + len(ids)), *(row for row, _ in aliases)], dtype=np.int64)
        return type(self)(self.strings.append(ids), self.lookup.append(Segment.from_entries(hashes, rows)))

    @staticmethod
    def get_aliases(id: str) -> tuple[str, ...]:  # noqa: ARG004  # the parameter of EntityKeys.get_aliases
        """Return alternative strings by which the row of ``id`` is found; none unless a subclass overrides this."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class EntityKeys(StringIndex):
    """A two-way index between entity rows and entity keys (normalised names).

    An entity that is deleted and added again has two rows.
    """

    @staticmethod
    def get_aliases(id: str) -> tuple[str, ...]:
        """Return the normalised name if an entity's key is an exact text from the user's data; else an empty tuple."""
        if _PLAIN_KEY.fullmatch(id) and not id.startswith(_ARTICLES):  # most keys: saves a costly function
            return ()
        alias = build_name_key(id)
        return (alias,) if alias not in ("", id) else ()

    def find_with_aliases(self, keys: Sequence[str]) -> tuple[IntArray, dict[int, list[int]]]:
        """Return (row of each key, rows of other entities that have the key as their normalised name).

        An entity has a normalised name beside its key if the key is an exact text from the user's data.

        Returns:
            An array with the row of each key, or -1; and the rows of other entities by index in ``keys``.
        """
        rows = np.full(len(keys), -1)
        aliased: dict[int, set[int]] = {}
        for position, row, key in self.find_candidates(keys):
            if key == keys[position]:
                rows[position] = max(rows[position], row)
            elif keys[position] in self.get_aliases(key):
                aliased.setdefault(position, set()).add(row)
        return rows, {position: sorted(entities) for position, entities in aliased.items()}


def hash_string(string: str) -> int:
    """Return a 64-bit hash of a string, the same in every process."""
    return int.from_bytes(blake2b(_encode(string), digest_size=8).digest(), "little")


def hash_strings(strings: Iterable[str]) -> Hashes:
    """Return the 64-bit hashes of strings as an array."""
    return np.fromiter(map(hash_string, strings), dtype=np.uint64)


def _encode(string: str) -> bytes:
    return string.encode("utf-8", "surrogatepass")
