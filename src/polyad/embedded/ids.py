"""Ids by row, and the order they stand in: rows come as documents do, and ties are broken by id."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from polyad.embedded.columns import Column
from polyad.embedded.strings import Lookup, Strings, grown, hash_of
from polyad.model import FloatArray, IntArray
from polyad.text.keys import name_key

Rows = npt.NDArray[np.int32]

_PLAIN = re.compile("[a-z0-9 ]+")
_ARTICLES = ("the ", "a ", "an ")

_SMALLEST_STEP = 1e-5
"""Between two keys; floating-point numbers up to 10^9 tell keys apart that differ by a hundredth of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """The id of every row.

    Attributes:
        texts: By row.
        keys: For each row a number that is the lower, the lower its id; float64.
        ordered: The rows in the order of their ids; int32 ``[rows]``.
    """

    texts: Strings
    keys: Column
    ordered: Rows

    @classmethod
    def none(cls) -> Ids:
        """No row."""
        return cls(Strings.of([]), Column.of(np.empty(0, dtype=np.float64)), np.empty(0, dtype=np.int32))

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
        place = bisect_left(self.ordered, id, key=self.texts.__getitem__)
        found = None
        while place < len(self.ordered) and self.texts[int(self.ordered[place])] == id:
            found = max(found or 0, int(self.ordered[place]))
            place += 1
        return found

    def extended(self, ids: Sequence[str]) -> Ids:
        """The same with more rows; an id may have gone and come again."""
        if not ids:
            return self
        before = len(self)
        sorted_new = sorted(range(len(ids)), key=ids.__getitem__)
        places = np.array(
            [bisect_left(self.ordered, ids[new], key=self.texts.__getitem__) for new in sorted_new]
            if before
            else [0] * len(ids)
        )
        ordered = np.insert(self.ordered, places, before + np.array(sorted_new)).astype(np.int32)
        texts = self.texts.extended(ids)
        between = self._between(places)
        if between is None:
            whole = np.empty(len(ordered), dtype=np.float64)
            whole[ordered] = np.arange(len(ordered))
            return Ids(texts, Column.of(whole), ordered)
        keys = np.empty(len(ids), dtype=np.float64)
        keys[sorted_new] = between
        return Ids(texts, self.keys.extended(keys), ordered)

    def _between(self, places: IntArray) -> FloatArray | None:
        """Keys for ids that come, in this order, before the rows at some places of the order.

        None where the numbers between two neighbours are used up.
        """
        first = np.searchsorted(places, places)
        count = np.searchsorted(places, places, side="right") - first
        low, high = np.full(len(places), -1.0), count.astype(np.float64)
        if len(self.ordered):
            last = len(self.ordered) - 1
            keys = self.keys.at(self.ordered[[0, last]].astype(np.int64))
            after, inside = places > 0, places <= last
            low[:] = keys[0] - 1
            low[after] = self.keys.at(self.ordered[places[after] - 1].astype(np.int64))
            high += keys[1] + 1
            high[inside] = self.keys.at(self.ordered[places[inside]].astype(np.int64))
        step = (high - low) / (count + 1)
        if step.min() < _SMALLEST_STEP:
            return None
        between: FloatArray = low + step * (np.arange(len(places)) - first + 1)
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
