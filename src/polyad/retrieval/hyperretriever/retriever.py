"""HyperRAG's HyperRetriever: a walk along triples that a trained scorer considers plausible (section 3.1).

From the entities of the question it walks to the tails of plausible triples, hop by hop. If few triples are plausible
enough, the threshold is lowered in steps (section 3.1.5), so that a sparse index yields evidence too. A triple counts
less if the path to it is less plausible. A passage is ranked by its most plausible hyperedges and by its similarity to
the question.
"""

from __future__ import annotations

import threading
from functools import partial

import numpy as np

from polyad.hypergraph.distance import Triples
from polyad.hypergraph.sparse import Scores, rank_by_id, rank_in_group, sort_unique, union
from polyad.model import Evidence, FloatArray, IntArray, Query
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Kind, Snapshot
from polyad.retrieval.default.signals import SIGNAL_NAMES
from polyad.retrieval.evidence import HYPEREDGES_PER_PASSAGE, RankedHyperedge, build_evidence
from polyad.retrieval.hyperretriever.expansion import AcceptedTriples, search_triples
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_scorer import TripleScorer
from polyad.retrieval.hyperretriever.triple_walk import QuestionPreparer, SearchSpace, TripleWalk
from polyad.retrieval.question import QuestionLinker
from polyad.text.words import format_count


class HyperRetriever:
    """Ranks passages by triples (head entity, hyperedge, tail entity), whose plausibility a trained model predicts.

    Args:
        embedder: The embedder of the index.
        linker: Links the names in the question to entities.
        settings: Thresholds and limits of the search.
        scorer: The trained scorer; by default that of the settings.

    Raises:
        ConfigurationError: The scorer is missing, or is for another embedder or variant.
    """

    name = "hyperretriever"

    def __init__(
        self,
        embedder: Embedder,
        linker: QuestionLinker,
        settings: HyperRetrieverSettings,
        scorer: TripleScorer | None = None,
    ) -> None:
        expected = embedder.name, embedder.dimension, SIGNAL_NAMES if settings.signals else ()
        scorer = scorer or TripleScorer.from_settings(settings.weights, *expected)
        scorer.recipe.require_match(*expected)
        self._embedder = embedder
        self._linker = linker
        self._settings = settings
        self._scorer = scorer
        self._space: SearchSpace | None = None
        self._space_lock = threading.Lock()

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the best passages as evidence, by the plausibility of their triples and similarity to the question.

        The snapshot must contain entity vectors.
        """
        question = query.text
        if not snapshot.passage_count:
            return build_evidence(snapshot, question, self.name, [])
        preparer = QuestionPreparer(snapshot, self._embedder, self._linker, signals=self._scorer.recipe.signals)
        prepared_question = preparer.prepare(question)
        walk = TripleWalk(
            self.prepare(snapshot), self._scorer.recipe, prepared_question, self._settings.triples_per_hop
        )
        triples = search_triples(walk, partial(self._score_triples, snapshot, prepared_question.vector), self._settings)
        strongest = _find_strongest_triples(snapshot, triples)
        edges, plausibilities = triples.edges[strongest], triples.plausibilities[strongest]
        owners = snapshot.graph.passages(edges)
        reached = _average_best(owners, plausibilities, self._settings.hyperedges_per_passage)
        ((nearest, _),) = snapshot.nearest("passage", prepared_question.vector[None], query.k)
        rows = union([reached.rows, nearest])
        share = self._settings.dense_weight
        dense = snapshot.cosines("passage", rows, prepared_question.vector)
        scores = Scores(rows, ((1 - share) * reached.get(rows) + share * dense).astype(np.float32))
        best = scores.top_k(query.k, partial(rank_by_id, snapshot, "passage"))
        limit = self._settings.max_listed
        listed = strongest[_select_hyperedges(snapshot, edges, plausibilities, best, limit)]
        counts = Scores.from_sum(owners, np.ones(len(owners))).get(best)
        return build_evidence(
            snapshot,
            question,
            self.name,
            [
                (row, score, _format_reason(int(count)))
                for row, score, count in zip(best.tolist(), scores.get(best).tolist(), counts.tolist(), strict=True)
            ],
            [
                RankedHyperedge(edge, plausibility, question, f"hop {hop}", (head,))
                for edge, plausibility, hop, head in zip(
                    triples.edges[listed].tolist(),
                    triples.plausibilities[listed].tolist(),
                    triples.hops[listed].tolist(),
                    triples.heads[listed].tolist(),
                    strict=True,
                )
            ],
            _select_entities(snapshot, prepared_question.topics, triples, limit),
        )

    def prepare(self, snapshot: Snapshot) -> SearchSpace:
        """Build the hypergraph that the search traverses, and cache it for further searches of the same snapshot."""
        with self._space_lock:
            if self._space is None or self._space.snapshot is not snapshot:
                self._space = SearchSpace.from_snapshot(snapshot, binary=self._settings.binary)
            return self._space

    def _score_triples(
        self, snapshot: Snapshot, question: FloatArray, triples: Triples, extras: FloatArray
    ) -> FloatArray:
        """Predict the plausibility of each triple from the vectors of its rows and the features ``extras``.

        The ``extras`` are features other than vectors. Vectors are in the order of ids: the last bits of a matrix
        product depend on the positions of rows, and row numbers on the order in which documents were added.
        """
        columns: list[tuple[Kind, IntArray]] = [
            ("entity", triples.heads),
            ("hyperedge", triples.edges),
            ("entity", triples.tails),
        ]
        rows, positions = zip(*(_sort_by_id(snapshot, kind, column) for kind, column in columns), strict=True)
        vectors = (snapshot.vectors(kind, ordered) for (kind, _), ordered in zip(columns, rows, strict=True))
        order = np.lexsort(positions[::-1])
        plausibilities = np.empty(len(triples), dtype=np.float32)
        ordered_triples = Triples(*positions).select(order)
        plausibilities[order] = self._scorer.predict_by_row(question, vectors, ordered_triples, extras[order])
        return plausibilities


def _sort_by_id(snapshot: Snapshot, kind: Kind, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return (distinct rows sorted by their ids, index of each of ``rows`` among the distinct rows)."""
    distinct = sort_unique(rows)
    order = rank_by_id(snapshot, kind, distinct).argsort()
    return distinct[order], order.argsort()[distinct.searchsorted(rows)]


def _select_hyperedges(
    snapshot: Snapshot, edges: IntArray, plausibilities: FloatArray, passages: IntArray, limit: int
) -> IntArray:
    """Return the indices of the hyperedges to list in the evidence, sorted by plausibility, shared entities and id.

    The best few hyperedges of each of ``passages`` are listed, and at most ``limit`` hyperedges of other passages. With
    the limit 0, all hyperedges are listed: the paper fills its context with hyperedges of any passage (section 3.1.6).
    """
    owners, by_id = snapshot.graph.passages(edges), rank_by_id(snapshot, "hyperedge", edges)
    order = np.lexsort((by_id, -plausibilities, owners))
    if limit:
        order = order[rank_in_group(owners[order]) < HYPEREDGES_PER_PASSAGE]
        is_listed_passage = np.isin(owners[order], passages)
        others = _select_highest(order[~is_listed_passage], plausibilities, limit)
        order = np.concatenate([order[is_listed_passage], others])
    connected = _count_connected(snapshot, edges, order)
    order = order[np.lexsort((by_id[order], -connected, -plausibilities[order]))]
    is_other = ~np.isin(owners[order], passages)
    selected: IntArray = order[~is_other | (np.cumsum(is_other) <= (limit or len(order)))]
    return selected


def _select_entities(
    snapshot: Snapshot, topics: IntArray, triples: AcceptedTriples, limit: int
) -> list[tuple[int, float]]:
    """Return entities with scores: ``topics`` with 1, then tails with the plausibility of their best triple.

    At most ``limit`` entities are returned; with 0, all of them.
    """
    scores = dict.fromkeys(topics[rank_by_id(snapshot, "entity", topics).argsort()].tolist(), 1.0)
    order = np.lexsort((rank_by_id(snapshot, "entity", triples.tails), -triples.plausibilities))
    for tail, score in zip(triples.tails[order].tolist(), triples.plausibilities[order].tolist(), strict=True):
        scores.setdefault(tail, score)
    return list(scores.items())[: limit or None]


def _find_strongest_triples(snapshot: Snapshot, triples: AcceptedTriples) -> IntArray:
    """Return the index of the most plausible triple of each hyperedge."""
    by_head = rank_by_id(snapshot, "entity", triples.heads)
    order = np.lexsort((by_head, triples.hops, -triples.plausibilities, triples.edges))
    strongest: IntArray = order[rank_in_group(triples.edges[order]) == 0]
    return strongest


def _select_highest(positions: IntArray, values: FloatArray, count: int) -> IntArray:
    """Return the ``positions`` of the ``count`` highest ``values``; more if several values tie for the last place."""
    if len(positions) <= count:
        return positions
    highest: IntArray = positions[values[positions] >= np.partition(values[positions], -count)[-count]]
    return highest


def _average_best(passages: IntArray, plausibilities: FloatArray, count: int) -> Scores:
    """Return for each passage the mean of the ``count`` highest ``plausibilities`` of its hyperedges.

    Parallel arrays: ``passages`` are the rows of the hyperedges' passages.
    """
    order = np.lexsort((-plausibilities, passages))
    order = order[rank_in_group(passages[order]) < count]
    sums = Scores.from_sum(passages[order], plausibilities[order])
    counts = Scores.from_sum(passages[order], np.ones(len(order)))
    return Scores(sums.rows, sums.values / counts.values)


def _count_connected(snapshot: Snapshot, edges: IntArray, positions: IntArray) -> IntArray:
    """Return for each hyperedge in ``edges[positions]`` the number of other ``edges`` with a shared entity."""
    counts = []
    for edge in edges[positions].tolist():
        members = snapshot.graph.members(np.array([edge]))[0]
        adjacent = snapshot.graph.memberships(members)[0]
        counts.append(len(sort_unique(adjacent[np.isin(adjacent, edges)])) - 1)
    return np.array(counts, dtype=np.int64)


def _format_reason(hyperedge_count: int) -> str:
    if not hyperedge_count:
        return "similar to the question, not reached"
    return format_count(hyperedge_count, "plausible hyperedge")
