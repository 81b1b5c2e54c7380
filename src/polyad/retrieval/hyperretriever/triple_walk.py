"""The triples of a question, hop by hop, and what a scorer reads of them: the same in training and in search.

HyperRAG, sections 3.1.1 to 3.1.3. A hop takes the hyperedges of the entities it starts from, the *frontier*, as
triples (head, hyperedge, tail) whose heads are the frontier; who walks chooses which tails to go on from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.distance import Triples, build_triples, compute_directional_distances, encode_triples
from polyad.hypergraph.incidence import Hypergraph, mark_first_of_equals, sort_unique
from polyad.hypergraph.pairs import split_into_pairs
from polyad.hypergraph.sparse import find_top_positions, is_in, union
from polyad.model import FloatArray, IntArray
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.signals import SignalExtractor, compute_signals, list_signal_names
from polyad.retrieval.hyperretriever.triple_scorer import Recipe
from polyad.retrieval.question import QuestionLinker

_NEAREST = 3  # hyperedges whose entities a question starts from when it names none

_MOST_STARTS = 200
"""Entities it starts from then: far above what three sentences name, far below the arguments of the largest facts."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchSpace:
    """What is walked: the hypergraph of a snapshot, or its pairs. A walk asks for what it reaches.

    Attributes:
        snapshot: Its entities described.
        pairs: Its hyperedges cut into pairs (:mod:`polyad.hypergraph.pairs`), all of them, and the row in the snapshot
            of the hyperedge each came from; None where hyperedges are walked as they are.
        density: Delta(G): hyperedges an entity; 0 for an empty index.
    """

    snapshot: Snapshot
    pairs: tuple[Hypergraph, IntArray] | None
    density: float

    @classmethod
    def of(cls, snapshot: Snapshot, *, binary: bool) -> SearchSpace:
        """The space of an index.

        Args:
            snapshot: The index.
            binary: Cut its hyperedges into pairs.
        """
        if not binary:
            return cls(snapshot, None, snapshot.density)
        graph, origins = split_into_pairs(_whole(snapshot))
        joined, there = (int((side.degrees() > 0).sum()) for side in (graph.memberships, graph.members))
        return cls(snapshot, (graph, origins), there / joined if joined else 0.0)

    def whole(self) -> Hypergraph:
        """All of it, for training."""
        return self.pairs[0] if self.pairs else _whole(self.snapshot)

    def members(self, edges: IntArray) -> tuple[IntArray, IntArray]:
        """The entities of each of some hyperedges, sorted, and the position in ``edges`` each belongs to."""
        return self.pairs[0].members.get_neighbours(edges) if self.pairs else self.snapshot.graph.members(edges)

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """The hyperedges of each of some entities, and the position in ``entities`` each belongs to."""
        return (
            self.pairs[0].memberships.get_neighbours(entities)
            if self.pairs
            else self.snapshot.graph.memberships(entities)
        )

    def origins(self, edges: IntArray) -> IntArray:
        """The row in the snapshot of each of some hyperedges."""
        return self.pairs[1][edges] if self.pairs else edges

    def passages(self, edges: IntArray) -> IntArray:
        """The row of the passage of each of some hyperedges."""
        return self.snapshot.graph.passages(self.origins(edges))


def _whole(snapshot: Snapshot) -> Hypergraph:
    count = snapshot.row_count("hyperedge")
    members, owners = snapshot.graph.members(np.arange(count))
    return Hypergraph.from_incidences(members, owners, snapshot.row_count("entity"), count)


@dataclass(frozen=True, slots=True, eq=False)
class WalkQuestion:
    """A question as a walk needs it.

    Attributes:
        text: Its words.
        vector: Its vector, ``[dimension]``.
        topics: Rows of the entities it starts from, sorted.
        candidates: Rows of the passages that have signals, sorted.
        signals: Of each, float32 ``[candidates, signals]``; no columns where the scorer reads none.
    """

    text: str
    vector: FloatArray
    topics: IntArray
    candidates: IntArray
    signals: FloatArray

    def signals_of(self, passages: IntArray) -> FloatArray:
        """The signals of some passages, 0 for those that have none; ``[passages, signals]``."""
        found = np.zeros((len(passages), self.signals.shape[1]), dtype=np.float32)
        known = is_in(passages, self.candidates)
        found[known] = self.signals[self.candidates.searchsorted(passages[known])]
        return found


class QuestionPreparer:
    """Makes questions ready for a walk.

    Args:
        snapshot: The index, its entities described.
        embedder: The one it was built with.
        linker: Finds the question's entities.
        signals: Names of the signals of the default retriever to compute; mostly none.
    """

    def __init__(
        self, snapshot: Snapshot, embedder: Embedder, linker: QuestionLinker, *, signals: Sequence[str]
    ) -> None:
        self._snapshot = snapshot
        self._embedder = embedder
        self._linker = linker
        self._columns = [list_signal_names(rewriting=False).index(name) for name in signals]
        self._extractor = SignalExtractor(snapshot, embedder, linker, rewriting=False) if signals else None

    def prepare(self, question: str) -> WalkQuestion:
        """Its vector, topic entities and signals.

        A question that names no entity of the index starts from those of the hyperedges nearest to it; where these
        join very many, from the ones with the nearest names.
        """
        if self._extractor is None:
            vector = self._embedder.encode([question], "query")[0]
            find_links = self._linker.link(question)
            candidates, signals = np.empty(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
        else:
            inputs = self._extractor.measure(question)
            vector, find_links, candidates = inputs.scale.vectors[0], inputs.question, inputs.candidates
            signals = compute_signals(inputs, rewriting=False)[:, self._columns]
        topics = np.array(sorted(find_links.entities), dtype=np.int64)
        if not len(topics):
            topics = self._starts(vector)
        return WalkQuestion(question, vector, topics, candidates, signals)

    def _starts(self, vector: FloatArray) -> IntArray:
        snapshot = self._snapshot
        ((nearest, _),) = snapshot.nearest("hyperedge", vector[None], _NEAREST)
        entities = sort_unique(snapshot.graph.members(nearest)[0])
        if len(entities) <= _MOST_STARTS:
            return entities
        near = snapshot.cosines("entity", entities, vector)
        return np.sort(
            entities[
                find_top_positions(near, _MOST_STARTS, lambda places: snapshot.rank_by_id("entity", entities[places]))
            ]
        )


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
        self._were_heads = self._were_followed = np.empty(0, dtype=np.int64)
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
        self._were_heads = union([self._were_heads, self._frontier])
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
        self._were_followed = union([self._were_followed, triples.edges[chosen]])
        tails = sort_unique(triples.tails[chosen])
        self._frontier = tails[~is_in(tails, self._were_heads)]

    def _triples(self) -> Triples:
        """Those of the frontier's hyperedges, within the limit."""
        edges, heads = self._nearest_edges(), self._frontier
        if len(edges) == 1:  # the only case in which they may be more: the nearest hyperedge alone exceeds the limit
            members = self._space.members(edges)[0]
            heads = self._nearest(members[is_in(members, heads)], self._limit // max(1, len(members) - 1))
        triples = build_triples(self._space.members, edges, heads)
        if len(triples) <= self._limit:
            return triples
        kept = is_in(triples.tails, self._nearest(triples.tails, self._limit))
        return Triples(triples.heads[kept], triples.edges[kept], triples.tails[kept])

    def _nearest(self, entities: IntArray, count: int) -> IntArray:
        """As many of some entities as ``count`` says, those with the nearest names, sorted by row."""
        if len(entities) <= max(1, count):
            return entities
        snapshot = self._space.snapshot
        near = snapshot.cosines("entity", entities, self._question.vector)
        chosen = find_top_positions(near, max(1, count), lambda places: snapshot.rank_by_id("entity", entities[places]))
        return np.sort(entities[chosen])

    def _nearest_edges(self) -> IntArray:
        """Hyperedges of the frontier: all when their triples are within the limit, else the nearest; one at least."""
        space = self._space
        edges = space.memberships(self._frontier)[0]
        edges = np.sort(edges[~is_in(edges, self._were_followed)])
        starts = np.flatnonzero(mark_first_of_equals(edges))
        heads = np.diff(starts, append=len(edges))
        edges = edges[starts]
        triples = heads * (np.bincount(space.members(edges)[1], minlength=len(edges)) - 1)
        if triples.sum() <= self._limit:
            return edges
        by_id = space.snapshot.rank_by_id("hyperedge", space.origins(edges))
        order = np.lexsort((edges, by_id, -self._closeness(edges)))
        fitting = np.cumsum(triples[order]) <= self._limit
        fitting[0] = True
        return edges[order[fitting]]

    def _extras(self, triples: Triples) -> FloatArray:
        """The structural numbers over all triples met so far (eq. 8), then cosines and signals as the recipe says."""
        recipe, question, space = self._recipe, self._question, self._space
        met = Triples(np.concatenate(self._heads), np.concatenate(self._edges), np.concatenate(self._tails))
        starts = question.topics if recipe.starts == "topics" else met.heads
        rows, encodings = compute_directional_distances(met, starts, recipe.rounds, recipe.directions)
        columns = [encode_triples(triples, rows, encodings)]
        if recipe.closeness:
            near = space.snapshot.cosines("entity", rows, question.vector)
            head, tail = (near[rows.searchsorted(ends)] for ends in (triples.heads, triples.tails))
            columns.append(np.column_stack([head, self._closeness(triples.edges), tail]))
        if recipe.signals:
            columns.append(question.signals_of(space.passages(triples.edges)))
        return np.hstack(columns)

    def _closeness(self, edges: IntArray) -> FloatArray:
        """Cosine of each of some hyperedges to the question; that of a pair is that of what it was cut from."""
        origins = self._space.origins(edges)
        rows = sort_unique(origins)
        near: FloatArray = self._space.snapshot.cosines("hyperedge", rows, self._question.vector)
        return near[rows.searchsorted(origins)]
