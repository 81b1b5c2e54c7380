"""The default retriever: multi-hop evidence without a language model.

Candidates come from similarity, BM25 and two hops of links; a linear scorer weighs their signals
(:mod:`polyad.retrieval.default.signals`). A second stage adjusts the scores of the best candidates by comparing them
(:mod:`polyad.retrieval.default.second_stage`), a last stage by how telling the words, links and similarities of the
question are (:mod:`polyad.retrieval.default.last_stage`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from polyad.hypergraph.sparse import find_top_positions, rank_by_id, rank_in_group
from polyad.model import Evidence, FloatArray, Hyperedge, IntArray, Passage, Query
from polyad.protocols.components import Embedder, MentionExtractor
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.assembly import MAX_DEPTH_FACTOR
from polyad.retrieval.default.absent_names import compute_absent_code_share, find_absent_names
from polyad.retrieval.default.encoder_trust import EncoderTrust
from polyad.retrieval.default.last_stage import rank_by_words
from polyad.retrieval.default.relevance import K, RelevanceFeatures, load_relevance_model
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.second_stage import rank_by_links
from polyad.retrieval.default.signals import (
    SIGNAL_NAMES,
    SignalExtractor,
    SignalInputs,
    compute_signals,
    list_weight_names,
)
from polyad.retrieval.evidence import HYPEREDGES_PER_PASSAGE, RankedHyperedge, build_evidence, read_entity_names
from polyad.retrieval.question import QuestionLinker
from polyad.text.clause_numbers import find_clause_references
from polyad.text.file_names import find_file_references
from polyad.text.sentences import HEADING_SEPARATOR

_REASONS_PER_PASSAGE = 3
_MIN_REASON = 0.005
"""Contributions up to this round to 0."""
_SECOND_STAGE_REASON = "compared with the best passages"
_LAST_STAGE_REASON = "weighed by the words, links and similarities of the question"
_NAMED_REASON = "of a clause or file that the question names"

_NAMED_SCORE = 16.0
"""Score of a passage of all clauses and files that the question names. Of questions about a clause by its number, all
have this clause in the first passage; too few questions name a clause or a file for the last stage to learn it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultSettings:
    """Settings of the default retriever: the file of the trained weights.

    Attributes:
        weights: A file written by ``polyad bench train default``; empty for the weights that come with polyad.
    """

    weights: str = ""


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The candidate passages of one question, with their scores and ranking signals.

    Attributes:
        snapshot: The index.
        inputs: The measurements of the candidates.
        contributions: Amounts that each signal, the later stages, clauses and files add to each candidate's score;
            float32 ``[candidates, signals + 3]``.
        scores: The sums of the contributions; float32 ``[candidates]``.
    """

    snapshot: Snapshot
    inputs: SignalInputs
    contributions: FloatArray
    scores: FloatArray

    def find_best(self, k: int, scores: FloatArray | None = None) -> IntArray:
        """Return the indices of the ``k`` candidate passages with the highest scores, best first, ties by id.

        Args:
            k: Number of candidates.
            scores: Scores to rank by instead; float32 ``[candidates]``.
        """
        candidates, scores = self.inputs.candidates, self.scores if scores is None else scores
        return find_top_positions(scores, k, lambda places: rank_by_id(self.snapshot, "passage", candidates[places]))


class _CachedEvidence:
    """A function that returns evidence with the ``k`` best passages, and caches the evidence for a smaller ``k``.

    The second request for more passages than before also reads those of a likely third request, and the third request
    as many as a search may request, to save round trips.

    Args:
        build: Builds the evidence with a number of passages, best first.
    """

    def __init__(self, build: Callable[[int], Evidence]) -> None:
        self._build = build
        self._depths: list[int] = []
        self._evidence: Evidence

    def __call__(self, k: int) -> Evidence:
        """Return the evidence with the ``k`` best passages."""
        if k > max(self._depths, default=0):
            first = (self._depths or [k])[0]
            depth = (k, k + k // 2, max(k, MAX_DEPTH_FACTOR * first))[min(len(self._depths), 2)]
            self._evidence = self._build(depth)
            self._depths.append(depth)
        passages = self._evidence.passages[:k]
        ids = {hit.passage.id for hit in passages}
        count = sum(scored.hyperedge.passage_id in ids for scored in self._evidence.hyperedges)
        return replace(
            self._evidence,
            passages=passages,
            hyperedges=self._evidence.hyperedges[:count],  # in the order of the passages
            trace=self._evidence.trace[:count],
        )


class DefaultRetriever:
    """Ranks passages by a weighted sum of ranking signals, such as BM25, cosine and links between passages.

    Args:
        embedder: The embedder of the index.
        extractor: Extracts the names in the question.
        settings: The file of the weights.
        scorer: The weights; by default those of the settings.

    Attributes:
        encoder_trust: How far similarities count in each language of the index; fully, before it is measured.

    Raises:
        ConfigurationError: The weights are for other signals, or cannot be read.
    """

    name = "default"

    def __init__(
        self,
        embedder: Embedder,
        extractor: MentionExtractor,
        settings: DefaultSettings,
        scorer: LinearScorer | None = None,
    ) -> None:
        scorer = scorer or LinearScorer.from_settings(settings.weights)
        self._embedder = embedder
        self._linker = QuestionLinker(extractor)
        self._reasons = [*SIGNAL_NAMES, _SECOND_STAGE_REASON, _LAST_STAGE_REASON, _NAMED_REASON]
        self._linkable_weights, self._unlinkable_weights = np.split(
            scorer.get_weights(list_weight_names(SIGNAL_NAMES)), 2
        )
        self._network, self._last_network = scorer.network, scorer.last_network
        self.encoder_trust = EncoderTrust()

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the best passages as evidence, with the reasons for their scores and their nearest hyperedges."""
        return self.rank_candidates(query.text, snapshot)(query.k)

    def rank_candidates(self, question: str, snapshot: Snapshot) -> Callable[[int], Evidence]:
        """Score all candidate passages of a question; return a function ``k -> evidence`` with the ``k`` best."""
        if not snapshot.passage_count:
            return lambda _: build_evidence(snapshot, question, self.name, [])
        return _CachedEvidence(partial(self._build_evidence, self._score_candidates(question, snapshot)))

    def measure_trust(self, snapshot: Snapshot) -> EncoderTrust:
        """Return how far the embedder's similarities can be trusted in each language of the index."""
        return EncoderTrust.measure(snapshot, self._embedder)

    def measure_relevance(
        self, question: str, snapshot: Snapshot, *hidden: Collection[int]
    ) -> list[tuple[RelevanceFeatures, IntArray]]:
        """Return the features that predict relevance and the rows of the best passages, to train the prediction.

        Args:
            question: The question.
            snapshot: The index.
            hidden: Sets of passages; each yields a further pair, as if these passages were absent.
        """
        ranking = self._score_candidates(question, snapshot)
        candidates = ranking.inputs.candidates
        share = compute_absent_code_share(question, find_absent_names(ranking.inputs.question, snapshot))
        measured = []
        for hidden_rows in ((), *hidden):
            best = ranking.find_best(K + len(hidden_rows))
            best = best[~np.isin(candidates[best], list(hidden_rows))][:K]
            if len(best):
                (first,) = snapshot.get(Passage, candidates[best[:1]].tolist())
                features = RelevanceFeatures.measure(
                    ranking.inputs, snapshot, self._embedder.name, best, first.text, share, hidden_rows
                )
                measured.append((features, candidates[best]))
        return measured

    def _score_candidates(self, question: str, snapshot: Snapshot) -> _Ranking:
        extractor = SignalExtractor(snapshot, self._embedder, self._linker, self.encoder_trust)
        inputs = extractor.compute_inputs(question)
        signals = compute_signals(inputs)
        contributions = signals * self._mix_weights(inputs.linkability)
        scores = contributions.sum(axis=1)
        adjustments = np.zeros((3, len(scores)), dtype=np.float32)
        adjustments[2] = _score_named_parts(question, snapshot, inputs.candidates)
        if self._network:
            ranking = rank_by_links(inputs, signals, scores, self._network, snapshot)
            adjustments[0] = ranking.compute_adjustments(scores, ranking.ranked)
            if self._last_network:
                ranked = rank_by_words(inputs, ranking, self._last_network, snapshot)
                adjustments[1] = ranking.compute_adjustments(scores, ranked) - adjustments[0]
        contributions = np.column_stack([contributions, *adjustments])
        return _Ranking(snapshot, inputs, contributions, scores + adjustments.sum(axis=0))

    def _mix_weights(self, linkability: float) -> FloatArray:
        """Return the weights of the signals, interpolated by ``linkability`` (0 to 1) between two trained sets."""
        share = np.float32(linkability)
        weights: FloatArray = share * self._linkable_weights + (1 - share) * self._unlinkable_weights
        return weights

    def _build_evidence(self, ranking: _Ranking, k: int) -> Evidence:
        """Return evidence with the ``k`` best candidate passages of ``ranking``, read from the store."""
        snapshot, inputs, scores = ranking.snapshot, ranking.inputs, ranking.scores
        question = inputs.question.text
        best = ranking.find_best(k)
        rows = inputs.candidates[best]
        links = {row: link for row in rows.tolist() if (link := _find_strongest_link(inputs, row))[0] >= 0}
        edges, similarities, owners = _find_nearest_hyperedges(snapshot, inputs, rows)
        absent = find_absent_names(inputs.question, snapshot)
        prefetched_rows = {
            Passage: sorted({source for source, _ in links.values()}),
            Hyperedge: snapshot.graph.hyperedges(rows)[0].tolist(),  # all are read for the selection of excerpts
        }
        with snapshot.read_transaction():
            unexplained = build_evidence(
                snapshot,
                question,
                self.name,
                [(row, score, "") for row, score in zip(rows.tolist(), scores[best].tolist(), strict=True)],
                [
                    RankedHyperedge(
                        edge, similarity, question, "link" if row in links else "question", links.get(row, ())[1:]
                    )
                    for edge, similarity, row in zip(
                        edges.tolist(), similarities.tolist(), rows[owners].tolist(), strict=True
                    )
                ],
                [(entity, 1.0) for entity in inputs.question.entities],
                prefetched_rows,
            )
            names = read_entity_names(snapshot, sorted({entity for _, entity in links.values()}))
            link_names = {row: names[entity] for row, (_, entity) in links.items()}
            link_reasons = _explain_links(snapshot, links, link_names)
        measured = np.r_[best, ranking.find_best(K)[len(best) :]]
        features = RelevanceFeatures.measure(
            inputs,
            snapshot,
            self._embedder.name,
            measured,
            unexplained.passages[0].passage.text,
            compute_absent_code_share(question, absent),
        )
        passages = (
            replace(hit, reason="; ".join([*reasons, *link_reasons.get(row, ())]), relevance=probability)
            for hit, row, reasons, probability in zip(
                unexplained.passages,
                rows.tolist(),
                self._explain_scores(scores[best], ranking.contributions[best]),
                load_relevance_model().predict(features)[: len(best)],
                strict=True,
            )
        )
        return replace(unexplained, passages=tuple(passages), absent_names=tuple(absent))

    def _explain_scores(self, scores: FloatArray, contributions: FloatArray) -> list[list[str]]:
        """Return for each score its largest contributions as texts, such as "mentions names in the question +0.31".

        The last text is the sum of all other contributions.

        Args:
            scores: Score of each passage.
            contributions: What each signal, the later stages and named parts add; ``[passages, signals + 3]``.
        """
        largest = np.argsort(-np.abs(contributions), axis=1, kind="stable")[:, :_REASONS_PER_PASSAGE]
        values = np.take_along_axis(contributions, largest, axis=1).astype(np.float64).round(2)
        rests = scores.astype(np.float64).round(2) - values.sum(axis=1)
        names = [[*(self._reasons[column] for column in row), "other signals"] for row in largest.tolist()]
        return [
            [f"{name} {value:+.2f}" for name, value in zip(*row, strict=True) if abs(value) > _MIN_REASON]
            for row in zip(names, np.column_stack([values, rests]).tolist(), strict=True)
        ]


def _score_named_parts(question: str, snapshot: Snapshot, passages: IntArray) -> FloatArray:
    """Score each passage by whether it is of a file, or one of its lines begins with a clause, that is named."""
    terms = [*find_clause_references(question), *find_file_references(question, sure=True)]
    terms = [term for term, count in zip(terms, snapshot.document_frequencies(terms), strict=True) if count]
    if not terms:
        return np.zeros(len(passages), dtype=np.float32)
    is_contained = snapshot.contains_terms(terms, passages)
    shares: FloatArray = (is_contained.any(axis=1) + is_contained.mean(axis=1, dtype=np.float32)) / np.float32(2)
    return np.float32(_NAMED_SCORE) * shares


def _explain_links(
    snapshot: Snapshot, links: Mapping[int, tuple[int, int]], entity_names: Mapping[int, str]
) -> dict[int, tuple[str]]:
    """Return a sentence for each passage that a link reached: it names the link's source passage and entity.

    Args:
        snapshot: The index.
        links: The other passage and the entity of each link, by the row of the passage that the link leads to.
        entity_names: The entities' names, by the same rows.
    """
    sources = sorted({source for source, _ in links.values()})
    titles = {
        row: passage.title or passage.id for row, passage in zip(sources, snapshot.get(Passage, sources), strict=True)
    }
    return {row: (_describe_link(titles[source], entity_names[row]),) for row, (source, _) in links.items()}


def _describe_link(title: str, entity: str) -> str:
    """Describe a link between passages by the ``title`` of the first passage and the name of the shared ``entity``.

    >>> _describe_link("Bell of Tarn", "Ines Moreau"), _describe_link("Pump house / Duty", "Pump house")
    ("linked from 'Bell of Tarn', which mentions 'Ines Moreau'", "linked from another passage about 'Pump house'")
    """
    if entity.casefold() in (part.casefold() for part in title.split(HEADING_SEPARATOR)):
        return f"linked from another passage about {entity!r}"
    return f"linked from {title!r}, which mentions {entity!r}"


def _find_nearest_hyperedges(
    snapshot: Snapshot, inputs: SignalInputs, passages: IntArray
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return each passage's hyperedges nearest to the question, as arrays: row, cosine, index in ``passages``."""
    edges, owners = snapshot.graph.hyperedges(passages)
    similarities = snapshot.cosines("hyperedge", edges, inputs.scale.vectors).max(axis=1)
    order = np.lexsort((rank_by_id(snapshot, "hyperedge", edges), -similarities, owners))
    edges, owners, similarities = edges[order], owners[order], similarities[order]
    is_listed = rank_in_group(owners) < HYPEREDGES_PER_PASSAGE
    return edges[is_listed], similarities[is_listed], owners[is_listed]


def _find_strongest_link(inputs: SignalInputs, passage: int) -> tuple[int, int]:
    """Return (source passage, entity) of the strongest link to ``passage``; (-1, -1) without a link."""
    _, source, entity = max((hop.find_strongest_link(passage) for hop in inputs.hops), key=lambda origin: origin[0])
    return source, entity
