"""Signals: numbers that rank a candidate passage, each at least 0, which a linear scorer weighs.

A question names some entities and asks for something about them, or about entities they lead to. Its evidence is
similar to the question, is *about* an entity of the question, or is about an entity that such a passage mentions: a
link from a mention to the passage whose subject it is (:mod:`polyad.retrieval.default.links`). Two hops of links are
followed. Where passages do not say what they are about, the terms of the question count
(:mod:`polyad.retrieval.default.term_coverage`), and so do hyperedges that join an entity of the question to what the
question asks. The "rest of the question" below is the question without the names that were linked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from polyad.calibration import get_embedder_calibration
from polyad.hypergraph.sparse import Scores, is_in, rank_by_id, sort_unique, union
from polyad.model import FloatArray, IntArray
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.absent_names import UnknownNames
from polyad.retrieval.default.encoder_trust import EncoderTrust
from polyad.retrieval.default.links import (
    MAX_FOLLOWED_DEGREE,
    CosineScaler,
    Hop,
    build_links,
    compute_rarity,
    follow_mentions,
    score_entity_hyperedges,
)
from polyad.retrieval.default.other_languages import OtherLanguages
from polyad.retrieval.default.term_coverage import HUB_DEGREE, TermCoverage
from polyad.retrieval.question import LinkedQuestion, QuestionLinker, replace_aliases

# These constants are set by hand. They decide which passages become candidates and which are followed; learned
# weights then rank the candidates.

CANDIDATES_PER_RANKING = 40
"""Candidates taken from each ranking: by similarity, by BM25 and by each kind of mention."""

CANDIDATES_PER_LINK = 160
"""Candidates taken for being about an entity of the question, and from the links of each hop."""

BM25_DEPTH = 100
"""Passages with a BM25 score; the BM25 signals of all other passages are 0."""

PRIOR_BM25_WEIGHT, PRIOR_SUBJECT_WEIGHT = 0.5, 0.6
"""Weights of BM25 and of being about an entity of the question in the score before links; similarity has weight 1."""

MIN_LINK_SHARE = 0.5
"""Share of a link that counts for the sources of the second hop even if its passage does not resemble the question."""

CONTEXT_OFFSETS = np.array([-2, -1, 1, 2])
"""Positions in a document, relative to a candidate, of the passages whose terms count as its context."""

UNNAMED_SHARE = 0.3
"""Factor of the linkability for a question without proper names: what follows from it names kinds of things, whose
passages mention each other by chance."""

UNTRUSTED_WORD_GAIN = 2.0
"""Added to the factor of BM25 signals if the encoder is not trusted at all. With all-MiniLM-L6-v2 on Russian, Hindi and
Arabic texts, the mean reciprocal rank of ``default`` rises from 90.9, 92.0 and 88.8 to 91.9, 93.3 and 89.4."""

RANK_CONSTANT = 10.0
"""Added to ranks before they are inverted: rank 11 counts half of rank 1."""

FUSION_CONSTANT = 60.0
"""The constant of reciprocal rank fusion (Cormack et al., 2009)."""


@dataclass(frozen=True, slots=True)
class SignalInputs:
    """The scores and links of a question's candidate passages, from which all ranking signals are computed.

    Arrays are float32 ``[candidates]`` unless stated otherwise.

    Attributes:
        question: The question and the entities it names.
        linkability: How reliably the question's names lead to the passages about the named entities, in [0, 1].
        scale: Measures similarity to the question and to the rest of the question.
        candidates: Row numbers of the candidate passages, sorted.
        hops: The first and the second hop.
        links: Best strong link, weak link, and link from a passage about an entity of the question, over both hops;
            ``[3, candidates]``.
        dense: Similarity to the question.
        rest: Similarity to the rest of the question.
        dense_rank: Inverted rank by similarity; 0 for unranked passages.
        bm25_rank: Inverted rank by BM25; 0 for unranked passages.
        fused_rank: Reciprocal rank fusion of both rankings.
        bm25: BM25 score relative to the best passage.
        bm25_scores: BM25 score.
        terms: Which terms of the question each candidate and each followed passage contains.
        coverage: Share of the question's terms, weighted by rarity.
        coverage_gain: Coverage that the passage adds to a followed passage with which it shares an entity.
        context: Coverage that the adjacent passages, and the first passage of the document, add to the passage;
            ``[candidates, 2]``. Zeros for linkability 1: articles about different things may stand in one document.
        subject: 1 if the passage's strong subject is an entity of the question; less if several passages have it.
        weak_subject: Like ``subject`` for less certain subjects, times the certainty.
        mentions: Summed rarity of the question's entities in the passage.
        prior: The score before links: a hand-set sum whose best passages are followed at the first hop.
        anchor: Best hyperedge with an entity of the question, by rarity and similarity to the rest of the question.
        hop_anchor: Best hyperedge with an entity of a search step, also weighted by the source passage.
        hyperedges: Best similarity of the passage's hyperedges to the question and to its rest, ``[candidates, 2]``.
        unknown_names: Share of the question's capitalised words that the index lacks, times their importance.
    """

    question: LinkedQuestion
    linkability: float
    scale: CosineScaler
    candidates: IntArray
    hops: tuple[Hop, Hop]
    links: FloatArray
    dense: FloatArray
    rest: FloatArray
    dense_rank: FloatArray
    bm25_rank: FloatArray
    fused_rank: FloatArray
    bm25: FloatArray
    bm25_scores: FloatArray
    terms: TermCoverage
    coverage: FloatArray
    coverage_gain: FloatArray
    context: FloatArray
    subject: FloatArray
    weak_subject: FloatArray
    mentions: FloatArray
    prior: FloatArray
    anchor: FloatArray
    hop_anchor: FloatArray
    hyperedges: FloatArray
    unknown_names: float

    @property
    def word_weight(self) -> np.float32:
        """The factor of BM25 signals: 1 if the encoder is trusted, more if similarities hardly count."""
        return np.float32(1 + UNTRUSTED_WORD_GAIN * (1 - self.scale.trust))


Signal = Callable[[SignalInputs], FloatArray]

SIGNALS: dict[str, Signal] = {
    "similar to the question": lambda s: s.dense,
    "high rank by similarity": lambda s: s.dense_rank,
    "contains words of the question": lambda s: s.bm25 * s.word_weight,
    "high rank by words (BM25)": lambda s: s.bm25_rank * s.word_weight,
    "high rank by similarity and words together": lambda s: s.fused_rank,
    "contains much of the question's words": lambda s: s.coverage,
    "adds words of the question to a good passage that shares an entity": lambda s: s.coverage_gain,
    "stands beside words of the question that it lacks": lambda s: s.context[:, 0],
    "its document begins with words of the question that it lacks": lambda s: s.context[:, 1],
    "about a name in the question": lambda s: s.subject,
    "about a name in the question, and similar": lambda s: s.subject * s.dense,
    "possibly about a name in the question": lambda s: s.weak_subject,
    "possibly about a name in the question, and similar": lambda s: s.weak_subject * s.dense,
    "mentions names in the question": lambda s: s.mentions,
    "has a hyperedge similar to the question": lambda s: s.hyperedges[:, 0],
    "has a hyperedge similar to the rest of the question": lambda s: s.hyperedges[:, 1],
    "similar to the rest of the question": lambda s: s.rest,
    "matches the question before links are followed": lambda s: s.prior,
    "has a hyperedge that joins a name in the question to the rest of it": lambda s: s.anchor,
    "has a hyperedge that joins a linked entity to the rest of the question": lambda s: s.hop_anchor,
    "about an entity that a good passage mentions": lambda s: s.links[0],
    "about an entity that a good passage mentions, and similar to the rest of the question": lambda s: (
        s.links[0] * s.rest
    ),
    "possibly about an entity that a good passage mentions": lambda s: s.links[1],
    "possibly about an entity that a good passage mentions, and similar to the rest of the question": lambda s: (
        s.links[1] * s.rest
    ),
    "two steps from a name in the question": lambda s: s.links[2],
    "shares an entity with a good passage": lambda s: s.hops[0].shared_mention.get(s.candidates),
    "shares an entity with a passage one link away": lambda s: s.hops[1].shared_mention.get(s.candidates),
}
"""Every signal by its name. The name is the reason that users read and the key in a file of weights."""

SIGNAL_NAMES = tuple(SIGNALS)
"""Names of the ranking signals, one for each column of :func:`compute_signals`."""

UNLINKABLE = "where names do not lead to passages about them"
"""Suffix of the weights that apply to an index with linkability 0."""


def list_weight_names(signal_names: Sequence[str]) -> list[str]:
    """Return the names of the weights, two per signal: for an index with reliable links and for one without.

    The order is that of :func:`expand_by_linkability`.
    """
    return [*signal_names, *(f"{name}, {UNLINKABLE}" for name in signal_names)]


def compute_signals(inputs: SignalInputs) -> FloatArray:
    """Compute the matrix ``[candidates, signals]``: a row per candidate passage, a column per signal, such as BM25."""
    signals = np.stack([signal(inputs) for signal in SIGNALS.values()], axis=1).astype(np.float32)
    return inputs.scale.other_languages.fill_signals(signals, inputs.candidates, inputs.dense)


def expand_by_linkability(signals: FloatArray, linkability: float) -> FloatArray:
    """Return each signal twice, times ``linkability`` (reliability of links, 0 to 1) and times 1 - ``linkability``.

    A signal that identifies evidence among articles that mention each other says little in a novel, so each signal has
    two weights, one for linkability 1 and one for linkability 0. An index in between mixes them.

    Args:
        signals: float32 ``[candidates, signals]``.
        linkability: See :attr:`polyad.protocols.snapshot.Snapshot.linkability`.

    Returns:
        float32 ``[candidates, 2 x signals]``.
    """
    return np.concatenate([signals * np.float32(linkability), signals * np.float32(1 - linkability)], axis=1)


class Candidates(NamedTuple):
    """The candidate passages of a question with their ranking signals, as training data of a scorer.

    Attributes:
        documents: Document id of each candidate.
        signals: float32 ``[candidates, signals]``.
        passages: Passage id of each candidate.
        linkability: Linkability of the index.
    """

    documents: list[str]
    signals: FloatArray
    passages: list[str]
    linkability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rankings:
    """The passages of an index that a question leads to, each ranking with its own rows.

    Attributes:
        question: The question and the entities it names.
        scale: Measures similarity to the question and to the rest of the question.
        bm25_rows: Rows of the best passages by BM25, best first.
        bm25: BM25 scores relative to the best passage.
        highest_bm25: BM25 score of the best passage.
        subject: Passages that are certainly about an entity of the question.
        weak_subject: Passages that are possibly about an entity of the question.
        about: The higher of both.
        mentions: Summed rarity of the question's entities in each passage, without hubs.
        hubs: Rarities of the question's very frequent entities, by row of the entity.
        hops: The first and the second hop.
        anchor: Passages by their best hyperedge with an entity of the question.
        hop_anchor: Passages by their best hyperedge with an entity of a search step.
    """

    question: LinkedQuestion
    scale: CosineScaler
    bm25_rows: IntArray
    bm25: Scores
    highest_bm25: np.float32
    subject: Scores
    weak_subject: Scores
    about: Scores
    mentions: Scores
    hubs: Scores
    hops: tuple[Hop, Hop]
    anchor: Scores
    hop_anchor: Scores


@dataclass(frozen=True, slots=True)
class SignalExtractor:
    """Selects the candidate passages of a question and computes their ranking signals.

    Attributes:
        snapshot: An index of at least one passage.
        embedder: The embedder of the index.
        linker: Finds the entities that the question names.
        trust: How far the embedder's similarities count.
    """

    snapshot: Snapshot
    embedder: Embedder
    linker: QuestionLinker
    trust: EncoderTrust = field(default_factory=EncoderTrust)

    def extract_candidates(self, question: str) -> Candidates:
        """Return the candidate passages of a question with their signals, to train a scorer."""
        inputs, snapshot = self.compute_inputs(question), self.snapshot
        ids = snapshot.ids("passage", inputs.candidates)
        signals = compute_signals(inputs)
        return Candidates([id.rpartition("#")[0] for id in ids], signals, ids, inputs.linkability)

    def compute_inputs(self, question: str) -> SignalInputs:
        """Select the candidate passages of a question, and compute the scores and links behind the signals."""
        snapshot = self.snapshot
        linked_question = self.linker.link(question, snapshot)
        names = UnknownNames.from_question(linked_question, snapshot)
        texts = [question, linked_question.remainder, *([names.rest] if names.share else [])]
        vectors = self.embedder.encode(replace_aliases(texts, linked_question, snapshot), "query")
        other_languages = OtherLanguages.from_question(question, vectors[:2], snapshot, self.trust.by_language)
        scale = CosineScaler(vectors[:2], snapshot, self.trust.get_trust(question), other_languages)
        unknown_names = names.compute_weighted_share(
            vectors[0], vectors[-1], get_embedder_calibration(self.embedder.name).name_cosines
        )
        rankings = self._rank_passages(linked_question, question, scale)
        return self._score_candidates(rankings, self._select_candidates(rankings), unknown_names)

    def _rank_passages(self, linked_question: LinkedQuestion, question: str, scale: CosineScaler) -> _Rankings:
        """Score the passages of the whole index: by words, by the question's entities, and over two hops of links."""
        snapshot = self.snapshot
        bm25_rows, bm25_scores = snapshot.search_terms(question, BM25_DEPTH)
        highest_bm25 = np.float32(bm25_scores.max(initial=0))
        bm25 = Scores.from_pairs(bm25_rows, bm25_scores / max(float(highest_bm25), 1e-9))
        entities = np.array(list(linked_question.entities), dtype=np.int64)
        degrees = snapshot.graph.mention_counts(entities)
        rarities, is_hub = compute_rarity(snapshot, degrees), degrees > HUB_DEGREE
        subject, weak_subject, mentions = self._score_by_question_entities(entities[~is_hub], rarities[~is_hub])
        about = Scores.from_max(
            np.concatenate([subject.rows, weak_subject.rows]), np.concatenate([subject.values, weak_subject.values])
        )
        rows = union([scale.nearest[0], bm25.rows, about.rows])
        prior = Scores(
            rows, _score_before_links(scale.similarities("passage", rows)[:, 0], bm25.get(rows), about.get(rows))
        )
        first_hop = follow_mentions(snapshot, prior, about, scale)
        second_hop = follow_mentions(snapshot, self._score_after_hop(first_hop, bm25, about, scale), about, scale)
        hops = first_hop, second_hop
        is_followed = degrees <= MAX_FOLLOWED_DEGREE
        question_entities = Scores.from_pairs(entities[is_followed], rarities[is_followed])
        anchor, hop_anchor = self._score_by_hyperedge(question_entities, hops, prior.top_k(1, self._sort_key), scale)
        return _Rankings(
            question=linked_question,
            scale=scale,
            bm25_rows=bm25_rows,
            bm25=bm25,
            highest_bm25=highest_bm25,
            subject=subject,
            weak_subject=weak_subject,
            about=about,
            mentions=mentions,
            hubs=Scores.from_pairs(entities[is_hub], rarities[is_hub]),
            hops=hops,
            anchor=anchor,
            hop_anchor=hop_anchor,
        )

    def _select_candidates(self, rankings: _Rankings) -> IntArray:
        """Return the row numbers of the best passages of each ranking, sorted."""
        hops, scale = rankings.hops, rankings.scale
        mention_rankings = [
            rankings.mentions,
            *(hop.shared_mention for hop in hops),
            rankings.anchor,
            rankings.hop_anchor,
        ]
        link_rankings = [rankings.about, *(hop.link for hop in hops)]
        candidates = union(
            [
                *(similar_rows[:CANDIDATES_PER_RANKING] for similar_rows in scale.similar),
                rankings.bm25_rows[:CANDIDATES_PER_RANKING],
                *(self._select_best(scores, CANDIDATES_PER_RANKING) for scores in mention_rankings),
                *(self._select_best(scores, CANDIDATES_PER_LINK) for scores in link_rankings),
            ]
        )
        if not len(candidates):  # no ranking has a passage, as in an index of one passage
            candidates = np.sort(scale.nearest[0][:CANDIDATES_PER_RANKING])
        return candidates

    def _score_candidates(self, rankings: _Rankings, candidates: IntArray, unknown_names: float) -> SignalInputs:
        """Return the scores of the candidates in each ranking, and what their texts add."""
        question, scale, hops, bm25 = rankings.question, rankings.scale, rankings.hops, rankings.bm25
        linkability = self.snapshot.linkability * (UNNAMED_SHARE if question.lacks_proper_names else 1)
        dense, rest = scale.similarities("passage", candidates).T
        context = self._find_context(candidates, linkability)
        coverage = TermCoverage.from_question(
            question, self.snapshot, union([candidates, *context.T, *(hop.mentions.sources for hop in hops)])
        )
        is_contained = coverage.find_contained_terms(candidates)
        is_added = coverage.find_contained_terms(context) & ~is_contained[:, np.newaxis]
        trust, similar_rows = scale.trust, scale.similar[0]
        return SignalInputs(
            question=question,
            linkability=linkability,
            scale=scale,
            candidates=candidates,
            hops=hops,
            links=np.maximum(*(hop.get_link_strengths(candidates) for hop in hops)),
            dense=dense,
            rest=rest,
            dense_rank=trust * _invert_ranks(scale.nearest[0], candidates),
            bm25_rank=_invert_ranks(rankings.bm25_rows, candidates),
            fused_rank=_fuse_rankings([(similar_rows, trust), (rankings.bm25_rows, 2 - trust)], candidates),
            bm25=bm25.get(candidates),
            bm25_scores=bm25.get(candidates) * rankings.highest_bm25,
            terms=coverage,
            coverage=coverage.compute_coverage(is_contained),
            coverage_gain=np.maximum(*(coverage.compute_gain(candidates, is_contained, hop.mentions) for hop in hops)),
            context=coverage.compute_coverage(np.stack([is_added[:, 1:].any(axis=1), is_added[:, 0]], axis=1)),
            subject=rankings.subject.get(candidates),
            weak_subject=rankings.weak_subject.get(candidates),
            mentions=rankings.mentions.get(candidates) + self._sum_hub_rarities(rankings.hubs, candidates),
            prior=_score_before_links(dense, bm25.get(candidates), rankings.about.get(candidates)),
            anchor=rankings.anchor.get(candidates),
            hop_anchor=rankings.hop_anchor.get(candidates),
            hyperedges=self._compute_hyperedge_similarities(candidates, scale),
            unknown_names=unknown_names,
        )

    def _sort_key(self, passages: IntArray) -> FloatArray:
        return rank_by_id(self.snapshot, "passage", passages)

    def _find_context(self, passages: IntArray, linkability: float) -> IntArray:
        """Return for each passage the rows of the first passage of its document and of the adjacent passages.

        At the ends of a document the outermost passage stands in for those beyond; ``[passages, 1 + offsets]``. For
        linkability 1, only the passage itself, which adds nothing.
        """
        if linkability == 1:
            return passages[:, np.newaxis]
        starts, ends = (bounds[:, np.newaxis] for bounds in self.snapshot.document_ranges(passages))
        return np.hstack([starts, (passages[:, np.newaxis] + CONTEXT_OFFSETS).clip(starts, ends - 1)])

    def _select_best(self, scores: Scores, k: int) -> IntArray:
        """Return the rows with the ``k`` highest scores above 0, in any order."""
        positive = scores.above(0)
        return positive.rows if len(positive) <= k else positive.top_k(k, self._sort_key)

    def _score_by_question_entities(self, entities: IntArray, rarities: FloatArray) -> tuple[Scores, Scores, Scores]:
        """Score the passages whose subject is one of the question's ``entities``, and the passages that mention one.

        Args:
            entities: Row numbers of the question's entities, without very frequent entities.
            rarities: The rarity of each entity, which weighs mentions.

        Returns:
            Scores of passages that are certainly about an entity, of passages that are possibly about an entity, and
            of all passages that mention an entity.
        """
        passages, owners, strengths = self.snapshot.graph.mentions(entities)
        links = build_links(passages, owners, strengths, len(entities))
        weak = ~links.is_strong
        return (
            Scores.from_max(links.passages[links.is_strong], links.shares[links.is_strong]),
            Scores.from_max(links.passages[weak], links.shares[weak]),
            Scores.from_sum(passages, rarities[owners]),
        )

    def _sum_hub_rarities(self, hubs: Scores, passages: IntArray) -> FloatArray:
        """Return for each passage the sum of the rarities of the ``hubs`` (very frequent entities) in it.

        Only ``passages`` are read, since a hub has too many memberships to read them all.
        """
        graph = self.snapshot.graph
        sums = np.zeros(len(passages), dtype=np.float32)
        if len(hubs):
            edges, owners = graph.hyperedges(passages)
            members, positions = graph.members(edges)
            is_hub = is_in(members, hubs.rows)
            hub_positions = hubs.rows.searchsorted(members[is_hub])
            pairs = sort_unique(owners[positions[is_hub]] * len(hubs) + hub_positions)
            np.add.at(sums, pairs // len(hubs), hubs.values[pairs % len(hubs)])
        return sums

    def _score_by_hyperedge(
        self, question_entities: Scores, hops: tuple[Hop, Hop], best_passage: IntArray, similarity: CosineScaler
    ) -> tuple[Scores, Scores]:
        """Score passages by their best hyperedge with an entity of the question, and with one that links reached.

        Args:
            question_entities: Rarities of the question's entities, without frequent ones.
            hops: The search steps; each of their entities counts by its rarity and the weight of its best passage.
            best_passage: Row number of the best passage, in which entities of the search steps do not count.
            similarity: Measures similarity to the rest of the question.
        """
        mentions = [hop.mentions for hop in hops]
        followed_entities = Scores.from_max(
            np.concatenate([hop_mentions.entities for hop_mentions in mentions]),
            np.concatenate([hop_mentions.weights * hop_mentions.rarities for hop_mentions in mentions]),
        )
        passages, owners, values = score_entity_hyperedges(
            self.snapshot,
            np.concatenate([question_entities.rows, followed_entities.rows]),
            np.concatenate([question_entities.values, followed_entities.values]),
            similarity,
        )
        in_question = owners < len(question_entities)
        elsewhere = ~in_question & (passages != best_passage)
        return (
            Scores.from_max(passages[in_question], values[in_question]),
            Scores.from_max(passages[elsewhere], values[elsewhere]),
        )

    def _score_after_hop(self, hop: Hop, bm25: Scores, subject_scores: Scores, similarity: CosineScaler) -> Scores:
        """Return the scores of passages after a hop: the score before links plus the links of the hop.

        Args:
            hop: The search step.
            bm25: BM25 scores of passages.
            subject_scores: How certainly passages are about an entity of the question.
            similarity: Measures the similarity of passages.
        """
        rows = union([similarity.nearest[0], bm25.rows, subject_scores.rows, hop.link.rows])
        dense, rest = similarity.similarities("passage", rows).T
        prior = _score_before_links(dense, bm25.get(rows), subject_scores.get(rows))
        return Scores(rows, prior + hop.link.get(rows) * (MIN_LINK_SHARE + rest))

    def _compute_hyperedge_similarities(self, candidates: IntArray, similarity: CosineScaler) -> FloatArray:
        """Return the similarity of each passage's best hyperedge to the question, and to the question without names.

        Shape ``[candidates, 2]``.
        """
        edges, owners = self.snapshot.graph.hyperedges(candidates)
        best = np.zeros((len(candidates), 2), dtype=np.float32)
        np.maximum.at(best, owners, similarity.similarities("hyperedge", edges))
        return best


def _score_before_links(dense: FloatArray, bm25: FloatArray, about: FloatArray) -> FloatArray:
    prior: FloatArray = dense + PRIOR_BM25_WEIGHT * bm25 + PRIOR_SUBJECT_WEIGHT * about
    return prior


def _invert_ranks(ranked_rows: IntArray, candidates: IntArray) -> FloatArray:
    """Return 1 / (1 + rank / 10) of each candidate in ``ranked_rows``, best first; 0 for candidates not in the list."""
    ranks = np.arange(len(ranked_rows), dtype=np.float32)
    return Scores.from_pairs(ranked_rows, RANK_CONSTANT / (RANK_CONSTANT + ranks)).get(candidates)


def _fuse_rankings(rankings: Sequence[tuple[IntArray, float]], candidates: IntArray) -> FloatArray:
    """Return the reciprocal rank fusion of two rankings for each candidate, at most 1.

    Args:
        rankings: Rows, best first, and the weight of each ranking; the weights sum to 2.
        candidates: Row numbers.
    """
    total = np.zeros(len(candidates), dtype=np.float32)
    for rows, weight in rankings:
        ranks = np.arange(min(len(rows), BM25_DEPTH), dtype=np.float32)
        shares = np.float32(weight) * FUSION_CONSTANT / (2 * (FUSION_CONSTANT + ranks))
        total += Scores.from_pairs(rows[:BM25_DEPTH], shares).get(candidates)
    return total
