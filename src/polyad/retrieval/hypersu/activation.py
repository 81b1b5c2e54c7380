"""Activation of hyperedges by clues, computed only for those a walk touches (HyperSU, section 4.2)."""

from __future__ import annotations

import numpy as np

from polyad.hypergraph.incidence import sort_unique
from polyad.hypergraph.sparse import Scores, is_in
from polyad.model import FloatArray, IntArray
from polyad.protocols.snapshot import Snapshot


class ClueActivation:
    """alpha(u) = clamp((max over clues c of sim(c, u) - delta) / (1 - delta), 0, 1) ^ gamma.

    The published method computes it for every hyperedge of the corpus; a walk asks about those incident to its
    frontier only, so here they are computed on demand and kept. The values are the same.

    Args:
        snapshot: The index.
        clues: Vectors of the clues, float32 ``[clues, dimension]``.
        threshold: delta, in [0, 1).
        sharpening: gamma, above 0.
    """

    def __init__(self, snapshot: Snapshot, clues: FloatArray, threshold: float, sharpening: float) -> None:
        self._snapshot = snapshot
        self._clues = clues
        self._threshold = threshold
        self._sharpening = sharpening
        self._values = Scores.empty()
        self._matched = Scores.empty()

    def __call__(self, edges: IntArray) -> FloatArray:
        """Alpha of each of ``edges``, in [0, 1]."""
        missing = sort_unique(edges[~is_in(edges, self._values.rows)])
        if len(missing):
            similarity = self._snapshot.cosines("hyperedge", missing, self._clues)
            scaled = (similarity.max(axis=1) - self._threshold) / (1 - self._threshold)
            self._values = self._values.add(missing, np.clip(scaled, 0, 1) ** self._sharpening)
            self._matched = self._matched.add(missing, similarity.argmax(axis=1))
        return self._values.get(edges)

    def matched(self, edge: int) -> int:
        """Which clue a hyperedge that was asked about is nearest to."""
        return int(self._matched.get(np.array([edge]))[0])

    @property
    def computed(self) -> int:
        """How many hyperedges were asked about so far."""
        return len(self._values)
