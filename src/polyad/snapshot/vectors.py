"""The vectors of passages, hyperedges or entities, and the search for those nearest to a question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from polyad.hypergraph.sparse import (
    compute_cosines,
    compute_dot_product_matrix,
    compute_dot_products,
    find_top_positions,
    is_in,
)
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.snapshot.binary_codes import BinaryCodes, Distances
from polyad.snapshot.columns import Column, LiveRows, StringColumn
from polyad.snapshot.inverted_file import (
    InvertedFile,
    Numbers,
    assign_clusters,
    choose_cluster_count,
    compute_centroids,
)

_ROUNDING = 2e-6
"""Largest difference of a cosine before and after rounding."""

_WEIGHTED_ROUNDING = 100 * _ROUNDING
"""Largest difference before and after rounding of a cosine times a score of at most 100."""

RECALL_K = 40
"""Recall is the share of this many nearest vectors that a search finds."""

_RECALL_QUERIES = 50
"""Vectors of the index whose neighbours measure recall."""

_MAX_UNASSIGNED = 64
"""Appended vectors without a cluster, which every search compares, before their clusters are found together."""

_COMPARED_PER_K = 8
_MIN_COMPARED = 1600
"""A search for k vectors compares the :data:`_COMPARED_PER_K` times k plus this many vectors with the nearest codes."""

_MIN_LIVE_SHARE = 0.25
"""Share of live vectors below which a search compares codes of all live vectors instead of reading clusters.

The nearest clusters hold few of them, and a filter that selects little is to lose nothing.
"""

_READ_BLOCK = 1 << 16
"""Vectors read at a time."""

_MAX_BLOCK = 64
"""Products whose maximum is taken together."""


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """The vectors that may be nearest to one query, before exact comparison.

    Attributes:
        query: The unit query vector; ``[dimension]``.
        places: Positions of the candidates in the column of vectors.
        products: Dot product of each candidate with the query.
    """

    query: FloatArray
    places: IntArray
    products: FloatArray


@dataclass(frozen=True, eq=False)  # no slots, for the cached property
class Vectors:
    """The unit vectors of all passages, hyperedges or entities, with exact and approximate nearest-neighbour search.

    Immutable.

    Attributes:
        column: float32 ``[rows, dimension]``; with clusters, the vectors of a file are in the order of places.
        live: Which rows are live.
        clusters: The inverted file of the vectors of a file; None if a search compares all vectors.
        codes: Binary codes of the same vectors in the same order; None if a search compares all vectors it reads.
        appended_clusters: The clusters of the vectors appended since, except for the last few.
    """

    column: Column
    live: LiveRows
    clusters: InvertedFile | None = None
    codes: BinaryCodes | None = None
    appended_clusters: Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    @classmethod
    def empty(cls, dimension: int) -> Vectors:
        """Return a vector index without rows."""
        return cls(Column.empty(np.float32, dimension), LiveRows.empty())

    @property
    def is_exact(self) -> bool:
        """Whether every search compares all vectors (exact search, no approximate index)."""
        return self.codes is None and self.clusters is None

    @cached_property
    def _live_places(self) -> IntArray:
        """The sorted positions of the live vectors in :attr:`column`, which is ordered by cluster, not by row."""
        return np.sort(self._to_places(self.live.to_rows()))

    def __len__(self) -> int:
        return len(self.column)

    def with_changes(self, live: LiveRows, vectors: FloatArray) -> Vectors:
        """Return the vector index with ``vectors`` as rows at its end; ``live`` is the new mask of live rows."""
        later = replace(self, column=self.column.append(vectors), live=live)
        if self.clusters is None or len(later.column.appended) - len(self.appended_clusters) < _MAX_UNASSIGNED:
            return later
        return replace(later, appended_clusters=later._assign_appended(self.clusters))

    def replace(self, rows: IntArray, vectors: FloatArray) -> Vectors:
        """Return the vector index with new vectors in ``rows``, which must be unique."""
        return replace(self, column=self.column.replace(self._to_places(rows), vectors))

    def take(self, rows: IntArray) -> FloatArray:
        """Return the vectors of ``rows`` as an array, in the order of ``rows``."""
        vectors: FloatArray = self.column.take(self._to_places(rows))
        return vectors

    def build_clusters(self) -> InvertedFile:
        """Return an inverted file of all vectors; its centroids are computed again only if the vectors have doubled."""
        count = choose_cluster_count(self.live.live_count)
        if self.clusters is not None and len(self.clusters.centroids) == count:
            centroids = self.clusters.centroids
            assigned = np.concatenate([self.clusters.cluster_of_row, self._assign_appended(self.clusters)])
            replaced = self._to_rows(self.column.replaced)
            assigned[replaced] = assign_clusters(self.column.replacements, centroids)
        else:
            centroids = compute_centroids(self.take, self.live.to_rows())
            assigned = np.concatenate([assign_clusters(block, centroids) for block in self.iterate_blocks()])
        assigned[~self.live.mask] = len(centroids)
        return InvertedFile.from_assignments(centroids, assigned)

    def _assign_appended(self, clusters: InvertedFile) -> Numbers:
        """Return the nearest cluster of each vector that was appended after the inverted file was built."""
        unassigned = self.column.appended.values[len(self.appended_clusters) :]
        return np.concatenate([self.appended_clusters, assign_clusters(unassigned, clusters.centroids)])

    def iterate_blocks(self, clusters: InvertedFile | None = None) -> Iterator[FloatArray]:
        """Yield all vectors in blocks, ordered by row or, if ``clusters`` is not None, by cluster."""
        for start in range(0, len(self), _READ_BLOCK):
            places = np.arange(start, min(start + _READ_BLOCK, len(self)))
            yield self.take(places if clusters is None else clusters.rows[places].astype(np.int64))

    def measure_recall(self, ids: StringColumn) -> float:
        """Return the recall of approximate search: the share of the exact nearest vectors that this search returns.

        The queries are vectors of the index.
        """
        live = self.live.to_rows()
        queries = self.take(live[np.linspace(0, len(live) - 1, _RECALL_QUERIES).astype(np.int64)])
        exact = replace(self, clusters=self.clusters and self.clusters.with_nprobe(0), codes=None)
        recalls = []
        for query in queries[:, None]:  # one by one, because a search reads the clusters of all its queries
            ((rows, _),), ((expected, _),) = (vectors.nearest(query, RECALL_K, ids) for vectors in (self, exact))
            recalls.append(np.isin(expected, rows).mean())
        return float(np.mean(recalls))

    def nearest(
        self, vectors: FloatArray, k: int, ids: StringColumn, scores: Column | None = None
    ) -> list[tuple[IntArray, FloatArray]]:
        """Return (rows, cosines times ``scores``) of the ``k`` best vectors for each query vector, ties by ``ids``.

        With clusters, these are the nearest vectors in the clusters read for any query; with codes, most of them.

        Args:
            vectors: Unit query vectors, ``[vectors, dimension]``.
            k: Number of rows.
            ids: The ids of rows, by which ties are ordered.
            scores: The score of each row, by which its cosines are multiplied; None for plain cosines.
        """
        places, products = self._compute_products(vectors, k, use_codes=scores is None)
        return [
            self._select_nearest(_Candidates(query, places, query_products), k, ids, scores)
            for query, query_products in zip(vectors, products, strict=True)
        ]

    def _select_nearest(
        self, candidates: _Candidates, k: int, ids: StringColumn, scores: Column | None
    ) -> tuple[IntArray, FloatArray]:
        """Return the rows of the ``k`` best candidates for a query, and their cosines times ``scores``; ties by id.

        Without ``scores``, the cosines are not multiplied. The products of ``candidates`` are overwritten.
        """
        candidates = self._use_replacements(candidates)
        query, products, rows = candidates.query, candidates.products, self._to_rows(candidates.places)
        if scores is not None:
            products *= scores.take(rows)
        if self.live.deleted_count:
            products[~self.live.are_live(rows)] = -np.inf
        rounding = _ROUNDING if scores is None else _WEIGHTED_ROUNDING
        highest = _find_highest(products, min(k, len(products)), rounding)
        rows, cosines = rows[highest], compute_cosines(self.column.take(candidates.places[highest]), query)
        if scores is not None:
            cosines = cosines * scores.take(rows)
        top = find_top_positions(cosines, k, lambda positions: ids.rank(rows[positions]))
        return rows[top], cosines[top]

    def _compute_products(self, queries: FloatArray, k: int, *, use_codes: bool = True) -> tuple[IntArray, FloatArray]:
        """Return vectors that may be among the ``k`` nearest, as positions in :attr:`column`, and their dot products.

        Args:
            queries: Unit vectors, float32 ``[queries, dimension]``.
            k: Number of neighbours.
            use_codes: Whether binary codes preselect candidates; not possible if the caller weights the products.
        """
        base, appended = self.column.base, self.column.appended.values
        if not self.is_exact and self.live.live_count < _MIN_LIVE_SHARE * len(self):
            return self._compute_live_products(queries, k, use_codes=use_codes)
        if self.clusters is None:
            spans, places, since = [slice(0, len(base))], np.arange(len(base)), np.arange(len(appended))
        else:
            clusters = self.clusters.find_nearest_clusters(queries, k)
            spans, places = self.clusters.get_spans(clusters)
            is_near = is_in(self.appended_clusters.astype(np.int64), clusters)
            since = np.concatenate([np.flatnonzero(is_near), np.arange(len(is_near), len(appended))])
        if self.codes is None or not use_codes:
            parts = [compute_dot_product_matrix(base[span], queries) for span in spans]
        else:
            distances = self.codes.compute_distances(spans, queries)
            if self.live.deleted_count > (self.clusters.deleted_count if self.clusters else 0):
                distances[:, ~self.live.are_live(self._to_rows(places))] = np.iinfo(distances.dtype).max
            places = places[_find_nearest_codes(distances, _COMPARED_PER_K * k + _MIN_COMPARED)]
            parts = [compute_dot_product_matrix(base, queries, places)]
        places = np.concatenate([places, len(base) + since])
        return places, np.concatenate([*parts, compute_dot_product_matrix(appended[since], queries)], axis=1)

    def _compute_live_products(self, queries: FloatArray, k: int, *, use_codes: bool) -> tuple[IntArray, FloatArray]:
        """Return the live vectors that may be among the ``k`` nearest, as positions, and their dot products.

        With ``use_codes``, binary codes preselect these vectors.
        """
        base, places = self.column.base, self._live_places
        saved, since = places[places < len(base)], places[places >= len(base)]
        if self.codes is not None and use_codes:
            distances = self.codes.compute_distances_at(saved, queries)
            saved = saved[_find_nearest_codes(distances, _COMPARED_PER_K * k + _MIN_COMPARED)]
        parts = (base, saved), (self.column.appended.values, since - len(base))
        products = [compute_dot_product_matrix(vectors, queries, rows) for vectors, rows in parts]
        return np.concatenate([saved, since]), np.concatenate(products, axis=1)

    def _use_replacements(self, candidates: _Candidates) -> _Candidates:
        """Return ``candidates`` with all replaced vectors of :attr:`column`, by their new values."""
        replaced = self.column.replaced
        if not len(replaced):
            return candidates
        stays = ~is_in(candidates.places, replaced)
        products = compute_dot_products(self.column.replacements, candidates.query)
        return _Candidates(
            candidates.query,
            np.concatenate([candidates.places[stays], replaced]),
            np.concatenate([candidates.products[stays], products]),
        )

    def _to_places(self, rows: IntArray) -> IntArray:
        """Convert row numbers to positions in :attr:`column`, whose vectors are ordered by cluster."""
        return rows if self.clusters is None else _permute(rows, self.clusters.places)

    def _to_rows(self, places: IntArray) -> IntArray:
        """Convert positions in :attr:`column`, whose vectors are ordered by cluster, to row numbers."""
        return places if self.clusters is None else _permute(places, self.clusters.rows)


def _permute(numbers: IntArray, permutation: Numbers) -> IntArray:
    """Return ``permutation[number]`` for each of ``numbers``; numbers beyond its length stay unchanged."""
    return np.where(numbers < len(permutation), permutation.take(numbers, mode="clip"), numbers)


def _find_nearest_codes(distances: Distances, count: int) -> BoolArray:
    """Return a mask of the codes that are among the ``count`` nearest to at least one query, by ``distances``.

    The Hamming ``distances`` have the shape ``[queries, codes]``.
    """
    if distances.shape[1] <= count:
        return np.ones(distances.shape[1], dtype=bool)
    limits = [np.bincount(row).cumsum().searchsorted(count) for row in distances]  # of a few hundred distances
    is_selected: BoolArray = np.any(distances <= np.array(limits, dtype=distances.dtype)[:, None], axis=0)
    return is_selected


def _find_highest(products: FloatArray, k: int, margin: float) -> IntArray:
    """Return the indices of the ``k`` highest dot products, and of products that are at most ``margin`` lower."""
    if k <= 0:
        return np.empty(0, dtype=np.int64)
    # The k-th highest of block maxima is at most the k-th highest product, so few products remain to be compared.
    blocks = products[: len(products) // _MAX_BLOCK * _MAX_BLOCK].reshape(-1, _MAX_BLOCK)
    bound = np.partition(blocks.max(axis=1), -k)[-k] - margin if k <= len(blocks) else -np.inf
    positions = np.flatnonzero(products >= bound)
    candidates = products[positions]
    threshold = np.partition(candidates, -k)[-k] if k < len(positions) else -np.inf
    return positions[(candidates >= threshold - margin) & (candidates > -np.inf)]
