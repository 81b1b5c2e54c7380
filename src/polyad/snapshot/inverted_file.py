"""An inverted file of vectors: a search reads the clusters whose centroids are nearest to the question.

The vectors of one cluster lie side by side in their file, so a search reads a few contiguous spans. It misses a near
vector whose cluster is not among the nearest (Sivic and Zisserman, 2003). Centroids are found by k-means on the sphere
(Dhillon and Modha, 2001) on a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.sparse import compute_dot_product_matrix, expand_ranges, union
from polyad.model import FloatArray, IntArray

Numbers = npt.NDArray[np.int32]

_SAMPLES_PER_CLUSTER = 12

_ITERATIONS = 4

_MIN_VECTORS_PER_K = 25
"""A search for k vectors reads clusters with at least this many times k vectors."""

_BLOCK = 4096


@dataclass(frozen=True, slots=True, eq=False)
class InvertedFile:
    """An inverted file (IVF) index: vectors grouped by nearest centroid, of which a search reads few groups.

    Vectors that were deleted when the file was written lie behind the last cluster.

    Attributes:
        centroids: Unit vectors; float32 ``[clusters, dimension]``.
        offsets: Places of cluster i are ``offsets[i]:offsets[i + 1]``; int64 ``[clusters + 1]``.
        rows: The row at each place.
        places: The place of each row.
        nprobe: Number of clusters that a search reads; 0 for all.
    """

    centroids: FloatArray
    offsets: IntArray
    rows: Numbers
    places: Numbers
    nprobe: int = 0

    @classmethod
    def from_assignments(cls, centroids: FloatArray, cluster_of_row: Numbers) -> InvertedFile:
        """Build the inverted file from the cluster number of each row's vector, int32 ``[rows]``.

        The number after the last cluster stands for deleted rows.
        """
        rows = np.argsort(cluster_of_row, kind="stable").astype(np.int32)
        places = np.empty(len(rows), dtype=np.int32)
        places[rows] = np.arange(len(rows), dtype=np.int32)
        return cls(centroids, np.searchsorted(cluster_of_row[rows], np.arange(len(centroids) + 1)), rows, places)

    @property
    def cluster_of_row(self) -> Numbers:
        """The cluster number of each row's vector; for a deleted row, the number of clusters."""
        clusters = np.full(len(self.rows), len(self.centroids), dtype=np.int32)
        clusters[: self.offsets[-1]] = np.repeat(np.arange(len(self.centroids)), np.diff(self.offsets))
        return clusters[self.places]

    @property
    def deleted_count(self) -> int:
        """The number of rows that had already been deleted when the inverted file was built."""
        return len(self.rows) - int(self.offsets[-1])

    def with_nprobe(self, nprobe: int) -> InvertedFile:
        """Return a copy of the inverted file in which a search reads ``nprobe`` clusters."""
        return replace(self, nprobe=nprobe)

    def find_nearest_clusters(self, vectors: FloatArray, k: int) -> IntArray:
        """Return the sorted numbers of the clusters that a search for the ``k`` nearest vectors reads."""
        if not self.nprobe:
            return np.arange(len(self.centroids))
        return union(
            self._choose_clusters(cosines, k) for cosines in compute_dot_product_matrix(self.centroids, vectors)
        )

    def get_spans(self, clusters: IntArray) -> tuple[list[slice], IntArray]:
        """Return (one slice of positions for each of ``clusters``, the same positions as one array).

        A position is the index of a vector in the order of the file.
        """
        starts, ends = self.offsets[clusters], self.offsets[clusters + 1]
        spans = [slice(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        return spans, expand_ranges(starts, ends - starts)

    def _choose_clusters(self, cosines: FloatArray, k: int) -> IntArray:
        """Return the clusters to read for one query, from the ``cosines`` of the query with all centroids."""
        sizes, count = np.diff(self.offsets), min(self.nprobe, len(cosines))
        nearest = np.argpartition(-cosines, count - 1)[:count]
        if sizes[nearest].sum() >= _MIN_VECTORS_PER_K * k or count == len(cosines):
            return nearest
        order = np.argsort(-cosines, kind="stable")
        return order[: int(np.searchsorted(np.cumsum(sizes[order]), _MIN_VECTORS_PER_K * k)) + 1]


def choose_cluster_count(row_count: int) -> int:
    """Return the number of clusters for an inverted file of ``row_count`` vectors.

    This is 8 times the root of the count, rounded to a power of two so that it rarely changes.
    """
    return int(8 * np.sqrt(2.0 ** np.round(np.log2(max(1, row_count)))))


def compute_centroids(get_vectors: Callable[[IntArray], FloatArray], rows: IntArray) -> FloatArray:
    """Return cluster centroids of the vectors of ``rows``, by spherical k-means on a sample.

    Args:
        get_vectors: Returns the unit vectors of rows.
        rows: All live rows; at least one.
    """
    count = min(choose_cluster_count(len(rows)), len(rows))
    drawn = np.random.default_rng(0).permutation(len(rows))[: _SAMPLES_PER_CLUSTER * count]
    sample = get_vectors(rows[np.sort(drawn)])
    centroids = sample[np.linspace(0, len(sample) - 1, count).astype(np.int64)]
    for _ in range(_ITERATIONS):
        clusters = assign_clusters(sample, centroids)
        order = np.argsort(clusters, kind="stable")
        filled, first = np.unique(clusters[order], return_index=True)
        sums = np.add.reduceat(sample[order], first, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centroids[filled] = np.where(lengths > 0, sums / np.maximum(lengths, 1e-9), centroids[filled])
    return centroids


def assign_clusters(vectors: FloatArray, centroids: FloatArray) -> Numbers:
    """Return the nearest centroid (highest cosine) of each vector, as its index; int32 ``[vectors]``."""
    clusters = np.empty(len(vectors), dtype=np.int32)
    for start in range(0, len(vectors), _BLOCK):
        clusters[start : start + _BLOCK] = np.argmax(vectors[start : start + _BLOCK] @ centroids.T, axis=1)
    return clusters
