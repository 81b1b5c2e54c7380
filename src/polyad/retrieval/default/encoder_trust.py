"""Trust in an encoder: how far its similarities count beside the words of a question, in each language of an index.

An encoder gives texts in a language that it was not trained on vectors that say little: with one trained on English,
rank fusion in Chinese finds half of what BM25 finds alone. So the encoder is measured on the index: some words of a
sentence are the question, and the passage of the sentence must come before other passages of its language.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Self

import numpy as np

from polyad.calibration import get_embedder_calibration
from polyad.model import FloatArray, Passage
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.text.function_words import find_language_evidence
from polyad.text.sentences import split_sentences

_SAMPLE = 400
"""Passages that are read, of all languages."""

_MIN_PASSAGES, _MAX_PASSAGES = 20, 60
"""Passages of a language that are measured; with fewer, :data:`_UNMEASURED_TRUST` stands in."""

_KEPT_SHARE, _MAX_CHARACTERS = 0.3, 300
"""Share of a sentence's words in its question, and characters of the sentence."""

_RIVALS = 19
"""Passages that the passage of a sentence is compared with."""

_UNMEASURED_TRUST = 0.3
"""Trust in a language that the encoder was not trained on, in an index of a few passages."""

_SHARES, _TRUSTS = (0.5, 0.85, 0.95), (0.0, _UNMEASURED_TRUST, 1.0)
"""Shares of first places and the trust at each, linear between them. A sample of 60 passages has a standard deviation
of 0.05, and an encoder finds a repeated word without knowing the language: all-MiniLM-L6-v2 has a share of 0.66 in
Spanish and 0.80 in Vietnamese, where a trust of about 0.25 ranks best. So these differ little in trust, and only a
share that none of its unknown languages reaches counts for more. Below half of the first places, none counts."""

_MAX_CHANGE = 0.2
"""Change of the number of passages, relative to the number at the measurement, after which it is repeated."""

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
PIECE = re.compile(rf"[{_UNSPACED}]{{1,3}}|[^\s{_UNSPACED}]+")
"""A word, or some letters of a script without spaces."""


@dataclass(frozen=True, slots=True)
class EncoderTrust:
    """The trust in the encoder of an index in [0, 1], by language; 0 if similarity says nothing.

    Attributes:
        by_language: Trust by ISO 639-1 code; the empty code stands for texts whose language is unknown.
        counts: Number of passages in the sample by the same codes.
        passages: Number of passages of the index at the measurement.
    """

    by_language: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    passages: int = 0

    @classmethod
    def measure(cls, snapshot: Snapshot, embedder: Embedder) -> Self:
        """Measure the trust in each language of an index. The same index gives the same values."""
        trained_languages = get_embedder_calibration(embedder.name).languages
        if trained_languages is None:
            return cls(passages=snapshot.passage_count)
        generator = random.Random(snapshot.passage_count)
        row_count = snapshot.row_count("passage")
        rows = np.array(sorted(generator.sample(range(row_count), min(row_count, _SAMPLE))), dtype=np.int64)
        rows = rows[np.unique(snapshot.graph.hyperedges(rows)[1])]  # not deleted
        with snapshot.read_transaction():
            texts = [passage.text for passage in snapshot.get(Passage, rows.tolist())]
        groups: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            groups[find_language_evidence(text)].append(place)
        trust = {}
        for language, places in groups.items():
            if language in trained_languages:
                trust[language] = 1.0
            elif language and len(places) >= _MIN_PASSAGES:
                sample = places[:_MAX_PASSAGES]
                questions = [_make_question(texts[place], generator) for place in sample]
                vectors = snapshot.vectors("passage", rows[sample])
                share = _compute_first_place_share(embedder.encode(questions, "query") @ vectors.T)
                trust[language] = float(np.interp(share, _SHARES, _TRUSTS))
            else:
                trust[language] = _UNMEASURED_TRUST if trained_languages and language else 1.0
        return cls(trust, {language: len(places) for language, places in groups.items()}, snapshot.passage_count)

    def is_current(self, passage_count: int) -> bool:
        """Return whether the index still has about as many passages as at the measurement."""
        return abs(passage_count - self.passages) <= _MAX_CHANGE * self.passages

    def get_trust(self, question: str) -> float:
        """Return the trust in the question's language; the mean over passages if it is not in the index."""
        if len(set(self.by_language.values())) <= 1:
            return next(iter(self.by_language.values()), 1.0)
        language = find_language_evidence(question)
        if language and language in self.by_language:
            return self.by_language[language]
        return float(
            np.average(list(self.by_language.values()), weights=[self.counts[key] for key in self.by_language])
        )

    def to_bytes(self) -> bytes:
        """Return the trust as UTF-8 JSON, to store it in the index."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Parse a trust from the JSON that :meth:`to_bytes` returns."""
        return cls(**json.loads(stored))


def _make_question(text: str, generator: random.Random) -> str:
    """Return some words of a sentence of ``text``, in their order."""
    sentence = generator.choice([span.of(text) for span in split_sentences(text, language="en")])[:_MAX_CHARACTERS]
    pieces = list(PIECE.finditer(sentence))
    count = max(2, round(_KEPT_SHARE * len(pieces)))
    return " ".join(pieces[place][0] for place in sorted(generator.sample(range(len(pieces)), min(count, len(pieces)))))


def _compute_first_place_share(similarities: FloatArray) -> float:
    """Return how often the passage of a question comes before :data:`_RIVALS` others, which are drawn at random.

    Args:
        similarities: Cosine of each question with each passage; the passage of the question is on the diagonal.
    """
    correct = similarities.diagonal()[:, np.newaxis]
    better = (similarities > correct).sum(axis=1) + ((similarities == correct).sum(axis=1) - 1) / 2
    others = len(similarities) - 1
    draws = np.arange(min(_RIVALS, others))
    chances = np.maximum(0, others - better[:, np.newaxis] - draws) / (others - draws)
    return float(chances.prod(axis=1).mean())
