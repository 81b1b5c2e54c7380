"""HyperSU's retrieval: clue-guided bidirectional expansion (section 4.2).

Forward, activation spreads from the entities the question names; backward, from the entities of the passages nearest
to it. Hyperedges reached both ways are confirmed and count double. A passage's score is the mean of its best ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from polyad.calibration import calibration_for
from polyad.config import NamesLinked
from polyad.hypergraph.frontier import Walk, expand_frontier
from polyad.hypergraph.sparse import Scores, find_top_positions, union
from polyad.model import Evidence, FloatArray, Query, TraceStep
from polyad.protocols.components import Embedder, MentionExtractor
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import entity_names, evidence
from polyad.retrieval.hypersu.activation import ClueActivation
from polyad.retrieval.hypersu.clues import ClueAgent
from polyad.retrieval.hypersu.reach import WithinReach
from polyad.retrieval.hypersu.settings import HyperSUSettings
from polyad.retrieval.question import LinkedQuestion, QuestionLinker
from polyad.retrieval.ranking import HYPEREDGES_SHOWN, RankedPassage, filled
from polyad.retrieval.similar_names import SimilarNames
from polyad.text.counting import counted


@dataclass(frozen=True, slots=True)
class _Expansion:
    """Both walks, what they activated, and the score s(u) of every hyperedge reached forward."""

    forward: Walk
    backward: Walk
    activation: ClueActivation
    clues: list[str]
    scores: dict[int, float]


class HyperSURetriever:
    """Walks from the question's entities through the hyperedges its clues activate.

    Args:
        embedder: The one the index was built with.
        extractor: Finds the names in the question.
        clue_agent: Derives clues; ignored when the settings switch clues off.
        settings: See :class:`polyad.retrieval.hypersu.settings.HyperSUSettings`.
        names: What of a question links to entities; see :class:`polyad.config.QuestionSettings`.
    """

    name = "hypersu"

    def __init__(
        self,
        embedder: Embedder,
        extractor: MentionExtractor,
        clue_agent: ClueAgent,
        settings: HyperSUSettings,
        names: NamesLinked = "all",
    ) -> None:
        self._names = names
        self._embedder = embedder
        self._extractor = extractor
        self._clue_agent = clue_agent
        self._settings = settings
        threshold = settings.activation_threshold
        self._threshold = calibration_for(embedder.name).activation_threshold if threshold is None else threshold

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """The best passages; where the walk reaches fewer, the nearest others follow with score 0 or less."""
        linked = self._linker(snapshot).link(query.text)
        clues = self._clue_agent.clues(linked) if self._settings.use_clues else [query.text]
        texts = list(dict.fromkeys([query.text, *clues]))
        vectors = self._embedder.encode(texts, "query")
        clue_vectors = vectors[[texts.index(clue) for clue in clues]]
        expansion = self._expand(snapshot, linked, clues, clue_vectors, vectors[0])
        activated: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        passages = snapshot.graph.passages(np.array(list(expansion.scores), dtype=np.int64)).tolist()
        for passage, (edge, score) in zip(passages, expansion.scores.items(), strict=True):
            activated[passage].append((score, edge))
        hits = self._ranked(snapshot, activated, vectors[0], query.k)
        return self._evidence(snapshot, query.text, expansion, activated, hits)

    def _linker(self, snapshot: Snapshot) -> QuestionLinker:
        threshold = self._settings.link_threshold
        similar = SimilarNames(snapshot, self._embedder, threshold) if threshold < 1 else None
        return QuestionLinker(snapshot, self._extractor, similar, self._names)

    def _expand(
        self,
        snapshot: Snapshot,
        linked: LinkedQuestion,
        clues: list[str],
        clue_vectors: FloatArray,
        question: FloatArray,
    ) -> _Expansion:
        settings = self._settings
        activation = ClueActivation(snapshot, clue_vectors, self._threshold, settings.sharpening)
        graph, order = WithinReach(snapshot, clue_vectors, self._threshold), partial(snapshot.rank_by_id, "entity")
        forward = expand_frontier(
            graph,
            dict.fromkeys(linked.entities, 1.0),
            activation,
            order,
            depth=settings.forward_depth,
            width=settings.width,
            decay=settings.decay,
        )
        ((anchors, _),) = snapshot.nearest(
            "passage", question[None], settings.anchors if settings.backward_depth else 0
        )
        starts = union([snapshot.graph.members(snapshot.graph.hyperedges(anchors)[0])[0]])
        backward = expand_frontier(
            graph,
            dict.fromkeys(starts.tolist(), 1.0),
            activation,
            order,
            depth=settings.backward_depth,
            width=settings.width,
            decay=settings.decay,
        )
        scores = {
            edge: bridge * (settings.convergence_bonus if edge in backward.bridges else 1.0)
            for edge, bridge in forward.bridges.items()
        }
        return _Expansion(forward, backward, activation, clues, scores)

    def _ranked(
        self, snapshot: Snapshot, activated: dict[int, list[tuple[float, int]]], question: FloatArray, k: int
    ) -> list[RankedPassage]:
        """(row, score, reason) of the best passages: capped means first, then by similarity alone."""
        weight = self._settings.dense_weight
        limit = self._settings.units_per_passage
        passages = np.array(list(activated), dtype=np.int64)
        similarities = snapshot.cosines("passage", passages, question).tolist()
        scores = []
        for found, similarity in zip(activated.values(), similarities, strict=True):
            strongest = sorted((score for score, _ in found), reverse=True)[:limit]
            scores.append((1 - weight) * sum(strongest) / len(strongest) + weight * similarity)
        chosen = find_top_positions(
            np.array(scores), k, lambda places: snapshot.rank_by_id("passage", passages[places])
        )
        hits = [
            (int(passages[place]), scores[place], counted(len(activated[passages[place]]), "activated hyperedge"))
            for place in chosen.tolist()
        ]
        return filled(snapshot, hits, question, k)

    def _evidence(
        self,
        snapshot: Snapshot,
        question: str,
        expansion: _Expansion,
        activated: dict[int, list[tuple[float, int]]],
        hits: list[RankedPassage],
    ) -> Evidence:
        shown = [
            (edge, score, passage)
            for passage, _, _ in hits
            for score, edge in _strongest(snapshot, activated.get(passage, ()))[:HYPEREDGES_SHOWN]
        ]
        forward, backward = expansion.forward, expansion.backward
        names = entity_names(snapshot, sorted({forward.entered_from[edge] for edge, _, _ in shown}))
        edge_ids = snapshot.ids("hyperedge", [edge for edge, _, _ in shown])
        passage_ids = snapshot.ids("passage", [passage for _, _, passage in shown])
        trace = [
            TraceStep(
                edge_id,
                passage_id,
                expansion.clues[expansion.activation.matched(edge)],
                "both" if edge in backward.bridges else "forward",
                (names[forward.entered_from[edge]],),
                score,
            )
            for edge_id, passage_id, (edge, score, _) in zip(edge_ids, passage_ids, shown, strict=True)
        ]
        nodes = Scores.from_pairs(np.array([*forward.nodes], dtype=np.int64), np.array([*forward.nodes.values()]))
        strongest = nodes.top_k(self._settings.width, partial(snapshot.rank_by_id, "entity")).tolist()
        return evidence(
            snapshot,
            question,
            self.name,
            hits,
            [(edge, score) for edge, score, _ in shown],
            [(node, forward.nodes[node]) for node in strongest],
            trace,
        )


def _strongest(snapshot: Snapshot, found: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Hyperedges of one passage with their scores, best first, ties by id."""
    order = snapshot.rank_by_id("hyperedge", np.array([edge for _, edge in found], dtype=np.int64)).tolist()
    return [pair for _, pair in sorted(zip(order, found, strict=True), key=lambda pair: (-pair[1][0], pair[0]))]
