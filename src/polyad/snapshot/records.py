"""The records of rows, such as passages and entities, which are read from the store and cached.

An entity is derived from all its incidences, which may be 100,000. The saved snapshot has them as arrays, so that a
search reads only the incidences of rare entities and of new hyperedges from the store. The cache may have incidences
of hyperedges that a snapshot lacks: they are deleted, later, or excluded by a filter. They are skipped at each read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Any, TypeVar

import numpy as np

from polyad.errors import StaleSnapshotError
from polyad.model import Entity, IntArray, Origin, Pagination, Passage
from polyad.protocols.store import EntityIncidence, ReadTransaction
from polyad.snapshot.columns import StringColumn
from polyad.snapshot.incidence_cache import IncidenceCache
from polyad.snapshot.tables import SnapshotTables

T = TypeVar("T")

IncidenceRequest = tuple[int, int, int]
"""Primary keys of an entity, and of the hyperedges after and up to which its incidences are read."""

IncidenceReader = Callable[[Sequence[IncidenceRequest]], list[list[EntityIncidence]]]
"""A function that reads the incidences for each request."""

_MAX_RECORDS = 300
"""Passages, or hyperedges, in the cache: those of a few searches."""

_MAX_ENTITIES = 4096
"""Entities in the cache: frequent entities are displayed again and again."""

_FREQUENT = 8
"""Hyperedges of an entity from which on its incidences are cached."""

_BLOCK = 100
"""Frequent entities read at a time to save them."""

_TEXT_BLOCK = 10_000
"""Labels copied at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordCache:
    """A cache of the records (passages, entities and others) that searches have read from the store.

    Attributes:
        records: The records by type and row. Searches of several threads add to it.
    """

    records: dict[type, dict[int, Any]] = field(default_factory=dict)

    def without_changed_entities(self, changed: IntArray) -> RecordCache:
        """Return a cache for a later snapshot, without the entities in ``changed``, an array of rows.

        It shares all other records, because a row is never rewritten: a changed document has new rows.
        """
        remaining = self.records.get(Entity, {}).copy()  # a copy at once: other threads add to the cache
        for row in changed.tolist():
            remaining.pop(row, None)
        return RecordCache(self.records | {Entity: remaining})

    def without_entities(self) -> RecordCache:
        """Return this cache without entities, whose names and descriptions depend on the filter of a search."""
        return RecordCache(self.records | {Entity: {}})

    def get(self, snapshot: SnapshotTables, record_type: type[T], rows: Sequence[int]) -> list[T]:
        """Return the records of ``rows``, such as passages; records that are not cached are read from the store.

        Raises:
            StaleSnapshotError: A record has been deleted since the version of the snapshot.
        """
        cache = self.records.setdefault(record_type, {})
        if record_type is Entity:
            return _get_cached(cache, rows, partial(read_entities, snapshot), _MAX_ENTITIES)
        with snapshot.store.read_transaction() as transaction:
            read = partial(_read, snapshot, transaction, record_type)
            records = _get_cached(cache, rows, read, _MAX_RECORDS)
            if transaction.version != snapshot.version:  # a cached record may have been deleted in the later version
                records = _get_cached({}, rows, read, _MAX_RECORDS)
            return records

    def prefetch(
        self, snapshot: SnapshotTables, transaction: ReadTransaction, rows: Mapping[type[Any], Sequence[int]]
    ) -> None:
        """Read and cache the records of ``rows``, keyed by record type, in one request; missing records are skipped.

        Raises:
            StaleSnapshotError: A hyperedge of an entity has been deleted since the version of the snapshot.
        """
        keys: dict[type[Any], Mapping[int, Any]] = {}
        entities: list[int] = []
        for record_type, requested in rows.items():
            cache = self.records.setdefault(record_type, {})
            missing = [row for row in dict.fromkeys(requested) if row not in cache]
            if record_type is Entity:
                entities = missing
            elif missing:
                keys[record_type] = dict(zip(missing, _get_store_keys(snapshot, record_type, missing), strict=True))

        def read_together(requests: Sequence[IncidenceRequest]) -> list[list[EntityIncidence]]:
            """Read entity memberships and all missing records in one round trip; return the memberships."""
            records, incidences = transaction.get_together({kind: [*keys[kind].values()] for kind in keys}, requests)
            for kind, read in records.items() if transaction.version == snapshot.version else ():
                by_row = {row: read[key] for row, key in keys[kind].items() if key in read}
                _add_to_cache(self.records[kind], by_row, _MAX_RECORDS)
            keys.clear()
            return incidences

        if entities:
            read_entity = partial(read_entities, snapshot, read=read_together)
            _get_cached(self.records[Entity], entities, read_entity, _MAX_ENTITIES)
        if keys:
            read_together([])


def _read(snapshot: SnapshotTables, transaction: ReadTransaction, record_type: type[T], rows: Sequence[int]) -> list[T]:
    """Read the records of ``rows`` from the store, or raise StaleSnapshotError if a record is missing."""
    keys = _get_store_keys(snapshot, record_type, rows)
    records = transaction.get(record_type, keys)
    if not records.keys() >= set(keys):
        raise StaleSnapshotError
    return [records[key] for key in keys]


def _get_store_keys(snapshot: SnapshotTables, record_type: type, rows: Sequence[int]) -> Sequence[Any]:
    """Return the keys by which the store finds the records of snapshot ``rows``: document ids or primary keys."""
    if record_type in (Origin, Pagination):
        return snapshot.document_ids(rows)
    column = snapshot.passages.pks if record_type is Passage else snapshot.hyperedges.pks
    keys: list[int] = column.take(np.array(rows, dtype=np.int64)).tolist()
    return keys


def _get_cached(
    cache: dict[int, T], rows: Sequence[int], read: Callable[[Sequence[int]], list[T]], limit: int
) -> list[T]:
    """Return the records of ``rows`` from ``cache``; the function ``read`` returns records that the cache lacks.

    Other threads may clear the cache.
    """
    records = {row: record for row in rows if (record := cache.get(row)) is not None}
    missing = [row for row in dict.fromkeys(rows) if row not in records]
    if missing:
        records.update(zip(missing, read(missing), strict=True))
        _add_to_cache(cache, {row: records[row] for row in missing}, limit)
    return [records[row] for row in rows]


def _add_to_cache(cache: dict[int, T], records: Mapping[int, T], limit: int) -> None:
    if len(cache) > limit:
        cache.clear()
    cache.update(records)


def read_entities(snapshot: SnapshotTables, rows: Sequence[int], read: IncidenceReader | None = None) -> list[Entity]:
    """Return the entities of ``rows``, with names, types and descriptions aggregated from hyperedges of the snapshot.

    Args:
        snapshot: The index.
        rows: The entities.
        read: Reads incidences that are not cached; by default from the store.

    Raises:
        StaleSnapshotError: A hyperedge of an entity has been deleted since the version of the snapshot.
    """
    if not rows:
        return []
    entities = np.array(rows, dtype=np.int64)
    edges, owners, _ = (snapshot.displayed or snapshot.graph).entity_edges.get_neighbours(entities)
    hyperedges = snapshot.hyperedges.pks.take(edges)
    last_saved = snapshot.incidences.get_last_saved(entities)
    is_saved = hyperedges <= last_saved[owners]
    counts = snapshot.incidences.count_labels(entities[owners[is_saved]], hyperedges[is_saved])
    unsaved: defaultdict[int, set[int]] = defaultdict(set)
    for row, hyperedge in zip(entities[owners[~is_saved]].tolist(), hyperedges[~is_saved].tolist(), strict=True):
        unsaved[row].add(hyperedge)
    for row, incidences in _read_incidences(snapshot, unsaved, read).items():
        labels = [incidence for incidence in incidences if incidence[0] in unsaved[row]]
        if len({incidence[0] for incidence in labels}) < len(unsaved[row]):
            raise StaleSnapshotError
        counts.setdefault(row, []).extend((*incidence[1:], 1) for incidence in labels)
    if len(counts) < len(set(rows)) and snapshot.displayed is None:
        raise StaleSnapshotError
    return [
        Entity.from_labels(key, counts[row]) if row in counts else Entity(key, key)
        for row, key in zip(rows, snapshot.ids("entity", entities), strict=True)
    ]


def _read_incidences(
    snapshot: SnapshotTables, hyperedges_by_entity: Mapping[int, set[int]], read: IncidenceReader | None
) -> dict[int, Sequence[EntityIncidence]]:
    """Return the memberships of entities in hyperedges that are in no file, from the cache or else from the store.

    Args:
        snapshot: The snapshot.
        hyperedges_by_entity: Primary keys of the hyperedges, by entity row. The result includes their memberships,
            unless a hyperedge has been deleted, and may include more.
        read: Reads memberships (incidences) that are not cached; None for a request to the store.
    """
    cache, entities = snapshot.incidences, np.array(list(hyperedges_by_entity), dtype=np.int64)
    last_saved = dict(zip(hyperedges_by_entity, cache.get_last_saved(entities).tolist(), strict=True))
    incidences = {
        row: _discard_if_incomplete(cache.added.get(row, ()), hyperedges)
        for row, hyperedges in hyperedges_by_entity.items()
    }
    after = {row: cached[-1][0] if cached else last_saved[row] for row, cached in incidences.items()}
    unread = [row for row, hyperedges in hyperedges_by_entity.items() if max(hyperedges) > after[row]]
    if not unread:
        return incidences
    pks, last = snapshot.entities.pks.take(np.array(unread)).tolist(), snapshot.hyperedges.pks.last()
    requests = [(pk, after[row], last) for pk, row in zip(pks, unread, strict=True)]
    with snapshot.store.read_transaction() as transaction:
        groups = read(requests) if read else transaction.get_together({}, requests)[1]
    for row, group in zip(unread, groups, strict=True):
        incidences[row] = [*incidences[row], *group]
        if last_saved[row] or len(incidences[row]) >= _FREQUENT:
            cache.add(row, incidences[row])
    return incidences


def _discard_if_incomplete(cached: Sequence[EntityIncidence], hyperedges: set[int]) -> Sequence[EntityIncidence]:
    """Return the ``cached`` memberships of an entity, or an empty tuple if one of ``hyperedges`` is missing in them.

    Hyperedges with a primary key above all cached ones do not count as missing: they are read from the store.
    Snapshots of several versions share the cache: a search of a later version adds incidences without those of
    hyperedges that were deleted since, which a search in a read transaction of an earlier version still reads.
    """
    present = {incidence[0] for incidence in cached}
    last = cached[-1][0] if cached else 0
    return cached if all(hyperedge in present or hyperedge > last for hyperedge in hyperedges) else ()


def build_incidences(snapshot: SnapshotTables) -> IncidenceCache:
    """Return a cache of all incidences (hyperedge memberships) of frequent entities, for the files of the snapshot."""
    builder = _Builder(snapshot)
    rows = np.flatnonzero(snapshot.graph.entity_edges.degrees(np.arange(len(snapshot.entities.keys))) >= _FREQUENT)
    for start in range(0, len(rows), _BLOCK):
        builder.read(rows[start : start + _BLOCK])
    return builder.build()


class _Builder:
    """Builds an :class:`IncidenceCache` from the incidences in files and from newer incidences in the store."""

    def __init__(self, snapshot: SnapshotTables) -> None:
        self._snapshot = snapshot
        cache = snapshot.incidences
        edges = snapshot.hyperedges.pks.count_below(cache.hyperedges)
        places = snapshot.graph.live_hyperedges.are_live(edges).nonzero()[0]
        labels = np.unique(cache.labels[places]).astype(np.int64)
        self._entities = [cache.entities[places]]
        self._hyperedges = [cache.hyperedges[places]]
        self._labels = [labels.searchsorted(cache.labels[places]).astype(np.int32)]
        self._texts = StringColumn.from_strings([])
        for start in range(0, len(labels), _TEXT_BLOCK):
            self._texts = self._texts.append(cache.texts.take(labels[start : start + _TEXT_BLOCK]))

    def read(self, rows: IntArray) -> None:
        """Read the hyperedge memberships of the entities ``rows`` that are newer than the saved memberships."""
        snapshot = self._snapshot
        after, pks = snapshot.incidences.get_last_saved(rows).tolist(), snapshot.entities.pks.take(rows).tolist()
        with snapshot.store.read_transaction() as transaction:
            requests = list(zip(pks, after, repeat(snapshot.hyperedges.pks.last())))
            _, groups = transaction.get_together({}, requests)
        places: dict[tuple[int, str], int] = {}
        labels = [
            places.setdefault((row, json.dumps(label)), len(places))
            for row, group in zip(rows.tolist(), groups, strict=True)
            for _, *label in group
        ]
        self._entities.append(rows.repeat([len(group) for group in groups]).astype(np.int32))
        self._hyperedges.append(np.array([hyperedge for group in groups for hyperedge, *_ in group], dtype=np.int64))
        self._labels.append(np.array(labels, dtype=np.int32) + np.int32(len(self._texts)))
        self._texts = self._texts.append(text for _, text in places)

    def build(self) -> IncidenceCache:
        """Return a cache of all incidences (hyperedge memberships), sorted by entity."""
        entities = np.concatenate(self._entities)
        order = entities.argsort(kind="stable")  # the hyperedges of later blocks have higher primary keys
        hyperedges, labels = np.concatenate(self._hyperedges)[order], np.concatenate(self._labels)[order]
        return IncidenceCache(entities[order], hyperedges, labels, self._texts)
