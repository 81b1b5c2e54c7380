"""Scores of some rows, and 0 for all others: what is computed of the few rows that a search reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.incidence import distinct
from polyad.model import BoolArray, FloatArray, IntArray

Values = npt.NDArray[np.floating]

Order = Callable[[IntArray], "npt.NDArray[np.generic]"]
"""Keys of rows, such that a row whose id is lower has a lower key: what breaks ties."""


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """A score for each of some rows; rows that are not among them have 0.

    Attributes:
        rows: Sorted, each once; int64 ``[rows]``.
        values: float32 ``[rows]``.
    """

    rows: IntArray
    values: FloatArray

    @classmethod
    def none(cls) -> Scores:
        """No row has any."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))

    @classmethod
    def of(cls, rows: IntArray, values: Values) -> Scores:
        """Scores of rows in any order, each given once."""
        order = rows.argsort()
        return cls(rows[order], values[order].astype(np.float32, copy=False))

    @classmethod
    def highest(cls, rows: IntArray, values: Values) -> Scores:
        """Of each row the highest of its values, where that is above 0.

        >>> Scores.highest(np.array([7, 3, 7]), np.float32([0.5, 1, 0.75])).values.tolist()
        [1.0, 0.75]
        """
        known, places = _places(rows)
        found = np.zeros(len(known), dtype=np.float32)
        np.maximum.at(found, places, values.astype(np.float32, copy=False))
        return cls(known, found)

    @classmethod
    def summed(cls, rows: IntArray, values: Values) -> Scores:
        """Of each row the sum of its values, added in the order given."""
        known, places = _places(rows)
        found = np.zeros(len(known), dtype=np.float32)
        np.add.at(found, places, values.astype(np.float32, copy=False))
        return cls(known, found)

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, rows: IntArray) -> FloatArray:
        """The scores of some rows, in any order; float32 ``[rows]``."""
        if not len(self.rows):
            return np.zeros(len(rows), dtype=np.float32)
        places, known = self.places(rows)
        found: FloatArray = np.where(known, self.values[places], np.float32(0))
        return found

    def places(self, rows: IntArray) -> tuple[IntArray, BoolArray]:
        """Where some rows stand in :attr:`rows`, and which of them do at all. Only for scores that are not empty."""
        places = np.minimum(self.rows.searchsorted(rows), len(self.rows) - 1)
        return places, self.rows[places] == rows

    def with_more(self, rows: IntArray, values: FloatArray) -> Scores:
        """These and others, of rows that have none yet."""
        return Scores.of(np.concatenate([self.rows, rows]), np.concatenate([self.values, values]))

    def above(self, threshold: float) -> Scores:
        """Those above a threshold."""
        above = self.values > threshold
        return Scores(self.rows[above], self.values[above])

    def best(self, k: int, order: Order) -> IntArray:
        """The rows of the ``k`` highest scores, best first, ties by ``order``."""
        return self.rows[best_places(self.values, k, lambda places: order(self.rows[places]))]


def among(rows: IntArray, known: IntArray) -> BoolArray:
    """Which of some rows are among others, which are sorted. Many times faster than ``numpy.isin``.

    >>> among(np.array([5, 2, 9]), np.array([2, 5])).tolist()
    [True, True, False]
    """
    if not len(known):
        return np.zeros(len(rows), dtype=bool)
    found: BoolArray = known[np.minimum(known.searchsorted(rows), len(known) - 1)] == rows
    return found


def union(rows: Iterable[IntArray]) -> IntArray:
    """All rows of some arrays, sorted, each once."""
    return distinct(np.concatenate([np.empty(0, dtype=np.int64), *rows]))


def best_places(values: Values, k: int, order: Order) -> IntArray:
    """The places of the ``k`` highest values, best first.

    Args:
        values: ``[values]``.
        k: How many, or all where there are fewer.
        order: Of places, breaks ties.
    """
    if k <= 0:
        return np.empty(0, dtype=np.int64)
    least = np.partition(values, -k)[-k] if k < len(values) else -np.inf
    places = (values >= least).nonzero()[0]
    ranked = places[(-values[places]).argsort(kind="stable")]
    descending = values[ranked]
    if (descending[1:] == descending[:-1]).any():
        ranked = places[np.lexsort((order(places), -values[places]))]
    return ranked[:k]


def _places(rows: IntArray) -> tuple[IntArray, IntArray]:
    known = distinct(rows)
    return known, known.searchsorted(rows)
