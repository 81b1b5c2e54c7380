"""What retrievers share in ranking: the best of some scores, and filling up with what is similar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyad.model import FloatArray, IntArray

Hit = tuple[int, float, str]
"""Row, score and reason of a passage."""

HYPEREDGES_SHOWN = 3
"""Of each passage, in the evidence."""


def best(scores: FloatArray, k: int) -> IntArray:
    """The rows of the ``k`` highest scores, best first, ties by row."""
    if k < len(scores):
        threshold = np.partition(scores, -k)[-k]
        candidates = np.flatnonzero(scores >= threshold)
    else:
        candidates = np.arange(len(scores))
    return candidates[np.lexsort((candidates, -scores[candidates]))][:k]


def filled(hits: Sequence[Hit], similarity: FloatArray, k: int) -> list[Hit]:
    """The first ``k`` of ``hits``, and if they are fewer, the passages most similar to the question, scored below them.

    Args:
        hits: Best first.
        similarity: Cosine of every passage with the question.
        k: How many are wanted.
    """
    filled = list(hits[:k])
    found = {row for row, _, _ in filled}
    floor = min([0.0, *(score for _, score, _ in filled)])
    for row in best(similarity, k + len(found)).tolist():
        if len(filled) < k and row not in found:
            filled.append((row, floor + min(0.0, float(similarity[row]) - 1), "similar to the question, not reached"))
    return filled


def above(scores: FloatArray, k: int, threshold: float) -> IntArray:
    """The rows of the ``k`` highest scores that are above ``threshold``, best first."""
    rows = np.flatnonzero(scores > threshold)  # few, mostly: the rest need not be sorted
    return rows[best(scores[rows], k)]


def places_within(owners: IntArray) -> IntArray:
    """For each of some sorted numbers, how many equal ones stand before it.

    >>> places_within(np.array([2, 2, 2, 5])).tolist()
    [0, 1, 2, 0]
    """
    places: IntArray = np.arange(len(owners)) - np.searchsorted(owners, owners)
    return places
