"""The languages of passages: which passages are in which language, and the mean vector of each language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np

from polyad.model import BoolArray, FloatArray, IntArray
from polyad.snapshot.columns import LiveRows, StringColumn
from polyad.snapshot.tables import PassageColumns
from polyad.snapshot.term_index import PassageTerms
from polyad.snapshot.vectors import Vectors

_MAX_MEAN = 10_000
"""Passages of a language from which its mean vector is computed, at equal distances if there are more."""


@dataclass(frozen=True, slots=True, eq=False)
class LanguagePassages:
    """The live passages in one language.

    Attributes:
        mean: Mean of their vectors, float32 ``[dimension]``.
    """

    mean: FloatArray
    _vectors: Vectors
    _ids: StringColumn

    @classmethod
    def from_rows(cls, rows: IntArray, vectors: Vectors, ids: StringColumn) -> LanguagePassages:
        """Select the passages ``rows``, sorted, from the vectors and ids of all."""
        mask = np.zeros(len(vectors), dtype=bool)
        mask[rows] = True
        sample = rows[np.linspace(0, len(rows) - 1, min(len(rows), _MAX_MEAN)).astype(np.int64)]
        mean = np.round(vectors.take(sample).astype(np.float64).mean(axis=0), 7)
        return cls(mean.astype(np.float32), replace(vectors, live=LiveRows.from_mask(mask)), ids)

    @property
    def count(self) -> int:
        """The number of passages."""
        return self._vectors.live.live_count

    def contains(self, rows: IntArray) -> BoolArray:
        """Return whether each of the passages ``rows`` is in the language."""
        return self._vectors.live.are_live(rows)

    def nearest(self, vectors: FloatArray, k: int) -> list[tuple[IntArray, FloatArray]]:
        """Return (rows, cosines) of the ``k`` nearest passages for each query vector, best first."""
        return self._vectors.nearest(vectors, k, self._ids)


@dataclass(slots=True, eq=False)
class LanguageCache:
    """A cache of the passages by language, of a snapshot and of its parts, for several threads."""

    _cached: WeakKeyDictionary[PassageTerms, Mapping[str, LanguagePassages]] = field(default_factory=WeakKeyDictionary)

    def get(self, passages: PassageColumns) -> Mapping[str, LanguagePassages]:
        """Return the passages by ISO 639-1 code, without those of an unknown language; empty for one language."""
        terms, ids = passages.terms, passages.ids.strings
        cached = self._cached.get(terms)
        if cached is None:
            codes = list(terms.count_languages())
            cached = {
                code: LanguagePassages.from_rows(terms.find_in_language(code), passages.vectors, ids)
                for code in (codes if len(codes) > 1 else ())
            }
            self._cached[terms] = cached
        return cached
