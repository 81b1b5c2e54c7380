"""The default retriever: multi-hop evidence without a language model.

Candidates come from similarity, words and two hops of links; a linear scorer weighs their signals
(:mod:`polyad.retrieval.default.signals`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polyad.config import DefaultSettings
from polyad.hypergraph.sparse import best_places
from polyad.hypergraph.view import View
from polyad.model import Evidence, FloatArray, IntArray, TraceStep
from polyad.protocols import Embedder
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.signals import (
    IN_WORDS,
    SignalExtractor,
    State,
    measures_of,
    profile_names,
    signal_matrix,
    signal_names,
)
from polyad.retrieval.evidence import entity_names, evidence
from polyad.retrieval.question import QuestionLinker
from polyad.retrieval.ranking import HYPEREDGES_SHOWN, places_within

_REASONS = 3  # signals named for each passage


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The candidates of a question, what each signal adds to the score of each, and the scores."""

    state: State
    parts: FloatArray
    scores: FloatArray


class DefaultRetriever:
    """Ranks candidate passages by the weighted sum of their signals.

    Args:
        view: The index.
        embedder: The one it was built with.
        linker: Finds the question's entities.
        settings: See :class:`polyad.config.DefaultSettings`.
        scorer: The weights; by default those of the settings.

    Raises:
        ConfigurationError: the weights are for other signals, or cannot be read.
    """

    name = "default"

    def __init__(
        self,
        view: View,
        embedder: Embedder,
        linker: QuestionLinker,
        settings: DefaultSettings,
        scorer: LinearScorer | None = None,
    ) -> None:
        scorer = scorer or LinearScorer.from_settings(settings.weights, rewriting=settings.rewriting)
        self._view = view
        self._rewriting = settings.rewriting
        self._names = signal_names(settings.rewriting)
        self._signals = SignalExtractor(view, embedder, linker, rewriting=settings.rewriting)
        linked, unlinked = np.split(scorer.vector(profile_names(self._names)), 2)
        self._calibration = scorer.calibration
        share = np.float32(view.linkability)
        self._weights = share * linked + (1 - share) * unlinked
        self._last: _Ranked | None = None

    def retrieve(self, question: str, k: int) -> Evidence:
        """The ``k`` best passages, with the signals that placed them and their hyperedges nearest to the question."""
        if not self._view.passage_count:
            return evidence(self._view, question, self.name, [])
        ranked = self._ranked(question)
        state, parts, scores = ranked.state, ranked.parts, ranked.scores
        chosen = best_places(scores, k, lambda places: self._view.order("passage", state.candidates[places]))
        rows = state.candidates[chosen]
        links = self._links(state, rows)
        hits = [
            (row, float(scores[place]), "; ".join([*self._strongest(parts[place]), *links.get(row, ())]))
            for row, place in zip(rows.tolist(), chosen.tolist(), strict=True)
        ]
        edges, similarities, owners = self._hyperedges(rows, state)
        relevance = self._calibration.relevance(measures_of(state, scores)[chosen])
        found = evidence(
            self._view,
            question,
            self.name,
            hits,
            list(zip(edges.tolist(), similarities.tolist(), strict=True)),
            [(entity, 1.0) for entity in state.question.entities],
            self._trace(state, edges, similarities, rows[owners]),
        )
        passages = (replace(hit, relevance=own) for hit, own in zip(found.passages, relevance, strict=True))
        return replace(found, passages=tuple(passages))

    def _ranked(self, question: str) -> _Ranked:
        """The candidates of a question; kept for a while, as who merges hits may ask for more of them."""
        last = self._last
        if last is None or last.state.question.text != question:
            state = self._signals.state(question)
            parts = signal_matrix(state, self._rewriting) * self._weights
            last = self._last = _Ranked(state, parts, parts.sum(axis=1))
        return last

    def _strongest(self, parts: FloatArray) -> list[str]:
        """The signals that speak most for a passage, each with what it adds to the score."""
        strongest = [place for place in np.argsort(-parts, kind="stable")[:_REASONS].tolist() if parts[place] > 0]
        return [f"{IN_WORDS[self._names[place]]} +{parts[place]:.2f}" for place in strongest]

    def _links(self, state: State, passages: IntArray) -> dict[int, tuple[str]]:
        """In words, the strongest link to each of some passages that any leads to."""
        view = self._view
        origins = {row: origin for row in passages.tolist() if (origin := _origin(state, row))[0] >= 0}
        sources = sorted({source for source, _ in origins.values()})
        titles = {
            row: passage.title or passage.id for row, passage in zip(sources, view.passages(sources), strict=True)
        }
        names = entity_names(view, sorted({entity for _, entity in origins.values()}))
        return {
            row: (f"linked from {titles[source]!r}, which mentions {names[entity]!r}",)
            for row, (source, entity) in origins.items()
        }

    def _hyperedges(self, passages: IntArray, state: State) -> tuple[IntArray, FloatArray, IntArray]:
        """The hyperedges of each passage nearest to the question, and which of ``passages`` they belong to."""
        view = self._view
        edges, owners = view.graph.hyperedges(passages)
        similarities = view.cosines("hyperedge", edges, state.scale.vectors).max(axis=1)
        order = np.lexsort((view.order("hyperedge", edges), -similarities, owners))
        edges, owners, similarities = edges[order], owners[order], similarities[order]
        shown = places_within(owners) < HYPEREDGES_SHOWN
        return edges[shown], similarities[shown], owners[shown]

    def _trace(self, state: State, edges: IntArray, similarities: FloatArray, passages: IntArray) -> list[TraceStep]:
        view = self._view
        origins = [_origin(state, passage)[1] for passage in passages.tolist()]
        names = entity_names(view, sorted({entity for entity in origins if entity >= 0}))
        return [
            TraceStep(
                edge_id,
                passage_id,
                state.question.text,
                "link" if entity >= 0 else "question",
                (names[entity],) if entity >= 0 else (),
                similarity,
            )
            for edge_id, passage_id, entity, similarity in zip(
                view.ids("hyperedge", edges),
                view.ids("passage", passages),
                origins,
                similarities.tolist(),
                strict=True,
            )
        ]


def _origin(state: State, passage: int) -> tuple[int, int]:
    """(source passage, entity) of the strongest link to a passage; (-1, -1) when none leads there."""
    row = np.array([passage])
    hop = max(state.hops, key=lambda hop: float(hop.link.at(row)[0]))
    return hop.origins.get(passage, (-1, -1))
