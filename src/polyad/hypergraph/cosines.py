"""Cosines of unit vectors, the same on every processor."""

from __future__ import annotations

import numpy as np

from polyad.model import FloatArray

_DECIMALS = 6
"""Decimals kept. Kernels round the last bits differently, by processor: what ties would be told apart by chance, and a
cosine exceed 1."""


def cosines(vectors: FloatArray, others: FloatArray) -> FloatArray:
    """The cosine of each of some unit vectors with each of some others, in [-1, 1].

    Args:
        vectors: float32 ``[vectors, dimension]``.
        others: float32 ``[others, dimension]``, or one of them, ``[dimension]``.

    Returns:
        float32 ``[vectors, others]``, or ``[vectors]``.

    >>> cosines(np.eye(2, dtype=np.float32), np.float32([0.6, 0.8])).tolist() == np.float32([0.6, 0.8]).tolist()
    True
    """
    found: FloatArray = np.round(products(vectors if others.ndim == 1 else vectors[:, None], others), _DECIMALS)
    return np.clip(found, -1, 1, out=found)


def products(vectors: FloatArray, others: FloatArray) -> FloatArray:
    """The product of each vector with another, or with one, by one thread.

    A product of matrices is spread over all processors: where several searches run side by side, each then waits for
    the others, and takes ten times as long.
    """
    found: FloatArray = np.vecdot(vectors, others)
    return found
