"""The vectors of passages or hyperedges, and which of them are nearest to a question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.embedded.columns import Column
from polyad.embedded.ids import Ids
from polyad.hypergraph.cosines import cosines, products
from polyad.hypergraph.sparse import Scores
from polyad.model import BoolArray, FloatArray, IntArray

_ROUNDING = 2e-6
"""By how much a cosine may differ before and after it is rounded."""

_SCORED = 100 * _ROUNDING
"""The same for a cosine times a score of at most 100."""


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A unit vector for each row.

    Attributes:
        column: float32 ``[rows, dimension]``.
        is_there: Which rows have not gone.
        gone: How many have.
    """

    column: Column
    is_there: BoolArray
    gone: int

    @classmethod
    def none(cls, dimension: int) -> Vectors:
        """No row."""
        return cls(Column.of(np.empty((0, dimension), dtype=np.float32)), np.empty(0, dtype=bool), 0)

    def advanced(self, gone: IntArray, vectors: FloatArray) -> Vectors:
        """The same without some rows, and with more."""
        is_there = np.concatenate([self.is_there, np.ones(len(vectors), dtype=bool)])
        is_there[gone] = False
        return Vectors(self.column.extended(vectors), is_there, self.gone + len(gone))

    def nearest(
        self, vectors: FloatArray, k: int, ids: Ids, scores: Column | None = None
    ) -> list[tuple[IntArray, FloatArray]]:
        """For each of some vectors the ``k`` nearest rows and their cosines, best first, ties by id.

        Args:
            vectors: Unit vectors, ``[vectors, dimension]``.
            k: How many.
            ids: Of the rows.
            scores: What to multiply cosines by, by row.
        """
        parts = [part for part in (self.column.base, self.column.tail) if len(part)]
        if not parts:
            return [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)) for _ in vectors]
        found = []
        for vector in vectors:
            scored = np.concatenate([products(part, vector) for part in parts])
            if scores is not None:
                scored *= scores.whole()
            if self.gone:
                scored[~self.is_there] = -np.inf
            rows = _highest(scored, min(k, len(scored) - self.gone), _ROUNDING if scores is None else _SCORED)
            near = cosines(self.column.at(rows), vector)
            if scores is not None:
                near = near * scores.at(rows)
            best = Scores(rows, near).best(k, ids.order)
            found.append((best, Scores(rows, near).at(best)))
        return found

    def at(self, rows: IntArray) -> FloatArray:
        """The vectors of some rows."""
        found: FloatArray = self.column.at(rows)
        return found


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
