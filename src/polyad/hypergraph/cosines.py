"""Cosines of unit vectors, the same on every processor."""

from __future__ import annotations

import numpy as np

from polyad.model import FloatArray

_DECIMALS = 6
"""Decimals kept. Kernels round the last bits differently, by processor: what ties would be told apart by chance, and a
cosine exceed 1."""

_FOR_ONE_THREAD = 1 << 18
"""Multiplications up to which OpenBLAS leaves a product of matrices to one thread."""


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


def products(vectors: FloatArray, other: FloatArray) -> FloatArray:
    """The product of each vector with another, or each with its own, by one thread.

    A product of matrices is spread over all processors: where several searches run side by side, each then waits for
    the others, and takes ten times as long.
    """
    found: FloatArray = np.vecdot(vectors, other)
    return found


def products_with_each(vectors: FloatArray, others: FloatArray) -> FloatArray:
    """The product of each of many vectors with each of a few others, ``[others, vectors]``, by one thread.

    Blocks are so small that the product of matrices is left to one thread, and what is read once serves all others.
    """
    if len(others) == 1:
        return products(vectors, others[0])[None]
    found = np.empty((len(vectors), len(others)), dtype=np.float32)
    columns = np.ascontiguousarray(others.T)
    block = max(1, _FOR_ONE_THREAD // max(1, others.size))
    for start in range(0, len(vectors), block):
        np.matmul(vectors[start : start + block], columns, out=found[start : start + block])
    return np.ascontiguousarray(found.T)
