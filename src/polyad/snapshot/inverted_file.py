"""Cells of near vectors: a search looks into the few whose centres are nearest to the question, not at all vectors.

Vectors of one cell lie side by side in their file, so that a search reads some stretches of it. What it looks at it
compares exactly; what it may miss is a vector near to the question whose cell is not (an inverted file: Sivic and
Zisserman, 2003). The centres are found by k-means on the sphere (Dhillon and Modha, 2001) among a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.cosines import compute_dot_product_matrix
from polyad.hypergraph.incidence import expand_ranges
from polyad.hypergraph.sparse import union
from polyad.model import FloatArray, IntArray

Numbers = npt.NDArray[np.int32]

_SAMPLE = 12
"""Vectors for each cell from which centres are found."""

_ROUNDS = 4

_SPREAD = 25
"""A search for k vectors looks at this many times k at least."""

_BLOCK = 4096


@dataclass(frozen=True, slots=True, eq=False)
class InvertedFile:
    """Which vectors lie in which cell. A vector's place is where it lies: those of one cell are side by side, by row.

    Behind them lie those that had gone, which are in no cell.

    Attributes:
        centres: Of unit length; float32 ``[cells, dimension]``.
        offsets: The places of cell i are ``offsets[i]:offsets[i + 1]``; int64 ``[cells + 1]``.
        rows: The row at each place.
        places: The place of each row.
        searched: Cells that a search looks into; 0 for all.
    """

    centres: FloatArray
    offsets: IntArray
    rows: Numbers
    places: Numbers
    searched: int = 0

    @classmethod
    def of(cls, centres: FloatArray, cell_of_row: Numbers) -> InvertedFile:
        """Rows by their cells; those that have gone by the number after the last."""
        rows = np.argsort(cell_of_row, kind="stable").astype(np.int32)
        places = np.empty(len(rows), dtype=np.int32)
        places[rows] = np.arange(len(rows), dtype=np.int32)
        return cls(centres, np.searchsorted(cell_of_row[rows], np.arange(len(centres) + 1)), rows, places)

    @property
    def of_rows(self) -> Numbers:
        """The cell of each row; of those that had gone the number after the last."""
        cells = np.full(len(self.rows), len(self.centres), dtype=np.int32)
        cells[: self.offsets[-1]] = np.repeat(np.arange(len(self.centres)), np.diff(self.offsets))
        return cells[self.places]

    @property
    def left_out(self) -> int:
        """How many are in no cell, since they had gone."""
        return len(self.rows) - int(self.offsets[-1])

    def looking_into(self, searched: int) -> InvertedFile:
        """The same, of which a search looks into so many."""
        return replace(self, searched=searched)

    def near(self, vectors: FloatArray, k: int) -> IntArray:
        """The cells to look into for the ``k`` vectors nearest to each of some; sorted."""
        if not self.searched:
            return np.arange(len(self.centres))
        return union(self._nearest(cosines, k) for cosines in compute_dot_product_matrix(self.centres, vectors))

    def spans(self, cells: IntArray) -> tuple[list[slice], IntArray]:
        """The places of each of some cells, as spans and one after the other."""
        starts, ends = self.offsets[cells], self.offsets[cells + 1]
        spans = [slice(*both) for both in zip(starts.tolist(), ends.tolist(), strict=True)]
        return spans, expand_ranges(starts, ends - starts)

    def _nearest(self, cosines: FloatArray, k: int) -> IntArray:
        """The cells to look into for one vector, by its cosines to the centres."""
        sizes, count = np.diff(self.offsets), min(self.searched, len(cosines))
        best = np.argpartition(-cosines, count - 1)[:count]
        if sizes[best].sum() >= _SPREAD * k or count == len(cosines):
            return best
        order = np.argsort(-cosines, kind="stable")
        return order[: int(np.searchsorted(np.cumsum(sizes[order]), _SPREAD * k)) + 1]


def cell_count(rows: int) -> int:
    """How many cells there are of so many rows: the same until there are twice as many."""
    return int(8 * np.sqrt(2.0 ** np.round(np.log2(max(1, rows)))))


def centres_of(vectors: Callable[[IntArray], FloatArray], rows: IntArray) -> FloatArray:
    """The centres of cells for some vectors.

    Args:
        vectors: Gives those of some rows, of unit length.
        rows: All there are; at least one.
    """
    count = min(cell_count(len(rows)), len(rows))
    drawn = np.random.default_rng(0).permutation(len(rows))[: _SAMPLE * count]
    sample = vectors(rows[np.sort(drawn)])
    centres = sample[np.linspace(0, len(sample) - 1, count).astype(np.int64)]
    for _ in range(_ROUNDS):
        cells = nearest_centres(sample, centres)
        order = np.argsort(cells, kind="stable")
        filled, first = np.unique(cells[order], return_index=True)
        sums = np.add.reduceat(sample[order], first, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres[filled] = np.where(lengths > 0, sums / np.maximum(lengths, 1e-9), centres[filled])
    return centres


def nearest_centres(vectors: FloatArray, centres: FloatArray) -> Numbers:
    """For each of some vectors the centre that it has the highest cosine with; int32 ``[vectors]``."""
    found = np.empty(len(vectors), dtype=np.int32)
    for start in range(0, len(vectors), _BLOCK):
        found[start : start + _BLOCK] = np.argmax(vectors[start : start + _BLOCK] @ centres.T, axis=1)
    return found
