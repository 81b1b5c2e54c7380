"""Ids by row, and the order they stand in: rows come as documents do, and ties are broken by id."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from polyad.model import FloatArray, IntArray
from polyad.snapshot.columns import Column
from polyad.snapshot.growing import grown
from polyad.snapshot.string_table import Lookup, Strings, hash_of
from polyad.text.keys import name_key

Rows = npt.NDArray[np.int32]

_PLAIN = re.compile("[a-z0-9 ]+")
_ARTICLES = ("the ", "a ", "an ")

_MARKED = 1024
"""Ids between two that are in memory: those between are looked up in the arrays, step by step."""

_SMALLEST_STEP = 1e-5
"""Between two keys; floating-point numbers up to 10^9 tell keys apart that differ by a hundredth of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """The id of every row.

    Attributes:
        texts: By row.
        keys: For each row a number that is the lower, the lower its id; float64.
        ordered: The first rows in the order of their ids; int32.
        since: The rows after these, likewise.
        marks: Of the first rows every :data:`_MARKED`-th id in this order: in memory, and soon looked through.
    """

    texts: Strings
    keys: Column
    ordered: Rows
    since: Rows
    marks: Sequence[str]

    @classmethod
    def of(cls, texts: Strings, keys: Column, ordered: Rows) -> Ids:
        """Rows whose order is known."""
        return cls(texts, keys, ordered, ordered[:0], texts.take(ordered[::_MARKED].astype(np.int64)))

    @classmethod
    def none(cls) -> Ids:
        """No row."""
        return cls.of(Strings.of([]), Column.of(np.empty(0, dtype=np.float64)), np.empty(0, dtype=np.int32))

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, row: int) -> str:
        return self.texts[row]

    def take(self, rows: IntArray | Sequence[int]) -> list[str]:
        """The ids of some rows."""
        return self.texts.take(rows)

    def order(self, rows: IntArray) -> FloatArray:
        """Numbers of some rows in the order of their ids."""
        keys: FloatArray = self.keys.at(rows)
        return keys

    def find(self, id: str) -> int | None:
        """The row of an id that came last; None where there is none."""
        found = None
        for rows, place in ((self.ordered, self._place(id)), (self.since, self._place_since(id))):
            while place < len(rows) and self.texts[int(rows[place])] == id:
                found = max(found or 0, int(rows[place]))
                place += 1
        return found

    def all_ordered(self) -> Rows:
        """All rows in the order of their ids."""
        if not len(self.since):
            return self.ordered
        first, later = (self.order(rows.astype(np.int64)) for rows in (self.ordered, self.since))
        return np.insert(self.ordered, np.searchsorted(first, later), self.since)

    def extended(self, ids: Sequence[str]) -> Ids:
        """The same with more rows; an id may have gone and come again."""
        if not ids:
            return self
        new = sorted(range(len(ids)), key=ids.__getitem__)
        in_order = [ids[one] for one in new]
        places = [np.array(list(map(place, in_order))) for place in (self._place, self._place_since)]
        rows = (len(self) + np.array(new)).astype(np.int32)
        texts = self.texts.extended(ids)
        between = self._between(*places) if len(self) else None
        if between is None:
            ordered = np.insert(self.all_ordered(), places[0] + places[1], rows)
            numbers = np.empty(len(ordered), dtype=np.float64)
            numbers[ordered] = np.arange(len(ordered))
            return Ids.of(texts, Column.of(numbers), ordered)
        keys = np.empty(len(ids), dtype=np.float64)
        keys[new] = between
        since = np.insert(self.since, places[1], rows)
        return Ids(texts, self.keys.extended(keys), self.ordered, since, self.marks)

    def _place(self, id: str) -> int:
        """The place in :attr:`ordered` of the first row whose id is not before another."""
        last = bisect_left(self.marks, id) * _MARKED
        first = max(0, last - _MARKED + 1)
        return bisect_left(self.ordered, id, first, min(last, len(self.ordered)), key=self.texts.__getitem__)

    def _place_since(self, id: str) -> int:
        """The same in :attr:`since`."""
        return bisect_left(self.since, id, key=self.texts.__getitem__)

    def _between(self, *places: IntArray) -> FloatArray | None:
        """Keys for ids that come, in this order, before the rows at some places of :attr:`ordered` and :attr:`since`.

        Of ids to which others come. None where the numbers between two neighbours are used up.
        """
        low, high = np.full(len(places[0]), -np.inf), np.full(len(places[0]), np.inf)
        for rows, own in zip((self.ordered, self.since), places, strict=True):
            after, inside = own > 0, own < len(rows)
            low[after] = np.maximum(low[after], self.order(rows[own[after] - 1].astype(np.int64)))
            high[inside] = np.minimum(high[inside], self.order(rows[own[inside]].astype(np.int64)))
        gap = places[0] + places[1]
        first = np.searchsorted(gap, gap)
        count = np.searchsorted(gap, gap, side="right") - first
        low = np.where(np.isfinite(low), low, high - count - 1)
        step = (np.where(np.isfinite(high), high, low + count + 1) - low) / (count + 1)
        if step.min() < _SMALLEST_STEP:
            return None
        between: FloatArray = low + step * (np.arange(len(gap)) - first + 1)
        return between


@dataclass(frozen=True, slots=True, eq=False)
class EntityKeys:
    """The key of every entity by row, and its row by key; those that no hyperedge joins any more keep theirs.

    Attributes:
        ids: The keys.
        lookups: Rows by the hashes of keys, and of what else finds them (:meth:`found`).
    """

    ids: Ids
    lookups: tuple[Lookup, ...]

    @classmethod
    def none(cls) -> EntityKeys:
        """No entity."""
        return cls(Ids.none(), ())

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row: int) -> str:
        return self.ids[row]

    def rows(self, keys: Sequence[str]) -> IntArray:
        """The row of each of some keys, of several the last; -1 where there never was one."""
        return self.found(keys)[0]

    def found(self, keys: Sequence[str]) -> tuple[IntArray, dict[int, list[int]]]:
        """What some keys find.

        Returns:
            The row of each, as :meth:`rows` gives it; and by place in ``keys``, the rows of entities with other keys
            whose own text has this one as a name's key, where there are any.
        """
        found = np.full(len(keys), -1)
        alike: dict[int, set[int]] = {}
        hashes = list(map(hash_of, keys))
        for lookup in self.lookups:
            for place, row in zip(*(column.tolist() for column in lookup.pairs(hashes)), strict=True):
                key = self.ids[row]
                if key == keys[place]:
                    found[place] = max(found[place], row)
                elif keys[place] in _spelt_alike(key):
                    alike.setdefault(place, set()).add(row)
        return found, {place: sorted(rows) for place, rows in alike.items()}

    def extended(self, keys: Sequence[str]) -> EntityKeys:
        """The same with more rows; an entity that went and came again has another."""
        if not keys:
            return self
        others = [(row, other) for row, key in enumerate(keys, start=len(self)) for other in _spelt_alike(key)]
        hashes = np.fromiter(map(hash_of, chain(keys, (other for _, other in others))), dtype=np.uint64)
        rows = np.array([row for row, _ in others], dtype=np.int64)
        added = Lookup.of(hashes, np.concatenate([np.arange(len(self), len(self) + len(keys)), rows]))
        return EntityKeys(self.ids.extended(keys), grown(self.lookups, added))


def _spelt_alike(key: str) -> tuple[str, ...]:
    """What else finds an entity: the key of its name, where it was given as data and is known by its own text."""
    if _PLAIN.fullmatch(key) and not key.startswith(_ARTICLES):  # most keys, at no cost
        return ()
    other = name_key(key)
    return (other,) if other not in ("", key) else ()
