"""The embedded snapshot: arrays of an index at one moment, made from its store and moved on by what changes.

What was there when the arrays were made lies in them; what came since is in small arrays beside them, and what has gone
is left out where it is asked for. So a snapshot shares nearly all of its memory with the one before it, which searches
that began earlier go on to use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from polyad.errors import StaleSnapshotError
from polyad.hypergraph.cosines import compute_cosines
from polyad.hypergraph.incidence import expand_ranges, sort_unique
from polyad.hypergraph.sparse import union
from polyad.model import Entity, FloatArray, Hyperedge, IntArray, Origin, Passage
from polyad.protocols.snapshot import Kind
from polyad.protocols.store import Changes, EntityAggregate, ReadTransaction, Store, StoredRows
from polyad.snapshot.arrivals import Arrivals, rows_of
from polyad.snapshot.columns import Column
from polyad.snapshot.entity_aggregates import EntityAggregates, Part, in_parts, unread, up_to, with_read
from polyad.snapshot.given_names import GivenNames
from polyad.snapshot.ids import EntityKeys, Ids
from polyad.snapshot.incidences import Incidences, NewIncidences
from polyad.snapshot.linkability import count_linkable, linkability, passages_touched
from polyad.snapshot.string_table import Strings
from polyad.snapshot.term_index import PassageWords, WordIndex
from polyad.snapshot.vectors import Vectors

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_FIXED_POINT = 2.0**40
"""Vectors are summed as whole numbers of this part of 1: their sum is the same in any order."""


_SUMMED = 1 << 12
"""Vectors summed at a time."""

_NEW = 0.02
"""Share of passages that may lie beside the arrays."""

_GONE = 0.5
"""Share of rows that may be of passages that have gone."""

_LINKED = 1 << 14
"""Passages at a time of which it is counted how far names lead to them."""

_COMMON = 8
"""Hyperedges from which on an entity is not counted again where some come."""

_COUNTED = 100
"""Common entities that are counted at a time."""

_KEPT = 300
"""Passages, or hyperedges, that were shown lately and are kept: those of a few searches."""

_SHOWN = 4096
"""Entities that were shown lately and are kept: common ones are asked for again and again."""


@dataclass(frozen=True, slots=True)
class Read:
    """What a snapshot has shown lately, by row: who merges hits asks for them again, and for some more."""

    passages: dict[int, Passage]
    hyperedges: dict[int, Hyperedge]
    origins: dict[int, Origin]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MappedSnapshot:
    """An index at one moment; implements :class:`polyad.protocols.snapshot.Snapshot`.

    Attributes:
        version: Of the store at that moment.
        store: Where texts are read.
        passage_ids, hyperedge_ids: By row.
        keys: Of entities.
        passage_numbers, hyperedge_numbers, entity_numbers: The store's number of each row, ascending.
        document: For each passage the row of its document.
        documents: Ids of documents.
        passage_vectors, hyperedge_vectors: By row.
        vector_sum: Of the vectors of passages, as whole numbers of 2^-40; int64 ``[dimension]``.
        graph: Which entities hyperedges join.
        word_index: What words passages hold.
        linkable: What passages count that names lead to from elsewhere (:mod:`polyad.snapshot.linkability`).
        entity_vectors, entity_scores: Of a snapshot in which entities are described (:mod:`polyad.snapshot.described`).
        undescribed: Entities that have changed since they were described, if they were; sorted.
        kept, kept_described: Rows of passages, and of described entities, that lie in files.
        kept_version: Of the snapshot that was kept there.
        shown: Views of entities that were shown before, by row.
        tallies: Of common entities, what was counted when they were made.
        read: What was shown of passages and hyperedges lately.
        by_word: Entities by the words of their keys, once they were asked for.
        given_names: Entities that are known by an id, by what they are called.
    """

    version: int
    store: Store
    passage_ids: Ids
    hyperedge_ids: Ids
    keys: EntityKeys
    passage_numbers: Column
    hyperedge_numbers: Column
    entity_numbers: Column
    document: Column
    documents: Strings
    passage_vectors: Vectors
    hyperedge_vectors: Vectors
    vector_sum: IntArray
    graph: Incidences
    word_index: WordIndex
    linkable: int
    entity_vectors: Vectors | None = None
    entity_scores: Column | None = None
    undescribed: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    kept: int = 0
    kept_described: int = 0
    kept_version: int = 0
    shown: dict[int, Entity] = field(default_factory=dict)
    tallies: EntityAggregates = field(default_factory=EntityAggregates.none)
    read: Read = field(default_factory=lambda: Read({}, {}, {}))
    by_word: dict[str, list[int]] = field(default_factory=dict)
    given_names: GivenNames = field(default_factory=GivenNames)

    @classmethod
    def none(cls, store: Store, dimension: int) -> MappedSnapshot:
        """Of a store before anything was written to it."""
        numbers = Column.of(np.empty(0, dtype=np.int64))
        return cls(
            0,
            store,
            Ids.none(),
            Ids.none(),
            EntityKeys.none(),
            numbers,
            numbers,
            numbers,
            Column.of(np.empty(0, dtype=np.int32)),
            Strings.of([]),
            Vectors.none(dimension),
            Vectors.none(dimension),
            np.zeros(dimension, dtype=np.int64),
            Incidences.none(),
            WordIndex.none(),
            0,
        )

    # Moving on

    @property
    def is_mostly_new(self) -> bool:
        """Whether so much came since its arrays were made that they had better be made again."""
        described, again = 0, 0
        if self.entity_vectors is not None:
            described, again = len(self.entity_vectors), len(self.entity_vectors.column.changed)
        is_new = len(self.passage_ids) - self.kept > _NEW * self.kept
        return is_new or described + again - self.kept_described > _NEW * self.kept_described

    @property
    def is_described(self) -> bool:
        """Whether every entity has its vector, of what is said of it now."""
        return self.entity_vectors is not None and not len(self.undescribed)

    @property
    def is_mostly_gone(self) -> bool:
        """Whether so many of its rows have gone that it had better be made from the store again."""
        return self.passage_vectors.there.gone > _GONE * len(self.passage_ids)

    def knowing(self, entities: Iterable[tuple[int, str]]) -> MappedSnapshot:
        """The same with more entities, by the store's numbers, ascending; no hyperedge joins them yet."""
        numbers, keys = [], []
        for number, key in entities:
            numbers.append(number)
            keys.append(key)
        return replace(
            self,
            entity_numbers=self.entity_numbers.extended(np.array(numbers, dtype=np.int64)),
            keys=self.keys.extended(keys),
        )

    def advanced(self, changes: Changes, batches: Iterable[StoredRows], *, is_whole: bool = True) -> MappedSnapshot:
        """The snapshot of a later moment.

        Args:
            changes: What happened since.
            batches: The rows of the documents that were written.
            is_whole: Whether these are all; else the last snapshot has to be :meth:`linked`.
        """
        gone = self._rows_between(changes.removed)
        first, dimension, last = len(self.passage_ids), len(self.vector_sum), self.entity_numbers.last()
        new = Arrivals.of(batches, first, last, dimension)
        gone_edges = sort_unique(self.graph.hyperedges(gone)[0])
        entities = sorted(new.entity_keys)
        entity_numbers = self.entity_numbers.extended(np.array(entities, dtype=np.int64))
        keys = self.keys.extended([new.entity_keys[number] for number in entities])
        passage_numbers = self.passage_numbers.extended(new.passage_numbers)
        hyperedge_numbers = self.hyperedge_numbers.extended(new.hyperedge_numbers)
        graph, touched = self.graph.advanced(
            keys if is_whole else None,
            gone,
            NewIncidences(
                passages=len(new.passage_ids),
                passage_of=rows_of(passage_numbers, new.passage_of_hyperedge),
                scores=new.hyperedge_scores,
                entities=rows_of(entity_numbers, new.incidence_entity),
                hyperedges=rows_of(hyperedge_numbers, new.incidence_hyperedge),
                strengths=new.incidence_strength,
            ),
        )
        passages_there, edges_there = graph.entity_passages.there, graph.entity_edges.there
        went = _whole_numbers(self.passage_vectors.at(gone))
        snapshot = replace(
            self,
            version=changes.version,
            passage_ids=self.passage_ids.extended(new.passage_ids),
            hyperedge_ids=self.hyperedge_ids.extended(new.hyperedge_ids),
            keys=keys,
            passage_numbers=passage_numbers,
            hyperedge_numbers=hyperedge_numbers,
            entity_numbers=entity_numbers,
            document=self.document.extended(len(self.documents) + new.document_of_passage),
            documents=self.documents.extended(new.documents),
            passage_vectors=self.passage_vectors.advanced(passages_there, new.passage_vectors),
            hyperedge_vectors=self.hyperedge_vectors.advanced(edges_there, new.hyperedge_vectors),
            vector_sum=self.vector_sum - went + _whole_numbers(new.passage_vectors),
            graph=graph,
            word_index=self.word_index.advanced(passages_there, gone, new.postings, new.lengths),
            undescribed=self.undescribed if self.entity_vectors is None else union([self.undescribed, touched]),
            shown=_without(self.shown, touched),
            tallies=self._tallies_without(gone_edges),
            read=Read({}, {}, {}),
            by_word={},
            given_names=GivenNames() if len(gone) else self.given_names,
        )
        return replace(snapshot, linkable=self._linkable_in(snapshot, touched)) if is_whole else snapshot

    def linked(self) -> MappedSnapshot:
        """Return the snapshot with the name variants of subjects and the link statistics computed."""
        graph, passages, linkable = self.graph.named(self.keys), self.passage_vectors.there.rows(), 0
        for start in range(0, len(passages), _LINKED):
            linkable += count_linkable(graph, self.document, passages[start : start + _LINKED])
        return replace(self, graph=graph, linkable=linkable)

    def _tallies_without(self, gone: IntArray) -> EntityAggregates:
        entities, owners, _ = self.graph.edge_members.get_neighbours(gone)
        return self.tallies.without(entities, self.hyperedge_numbers.at(gone)[owners])

    def _linkable_in(self, later: MappedSnapshot, touched: IntArray) -> int:
        """How many passages of a later snapshot names lead to from elsewhere, by those whose links may have changed."""
        before = passages_touched(self.graph, touched[touched < len(self.keys)])
        affected = union([before, passages_touched(later.graph, touched)])
        known = affected[affected < len(self.passage_ids)]
        there = affected[later.passage_vectors.there.at(affected)]
        was = count_linkable(self.graph, self.document, known)
        return self.linkable - was + count_linkable(later.graph, later.document, there)

    def _rows_between(self, removed: Sequence[tuple[int, int]]) -> IntArray:
        """The rows of passages by their numbers, the first and the last of each range; of those that were there."""
        bounds = np.array(removed, dtype=np.int64).reshape(-1, 2)
        numbers = self.passage_numbers
        starts, ends = numbers.count_below(bounds[:, 0]), numbers.count_below(bounds[:, 1] + 1)
        rows = sort_unique(expand_ranges(starts, ends - starts))
        return rows[self.passage_vectors.there.at(rows)]

    # Statistics

    @property
    def passage_count(self) -> int:
        """How many passages there are."""
        return self.word_index.passages

    @property
    def linkability(self) -> float:
        """How far names lead to what is about them, in [0, 1]."""
        return linkability(self.linkable, self.passage_count)

    @property
    def density(self) -> float:
        """Hyperedges that join any entity, for each entity that is joined; counted anew each time."""
        there = self.hyperedge_vectors.there.rows()
        hyperedges = self.graph.edge_members.degrees(there)
        entities = self.graph.are_there(np.arange(len(self.keys)))
        return float((hyperedges > 0).sum() / max(1, entities.sum()))

    @property
    def terms(self) -> PassageWords:
        """What passages say, in words."""
        return PassageWords(self.word_index, self.passage_ids)

    def mean_cosines(self, vectors: FloatArray) -> FloatArray:
        """The mean cosine of all passages to each of some vectors; ``[vectors]``."""
        mean = self.vector_sum / _FIXED_POINT / max(1, self.passage_count)
        return np.round(vectors @ mean.astype(np.float32), 6)

    # Vectors

    def nearest(
        self, kind: Kind, vectors: FloatArray, k: int, *, weighted: bool = False
    ) -> list[tuple[IntArray, FloatArray]]:
        """For each of some vectors the ``k`` nearest rows and their cosines, best first, ties by id."""
        scores = {"passage": None, "hyperedge": self.graph.edge_score, "entity": self.entity_scores}[kind]
        return self._vectors(kind).nearest(vectors, k, self._ids(kind), scores if weighted else None)

    def cosines(self, kind: Kind, rows: IntArray, vectors: FloatArray) -> FloatArray:
        """The cosine of each of some rows to each of some vectors, or to one."""
        return compute_cosines(self._vectors(kind).at(rows), vectors)

    def vectors(self, kind: Kind, rows: IntArray) -> FloatArray:
        """The vectors of some rows; float32 ``[rows, dimension]``."""
        return self._vectors(kind).at(rows)

    def row_count(self, kind: Kind) -> int:
        """All rows are below it; some may have gone."""
        return len(self._ids(kind))

    def all_vectors(self) -> dict[Kind, Vectors]:
        """By kind; those of entities only where they are described."""
        vectors: dict[Kind, Vectors] = {"passage": self.passage_vectors, "hyperedge": self.hyperedge_vectors}
        return vectors if self.entity_vectors is None else vectors | {"entity": self.entity_vectors}

    def recall(self) -> dict[Kind, float]:
        """For each kind of vectors that lie in cells, the share of the nearest that searches find."""
        celled = ((kind, vectors) for kind, vectors in self.all_vectors().items() if vectors.cells)
        return {kind: vectors.recall(self._ids(kind)) for kind, vectors in celled}

    def _vectors(self, kind: Kind) -> Vectors:
        return self.all_vectors()[kind]

    # Names

    def rank_by_id(self, kind: Kind, rows: IntArray) -> FloatArray:
        """Numbers of some rows in the order of their ids, or keys."""
        return self._ids(kind).order(rows)

    def find_entity_rows(self, keys: Iterable[str]) -> dict[str, int]:
        """The row of each of some entity keys that is known: of that key, or else of the first that is spelt alike."""
        wanted = list(dict.fromkeys(keys))
        rows, spelt_alike = self.keys.found(wanted)
        known = np.flatnonzero(rows >= 0)
        there = known[self.graph.are_there(rows[known])]
        found = {wanted[place]: int(rows[place]) for place in there.tolist()}
        for place, alike in sorted(spelt_alike.items()):
            present = [row for row in alike if self.graph.are_there(np.array([row]))[0]]
            if present and wanted[place] not in found:
                found[wanted[place]] = min(present, key=self.keys.__getitem__)
        return found

    def resolve_name_variants(self, names: Sequence[str]) -> dict[str, int]:
        """The entity that each of some names, by its key, stands for which is none itself; where that can be told."""
        return self.graph.resolve_name_variants(names)

    def find_entities_by_label(self, names: Iterable[str]) -> dict[str, list[int]]:
        """The entities that given facts know by an id and call by each of some names, by its key; of those that are."""
        keys = self.given_names.keys_of(names, self.store, self.hyperedge_numbers.last())
        rows = self.find_entity_rows(key for own in keys.values() for key in own)
        found = {name: [rows[key] for key in own if key in rows] for name, own in keys.items()}
        return {name: own for name, own in found.items() if own}

    def find_passage_rows(self, passage_ids: Sequence[str]) -> dict[str, int]:
        """The row of each of some passages that is known."""
        found = {id: row for id in passage_ids if (row := self.passage_ids.find(id)) is not None}
        return {id: row for id, row in found.items() if self.passage_vectors.there.whole[row]}

    def ids(self, kind: Kind, rows: IntArray | Sequence[int]) -> list[str]:
        """The ids of some rows, or the keys of entities."""
        return self._ids(kind).take(rows)

    def document_ids(self, passages: IntArray | Sequence[int]) -> list[str]:
        """The documents of some passages."""
        return self.documents.take(self.document.at(np.asarray(passages, dtype=np.int64)))

    def _ids(self, kind: Kind) -> Ids:
        return {"passage": self.passage_ids, "hyperedge": self.hyperedge_ids, "entity": self.keys.ids}[kind]

    # Texts

    def read_transaction(self) -> AbstractContextManager[object]:
        """For a block that asks for several texts: they are read in one transaction."""
        return self.store.read_transaction()

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        """Passages, in order."""
        with self.store.read_transaction() as transaction:

            def read(new: Sequence[int]) -> list[Passage]:
                numbers = self._numbers(self.passage_numbers, new)
                return _all(transaction.get(Passage, numbers), numbers)

            return _recalled(self._read_in(transaction).passages, rows, read, _KEPT)

    def hyperedges(self, rows: Sequence[int]) -> list[Hyperedge]:
        """Hyperedges, in order."""
        with self.store.read_transaction() as transaction:

            def read(new: Sequence[int]) -> list[Hyperedge]:
                numbers = self._numbers(self.hyperedge_numbers, new)
                return _all(transaction.get(Hyperedge, numbers), numbers)

            return _recalled(self._read_in(transaction).hyperedges, rows, read, _KEPT)

    def entities(self, rows: Sequence[int]) -> list[Entity]:
        """Entities, in order. Each is made once: that of a common name goes over thousands of incidences."""
        return _recalled(self.shown, rows, self.entities_made, _SHOWN)

    def entities_made(self, rows: Sequence[int]) -> list[Entity]:
        """Entities, in order, each made from the store; of common ones what came since they were made the last time."""
        if not rows:
            return []
        last, degrees = self.hyperedge_numbers.last(), self.graph.entity_edges.degrees(np.array(rows, dtype=np.int64))
        parts = [
            up_to(self._parts(row, last) if degree >= _COMMON else (), last)
            for row, degree in zip(rows, degrees.tolist(), strict=True)
        ]
        numbers = self._numbers(self.entity_numbers, rows)
        asked = [(number, *ends) for number, own in zip(numbers, parts, strict=True) for ends in unread(own)]
        with self.store.read_transaction() as transaction:
            read = iter(transaction.aggregates(asked))
        counted = [with_read(own, read) for own in parts]
        found = [EntityAggregate.sum([part.tally for part in own if part.tally]) for own in counted if own]
        if [tally.hyperedges for tally in found] != degrees.tolist():
            raise StaleSnapshotError
        common = {
            row: own for row, own, degree in zip(rows, counted, degrees.tolist(), strict=True) if degree >= _COMMON
        }
        self.tallies.add(common)
        return [tally.entity(key) for tally, key in zip(found, self.keys.ids.take(rows), strict=True)]

    def _parts(self, row: int, last: int) -> tuple[Part, ...]:
        """The parts that a common entity is counted in, but for what came since."""
        if counted := self.tallies.parts(row, last):
            return counted
        return in_parts(self.hyperedge_numbers.at(self.graph.entity_edges.get_neighbours(np.array([row]))[0]))

    def count_common(self) -> None:
        """Count what is said of all common entities, to be kept with the arrays; of none where some has gone since."""
        rows = np.flatnonzero(self.graph.entity_edges.degrees(np.arange(len(self.keys))) >= _COMMON).tolist()
        with suppress(StaleSnapshotError):
            for start in range(0, len(rows), _COUNTED):
                self.entities_made(rows[start : start + _COUNTED])

    def find_entities_by_word(self, word: str) -> list[int]:
        """The entities whose keys hold a word."""
        if not self.by_word:
            found: defaultdict[str, list[int]] = defaultdict(list)
            for row in np.flatnonzero(self.graph.are_there(np.arange(len(self.keys)))).tolist():
                for own in set(self.keys[row].split()):
                    found[own].append(row)
            self.by_word.update(found)
        return self.by_word.get(word, [])

    def origins(self, passages: Sequence[int]) -> list[Origin]:
        """What is known of the documents of some passages beside their texts, in order."""
        with self.store.read_transaction() as transaction:

            def read(new: Sequence[int]) -> list[Origin]:
                ids = self.document_ids(new)
                return _all(transaction.get(Origin, ids), ids)

            return _recalled(self._read_in(transaction).origins, passages, read, _KEPT)

    def _read_in(self, transaction: ReadTransaction) -> Read:
        """What was shown lately; nothing in a later moment than the snapshot's: some of it may have been removed."""
        return self.read if transaction.version == self.version else Read({}, {}, {})

    def _numbers(self, column: Column, rows: Sequence[int]) -> list[int]:
        found: list[int] = column.at(np.array(rows, dtype=np.int64)).tolist()
        return found


def _all(found: Mapping[K, T], wanted: Sequence[K]) -> list[T]:
    if not found.keys() >= set(wanted):
        raise StaleSnapshotError
    return [found[key] for key in wanted]


def _recalled(kept: dict[int, T], rows: Sequence[int], read: Callable[[Sequence[int]], list[T]], most: int) -> list[T]:
    """What stands at some rows, in order: what is kept, and the rest read. Other threads may empty ``kept``."""
    found = {row: value for row in rows if (value := kept.get(row)) is not None}
    new = [row for row in dict.fromkeys(rows) if row not in found]
    if new:
        found.update(zip(new, read(new), strict=True))
        if len(kept) > most:
            kept.clear()
        kept.update((row, found[row]) for row in new)
    return [found[row] for row in rows]


def _without(known: dict[int, T], touched: IntArray) -> dict[int, T]:
    rest = known.copy()  # at once: other threads add to it
    for row in touched.tolist():
        rest.pop(row, None)
    return rest


def _whole_numbers(vectors: FloatArray) -> IntArray:
    """The sum of some vectors, as whole numbers of 2^-40."""
    total = np.zeros(vectors.shape[1], dtype=np.int64)
    for start in range(0, len(vectors), _SUMMED):
        some = vectors[start : start + _SUMMED].astype(np.float64)
        total += np.round(some * _FIXED_POINT).astype(np.int64).sum(axis=0)
    return total
