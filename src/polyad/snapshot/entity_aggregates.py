"""What the store says of common entities, counted in parts: only what came since is read, and parts some of which went.

An entity is made of all its incidences, and some have a hundred thousand. What was counted of them is kept with the
arrays of a snapshot, so that to show one takes no longer the more hyperedges join it, whatever comes and goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyad.model import IntArray
from polyad.protocols.store import EntityAggregate
from polyad.snapshot.string_table import Strings

PART = 128
"""Hyperedges of an entity that are counted together: so many at most are read again where one has gone."""


class Part(NamedTuple):
    """What some hyperedges say of an entity: by number, those after the part before, up to one.

    Attributes:
        last: The number of that one, or a lower one than that of the first of the next part.
        tally: What was counted; None where some of it has gone since.
    """

    last: int
    tally: EntityAggregate | None


@dataclass(frozen=True, slots=True, eq=False)
class EntityAggregates:
    """What was counted of some entities, by row.

    Attributes:
        rows: For each part that was counted before the snapshot was kept, the row of its entity; sorted.
        lasts: The last hyperedge of each, ascending for each entity.
        texts: What was counted, as JSON.
        gone: Places of those of which something has gone since.
        made: All parts of the entities that were counted, or counted anew, since; grows with what is shown.
    """

    rows: IntArray
    lasts: IntArray
    texts: Strings
    gone: frozenset[int] = frozenset()
    made: dict[int, tuple[Part, ...]] = field(default_factory=dict)

    @classmethod
    def none(cls) -> EntityAggregates:
        """Nothing was counted."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing, Strings.of([]))

    def parts(self, row: int, last: int) -> tuple[Part, ...]:
        """What was counted of an entity, of hyperedges up to one; empty for nothing."""
        parts = self.made.get(row) or tuple(self._kept(place) for place in self._places(row))
        return tuple(part for part in parts if part.last <= last)  # the others were counted for a later snapshot

    def add(self, parts: Mapping[int, tuple[Part, ...]]) -> None:
        """Keep what was counted of some entities."""
        self.made.update(parts)

    def without(self, rows: IntArray, hyperedges: IntArray) -> EntityAggregates:
        """The same after hyperedges went; ``rows`` and ``hyperedges`` are the entity and the number of each pair."""
        if not len(rows):
            return self
        gone, made = set(self.gone), dict(self.made)
        for row, number in zip(rows.tolist(), hyperedges.tolist(), strict=True):
            if row in made:
                made[row] = _without(made[row], number)
            else:
                places = self._places(row)
                of_part = places.start + int(np.searchsorted(self.lasts[places.start : places.stop], number))
                gone.update(range(of_part, min(of_part + 1, places.stop)))
        return replace(self, gone=frozenset(gone), made=made)

    def whole(self) -> EntityAggregates:
        """All of them as texts."""
        before = [place for place, row in enumerate(self.rows.tolist()) if row not in self.made]
        kept = [(int(self.rows[place]), self._kept(place)) for place in before]
        made = [(row, part) for row, parts in list(self.made.items()) for part in parts]
        parts = sorted(kept + made, key=lambda own: (own[0], own[1].last))
        return EntityAggregates(
            np.array([row for row, _ in parts], dtype=np.int64),
            np.array([part.last for _, part in parts], dtype=np.int64),
            Strings.of(_text(part.tally) for _, part in parts),
        )

    def _places(self, row: int) -> range:
        return range(*np.searchsorted(self.rows, [row, row + 1]).tolist())

    def _kept(self, place: int) -> Part:
        return Part(int(self.lasts[place]), None if place in self.gone else _tally(self.texts[place]))


def in_parts(hyperedges: IntArray) -> tuple[Part, ...]:
    """The numbers of hyperedges in parts that are still to be counted, but for the last, which is open."""
    return tuple(Part(last, None) for last in hyperedges[PART - 1 : -1 : PART].tolist())


def up_to(parts: tuple[Part, ...], last: int) -> tuple[Part, ...]:
    """Parts with one more for what came since they were counted, up to a hyperedge."""
    return parts if parts and parts[-1].last == last else (*parts, Part(last, None))


def unread(parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
    """The hyperedges of the parts that are not counted: by number, those after the first up to the second."""
    after = 0
    for part in parts:
        if part.tally is None:
            yield after, part.last
        after = part.last


def with_read(parts: Iterable[Part], read: Iterator[EntityAggregate | None]) -> tuple[Part, ...]:
    """Parts that are all counted, small ones joined; ``read`` is what those say that were not, in order."""
    found: list[tuple[int, EntityAggregate]] = []
    for part in parts:
        tally = part.tally or next(read)
        before = found[-1][1] if found else None
        if before and (tally is None or before.hyperedges + tally.hyperedges <= PART):
            found[-1] = part.last, EntityAggregate.sum([before, *([tally] if tally else [])])
        elif tally:
            found.append((part.last, tally))
    return tuple(Part(*own) for own in found)


def _without(parts: tuple[Part, ...], number: int) -> tuple[Part, ...]:
    """Parts of which a hyperedge has gone."""
    of_part = next((place for place, part in enumerate(parts) if number <= part.last), len(parts))
    return tuple(Part(part.last, None) if place == of_part else part for place, part in enumerate(parts))


def _text(tally: EntityAggregate | None) -> str:
    if tally is None:
        return "null"
    said = sorted(tally.names.items()), sorted(tally.types.items()), sorted(tally.descriptions)
    return json.dumps([*said, tally.score, tally.hyperedges])


def _tally(text: str) -> EntityAggregate | None:
    if (said := json.loads(text)) is None:
        return None
    names, types, descriptions, score, hyperedges = said
    return EntityAggregate(dict(names), dict(types), frozenset(descriptions), score, hyperedges)
