"""The vectors of passages or hyperedges, and which of them are nearest to a question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from polyad.hypergraph.cosines import compute_cosines, compute_dot_product_matrix, compute_dot_products
from polyad.hypergraph.sparse import find_top_positions, is_in
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.snapshot.binary_codes import BinaryCodes, Distances
from polyad.snapshot.columns import Column
from polyad.snapshot.growing import Presence
from polyad.snapshot.ids import Ids
from polyad.snapshot.inverted_file import InvertedFile, Numbers, cell_count, centres_of, nearest_centres

_ROUNDING = 2e-6
"""By how much a cosine may differ before and after it is rounded."""

_SCORED = 100 * _ROUNDING
"""The same for a cosine times a score of at most 100."""

RECALLED = 40
"""How many of the nearest vectors recall is measured by."""

_ASKED = 50
"""Vectors whose nearest it is measured by."""

_WAITING = 64
"""Vectors that may wait for their cells to be found, all at once: a search looks at each of them."""

_COMPARED = 4
"""Times as many vectors as are asked for that are compared of those looked at by their codes."""

_COMPARED_AT_LEAST = 400
"""More of them."""

_READ = 1 << 16
"""Vectors read at a time where all are."""


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A unit vector for each row.

    Attributes:
        column: float32 ``[rows, dimension]``. Those that lie in a file lie there by cells, if there are any.
        there: Which rows have not gone.
        cells: Of those that lie in a file; None where a search looks at all.
        codes: Of the same, as they lie there; None where each that is looked at is compared.
        tail_cells: The nearest cell of those that came since, but for the last few; without cells empty.
    """

    column: Column
    there: Presence
    cells: InvertedFile | None = None
    codes: BinaryCodes | None = None
    tail_cells: Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    @classmethod
    def none(cls, dimension: int) -> Vectors:
        """No row."""
        return cls(Column.of(np.empty((0, dimension), dtype=np.float32)), Presence.none())

    def __len__(self) -> int:
        return len(self.column)

    def advanced(self, there: Presence, vectors: FloatArray) -> Vectors:
        """The same with more rows, of which those have not gone that are ``there`` now."""
        later = replace(self, column=self.column.extended(vectors), there=there)
        if self.cells is None or len(later.column.tail) - len(self.tail_cells) < _WAITING:
            return later
        return replace(later, tail_cells=later._cells_of_tail(self.cells))

    def replaced(self, rows: IntArray, vectors: FloatArray) -> Vectors:
        """The same with other vectors of some rows, sorted."""
        places = self._places(rows)
        order = np.argsort(places)
        later = replace(self, column=self.column.replaced(places[order], vectors[order]))
        if self.cells is None:
            return later
        cells, since = self.tail_cells.copy(), rows - len(self.cells.rows)
        known = (since >= 0) & (since < len(cells))
        cells[since[known]] = nearest_centres(vectors[known], self.cells.centres)
        return replace(later, tail_cells=cells)

    def at(self, rows: IntArray) -> FloatArray:
        """The vectors of some rows."""
        found: FloatArray = self.column.at(self._places(rows))
        return found

    def in_cells(self) -> InvertedFile:
        """All rows in cells: in those there are until there are twice as many vectors, and then in new ones."""
        count = cell_count(len(self) - self.there.gone)
        if self.cells is not None and len(self.cells.centres) == count:
            centres, cells = self.cells.centres, np.concatenate([self.cells.of_rows, self._cells_of_tail(self.cells)])
        else:
            centres = centres_of(self.at, self.there.rows())
            cells = np.concatenate([nearest_centres(block, centres) for block in self.blocks()])
        cells[~self.there.whole] = len(centres)
        return InvertedFile.of(centres, cells)

    def _cells_of_tail(self, cells: InvertedFile) -> Numbers:
        """The nearest cell of each that came since."""
        waiting = self.column.tail[len(self.tail_cells) :]
        return np.concatenate([self.tail_cells, nearest_centres(waiting, cells.centres)])

    def blocks(self, cells: InvertedFile | None = None) -> Iterator[FloatArray]:
        """All vectors, some at a time, by row or by cells."""
        for start in range(0, len(self), _READ):
            places = np.arange(start, min(start + _READ, len(self)))
            yield self.at(places if cells is None else cells.rows[places].astype(np.int64))

    def recall(self, ids: Ids) -> float:
        """The share of the nearest that a search finds, measured on some of the vectors themselves."""
        assert self.cells is not None, "without cells all are looked at"
        there = self.there.rows()
        asked = self.at(there[np.linspace(0, len(there) - 1, _ASKED).astype(np.int64)])
        exact = replace(self, cells=self.cells.looking_into(0), codes=None)
        hits = []
        for vector in asked[:, None]:  # one by one: cells are looked into for all that are asked together
            ((found, _),), ((expected, _),) = (searched.nearest(vector, RECALLED, ids) for searched in (self, exact))
            hits.append(np.isin(expected, found).mean())
        return float(np.mean(hits))

    def nearest(
        self, vectors: FloatArray, k: int, ids: Ids, scores: Column | None = None
    ) -> list[tuple[IntArray, FloatArray]]:
        """For each of some vectors the ``k`` nearest rows and their cosines, best first, ties by id.

        With cells they are the nearest of those in the cells that are looked into for any of the vectors; with codes,
        most of these.

        Args:
            vectors: Unit vectors, ``[vectors, dimension]``.
            k: How many.
            ids: Of the rows.
            scores: What to multiply cosines by, by row.
        """
        places, products = self._compared(vectors, k, scores is not None)
        return [self._best(vector, places, own, k, ids, scores) for vector, own in zip(vectors, products, strict=True)]

    def _best(
        self, vector: FloatArray, places: IntArray, scored: FloatArray, k: int, ids: Ids, scores: Column | None
    ) -> tuple[IntArray, FloatArray]:
        """Of the places that are looked at, the ``k`` nearest to a vector, as rows; ``scored`` is written over."""
        places, scored = self._as_changed(vector, places, scored)
        rows = self._rows(places)
        if scores is not None:
            scored *= scores.at(rows)
        if self.there.gone:
            scored[~self.there.at(rows)] = -np.inf
        high = _highest(scored, min(k, len(scored)), _ROUNDING if scores is None else _SCORED)
        rows, near = rows[high], compute_cosines(self.column.at(places[high]), vector)
        if scores is not None:
            near = near * scores.at(rows)
        best = find_top_positions(near, k, lambda chosen: ids.order(rows[chosen]))
        return rows[best], near[best]

    def _compared(self, vectors: FloatArray, k: int, is_weighted: bool = False) -> tuple[IntArray, FloatArray]:
        """The places that are compared for the ``k`` nearest to each of some vectors, and the products with each.

        Where products are weighted, codes do not tell which may be highest.
        """
        base, tail = self.column.base, self.column.tail
        if self.cells is None:
            parts = [compute_dot_product_matrix(part, vectors) for part in (base, tail)]
            return np.arange(len(self)), np.concatenate(parts, axis=1)
        near = self.cells.near(vectors, k)
        spans, places = self.cells.spans(near)
        if self.codes is None or not self.cells.searched or is_weighted:
            parts = [compute_dot_product_matrix(base[span], vectors) for span in spans]
        else:
            distances = self.codes.distances(spans, vectors)
            places = places[self._may_be_nearest(self.cells, places, distances, _COMPARED * k + _COMPARED_AT_LEAST)]
            parts = [compute_dot_product_matrix(base.take(places, axis=0), vectors)]
        is_near = is_in(self.tail_cells.astype(np.int64), near)
        since = np.concatenate([np.flatnonzero(is_near), np.arange(len(is_near), len(tail))])
        places = np.concatenate([places, len(base) + since])
        return places, np.concatenate([*parts, compute_dot_product_matrix(tail[since], vectors)], axis=1)

    def _may_be_nearest(self, cells: InvertedFile, places: IntArray, distances: Distances, count: int) -> BoolArray:
        """Which of some places, but of vectors that have gone, have the ``count`` lowest distances to any vector.

        And all whose distance equals the last of these.
        """
        if len(places) <= count:
            return np.ones(len(places), dtype=bool)
        if self.there.gone > cells.left_out:
            distances[:, ~self.there.whole[cells.rows.take(places)]] = np.iinfo(distances.dtype).max
        found: BoolArray = np.any(distances <= np.partition(distances, count - 1)[:, count - 1 : count], axis=0)
        return found

    def _as_changed(self, vector: FloatArray, places: IntArray, scored: FloatArray) -> tuple[IntArray, FloatArray]:
        """The same places and products, with those that have other vectors now as these are."""
        changed = self.column.changed
        if not len(changed):
            return places, scored
        same = ~is_in(places, changed)
        return (
            np.concatenate([places[same], changed]),
            np.concatenate([scored[same], compute_dot_products(self.column.values, vector)]),
        )

    def _places(self, rows: IntArray) -> IntArray:
        """Where the vectors of some rows lie."""
        return rows if self.cells is None else _moved(rows, self.cells.places)

    def _rows(self, places: IntArray) -> IntArray:
        """Whose vectors lie at some places."""
        return places if self.cells is None else _moved(places, self.cells.rows)


def _moved(numbers: IntArray, to: Numbers) -> IntArray:
    """Where each number goes; those beyond stay."""
    return np.where(numbers < len(to), to.take(numbers, mode="clip"), numbers)


_BLOCK = 64


def _highest(products: FloatArray, k: int, margin: float) -> IntArray:
    """The rows of the ``k`` highest products, and of those that rounding may make as high."""
    if k <= 0:
        return np.empty(0, dtype=np.int64)
    # The k-th highest of the maxima of blocks is no higher than the k-th highest of all: few remain to be compared.
    blocks = products[: len(products) // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
    bound = np.partition(blocks.max(axis=1), -k)[-k] - margin if k <= len(blocks) else -np.inf
    rows = np.flatnonzero(products >= bound)
    least = np.partition(products[rows], -k)[-k] if k < len(rows) else -np.inf
    found = products[rows]
    return rows[(found >= least - margin) & (found > -np.inf)]
