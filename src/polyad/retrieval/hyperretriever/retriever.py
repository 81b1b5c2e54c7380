"""HyperRAG's HyperRetriever: along the triples that a trained scorer holds plausible (section 3.1).

From the entities a question names it walks to the tails of plausible triples, hop by hop. Where few triples are
plausible enough, the threshold is lowered in steps (section 3.1.5), so that a sparse index still yields evidence.
What is kept counts the less, the less plausible the way to it was. A passage is ranked by the most plausible of its
hyperedges and by its own similarity to the question.
"""

from __future__ import annotations

import threading
from functools import partial

import numpy as np

from polyad.config import NamesLinked
from polyad.hypergraph.distance import Triples
from polyad.hypergraph.incidence import rank_in_group, sort_unique
from polyad.hypergraph.sparse import Scores, union
from polyad.model import Evidence, FloatArray, IntArray, Query, TraceStep
from polyad.protocols.components import Embedder, MentionExtractor
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.signals import list_signal_names
from polyad.retrieval.evidence import entity_names, evidence
from polyad.retrieval.hyperretriever.expansion import KeptTriples, expanded
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_scorer import PrecomputedScorer, TripleScorer
from polyad.retrieval.hyperretriever.triple_walk import QuestionPreparer, SearchSpace, TripleWalk, WalkQuestion
from polyad.retrieval.question import QuestionLinker
from polyad.retrieval.ranking import HYPEREDGES_SHOWN
from polyad.text.counting import counted

_HYPEREDGES_BEYOND = 30
"""Hyperedges of passages that are not among the best, offered for the hyperedges' part of the context: about what that
part holds."""

_ENTITIES_SHOWN = 30


class HyperRetriever:
    """Ranks passages by the plausibility of the triples that lead to them.

    Args:
        embedder: The one the index was built with.
        extractor: Finds the names in the question.
        settings: See :class:`polyad.retrieval.hyperretriever.settings.HyperRetrieverSettings`.
        scorer: By default that of the settings.
        names: What of a question links to entities; see :class:`polyad.config.QuestionSettings`.

    Raises:
        ConfigurationError: the scorer is for another embedder or variant, or there is none.
    """

    name = "hyperretriever"

    def __init__(
        self,
        embedder: Embedder,
        extractor: MentionExtractor,
        settings: HyperRetrieverSettings,
        scorer: TripleScorer | None = None,
        names: NamesLinked = "all",
    ) -> None:
        self._names = names
        wanted = embedder.name, embedder.dimension, list_signal_names(rewriting=False) if settings.signals else ()
        scorer = scorer or TripleScorer.from_settings(settings.weights, *wanted)
        scorer.recipe.require(*wanted)
        self._embedder = embedder
        self._extractor = extractor
        self._settings = settings
        self._scorer = scorer
        self._space: SearchSpace | None = None
        self._preparing = threading.Lock()

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """The best passages; those that no kept hyperedge leads to count by similarity alone.

        The entities of the snapshot have to be described.
        """
        question = query.text
        if not snapshot.passage_count:
            return evidence(snapshot, question, self.name, [])
        linker = QuestionLinker(snapshot, self._extractor, names=self._names)
        walked = QuestionPreparer(snapshot, self._embedder, linker, signals=self._scorer.recipe.signals).prepare(
            question
        )
        found = self._search(walked, snapshot)
        strongest = _strongest_of_each(found)
        edges, plausibilities = found.edges[strongest], found.plausibilities[strongest]
        owners = snapshot.graph.passages(edges)
        reached = _means(owners, plausibilities, self._settings.hyperedges_per_passage)
        ((nearest, _),) = snapshot.nearest("passage", walked.vector[None], query.k)
        rows = union([reached.rows, nearest])
        share = self._settings.dense_weight
        dense = snapshot.cosines("passage", rows, walked.vector)
        scores = Scores(rows, ((1 - share) * reached.get(rows) + share * dense).astype(np.float32))
        best = scores.top_k(query.k, partial(snapshot.rank_by_id, "passage"))
        shown = strongest[_shown(snapshot, edges, plausibilities, best)]
        counts = Scores.from_sum(owners, np.ones(len(owners))).get(best)
        return evidence(
            snapshot,
            question,
            self.name,
            [
                (row, score, _reason(int(count)))
                for row, score, count in zip(best.tolist(), scores.get(best).tolist(), counts.tolist(), strict=True)
            ],
            list(zip(found.edges[shown].tolist(), found.plausibilities[shown].tolist(), strict=True)),
            _entities(snapshot, walked.topics, found),
            _trace(snapshot, question, found, shown),
        )

    def prepare(self, snapshot: Snapshot) -> SearchSpace:
        """Make what is made once for a snapshot, and keep it for the snapshot that was prepared last."""
        with self._preparing:
            if self._space is None or self._space.snapshot is not snapshot:
                self._space = SearchSpace.of(snapshot, binary=self._settings.binary)
            return self._space

    def _search(self, question: WalkQuestion, snapshot: Snapshot) -> KeptTriples:
        space = self.prepare(snapshot)
        walk = TripleWalk(space, self._scorer.recipe, question, self._settings.triples_per_hop)

        def plausibilities(triples: Triples, extras: FloatArray) -> FloatArray:
            return self._scores(snapshot, question.vector, triples, extras)

        return expanded(walk, space, question.topics, plausibilities, self._settings)

    def _scores(self, snapshot: Snapshot, question: FloatArray, triples: Triples, extras: FloatArray) -> FloatArray:
        """The plausibility of each triple; each vector is multiplied once, in however many triples it is."""
        heads, edges, tails = map(sort_unique, (triples.heads, triples.edges, triples.tails))
        vectors = (
            snapshot.vectors("entity", heads),
            snapshot.vectors("hyperedge", edges),
            snapshot.vectors("entity", tails),
        )
        places = Triples(
            heads.searchsorted(triples.heads), edges.searchsorted(triples.edges), tails.searchsorted(triples.tails)
        )
        return PrecomputedScorer(self._scorer, *vectors).scores(question, places, extras)


def _shown(snapshot: Snapshot, edges: IntArray, plausibilities: FloatArray, passages: IntArray) -> IntArray:
    """Positions of the best hyperedges: most plausible first, then best connected, then by id.

    Of each of ``passages`` the best few, and as many as the context has room for of all others: the paper fills
    its context with hyperedges whatever passage they are from (section 3.1.6).
    """
    owners, by_id = snapshot.graph.passages(edges), snapshot.rank_by_id("hyperedge", edges)
    order = np.lexsort((by_id, -plausibilities, owners))
    order = order[rank_in_group(owners[order]) < HYPEREDGES_SHOWN]
    is_own = np.isin(owners[order], passages)
    order = np.concatenate([order[is_own], _highest(order[~is_own], plausibilities, _HYPEREDGES_BEYOND)])
    connected = _connectivity(snapshot, edges, order)
    order = order[np.lexsort((by_id[order], -connected, -plausibilities[order]))]
    is_other = ~np.isin(owners[order], passages)
    shown: IntArray = order[~is_other | (np.cumsum(is_other) <= _HYPEREDGES_BEYOND)]
    return shown


def _entities(snapshot: Snapshot, topics: IntArray, found: KeptTriples) -> list[tuple[int, float]]:
    """The topics, which are certain, then the tails by the most plausible triple that leads to them."""
    scores = dict.fromkeys(topics.tolist(), 1.0)
    order = np.lexsort((snapshot.rank_by_id("entity", found.tails), -found.plausibilities))
    for tail, score in zip(found.tails[order].tolist(), found.plausibilities[order].tolist(), strict=True):
        if len(scores) >= _ENTITIES_SHOWN:
            break
        scores.setdefault(tail, score)
    return list(scores.items())[:_ENTITIES_SHOWN]


def _trace(snapshot: Snapshot, question: str, found: KeptTriples, shown: IntArray) -> list[TraceStep]:
    names = entity_names(snapshot, sort_unique(found.heads[shown]).tolist())
    edges = found.edges[shown]
    return [
        TraceStep(
            edge_id,
            passage_id,
            question,
            f"hop {hop}",
            (names[head],),
            plausibility,
        )
        for edge_id, passage_id, hop, head, plausibility in zip(
            snapshot.ids("hyperedge", edges),
            snapshot.ids("passage", snapshot.graph.passages(edges)),
            found.hops[shown].tolist(),
            found.heads[shown].tolist(),
            found.plausibilities[shown].tolist(),
            strict=True,
        )
    ]


def _strongest_of_each(found: KeptTriples) -> IntArray:
    """The position of the most plausible triple of each hyperedge, the earliest of equals; by hyperedge."""
    order = np.lexsort((-found.plausibilities, found.edges))
    strongest: IntArray = order[rank_in_group(found.edges[order]) == 0]
    return strongest


def _highest(positions: IntArray, values: FloatArray, count: int) -> IntArray:
    """The positions of the ``count`` highest values, and of all that equal the last of these."""
    if len(positions) <= count:
        return positions
    highest: IntArray = positions[values[positions] >= np.partition(values[positions], -count)[-count]]
    return highest


def _means(owners: IntArray, plausibilities: FloatArray, most: int) -> Scores:
    """The mean of the best few hyperedges of each passage that has any."""
    order = np.lexsort((-plausibilities, owners))
    order = order[rank_in_group(owners[order]) < most]
    sums = Scores.from_sum(owners[order], plausibilities[order])
    counts = Scores.from_sum(owners[order], np.ones(len(order)))
    return Scores(sums.rows, sums.values / counts.values)


def _connectivity(snapshot: Snapshot, edges: IntArray, positions: IntArray) -> IntArray:
    """How many of ``edges`` share a member with each of those at ``positions``, itself not counted."""
    counts = []
    for edge in edges[positions].tolist():
        members = snapshot.graph.members(np.array([edge]))[0]
        meeting = snapshot.graph.memberships(members)[0]
        counts.append(len(sort_unique(meeting[np.isin(meeting, edges)])) - 1)
    return np.array(counts, dtype=np.int64)


def _reason(hyperedges: int) -> str:
    if not hyperedges:
        return "similar to the question, not reached"
    return counted(hyperedges, "plausible hyperedge")
