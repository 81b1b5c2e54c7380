"""The tables of a snapshot: passages, hyperedges and entities in columns, and the hypergraph that connects them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from polyad.model import IntArray
from polyad.protocols.snapshot import Kind
from polyad.protocols.store import Store
from polyad.snapshot.columns import Column, EntityKeys, RowIntervals, StringColumn, StringIndex
from polyad.snapshot.incidence_cache import IncidenceCache
from polyad.snapshot.incidences import Incidences
from polyad.snapshot.segments import SegmentList
from polyad.snapshot.term_index import PassageTerms
from polyad.snapshot.vectors import Vectors


@dataclass(frozen=True, slots=True, eq=False)
class PassageColumns:
    """The passages of a snapshot, one row each: ids, vectors, terms and validity.

    Attributes:
        ids: Ids of passages.
        pks: Primary key of each passage, ascending.
        document: For each passage the row of its document in ``documents``; int32, ascending.
        documents: Ids of documents.
        vectors: Vectors of passages.
        vector_sum: Sum of the vectors of live passages, in units of 2^-40; int64 ``[dimension]``.
        terms: The BM25 index of passages.
        intervals: Intervals in which the documents of passages hold.
    """

    ids: StringIndex
    pks: Column
    document: Column
    documents: StringColumn
    vectors: Vectors
    vector_sum: IntArray
    terms: PassageTerms
    intervals: RowIntervals


@dataclass(frozen=True, slots=True, eq=False)
class HyperedgeColumns:
    """The hyperedges of a snapshot, one row each: ids, vectors and validity.

    Attributes:
        ids: Ids of hyperedges.
        pks: Primary key of each hyperedge, ascending.
        vectors: Vectors of hyperedges.
        intervals: Intervals in which hyperedges hold, if their documents do.
    """

    ids: StringColumn
    pks: Column
    vectors: Vectors
    intervals: RowIntervals


@dataclass(frozen=True, slots=True, eq=False)
class EntityColumns:
    """The entities of a snapshot, one row each: keys and, once a retriever has needed them, vectors.

    Attributes:
        keys: Entity keys.
        pks: Primary key of each entity, ascending.
        words: Entities by the hashes of the words of their keys.
        vectors: Vectors of entities (:mod:`polyad.snapshot.entity_vectors`); None if they were not requested.
        scores: The score of each entity with a vector; None without vectors.
        outdated: Entities that have changed since they were embedded, sorted.
    """

    keys: EntityKeys
    pks: Column
    words: SegmentList
    vectors: Vectors | None = None
    scores: Column | None = None
    outdated: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class SavedCounts:
    """The numbers of rows in the last saved snapshot, to decide when the snapshot has to be saved again.

    Attributes:
        version: Version of the snapshot in files; 0 if none is saved.
        passages: Number of passage rows in files.
        entities: Number of entity vectors in files.
    """

    version: int = 0
    passages: int = 0
    entities: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SnapshotTables:
    """The rows of a snapshot, from which records, fields and entities are read.

    Attributes:
        version: Version of the store.
        store: Texts are read from it.
        passages: Ids, vectors, terms and validity of passages.
        hyperedges: Ids, vectors and validity of hyperedges.
        entities: Keys and vectors of entities.
        graph: The hypergraph.
        link_count: Sum of the passages' link counts (:mod:`polyad.snapshot.incidences`).
        incidences: Cached incidences of frequent entities.
        saved: Sizes of the snapshot in files.
        displayed: The incidences from which entities are aggregated, if these are not all of ``graph``.
    """

    version: int
    store: Store
    passages: PassageColumns
    hyperedges: HyperedgeColumns
    entities: EntityColumns
    graph: Incidences
    link_count: int
    incidences: IncidenceCache = field(default_factory=IncidenceCache.empty)
    saved: SavedCounts = SavedCounts()
    displayed: Incidences | None = None

    def row_count(self, kind: Kind) -> int:
        """Return the number of rows of a kind (passage, hyperedge, entity), including deleted rows."""
        return len(self.get_ids(kind))

    def ids(self, kind: Kind, rows: IntArray | Sequence[int]) -> list[str]:
        """Return the passage ids, hyperedge ids or entity keys of ``rows``."""
        return self.get_ids(kind).take(rows)

    def document_ids(self, passages: IntArray | Sequence[int]) -> list[str]:
        """Return the document id of each passage."""
        return self.passages.documents.take(self.passages.document.take(np.asarray(passages, dtype=np.int64)))

    def get_ids(self, kind: Kind) -> StringColumn:
        """Return the column of passage ids, hyperedge ids or entity keys."""
        keys = self.entities.keys.strings
        return {"passage": self.passages.ids.strings, "hyperedge": self.hyperedges.ids, "entity": keys}[kind]
