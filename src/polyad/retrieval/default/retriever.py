"""The default retriever: multi-hop evidence without a language model.

Candidates come from similarity, words and two hops of links; a linear scorer weighs their signals
(:mod:`polyad.retrieval.default.signals`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyad.hypergraph.incidence import rank_in_group
from polyad.hypergraph.sparse import find_top_positions
from polyad.model import Evidence, FloatArray, IntArray, Query, ScoredHyperedge, TraceStep
from polyad.protocols.components import Embedder, MentionExtractor
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.linear_scorer import LinearScorer
from polyad.retrieval.default.settings import DefaultSettings
from polyad.retrieval.default.signals import (
    IN_WORDS,
    SignalExtractor,
    SignalInputs,
    measures_of,
    profile_names,
    signal_matrix,
    signal_names,
)
from polyad.retrieval.evidence import entity_names, evidence
from polyad.retrieval.question import QuestionLinker
from polyad.retrieval.ranking import HYPEREDGES_SHOWN

_REASONS = 3  # signals named for each passage


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The candidates of a question in a snapshot, what each signal adds to the score of each, and the scores."""

    snapshot: Snapshot
    inputs: SignalInputs
    parts: FloatArray
    scores: FloatArray


class DefaultRetriever:
    """Ranks candidate passages by the weighted sum of their signals.

    Args:
        embedder: The one the index was built with.
        extractor: Finds the names in the question.
        settings: See :class:`polyad.retrieval.default.settings.DefaultSettings`.
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

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """The best passages, with the signals that placed them and their hyperedges nearest to the question."""
        if not snapshot.passage_count:
            return evidence(snapshot, query.text, self.name, [])
        ranked = self._ranked(query.text, snapshot)
        inputs, parts, scores = ranked.inputs, ranked.parts, ranked.scores
        chosen = find_top_positions(
            scores, query.k, lambda places: snapshot.rank_by_id("passage", inputs.candidates[places])
        )
        rows = inputs.candidates[chosen]
        origins = {row: origin for row in rows.tolist() if (origin := _origin(inputs, row))[0] >= 0}
        edges, similarities, owners = _hyperedges(snapshot, inputs, rows)
        relevance = self._calibration.relevance(measures_of(inputs, scores)[chosen])
        with snapshot.read_transaction():
            found = evidence(
                snapshot,
                query.text,
                self.name,
                [(row, score, "") for row, score in zip(rows.tolist(), scores[chosen].tolist(), strict=True)],
                list(zip(edges.tolist(), similarities.tolist(), strict=True)),
                [(entity, 1.0) for entity in inputs.question.entities],
            )
            # Only now: most of what links is among what is shown, and is not read again.
            names = entity_names(snapshot, sorted({entity for _, entity in origins.values()}))
            linking = {row: names[entity] for row, (_, entity) in origins.items()}
            links = _links(snapshot, origins, linking)
        passages = (
            replace(hit, reason="; ".join([*strongest, *links.get(row, ())]), relevance=own)
            for hit, row, strongest, own in zip(
                found.passages, rows.tolist(), self._strongest(parts[chosen]), relevance, strict=True
            )
        )
        trace = _trace(query.text, found.hyperedges, [linking.get(row) for row in rows[owners].tolist()])
        return replace(found, passages=tuple(passages), trace=tuple(trace))

    def _ranked(self, question: str, snapshot: Snapshot) -> _Ranked:
        """The candidates of a question; kept for a while, as who merges hits may ask for more of them."""
        last = self._last
        if last is None or last.snapshot is not snapshot or last.inputs.question.text != question:
            linker = QuestionLinker(snapshot, self._extractor)
            inputs = SignalExtractor(snapshot, self._embedder, linker, rewriting=self._rewriting).inputs(question)
            share = np.float32(snapshot.linkability)
            weights = share * self._linked + (1 - share) * self._unlinked
            parts = signal_matrix(inputs, self._rewriting) * weights
            last = self._last = _Ranked(snapshot, inputs, parts, parts.sum(axis=1))
        return last

    def _strongest(self, parts: FloatArray) -> list[list[str]]:
        """The signals that speak most for each of some passages, each with what it adds to the score."""
        strongest = np.argsort(-parts, axis=1, kind="stable")[:, :_REASONS]
        adding = np.take_along_axis(parts, strongest, axis=1)
        return [
            [f"{IN_WORDS[self._names[place]]} +{part:.2f}" for place, part in zip(*own, strict=True) if part > 0]
            for own in zip(strongest.tolist(), adding.tolist(), strict=True)
        ]


def _links(
    snapshot: Snapshot, origins: Mapping[int, tuple[int, int]], linking: Mapping[int, str]
) -> dict[int, tuple[str]]:
    """In words, the strongest link to each passage that any leads to.

    Args:
        snapshot: The index.
        origins: Source and entity of each link, by the row it leads to.
        linking: The names of the entities.
    """
    sources = sorted({source for source, _ in origins.values()})
    titles = {
        row: passage.title or passage.id for row, passage in zip(sources, snapshot.passages(sources), strict=True)
    }
    return {
        row: (f"linked from {titles[source]!r}, which mentions {linking[row]!r}",)
        for row, (source, _) in origins.items()
    }


def _hyperedges(snapshot: Snapshot, inputs: SignalInputs, passages: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
    """The hyperedges of each passage nearest to the question, and which of ``passages`` they belong to."""
    edges, owners = snapshot.graph.hyperedges(passages)
    similarities = snapshot.cosines("hyperedge", edges, inputs.scale.vectors).max(axis=1)
    order = np.lexsort((snapshot.rank_by_id("hyperedge", edges), -similarities, owners))
    edges, owners, similarities = edges[order], owners[order], similarities[order]
    shown = rank_in_group(owners) < HYPEREDGES_SHOWN
    return edges[shown], similarities[shown], owners[shown]


def _trace(question: str, hyperedges: Sequence[ScoredHyperedge], linking: Sequence[str | None]) -> list[TraceStep]:
    """Why some hyperedges are shown; ``linking`` names what links to the passage of each, where anything does."""
    return [
        TraceStep(
            scored.hyperedge.id,
            scored.hyperedge.passage_id,
            question,
            "question" if name is None else "link",
            () if name is None else (name,),
            scored.score,
        )
        for scored, name in zip(hyperedges, linking, strict=True)
    ]


def _origin(inputs: SignalInputs, passage: int) -> tuple[int, int]:
    """(source passage, entity) of the strongest link to a passage; (-1, -1) when none leads there."""
    _, source, entity = max((hop.origin(passage) for hop in inputs.hops), key=lambda origin: origin[0])
    return source, entity
