"""Segment lists: entries found by a key, saved in one large segment and appended in small ones (an LSM tree).

The same structure serves every lookup of a snapshot. A key is a row number, or the hash of a term, an id or a name. The
rows of a key are the passages that contain a term, the hyperedges of an entity, or the entity with a name. A segment
never changes. A new batch becomes a segment of its own, and segments of similar size are merged (O'Neil et al., 1996),
so that a write costs what the batch costs and a lookup searches few segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.sparse import expand_ranges, mark_first_of_equals
from polyad.model import BoolArray, IntArray

Hashes = npt.NDArray[np.uint64]

Keys = npt.NDArray[np.integer]
"""Row numbers (int64), or hashes of strings (uint64)."""

Weights = npt.NDArray[Any]

Neighbours = tuple[IntArray, IntArray, Weights]
"""Rows of several keys, for each row the index of its key, and its weight."""

_MERGE_RATIO = 8
"""A segment is at least this many times as large as the next one: segments are few, and an entry is rarely copied."""


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A sorted batch of entries: the rows of each key, with a weight each.

    Attributes:
        keys: Sorted and unique; ``[keys]``. Empty if all row numbers from 0 on are keys, which saves a search.
        offsets: Rows of key i are ``rows[offsets[i]:offsets[i + 1]]``; int64 ``[keys + 1]``.
        rows: int32 ``[entries]``.
        weights: The weight of each entry, such as the frequency of a term; ``[entries]``.
    """

    keys: Keys
    offsets: IntArray
    rows: IntArray
    weights: Weights

    @classmethod
    def from_entries(cls, keys: Keys, rows: IntArray, weights: Weights | None = None) -> Segment:
        """Build a segment from parallel arrays in any order; a duplicate of key and row keeps its highest weight.

        Without ``weights``, all weights are 0.
        """
        if not len(rows):  # common: most changes of an index add entries, or delete entries, but not both
            return _EMPTY
        if weights is None:
            weights = np.zeros(len(rows), dtype=np.uint8)
        order = np.lexsort((rows, keys))
        sorted_keys, sorted_rows = keys[order], rows[order]
        is_first = mark_first_of_equals(sorted_keys)
        is_distinct = is_first | mark_first_of_equals(sorted_rows)
        if np.count_nonzero(is_distinct) < len(rows):
            order = np.lexsort((-weights, rows, keys))
        offsets = np.append(is_first[is_distinct].nonzero()[0], np.count_nonzero(is_distinct))
        rows = sorted_rows[is_distinct].astype(np.int32)
        return cls(sorted_keys[is_first], offsets, rows, weights[order[is_distinct]])

    @classmethod
    def merge(cls, segments: Sequence[Segment]) -> Segment:
        """Return one segment with the entries of all ``segments``; the rows of a key stay in the order of segments."""
        filled = [segment for segment in segments if len(segment)]
        if len(filled) <= 1:
            return filled[0] if filled else _EMPTY
        keys = np.concatenate([segment.all_keys for segment in filled])
        lengths = np.concatenate([segment.offsets[1:] - segment.offsets[:-1] for segment in filled])
        starts, order = lengths.cumsum() - lengths, keys.argsort(kind="stable")
        keys, lengths = keys[order], lengths[order]
        entries = expand_ranges(starts[order], lengths)
        is_first = mark_first_of_equals(keys)
        merged = cls(
            keys[is_first],
            np.append((lengths.cumsum() - lengths)[is_first], len(entries)),
            np.concatenate([segment.rows for segment in filled])[entries],
            np.concatenate([segment.weights for segment in filled])[entries],
        )
        return merged if all(len(segment.keys) for segment in filled) else merged.index_numbers()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def all_keys(self) -> Keys:
        """The keys, also if all row numbers from 0 on are keys."""
        return self.keys if len(self.keys) else np.arange(len(self.offsets) - 1)

    def locate(self, keys: Keys) -> tuple[IntArray, IntArray]:
        """Return where the rows of each of ``keys`` begin in :attr:`rows`, and their number, which may be 0."""
        if not len(self.rows):
            return _locate_nothing(keys)
        if not len(self.keys):
            starts = self.offsets.take(keys, mode="clip")  # a number beyond the last has an empty range
            return starts, self.offsets.take(keys + 1, mode="clip") - starts
        places = self.keys.searchsorted(keys)
        is_key = self.keys.take(places, mode="clip") == keys
        if not np.count_nonzero(is_key):  # common: a small segment has few keys
            return _locate_nothing(keys)
        starts = self.offsets.take(places)
        return starts, (self.offsets.take(places + 1, mode="clip") - starts) * is_key

    def prune(self, is_live: BoolArray) -> Segment:
        """Return the segment without the rows that are False in the mask ``is_live``."""
        stays = is_live[self.rows]
        deleted = np.flatnonzero(~stays)
        if not len(deleted):
            return self
        offsets = self.offsets - deleted.searchsorted(self.offsets)
        return Segment(self.keys, offsets, self.rows[stays], self.weights[stays])

    def index_numbers(self) -> Segment:
        """Return the segment with an offset for each number up to the last key, unless the keys are hashes."""
        if not len(self.keys) or self.keys.dtype == np.uint64:
            return self
        offsets = self.offsets[self.keys.searchsorted(np.arange(self.keys[-1] + 2))]
        return Segment(self.keys[:0], offsets, self.rows, self.weights)


def _locate_nothing(keys: Keys) -> tuple[IntArray, IntArray]:
    zeros = np.zeros(len(keys), dtype=np.int64)
    return zeros, zeros


_NOTHING: IntArray = np.empty(0, dtype=np.int64)
_EMPTY = Segment(_NOTHING, np.zeros(1, dtype=np.int64), _NOTHING, np.empty(0, dtype=np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class SegmentList:
    """An immutable lookup of rows by key; appending returns a longer list that shares the large segments.

    Attributes:
        segments: At least one; the first may be mapped from files, and each is much larger than the next.
    """

    segments: tuple[Segment, ...]

    @classmethod
    def empty(cls) -> SegmentList:
        """Return a list without entries, to which entries of any kind of keys may be appended."""
        return cls((_EMPTY,))

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    def append(self, segment: Segment) -> SegmentList:
        """Return the list extended by a batch of entries, which is merged with earlier segments of similar size.

        If the order of a key's rows matters, new rows must be higher than earlier rows of the key.
        """
        if not len(segment):
            return self
        first = len(self.segments)
        size = len(segment)
        while first and len(self.segments[first - 1]) < _MERGE_RATIO * size:
            first -= 1
            size += len(self.segments[first])
        return SegmentList((*self.segments[:first], Segment.merge([*self.segments[first:], segment])))

    def degrees(self, keys: Keys) -> IntArray:
        """Return the number of rows of each key."""
        first, *others = self.segments
        degrees = first.locate(keys)[1]
        for segment in others:
            degrees = degrees + segment.locate(keys)[1]
        return degrees

    def get_neighbours(self, keys: Keys) -> Neighbours:
        """Return the rows of ``keys`` as parallel arrays: row, index of its key in ``keys``, and weight."""
        parts: list[Neighbours] = []
        for segment in self.segments:
            starts, counts = segment.locate(keys)
            if parts and not np.count_nonzero(counts):
                continue
            places, owners = expand_ranges(starts, counts), np.arange(len(keys)).repeat(counts)
            parts.append((segment.rows.take(places).astype(np.int64), owners, segment.weights.take(places)))
        if len(parts) == 1:
            return parts[0]
        rows, owners, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = owners.argsort(kind="stable")
        return rows[order], owners[order], weights[order]

    def compact(self, is_live: BoolArray | None = None) -> SegmentList:
        """Return an equal list of one segment; with ``is_live``, without the rows that are False in this mask."""
        merged = Segment.merge(self.segments)
        return SegmentList(((merged if is_live is None else merged.prune(is_live)).index_numbers(),))
