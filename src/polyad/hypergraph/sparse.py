"""Arrays of the few rows that a search reaches: sets of rows, sparse scores, and cosines equal on every processor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.snapshot import Kind, Snapshot

Values = npt.NDArray[np.floating]

SortKey = Callable[[IntArray], "npt.NDArray[np.generic]"]
"""Returns a sort key for each row, lower for a lower id. Breaks ties between equal scores."""


def expand_ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """Return the integer ranges with these starts and lengths, concatenated into one array.

    >>> expand_ranges(np.array([7, 0, 3]), np.array([2, 0, 3])).tolist()
    [7, 8, 3, 4, 5]

    Args:
        starts: Shape ``[ranges]``.
        counts: Shape ``[ranges]``, each 0 or more.

    Returns:
        Shape ``[sum of counts]``.
    """
    before = counts.cumsum()
    before -= counts
    numbers: IntArray = (starts - before).repeat(counts)
    numbers += np.arange(len(numbers))
    return numbers


def sort_unique(numbers: IntArray) -> IntArray:
    """Return the sorted unique values of an integer array. This is several times faster than ``numpy.unique``.

    >>> sort_unique(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers, kind="stable")  # merges sorted runs, which most inputs consist of
    return ordered[mark_first_of_equals(ordered)]


def mark_first_of_equals(ordered: npt.NDArray[np.integer]) -> BoolArray:
    """Return a mask of a sorted array that is True for the first element of each run of equal elements."""
    is_first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first


def is_in(rows: IntArray, sorted_rows: IntArray) -> BoolArray:
    """Return whether each of ``rows`` is in ``sorted_rows``; bool ``[rows]``.

    The function is much faster than ``numpy.isin``.

    >>> is_in(np.array([5, 2, 9]), np.array([2, 5])).tolist()
    [True, True, False]
    """
    if not len(sorted_rows):
        return np.zeros(len(rows), dtype=bool)
    is_member: BoolArray = sorted_rows[np.minimum(sorted_rows.searchsorted(rows), len(sorted_rows) - 1)] == rows
    return is_member


def union(arrays: Iterable[IntArray]) -> IntArray:
    """Return the sorted union of several arrays of row numbers."""
    return sort_unique(np.concatenate([np.empty(0, dtype=np.int64), *arrays]))


def rank_in_group(groups: IntArray) -> IntArray:
    """Return the index of each element within its run of equal elements: [5, 5, 9] gives [0, 1, 0].

    The array must be sorted.

    >>> rank_in_group(np.array([2, 2, 2, 5])).tolist()
    [0, 1, 2, 0]
    """
    ranks: IntArray = np.arange(len(groups)) - np.searchsorted(groups, groups)
    return ranks


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """A sparse vector of scores by row number: rows that are not listed have the score 0.

    Attributes:
        rows: Sorted and unique; int64 ``[rows]``.
        values: float32 ``[rows]``.
    """

    rows: IntArray
    values: FloatArray

    @classmethod
    def empty(cls) -> Scores:
        """Return a sparse score vector in which every row has the score 0."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))

    @classmethod
    def from_pairs(cls, rows: IntArray, values: Values) -> Scores:
        """Build a sparse score vector from unique rows and their values."""
        order = rows.argsort()
        return cls(rows[order], values[order].astype(np.float32, copy=False))

    @classmethod
    def from_max(cls, rows: IntArray, values: Values) -> Scores:
        """Build a sparse score vector from (row, value) pairs; a repeated row gets its highest value.

        Negative values count as 0.

        >>> Scores.from_max(np.array([7, 3, 7]), np.float32([0.5, 1, 0.75])).values.tolist()
        [1.0, 0.75]
        """
        unique = sort_unique(rows)
        highest = np.zeros(len(unique), dtype=np.float32)
        np.maximum.at(highest, unique.searchsorted(rows), values.astype(np.float32, copy=False))
        return cls(unique, highest)

    @classmethod
    def from_sum(cls, rows: IntArray, values: Values) -> Scores:
        """Build a sparse score vector from (row, value) pairs; a repeated row gets the sum of its values.

        Values are added in the order of the arrays, so that equal input gives equal rounding.
        """
        unique = sort_unique(rows)
        sums = np.zeros(len(unique), dtype=np.float32)
        np.add.at(sums, unique.searchsorted(rows), values.astype(np.float32, copy=False))
        return cls(unique, sums)

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, rows: IntArray) -> FloatArray:
        """Return the scores of ``rows`` as float32 ``[rows]``; 0 for rows without a score."""
        if not len(self.rows):
            return np.zeros(len(rows), dtype=np.float32)
        positions, is_listed = self.find_positions(rows)
        scores: FloatArray = np.where(is_listed, self.values[positions], np.float32(0))
        return scores

    def find_positions(self, rows: IntArray) -> tuple[IntArray, BoolArray]:
        """Return (index of each of ``rows`` in :attr:`rows`, mask of the rows that have a score).

        Scores must not be empty.
        """
        positions = np.minimum(self.rows.searchsorted(rows), len(self.rows) - 1)
        return positions, self.rows[positions] == rows

    def add(self, rows: IntArray, values: FloatArray) -> Scores:
        """Return the score vector with additional ``rows``, which have no scores yet, and their ``values``."""
        return Scores.from_pairs(np.concatenate([self.rows, rows]), np.concatenate([self.values, values]))

    def above(self, threshold: float) -> Scores:
        """Return only the rows with a score above ``threshold``."""
        is_above = self.values > threshold
        return Scores(self.rows[is_above], self.values[is_above])

    def top_k(self, k: int, sort_key: SortKey) -> IntArray:
        """Return the rows with the ``k`` highest scores, best first; ``sort_key`` breaks ties."""
        return self.rows[find_top_positions(self.values, k, lambda positions: sort_key(self.rows[positions]))]


def find_top_positions(values: Values, k: int, sort_key: SortKey) -> IntArray:
    """Return the indices of the ``k`` highest values, best first; ``sort_key`` breaks ties.

    Args:
        values: ``[values]``.
        k: The number of positions; all positions if there are fewer.
        sort_key: Returns a sort key for each position with a tie.
    """
    if k <= 0:
        return np.empty(0, dtype=np.int64)
    threshold = np.partition(values, -k)[-k] if k < len(values) else -np.inf
    positions = (values >= threshold).nonzero()[0]
    ranked = positions[(-values[positions]).argsort(kind="stable")]
    is_equal = values[ranked][1:] == values[ranked][:-1]
    if is_equal.any():  # sort keys cost more than values and are computed only for ties
        is_tied = np.append(is_equal, False) | np.append(False, is_equal)
        tied = ranked[is_tied]
        ranked[is_tied] = tied[np.lexsort((sort_key(tied), -values[tied]))]
    return ranked[:k]


def rank_by_id(snapshot: Snapshot, kind: Kind, rows: IntArray) -> FloatArray:
    """Return a sort key for each of ``rows``: rows sorted by these keys are in the order of their ids."""
    unique = sort_unique(rows)
    ids = snapshot.ids(kind, unique)
    ranks = {id: rank for rank, id in enumerate(sorted(set(ids)))}
    return np.fromiter(map(ranks.__getitem__, ids), dtype=np.float32, count=len(ids))[unique.searchsorted(rows)]


_DECIMALS = 6
"""Decimals of a cosine. Kernels round the last bits differently by processor, which would break ties by chance."""

_SINGLE_THREAD_LIMIT = 1 << 18
"""Largest matrix product, in multiplications, that OpenBLAS computes in one thread."""

VECTOR_BLOCK = 64
"""Vectors copied from scattered rows at a time: they stay in the processor's cache until they are multiplied."""


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
    """Return the dot product of each vector with one query, or with the query at the same index.

    The product is computed in a single thread. OpenBLAS spreads a matrix product over all processors. Searches that
    run side by side then wait for each other and take ten times as long.
    """
    products: FloatArray = np.vecdot(vectors, queries)
    return products


def compute_dot_product_matrix(vectors: FloatArray, queries: FloatArray, rows: IntArray | None = None) -> FloatArray:
    """Return the dot products of queries and vectors, ``[queries, vectors]``, computed in a single thread.

    Blocks are small enough that OpenBLAS uses one thread, and every vector is read once for all queries.

    Args:
        vectors: float32 ``[vectors, dimension]``.
        queries: float32 ``[queries, dimension]``.
        rows: Indices of the vectors to multiply; None for all.
    """
    if len(queries) == 1 and rows is None:
        return compute_dot_products(vectors, queries[0])[None]
    count = len(vectors) if rows is None else len(rows)
    products = np.empty((count, len(queries)), dtype=np.float32)
    columns = np.ascontiguousarray(queries.T)
    block = max(1, min(count if rows is None else VECTOR_BLOCK, _SINGLE_THREAD_LIMIT // max(1, queries.size)))
    for start in range(0, count, block):
        span = slice(start, start + block)
        np.matmul(vectors[span] if rows is None else vectors.take(rows[span], axis=0), columns, out=products[span])
    return np.ascontiguousarray(products.T)
