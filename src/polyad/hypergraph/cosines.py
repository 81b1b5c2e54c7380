"""Cosines of unit vectors, the same on every processor."""

from __future__ import annotations

import numpy as np

from polyad.model import FloatArray

_DECIMALS = 6
"""Decimals kept. The kernels of matrix products round the last bits differently, by processor and by place in the
matrix: what ties would be told apart by chance, and a cosine exceed 1."""


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
    products: FloatArray = np.round(vectors @ others.T, _DECIMALS)
    return np.clip(products, -1, 1, out=products)
