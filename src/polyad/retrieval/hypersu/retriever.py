"""HyperSU's retrieval: clue-guided bidirectional expansion (section 4.2).

Forward, activation spreads from the entities the question names; backward, from the entities of the passages nearest
to it. Hyperedges reached both ways are confirmed and count double. A passage's score is the mean of its best ones.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from polyad.calibration import calibration_for
from polyad.config import HyperSUSettings
from polyad.hypergraph.cosines import cosines
from polyad.hypergraph.frontier import Walk, expand
from polyad.model import Evidence, FloatArray, TraceStep
from polyad.protocols import Embedder
from polyad.retrieval.hypersu.activation import ClueActivation
from polyad.retrieval.hypersu.clues import ClueAgent
from polyad.retrieval.question import LinkedQuestion, QuestionLinker
from polyad.retrieval.ranking import HYPEREDGES_SHOWN, Hit, best, filled
from polyad.retrieval.snapshot import Snapshot
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
        snapshot: The index.
        embedder: The one the index was built with.
        linker: Finds the question's entities.
        clue_agent: Derives clues; ignored when the settings switch clues off.
        settings: See :class:`polyad.config.HyperSUSettings`.
    """

    name = "hypersu"

    def __init__(
        self,
        snapshot: Snapshot,
        embedder: Embedder,
        linker: QuestionLinker,
        clue_agent: ClueAgent,
        settings: HyperSUSettings,
    ) -> None:
        self._snapshot = snapshot
        self._embedder = embedder
        self._linker = linker
        self._clue_agent = clue_agent
        self._settings = settings
        threshold = settings.activation_threshold
        self._threshold = calibration_for(embedder.name).activation_threshold if threshold is None else threshold

    def retrieve(self, question: str, k: int) -> Evidence:
        """The ``k`` best passages; where the walk reaches fewer, the nearest others follow with score 0 or less."""
        linked = self._linker.link(question)
        clues = self._clue_agent.clues(linked) if self._settings.use_clues else [question]
        texts = list(dict.fromkeys([question, *clues]))
        vectors = self._embedder.encode(texts, "query")
        dense = cosines(self._snapshot.passage_vectors, vectors[0])
        clue_vectors = vectors[[texts.index(clue) for clue in clues]]
        expansion = self._expand(linked, clues, clue_vectors, dense)
        activated: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        for edge, score in expansion.scores.items():
            activated[int(self._snapshot.passage_of[edge])].append((score, edge))
        hits = self._ranked(activated, dense, k)
        return self._evidence(question, expansion, activated, hits)

    def _expand(
        self, linked: LinkedQuestion, clues: list[str], clue_vectors: FloatArray, dense: FloatArray
    ) -> _Expansion:
        settings = self._settings
        snapshot = self._snapshot
        activation = ClueActivation(snapshot.hyperedge_vectors, clue_vectors, self._threshold, settings.sharpening)
        forward = expand(
            snapshot.graph,
            dict.fromkeys(linked.entities, 1.0),
            activation,
            depth=settings.forward_depth,
            width=settings.width,
            decay=settings.decay,
        )
        anchors = best(dense, settings.anchors) if settings.backward_depth else np.empty(0, dtype=np.int64)
        backward = expand(
            snapshot.graph,
            dict.fromkeys(snapshot.entities_of_passage.gather(anchors)[0].tolist(), 1.0),
            activation,
            depth=settings.backward_depth,
            width=settings.width,
            decay=settings.decay,
        )
        scores = {
            edge: bridge * (settings.convergence_bonus if edge in backward.bridges else 1.0)
            for edge, bridge in forward.bridges.items()
        }
        return _Expansion(forward, backward, activation, clues, scores)

    def _ranked(self, activated: dict[int, list[tuple[float, int]]], dense: FloatArray, k: int) -> list[Hit]:
        """(row, score, reason) of the best passages: capped means first, then by similarity alone."""
        weight = self._settings.dense_weight
        limit = self._settings.units_per_passage
        scores = {}
        for passage, found in activated.items():
            strongest = sorted((score for score, _ in found), reverse=True)[:limit]
            capped_mean = sum(strongest) / len(strongest)
            scores[passage] = (1 - weight) * capped_mean + weight * float(dense[passage])
        ranked = sorted(scores, key=lambda passage: (-scores[passage], passage))[:k]
        hits = [
            (passage, scores[passage], counted(len(activated[passage]), "activated hyperedge")) for passage in ranked
        ]
        return filled(hits, dense, k)

    def _evidence(
        self,
        question: str,
        expansion: _Expansion,
        activated: dict[int, list[tuple[float, int]]],
        hits: list[Hit],
    ) -> Evidence:
        snapshot = self._snapshot
        shown = [
            (edge, score, passage)
            for passage, _, _ in hits
            for score, edge in sorted(activated.get(passage, ()), key=lambda pair: (-pair[0], pair[1]))[
                :HYPEREDGES_SHOWN
            ]
        ]
        names = snapshot.entity_names(sorted({expansion.forward.entered_from[edge] for edge, _, _ in shown}))
        trace = [
            TraceStep(
                snapshot.hyperedge_id(edge),
                snapshot.passage_id(passage),
                expansion.clues[expansion.activation.matched(edge)],
                "both" if edge in expansion.backward.bridges else "forward",
                (names[expansion.forward.entered_from[edge]],),
                score,
            )
            for edge, score, passage in shown
        ]
        strongest = sorted(expansion.forward.nodes.items(), key=lambda node: (-node[1], node[0]))
        return snapshot.evidence(
            question,
            self.name,
            hits,
            [(edge, score) for edge, score, _ in shown],
            strongest[: self._settings.width],
            trace,
        )
