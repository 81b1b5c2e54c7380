"""The triples of a question, hop by hop, and what a scorer reads of them: the same in training and in search.

HyperRAG, sections 3.1.1 to 3.1.3. A hop takes the hyperedges of the entities it starts from, the *frontier*, as
triples (head, hyperedge, tail) whose heads are the frontier; who walks chooses which tails to go on from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.bipartite import binary as cut_into_pairs
from polyad.hypergraph.cosines import cosines
from polyad.hypergraph.distance import Triples, directional_distances, triple_encoding, triples_of
from polyad.hypergraph.incidence import Hypergraph, distinct
from polyad.hypergraph.sparse import best_places
from polyad.model import FloatArray, IntArray
from polyad.protocols import Embedder
from polyad.retrieval.default.signals import SignalExtractor, signal_matrix, signal_names
from polyad.retrieval.hyperretriever.scorer import Recipe
from polyad.retrieval.question import QuestionLinker
from polyad.view import View

_NEAREST = 3  # hyperedges whose entities a question starts from when it names none

_MOST_STARTS = 200
"""Entities it starts from then: far above what three sentences name, far below the arguments of the largest facts."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchSpace:
    """What is walked, over one view.

    Attributes:
        graph: The hypergraph, or its pairs.
        origins: The row in the index of each hyperedge of ``graph``.
        passages: The row of the passage of each hyperedge of ``graph``.
        entity_vectors: float32 ``[entities, dimension]``.
        hyperedge_vectors: float32 ``[hyperedges of the index, dimension]``.
        entity_order, edge_order: A number for each entity, and each hyperedge of the index, in the order of keys and
            ids.
        density: Delta(G): hyperedges an entity; 0 for an empty index.
    """

    graph: Hypergraph
    origins: IntArray
    passages: IntArray
    entity_vectors: FloatArray
    hyperedge_vectors: FloatArray
    entity_order: FloatArray
    edge_order: FloatArray
    density: float

    @classmethod
    def of(cls, view: View, *, binary: bool) -> SearchSpace:
        """The space of an index, its entities described.

        Args:
            view: The index.
            binary: Cut its hyperedges into pairs (:mod:`polyad.hypergraph.bipartite`).
        """
        edges, entities = np.arange(view.row_count("hyperedge")), np.arange(view.row_count("entity"))
        members, owners = view.graph.members(edges)
        whole = Hypergraph.from_incidences(members, owners, len(entities), len(edges))
        joined = int((whole.memberships.degrees() > 0).sum())
        graph, origins = cut_into_pairs(whole) if binary else (whole, edges)
        there = graph.members.degrees() > 0
        return cls(
            graph,
            origins,
            view.graph.passages(origins),
            view.vectors("entity", entities),
            view.vectors("hyperedge", edges),
            view.order("entity", entities),
            view.order("hyperedge", edges),
            int(there.sum()) / joined if joined else 0.0,
        )


@dataclass(frozen=True, slots=True, eq=False)
class WalkQuestion:
    """A question as a walk needs it.

    Attributes:
        text: Its words.
        vector: Its vector, ``[dimension]``.
        topics: Rows of the entities it starts from, sorted.
        signals: Of every passage, float32 ``[passages, signals]``; no columns where the scorer reads none.
    """

    text: str
    vector: FloatArray
    topics: IntArray
    signals: FloatArray


class QuestionReader:
    """Makes questions ready for a walk.

    Args:
        view: The index, its entities described.
        embedder: The one it was built with.
        linker: Finds the question's entities.
        signals: Names of the signals of the default retriever to compute; mostly none.
    """

    def __init__(self, view: View, embedder: Embedder, linker: QuestionLinker, *, signals: Sequence[str]) -> None:
        self._view = view
        self._embedder = embedder
        self._linker = linker
        self._columns = [signal_names(rewriting=False).index(name) for name in signals]
        self._extractor = SignalExtractor(view, embedder, linker, rewriting=False) if signals else None

    def read(self, question: str) -> WalkQuestion:
        """Its vector, topic entities and signals.

        A question that names no entity of the index starts from those of the hyperedges nearest to it; where these
        join very many, from the ones with the nearest names.
        """
        count = self._view.row_count("passage")
        if self._extractor is None:
            vector = self._embedder.encode([question], "query")[0]
            linked, signals = self._linker.link(question), np.zeros((count, 0), dtype=np.float32)
        else:
            state = self._extractor.state(question)
            vector, linked = state.scale.vectors[0], state.question
            values = signal_matrix(state, rewriting=False)[:, self._columns]
            signals = np.zeros((count, values.shape[1]), dtype=np.float32)
            signals[state.candidates] = values
        topics = np.array(sorted(linked.entities), dtype=np.int64)
        if not len(topics):
            topics = self._starts(vector)
        return WalkQuestion(question, vector, topics, signals)

    def _starts(self, vector: FloatArray) -> IntArray:
        view = self._view
        ((nearest, _),) = view.nearest("hyperedge", vector[None], _NEAREST)
        entities = distinct(view.graph.members(nearest)[0])
        if len(entities) <= _MOST_STARTS:
            return entities
        near = view.cosines("entity", entities, vector)
        return np.sort(entities[best_places(near, _MOST_STARTS, lambda places: view.order("entity", entities[places]))])


class TripleWalk:
    """One walk from a question's topic entities. Not for several threads; each question has its own.

    A hyperedge that was followed is not met again at later hops: all it leads to is known by then. In training those
    are the right ones, so meeting them again would teach the scorer to repeat itself.

    Args:
        space: What is walked.
        recipe: What the scorer reads.
        question: Where it starts.
        triples_per_hop: Most triples at one hop, those of the hyperedges nearest to the question first. Of a hyperedge
            that has more by itself, those with the nearest heads; of a single head, those with the nearest tails.
    """

    def __init__(self, space: SearchSpace, recipe: Recipe, question: WalkQuestion, triples_per_hop: int) -> None:
        self._space = space
        self._recipe = recipe
        self._question = question
        self._limit = triples_per_hop
        # For the hyperedges of the index; pairs cut from one have its text, so its closeness.
        self._closeness: FloatArray = cosines(space.hyperedge_vectors, question.vector)
        self._was_head = np.zeros(space.graph.node_count, dtype=bool)
        self._was_followed = np.zeros(space.graph.edge_count, dtype=bool)
        self._heads: list[IntArray] = []
        self._edges: list[IntArray] = []
        self._tails: list[IntArray] = []
        self._frontier = question.topics

    def hop(self) -> tuple[Triples, FloatArray]:
        """The triples of the frontier, and the extras of each: float32 ``[triples, recipe.extras]``.

        Returns:
            Triples sorted by head, then hyperedge, then tail; none when the walk has come to its end.
        """
        triples = self._triples()
        self._was_head[self._frontier] = True
        self._heads.append(triples.heads)
        self._edges.append(triples.edges)
        self._tails.append(triples.tails)
        return triples, self._extras(triples)

    def follow(self, triples: Triples, chosen: IntArray) -> None:
        """Go on from the tails of some triples of the last hop that were no heads yet.

        Args:
            triples: What :meth:`hop` gave.
            chosen: Positions of those to follow.
        """
        self._was_followed[triples.edges[chosen]] = True
        tails = distinct(triples.tails[chosen])
        self._frontier = tails[~self._was_head[tails]]

    def _triples(self) -> Triples:
        """Those of the frontier's hyperedges, within the limit."""
        graph, edges, heads = self._space.graph, self._nearest_edges(), self._frontier
        if len(edges) == 1:  # the only case in which they may be more: the nearest hyperedge alone exceeds the limit
            members = graph.members[int(edges[0])]
            heads = self._nearest(members[np.isin(members, heads)], self._limit // max(1, len(members) - 1))
        triples = triples_of(graph, edges, heads)
        if len(triples) <= self._limit:
            return triples
        kept = np.isin(triples.tails, self._nearest(triples.tails, self._limit))
        return Triples(triples.heads[kept], triples.edges[kept], triples.tails[kept])

    def _nearest(self, entities: IntArray, count: int) -> IntArray:
        """As many of some entities as ``count`` says, those with the nearest names, sorted by row."""
        if len(entities) <= max(1, count):
            return entities
        space = self._space
        near = cosines(space.entity_vectors[entities], self._question.vector)
        return np.sort(entities[best_places(near, max(1, count), lambda places: space.entity_order[entities[places]])])

    def _nearest_edges(self) -> IntArray:
        """Hyperedges of the frontier: all when their triples are within the limit, else the nearest; one at least."""
        graph = self._space.graph
        edges = graph.memberships.gather(self._frontier)[0]
        edges = np.sort(edges[~self._was_followed[edges]])
        starts = np.flatnonzero(np.diff(edges, prepend=-1))
        heads = np.diff(starts, append=len(edges))
        edges = edges[starts]
        triples = heads * (graph.members.degrees(edges) - 1)
        if triples.sum() <= self._limit:
            return edges
        origins = self._space.origins[edges]
        order = np.lexsort((edges, self._space.edge_order[origins], -self._closeness[origins]))
        fitting = np.cumsum(triples[order]) <= self._limit
        fitting[0] = True
        return edges[order[fitting]]

    def _extras(self, triples: Triples) -> FloatArray:
        """The structural numbers over all triples met so far (eq. 8), then cosines and signals as the recipe says."""
        recipe, question, space = self._recipe, self._question, self._space
        met = Triples(np.concatenate(self._heads), np.concatenate(self._edges), np.concatenate(self._tails))
        starts = question.topics if recipe.starts == "topics" else met.heads
        rows, encodings = directional_distances(met, starts, recipe.rounds)
        columns = [triple_encoding(triples, rows, encodings)]
        if recipe.closeness:
            near = np.empty(space.graph.node_count, dtype=np.float32)
            near[rows] = cosines(space.entity_vectors[rows], question.vector)
            edges = self._closeness[space.origins[triples.edges]]
            columns.append(np.column_stack([near[triples.heads], edges, near[triples.tails]]))
        if recipe.signals:
            columns.append(question.signals[space.passages[triples.edges]])
        return np.hstack(columns)
