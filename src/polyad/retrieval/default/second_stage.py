"""The second stage of ranking: compares the best candidates with the very best, and adjusts their scores.

The evidence of one question belongs together: a passage mentions what another one is about, or it contains the terms
of the question that the others lack. The first stage scores each passage alone; the second compares it with the others
by a few features, which a small neural network weighs together with the signals of the first stage. It does so twice:
the second time with the passages that the first time ranked best, among which later links of a chain are found. Where
names do not lead to the passages about them (linkability 0) the first stage decides alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from polyad.hypergraph.sparse import find_top_positions, is_in, rank_by_id, sort_unique
from polyad.model import FloatArray, IntArray, Passage
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.links import SOURCES_PER_HOP, FollowedMentions, select_mentions
from polyad.retrieval.default.signals import SIGNAL_NAMES, SignalInputs
from polyad.text.words import extract_query_terms, extract_terms

MAX_CANDIDATES = 60
"""Best candidates of the first stage that are compared."""

BEST_BY_WORDS, BEST_BY_SIMILARITY = 8, 4
"""Best candidates by BM25 and by similarity that are compared even if the first stage ranks them lower."""

BEST = 3
"""Best passages, without the candidate itself, whose terms, titles and subjects it is compared with."""

ROUNDS = 2
"""How often the candidates are compared, each time with those that were ranked best before."""

SCORE_SCALE = 2.0
"""Difference from the best score at which the weight of a passage falls to 1/e."""

COMPARISONS = (
    "logarithm of the rank",
    "shares an entity with the best passage",
    "shares entities with the best passages",
    "mentions a subject of the best three",
    "mentions subjects of the best passages",
    "terms of the question that the best passage lacks",
    "terms of the question that the best three lack",
    "terms of the question",
    "share of its title in the question or the best three",
    "share of its title in the best three alone",
    "has a subject of the best three",
    "similar to the best passages",
    "similar to what the best passage leaves of the question",
)
"""How a candidate compares with the best passages, in the order of the columns of :meth:`Comparison.compare`."""

_MEASURES = (*SIGNAL_NAMES, "score of the first stage", *COMPARISONS)

FEATURES = (
    *_MEASURES,
    *(f"{name}, by the highest of the question" for name in _MEASURES),
    "score of the first stage below the best",
)
"""The features of a candidate, in the order of the columns of :meth:`Comparison.compute_features`."""


class CandidateScorer(Protocol):
    """A protocol of networks that score candidates by their features."""

    def score(self, features: FloatArray) -> FloatArray:
        """Return the score of each candidate from its :data:`FEATURES`, float32 ``[candidates]``."""


class LinkRanking(NamedTuple):
    """The best candidates of a question after the second stage.

    Attributes:
        best: Indices of the compared candidates among all, best of the first stage first.
        features: Their features in the last round, float32 ``[best, features]``.
        linked: Their scores by the network, float32 ``[best]``.
        ranked: Their scores by both stages, float32 ``[best]``.
        titles: Terms of the title of each.
    """

    best: IntArray
    features: FloatArray
    linked: FloatArray
    ranked: FloatArray
    titles: Sequence[Collection[str]]

    def compute_adjustments(self, scores: FloatArray, ranked: FloatArray) -> FloatArray:
        """Return how the scores ``ranked`` of the compared candidates change the ``scores`` of all, ``[candidates]``.

        The best score stays as it is, and candidates that were not compared stay below all that were.
        """
        adjustments = np.zeros(len(scores), dtype=np.float32)
        adjusted = ranked + scores[self.best].max() - ranked.max()
        is_compared = np.zeros(len(scores), dtype=bool)
        is_compared[self.best] = True
        adjustments[~is_compared] = min(0.0, float(adjusted.min() - scores[~is_compared].max(initial=-np.inf)))
        adjustments[self.best] = adjusted - scores[self.best]
        return adjustments


def rank_by_links(
    inputs: SignalInputs, signals: FloatArray, scores: FloatArray, network: CandidateScorer, snapshot: Snapshot
) -> LinkRanking:
    """Rank the best candidates of the first stage by comparing them with the very best of them.

    Scores are those of the first stage for linkability 0, where names do not lead to the passages about them.

    Args:
        inputs: Measurements of the candidates.
        signals: Signals of the candidates, ``[candidates, signals]``.
        scores: Scores of the first stage, ``[candidates]``.
        network: Scores candidates by their features.
        snapshot: The index.
    """
    comparison = PassageComparison(inputs, signals, scores, snapshot)
    ranked = comparison.first
    weight = np.float32(compute_second_stage_weight(inputs.linkability, len(ranked)))
    for _ in range(ROUNDS):
        features = comparison.compute_features(ranked)
        linked = network.score(features)
        ranked = (1 - weight) * comparison.first + weight * linked
    passages = inputs.candidates[comparison.best]
    ranked = inputs.scale.other_languages.keep_places(comparison.first, ranked, passages)
    return LinkRanking(comparison.best, features, linked, ranked, comparison.titles)


def compute_second_stage_weight(linkability: float, candidate_count: int) -> float:
    """Return the weight of the second ranking stage, in [0, 1]: high if links are reliable and candidates are many.

    The square of the linkability keeps the first three hits in manuals (linkability 0.2), of which linkability itself
    loses some. With few candidates, as in an index of a few pages, the best three differ little from the rest.

    Args:
        linkability: How reliably names lead to the passage about the named entity, in [0, 1].
        candidate_count: Number of best candidates that the second stage compares with each other.
    """
    return linkability**2 * min(1.0, candidate_count / MAX_CANDIDATES)


class PassageComparison:
    """Compares the best candidates of a question with the very best of them, by any ranking.

    What does not depend on the ranking is read once.

    Args:
        inputs: Measurements of all candidates.
        signals: Their signals, ``[candidates, signals]``.
        scores: Their scores in the first stage, ``[candidates]``.
        snapshot: The index.

    Attributes:
        best: Indices of the compared candidates among all, best of the first stage first.
        first: The scores of the compared candidates in the first stage.
    """

    def __init__(self, inputs: SignalInputs, signals: FloatArray, scores: FloatArray, snapshot: Snapshot) -> None:
        self.best = _select_compared(inputs, scores, snapshot)
        self.first = scores[self.best]
        self._signals = signals[self.best]
        self._inputs, self._snapshot = inputs, snapshot
        self._rows = inputs.candidates[self.best]
        self._titles = _Titles.read(inputs.question.text, snapshot, self._rows)

    @property
    def titles(self) -> Sequence[Collection[str]]:
        """The terms of the title of each compared candidate."""
        return self._titles.terms

    def compute_features(self, ranked: FloatArray) -> FloatArray:
        """Return the features named by :data:`FEATURES` of the compared candidates, float32 ``[best, features]``.

        Args:
            ranked: The scores by which the compared candidates are ranked now.
        """
        order = np.argsort(-ranked, kind="stable")
        comparisons = np.empty((len(order), len(COMPARISONS)), dtype=np.float32)
        comparisons[order] = self.compare(order, ranked[order])
        measures = np.column_stack([self._signals, self.first, comparisons])
        highest = np.maximum(np.abs(measures).max(axis=0), np.float32(1e-6))
        return np.column_stack([measures, measures / highest, self.first - self.first.max()])

    def compare(self, order: IntArray, ranked: FloatArray) -> FloatArray:
        """Return the comparisons named by :data:`COMPARISONS`, float32 ``[order, comparisons]``.

        Args:
            order: Positions of the candidates among :attr:`best`, best first.
            ranked: Their scores, highest first.
        """
        inputs, snapshot, rows = self._inputs, self._snapshot, self._rows[order]
        sources = rows[:SOURCES_PER_HOP]
        weights = np.exp((ranked[: len(sources)] - ranked[0]) / np.float32(SCORE_SCALE))
        shared, subjects = _compare_entities(select_mentions(snapshot, sources, weights, inputs.scale), rows, sources)
        columns = [
            np.log1p(np.arange(len(rows), dtype=np.float32)),
            shared[:, 0],
            shared @ weights,
            subjects[:, :BEST].max(axis=1),
            subjects @ weights,
            _compute_new_term_share(inputs, rows, 1),
            _compute_new_term_share(inputs, rows, BEST),
            inputs.coverage[self.best[order]],
            *self._titles.compare(snapshot, order, rows),
            *_compute_vector_features(inputs, snapshot, rows, weights),
        ]
        return np.stack(columns, axis=1).astype(np.float32)


def _select_compared(inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot) -> IntArray:
    """Return the indices of the candidates to compare, best of the first stage first.

    The best by words and by similarity are always among them: the first stage ranks some of them low.
    """

    def find_top(values: FloatArray, count: int) -> IntArray:
        return find_top_positions(
            values, count, lambda places: rank_by_id(snapshot, "passage", inputs.candidates[places])
        )

    always = np.union1d(find_top(inputs.bm25, BEST_BY_WORDS), find_top(inputs.dense, BEST_BY_SIMILARITY))
    order = find_top(scores, MAX_CANDIDATES)
    others = order[~np.isin(order, always)][: max(0, MAX_CANDIDATES - len(always))]
    compared = np.concatenate([always, others])
    ids = rank_by_id(snapshot, "passage", inputs.candidates[compared])
    return compared[np.lexsort((ids, -scores[compared]))]


def _compare_entities(
    mentions: FollowedMentions, candidates: IntArray, best: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return two matrices ``[candidates, best]`` that state which entities a candidate and a best passage share.

    Returns:
        Two matrices ``[candidates, best]``. The first has the rarity of the rarest entity that both passages mention,
        without very frequent entities. The second is 1 if the candidate mentions a subject of the best passage. Both
        are 0 where the two passages are the same.
    """
    candidate_order, best_order = candidates.argsort(), best.argsort()
    is_candidate = is_in(mentions.other_passages, candidates[candidate_order])
    through = mentions.mention_of_other[is_candidate]
    places = (
        candidate_order[candidates[candidate_order].searchsorted(mentions.other_passages[is_candidate])],
        best_order[best[best_order].searchsorted(mentions.sources[through])],
    )
    is_subject = np.zeros(len(mentions.entities), dtype=np.float32)
    is_subject[mentions.links.owners[mentions.links.passages == mentions.sources[mentions.links.owners]]] = 1
    shared, subjects = np.zeros((2, len(candidates), len(best)), dtype=np.float32)
    np.maximum.at(shared, places, mentions.rarities[through])
    np.maximum.at(subjects, places, is_subject[through])
    return shared, subjects


def _compute_new_term_share(inputs: SignalInputs, candidates: IntArray, best_count: int) -> FloatArray:
    """Return the share of question terms that each candidate has and the ``best_count`` best other passages lack."""
    is_contained = inputs.terms.find_contained_terms(candidates)
    is_in_others = np.tile(is_contained[:best_count].any(axis=0), (len(candidates), 1))
    for rank in range(min(best_count, len(candidates))):  # all other candidates have the same best others
        is_in_others[rank] = is_contained[_list_others(rank, best_count, len(candidates))].any(axis=0)
    return inputs.terms.compute_coverage(is_contained & ~is_in_others)


def _list_others(rank: int, count: int, total: int) -> list[int]:
    """Return the ranks of the ``count`` best of ``total`` candidates, without the candidate at ``rank``.

    >>> _list_others(1, 3, 60), _list_others(9, 3, 60), _list_others(0, 3, 2)
    ([0, 2, 3], [0, 1, 2], [1])
    """
    return [other for other in range(min(count + 1, total)) if other != rank][:count]


@dataclass(frozen=True, slots=True)
class _Titles:
    """The titles of the compared candidates: the terms of each passage's most certain subjects.

    Attributes:
        terms: Terms of each candidate's title.
        subjects: Row numbers of each candidate's most certain subjects.
        question_terms: Terms of the question.
    """

    terms: list[set[str]]
    subjects: list[set[int]]
    question_terms: set[str]

    @classmethod
    def read(cls, question: str, snapshot: Snapshot, candidates: IntArray) -> _Titles:
        """Read the titles of ``candidates``, row numbers of passages."""
        entities, owners, strengths = snapshot.graph.subjects(candidates)
        highest = np.zeros(len(candidates), dtype=np.float32)
        np.maximum.at(highest, owners, strengths)
        is_certain = strengths >= highest[owners]
        entities, owners = entities[is_certain], owners[is_certain]
        language = snapshot.infer_language(question)
        titles: list[set[str]] = [set() for _ in candidates]
        subjects: list[set[int]] = [set() for _ in candidates]
        unique = sort_unique(entities).tolist()
        terms = [extract_query_terms(key, language) for key in snapshot.ids("entity", unique)]
        terms_by_entity = dict(zip(unique, terms, strict=True))
        for entity, owner in zip(entities.tolist(), owners.tolist(), strict=True):
            titles[owner].update(terms_by_entity[entity])
            subjects[owner].add(entity)
        return cls(titles, subjects, set(extract_query_terms(question, language)))

    def compare(self, snapshot: Snapshot, order: IntArray, rows: IntArray) -> FloatArray:
        """Return three features that compare each candidate's title with the question and the best three passages.

        Args:
            snapshot: The index.
            order: Positions of the candidates, best first.
            rows: Their row numbers.

        Returns:
            The share of the title's terms in the question or the best three passages; the share of the title's terms in
            the best three but not in the question; and 1 if one of the best three has the same subject. Shape
            ``[3, candidates]``.
        """
        places = order.tolist()
        best = snapshot.get(Passage, rows[: BEST + 1].tolist())
        texts = [set(extract_terms(f"{passage.title} {passage.text}")) for passage in best]
        columns = np.zeros((3, len(places)), dtype=np.float32)
        for rank, place in enumerate(places):
            if rank <= BEST:  # all further candidates have the same best others
                others = _list_others(rank, BEST, len(places))
                terms_of_others = set().union(*(texts[other] for other in others))
                subjects_of_others = set().union(*(self.subjects[places[other]] for other in others))
            title = self.terms[place]
            in_others = title & terms_of_others
            if title:
                columns[:, rank] = (
                    len(in_others | (title & self.question_terms)) / len(title),
                    len(in_others - self.question_terms) / len(title),
                    not self.subjects[place].isdisjoint(subjects_of_others),
                )
        return columns


def _compute_vector_features(
    inputs: SignalInputs, snapshot: Snapshot, candidates: IntArray, weights_of_best: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return two cosines per candidate: with the best passages, and with the question minus the best passage.

    The first is a mean over the best passages by ``weights_of_best``. The second is with the question's vector minus
    the projection of this vector on the best passage's vector.

    Cosines are divided by their spread over the corpus, so that they are comparable between embedders.
    """
    sources = snapshot.vectors("passage", candidates[: len(weights_of_best)])
    question = inputs.scale.vectors[0]
    remainder = question - (question @ sources[0]) * sources[0]
    cosines = snapshot.cosines("passage", candidates, np.concatenate([sources, remainder[None]])) * (
        inputs.scale.trust / inputs.scale.spreads[0]
    )
    to_sources = cosines[:, :-1].copy()
    np.fill_diagonal(to_sources, 0)  # a passage is not compared with itself
    return (to_sources * weights_of_best).sum(axis=1) / weights_of_best.sum(), cosines[:, -1]
