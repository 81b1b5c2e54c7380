"""The snapshot of an index as memory-mapped arrays, built from the store and advanced by the store's changes.

The arrays of a saved snapshot are mapped from files. Documents added since lie in small arrays beside them, and deleted
rows are skipped when rows are read. So a snapshot shares nearly all memory with the snapshot before it, which searches
that began earlier still use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from typing import Any, Literal, TypeVar

import numpy as np

from polyad.curation.statements import Statements
from polyad.errors import StaleSnapshotError
from polyad.hypergraph.sparse import compute_cosines, expand_ranges, sort_unique, union
from polyad.model import BoolArray, Entity, FloatArray, IntArray, Origin, Pagination, Passage
from polyad.protocols.snapshot import NO_ROWS, Kind, NameRelation
from polyad.protocols.store import Changes, ReadTransaction, Store, StoredRows
from polyad.snapshot.columns import Column, EntityKeys, RowIntervals, StringColumn, StringIndex
from polyad.snapshot.entity_incidences import IncidenceCache, read_entities
from polyad.snapshot.field_columns import FieldColumns
from polyad.snapshot.incidences import (
    Incidences,
    NewIncidences,
    compute_linkability,
    count_links,
    find_affected_passages,
)
from polyad.snapshot.name_variants import EntityLabels
from polyad.snapshot.new_rows import NewRows, find_rows
from polyad.snapshot.term_index import PassageTerms
from polyad.snapshot.vectors import Vectors
from polyad.text.filters import Filter
from polyad.text.validity import Interval

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_FIXED_POINT = 2.0**40
"""Vectors are summed as integers of 2^-40: integers have the same sum in any order."""

_SUM_BLOCK = 1 << 12
"""Vectors summed at a time."""

_MAX_NEW = 0.02
"""Share of passages, or entity vectors, beside the saved arrays from which a snapshot is saved again."""

_MAX_DELETED = 0.5
"""Share of deleted passages from which a snapshot is built from the store again."""

_LINK_BLOCK = 1 << 14
"""Passages whose links are counted at a time."""

_MAX_EXACT = 10_000
"""Passages of a part of a snapshot up to which its own mean vector, links and name variants are computed."""

_MAX_RECORDS = 300
"""Passages, or hyperedges, in the cache: those of a few searches."""

_MAX_ENTITIES = 4096
"""Entities in the cache: frequent entities are shown again and again."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MappedSnapshot:
    """The index at one point in time, as memory-mapped arrays; implements :class:`polyad.protocols.snapshot.Snapshot`.

    Immutable except for caches.

    Attributes:
        version: Version of the store.
        store: Texts are read from it.
        passage_ids: Ids of passages.
        hyperedge_ids: Ids of hyperedges.
        keys: Entity keys.
        passage_pks: Primary key of each passage, ascending.
        hyperedge_pks: Primary key of each hyperedge, ascending.
        entity_pks: Primary key of each entity, ascending.
        document: For each passage the row of its document.
        documents: Ids of documents.
        passage_vectors: Vectors of passages.
        hyperedge_vectors: Vectors of hyperedges.
        vector_sum: Sum of the vectors of live passages, in units of 2^-40; int64 ``[dimension]``.
        graph: The hypergraph.
        passage_terms: The terms of passages.
        link_count: Sum of the passages' link counts (:mod:`polyad.snapshot.incidences`).
        passage_intervals: Intervals in which the documents of passages hold.
        hyperedge_intervals: Intervals in which hyperedges hold, if their documents do.
        entity_vectors: Vectors of entities, if they were requested (:mod:`polyad.snapshot.entity_vectors`).
        entity_scores: The score of each entity with a vector.
        outdated: Entities that have changed since they were embedded, sorted.
        incidences: Cached incidences of frequent entities.
        saved_passages: Number of passage rows in files.
        saved_entities: Number of entity vectors in files.
        saved_version: Version of the snapshot in files; 0 if it is not saved.
        records: The records returned recently, by type and row.
        entities_by_word: Entities by the words of their keys; empty until first needed.
        labels: Labels of entities with an id.
        aliases: Aliases that users stated, as one mapping; empty until first needed.
        fields: The fields of documents and hyperedges that filters compare; rows are added when a filter needs them.
        displayed: The incidences from which entities are aggregated, if these are not all of ``graph``.
    """

    version: int
    store: Store
    passage_ids: StringIndex
    hyperedge_ids: StringColumn
    keys: EntityKeys
    passage_pks: Column
    hyperedge_pks: Column
    entity_pks: Column
    document: Column
    documents: StringColumn
    passage_vectors: Vectors
    hyperedge_vectors: Vectors
    vector_sum: IntArray
    graph: Incidences
    passage_terms: PassageTerms
    link_count: int
    passage_intervals: RowIntervals
    hyperedge_intervals: RowIntervals
    entity_vectors: Vectors | None = None
    entity_scores: Column | None = None
    outdated: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    incidences: IncidenceCache = field(default_factory=IncidenceCache.empty)
    saved_passages: int = 0
    saved_entities: int = 0
    saved_version: int = 0
    records: dict[type, dict[int, Any]] = field(default_factory=dict)
    entities_by_word: dict[str, list[int]] = field(default_factory=dict)
    labels: EntityLabels = field(default_factory=EntityLabels)
    aliases: list[Mapping[str, Sequence[str]]] = field(default_factory=list)
    fields: FieldColumns = field(default_factory=FieldColumns)
    displayed: Incidences | None = None

    @classmethod
    def empty(cls, store: Store, dimension: int) -> MappedSnapshot:
        """Return the snapshot of an empty index."""
        return cls(
            version=0,
            store=store,
            passage_ids=StringIndex.empty(),
            hyperedge_ids=StringColumn.from_strings([]),
            keys=EntityKeys.empty(),
            passage_pks=Column.empty(np.int64),
            hyperedge_pks=Column.empty(np.int64),
            entity_pks=Column.empty(np.int64),
            document=Column.empty(np.int32),
            documents=StringColumn.from_strings([]),
            passage_vectors=Vectors.empty(dimension),
            hyperedge_vectors=Vectors.empty(dimension),
            vector_sum=np.zeros(dimension, dtype=np.int64),
            graph=Incidences.empty(),
            passage_terms=PassageTerms.empty(),
            link_count=0,
            passage_intervals=RowIntervals.empty(),
            hyperedge_intervals=RowIntervals.empty(),
        )

    # Advancing

    @property
    def is_mostly_new(self) -> bool:
        """Whether so many rows are unsaved that the snapshot should be written to disk."""
        embedded = 0
        if self.entity_vectors is not None:
            embedded = len(self.entity_vectors) + len(self.entity_vectors.column.replaced)
        new_passages, new_entities = len(self.passage_ids) - self.saved_passages, embedded - self.saved_entities
        return new_passages > _MAX_NEW * self.saved_passages or new_entities > _MAX_NEW * self.saved_entities

    @property
    def is_mostly_deleted(self) -> bool:
        """Whether so many rows are deleted that rebuilding the snapshot is cheaper than updating it."""
        return self.graph.live_passages.deleted_count > _MAX_DELETED * len(self.passage_ids)

    @property
    def has_entity_vectors(self) -> bool:
        """Whether every entity has a vector that fits its present description."""
        return self.entity_vectors is not None and not len(self.outdated)

    def add_entities(self, entities: Iterable[tuple[int, str]]) -> MappedSnapshot:
        """Return the snapshot with added entities, (primary key, entity key) each, without hyperedges."""
        pairs = list(entities)
        pks = np.array([pk for pk, _ in pairs], dtype=np.int64)
        keys = self.keys.append([key for _, key in pairs])
        return replace(self, entity_pks=self.entity_pks.append(pks), keys=keys)

    def advance(self, changes: Changes, batches: Iterable[StoredRows]) -> MappedSnapshot:
        """Return the snapshot updated to a later store version by applying the changes since.

        Args:
            changes: The changes of the store since.
            batches: The rows of the documents that were added.
        """
        later, touched = self.add_rows(changes, batches)
        graph, touched = later.graph.update_variants(later.keys, self.graph, touched)
        later = replace(
            later,
            graph=graph,
            outdated=self.outdated if self.entity_vectors is None else union([self.outdated, touched]),
            records={Entity: _drop_rows(self.records.get(Entity, {}), touched)},
        )
        return replace(later, link_count=self._update_link_count(later, touched))

    def add_rows(self, changes: Changes, batches: Iterable[StoredRows]) -> tuple[MappedSnapshot, IntArray]:
        """Return the snapshot after rows were added and deleted, and the entities whose passages changed.

        Name variants, link counts and entities are those of the snapshot before: see :meth:`build_links`.
        """
        deleted = self._find_live_passages(changes.removed)
        new = NewRows.from_batches(batches, len(self.passage_ids), self.entity_pks.last(), len(self.vector_sum))
        added = new.rows
        later = self.add_entities(sorted(added.entity_keys.items()))
        passage_pks = self.passage_pks.append(added.passage_numbers)
        hyperedge_pks = self.hyperedge_pks.append(added.hyperedge_numbers)
        graph, touched = self.graph.advance(
            deleted,
            NewIncidences(
                passage_count=len(added.passage_ids),
                passage_of=find_rows(passage_pks, added.passage_of_hyperedge),
                scores=added.hyperedge_scores,
                entities=find_rows(later.entity_pks, added.incidence_entity),
                hyperedges=find_rows(hyperedge_pks, added.incidence_hyperedge),
                strengths=added.incidence_strength,
            ),
        )
        passage_vectors = self.passage_vectors.advance(graph.live_passages, added.passage_vectors)
        deleted_sum = _sum_vectors(self.passage_vectors.take(deleted))
        later = replace(
            later,
            version=changes.version,
            passage_ids=self.passage_ids.append(added.passage_ids),
            hyperedge_ids=self.hyperedge_ids.append(added.hyperedge_ids),
            passage_pks=passage_pks,
            hyperedge_pks=hyperedge_pks,
            document=self.document.append(len(self.documents) + new.document_of_passage),
            documents=self.documents.append(new.documents),
            passage_vectors=passage_vectors,
            hyperedge_vectors=self.hyperedge_vectors.advance(graph.live_hyperedges, added.hyperedge_vectors),
            vector_sum=self.vector_sum - deleted_sum + _sum_vectors(added.passage_vectors),
            graph=graph,
            passage_terms=self.passage_terms.advance(graph.live_passages, deleted, new.postings, new.lengths),
            passage_intervals=self.passage_intervals.append(len(self.passage_ids), added.passage_intervals),
            hyperedge_intervals=self.hyperedge_intervals.append(len(self.hyperedge_ids), added.hyperedge_intervals),
            records={},
            entities_by_word={},
            aliases=[],
            labels=EntityLabels() if len(deleted) else self.labels,
        )
        return later, touched

    def build_links(self) -> MappedSnapshot:
        """Return the snapshot after resolving short names and counting links in the whole index."""
        graph, passages, link_count = self.graph.build_variants(self.keys), self.graph.live_passages.to_rows(), 0
        for start in range(0, len(passages), _LINK_BLOCK):
            link_count += count_links(graph, self.document, passages[start : start + _LINK_BLOCK])
        return replace(self, graph=graph, link_count=link_count)

    def _update_link_count(self, later: MappedSnapshot, touched: IntArray) -> int:
        """Return the number of links in a later snapshot, counting only passages of changed entities again."""
        before = find_affected_passages(self.graph, touched[touched < len(self.keys)])
        affected = union([before, find_affected_passages(later.graph, touched)])
        earlier = affected[affected < len(self.passage_ids)]
        live = affected[later.graph.live_passages.are_live(affected)]
        lost = count_links(self.graph, self.document, earlier)
        return self.link_count - lost + count_links(later.graph, later.document, live)

    def _find_live_passages(self, ranges: Sequence[tuple[int, int]]) -> IntArray:
        """Return the rows of undeleted passages whose primary keys are in ``ranges`` (inclusive)."""
        bounds = np.array(ranges, dtype=np.int64).reshape(-1, 2)
        starts, ends = self.passage_pks.count_below(bounds[:, 0]), self.passage_pks.count_below(bounds[:, 1] + 1)
        rows = sort_unique(expand_ranges(starts, ends - starts))
        return rows[self.graph.live_passages.are_live(rows)]

    # Restricting

    def select(self, filter: Filter) -> MappedSnapshot:
        """Return the snapshot restricted to the documents, or hyperedges, that satisfy a metadata filter.

        Raises:
            ConfigurationError: The filter compares a field that no document has.
        """
        return self.restrict(*self.fields.select(filter, self))

    def find_selected(self, filter: Filter) -> Callable[[Sequence[str]], list[bool]]:
        """Return a function that maps passage ids to booleans: whether the passage satisfies the filter.

        Raises:
            ConfigurationError: The filter compares a field that no document has.
        """
        passages, _ = self.fields.select(filter, self)

        def find(passage_ids: Sequence[str]) -> list[bool]:
            rows = self._find_passage_rows(passage_ids)
            return [id in rows and bool(passages[rows[id]]) for id in passage_ids]

        return find

    @property
    def is_dated(self) -> bool:
        """Whether any passage or hyperedge is valid only for a limited time (``valid_from``, ``valid_to``)."""
        return self.passage_intervals.is_bounded or self.hyperedge_intervals.is_bounded

    def select_time(self, time: float) -> tuple[MappedSnapshot, Interval]:
        """Return the snapshot restricted to rows valid at ``time``, and the period with the same result.

        In the copy, passages that are not valid count as deleted, so that all statistics are those of an index without
        them. Hyperedges that are not valid, in passages that are, are only omitted.

        Args:
            time: In seconds since 1970.
        """
        first, second = self.passage_intervals.find_constant(time), self.hyperedge_intervals.find_constant(time)
        constant = Interval(max(first.start, second.start), min(first.end, second.end))
        passages = self.passage_intervals.contain(time, self.row_count("passage"))
        hyperedges = self.hyperedge_intervals.contain(time, self.row_count("hyperedge"))
        if passages.all() and hyperedges.all():
            return self, constant
        deleted = self.passage_pks.take((~passages).nonzero()[0])
        valid = self.advance(Changes(self.version, tuple(zip(deleted, deleted, strict=True)), ()), [])
        return replace(valid, outdated=self.outdated).restrict(passages, hyperedges), constant

    def restrict(self, passages: BoolArray, hyperedges: BoolArray | None = None) -> MappedSnapshot:
        """Return the snapshot restricted to the selected passages and hyperedges; the rest counts as deleted.

        Counts, lengths and frequencies of terms are those of these passages. So are linkability, the mean vector and
        name variants if the passages are few; otherwise they remain those of the whole index, as do the vectors and
        scores of entities, because each would be computed from all its passages.

        Args:
            passages: Mask of the passages; bool ``[passages]``.
            hyperedges: Mask of the hyperedges; None for all of these passages.
        """
        graph = self.graph.restrict(passages, hyperedges)
        rows = graph.live_passages.to_rows()
        if len(rows) <= _MAX_EXACT:
            graph = graph.build_part_variants(self.keys)
            vector_sum = _sum_vectors(self.passage_vectors.take(rows))
            link_count = count_links(graph, self.document, rows)
        else:
            share = len(rows) / self.passage_count
            vector_sum = np.round(self.vector_sum * share).astype(np.int64)
            link_count = round(self.link_count * share)
        entity_vectors = self.entity_vectors
        if entity_vectors is not None:
            members = graph.edge_members.get_neighbours(graph.live_hyperedges.to_rows())[0]
            is_member = np.zeros(len(entity_vectors), dtype=bool)
            is_member[members[members < len(is_member)]] = True
            entity_vectors = replace(entity_vectors, live=entity_vectors.live.restrict(is_member))
        return replace(
            self,
            graph=graph,
            passage_vectors=replace(self.passage_vectors, live=graph.live_passages),
            hyperedge_vectors=replace(self.hyperedge_vectors, live=graph.live_hyperedges),
            vector_sum=vector_sum,
            passage_terms=self.passage_terms.restrict(graph.live_passages),
            link_count=link_count,
            entity_vectors=entity_vectors,
            records=self.records | {Entity: {}},
        )

    def connect(self, whole: MappedSnapshot) -> MappedSnapshot:
        """Return this filtered snapshot with the hypergraph of ``whole``, so that walks may leave the filter.

        Walks may then pass through passages outside the restriction.

        Searches by vectors and terms return rows of this part, and entities are aggregated over its hyperedges; an
        entity without any has only its key. Walks reach rows of the whole, which the caller removes.

        Args:
            whole: The snapshot that this part was selected from.
        """
        return replace(
            whole,
            passage_vectors=self.passage_vectors,
            hyperedge_vectors=self.hyperedge_vectors,
            entity_vectors=self.entity_vectors,
            passage_terms=self.passage_terms,
            records=whole.records | {Entity: {}},
            displayed=self.graph,
        )

    # Statistics

    @property
    def passage_count(self) -> int:
        """The number of passages."""
        return self.graph.live_passages.live_count

    @property
    def linkability(self) -> float:
        """The linkability of the index, in [0, 1]: how reliably names lead to the passages about them."""
        return compute_linkability(self.link_count, self.passage_count)

    def mean_cosines(self, vectors: FloatArray) -> FloatArray:
        """Return the mean cosine of each query vector with all passages; shape ``[vectors]``."""
        mean = self.vector_sum / _FIXED_POINT / max(1, self.passage_count)
        return np.round(vectors @ mean.astype(np.float32), 6)

    # Vectors

    def nearest(
        self, kind: Kind, vectors: FloatArray, k: int, *, weighted: bool = False
    ) -> list[tuple[IntArray, FloatArray]]:
        """Return the ``k`` nearest rows of each query vector and their cosines, best first, ties by id."""
        scores = self._get_scores(kind) if weighted else None
        return self.all_vectors[kind].nearest(vectors, k, self._get_ids(kind), scores)

    def cosines(self, kind: Kind, rows: IntArray, vectors: FloatArray, *, weighted: bool = False) -> FloatArray:
        """Return the cosine of each row with each query vector, or with one query vector."""
        cosines = compute_cosines(self.vectors(kind, rows), vectors)
        scores = self._get_scores(kind) if weighted else None
        return cosines if scores is None else (cosines.T * scores.take(rows)).T

    def _get_scores(self, kind: Kind) -> Column | None:
        return {"passage": None, "hyperedge": self.graph.edge_score, "entity": self.entity_scores}[kind]

    def vectors(self, kind: Kind, rows: IntArray) -> FloatArray:
        """Return the vectors of ``rows``; float32 ``[rows, dimension]``."""
        return self.all_vectors[kind].take(rows)

    def row_count(self, kind: Kind) -> int:
        """Return the number of rows of a kind (passage, hyperedge, entity), including deleted rows."""
        return len(self._get_ids(kind))

    @property
    def all_vectors(self) -> dict[Kind, Vectors]:
        """All vectors by kind (passage, hyperedge, entity); entity vectors are computed on first use."""
        vectors: dict[Kind, Vectors] = {"passage": self.passage_vectors, "hyperedge": self.hyperedge_vectors}
        return vectors if self.entity_vectors is None else vectors | {"entity": self.entity_vectors}

    def measure_recall(self) -> dict[Kind, float]:
        """Return the recall of approximate nearest-neighbour search for each kind of vectors that uses it.

        Recall is the share of the exact nearest vectors that a search returns.
        """
        approximate = ((kind, vectors) for kind, vectors in self.all_vectors.items() if not vectors.is_exact)
        return {kind: vectors.measure_recall(self._get_ids(kind)) for kind, vectors in approximate}

    # Terms

    def search_terms(self, question: str, k: int) -> tuple[IntArray, FloatArray]:
        """Return the ``k`` passages with the highest BM25 scores above 0, best first, and their scores."""
        return self.passage_terms.search(question, k, self.passage_ids.strings)

    def document_frequencies(self, terms: Sequence[str]) -> IntArray:
        """Return the number of passages that contain each term."""
        return self.passage_terms.document_frequencies(terms)

    def contains_terms(self, terms: Sequence[str], passages: IntArray) -> BoolArray:
        """Return whether each passage contains each term; shape ``[passages, terms]``."""
        return self.passage_terms.contains(terms, passages)

    # Names

    def find_rows(self, kind: Literal["passage", "entity"], ids: Iterable[str]) -> dict[str, int]:
        """Return a dictionary from passage id (or entity key) to row number. Unknown ids are omitted."""
        return self._find_entity_rows(ids) if kind == "entity" else self._find_passage_rows(list(ids))

    def _find_entity_rows(self, keys: Iterable[str]) -> dict[str, int]:
        """Return the row of each entity key, or the first entity that has the key as an alias."""
        unique = list(dict.fromkeys(keys))
        rows, aliased = self.keys.find_with_aliases(unique)
        positions = np.flatnonzero(rows >= 0)
        positions = positions[self.graph.are_live(rows[positions])]
        entities = {unique[position]: int(rows[position]) for position in positions.tolist()}
        for position, candidates in sorted(aliased.items()):
            live = np.array(candidates)[self.graph.are_live(np.array(candidates))]
            if len(live):
                entities.setdefault(unique[position], int(live[self.keys.strings.rank(live).argmin()]))
        return entities

    def find_entities(self, relation: NameRelation, names: Sequence[str]) -> dict[str, list[int]]:
        """Return for each name the rows of entities that match it in the way ``relation`` states.

        Names without such entities are omitted.
        """
        if relation == "variant":
            return {name: [row] for name, row in self.graph.resolve_name_variants(self.keys, names).items()}
        return self._find_labelled(names) if relation == "label" else self._find_with_words(names)

    def _find_labelled(self, names: Sequence[str]) -> dict[str, list[int]]:
        """Return for each name the entities with this label, from the user's data or aliases."""
        keys = self.labels.find_keys(names, self.store, self.hyperedge_pks.last())
        if aliases := self._get_aliases():
            keys |= {name: aliases[name] for name in names if name in aliases}
        rows = self._find_entity_rows(key for labelled in keys.values() for key in labelled)
        entities = {name: [rows[key] for key in labelled if key in rows] for name, labelled in keys.items()}
        return {name: labelled for name, labelled in entities.items() if labelled}

    def _get_aliases(self) -> Mapping[str, Sequence[str]]:
        """Return the entity key for each alias that users added."""
        if not self.aliases:
            statements = Statements.load(self.store)
            self.aliases.append({key: [statements.resolve(key)] for key in statements.aliases})
        return self.aliases[0]

    def _find_with_words(self, words: Iterable[str]) -> dict[str, list[int]]:
        """Return for each word the rows of the entities, not deleted, whose key contains the word."""
        if not self.entities_by_word:
            index: defaultdict[str, list[int]] = defaultdict(list)
            rows = np.flatnonzero(self.graph.are_live(np.arange(len(self.keys))))
            for row, key in zip(rows.tolist(), self.keys.strings.take(rows), strict=True):
                for key_word in set(key.split()):
                    index[key_word].append(row)
            self.entities_by_word.update(index)
        rows_by_word = {word: np.array(self.entities_by_word[word]) for word in words if word in self.entities_by_word}
        live = {word: rows[self.graph.are_live(rows)].tolist() for word, rows in rows_by_word.items()}
        return {word: rows for word, rows in live.items() if rows}

    def _find_passage_rows(self, passage_ids: Sequence[str]) -> dict[str, int]:
        """Return a dictionary from passage id to row number. Ids that are not in the snapshot are omitted."""
        rows = self.passage_ids.find_rows(passage_ids)
        is_found = rows >= 0
        is_found[is_found] = self.graph.live_passages.are_live(rows[is_found])
        return dict(compress(zip(passage_ids, rows.tolist(), strict=True), is_found.tolist()))

    def ids(self, kind: Kind, rows: IntArray | Sequence[int]) -> list[str]:
        """Return the passage ids, hyperedge ids or entity keys of ``rows``."""
        return self._get_ids(kind).take(rows)

    def document_ids(self, passages: IntArray | Sequence[int]) -> list[str]:
        """Return the document id of each passage."""
        return self.documents.take(self.document.take(np.asarray(passages, dtype=np.int64)))

    def document_ranges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Return for each passage the row range of its document: the first row, and the row after the last."""
        documents = self.document.take(passages)
        return self.document.count_below(documents), self.document.count_below(documents + 1)

    def _get_ids(self, kind: Kind) -> StringColumn:
        ids = {"passage": self.passage_ids.strings, "hyperedge": self.hyperedge_ids, "entity": self.keys.strings}
        return ids[kind]

    # Texts

    @contextmanager
    def read_transaction(self, rows: Mapping[type[Any], Sequence[int]] = NO_ROWS) -> Iterator[None]:
        """Open a read transaction of the store; calls of :meth:`get` inside the ``with`` block share it.

        The records of ``rows`` are read and cached at once.
        """
        with self.store.read_transaction() as transaction:
            keys: dict[type[Any], Mapping[int, Any]] = {}
            for record_type, requested in rows.items():
                cache = self.records.setdefault(record_type, {})
                missing = [row for row in dict.fromkeys(requested) if row not in cache]
                if missing:
                    keys[record_type] = dict(zip(missing, self._get_keys(record_type, missing), strict=True))
            if keys:
                records = transaction.get_together({kind: list(keys[kind].values()) for kind in keys})
                for kind, read in records.items() if transaction.version == self.version else ():
                    by_row = {row: read[key] for row, key in keys[kind].items() if key in read}
                    _add_to_cache(self.records[kind], by_row, _MAX_RECORDS)
            yield

    def get(self, record_type: type[T], rows: Sequence[int]) -> list[T]:
        """Return the records of one type, such as :class:`Passage`, in the order of ``rows``."""
        cache = self.records.setdefault(record_type, {})
        if record_type is Entity:
            return _get_cached(cache, rows, partial(read_entities, self), _MAX_ENTITIES)
        with self.store.read_transaction() as transaction:
            read = partial(self._read, transaction, record_type)
            records = _get_cached(cache, rows, read, _MAX_RECORDS)
            if transaction.version != self.version:  # a cached record may have been deleted in the later version
                records = _get_cached({}, rows, read, _MAX_RECORDS)
            return records

    def _read(self, transaction: ReadTransaction, record_type: type[T], rows: Sequence[int]) -> list[T]:
        """Read the records of ``rows`` from the store. Raise StaleSnapshotError if a record is missing."""
        keys = self._get_keys(record_type, rows)
        records = transaction.get(record_type, keys)
        if not records.keys() >= set(keys):
            raise StaleSnapshotError
        return [records[key] for key in keys]

    def _get_keys(self, record_type: type, rows: Sequence[int]) -> Sequence[Any]:
        """Return the document ids of passages for records of documents, otherwise the primary keys of ``rows``."""
        if record_type in (Origin, Pagination):
            return self.document_ids(rows)
        column = self.passage_pks if record_type is Passage else self.hyperedge_pks
        keys: list[int] = column.take(np.array(rows, dtype=np.int64)).tolist()
        return keys


def _get_cached(
    cache: dict[int, T], rows: Sequence[int], read: Callable[[Sequence[int]], list[T]], limit: int
) -> list[T]:
    """Return the records of ``rows`` from the cache; missing records are read with ``read`` and cached.

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


def _drop_rows(cache: dict[int, T], rows: IntArray) -> dict[int, T]:
    remaining = cache.copy()  # a copy at once: other threads add to the cache
    for row in rows.tolist():
        remaining.pop(row, None)
    return remaining


def _sum_vectors(vectors: FloatArray) -> IntArray:
    """Return the sum of vectors as fixed-point integers, so that the order of addition does not matter."""
    total = np.zeros(vectors.shape[1], dtype=np.int64)
    for start in range(0, len(vectors), _SUM_BLOCK):
        block = vectors[start : start + _SUM_BLOCK].astype(np.float64)
        total += np.round(block * _FIXED_POINT).astype(np.int64).sum(axis=0)
    return total
