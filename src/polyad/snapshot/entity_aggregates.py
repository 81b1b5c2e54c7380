"""Cached aggregates of frequent entities, in parts, so that only new hyperedges and changed parts are read again.

An entity is derived from all its incidences, which may be 100,000. A part has at most 128 hyperedges of an entity, so
that showing an entity costs the same however many hyperedges it has and whichever of them are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from polyad.errors import StaleSnapshotError
from polyad.model import Entity, IntArray
from polyad.protocols.store import EntityAggregate
from polyad.snapshot.columns import StringColumn

if TYPE_CHECKING:
    from polyad.snapshot.mapped_snapshot import MappedSnapshot

PART_SIZE = 128
"""Most hyperedges of an entity in one part, which are read again if one of them is deleted."""


_FREQUENT = 8
"""Hyperedges of an entity from which on its aggregate is cached."""

_BLOCK = 100
"""Frequent entities aggregated at a time."""


class AggregatePart(NamedTuple):
    """The aggregate of some hyperedges of a frequent entity: those in a range of primary keys.

    Attributes:
        last: The primary key at the end; below the first hyperedge of the next part.
        aggregate: The aggregate; None if it has to be read.
    """

    last: int
    aggregate: EntityAggregate | None


Parts = tuple[AggregatePart, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AggregateCache:
    """A cache of the descriptions, types and counts that are aggregated over the hyperedges of frequent entities.

    Attributes:
        rows: Entity row of each saved part, sorted.
        lasts: End of each saved part, ascending for each entity.
        texts: The aggregate of each saved part, as JSON.
        stale: Places of the saved parts in which a hyperedge has been deleted since.
        computed: The parts of the entities that were computed since; searches add to it.
    """

    rows: IntArray
    lasts: IntArray
    texts: StringColumn
    stale: frozenset[int] = frozenset()
    computed: dict[int, Parts] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> AggregateCache:
        """Return a cache without aggregates."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing, StringColumn.from_strings([]))

    def get(self, row: int, last: int) -> Parts:
        """Return the cached parts of an entity that end at or before a primary key."""
        parts = self.computed.get(row) or self._load(self._find_places(row))
        return tuple(part for part in parts if part.last <= last)  # a later snapshot may have added others

    def add(self, parts: Mapping[int, Parts]) -> None:
        """Cache the aggregated parts of entities."""
        self.computed.update(parts)

    def invalidate(self, rows: IntArray, hyperedges: IntArray) -> AggregateCache:
        """Return the cache without the aggregates that include deleted hyperedges.

        Deleted incidences are parallel arrays of entity row and primary key of the hyperedge.
        """
        if not len(rows):
            return self
        stale, computed = set(self.stale), dict(self.computed)
        for row, hyperedge in zip(rows.tolist(), hyperedges.tolist(), strict=True):
            if row in computed:
                computed[row] = _invalidate_part(computed[row], hyperedge)
            else:
                places = self._find_places(row)
                place = places.start + int(np.searchsorted(self.lasts[places.start : places.stop], hyperedge))
                stale.update(range(place, min(place + 1, places.stop)))
        return replace(self, stale=frozenset(stale), computed=computed)

    def compact(self) -> AggregateCache:
        """Return the cache with all aggregates serialised as text, which takes less memory."""
        computed = dict(self.computed)  # a copy at once: searches add to the dictionary
        saved = [place for place, row in enumerate(self.rows.tolist()) if row not in computed]
        entries = list(zip(self.rows[saved].tolist(), self._load(saved), strict=True))
        entries += [(row, part) for row, parts in computed.items() for part in parts]
        entries.sort(key=lambda entry: (entry[0], entry[1].last))
        return AggregateCache(
            np.array([row for row, _ in entries], dtype=np.int64),
            np.array([part.last for _, part in entries], dtype=np.int64),
            StringColumn.from_strings(_format(part.aggregate) for _, part in entries),
        )

    def _find_places(self, row: int) -> range:
        return range(*np.searchsorted(self.rows, [row, row + 1]).tolist())

    def _load(self, places: Sequence[int]) -> Parts:
        texts = zip(places, self.texts.take(places), strict=True)
        return tuple(
            AggregatePart(int(self.lasts[place]), None if place in self.stale else _parse(text))
            for place, text in texts
        )


def read_entities(snapshot: MappedSnapshot, rows: Sequence[int]) -> list[Entity]:
    """Read entities from the store, with cached aggregates for the entities that have many hyperedges.

    Raises:
        StaleSnapshotError: A hyperedge of an entity has been deleted since the version of the snapshot.
    """
    if not rows:
        return []
    if snapshot.is_restricted:
        return _read_restricted_entities(snapshot, rows)
    entity_rows = np.array(rows, dtype=np.int64)
    last, degrees = snapshot.hyperedge_pks.last(), snapshot.graph.entity_edges.degrees(entity_rows).tolist()
    parts = [
        _extend_parts(_find_parts(snapshot, row, last) if degree >= _FREQUENT else (), last)
        for row, degree in zip(rows, degrees, strict=True)
    ]
    pks = snapshot.entity_pks.take(entity_rows).tolist()
    unread = [
        (pk, *ends) for pk, entity_parts in zip(pks, parts, strict=True) for ends in _get_unread_ranges(entity_parts)
    ]
    with snapshot.store.read_transaction() as transaction:
        aggregates = iter(transaction.aggregates(unread))
    filled = [_fill_parts(entity_parts, aggregates) for entity_parts in parts]
    totals = [
        EntityAggregate.sum([part.aggregate for part in entity_parts if part.aggregate])
        for entity_parts in filled
        if entity_parts
    ]
    if [total.hyperedges for total in totals] != degrees:
        raise StaleSnapshotError
    triples = zip(rows, filled, degrees, strict=True)
    snapshot.aggregates.add({row: entity_parts for row, entity_parts, degree in triples if degree >= _FREQUENT})
    return [total.entity(key) for total, key in zip(totals, snapshot.ids("entity", entity_rows), strict=True)]


def _read_restricted_entities(snapshot: MappedSnapshot, rows: Sequence[int]) -> list[Entity]:
    """Read entities of a filtered snapshot, aggregated from its hyperedges alone.

    Nothing of other hyperedges is visible in them.
    """
    entity_rows = np.array(rows, dtype=np.int64)
    edges, owners, _ = snapshot.graph.entity_edges.pairs.get_neighbours(entity_rows)
    is_live = snapshot.graph.live_hyperedges.are_live(edges)
    # Adjacent live hyperedges of an entity are one range of primary keys.
    starts_range = is_live & ~np.append(False, is_live[:-1] & (owners[1:] == owners[:-1]))[: len(is_live)]
    ends_range = is_live & ~np.append(is_live[1:] & (owners[1:] == owners[:-1]), False)[: len(is_live)]
    pks, owner_of_range = snapshot.hyperedge_pks.take(edges), owners[starts_range].tolist()
    firsts, lasts = (pks[starts_range] - 1).tolist(), pks[ends_range].tolist()
    entity_pks = snapshot.entity_pks.take(entity_rows[owner_of_range]).tolist()
    with snapshot.store.read_transaction() as transaction:
        aggregates = list(transaction.aggregates(list(zip(entity_pks, firsts, lasts, strict=True))))
    parts: list[list[EntityAggregate]] = [[] for _ in rows]
    for owner, aggregate in zip(owner_of_range, aggregates, strict=True):
        if aggregate:
            parts[owner].append(aggregate)
    degrees = np.bincount(owners[is_live], minlength=len(rows)).tolist()
    if [sum(part.hyperedges for part in group) for group in parts] != degrees:
        raise StaleSnapshotError
    keys = snapshot.ids("entity", entity_rows)
    return [EntityAggregate.sum(group).entity(key) for group, key in zip(parts, keys, strict=True) if group]


def aggregate_frequent_entities(snapshot: MappedSnapshot) -> None:
    """Aggregate all frequent entities for the saved snapshot; stop if a document was deleted meanwhile."""
    degrees = snapshot.graph.entity_edges.degrees(np.arange(len(snapshot.keys)))
    rows = np.flatnonzero(degrees >= _FREQUENT).tolist()
    with suppress(StaleSnapshotError):
        for start in range(0, len(rows), _BLOCK):
            read_entities(snapshot, rows[start : start + _BLOCK])


def _find_parts(snapshot: MappedSnapshot, row: int, last: int) -> Parts:
    """Return the cached aggregates of an entity, or parts without aggregates if none are cached."""
    if cached := snapshot.aggregates.get(row, last):
        return cached
    return _split_into_parts(
        snapshot.hyperedge_pks.take(snapshot.graph.entity_edges.get_neighbours(np.array([row]))[0])
    )


def _split_into_parts(hyperedges: IntArray) -> Parts:
    """Divide the hyperedges of a frequent entity into parts of fixed size, without the last, incomplete part."""
    return tuple(AggregatePart(last, None) for last in hyperedges[PART_SIZE - 1 : -1 : PART_SIZE].tolist())


def _extend_parts(parts: Parts, last: int) -> Parts:
    """Return the parts and a further part for the hyperedges up to the primary key ``last``."""
    return parts if parts and parts[-1].last == last else (*parts, AggregatePart(last, None))


def _get_unread_ranges(parts: Sequence[AggregatePart]) -> Iterator[tuple[int, int]]:
    """Yield the range of primary keys of each part that has no aggregate yet: exclusive start, inclusive end."""
    after = 0
    for part in parts:
        if part.aggregate is None:
            yield after, part.last
        after = part.last


def _fill_parts(parts: Iterable[AggregatePart], aggregates: Iterator[EntityAggregate | None]) -> Parts:
    """Return the parts with the aggregates of unread parts, in order, and join small parts."""
    filled: list[tuple[int, EntityAggregate]] = []
    for part in parts:
        aggregate = part.aggregate or next(aggregates)
        before = filled[-1][1] if filled else None
        if before and (aggregate is None or before.hyperedges + aggregate.hyperedges <= PART_SIZE):
            filled[-1] = part.last, EntityAggregate.sum([before, *([aggregate] if aggregate else [])])
        elif aggregate:
            filled.append((part.last, aggregate))
    return tuple(AggregatePart(*part) for part in filled)


def _invalidate_part(parts: Parts, hyperedge: int) -> Parts:
    """Remove the aggregate of the part that contains a deleted hyperedge."""
    place = next((place for place, part in enumerate(parts) if hyperedge <= part.last), len(parts))
    return (*parts[:place], *(AggregatePart(part.last, None) for part in parts[place : place + 1]), *parts[place + 1 :])


def _format(aggregate: EntityAggregate | None) -> str:
    if aggregate is None:
        return "null"
    counts = sorted(aggregate.names.items()), sorted(aggregate.types.items()), sorted(aggregate.descriptions)
    return json.dumps([*counts, aggregate.score, aggregate.hyperedges])


def _parse(text: str) -> EntityAggregate | None:
    if (values := json.loads(text)) is None:
        return None
    names, types, descriptions, score, hyperedges = values
    return EntityAggregate(dict(names), dict(types), frozenset(descriptions), score, hyperedges)
