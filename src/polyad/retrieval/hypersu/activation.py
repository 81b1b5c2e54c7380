"""Activation of hyperedges by clues, computed only for hyperedges that a walk reaches (HyperSU, section 4.2).

Activation is 0 for nearly all hyperedges of a frequent entity, such as a year or a nation. The active ones are among
the hyperedges nearest to a clue, so a walk reads only these for a frequent entity. The same holds for a frontier that
leads to a large part of the index: finding the hyperedges nearest to the clues then costs less than comparing all that
the frontier leads to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyad.hypergraph.sparse import Scores, is_in, sort_unique, union
from polyad.model import FloatArray, IntArray
from polyad.protocols.snapshot import Snapshot

NEAREST_PER_CLUE = 2000
"""Hyperedges that are read for each clue."""

MAX_REACHED_SHARE = 0.25
"""Share of the index's hyperedges, above which a frontier reads only the hyperedges nearest to a clue: comparing
scattered vectors takes several times as long as comparing vectors in a row."""


class ClueActivation:
    """Weighs hyperedges for a search, in [0, 1], by their similarity to clues (short texts about the question).

    alpha(u) = clamp((max over clues c of sim(c, u) - delta) / (1 - delta), 0, 1) ^ gamma.

    The published method computes alpha for every hyperedge of the corpus. Here it is computed for the hyperedges that
    a walk reaches, with the same values.

    Args:
        snapshot: The index.
        clues: Unit vectors of the clues, float32 ``[clues, dimension]``.
        threshold: delta, in [0, 1).
        sharpening: gamma, above 0.
    """

    def __init__(self, snapshot: Snapshot, clues: FloatArray, threshold: float, sharpening: float) -> None:
        self._snapshot = snapshot
        self._clues = clues
        self._threshold = threshold
        self._sharpening = sharpening
        self._values = Scores.empty()
        self._nearest_clues = Scores.empty()

    def __call__(self, edges: IntArray) -> FloatArray:
        """Return alpha of each hyperedge, in [0, 1]."""
        missing = sort_unique(edges[~is_in(edges, self._values.rows)])
        if len(missing):
            similarity = self._snapshot.cosines("hyperedge", missing, self._clues)
            scaled = (similarity.max(axis=1) - self._threshold) / (1 - self._threshold)
            self._values = self._values.add(missing, np.clip(scaled, 0, 1) ** self._sharpening)
            self._nearest_clues = self._nearest_clues.add(missing, similarity.argmax(axis=1))
        return self._values.get(edges)

    def get_nearest_clue(self, edge: int) -> int:
        """Return the index of the clue (short text about the question) nearest to the hyperedge ``edge``.

        The activation of the hyperedge must have been computed.
        """
        return int(self._nearest_clues.get(np.array([edge]))[0])

    @property
    def computed_count(self) -> int:
        """The number of hyperedges whose activation was computed so far."""
        return len(self._values)


@dataclass(frozen=True, slots=True)
class _NearestHyperedges:
    """The hyperedges nearest to the clues of a question and their entities, as parallel arrays.

    Attributes:
        edges: Row number of each hyperedge.
        members: Row number of an entity in the hyperedge.
        is_complete: Whether every hyperedge that a clue activates is included.
    """

    edges: IntArray
    members: IntArray
    is_complete: bool


class HubLimitedGraph:
    """The hypergraph in which a frequent entity (hub) has only the hyperedges that are nearest to a question's clues.

    Implements :class:`polyad.protocols.snapshot.Graph`.

    Args:
        snapshot: The index.
        clues: Unit vectors of the clues, float32 ``[clues, dimension]``.
        threshold: Cosine to a clue above which a hyperedge is active.
        hub_degree: Passages of an entity, above which only its hyperedges nearest to a clue are read; 0 for no limit.
    """

    def __init__(self, snapshot: Snapshot, clues: FloatArray, threshold: float, hub_degree: int) -> None:
        self._hub_degree = hub_degree or np.inf
        self._snapshot = snapshot
        self._clues = clues
        self._threshold = threshold

    def members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """Return the entities in the hyperedges as parallel arrays: entity, and index in ``hyperedges``."""
        return self._snapshot.graph.members(hyperedges)

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """Return the hyperedges of the entities as parallel arrays: hyperedge, and index in ``entities``."""
        graph = self._snapshot.graph
        degrees = graph.mention_counts(entities)
        is_hub = degrees > self._hub_degree
        if degrees.sum() > MAX_REACHED_SHARE * self._snapshot.row_count("hyperedge") and self._nearest.is_complete:
            is_hub[:] = True
        rare, frequent = np.flatnonzero(~is_hub), np.flatnonzero(is_hub)
        edges, owners = graph.memberships(entities[rare])
        if not len(frequent):
            return edges, owners
        nearest = self._nearest
        order = np.argsort(entities[frequent])
        hubs = entities[frequent][order]
        reached = is_in(nearest.members, hubs)
        return (
            np.concatenate([edges, nearest.edges[reached]]),
            np.concatenate([rare[owners], frequent[order][np.searchsorted(hubs, nearest.members[reached])]]),
        )

    @cached_property
    def _nearest(self) -> _NearestHyperedges:
        nearest = self._snapshot.nearest("hyperedge", self._clues, NEAREST_PER_CLUE)
        is_complete = all(len(rows) < NEAREST_PER_CLUE or cosines[-1] <= self._threshold for rows, cosines in nearest)
        edges = union(rows[cosines > self._threshold] if is_complete else rows for rows, cosines in nearest)
        members, owners = self._snapshot.graph.members(edges)
        return _NearestHyperedges(edges[owners], members, is_complete)
