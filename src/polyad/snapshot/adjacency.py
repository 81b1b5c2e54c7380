"""Adjacencies that grow: compressed rows mapped from a file, sorted runs of new pairs, and deleted neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from polyad.hypergraph.incidence import Adjacency, WeightedAdjacency, expand_ranges, sort_unique
from polyad.model import FloatArray, IntArray
from polyad.snapshot.columns import LiveRows, append_run

Neighbours = tuple[IntArray, IntArray, FloatArray]
"""Neighbours of rows, for each neighbour the position of its row, and its weight."""


@dataclass(frozen=True, slots=True, eq=False)
class _PairRun:
    """A sorted batch of added pairs of row and neighbour.

    Attributes:
        rows: Sorted and unique.
        pairs: The neighbours of each row; its row numbers are places in ``rows``.
    """

    rows: IntArray
    pairs: WeightedAdjacency

    @classmethod
    def from_pairs(cls, rows: IntArray, neighbours: IntArray, weights: FloatArray) -> _PairRun:
        unique = sort_unique(rows)
        return cls(unique, WeightedAdjacency.from_pairs(unique.searchsorted(rows), neighbours, weights, len(unique)))

    def __len__(self) -> int:
        return len(self.pairs.weights)

    def merge(self, later: _PairRun) -> _PairRun:
        runs = (self, later)
        return _PairRun.from_pairs(
            np.concatenate([run.rows[run.pairs.rows] for run in runs]),
            np.concatenate([run.pairs.adjacency.neighbours for run in runs]),
            np.concatenate([run.pairs.weights for run in runs]),
        )

    def find(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Find the rows that have neighbours in this batch.

        Return their positions in ``rows`` and their places in the batch.
        """
        places = np.minimum(self.rows.searchsorted(rows), len(self.rows) - 1)
        positions = (self.rows[places] == rows).nonzero()[0]
        return positions, places[positions]


@dataclass(frozen=True, slots=True, eq=False)
class GrowingAdjacency:
    """A weighted adjacency list to which batches of (row, neighbour) pairs are appended.

    Immutable.

    Attributes:
        base: Pairs mapped from files, or in memory.
        runs: Pairs added since, the latest last.
    """

    base: WeightedAdjacency
    runs: tuple[_PairRun, ...] = ()

    @classmethod
    def empty(cls) -> GrowingAdjacency:
        """Return an adjacency in which no row has neighbours."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(WeightedAdjacency.from_pairs(nothing, nothing, np.empty(0, dtype=np.float32), 0))

    def append(self, rows: IntArray, neighbours: IntArray, weights: FloatArray) -> GrowingAdjacency:
        """Return the adjacency list with new pairs in any order; of duplicate pairs the highest weight counts.

        New neighbours of a row must have higher numbers than its earlier neighbours if their order matters.
        """
        if not len(rows):
            return self
        return GrowingAdjacency(self.base, append_run(self.runs, _PairRun.from_pairs(rows, neighbours, weights)))

    def degrees(self, rows: IntArray) -> IntArray:
        """Return the number of neighbours of each row."""
        _, degrees = self._find_base_ranges(rows)
        for run in self.runs:
            positions, places = run.find(rows)
            degrees[positions] += run.pairs.adjacency.degrees(places)
        return degrees

    def get_neighbours(self, rows: IntArray) -> Neighbours:
        """Return the neighbours of ``rows``, the position in ``rows`` that each belongs to, and the weights."""
        starts, counts = self._find_base_ranges(rows)
        places, owners = expand_ranges(starts, counts), np.arange(len(rows)).repeat(counts)
        base = self.base
        parts = [(base.adjacency.neighbours.take(places).astype(np.int64), owners, base.weights.take(places))]
        for run in self.runs:
            positions, places = run.find(rows)
            if len(positions):
                neighbours, owners, weights = run.pairs.get_neighbours(places)
                parts.append((neighbours, positions[owners], weights))
        if len(parts) == 1:
            return parts[0]
        neighbours, owners, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = owners.argsort(kind="stable")
        return neighbours[order], owners[order], weights[order]

    def compact(self) -> GrowingAdjacency:
        """Return the adjacency with all added batches merged into one array."""
        return _compact(self, self.row_count)

    @property
    def row_count(self) -> int:
        """The number of rows: one more than the highest row that has neighbours."""
        return max([len(self.base.adjacency.offsets) - 1, *(int(run.rows[-1]) + 1 for run in self.runs)])

    def _find_base_ranges(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the offset of the first saved neighbour of each row, and the number of its saved neighbours."""
        offsets = self.base.adjacency.offsets
        starts = offsets.take(rows, mode="clip")  # a row beyond the base starts and stops at its end
        return starts, offsets.take(rows + 1, mode="clip") - starts


@dataclass(frozen=True, slots=True, eq=False)
class PrunedAdjacency:
    """A weighted adjacency list to which neighbours are added and from which neighbours are deleted.

    Immutable.

    Attributes:
        pairs: All pairs, with those of deleted neighbours.
        live: Which neighbours are live.
        deleted: The pairs of deleted neighbours, counted where only degrees are needed.
        is_restricted: Whether ``live`` leaves out neighbours that are not in ``deleted``.
    """

    pairs: GrowingAdjacency
    live: LiveRows
    deleted: GrowingAdjacency = field(default_factory=GrowingAdjacency.empty)
    is_restricted: bool = False

    @classmethod
    def empty(cls) -> PrunedAdjacency:
        """Return an adjacency in which no row has neighbours."""
        return cls(GrowingAdjacency.empty(), LiveRows.empty())

    def advance(
        self,
        live: LiveRows,
        deleted: tuple[IntArray, IntArray],
        rows: IntArray,
        neighbours: IntArray,
        weights: FloatArray,
    ) -> PrunedAdjacency:
        """Return the adjacency after neighbours were deleted and pairs were added.

        Args:
            live: Which neighbours are live now.
            deleted: Rows and neighbours of the pairs whose neighbours were deleted; duplicates count once.
            rows: Rows of the new pairs, see :meth:`GrowingAdjacency.append`.
            neighbours: Neighbours of the new pairs.
            weights: Weights of the new pairs.
        """
        no_weights = np.zeros(len(deleted[0]), dtype=np.float32)
        pairs = self.pairs.append(rows, neighbours, weights)
        return PrunedAdjacency(pairs, live, self.deleted.append(*deleted, no_weights))

    def restrict(self, live: LiveRows) -> PrunedAdjacency:
        """Return the adjacency list without the neighbours that are not live."""
        return replace(self, live=live, is_restricted=True)

    def degrees(self, rows: IntArray) -> IntArray:
        """Return the number of live neighbours of each row."""
        if self.is_restricted:
            return np.bincount(self.get_neighbours(rows)[1], minlength=len(rows))
        degrees = self.pairs.degrees(rows)
        return degrees - self.deleted.degrees(rows) if self.deleted.runs else degrees

    def get_neighbours(self, rows: IntArray) -> Neighbours:
        """Return the live neighbours of ``rows``, the position in ``rows`` that each belongs to, and the weights."""
        neighbours, owners, weights = self.pairs.get_neighbours(rows)
        if not self.deleted.runs and not self.is_restricted:
            return neighbours, owners, weights
        is_live = self.live.are_live(neighbours)
        return neighbours[is_live], owners[is_live], weights[is_live]

    def compact(self) -> PrunedAdjacency:
        """Return the adjacency of live neighbours, with all added batches merged into one array."""
        return PrunedAdjacency(_compact(self, self.pairs.row_count), self.live)


def _compact(adjacency: GrowingAdjacency | PrunedAdjacency, row_count: int) -> GrowingAdjacency:
    neighbours, owners, weights = adjacency.get_neighbours(np.arange(row_count))
    offsets = np.searchsorted(owners, np.arange(row_count + 1))
    return GrowingAdjacency(WeightedAdjacency(Adjacency(offsets, neighbours.astype(np.int32)), weights))
