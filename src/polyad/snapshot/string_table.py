"""Strings by row, and rows by string: ids and entity keys as arrays, without a Python object for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import blake2b
from itertools import chain
from typing import Self

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.incidence import expand_ranges
from polyad.model import FloatArray, IntArray
from polyad.snapshot.columns import Column, append_run
from polyad.text.keys import build_name_key

Hashes = npt.NDArray[np.uint64]

_PLAIN_KEY = re.compile("[a-z0-9 ]+")
_ARTICLES = ("the ", "a ", "an ")


@dataclass(frozen=True, slots=True, eq=False)
class StringColumn:
    """A string for each row, stored in one column of UTF-8 bytes. Immutable.

    Attributes:
        offsets: Row i is ``data[offsets[i]:offsets[i + 1]]``; int64 ``[rows + 1]``.
        data: uint8 ``[bytes]``.
    """

    offsets: Column
    data: Column

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> StringColumn:
        """Return a column of these strings."""
        return cls(Column.from_array(np.zeros(1, dtype=np.int64)), Column.empty(np.uint8)).append(strings)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: IntArray | Sequence[int]) -> list[str]:
        """Return the strings of rows, in their order."""
        return [encoded.decode("utf-8", "surrogatepass") for encoded in self._read(np.asarray(rows, dtype=np.int64))]

    def rank(self, rows: IntArray) -> FloatArray:
        """Return numbers that sort the rows by their strings, equal for equal rows; float32 ``[rows]``."""
        encoded = self._read(rows)  # UTF-8 sorts like the strings
        ranks = {string: rank for rank, string in enumerate(sorted(set(encoded)))}
        return np.fromiter(map(ranks.__getitem__, encoded), dtype=np.float32, count=len(encoded))

    def _read(self, rows: IntArray) -> list[bytes]:
        """Return the strings of rows in UTF-8."""
        base, base_size, appended = self.data.base.data, len(self.data.base), self.data.appended.values
        starts, ends = self.offsets.take(np.concatenate([rows, rows + 1])).reshape(2, -1).tolist()
        return [
            bytes(base[start:end]) if end <= base_size else appended[start - base_size : end - base_size].tobytes()
            for start, end in zip(starts, ends, strict=True)
        ]

    def append(self, strings: Iterable[str]) -> StringColumn:
        """Return the column with more rows."""
        encoded = list(map(_encode, strings))
        ends = self.offsets.last() + np.cumsum([len(data) for data in encoded], dtype=np.int64)
        return StringColumn(self.offsets.append(ends), self.data.append(np.frombuffer(b"".join(encoded), np.uint8)))


@dataclass(frozen=True, slots=True, eq=False)
class HashIndex:
    """An index of row numbers by 64-bit hashes of strings.

    Attributes:
        hashes: Sorted; uint64 ``[entries]``.
        rows: int32 ``[entries]``.
    """

    hashes: Hashes
    rows: IntArray

    @classmethod
    def from_entries(cls, hashes: Sequence[int] | Hashes, rows: IntArray) -> HashIndex:
        """Build the index from hashes and row numbers in any order; a hash may have several rows."""
        unsorted = np.asarray(hashes, dtype=np.uint64)
        order = np.lexsort((rows, unsorted))
        return cls(unsorted[order], rows[order].astype(np.int32))

    @classmethod
    def merge_all(cls, runs: Iterable[HashIndex]) -> HashIndex:
        """Return one index from the entries of several."""
        return reduce(cls.merge, runs, _EMPTY_INDEX)

    def __len__(self) -> int:
        return len(self.rows)

    def find(self, hashes: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return the position in ``hashes`` and the row of each matching entry."""
        queries = np.array(hashes, dtype=np.uint64)
        starts = self.hashes.searchsorted(queries)
        # Most queries have no entry, so only the others need a second search.
        positions = (self.hashes.take(starts, mode="clip") == queries).nonzero()[0] if len(self) else starts[:0]
        starts = starts[positions]
        counts = self.hashes.searchsorted(queries[positions], side="right") - starts
        return positions.repeat(counts), self.rows[expand_ranges(starts, counts)].astype(np.int64)

    def merge(self, later: HashIndex) -> HashIndex:
        """Return one index of these entries and the entries of a later batch."""
        return HashIndex.from_entries(
            np.concatenate([self.hashes, later.hashes]), np.concatenate([self.rows, later.rows])
        )


@dataclass(frozen=True, slots=True, eq=False)
class StringIndex:
    """A two-way index between row numbers and string ids.

    Immutable; deleted rows keep their ids.

    Attributes:
        strings: The ids by row.
        lookup: Runs of rows by the hashes of ids.
    """

    strings: StringColumn
    lookup: tuple[HashIndex, ...]

    @classmethod
    def empty(cls) -> Self:
        """Return an index without rows."""
        return cls(StringColumn.from_strings([]), ())

    def __len__(self) -> int:
        return len(self.strings)

    def find_rows(self, ids: Sequence[str]) -> IntArray:
        """Return the last row of each id; -1 for an id without a row."""
        rows = np.full(len(ids), -1)
        for position, row, string in self.find_candidates(ids):
            if string == ids[position]:
                rows[position] = max(rows[position], row)
        return rows

    def find_candidates(self, ids: Sequence[str]) -> list[tuple[int, int, str]]:
        """Return the position in ``ids``, the row and the stored id of each stored id with an equal hash."""
        hashes = list(map(hash_string, ids))
        positions, rows = find_in_runs(self.lookup, hashes)
        return list(zip(positions.tolist(), rows.tolist(), self.strings.take(rows), strict=True))

    def append(self, ids: Sequence[str]) -> Self:
        """Return the index with more rows; a deleted id may get a new row."""
        if not ids:
            return self
        aliases = [(row, alias) for row, id in enumerate(ids, start=len(self)) for alias in self.get_aliases(id)]
        hashes = np.fromiter(map(hash_string, chain(ids, (alias for _, alias in aliases))), dtype=np.uint64)
        rows = np.array([*range(len(self), len(self) + len(ids)), *(row for row, _ in aliases)], dtype=np.int64)
        return type(self)(self.strings.append(ids), append_run(self.lookup, HashIndex.from_entries(hashes, rows)))

    def compact(self) -> Self:
        """Return the index with all batches of hashes merged into one."""
        return type(self)(self.strings, (HashIndex.merge_all(self.lookup),))

    @staticmethod
    def get_aliases(id: str) -> tuple[str, ...]:  # noqa: ARG004  # the parameter of EntityKeys.get_aliases
        """Return the other strings by which the row of an id is found."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class EntityKeys(StringIndex):
    """A two-way index between entity rows and entity keys.

    An entity that is deleted and added again has two rows.
    """

    @staticmethod
    def get_aliases(id: str) -> tuple[str, ...]:
        """Return the normalised name of an entity whose key is its exact text, as in tuples; empty for other keys."""
        if _PLAIN_KEY.fullmatch(id) and not id.startswith(_ARTICLES):  # most keys: skip the costly name_key
            return ()
        alias = build_name_key(id)
        return (alias,) if alias not in ("", id) else ()

    def find_with_aliases(self, keys: Sequence[str]) -> tuple[IntArray, dict[int, list[int]]]:
        """Return the last row of each key (-1 for none), and the rows of other entities that have the key as an alias.

        The aliased rows are by position in ``keys``, and only of keys that are an alias.
        """
        rows = np.full(len(keys), -1)
        aliased: dict[int, set[int]] = {}
        for position, row, key in self.find_candidates(keys):
            if key == keys[position]:
                rows[position] = max(rows[position], row)
            elif keys[position] in self.get_aliases(key):
                aliased.setdefault(position, set()).add(row)
        return rows, {position: sorted(entities) for position, entities in aliased.items()}


_EMPTY_INDEX = HashIndex.from_entries([], np.empty(0, dtype=np.int64))


def find_in_runs(runs: Iterable[HashIndex], hashes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Look up hashes in several batches; return the position in ``hashes`` and the row of each match."""
    matches = [run.find(hashes) for run in runs] or [_EMPTY_INDEX.find(hashes)]
    positions, rows = (np.concatenate(column) for column in zip(*matches, strict=True))
    return positions, rows


def hash_string(string: str) -> int:
    """Return a 64-bit hash of a string, the same in every process."""
    return int.from_bytes(blake2b(_encode(string), digest_size=8).digest(), "little")


def _encode(string: str) -> bytes:
    return string.encode("utf-8", "surrogatepass")
