"""Relevance: the probability that an index answers a question, predicted from what its best passages have of it.

A score ranks the passages of one question but is not comparable across questions and indexes. Relevance is predicted
by a small network from numbers that are: cosines above the mean of the index, shares of the question's words by their
rarity, and what the index lacks. Nothing is fitted to an index, so relevance depends on the index and the question
alone. ``benchmarks/refusal.py`` trains the network.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np

from polyad.calibration import get_embedder_calibration
from polyad.model import BoolArray, FloatArray, IntArray, Mention
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.signals import SignalInputs
from polyad.text.file_names import find_file_references
from polyad.text.files import read_package_file
from polyad.text.function_words import find_language_evidence
from polyad.text.words import extract_query_terms

K = 5
"""Best passages that are measured."""

_MARGIN_RANK = 10
"""The nearest passage is compared with the passage of this rank by similarity."""

_RARE_SHARE, _RARE_COUNT = 0.02, 3
"""A rare word is in at most this share of the passages, or in at most this number of passages of a small index."""

_NEAR = 0.33
"""Cosine above the mean from which a passage in another language than the question counts as relevant, since words say
nothing about it. With multilingual-e5-small on Chinese, 3 % of the best passages that answer are below it, and 3 % of
those of questions about other things above it."""

_SHORT = 2
"""Words of a question that is never refused while a passage contains them all."""

FEATURES_OF_QUESTION = (
    "terms", "trust", "foreign", "unknown", "unknown names", "absent codes", "margin",
    "joint coverage", "rare words",
)  # fmt: skip
FEATURES_OF_PASSAGE = (
    "cosine", "sentence cosine", "rest cosine", "coverage", "rare coverage", "covered rarity", "balanced coverage",
    "agreement", "subject",
)  # fmt: skip
FEATURES = (*FEATURES_OF_QUESTION, *FEATURES_OF_PASSAGE, "complete")


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """The words of a question with their rarity in the index.

    Attributes:
        rarity: Inverse document frequency of each word; ``[words]``.
        is_unknown: Whether no passage contains the word, nor a linked name; ``[words]``.
        is_rare: Whether few passages contain the word, or none; ``[words]``.
        is_name: Whether the word is part of a capitalised name; ``[words]``.
        is_contained: Whether each passage contains each word; ``[passages, words]``.
    """

    rarity: FloatArray
    is_unknown: BoolArray
    is_rare: BoolArray
    is_name: BoolArray
    is_contained: BoolArray

    @classmethod
    def from_inputs(
        cls, inputs: SignalInputs, snapshot: Snapshot, places: IntArray, hidden_rows: Collection[int] = ()
    ) -> Self:
        """Look up the words of a question in the candidate passages ``places``, as if ``hidden_rows`` were absent."""
        question, rows = inputs.question, inputs.candidates[places]
        language = snapshot.infer_language(question.text)

        def list_words(mentions: Sequence[Mention]) -> set[str]:
            return {word for mention in mentions for word in extract_query_terms(mention.name, language)}

        words = extract_query_terms(question.text, language)
        hidden = np.array(sorted(hidden_rows), dtype=np.int64)
        all_counts = snapshot.document_frequencies(words)
        counts = all_counts - snapshot.contains_terms(words, hidden).sum(axis=0)
        linked = list(question.entities.values())
        in_linked = list_words(linked)
        in_names = list_words([each for each in (*linked, *question.unlinked) if each.name != each.name.lower()])
        order = np.argsort(rows)
        is_contained = np.zeros((len(rows), len(words)), dtype=bool)
        is_contained[order] = snapshot.contains_terms(words, rows[order])
        by_alias = inputs.terms.find_contained_terms(rows)
        if by_alias.shape == is_contained.shape:
            is_contained |= by_alias
        return cls(
            np.log1p(snapshot.passage_count / np.maximum(1, counts)).astype(np.float32),
            (counts == 0) & ~((all_counts == 0) & np.array([word in in_linked for word in words], bool)),
            counts <= max(_RARE_COUNT, _RARE_SHARE * snapshot.passage_count),
            np.array([word in in_names for word in words], bool),
            is_contained,
        )

    def compute_share(self, is_contained: BoolArray, weights: FloatArray) -> FloatArray:
        """Return the share of ``weights`` of the words in the mask ``is_contained``; 1 if no word has a weight."""
        total = float(weights.sum())
        if total <= 0:
            return np.ones(is_contained.shape[:-1], dtype=np.float32)
        share: FloatArray = (is_contained @ weights) / total
        return share

    def compute_balance(self) -> FloatArray:
        """Return the share of the name's words or of the other words in each passage, the lower of the two.

        A passage that only names what the question is about is no answer.
        """
        groups = [np.where(mask, self.rarity, 0) for mask in (self.is_name, ~self.is_name)]
        balance: FloatArray = np.minimum(*(self.compute_share(self.is_contained, group) for group in groups))
        return balance

    def find_complete(self) -> BoolArray:
        """Return whether each passage contains all of the question's words that are rare, if there are any."""
        lacks_any = np.asarray((~self.is_contained & self.is_rare).any(axis=1))
        is_complete: BoolArray = ~lacks_any & bool(self.is_rare.any())
        return is_complete


@dataclass(frozen=True, slots=True)
class RelevanceFeatures:
    """The features of a question and of its best passages, from which relevance is predicted.

    Attributes:
        table: Features of the question, with the highest value of its best passages, in the first row; those of each
            passage in the others; float32 ``[1 + passages, features]``, in the order of :data:`FEATURES`.
        is_sure: Whether one of the best passages contains all words of a short question, or all rare words, or is of a
            file that the question names, or the best is in another language and similar.
        has_absent_code: Whether the question is about codes that no passage contains.
    """

    table: FloatArray
    is_sure: bool
    has_absent_code: bool

    @classmethod
    def measure(
        cls,
        inputs: SignalInputs,
        snapshot: Snapshot,
        embedder: str,
        best: IntArray,
        first_text: str,
        absent_code_share: float,
        hidden_rows: Collection[int] = (),
    ) -> Self:
        """Measure the best passages of a question.

        Args:
            inputs: The measurements of the candidate passages.
            snapshot: The index.
            embedder: Name of the embedder.
            best: Indices of the best candidates, best first.
            first_text: Text of the first of them.
            absent_code_share: Share of the question's codes that no passage contains, in [0, 1].
            hidden_rows: Passages that count as absent.
        """
        words = QuestionWords.from_inputs(inputs, snapshot, best, hidden_rows)
        top = slice(0, K)
        is_visible = ~np.isin(inputs.candidates, list(hidden_rows))
        dense, sentences, rest = _center_cosines(inputs, snapshot, embedder)
        nearest = np.sort(dense[is_visible])[::-1][:_MARGIN_RANK]
        shares = words.compute_share(words.is_contained, words.rarity)
        of_passages = np.column_stack(
            [
                dense[best],
                sentences[best],
                rest[best],
                shares,
                words.compute_share(words.is_contained, words.rarity**3),
                np.log1p(words.is_contained @ words.rarity),
                words.compute_balance(),
                (inputs.dense_rank * inputs.bm25_rank)[best],
                np.maximum(inputs.subject, inputs.weak_subject)[best],
            ]
        )
        languages = [find_language_evidence(text) for text in (inputs.question.text, first_text)]
        other_languages = inputs.scale.other_languages
        is_foreign = bool(other_languages.contain(inputs.candidates[best[:1]]).any())
        is_foreign = is_foreign or (all(languages) and languages[0] != languages[1])
        of_question = np.array([
            math.log1p(len(words.rarity)),
            inputs.scale.trust,
            is_foreign,
            words.compute_share(words.is_unknown, words.rarity),
            inputs.unknown_names,
            absent_code_share,
            nearest[:1].sum() - nearest[-1:].sum(),
            words.compute_share(np.asarray(words.is_contained[top].any(axis=0)), words.rarity),
            words.is_rare.sum() / max(1, len(words.rarity)),
        ])  # fmt: skip
        rows = np.vstack([of_passages[top].max(axis=0, initial=0), of_passages])
        is_short = 0 < len(words.rarity) <= _SHORT
        is_complete = words.find_complete() | (is_short & words.is_contained.all(axis=1))
        complete = np.r_[is_complete[top].any(), is_complete]
        table = np.column_stack([np.tile(of_question, (len(rows), 1)), rows, complete]).astype(np.float32)
        is_near = is_foreign and inputs.scale.trust == 1 and dense[best[0]] >= _NEAR
        files = list(find_file_references(inputs.question.text, sure=True))
        is_of_file = files and snapshot.contains_terms(files, np.sort(inputs.candidates[best[top]])).any()
        return cls(table, bool(complete[0] or is_near or is_of_file), absent_code_share == 1)


def _center_cosines(inputs: SignalInputs, snapshot: Snapshot, embedder: str) -> FloatArray:
    """Return cosines of each candidate, of its best hyperedge, and of it to the rest of the question, above the mean.

    They are divided by the mean distance of passages from their mean, which makes them comparable between embedders.
    In a small index, what the embedder's cosines of unrelated texts are stands in for the mean without the passage.
    Float32 ``[3, candidates]``.
    """
    scale, origin, count = inputs.scale, get_embedder_calibration(embedder).cosine_origin, snapshot.passage_count
    mean = snapshot.mean_cosines(np.eye(scale.vectors.shape[1], dtype=np.float32))
    mean_of_pairs = min(0.95, max(0.0, (count * float(mean @ mean) - 1 + origin) / count))
    relative = np.stack([inputs.dense, inputs.hyperedges[:, 0], inputs.rest])
    above = relative * scale.spreads[[0, 0, 1], np.newaxis]
    shrunk = above + (above + scale.trust * (scale.means[[0, 0, 1], np.newaxis] - origin)) / count
    centered: FloatArray = shrunk / (1 - mean_of_pairs)
    return centered


@dataclass(frozen=True, slots=True, eq=False)
class RelevanceModel:
    """A small network that predicts relevance: one hidden layer beside a linear part.

    Attributes:
        mean: Mean of each feature in training; ``[features]``.
        deviation: Standard deviation of each feature in training; ``[features]``.
        linear: Weight of each feature; ``[features]``.
        hidden: Weights of the hidden units; ``[features, units]``.
        bias: ``[units]``.
        output: ``[units]``.
        intercept: Added to the log odds.
        limit: Relevance of the best passage below which ``auto`` refuses a question.
    """

    mean: FloatArray
    deviation: FloatArray
    linear: FloatArray
    hidden: FloatArray
    bias: FloatArray
    output: FloatArray
    intercept: float
    limit: float

    @classmethod
    def from_layers(cls, layers: Sequence[FloatArray], intercept: float, limit: float) -> Self:
        """Build a model from its six arrays, in the order of the attributes."""
        mean, deviation, linear, hidden, bias, output = layers
        return cls(mean, deviation, linear, hidden, bias, output, intercept, limit)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse the JSON that ``benchmarks/refusal.py`` writes."""
        values: dict[str, Any] = json.loads(text)
        layers = [np.array(values[name]) for name in ("mean", "deviation", "linear", "hidden", "bias", "output")]
        return cls.from_layers(layers, values["intercept"], values["limit"])

    def compute_log_odds(self, table: FloatArray) -> FloatArray:
        """Return the log odds of relevance for each row of features; ``[rows]``."""
        inputs = np.clip((table - self.mean) / self.deviation, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        hidden = np.tanh(inputs @ self.hidden + self.bias)
        log_odds: FloatArray = inputs @ self.linear + hidden @ self.output + self.intercept
        return log_odds

    def predict(self, features: RelevanceFeatures) -> list[float]:
        """Return the relevance, in (0, 1), of each passage, best first.

        That of the first is the relevance of the question; no other has a higher one. A sure question has at least the
        limit of ``auto``; one about a code that the index lacks is below it.
        """
        relevance = 1 / (1 + np.exp(-np.clip(self.compute_log_odds(features.table), -30, 30)))
        best = relevance[0]
        if features.has_absent_code:
            best = min(best, _BELOW_LIMIT * self.limit)
        elif features.is_sure:
            best = max(best, self.limit)
        values: list[float] = np.minimum(best, np.r_[best, relevance[2:]]).tolist()
        return values


_MAX_DEVIATIONS = 4.0
"""Standardised features are clipped to this absolute value."""

_BELOW_LIMIT = 0.9


@cache
def load_relevance_model() -> RelevanceModel:
    """Return the network that comes with polyad."""
    return RelevanceModel.from_text(read_package_file("polyad.retrieval.default", "relevance.json"))
