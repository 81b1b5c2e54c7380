"""What grows at its end, a little at a time, and keeps what it was: what comes copies next to nothing of what stays.

A snapshot moves on by a document at a time, and searches that began earlier go on with the snapshot they have. So each
of its arrays is of two kinds: what lies on disk, and what came since, which these classes hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.incidence import Adjacency, WeightedAdjacency, expand_ranges, sort_unique
from polyad.model import BoolArray, FloatArray, IntArray

Values = npt.NDArray[Any]

_RATIO = 8
"""Times that a part is at least as large as the next one: there are few, and each entry is moved seldom."""

_FEWEST = 1024
"""Rows to come for which there is room."""


class _Joinable(Protocol):
    def __len__(self) -> int: ...

    def joined(self, other: Self) -> Self: ...


J = TypeVar("J", bound=_Joinable)


def grown(parts: tuple[J, ...], added: J) -> tuple[J, ...]:
    """Some parts and one more, joined with those that are not much larger (O'Neil and others, 1996)."""
    while parts and len(parts[-1]) < _RATIO * len(added):
        *before, last = parts
        parts, added = tuple(before), last.joined(added)
    return (*parts, added)


@dataclass(slots=True, eq=False)
class _Room:
    """Memory that several tails lie in, each beginning with all of the one before it.

    Attributes:
        values: More than are used.
        used: How many are, by the longest tail.
    """

    values: Values
    used: int


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """Values that came one after the other. Immutable: one that is longer lies in the same memory, behind it.

    Attributes:
        room: Where they lie.
        count: How many of those that lie there are its own.
    """

    room: _Room
    count: int

    @classmethod
    def of(cls, values: Values) -> Tail:
        """Some values."""
        return cls(_Room(values, len(values)), len(values))

    def __len__(self) -> int:
        return self.count

    @property
    def values(self) -> Values:
        """All of them."""
        return self.room.values[: self.count]

    def extended(self, values: Values) -> Tail:
        """The same with more."""
        if not len(values):
            return self
        room, count = self.room, self.count + len(values)
        if room.used != self.count or count > len(room.values):
            room = _Room(np.empty((2 * count, *values.shape[1:]), dtype=room.values.dtype), 0)
            room.values[: self.count] = self.values
        room.values[self.count : count] = values
        room.used = count
        return Tail(room, count)


@dataclass(frozen=True, slots=True, eq=False)
class Presence:
    """Which rows have not gone. Immutable: that of more rows lies in the same memory, until some go.

    Attributes:
        room: Whether each is there; behind them lie rows that are still to come, all of which will be.
        count: Of rows.
        gone: How many of them have gone.
    """

    room: BoolArray
    count: int
    gone: int

    @classmethod
    def of(cls, is_there: BoolArray) -> Presence:
        """Of rows of which it is known."""
        return cls(is_there, len(is_there), int(len(is_there) - is_there.sum()))

    @classmethod
    def none(cls) -> Presence:
        """No row."""
        return cls.of(np.empty(0, dtype=bool))

    @property
    def whole(self) -> BoolArray:
        """Whether each row is there."""
        return self.room[: self.count]

    def at(self, rows: IntArray) -> BoolArray:
        """Whether each of some rows is there."""
        found: BoolArray = self.room[rows]
        return found

    def rows(self) -> IntArray:
        """Those that are there."""
        return self.whole.nonzero()[0]

    def advanced(self, gone: IntArray, came: int) -> Presence:
        """The same after some rows went and others came."""
        room, count = self.room, self.count + came
        if len(gone) or count > len(room):
            room = np.empty(count + max(_FEWEST, count // _RATIO), dtype=bool)
            room[: self.count] = self.whole
            room[self.count :] = True
            room[gone] = False
        return Presence(room, count, self.gone + len(gone))


@dataclass(frozen=True, slots=True, eq=False)
class _Arrived:
    """Neighbours that came to some rows.

    Attributes:
        rows: Sorted, each once.
        neighbours: Of each; its row numbers are places in ``rows``.
    """

    rows: IntArray
    neighbours: WeightedAdjacency

    @classmethod
    def of(cls, rows: IntArray, neighbours: IntArray, weights: FloatArray) -> _Arrived:
        known = sort_unique(rows)
        own = WeightedAdjacency.from_pairs(known.searchsorted(rows), neighbours, weights, len(known))
        return cls(known, own)

    def __len__(self) -> int:
        return len(self.neighbours.weights)

    def joined(self, other: _Arrived) -> _Arrived:
        parts = [(part.rows[part.neighbours.rows], part.neighbours) for part in (self, other)]
        return _Arrived.of(
            np.concatenate([rows for rows, _ in parts]),
            np.concatenate([own.adjacency.neighbours for _, own in parts]),
            np.concatenate([own.weights for _, own in parts]),
        )

    def places(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Positions in ``rows`` of those that any came to, and their places here."""
        places = np.minimum(self.rows.searchsorted(rows), len(self.rows) - 1)
        known = (self.rows[places] == rows).nonzero()[0]
        return known, places[known]


@dataclass(frozen=True, slots=True, eq=False)
class GrowingAdjacency:
    """A weighted adjacency to which rows and neighbours come. Immutable.

    Attributes:
        base: The rows as they were; mapped from files, or in memory.
        parts: What came since, the latest last.
    """

    base: WeightedAdjacency
    parts: tuple[_Arrived, ...] = ()

    @classmethod
    def none(cls) -> GrowingAdjacency:
        """No row has neighbours."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(WeightedAdjacency.from_pairs(nothing, nothing, np.empty(0, dtype=np.float32), 0))

    def extended(self, rows: IntArray, neighbours: IntArray, weights: FloatArray) -> GrowingAdjacency:
        """The same with more pairs, in any order, none of which is there; of one given twice the higher weight counts.

        The neighbours that come to a row are above those it has, unless their order does not matter.
        """
        if not len(rows):
            return self
        return GrowingAdjacency(self.base, grown(self.parts, _Arrived.of(rows, neighbours, weights)))

    def degrees(self, rows: IntArray) -> IntArray:
        """How many neighbours each of ``rows`` has."""
        _, found = self._base_ranges(rows)
        for part in self.parts:
            known, places = part.places(rows)
            found[known] += part.neighbours.adjacency.degrees(places)
        return found

    def get_neighbours(self, rows: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """All neighbours of ``rows``, the position in ``rows`` each belongs to, and its weight.

        Those of one row are sorted, as far as they came in order.
        """
        starts, counts = self._base_ranges(rows)
        places, owners = expand_ranges(starts, counts), np.arange(len(rows)).repeat(counts)
        found = [(self.base.adjacency.neighbours.take(places).astype(np.int64), owners, self.base.weights.take(places))]
        for part in self.parts:
            known, places = part.places(rows)
            if len(known):
                neighbours, owners, weights = part.neighbours.get_neighbours(places)
                found.append((neighbours, known[owners], weights))
        if len(found) == 1:
            return found[0]
        neighbours, owners, weights = (np.concatenate(column) for column in zip(*found, strict=True))
        order = owners.argsort(kind="stable")
        return neighbours[order], owners[order], weights[order]

    def _base_ranges(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Where the neighbours of each row begin in the base, and how many there are; none of rows beyond."""
        offsets = self.base.adjacency.offsets
        starts = offsets.take(rows, mode="clip")  # of a row beyond the base both are its end
        return starts, offsets.take(rows + 1, mode="clip") - starts


@dataclass(frozen=True, slots=True, eq=False)
class _Lost:
    """How many neighbours some rows have lost.

    Attributes:
        rows: Sorted, each once.
        counts: Of each.
    """

    rows: IntArray
    counts: IntArray

    @classmethod
    def of(cls, rows: IntArray, counts: IntArray) -> _Lost:
        known = sort_unique(rows)
        return cls(known, np.bincount(known.searchsorted(rows), counts, minlength=len(known)).astype(np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def joined(self, other: _Lost) -> _Lost:
        return _Lost.of(np.concatenate([self.rows, other.rows]), np.concatenate([self.counts, other.counts]))

    def at(self, rows: IntArray) -> IntArray:
        places = np.minimum(self.rows.searchsorted(rows), len(self.rows) - 1)
        return np.where(self.rows[places] == rows, self.counts[places], 0)


@dataclass(frozen=True, slots=True, eq=False)
class PrunedAdjacency:
    """An adjacency whose neighbours come and go. Immutable.

    Attributes:
        all: With those that have gone.
        there: Which neighbours have not gone; by their rows.
        lost: How many of each row's have gone.
    """

    all: GrowingAdjacency
    there: Presence
    lost: tuple[_Lost, ...] = ()

    @classmethod
    def none(cls) -> PrunedAdjacency:
        """No row has neighbours."""
        return cls(GrowingAdjacency.none(), Presence.none())

    def advanced(
        self, there: Presence, lost: IntArray, rows: IntArray, neighbours: IntArray, weights: FloatArray
    ) -> PrunedAdjacency:
        """The same after some neighbours went and others came.

        Args:
            there: Which neighbours have not gone now.
            lost: The row of each pair of those that went.
            rows: Of each pair that came, as ``neighbours`` and ``weights`` (see :meth:`GrowingAdjacency.extended`).
            neighbours: Likewise.
            weights: Likewise.
        """
        parts = grown(self.lost, _Lost.of(lost, np.ones(len(lost), dtype=np.int64))) if len(lost) else self.lost
        return PrunedAdjacency(self.all.extended(rows, neighbours, weights), there, parts)

    def degrees(self, rows: IntArray) -> IntArray:
        """How many neighbours each of ``rows`` has."""
        found = self.all.degrees(rows)
        for part in self.lost:
            found -= part.at(rows)
        return found

    def get_neighbours(self, rows: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """All neighbours of ``rows``, sorted for each, the position in ``rows`` each belongs to, and its weight."""
        neighbours, owners, weights = self.all.get_neighbours(rows)
        if not self.lost:
            return neighbours, owners, weights
        stays = self.there.at(neighbours)
        return neighbours[stays], owners[stays], weights[stays]


def whole(adjacency: GrowingAdjacency | PrunedAdjacency, row_count: int) -> WeightedAdjacency:
    """All rows of an adjacency in one."""
    neighbours, owners, weights = adjacency.get_neighbours(np.arange(row_count))
    return WeightedAdjacency(Adjacency(np.searchsorted(owners, np.arange(row_count + 1)), neighbours), weights)
