"""Adjacencies that grow: compressed rows mapped from a file, sorted runs of new pairs, and deleted neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.sparse import expand_ranges, mark_first_of_equals
from polyad.model import FloatArray, IntArray
from polyad.snapshot.columns import LiveRows, append_run

Numbers = npt.NDArray[np.integer]

Neighbours = tuple[IntArray, IntArray, FloatArray]
"""Neighbours of rows, for each neighbour the position of its row, and its weight."""


@dataclass(frozen=True, slots=True, eq=False)
class SortedPairs:
    """A sorted batch of distinct (row, neighbour) pairs, as parallel arrays.

    Attributes:
        rows: The row of each pair; int64 ``[pairs]``.
        neighbours: The neighbour of each pair; int64 ``[pairs]``.
        weights: The weight of each pair; float32 ``[pairs]``.
    """

    rows: IntArray
    neighbours: IntArray
    weights: FloatArray

    @classmethod
    def from_arrays(cls, rows: IntArray, neighbours: IntArray, weights: FloatArray | None = None) -> SortedPairs:
        """Sort (row, neighbour) pairs, given as parallel arrays in any order; a duplicate keeps its highest weight.

        Without ``weights``, all weights are 0.
        """
        if weights is None:
            weights = np.zeros(len(rows), dtype=np.float32)
        if not len(rows):  # common: most changes of an index add pairs, or delete pairs, but not both
            return cls(rows, neighbours, weights)
        pairs = rows * (int(neighbours.max(initial=0)) + 1) + neighbours
        order = np.argsort(pairs, kind="stable")  # several times faster than lexsort on nearly sorted pairs
        is_first = mark_first_of_equals(pairs[order])
        if not is_first.all():
            order = np.lexsort((-weights, pairs))[is_first]
        return cls(rows[order], neighbours[order], weights[order].astype(np.float32))

    def __len__(self) -> int:
        return len(self.rows)

    def merge(self, later: SortedPairs) -> SortedPairs:
        """Return one sorted batch with the pairs of this batch and of the batch ``later``."""
        runs = self, later
        return SortedPairs.from_arrays(
            np.concatenate([run.rows for run in runs]),
            np.concatenate([run.neighbours for run in runs]),
            np.concatenate([run.weights for run in runs]),
        )

    def locate_neighbours(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return where the neighbours of each of ``rows`` begin in :attr:`neighbours`, and their number."""
        starts = self.rows.searchsorted(rows)
        return starts, self.rows.searchsorted(rows, side="right") - starts


@dataclass(frozen=True, slots=True, eq=False)
class CompressedRows:
    """A compressed sparse row (CSR) matrix: the neighbours of every row in one array.

    Attributes:
        offsets: Neighbours of row i are ``neighbours[offsets[i]:offsets[i + 1]]``; int64 ``[rows + 1]``.
        neighbours: Sorted in each row; ``[pairs]``.
        weights: The weight of each pair; float32 ``[pairs]``.
    """

    offsets: IntArray
    neighbours: Numbers
    weights: FloatArray

    def locate_neighbours(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return where the neighbours of each of ``rows`` begin in :attr:`neighbours`, and their number."""
        starts = self.offsets.take(rows, mode="clip")  # a row beyond the last has an empty range
        return starts, self.offsets.take(rows + 1, mode="clip") - starts


@dataclass(frozen=True, slots=True, eq=False)
class GrowingAdjacency:
    """An immutable weighted adjacency list; appending a batch of (row, neighbour) pairs returns a longer list.

    Attributes:
        base: Pairs mapped from files, or in memory.
        runs: Pairs added since, the latest last.
    """

    base: CompressedRows
    runs: tuple[SortedPairs, ...] = ()

    @classmethod
    def empty(cls) -> GrowingAdjacency:
        """Return an adjacency list in which no row has neighbours."""
        nothing = np.empty(0, dtype=np.int32)
        return cls(CompressedRows(np.zeros(1, dtype=np.int64), nothing, nothing.astype(np.float32)))

    def append(self, pairs: SortedPairs) -> GrowingAdjacency:
        """Return the adjacency list extended by ``pairs``, a batch of (row, neighbour) pairs with weights.

        If the order of neighbours matters, new neighbours of a row must have higher numbers than earlier neighbours of
        the row.
        """
        return GrowingAdjacency(self.base, append_run(self.runs, pairs))

    def degrees(self, rows: IntArray) -> IntArray:
        """Return the number of neighbours of each row."""
        degrees = self.base.locate_neighbours(rows)[1]
        for run in self.runs:
            degrees += run.locate_neighbours(rows)[1]
        return degrees

    def get_neighbours(self, rows: IntArray) -> Neighbours:
        """Return the neighbours of ``rows`` as parallel arrays: neighbour, index of its row in ``rows``, and weight."""
        parts = []
        batches: tuple[CompressedRows | SortedPairs, ...] = (self.base, *self.runs)
        for pairs in batches:
            starts, counts = pairs.locate_neighbours(rows)
            places, owners = expand_ranges(starts, counts), np.arange(len(rows)).repeat(counts)
            parts.append((pairs.neighbours.take(places).astype(np.int64), owners, pairs.weights.take(places)))
        if len(parts) == 1:
            return parts[0]
        neighbours, owners, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = owners.argsort(kind="stable")
        return neighbours[order], owners[order], weights[order]

    def compact(self) -> GrowingAdjacency:
        """Merge all batches of pairs into one array, and return an equal adjacency list."""
        return _compact(self, self.row_count)

    @property
    def row_count(self) -> int:
        """The number of rows of the adjacency list, including rows without neighbours."""
        return max([len(self.base.offsets) - 1, *(int(run.rows[-1]) + 1 for run in self.runs)])


@dataclass(frozen=True, slots=True, eq=False)
class PrunedAdjacency:
    """An immutable weighted adjacency list from which neighbours can be deleted; each change returns another list.

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
        """Return an adjacency list in which no row has neighbours."""
        return cls(GrowingAdjacency.empty(), LiveRows.empty())

    def with_changes(self, live: LiveRows, deleted: SortedPairs, added: SortedPairs) -> PrunedAdjacency:
        """Return the adjacency list without ``deleted`` and with ``added`` (row, neighbour) pairs.

        Args:
            live: The new mask of live neighbours.
            deleted: The pairs whose neighbours are deleted.
            added: The new pairs.
        """
        return PrunedAdjacency(self.pairs.append(added), live, self.deleted.append(deleted))

    def restrict(self, live: LiveRows) -> PrunedAdjacency:
        """Return the adjacency list with only the neighbours that are True in the mask ``live``."""
        return replace(self, live=live, is_restricted=True)

    def degrees(self, rows: IntArray) -> IntArray:
        """Return the number of neighbours of each row; deleted neighbours do not count."""
        if self.is_restricted:
            return np.bincount(self.get_neighbours(rows)[1], minlength=len(rows))
        degrees = self.pairs.degrees(rows)
        return degrees - self.deleted.degrees(rows) if self.deleted.runs else degrees

    def get_neighbours(self, rows: IntArray) -> Neighbours:
        """Return the live neighbours of ``rows`` as parallel arrays: neighbour, index in ``rows``, weight."""
        neighbours, owners, weights = self.pairs.get_neighbours(rows)
        if not self.deleted.runs and not self.is_restricted:
            return neighbours, owners, weights
        live = self.live.are_live(neighbours).nonzero()[0]
        return neighbours.take(live), owners.take(live), weights.take(live)

    def compact(self) -> PrunedAdjacency:
        """Remove deleted neighbours, merge all batches of pairs into one array, and return an equal adjacency list."""
        return PrunedAdjacency(_compact(self, self.pairs.row_count), self.live)


def _compact(adjacency: GrowingAdjacency | PrunedAdjacency, row_count: int) -> GrowingAdjacency:
    neighbours, owners, weights = adjacency.get_neighbours(np.arange(row_count))
    offsets = np.searchsorted(owners, np.arange(row_count + 1))
    return GrowingAdjacency(CompressedRows(offsets, neighbours.astype(np.int32), weights))
