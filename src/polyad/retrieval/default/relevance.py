"""Relevance: the probability that an index answers a question, calibrated on questions made from the index.

A score ranks the passages of one question but is not comparable across questions and indexes. Relevance is a logistic
model of some numbers about a question's best passages. Its weights were fitted on several corpora, by
``benchmarks/refusal.py``. The scale of scores is the index's own: it is measured with sentences of the index in place
of questions, with the passage of the sentence hidden and not hidden. So is the limit of ``--min-relevance auto``, with
everyday questions that few indexes answer, in its main languages (``everyday_questions.txt``).
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Self

import numpy as np

from polyad.model import FloatArray, IntArray, Passage
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.encoder_trust import PIECE
from polyad.retrieval.question import LinkedQuestion
from polyad.text.files import read_package_file
from polyad.text.function_words import find_language_evidence, infer_language
from polyad.text.sentences import split_sentences
from polyad.text.words import extract_query_terms

K = 5
"""Best passages that are measured."""

MAX_QUESTIONS = 80
"""Generated questions for one calibration."""

MIN_QUESTIONS = 30
"""Generated questions below which an index has the average scale and :data:`_UNCALIBRATED_LIMIT`."""

_MIN_WORDS, _MAX_WORDS = 8, 40
"""Length of the sentences that become questions."""

_MIN_CONTENT_WORDS, _KEPT_SHARE, _REPLACED_SHARE = 4, 0.5, 0.4
"""A question keeps half of its sentence's content words. Two in five are replaced by words of other passages, since
people ask in words of their own."""

_MAX_CHANGE = 0.2
"""Change of the number of passages, relative to the number at calibration, after which an index is calibrated again."""

_AVERAGE_OFFSET, _AVERAGE_SCALE, _MIN_SCALE = 6.5, 2.5, 0.5
"""Scale of an average corpus. The measured scale counts half: generated questions are not those of people."""

WEIGHTS = {"score": 0.82, "cosine": 7.87, "unknown": -1.87, "unknown_names": -2.62}
INTERCEPT = -3.75
"""Fitted on articles, manuals, the sample, and books together and each alone, with equal weight for each kind: people's
questions with an answer, and without one of four kinds."""

_EVERYDAY_MARGIN, _LINKED_LIMIT, _MAX_LIMIT = math.log(3), 0.2, 0.5
"""The limit of ``auto`` as log odds: at linkability 0, three times the odds of a typical everyday question; at
linkability 1 the second number, since sentences of articles lack the subject that people would name; at most the third.
On the measured corpora it refuses at most 5 % wrongly."""

_MIN_QUANTILE, _MAX_QUANTILE = 0.05, 0.7
"""Quantiles of the generated questions between which the limit is at linkability 0. They decide where everyday
questions say little: in an index of such questions, or of another language."""

_MARGIN_ELSEWHERE = 1.3
"""The margin in other languages than English, above everyday questions without their unknown names: German nouns have
capitals. There, the generated questions are no lower bound, since their cosines may be higher than people's."""

UNTRUSTED_SCORE_SHARE = 4.0
"""Share with which the score counts in place of the cosines of an encoder that is not trusted. With all-MiniLM-L6-v2 on
Chinese, words alone then tell answered questions from others."""

_EVERYDAY_COSINE = 0.23
"""Highest cosine of an English index to a typical everyday question, with all-MiniLM-L6-v2."""

_UNCALIBRATED_LIMIT = 0.02
"""Limit of an index of a few passages, and of questions in a language that the index lacks: their scores say little,
and a wrong refusal is worse than a needless answer."""

_MIN_LANGUAGE_SHARE = 0.2
"""Share of the sampled passages from which a language is one of the index."""

_WORD = re.compile(r"\w[\w'\u2019-]*")


@dataclass(frozen=True, slots=True)
class RelevanceFeatures:
    """Features of a question's best passages, from which a logistic model predicts relevance.

    Attributes:
        score: Deciding score of the best passage.
        cosine: Highest cosine of a passage to the question, on the scale of all-MiniLM-L6-v2.
        unknown: Third power of the share of the question's terms, by rarity, that no passage of the index contains:
            near 0 for a question in other words than the index, 1 for gibberish.
        unknown_names: Share of the capitalised words after the first that no passage of the index contains, times
            their importance for the question's meaning.
        linkability: Linkability of the index. The score counts by it: in a novel, questions that the index does not
            answer reach the scores of others.
        min_score_share: The score counts at least by it: more where an encoder is not trusted.
    """

    score: float
    cosine: float
    unknown: float
    unknown_names: float
    linkability: float
    min_score_share: float = 0.0


@dataclass(frozen=True, slots=True)
class UnknownNames:
    """The capitalised words of a question, after its first word, that no passage of the index contains.

    Attributes:
        share: Number of unknown names divided by the number of all capitalised words after the first, in [0, 1].
        rest: The question without the unknown names.
    """

    share: float
    rest: str

    @classmethod
    def from_question(cls, question: LinkedQuestion, snapshot: Snapshot) -> Self:
        """Find the capitalised words of a question that no passage contains, except in names of entities."""
        names = [word for word in list(_WORD.finditer(question.text))[1:] if word[0][0].isupper()]
        language = snapshot.infer_language(question.text)
        mentions = question.entities.values()
        linked_terms = {term for mention in mentions for term in extract_query_terms(mention.name, language)}
        terms = (
            [term for term in extract_query_terms(question.text, language) if term not in linked_terms] if names else []
        )
        counts = snapshot.document_frequencies(terms)
        unknown_terms = {term for term, count in zip(terms, counts, strict=True) if count == 0}
        unknown_names = [name for name in names if unknown_terms.issuperset(extract_query_terms(name[0], language))]
        rest = question.text
        for name in reversed(unknown_names):
            rest = rest[: name.start()] + rest[name.end() :]
        return cls(len(unknown_names) / max(1, len(names)), " ".join(rest.split()))

    def compute_weighted_share(
        self, question_vector: FloatArray, rest_vector: FloatArray, name_cosines: tuple[float, float]
    ) -> float:
        """Return the share of unknown names, weighted by how much they change the question's vector, in [0, 1].

        Args:
            question_vector: Unit vector of the question.
            rest_vector: Unit vector of the question without the unknown names.
            name_cosines: Cosines of the two vectors at which the weight is 1 and 0.
        """
        return self.share * float(np.interp(question_vector @ rest_vector, name_cosines, (1, 0)))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Converts the retrieval scores of one index to relevance: the probability that a passage is evidence.

    Attributes:
        offset: Score of the best passage of a typical question that the index does not answer.
        scale: Score of the best passage of a typical question that the index answers, minus the offset.
        limit: Relevance of the best passage, in (0, 1), below which a question is refused.
        questions: Number of generated questions; 0 for an index with too few suitable sentences.
        passages: Number of passages of the index at that time.
        scorer: Digest of the weights whose scores were measured.
        cosine_shift: Added to cosines: those of unrelated texts differ between languages.
        languages: ISO 639-1 codes of the main languages of the index, joined by spaces; empty for English alone.
    """

    offset: float = _AVERAGE_OFFSET
    scale: float = _AVERAGE_SCALE
    limit: float = 0.0
    questions: int = 0
    passages: int = 0
    scorer: str = ""
    cosine_shift: float = 0.0
    languages: str = ""

    @classmethod
    def from_measurements(
        cls,
        with_answer: Sequence[RelevanceFeatures],
        without_answer: Sequence[RelevanceFeatures],
        everyday: Sequence[RelevanceFeatures],
        passage_count: int,
        scorer_digest: str = "",
        languages: Sequence[str] = ("en",),
    ) -> Self:
        """Fit a calibration to the features of questions that the index answers, and of questions without an answer.

        Args:
            with_answer: Features of each generated question on the whole index.
            without_answer: Features of each generated question without the passage that the question is about.
            everyday: Features of the everyday questions.
            passage_count: Number of passages of the index.
            scorer_digest: Digest of the weights whose scores were measured.
            languages: Main languages of the index. With English alone, cosines are on the scale of the weights;
                otherwise the everyday questions set it.
        """
        if len(with_answer) < MIN_QUESTIONS:
            return cls(limit=_UNCALIBRATED_LIMIT, passages=passage_count, scorer=scorer_digest)
        low, high = (float(np.median([each.score for each in measured])) for measured in (without_answer, with_answer))
        offset = (low + _AVERAGE_OFFSET) / 2
        scale = (max(_MIN_SCALE, high - low) + _AVERAGE_SCALE) / 2
        is_english = list(languages) == ["en"]
        shift = 0.0 if is_english else _EVERYDAY_COSINE - float(np.median([each.cosine for each in everyday]))
        scaled = cls(offset, scale, cosine_shift=shift)
        nameless = everyday if is_english else [replace(each, unknown_names=0.0) for each in everyday]
        answered, unanswered = (
            [scaled.compute_log_odds(each) for each in measured] for measured in (with_answer, nameless)
        )
        bounds = np.quantile(answered, (_MIN_QUANTILE, _MAX_QUANTILE))
        margin, lowest = (_EVERYDAY_MARGIN, bounds[0]) if is_english else (_MARGIN_ELSEWHERE, -np.inf)
        unlinked_limit = np.clip(np.median(unanswered) + margin, lowest, bounds[1])
        log_odds = np.interp(with_answer[0].linkability, (0, 1), (unlinked_limit, _LINKED_LIMIT))
        limit = 1 / (1 + math.exp(-min(_MAX_LIMIT, float(log_odds))))
        codes = "" if is_english else " ".join(languages)
        return cls(offset, scale, limit, len(with_answer), passage_count, scorer_digest, shift, codes)

    def get_limit(self, question: str) -> float:
        """Return the relevance of the best passage below which ``question`` is refused.

        In another language than those of the index, questions with and without an answer look alike.
        """
        language = find_language_evidence(question) if self.languages else ""
        is_foreign = bool(language) and language not in self.languages.split()
        return min(self.limit, _UNCALIBRATED_LIMIT) if is_foreign else self.limit

    def is_current(self, passage_count: int) -> bool:
        """Return whether the index still has about as many passages as when the calibration was computed."""
        return abs(passage_count - self.passages) <= _MAX_CHANGE * self.passages

    def compute_log_odds(self, features: RelevanceFeatures) -> float:
        """Return the log odds that the index answers the question with these ``features``."""
        share = max(features.linkability, features.min_score_share)
        score = share * (features.score - self.offset) / self.scale
        values = asdict(replace(features, score=score, cosine=features.cosine + self.cosine_shift))
        return INTERCEPT + sum(weight * float(values[name]) for name, weight in WEIGHTS.items())

    def predict_relevance(self, features: RelevanceFeatures, scores: FloatArray) -> list[float]:
        """Return the relevance, in (0, 1), of each passage from its score and the question's ``features``."""
        differences = (scores - features.score) / self.scale
        log_odds = self.compute_log_odds(features) + WEIGHTS["score"] * differences
        relevance: list[float] = (1 / (1 + np.exp(-np.clip(log_odds, -30, 30)))).tolist()
        return relevance

    def to_bytes(self) -> bytes:
        """Return the calibration as UTF-8 JSON, to store it in the index."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Parse a calibration from the JSON that :meth:`to_bytes` returns."""
        return cls(**json.loads(stored))


def read_everyday_questions(languages: Sequence[str] = ("en",)) -> list[str]:
    """Return questions about everyday subjects, most of which a typical index does not answer.

    Args:
        languages: ISO 639-1 codes. Of languages without questions, English stands in if no other has any.
    """
    sections = re.split(
        r"^\[(\w+)\]\n", read_package_file("polyad.retrieval.default", "everyday_questions.txt"), flags=re.M
    )
    questions = dict(zip(sections[1::2], sections[2::2], strict=True))
    return [
        question
        for language in [code for code in languages if code in questions] or ["en"]
        for question in questions[language].splitlines()
    ]


def find_main_languages(snapshot: Snapshot) -> list[str]:
    """Return the ISO 639-1 codes of the languages of at least a fifth of an index; English without evidence."""
    texts, _ = _sample_passages(snapshot, random.Random(snapshot.passage_count))
    counts = Counter(find_language_evidence(text) or "en" for text in texts)
    return [code for code, count in counts.most_common() if count >= _MIN_LANGUAGE_SHARE * len(texts)] or ["en"]


def generate_questions(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    """Yield artificial questions made from sentences of the index, each with the row of its sentence's passage.

    The same index yields the same questions.
    """
    generator = random.Random(snapshot.passage_count)
    texts, rows = _sample_passages(snapshot, generator)
    vocabulary = sorted({term for text in texts for term in extract_query_terms(text)})
    is_english = find_main_languages(snapshot) == ["en"]
    pairs = [
        (words, row)
        for text, row in zip(texts, rows.tolist(), strict=True)
        for words in _split_into_words(text, "en" if is_english else infer_language(text))
        if _MIN_WORDS <= len(words) <= _MAX_WORDS
    ]
    for words, row in generator.sample(pairs, min(len(pairs), MAX_QUESTIONS)):
        yield _distort_sentence(words, vocabulary, generator), row


def _sample_passages(snapshot: Snapshot, generator: random.Random) -> tuple[list[str], IntArray]:
    """Return the texts and rows of some passages of the index."""
    row_count = snapshot.row_count("passage")
    rows = np.array(generator.sample(range(row_count), min(row_count, 2 * MAX_QUESTIONS)), dtype=np.int64)
    rows = rows[np.unique(snapshot.graph.hyperedges(rows)[1])]  # not deleted
    with snapshot.read_transaction():
        return [passage.text for passage in snapshot.get(Passage, rows.tolist())], rows


def _split_into_words(text: str, language: str) -> Iterator[list[str]]:
    """Yield the words of each sentence; in scripts without spaces, pieces of a few letters."""
    for span in split_sentences(text, language):
        yield span.of(text).split() if language == "en" else PIECE.findall(span.of(text))


def _distort_sentence(words: Sequence[str], vocabulary: Sequence[str], generator: random.Random) -> str:
    """Return an artificial question: a sentence with some content words dropped and some replaced at random."""
    content = [number for number, word in enumerate(words) if extract_query_terms(word)]
    kept_count = min(len(content), max(_MIN_CONTENT_WORDS, round(_KEPT_SHARE * len(content))))
    omitted = set(content) - set(generator.sample(content, kept_count))
    replaced = {number for number in content if generator.random() < _REPLACED_SHARE}
    return " ".join(
        generator.choice(vocabulary) if number in replaced else word
        for number, word in enumerate(words)
        if number not in omitted
    )
