"""An index held in memory at one version: vectors and incidences as arrays, ids as row numbers.

Retrievers work on rows. This is the one place where ids become rows, and rows become evidence.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from polyad.hypergraph.incidence import Adjacency, Hypergraph, WeightedAdjacency, distinct
from polyad.model import (
    Entity,
    Evidence,
    FloatArray,
    Hyperedge,
    IntArray,
    Passage,
    ScoredEntity,
    ScoredHyperedge,
    ScoredPassage,
    TraceStep,
)
from polyad.protocols import Embedder, Progress, Store, Topology, silent
from polyad.retrieval.entity_vectors import entity_vectors
from polyad.retrieval.subject_names import SubjectNames

OWN = 2
"""Most passages that a subject is the strong one of to be their own: the name of a place, not of a kind of place."""

LINKABLE = 0.1
"""Share of the passages that names lead to from elsewhere, from which on links are as telling as they get."""


class Snapshot:
    """One version of an index. Immutable; when the store's version has grown, make another.

    Attributes:
        version: The store's version it was made from.
        graph: The hypergraph; node rows are entities. A hyperedge's subject is in it also by each name that stands for
            it elsewhere, as it would be by a title.
        subject_names: Tells which subject a name stands for.
        subjects: The passages whose subject each entity is, or stands for (:mod:`polyad.retrieval.subject_names`), by
            how surely it is.
        passage_vectors: float32 ``[passages, dimension]``.
        hyperedge_vectors: float32 ``[hyperedges, dimension]``.
        hyperedge_scores: float32 ``[hyperedges]``, in (0, 10].
        passage_of: The passage row of each hyperedge, ``[hyperedges]``.
        entity_rows: Row of each entity, by key.
    """

    def __init__(self, store: Store) -> None:
        self.version = store.version()
        self._store = store
        self._topology: Topology = store.topology()
        topology = self._topology
        self.passage_vectors: FloatArray = topology.passage_vectors
        self.hyperedge_vectors: FloatArray = topology.hyperedge_vectors
        self.hyperedge_scores: FloatArray = topology.hyperedge_scores
        self.passage_of: IntArray = topology.passage_of_hyperedge
        entities, edges = topology.incidence_entity, topology.incidence_hyperedge
        subject = topology.incidence_strength > 0
        strengths = topology.incidence_strength[subject]
        own = WeightedAdjacency.from_pairs(entities[subject], edges[subject], strengths, len(topology.entity_keys))
        self.subject_names = SubjectNames(topology.entity_keys, own.adjacency.degrees() > 0)
        names, meant = self.subject_names.pairs()
        lent_edges, owners, lent_strengths = own.gather(meant)
        lent = names[owners], lent_edges
        self.subjects = WeightedAdjacency.from_pairs(
            np.concatenate([entities[subject], lent[0]]),
            self.passage_of[np.concatenate([edges[subject], lent_edges])],
            np.concatenate([strengths, lent_strengths]),
            len(topology.entity_keys),
        )
        self._lent = _members_lent(*lent, entities, edges, len(topology.hyperedge_ids))
        self.graph = Hypergraph.from_incidences(
            np.concatenate([entities, lent[0]]),
            np.concatenate([edges, lent[1]]),
            len(topology.entity_keys),
            len(topology.hyperedge_ids),
        )
        self.entity_rows: Mapping[str, int] = {key: row for row, key in enumerate(topology.entity_keys)}
        self._views: dict[int, Entity] = {}
        self._entity_vectors: FloatArray | None = None
        self._making = threading.Lock()
        self._row_of_number = np.full(topology.passage_numbers.max(initial=-1) + 1, -1, dtype=np.int64)
        self._row_of_number[topology.passage_numbers] = np.arange(len(topology.passage_ids))
        self._passage_rows = {id: row for row, id in enumerate(topology.passage_ids)}

    @property
    def passage_count(self) -> int:
        """How many passages there are."""
        return len(self._topology.passage_ids)

    @cached_property
    def hyperedges_of_passage(self) -> Adjacency:
        """The hyperedges of each passage."""
        return Adjacency.from_pairs(self.passage_of, np.arange(len(self.passage_of)), self.passage_count)

    @cached_property
    def passages_of_entity(self) -> Adjacency:
        """The passages that mention each entity, or are about it."""
        edges, entities = self.graph.memberships.gather(np.arange(self.graph.node_count))
        return Adjacency.from_pairs(entities, self.passage_of[edges], self.graph.node_count)

    @cached_property
    def entities_of_passage(self) -> Adjacency:
        """The entities that each passage mentions, or is about."""
        edges, entities = self.graph.memberships.gather(np.arange(self.graph.node_count))
        return Adjacency.from_pairs(self.passage_of[edges], entities, self.passage_count)

    @property
    def passages_about(self) -> Adjacency:
        """The passages whose subject each entity is or stands for, however surely."""
        return self.subjects.adjacency

    @cached_property
    def strong_degrees(self) -> IntArray:
        """Of each entity, how many passages it is the strong subject of; ``[entities]``."""
        return np.bincount(self.subjects.rows[self.subjects.weights >= 1], minlength=self.graph.node_count)

    @cached_property
    def linkability(self) -> float:
        """How far names lead to what is about them, in [0, 1].

        It is 1 where at least :data:`LINKABLE` of the passages have a strong subject, of their own, that another
        document mentions, as articles of an encyclopaedia do, and falls to 0 where none has, as in a novel. The
        headings of a manual are mentioned by the manual itself, or, as "Options", are those of many places.
        """
        subjects = self.subjects
        telling = (subjects.weights >= 1) & (self.strong_degrees[subjects.rows] <= OWN)
        entities, passages = subjects.rows[telling], subjects.adjacency.neighbours[telling]
        _, document = np.unique(np.array(self._topology.document_of_passage), return_inverse=True)
        first, last = self._documents_mentioning(document)
        elsewhere = (first[entities] < document[passages]) | (last[entities] > document[passages])
        return min(1.0, len(distinct(passages[elsewhere])) / max(1, self.passage_count) / LINKABLE)

    def _documents_mentioning(self, document: IntArray) -> tuple[IntArray, IntArray]:
        """Of each entity the first and the last document that mentions it in a passage which is not about it.

        Args:
            document: Number of each passage's document, ``[passages]``.

        Returns:
            Numbers of documents, ``[entities]`` each; no document is before the first, or after the last, where none
            mentions it.
        """
        entities, passages = (
            np.repeat(np.arange(self.graph.node_count), self.passages_of_entity.degrees()),
            self.passages_of_entity.neighbours,
        )
        about = self.subjects.rows * self.passage_count + self.subjects.adjacency.neighbours
        only_mentioned = ~np.isin(entities * self.passage_count + passages, about)
        entities, documents = entities[only_mentioned], document[passages[only_mentioned]]
        first, last = np.full(self.graph.node_count, len(document)), np.full(self.graph.node_count, -1)
        np.minimum.at(first, entities, documents)
        np.maximum.at(last, entities, documents)
        return first, last

    @cached_property
    def rarity(self) -> FloatArray:
        """How telling each entity is: 1 for one passage, falling with the logarithm of their number; ``[entities]``."""
        degrees = self.passages_of_entity.degrees()
        everywhere = np.log(self.passage_count + 1)
        rarity: FloatArray = (1 - np.log(np.maximum(degrees, 1)) / everywhere).astype(np.float32)
        return rarity

    @cached_property
    def mean_passage_vector(self) -> FloatArray:
        """Its product with a vector is the mean cosine of all passages to that vector; ``[dimension]``."""
        mean: FloatArray = self.passage_vectors.mean(axis=0) if self.passage_count else self.passage_vectors.sum(axis=0)
        return mean

    @cached_property
    def entities(self) -> list[Entity]:
        """The view of every entity, in the order of rows; takes a while on a large index.

        One that has gone since this snapshot was made is there by its key alone.
        """
        views = {entity.key: entity for entity in self._store.all_entities()}
        return [views.get(key) or Entity(key, key) for key in self._topology.entity_keys]

    @cached_property
    def entity_scores(self) -> FloatArray:
        """The score of every entity, float32 ``[entities]``, in (0, 100]."""
        return np.array([entity.score for entity in self.entities], dtype=np.float32)

    def entity_vectors(self, embedder: Embedder, progress: Progress = silent) -> FloatArray:
        """The vector of every entity, float32 ``[entities, dimension]``, made once and then kept."""
        with self._making:
            if self._entity_vectors is None:
                self._entity_vectors = entity_vectors(self._store, embedder, self.entities, progress)
            return self._entity_vectors

    def search_text(self, question: str, k: int) -> tuple[IntArray, FloatArray]:
        """Rows and BM25 scores of the best passages by words, best first."""
        hits = [
            (self._passage_rows[id], score)
            for id, score in self._store.search_text(question, k)
            if id in self._passage_rows  # not if it was added after this snapshot
        ]
        rows = np.array([row for row, _ in hits], dtype=np.int64)
        return rows, np.array([score for _, score in hits], dtype=np.float32)

    def passages_with_words(self, question: str) -> list[IntArray]:
        """Rows of the passages that hold each telling word of a question, in any form of it; sorted."""
        rows = self._row_of_number
        found = []
        for numbers in self._store.passages_with_words(question):
            known = rows[numbers[numbers < len(rows)]]  # not what was added after this snapshot
            found.append(np.sort(known[known >= 0]))
        return found

    def entity_key(self, row: int) -> str:
        """The key of an entity row."""
        return self._topology.entity_keys[row]

    def entity_names(self, rows: Iterable[int]) -> dict[int, str]:
        """Display names of entity rows."""
        wanted = list(rows)
        return {row: entity.name for row, entity in zip(wanted, self._entities(wanted), strict=True)}

    def passage_id(self, row: int) -> str:
        """The id of a passage row."""
        return self._topology.passage_ids[row]

    def document_id(self, row: int) -> str:
        """The id of a passage row's document."""
        return self._topology.document_of_passage[row]

    def hyperedge_id(self, row: int) -> str:
        """The id of a hyperedge row."""
        return self._topology.hyperedge_ids[row]

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        """The passages of these rows, in order."""
        return self._store.passages([self.passage_id(row) for row in rows])

    def hyperedges_in(self, passage_id: str) -> list[int]:
        """The rows of a passage's hyperedges; none where there is no such passage."""
        row = self._passage_rows.get(passage_id)
        return [] if row is None else self.hyperedges_of_passage[row].tolist()

    def hyperedges(self, rows: Sequence[int]) -> list[Hyperedge]:
        """The hyperedges of these rows, in order."""
        return self._store.hyperedges([self.hyperedge_id(row) for row in rows])

    def evidence(
        self,
        question: str,
        retriever: str,
        passages: Sequence[tuple[int, float, str]],
        hyperedges: Sequence[tuple[int, float]] = (),
        entities: Sequence[tuple[int, float]] = (),
        trace: Sequence[TraceStep] = (),
    ) -> Evidence:
        """Turn scored rows into evidence.

        Args:
            question: What was asked.
            retriever: Who answers.
            passages: (row, score, reason), best first.
            hyperedges: (row, score), best first.
            entities: (row, score), best first.
            trace: Why the hyperedges are there.
        """
        found = self.passages([row for row, _, _ in passages])
        origins = self._store.origins([passage.document_id for passage in found])
        return Evidence(
            question,
            retriever,
            tuple(
                ScoredPassage(passage, score, reason, origin)
                for passage, (_, score, reason), origin in zip(found, passages, origins, strict=True)
            ),
            self._scored_hyperedges(hyperedges),
            tuple(
                ScoredEntity(entity, score)
                for entity, (_, score) in zip(self._entities([row for row, _ in entities]), entities, strict=True)
            ),
            tuple(trace),
        )

    def _scored_hyperedges(self, rows: Sequence[tuple[int, float]]) -> tuple[ScoredHyperedge, ...]:
        edges = self.hyperedges([row for row, _ in rows])
        members = [np.setdiff1d(self.graph.members[row], self._lent[row]).tolist() for row, _ in rows]
        views = dict(
            zip(distinct := sorted({row for own in members for row in own}), self._entities(distinct), strict=True)
        )
        return tuple(
            ScoredHyperedge(edge, tuple(views[member] for member in own), score)
            for edge, own, (_, score) in zip(edges, members, rows, strict=True)
        )

    def _entities(self, rows: Sequence[int]) -> list[Entity]:
        """Views of entities, each computed once: that of a common name goes over thousands of incidences."""
        new = [row for row in rows if row not in self._views]
        self._views.update(zip(new, self._store.entities([self.entity_key(row) for row in new]), strict=True))
        return [self._views[row] for row in rows]


def _members_lent(
    names: IntArray, lent_edges: IntArray, entities: IntArray, edges: IntArray, edge_count: int
) -> Adjacency:
    """Of each hyperedge the names by which alone its subject is in it: those that are no members as stored."""
    is_name = np.zeros(max(entities.max(initial=-1), names.max(initial=-1)) + 1, dtype=bool)
    is_name[names] = True
    stored = is_name[entities]
    is_new = ~np.isin(names * edge_count + lent_edges, entities[stored] * edge_count + edges[stored])
    return Adjacency.from_pairs(lent_edges[is_new], names[is_new], edge_count)
