"""The hypergraph as a walk sees it: of an entity that is everywhere, only the hyperedges that a clue may activate.

A year or a nation is in thousands of hyperedges, and activation is 0 for nearly all of them. Those it is not 0 for are
among the hyperedges nearest to a clue, so of an entity that is everywhere only these are looked at.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from polyad.hypergraph.sparse import among, union
from polyad.model import FloatArray, IntArray
from polyad.view import View

EVERYWHERE = 5000
"""Passages from which on an entity is everywhere."""

NEAREST = 2000
"""Hyperedges looked at for each clue."""


class WithinReach:
    """Implements :class:`polyad.view.Graph` for one question.

    Args:
        view: The index.
        clues: Vectors of the clues, float32 ``[clues, dimension]``.
    """

    def __init__(self, view: View, clues: FloatArray) -> None:
        self._view = view
        self._clues = clues

    def members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """The entities of each of some hyperedges, and the position in ``hyperedges`` each belongs to."""
        return self._view.graph.members(hyperedges)

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """The hyperedges of each of some entities, and the position in ``entities`` each belongs to."""
        graph = self._view.graph
        everywhere = graph.degrees(entities) > EVERYWHERE
        few, many = np.flatnonzero(~everywhere), np.flatnonzero(everywhere)
        edges, owners = graph.memberships(entities[few])
        if not len(many):
            return edges, owners
        near, members = self._near
        order = np.argsort(entities[many])
        hubs = entities[many][order]
        reached = among(members, hubs)
        return (
            np.concatenate([edges, near[reached]]),
            np.concatenate([few[owners], many[order][np.searchsorted(hubs, members[reached])]]),
        )

    @cached_property
    def _near(self) -> tuple[IntArray, IntArray]:
        """The hyperedges nearest to any clue and their members, one an incidence."""
        near = union(rows for rows, _ in self._view.nearest("hyperedge", self._clues, NEAREST))
        members, owners = self._view.graph.members(near)
        return near[owners], members
