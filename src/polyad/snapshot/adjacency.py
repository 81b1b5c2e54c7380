"""An adjacency from which neighbours can be deleted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from polyad.model import IntArray
from polyad.snapshot.columns import LiveRows
from polyad.snapshot.segments import Neighbours, Segment, SegmentList


@dataclass(frozen=True, slots=True, eq=False)
class PrunedAdjacency:
    """An immutable weighted adjacency list from which neighbours can be deleted; each change returns another list.

    Attributes:
        pairs: All pairs, with those of deleted neighbours.
        live: Which neighbours are live.
        deleted: The pairs of deleted neighbours, counted where only degrees are needed.
        is_restricted: Whether ``live`` leaves out neighbours that are not in ``deleted``.
    """

    pairs: SegmentList
    live: LiveRows
    deleted: SegmentList = field(default_factory=SegmentList.empty)
    is_restricted: bool = False

    @classmethod
    def empty(cls) -> PrunedAdjacency:
        """Return an adjacency list in which no row has neighbours."""
        return cls(SegmentList.empty(), LiveRows.empty())

    def with_changes(self, live: LiveRows, deleted: Segment, added: Segment) -> PrunedAdjacency:
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
        return degrees - self.deleted.degrees(rows) if len(self.deleted) else degrees

    def get_neighbours(self, rows: IntArray) -> Neighbours:
        """Return the live neighbours of ``rows`` as parallel arrays: neighbour, index in ``rows``, weight."""
        neighbours, owners, weights = self.pairs.get_neighbours(rows)
        if not len(self.deleted) and not self.is_restricted:
            return neighbours, owners, weights
        live = self.live.are_live(neighbours).nonzero()[0]
        return neighbours.take(live), owners.take(live), weights.take(live)

    def compact(self) -> PrunedAdjacency:
        """Remove deleted neighbours, merge all segments into one, and return an equal adjacency list."""
        return PrunedAdjacency(self.pairs.compact(self.live.mask), self.live)
