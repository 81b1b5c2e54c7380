"""Activation of hyperedges by clues, computed only for those a walk touches (HyperSU, section 4.2)."""

from __future__ import annotations

import numpy as np

from polyad.hypergraph.cosines import cosines
from polyad.model import FloatArray, IntArray


class ClueActivation:
    """alpha(u) = clamp((max over clues c of sim(c, u) - delta) / (1 - delta), 0, 1) ^ gamma.

    The published method computes it for every hyperedge of the corpus; a walk asks about those incident to its
    frontier only, so here they are computed on demand and kept. The values are the same.

    Args:
        vectors: Of the hyperedges, unit length, float32 ``[hyperedges, dimension]``.
        clues: Of the clues, float32 ``[clues, dimension]``.
        threshold: delta, in [0, 1).
        sharpening: gamma, above 0.
    """

    def __init__(self, vectors: FloatArray, clues: FloatArray, threshold: float, sharpening: float) -> None:
        self._vectors = vectors
        self._clues = clues
        self._threshold = threshold
        self._sharpening = sharpening
        self._values = np.full(len(vectors), np.nan, dtype=np.float32)
        self._matched = np.zeros(len(vectors), dtype=np.int8)

    def __call__(self, edges: IntArray) -> FloatArray:
        """Alpha of each of ``edges``, in [0, 1]."""
        missing = edges[np.isnan(self._values[edges])]
        if len(missing):
            similarity = cosines(self._vectors[missing], self._clues)
            scaled = (similarity.max(axis=1) - self._threshold) / (1 - self._threshold)
            self._values[missing] = np.clip(scaled, 0, 1) ** self._sharpening
            self._matched[missing] = similarity.argmax(axis=1)
        return self._values[edges]

    def matched(self, edge: int) -> int:
        """Which clue a hyperedge that was asked about is nearest to."""
        return int(self._matched[edge])

    @property
    def computed(self) -> int:
        """How many hyperedges were asked about so far."""
        return int(np.count_nonzero(~np.isnan(self._values)))
