"""The hypergraph as a walk sees it: of an entity that is everywhere, only the hyperedges that a clue may activate.

A year or a nation is in thousands of hyperedges, and activation is 0 for nearly all of them. Those it is not 0 for are
among the hyperedges nearest to a clue, so of an entity that is everywhere only these are looked at. The same holds for
all entities of a frontier that leads to a large part of the index, where the hyperedges nearest to the clues are all
that may be active: then to find these at once costs less than to compare what the frontier leads to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyad.hypergraph.sparse import is_in, union
from polyad.model import FloatArray, IntArray
from polyad.protocols.snapshot import Snapshot

EVERYWHERE = 5000
"""Passages from which on an entity is everywhere."""

NEAREST = 2000
"""Hyperedges looked at for each clue."""

LARGE = 0.25
"""Share of the hyperedges of an index from which on a frontier leads to a large part of it: comparing vectors here and
there takes several times as long as comparing them in a row, for each of several clues."""


@dataclass(frozen=True, slots=True)
class _Near:
    """The hyperedges nearest to any clue, one an incidence.

    Attributes:
        edges: Row of each.
        members: An entity in it.
        are_all: Whether no other hyperedge may be active; then these may.
    """

    edges: IntArray
    members: IntArray
    are_all: bool


class WithinReach:
    """Implements :class:`polyad.protocols.snapshot.Graph` for one question.

    Args:
        snapshot: The index.
        clues: Vectors of the clues, float32 ``[clues, dimension]``.
        threshold: Cosine to a clue above which a hyperedge is active.
    """

    def __init__(self, snapshot: Snapshot, clues: FloatArray, threshold: float) -> None:
        self._snapshot = snapshot
        self._clues = clues
        self._threshold = threshold

    def members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """The entities of each of some hyperedges, and the position in ``hyperedges`` each belongs to."""
        return self._snapshot.graph.members(hyperedges)

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """The hyperedges of each of some entities, and the position in ``entities`` each belongs to."""
        graph = self._snapshot.graph
        degrees = graph.mention_counts(entities)
        everywhere = degrees > EVERYWHERE
        if degrees.sum() > LARGE * self._snapshot.row_count("hyperedge") and self._near.are_all:
            everywhere[:] = True
        few, many = np.flatnonzero(~everywhere), np.flatnonzero(everywhere)
        edges, owners = graph.memberships(entities[few])
        if not len(many):
            return edges, owners
        near = self._near
        order = np.argsort(entities[many])
        hubs = entities[many][order]
        reached = is_in(near.members, hubs)
        return (
            np.concatenate([edges, near.edges[reached]]),
            np.concatenate([few[owners], many[order][np.searchsorted(hubs, near.members[reached])]]),
        )

    @cached_property
    def _near(self) -> _Near:
        found = self._snapshot.nearest("hyperedge", self._clues, NEAREST)
        are_all = all(len(rows) < NEAREST or cosines[-1] <= self._threshold for rows, cosines in found)
        near = union(rows[cosines > self._threshold] if are_all else rows for rows, cosines in found)
        members, owners = self._snapshot.graph.members(near)
        return _Near(near[owners], members, are_all)
