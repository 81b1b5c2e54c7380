"""Recall of evidence statements in returned text, without a language model.

Data sets such as GraphRAG-Bench state the evidence of an answer in sentences of their own. A statement is covered if
its words stand close together in a text. Words that occur in few passages weigh more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from polyad.model import Passage, Span
from polyad.protocols.snapshot import Snapshot
from polyad.text.words import extract_query_terms, extract_terms

WINDOW = 3
"""Number of consecutive sentences that must cover a statement."""

MIN_COVERED_WEIGHT = 0.8
"""Share of the weight of a statement's words that covers the statement."""

_BATCH = 1 << 12
"""Passages read at a time."""

SplitSentences = Callable[[str], Sequence[Span]]
"""Returns the spans of the sentences of a text."""


@dataclass(frozen=True, slots=True)
class StatementCoverage:
    """How many of a question's evidence statements the retrieved texts contain, and how many the index contains.

    Attributes:
        statements: Number of statements.
        coverable: Number of statements that some passage of the index covers: an upper bound for every retriever.
        at_words: Number of statements that the returned text covers, by the budget of words.
    """

    statements: int
    coverable: int
    at_words: Mapping[int, int]

    def __post_init__(self) -> None:
        if not 0 <= max(self.at_words.values(), default=0) <= self.statements or self.statements < 1:
            raise ValueError(f"{self.at_words} of {self.statements}")

    @property
    def ceiling(self) -> float:
        """The highest possible recall: the share of evidence statements that the index contains."""
        return self.coverable / self.statements

    def get_recall(self, max_words: int) -> float:
        """Return the share of evidence statements that the first ``max_words`` words of the retrieved texts contain."""
        return self.at_words[max_words] / self.statements


def is_covered(word_weights: Mapping[str, float], sentences: Sequence[frozenset[str]]) -> bool:
    """Return whether three consecutive sentences of a text contain most words of a statement, by weight of the words.

    The weights of the words that occur in three consecutive sentences must reach 0.8 of the total weight. This measure
    is polyad's own; GraphRAG-Bench's evidence recall asks a language model.

    >>> is_covered({"otter": 2.0, "fish": 1.0}, [frozenset({"otter"}), frozenset({"eat"}), frozenset({"fish"})])
    True

    Args:
        word_weights: Weight of each word of the statement.
        sentences: Words of each sentence of one text.
    """
    required = MIN_COVERED_WEIGHT * sum(word_weights.values()) * (1 - 1e-9)  # sums in another order differ slightly
    starts = range(max(1, len(sentences) - WINDOW + 1))
    windows = (frozenset[str]().union(*sentences[start : start + WINDOW]) for start in starts)
    return any(sum(weight for word, weight in word_weights.items() if word in window) >= required for window in windows)


class StatementRecall:
    """A retrieval measure: the share of a question's evidence statements (supporting sentences) in the retrieved texts.

    Args:
        snapshot: The index, whose passages determine the weight of each word.
        split_sentences: Splits a text into sentences as the index does.
        budgets: Budgets in words of returned text.
    """

    def __init__(self, snapshot: Snapshot, split_sentences: SplitSentences, budgets: Sequence[int]) -> None:
        self._snapshot, self._budgets = snapshot, tuple(budgets)
        self._get_sentence_words = lru_cache(maxsize=1 << 14)(
            lambda text: tuple(frozenset(extract_terms(span.of(text))) for span in split_sentences(text))
        )
        self._cache: dict[tuple[str, ...], tuple[list[dict[str, float]], int]] = {}

    def get_weights(self, statement: str) -> dict[str, float]:
        """Return the idf (inverse document frequency) of each word stem of an evidence statement, keyed by stem.

        The weight is the inverse document frequency of BM25 (Robertson and Sparck Jones):
        ``ln(1 + (N - n + 0.5) / (n + 0.5))`` for a word in n of N passages.
        """
        language = self._snapshot.infer_language(statement)
        words, total = extract_query_terms(statement, language), self._snapshot.passage_count
        counts = self._snapshot.document_frequencies(words)
        return {
            word: math.log(1 + (total - count + 0.5) / (count + 0.5))
            for word, count in zip(words, map(float, counts), strict=True)
        }

    def measure_coverage(self, statements: Sequence[str], texts: Sequence[str]) -> StatementCoverage:
        """Return how many evidence ``statements`` of a question the first words of retrieved ``texts`` contain.

        One text must cover a statement alone. The number is counted for each budget of words, such as 500.
        """
        key = tuple(statements)
        if key not in self._cache:
            weights = [self.get_weights(statement) for statement in statements]
            self._cache[key] = weights, sum(map(self._is_coverable, weights))
        weights, coverable = self._cache[key]
        at_words = {budget: self._count_covered(weights, texts, budget) for budget in self._budgets}
        return StatementCoverage(len(statements), coverable, at_words)

    def _count_covered(self, weights: Sequence[Mapping[str, float]], texts: Sequence[str], budget: int) -> int:
        sentences = [self._get_sentence_words(text) for text in _limit_texts(texts, budget)]
        return sum(any(is_covered(statement, text) for text in sentences) for statement in weights)

    def _is_coverable(self, word_weights: Mapping[str, float]) -> bool:
        """Return whether any passage of the index contains the evidence statement whose words have these weights."""
        words, values = list(word_weights), np.array(list(word_weights.values()), dtype=np.float64)
        for start in range(0, self._snapshot.passage_count, _BATCH):
            rows = np.arange(start, min(start + _BATCH, self._snapshot.passage_count), dtype=np.int64)
            contained = self._snapshot.contains_terms(words, rows) @ values
            candidates = rows[contained >= MIN_COVERED_WEIGHT * values.sum() * (1 - 1e-9)]
            passages = self._snapshot.get(Passage, [int(row) for row in candidates])
            if any(is_covered(word_weights, self._get_sentence_words(passage.text)) for passage in passages):
                return True
        return False


def get_first_words(texts: Iterable[str], max_words: int) -> list[str]:
    """Return the first ``max_words`` words of a sequence of texts as a list; words are separated by white space."""
    words: list[str] = []
    for text in texts:
        words += text.split(maxsplit=max_words - len(words))[: max_words - len(words)]
        if len(words) == max_words:
            break
    return words


def _limit_texts(texts: Sequence[str], max_words: int) -> list[str]:
    """Return the texts from the first on that have ``max_words`` words together; the last text is cut to fit."""
    limited: list[str] = []
    for text in texts:
        count = len(text.split())
        if count > max_words:
            return [*limited, " ".join(get_first_words([text], max_words))] if max_words else limited
        limited.append(text)
        max_words -= count
    return limited
