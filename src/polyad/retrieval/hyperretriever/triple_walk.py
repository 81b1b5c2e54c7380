"""Enumerates the triples of a question hop by hop, with their features, for training and for search.

HyperRAG, sections 3.1.1 to 3.1.3. A hop enumerates the triples (head, hyperedge, tail) whose heads are the *frontier*;
the caller chooses the tails that form the next frontier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.distance import Triples, build_triples, compute_directional_distances, encode_triples
from polyad.hypergraph.incidence import Hypergraph, split_into_pairs
from polyad.hypergraph.sparse import find_top_positions, is_in, mark_first_of_equals, rank_by_id, sort_unique, union
from polyad.model import FloatArray, IntArray
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.signals import SIGNAL_NAMES, SignalExtractor, compute_signals
from polyad.retrieval.hyperretriever.triple_scorer import Recipe
from polyad.retrieval.question import QuestionLinker

_START_HYPEREDGES = 3  # nearest hyperedges whose entities start the walk of a question without names

_MAX_START_ENTITIES = 200
"""Start entities of a question without names: far more than three sentences name, far fewer than large facts join."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchSpace:
    """The hypergraph that a search traverses: that of the index, or one with hyperedges split into pairs of entities.

    Attributes:
        snapshot: A snapshot with entity vectors.
        pairs: All hyperedges split into pairs, and for each pair the row number of its hyperedge; None if hyperedges
            are not split. See :func:`polyad.hypergraph.incidence.split_into_pairs`.
        density: Delta(G), the number of hyperedges per entity; 0 for an empty index.
    """

    snapshot: Snapshot
    pairs: tuple[Hypergraph, IntArray] | None
    density: float

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, *, binary: bool) -> SearchSpace:
        """Build the search space of a snapshot; with ``binary``, hyperedges are split into pairs of entities.

        Args:
            snapshot: A snapshot with entity vectors.
            binary: Split hyperedges into pairs.
        """
        if not binary:
            edges = np.arange(snapshot.row_count("hyperedge"))
            members, owners = snapshot.graph.members(edges, variants=False)
            edge_count, entity_count = (int((np.bincount(rows) > 0).sum()) for rows in (owners, members))
            return cls(snapshot, None, edge_count / max(1, entity_count))
        graph, hyperedges = split_into_pairs(_build_hypergraph(snapshot))
        entity_count, pair_count = (int((side.degrees() > 0).sum()) for side in (graph.memberships, graph.members))
        return cls(snapshot, (graph, hyperedges), pair_count / entity_count if entity_count else 0.0)

    def build_hypergraph(self) -> Hypergraph:
        """Return the search space as one hypergraph in memory, for training."""
        return self.pairs[0] if self.pairs else _build_hypergraph(self.snapshot)

    def members(self, edges: IntArray) -> tuple[IntArray, IntArray]:
        """Return the entities in the hyperedges as parallel arrays: entity, and index in ``edges``."""
        return self.pairs[0].members.get_neighbours(edges) if self.pairs else self.snapshot.graph.members(edges)

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """Return the hyperedges of the entities as parallel arrays: hyperedge, and index in ``entities``."""
        return (
            self.pairs[0].memberships.get_neighbours(entities)
            if self.pairs
            else self.snapshot.graph.memberships(entities)
        )

    def to_snapshot_rows(self, edges: IntArray) -> IntArray:
        """Return the hyperedge row in the snapshot of each of ``edges``, which may be pairs split from hyperedges."""
        return self.pairs[1][edges] if self.pairs else edges

    def passages(self, edges: IntArray) -> IntArray:
        """Return the row of the passage that contains each of ``edges``."""
        return self.snapshot.graph.passages(self.to_snapshot_rows(edges))


def _build_hypergraph(snapshot: Snapshot) -> Hypergraph:
    count = snapshot.row_count("hyperedge")
    members, owners = snapshot.graph.members(np.arange(count))
    return Hypergraph.from_incidences(members, owners, snapshot.row_count("entity"), count)


@dataclass(frozen=True, slots=True, eq=False)
class WalkQuestion:
    """A question with its vector and the entities where a walk on the hypergraph starts.

    Attributes:
        text: The question.
        vector: Vector of the question, ``[dimension]``.
        topics: Row numbers of the entities where the walk starts, sorted.
        candidates: Row numbers of the passages that have signals, sorted.
        signals: Signals of the candidates, float32 ``[candidates, signals]``; no columns if the scorer reads none.
    """

    text: str
    vector: FloatArray
    topics: IntArray
    candidates: IntArray
    signals: FloatArray

    def get_signals(self, passages: IntArray) -> FloatArray:
        """Return the ranking signals of each passage, ``[passages, signals]``; 0 for passages without signals."""
        values = np.zeros((len(passages), self.signals.shape[1]), dtype=np.float32)
        is_candidate = is_in(passages, self.candidates)
        values[is_candidate] = self.signals[self.candidates.searchsorted(passages[is_candidate])]
        return values


class QuestionPreparer:
    """Embeds questions and links the names in them to entities, as input of a walk.

    Args:
        snapshot: A snapshot with entity vectors.
        embedder: The embedder of the index.
        linker: Links the names of a question to entities.
        signals: Names of the default retriever's signals to compute; usually none.
    """

    def __init__(
        self, snapshot: Snapshot, embedder: Embedder, linker: QuestionLinker, *, signals: Sequence[str]
    ) -> None:
        self._snapshot = snapshot
        self._embedder = embedder
        self._linker = linker
        self._columns = [SIGNAL_NAMES.index(name) for name in signals]
        self._extractor = SignalExtractor(snapshot, embedder, linker) if signals else None

    def prepare(self, question: str) -> WalkQuestion:
        """Embed the question and find the entities where the walk starts (topics) and the signals of passages.

        The topics of a question that names no entity are the entities of its nearest hyperedges; of very many, those
        with the nearest names.
        """
        if self._extractor is None:
            vector = self._embedder.encode([question], "query")[0]
            linked_question = self._linker.link(question, self._snapshot)
            candidates, signals = np.empty(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
        else:
            inputs = self._extractor.compute_inputs(question)
            vector, linked_question, candidates = inputs.scale.vectors[0], inputs.question, inputs.candidates
            signals = compute_signals(inputs)[:, self._columns]
        topics = np.array(sorted(linked_question.entities), dtype=np.int64)
        if not len(topics):
            topics = self._find_start_entities(vector)
        return WalkQuestion(question, vector, topics, candidates, signals)

    def _find_start_entities(self, vector: FloatArray) -> IntArray:
        snapshot = self._snapshot
        ((nearest, _),) = snapshot.nearest("hyperedge", vector[None], _START_HYPEREDGES)
        entities = sort_unique(snapshot.graph.members(nearest)[0])
        if len(entities) <= _MAX_START_ENTITIES:
            return entities
        cosines = snapshot.cosines("entity", entities, vector)
        return _select_top(snapshot, entities, cosines, _MAX_START_ENTITIES)


def _select_top(snapshot: Snapshot, entities: IntArray, cosines: FloatArray, count: int) -> IntArray:
    """Return the rows of the ``count`` of ``entities`` with the highest ``cosines``, sorted by row; ties by key."""
    top = find_top_positions(cosines, count, lambda positions: rank_by_id(snapshot, "entity", entities[positions]))
    return np.sort(entities[top])


class TripleWalk:
    """A walk on the hypergraph that yields triples (head, hyperedge, tail), hop by hop from a question's entities.

    Not thread-safe.

    A hyperedge that was followed does not occur at later hops, since all entities it leads to were reached. In training
    the followed hyperedges are positive, so their repetition would teach the scorer to repeat itself.

    Args:
        space: The hypergraph.
        recipe: The features that the scorer reads.
        question: The question with its topic entities.
        triples_per_hop: Maximum number of triples at one hop; hyperedges nearest to the question come first. A single
            hyperedge with more triples is limited to the nearest heads, and a single head to the nearest tails.

    Attributes:
        space: The hypergraph.
        topics: Row numbers of the entities from which the walk starts.
    """

    def __init__(self, space: SearchSpace, recipe: Recipe, question: WalkQuestion, triples_per_hop: int) -> None:
        self.space = space
        self.topics = question.topics
        self._recipe = recipe
        self._question = question
        self._limit = triples_per_hop
        self._visited_heads = self._followed_edges = np.empty(0, dtype=np.int64)
        self._walked = Triples.concatenate([])
        self._frontier = self.topics

    def enumerate_hop(self) -> tuple[Triples, FloatArray]:
        """Return the triples of the current hop, and their input features for the scorer, ``[triples, features]``.

        The features are float32, ``recipe.extra_count`` for each triple.

        Returns:
            Triples sorted by head, hyperedge and tail; empty at the end of the walk.
        """
        triples = self._enumerate_triples()
        self._visited_heads = union([self._visited_heads, self._frontier])
        self._walked = Triples.concatenate([self._walked, triples])
        return triples, self._build_extra_features(triples)

    def follow(self, triples: Triples, positions: IntArray) -> None:
        """Continue the walk from the tail entities of ``triples[positions]``, except entities visited before.

        Args:
            triples: The triples of the last hop.
            positions: Positions of the triples to follow.
        """
        self._followed_edges = union([self._followed_edges, triples.edges[positions]])
        tails = sort_unique(triples.tails[positions])
        self._frontier = tails[~is_in(tails, self._visited_heads)]

    def _enumerate_triples(self) -> Triples:
        """Return the triples of the current hop: at most ``triples_per_hop``, those nearest to the question."""
        edges, heads = self._select_nearest_edges(), self._frontier
        if len(edges) == 1:  # only the nearest hyperedge alone can exceed the limit
            members = self.space.members(edges)[0]
            heads = self._select_nearest(members[is_in(members, heads)], self._limit // max(1, len(members) - 1))
        triples = build_triples(self.space.members, edges, heads)
        if len(triples) <= self._limit:
            return triples
        return triples.select(is_in(triples.tails, self._select_nearest(triples.tails, self._limit)))

    def _select_nearest(self, entities: IntArray, count: int) -> IntArray:
        """Return the ``count`` entities nearest to the question, sorted by row number."""
        if len(entities) <= max(1, count):
            return entities
        snapshot = self.space.snapshot
        cosines = snapshot.cosines("entity", entities, self._question.vector)
        return _select_top(snapshot, entities, cosines, max(1, count))

    def _select_nearest_edges(self) -> IntArray:
        """Return the hyperedges of the current hop; of too many, only those nearest to the question.

        At least one hyperedge is returned.
        """
        space = self.space
        edges = space.memberships(self._frontier)[0]
        edges = np.sort(edges[~is_in(edges, self._followed_edges)])
        starts = np.flatnonzero(mark_first_of_equals(edges))
        head_counts = np.diff(starts, append=len(edges))
        edges = edges[starts]
        triple_counts = head_counts * (np.bincount(space.members(edges)[1], minlength=len(edges)) - 1)
        if triple_counts.sum() <= self._limit:
            return edges
        by_id = rank_by_id(space.snapshot, "hyperedge", space.to_snapshot_rows(edges))
        order = np.lexsort((edges, by_id, -self._compute_cosines(edges)))
        is_within_limit = np.cumsum(triple_counts[order]) <= self._limit
        is_within_limit[0] = True
        return edges[order[is_within_limit]]

    def _build_extra_features(self, triples: Triples) -> FloatArray:
        """Return the input features of triples other than vectors, such as distances in the hypergraph (equation 8)."""
        recipe, question, space = self._recipe, self._question, self.space
        starts = question.topics if recipe.starts == "topics" else self._walked.heads
        rows, encodings = compute_directional_distances(self._walked, starts, recipe.rounds, recipe.directions)
        columns = [encode_triples(triples, rows, encodings)]
        if recipe.closeness:
            cosines = space.snapshot.cosines("entity", rows, question.vector)
            head, tail = (cosines[rows.searchsorted(ends)] for ends in (triples.heads, triples.tails))
            columns.append(np.column_stack([head, self._compute_cosines(triples.edges), tail]))
        if recipe.signals:
            columns.append(question.get_signals(space.passages(triples.edges)))
        return np.hstack(columns)

    def _compute_cosines(self, edges: IntArray) -> FloatArray:
        """Return the cosine of each edge with the question; a pair of entities has the cosine of its hyperedge."""
        hyperedges = self.space.to_snapshot_rows(edges)
        rows = sort_unique(hyperedges)
        cosines: FloatArray = self.space.snapshot.cosines("hyperedge", rows, self._question.vector)
        return cosines[rows.searchsorted(hyperedges)]
