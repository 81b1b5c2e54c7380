"""Cosines of unit vectors, rounded so that every processor gives the same values."""

from __future__ import annotations

import numpy as np

from polyad.model import FloatArray

_DECIMALS = 6
"""Decimals of a cosine. Kernels round the last bits differently by processor, which would break ties by chance."""

_SINGLE_THREAD_LIMIT = 1 << 18
"""Largest matrix product, in multiplications, that OpenBLAS computes in one thread."""


def compute_cosines(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    """Return the cosine of each unit vector with each query vector, in [-1, 1].

    Args:
        vectors: float32 ``[vectors, dimension]``.
        queries: float32 ``[queries, dimension]``, or a single query, ``[dimension]``.

    Returns:
        float32 ``[vectors, queries]``, or ``[vectors]``.

    >>> compute_cosines(np.eye(2, dtype=np.float32), np.float32([0.6, 0.8])).tolist() == np.float32([0.6, 0.8]).tolist()
    True
    """
    products = compute_dot_products(vectors if queries.ndim == 1 else vectors[:, None], queries)
    cosines: FloatArray = np.round(products, _DECIMALS)
    return np.clip(cosines, -1, 1, out=cosines)


def compute_dot_products(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    """Return the dot product of each vector with one query vector or with its own query vector, in one thread.

    OpenBLAS spreads a matrix product over all processors. Searches that run side by side then wait for each other and
    take ten times as long.
    """
    products: FloatArray = np.vecdot(vectors, queries)
    return products


def compute_dot_product_matrix(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    """Return the dot products of a few queries with many vectors, ``[queries, vectors]``, in one thread.

    Blocks are small enough that OpenBLAS uses one thread, and every vector is read once for all queries.
    """
    if len(queries) == 1:
        return compute_dot_products(vectors, queries[0])[None]
    products = np.empty((len(vectors), len(queries)), dtype=np.float32)
    columns = np.ascontiguousarray(queries.T)
    block = max(1, _SINGLE_THREAD_LIMIT // max(1, queries.size))
    for start in range(0, len(vectors), block):
        np.matmul(vectors[start : start + block], columns, out=products[start : start + block])
    return np.ascontiguousarray(products.T)
