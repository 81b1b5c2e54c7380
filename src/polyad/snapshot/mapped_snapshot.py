"""The snapshot of an index as memory-mapped arrays, built from the store and advanced by the store's changes.

The arrays of a saved snapshot are mapped from files. Documents added since lie in small arrays beside them, and deleted
rows are skipped when rows are read. So a snapshot shares nearly all memory with the snapshot before it, which searches
that began earlier still use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Literal, TypeVar

import numpy as np

from polyad.hypergraph.sparse import compute_cosines
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.snapshot import NO_ROWS, Kind, NameRelation
from polyad.protocols.store import Store
from polyad.snapshot.columns import Column, EntityKeys, RowIntervals, StringColumn, StringIndex, hash_strings
from polyad.snapshot.field_columns import FieldColumns
from polyad.snapshot.incidences import Incidences, compute_linkability
from polyad.snapshot.languages import LanguageCache, LanguagePassages
from polyad.snapshot.name_variants import EntityNames
from polyad.snapshot.records import RecordCache
from polyad.snapshot.segments import SegmentList
from polyad.snapshot.tables import EntityColumns, HyperedgeColumns, PassageColumns, SnapshotTables
from polyad.snapshot.term_index import PassageTerms
from polyad.snapshot.vectors import Vectors
from polyad.snapshot.version_table import VersionTable

T = TypeVar("T")

_FIXED_POINT = 2.0**40
"""Vectors are summed as integers of 2^-40: integers have the same sum in any order."""

_SUM_BLOCK = 1 << 12
"""Vectors summed at a time."""

_MAX_NEW = 0.02
"""Share of passages, or entity vectors, beside the saved arrays from which a snapshot is saved again."""

_EXTRA_NEW = 100
"""New passages, or entity vectors, that an extra share of 1 leaves unsaved: a process adds them in some 30 ms."""

_MAX_DELETED = 0.5
"""Share of deleted passages from which a snapshot is built from the store again."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MappedSnapshot(SnapshotTables):
    """The index at one point in time, as memory-mapped arrays; implements :class:`polyad.protocols.snapshot.Snapshot`.

    Immutable except for caches.

    Attributes:
        records: The records returned recently.
        names: Labels and aliases of the entities' names.
        fields: The fields of documents and hyperedges that filters compare; rows are added when a filter needs them.
        language_cache: The passages by language.
        versions: The versions of documents; rows are added when a search needs them.
    """

    records: RecordCache = field(default_factory=RecordCache)
    names: EntityNames = field(default_factory=EntityNames)
    fields: FieldColumns = field(default_factory=FieldColumns)
    language_cache: LanguageCache = field(default_factory=LanguageCache)
    versions: VersionTable = field(default_factory=VersionTable)

    @classmethod
    def empty(cls, store: Store, dimension: int) -> MappedSnapshot:
        """Return a snapshot without rows, of an empty index."""
        pks, ids = Column.empty(np.int64), StringColumn.from_strings([])
        vectors, intervals = Vectors.empty(dimension), RowIntervals.empty()
        return cls(
            version=0,
            store=store,
            passages=PassageColumns(
                ids=StringIndex.empty(),
                pks=pks,
                document=Column.empty(np.int32),
                documents=ids,
                vectors=vectors,
                vector_sum=np.zeros(dimension, dtype=np.int64),
                terms=PassageTerms.empty(),
                intervals=intervals,
            ),
            hyperedges=HyperedgeColumns(ids=ids, pks=pks, vectors=vectors, intervals=intervals),
            entities=EntityColumns(EntityKeys.empty(), pks, SegmentList.empty()),
            graph=Incidences.empty(),
            link_count=0,
        )

    # State

    def needs_saving(self, extra_share: float = 0.0) -> bool:
        """Return whether too many rows are unsaved, so that the snapshot should be saved to files.

        Args:
            extra_share: Share of additional rows that may be unsaved: with 1, twice as many, and at least
                :data:`_EXTRA_NEW`.
        """
        embedded = 0
        if self.entities.vectors is not None:
            embedded = len(self.entities.vectors) + len(self.entities.vectors.column.replaced)
        new_passages, new_entities = len(self.passages.ids) - self.saved.passages, embedded - self.saved.entities
        pairs = ((new_passages, self.saved.passages), (new_entities, self.saved.entities))
        return any(new > max(extra_share * _EXTRA_NEW, (1 + extra_share) * _MAX_NEW * saved) for new, saved in pairs)

    def extends(self, earlier: MappedSnapshot) -> bool:
        """Return whether the first rows of passages and hyperedges are those of the snapshot ``earlier``."""
        pairs = ((self.passages.pks, earlier.passages.pks), (self.hyperedges.pks, earlier.hyperedges.pks))
        return all(np.array_equal(pks.to_array()[: len(before)], before.to_array()) for pks, before in pairs)

    @property
    def is_mostly_deleted(self) -> bool:
        """Whether so many rows are deleted that rebuilding the snapshot is cheaper than updating it."""
        return self.graph.live_passages.deleted_count > _MAX_DELETED * len(self.passages.ids)

    @property
    def has_entity_vectors(self) -> bool:
        """Whether every entity has a vector, computed from its present name and description."""
        return self.entities.vectors is not None and not len(self.entities.outdated)

    @property
    def is_dated(self) -> bool:
        """Whether any passage or hyperedge is valid only for a limited time (``valid_from``, ``valid_to``)."""
        return self.passages.intervals.is_bounded or self.hyperedges.intervals.is_bounded

    # Statistics

    @property
    def passage_count(self) -> int:
        """The number of passages."""
        return self.graph.live_passages.live_count

    @property
    def linkability(self) -> float:
        """The linkability, in [0, 1]: how reliably a name in the index leads to the passage about the named entity."""
        return compute_linkability(self.link_count, self.passage_count)

    @property
    def languages(self) -> Mapping[str, LanguagePassages]:
        """The passages by language, as ISO 639-1 code; empty if all are in one language."""
        return self.language_cache.get(self.passages)

    def count_languages(self) -> dict[str, int]:
        """Return the number of passages in each language, as ISO 639-1 code; none for those of an unknown language."""
        return self.passages.terms.count_languages()

    def mean_cosines(self, vectors: FloatArray) -> FloatArray:
        """Return the mean cosine of each query vector with all passages; shape ``[vectors]``."""
        mean = self.passages.vector_sum / _FIXED_POINT / max(1, self.passage_count)
        return np.round(vectors @ mean.astype(np.float32), 6)

    # Vectors

    def nearest(
        self, kind: Kind, vectors: FloatArray, k: int, *, weighted: bool = False
    ) -> list[tuple[IntArray, FloatArray]]:
        """Return (rows, cosines) of the ``k`` best rows for each query vector; with ``weighted``, cosines times scores.

        The best row is first; ties are ordered by id.
        """
        scores = self._get_scores(kind) if weighted else None
        return self.all_vectors[kind].nearest(vectors, k, self.get_ids(kind), scores)

    def cosines(self, kind: Kind, rows: IntArray, vectors: FloatArray, *, weighted: bool = False) -> FloatArray:
        """Return the cosine of each row with each query vector; ``weighted`` multiplies it by the score of the row.

        The shape is ``[rows, vectors]``, or ``[rows]`` for one query vector.
        """
        cosines = compute_cosines(self.vectors(kind, rows), vectors)
        scores = self._get_scores(kind) if weighted else None
        return cosines if scores is None else (cosines.T * scores.take(rows)).T

    def _get_scores(self, kind: Kind) -> Column | None:
        return {"passage": None, "hyperedge": self.graph.edge_score, "entity": self.entities.scores}[kind]

    def vectors(self, kind: Kind, rows: IntArray) -> FloatArray:
        """Return the vectors of ``rows``; float32 ``[rows, dimension]``."""
        return self.all_vectors[kind].take(rows)

    @property
    def all_vectors(self) -> dict[Kind, Vectors]:
        """All vectors by kind (passage, hyperedge, entity); without entity vectors until they are computed."""
        vectors: dict[Kind, Vectors] = {"passage": self.passages.vectors, "hyperedge": self.hyperedges.vectors}
        return vectors if self.entities.vectors is None else vectors | {"entity": self.entities.vectors}

    def measure_recall(self) -> dict[Kind, float]:
        """Return the recall of approximate nearest-neighbour search by kind; kinds with exact search are omitted.

        Recall is the share of the exact nearest vectors that a search returns.
        """
        approximate = ((kind, vectors) for kind, vectors in self.all_vectors.items() if not vectors.is_exact)
        return {kind: vectors.measure_recall(self.get_ids(kind)) for kind, vectors in approximate}

    # Terms

    def search_terms(self, question: str, k: int) -> tuple[IntArray, FloatArray]:
        """Return the ``k`` passages with the highest BM25 scores above 0, best first, and their scores."""
        return self.passages.terms.search(question, k, self.passages.ids.strings)

    def document_frequencies(self, terms: Sequence[str]) -> IntArray:
        """Return the number of passages that contain each term."""
        return self.passages.terms.document_frequencies(terms)

    def find_similar_words(self, word: str, max_edits: int) -> list[tuple[int, str]]:
        """Return (edits, word) for the words of passages within ``max_edits`` of ``word``, fewest edits first."""
        return self.passages.terms.vocabulary.find_neighbours(word, max_edits)

    def infer_language(self, question: str) -> str:
        """Return the language of a question, that of the index if it is too short to tell, as ISO 639-1 code."""
        return self.passages.terms.infer_language(question)

    def contains_terms(self, terms: Sequence[str], passages: IntArray) -> BoolArray:
        """Return whether each passage contains each term; shape ``[passages, terms]``."""
        return self.passages.terms.contains(terms, passages)

    # Names

    def find_rows(self, kind: Literal["passage", "entity"], ids: Iterable[str]) -> dict[str, int]:
        """Return a dictionary from passage id (or entity key) to row number, without unknown ids."""
        return self._find_entity_rows(ids) if kind == "entity" else self._find_passage_rows(list(ids))

    def _find_entity_rows(self, keys: Iterable[str]) -> dict[str, int]:
        """Return a dictionary from entity key to row; a missing key may match another entity's normalised name."""
        unique = list(dict.fromkeys(keys))
        rows, aliased = self.entities.keys.find_with_aliases(unique)
        positions = np.flatnonzero(rows >= 0)
        positions = positions[self.graph.are_live(rows[positions])]
        entities = {unique[position]: int(rows[position]) for position in positions.tolist()}
        for position, candidates in sorted(aliased.items()):
            live = np.array(candidates)[self.graph.are_live(np.array(candidates))]
            if len(live):
                entities.setdefault(unique[position], int(live[self.entities.keys.strings.rank(live).argmin()]))
        return entities

    def find_entities(self, relation: NameRelation, names: Sequence[str]) -> dict[str, list[int]]:
        """Return for each name the entity rows that match as ``relation``: "variant" (short name), "label" or "word".

        Names without such entities are omitted.
        """
        if relation == "variant":
            return {name: [row] for name, row in self.graph.resolve_name_variants(self.entities.keys, names).items()}
        return self._find_labelled(names) if relation == "label" else self._find_with_words(names)

    def _find_labelled(self, names: Sequence[str]) -> dict[str, list[int]]:
        """Return for each name the rows of entities with this label (name in the user's data) or user's alias."""
        keys = self.names.find_labelled(names, self.store, self.hyperedges.pks.last())
        rows = self._find_entity_rows(key for labelled in keys.values() for key in labelled)
        entities = {name: [rows[key] for key in labelled if key in rows] for name, labelled in keys.items()}
        return {name: labelled for name, labelled in entities.items() if labelled}

    def _find_with_words(self, words: Iterable[str]) -> dict[str, list[int]]:
        """Return for each word the rows of live entities whose key contains the word."""
        unique = list(dict.fromkeys(words))
        rows, owners, _ = self.entities.words.get_neighbours(hash_strings(unique))
        is_live = self.graph.are_live(rows)
        bounds = owners[is_live].searchsorted(np.arange(len(unique) + 1)).tolist()
        live = rows[is_live].tolist()
        spans = zip(unique, bounds, bounds[1:], strict=False)
        return {word: live[start:end] for word, start, end in spans if start < end}

    def _find_passage_rows(self, passage_ids: Sequence[str]) -> dict[str, int]:
        """Return a dictionary from passage id to row number. Ids that are not in the snapshot are omitted."""
        rows = self.passages.ids.find_rows(passage_ids)
        is_found = rows >= 0
        is_found[is_found] = self.graph.live_passages.are_live(rows[is_found])
        return dict(compress(zip(passage_ids, rows.tolist(), strict=True), is_found.tolist()))

    def document_ranges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Return the rows of each passage's document as two arrays: first row, and end (last row plus 1)."""
        documents = self.passages.document.take(passages)
        return self.passages.document.count_below(documents), self.passages.document.count_below(documents + 1)

    # Texts

    @contextmanager
    def read_transaction(self, rows: Mapping[type[Any], Sequence[int]] = NO_ROWS) -> Iterator[None]:
        """Open a read transaction of the store; calls of :meth:`get` inside the ``with`` block share it.

        The records of ``rows`` are read and cached at once.
        """
        with self.store.read_transaction() as transaction:
            self.records.prefetch(self, transaction, rows)
            yield

    def get(self, record_type: type[T], rows: Sequence[int]) -> list[T]:
        """Return the records of ``rows``, in their order; ``record_type`` is a class such as :class:`Passage`."""
        return self.records.get(self, record_type, rows)


def sum_vectors(vectors: FloatArray) -> IntArray:
    """Return the sum of vectors as fixed-point integers; so the order of summation does not change the result."""
    total = np.zeros(vectors.shape[1], dtype=np.int64)
    for start in range(0, len(vectors), _SUM_BLOCK):
        block = vectors[start : start + _SUM_BLOCK].astype(np.float64)
        total += np.round(block * _FIXED_POINT).astype(np.int64).sum(axis=0)
    return total
