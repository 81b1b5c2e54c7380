"""The last stage of ranking: weighs links, words and similarity by what the question and the index are like.

A code, amount, name or rare word leads to the few passages that contain it, however little they resemble the question;
in a paraphrase the same share of words says nothing, and links count only where documents describe each other. So a
small neural network reads, beside the scores of the stages before it, which words of the question a passage holds and
how few passages do, and how telling the words, the similarities and the links of the question are at all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.second_stage import FEATURES, MAX_CANDIDATES, CandidateScorer, LinkRanking
from polyad.retrieval.default.signals import SignalInputs
from polyad.text.clause_numbers import find_clause_references
from polyad.text.words import count_words, extract_search_terms

PASSAGE_MEASURES = (
    "holds all words of the question",
    "holds a word that few passages hold",
    "share of the question's words, by rarity",
    "few passages hold as much of the question",
    "share of the question's numbers and codes",
    "score by words, of the highest possible",
    "share of the question's words in its title, by rarity",
)
"""What the words of a question say about one passage, in the order of :meth:`WordMatch.measure_passages`."""

RANKING_MEASURES = (
    "score by links",
    "score by links below the best",
    "score so far",
    "score so far below the best",
    "logarithm of the rank so far",
)
"""What the stages before say about a candidate."""

QUESTION_MEASURES = (
    "question: number of words",
    "question: share of function words",
    "question: share of words that the index lacks",
    "question: most words that one passage holds",
    "question: passages that hold all words",
    "question: rarity of its rarest word",
    "question: numbers and codes",
    "question: nearest passage by words, by similarity",
    "question: nearest passage by similarity, by words",
    "question: names",
    "index: linkability",
    "index: trust in the encoder",
)
"""What distinguishes questions and indexes, in the order of :meth:`WordMatch.measure_question`."""


LAST_FEATURES = (*FEATURES, *RANKING_MEASURES, *PASSAGE_MEASURES, *QUESTION_MEASURES)
"""The features of a candidate, in the order of the columns of :meth:`WordMatch.compute_features`."""


@dataclass(frozen=True, slots=True)
class WordMatch:
    """The search terms of a question, and which of them each candidate passage contains.

    Attributes:
        inputs: Measurements of the candidates.
        terms: Word stems, codes and numbers of clauses of the question.
        counts: Number of passages of the index that contain each term, int64 ``[terms]``.
        rarities: Inverse document frequency of each term, 0 for a term that no passage contains, ``[terms]``.
        is_contained: Whether each candidate contains each term, ``[candidates, terms]``.
        is_literal: Whether each term has a digit and is longer than a count or an age, ``[terms]``.
    """

    inputs: SignalInputs
    terms: Sequence[str]
    counts: IntArray
    rarities: FloatArray
    is_contained: BoolArray
    is_literal: BoolArray

    @classmethod
    def from_inputs(cls, inputs: SignalInputs, snapshot: Snapshot) -> WordMatch:
        """Look up the search terms of the question in its candidate passages."""
        text = inputs.question.text
        terms = extract_search_terms(text, snapshot.infer_language(text))
        clauses = set(find_clause_references(text))
        counts = snapshot.document_frequencies(terms)
        rarities = np.log1p(snapshot.passage_count / np.maximum(counts, 1)) * (counts > 0)
        return cls(
            inputs,
            terms,
            counts,
            rarities.astype(np.float32),
            snapshot.contains_terms(terms, inputs.candidates),
            np.array([any(map(str.isdigit, term)) and term not in clauses for term in terms], dtype=bool),
        )

    def measure_passages(self, candidates: IntArray, titles: Sequence[Collection[str]]) -> FloatArray:
        """Return the measures :data:`PASSAGE_MEASURES` of candidates, float32 ``[candidates, measures]``.

        Args:
            candidates: Indices of the candidates.
            titles: Terms of the title of each candidate.
        """
        shares = self._compute_shares()
        contained = self.is_contained[candidates]
        order = np.sort(shares)
        as_good = len(order) - order.searchsorted(shares[candidates] - np.float32(1e-5))
        reciprocals = 1 / np.maximum(self.counts, 1).astype(np.float32)
        total = max(float(self.rarities.sum()), 1e-6)
        literals = self.rarities * self.is_literal
        bm25 = self.inputs.bm25_scores[candidates] / total
        columns = [
            shares[candidates] > 1 - 1e-5,
            (contained * reciprocals).max(axis=1, initial=0),
            shares[candidates],
            shares[candidates] / as_good,
            (contained @ literals) / max(float(literals.sum()), 1e-6),
            bm25,
            np.array([[term in title for term in self.terms] for title in titles]) @ self.rarities / total,
        ]
        return np.stack(columns, axis=1).astype(np.float32)

    def measure_question(self) -> FloatArray:
        """Return the measures :data:`QUESTION_MEASURES` of the question; ``[measures]``."""
        inputs, shares, counts = self.inputs, self._compute_shares(), self.counts[self.counts > 0]
        words = max(1, count_words(inputs.question.text))
        values = [
            np.log1p(len(inputs.terms.weights)),
            1 - min(1.0, len(inputs.terms.weights) / words),
            inputs.terms.weights[inputs.terms.is_unknown].sum(),
            shares.max(initial=0),
            np.log1p((shares > 1 - 1e-5).sum()),
            1 / counts.min() if len(counts) else 0.0,
            np.log1p((self.is_literal & (self.counts > 0)).sum()),
            inputs.dense[inputs.bm25 == inputs.bm25.max(initial=0)].max(initial=0),  # not of the first of equals
            inputs.bm25[inputs.dense == inputs.dense.max(initial=0)].max(initial=0),
            np.log1p(len(inputs.question.entities)),
            inputs.linkability,
            inputs.scale.trust,
        ]
        return np.array(values, dtype=np.float32)

    def compute_features(self, ranking: LinkRanking) -> FloatArray:
        """Return the features named by :data:`LAST_FEATURES` of the compared candidates, ``[best, features]``."""
        linked, ranked = ranking.linked, ranking.ranked
        ranks = np.empty(len(ranked), dtype=np.float32)
        ranks[np.argsort(-ranked, kind="stable")] = np.log1p(np.arange(len(ranked)))
        return np.column_stack(
            [
                ranking.features,
                linked,
                linked - linked.max(),
                ranked,
                ranked - ranked.max(),
                ranks,
                self.measure_passages(ranking.best, ranking.titles),
                np.tile(self.measure_question(), (len(ranked), 1)),
            ]
        )

    def _compute_shares(self) -> FloatArray:
        """Return the share of the rarity of all known terms that each candidate contains, ``[candidates]``."""
        shares: FloatArray = (self.is_contained @ self.rarities) / max(float(self.rarities.sum()), 1e-6)
        return shares


def rank_by_words(
    inputs: SignalInputs, ranking: LinkRanking, network: CandidateScorer, snapshot: Snapshot
) -> FloatArray:
    """Return the scores of the compared candidates after the last stage, float32 ``[best]``.

    With few candidates, as in an index of a few pages, the ranking by links counts too.

    Args:
        inputs: Measurements of all candidates.
        ranking: The compared candidates with their scores so far.
        network: Scores candidates by their :data:`LAST_FEATURES`.
        snapshot: The index.
    """
    scores = network.score(WordMatch.from_inputs(inputs, snapshot).compute_features(ranking))
    weight = np.float32(min(1.0, len(scores) / MAX_CANDIDATES))
    mixed = (1 - weight) * ranking.ranked + weight * scores
    return inputs.scale.other_languages.keep_places(ranking.ranked, mixed, inputs.candidates[ranking.best])
