"""The default retriever: multi-hop evidence without a language model.

Candidates come from similarity, words and two hops of links; a linear scorer weighs their signals
(:mod:`polyad.retrieval.default.signals`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polyad.config import DefaultSettings
from polyad.hypergraph.sparse import best_places
from polyad.model import Evidence, FloatArray, IntArray, Query, TraceStep
from polyad.protocols import Embedder, MentionExtractor
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
from polyad.view import View

_REASONS = 3  # signals named for each passage


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The candidates of a question in a view, what each signal adds to the score of each, and the scores."""

    view: View
    state: State
    parts: FloatArray
    scores: FloatArray


class DefaultRetriever:
    """Ranks candidate passages by the weighted sum of their signals.

    Args:
        embedder: The one the index was built with.
        extractor: Finds the names in the question.
        settings: See :class:`polyad.config.DefaultSettings`.
        scorer: The weights; by default those of the settings.

    Raises:
        ConfigurationError: the weights are for other signals, or cannot be read.
    """

    name = "default"

    def __init__(
        self,
        embedder: Embedder,
        extractor: MentionExtractor,
        settings: DefaultSettings,
        scorer: LinearScorer | None = None,
    ) -> None:
        scorer = scorer or LinearScorer.from_settings(settings.weights, rewriting=settings.rewriting)
        self._embedder = embedder
        self._extractor = extractor
        self._rewriting = settings.rewriting
        self._names = signal_names(settings.rewriting)
        self._linked, self._unlinked = np.split(scorer.vector(profile_names(self._names)), 2)
        self._calibration = scorer.calibration
        self._last: _Ranked | None = None

    def retrieve(self, query: Query, view: View) -> Evidence:
        """The best passages, with the signals that placed them and their hyperedges nearest to the question."""
        if not view.passage_count:
            return evidence(view, query.text, self.name, [])
        ranked = self._ranked(query.text, view)
        state, parts, scores = ranked.state, ranked.parts, ranked.scores
        chosen = best_places(scores, query.k, lambda places: view.order("passage", state.candidates[places]))
        rows = state.candidates[chosen]
        links = _links(view, state, rows)
        hits = [
            (row, float(scores[place]), "; ".join([*self._strongest(parts[place]), *links.get(row, ())]))
            for row, place in zip(rows.tolist(), chosen.tolist(), strict=True)
        ]
        edges, similarities, owners = _hyperedges(view, state, rows)
        relevance = self._calibration.relevance(measures_of(state, scores)[chosen])
        found = evidence(
            view,
            query.text,
            self.name,
            hits,
            list(zip(edges.tolist(), similarities.tolist(), strict=True)),
            [(entity, 1.0) for entity in state.question.entities],
            _trace(view, state, edges, similarities, rows[owners]),
        )
        passages = (replace(hit, relevance=own) for hit, own in zip(found.passages, relevance, strict=True))
        return replace(found, passages=tuple(passages))

    def _ranked(self, question: str, view: View) -> _Ranked:
        """The candidates of a question; kept for a while, as who merges hits may ask for more of them."""
        last = self._last
        if last is None or last.view is not view or last.state.question.text != question:
            linker = QuestionLinker(view, self._extractor)
            state = SignalExtractor(view, self._embedder, linker, rewriting=self._rewriting).state(question)
            share = np.float32(view.linkability)
            weights = share * self._linked + (1 - share) * self._unlinked
            parts = signal_matrix(state, self._rewriting) * weights
            last = self._last = _Ranked(view, state, parts, parts.sum(axis=1))
        return last

    def _strongest(self, parts: FloatArray) -> list[str]:
        """The signals that speak most for a passage, each with what it adds to the score."""
        strongest = [place for place in np.argsort(-parts, kind="stable")[:_REASONS].tolist() if parts[place] > 0]
        return [f"{IN_WORDS[self._names[place]]} +{parts[place]:.2f}" for place in strongest]


def _links(view: View, state: State, passages: IntArray) -> dict[int, tuple[str]]:
    """In words, the strongest link to each of some passages that any leads to."""
    origins = {row: origin for row in passages.tolist() if (origin := _origin(state, row))[0] >= 0}
    sources = sorted({source for source, _ in origins.values()})
    titles = {row: passage.title or passage.id for row, passage in zip(sources, view.passages(sources), strict=True)}
    names = entity_names(view, sorted({entity for _, entity in origins.values()}))
    return {
        row: (f"linked from {titles[source]!r}, which mentions {names[entity]!r}",)
        for row, (source, entity) in origins.items()
    }


def _hyperedges(view: View, state: State, passages: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
    """The hyperedges of each passage nearest to the question, and which of ``passages`` they belong to."""
    edges, owners = view.graph.hyperedges(passages)
    similarities = view.cosines("hyperedge", edges, state.scale.vectors).max(axis=1)
    order = np.lexsort((view.order("hyperedge", edges), -similarities, owners))
    edges, owners, similarities = edges[order], owners[order], similarities[order]
    shown = places_within(owners) < HYPEREDGES_SHOWN
    return edges[shown], similarities[shown], owners[shown]


def _trace(view: View, state: State, edges: IntArray, similarities: FloatArray, passages: IntArray) -> list[TraceStep]:
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
