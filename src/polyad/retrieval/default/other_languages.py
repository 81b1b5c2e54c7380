"""Passages in another language than the question: their similarity is comparable, and stands in for the words.

A multilingual encoder gives the passages of one language vectors that lie together, so that those in the question's
language are nearer to it whatever they say. Words say nothing across languages. So in an index of several languages,
cosines are measured from the mean of a passage's language, and a passage in another language than the question has at
least the signals that passages in the question's language of the same similarity have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from polyad.hypergraph.sparse import rank_by_id, union
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.snapshot import LanguagePassages, Snapshot
from polyad.text.function_words import find_language_evidence

_PRIOR_COUNT = 2
"""Passages without a difference of languages that are added to half the harmonic mean of the numbers of passages in two
languages: the mean of a few passages shows what they say, and not their language."""

_MIN_TRUST = 0.5
"""Trust in the encoder from which its similarities compare a language with others."""

_PRIOR_SQUARES = 0.05
"""Squares of similarities added to those of the candidates, on a line through the origin: few show no line."""

_TERM_DEPTH = 10
"""Best passages by BM25 whose languages tell that of a question without function words."""


@dataclass(frozen=True, slots=True, eq=False)
class OtherLanguages:
    """The passages of an index in other languages than a question; none in an index of one language.

    Attributes:
        languages: The passages in the other languages.
        means: Mean cosine of each vector of the question with all passages, less the offsets; ``[vectors]``.
        offsets: What the cosine of each vector of the question with a passage in each of these languages is above one
            with an equal passage in the question's language; ``[languages, vectors]``.
    """

    languages: tuple[LanguagePassages, ...] = ()
    means: FloatArray = field(default_factory=lambda: np.zeros(1, dtype=np.float32))
    offsets: FloatArray = field(default_factory=lambda: np.zeros((0, 1), dtype=np.float32))

    @classmethod
    def from_question(
        cls, question: str, vectors: FloatArray, snapshot: Snapshot, trust: Mapping[str, float]
    ) -> OtherLanguages:
        """Find the passages in other languages than ``question``, and measure how their cosines differ.

        Args:
            question: The question.
            vectors: Unit vectors of the question and its parts, ``[vectors, dimension]``.
            snapshot: The index.
            trust: Trust in the encoder by language, where it is not 1: languages below :data:`_MIN_TRUST` are left out.
        """
        by_language = {code: each for code, each in snapshot.languages.items() if trust.get(code, 1.0) >= _MIN_TRUST}
        language = find_question_language(question, snapshot) if by_language else ""
        if not language or trust.get(language, 1.0) < _MIN_TRUST or not by_language.keys() - {language}:
            return cls()
        group = by_language.get(language)
        mean = snapshot.mean_cosines(vectors)
        own_mean, own_count = (vectors @ group.mean, group.count) if group else (mean, snapshot.passage_count)
        others = [each for code, each in by_language.items() if code != language]
        counts = np.array([each.count for each in others])
        certainty = counts * own_count / (counts + own_count)
        shares = certainty / (certainty + _PRIOR_COUNT)
        offsets = shares[:, np.newaxis] * (np.stack([vectors @ each.mean for each in others]) - own_mean)
        means = mean - counts @ offsets / snapshot.passage_count
        return cls(tuple(others), *(np.round(part, 6).astype(np.float32) for part in (means, offsets)))

    def contain(self, passages: IntArray) -> BoolArray:
        """Return whether each of the passages is in another language than the question."""
        is_other = np.zeros(len(passages), dtype=bool)
        for each in self.languages:
            is_other |= each.contains(passages)
        return is_other

    def get_offsets(self, passages: IntArray) -> FloatArray:
        """Return what is to be subtracted from the cosines of passages; ``[passages, vectors]``."""
        offsets = np.zeros((len(passages), self.offsets.shape[1]), dtype=np.float32)
        for each, offset in zip(self.languages, self.offsets, strict=True):
            offsets[each.contains(passages)] = offset
        return offsets

    def nearest(self, vectors: FloatArray, k: int, snapshot: Snapshot) -> list[tuple[IntArray, FloatArray]]:
        """Return for each query vector the ``k`` nearest passages and their cosines, without what languages add."""
        nearest = snapshot.nearest("passage", vectors, k)
        if not self.languages:
            return nearest
        by_language = [each.nearest(vectors, k) for each in self.languages]
        results = []
        for place, vector in enumerate(vectors):
            rows = union([nearest[place][0], *(each[place][0] for each in by_language)])
            cosines = snapshot.cosines("passage", rows, vector) - self.get_offsets(rows)[:, place]
            order = np.lexsort((rank_by_id(snapshot, "passage", rows), -cosines))[:k]
            results.append((rows[order], cosines[order]))
        return results

    def fill_signals(self, signals: FloatArray, passages: IntArray, similarities: FloatArray) -> FloatArray:
        """Return the signals, of passages in other languages at least what their similarity predicts.

        A signal is predicted from the similarity by a line through the passages in the question's language, and is at
        most the highest among them.

        Args:
            signals: Signals of the candidates, float32 ``[candidates, signals]``.
            passages: Row numbers of the candidates.
            similarities: Similarity of the candidates to the question.
        """
        is_other = self.contain(passages)
        if is_other.all() or not is_other.any():
            return signals
        references, place = signals[~is_other].astype(np.float64), similarities[~is_other].astype(np.float64)
        mean, centred = references.mean(axis=0), place - place.mean()
        proportional = mean / max(float(place.mean()), 1e-6)
        slopes = (centred @ (references - mean) + _PRIOR_SQUARES * proportional) / (centred @ centred + _PRIOR_SQUARES)
        predicted = mean + (similarities[is_other] - place.mean())[:, np.newaxis] * slopes
        filled = signals.copy()
        filled[is_other] = np.maximum(signals[is_other], np.round(predicted, 6).clip(0, references.max(axis=0)))
        return filled

    def keep_places(self, before: FloatArray, after: FloatArray, passages: IntArray) -> FloatArray:
        """Return the scores ``after`` a stage of ranking that reads words; float32 ``[candidates]``.

        A passage in another language keeps the place that it had among those in the question's language ``before``.
        """
        is_other = self.contain(passages)
        if is_other.all() or not is_other.any():
            return after
        own_before, own_after = np.sort(before[~is_other]), np.sort(after[~is_other])
        scores = after.copy()
        scores[is_other] = np.interp(before[is_other], own_before, own_after)
        scores[is_other] += np.maximum(before[is_other] - own_before[-1], 0)
        scores[is_other] -= np.maximum(own_before[0] - before[is_other], 0)
        return scores


def find_question_language(question: str, snapshot: Snapshot) -> str:
    """Return the language of a question, or of the passages that contain its words; empty without such passages."""
    if language := find_language_evidence(question):
        return language
    rows, scores = snapshot.search_terms(question, _TERM_DEPTH)
    by_language: Mapping[str, float] = {
        code: float(scores[each.contains(rows)].sum()) for code, each in snapshot.languages.items()
    }
    language = max(by_language, key=lambda code: by_language[code])
    return language if by_language[language] else ""
