"""Recall of evidence without a model: which of some statements are covered by what was returned.

Data sets such as GraphRAG-Bench say in statements of their own what an answer rests on. A statement is covered when its
words stand close together in a text, so far as they tell texts apart: words that few passages hold count more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from polyad.evaluation.measures.evidence import truncate_texts
from polyad.model import Span
from polyad.protocols.snapshot import Snapshot
from polyad.text.terms import query_terms, words_of

WINDOW = 3
"""Consecutive sentences in which a statement has to be covered."""

ENOUGH = 0.8
"""Share of the weight of a statement's words that covers it."""

_PASSAGES = 1 << 12
"""Read at a time."""

Sentences = Callable[[str], Sequence[Span]]
"""The sentences of a text, by spans."""


@dataclass(frozen=True, slots=True)
class StatementCoverage:
    """How many of a question's statements are covered.

    Attributes:
        statements: How many there are.
        coverable: By any passage of the index: no retriever can cover more.
        at_words: By what was returned within a budget of words, by the budget.
    """

    statements: int
    coverable: int
    at_words: Mapping[int, int]

    def __post_init__(self) -> None:
        if not 0 <= max(self.at_words.values(), default=0) <= self.statements or self.statements < 1:
            raise ValueError(f"{self.at_words} of {self.statements}")

    def to_json(self) -> dict[str, object]:
        """As a line of ``per_query.jsonl`` has it."""
        at_words = {str(budget): count for budget, count in self.at_words.items()}
        return {"statements": self.statements, "coverable": self.coverable, "at_words": at_words}


def is_covered(weights: Mapping[str, float], sentences: Sequence[frozenset[str]]) -> bool:
    """Whether some consecutive sentences hold enough of a statement's words.

    Definition: the words' weights, added up over those that stand in three consecutive sentences of a text, reach 0.8
    of the weight of all. polyad's own measure, beside GraphRAG-Bench's evidence recall, which asks a language model.

    >>> is_covered({"otter": 2.0, "fish": 1.0}, [frozenset({"otter"}), frozenset({"eat"}), frozenset({"fish"})])
    True

    Args:
        weights: Of a statement's words.
        sentences: The words of each sentence of one text.
    """
    needed = ENOUGH * sum(weights.values()) * (1 - 1e-9)
    places = range(max(1, len(sentences) - WINDOW + 1))
    windows = (frozenset[str]().union(*sentences[place : place + WINDOW]) for place in places)
    return any(sum(weight for word, weight in weights.items() if word in window) >= needed for window in windows)


class StatementRecall:
    """Tells what of a question's evidence was returned, by the words of an index.

    Args:
        snapshot: Of the index: its words say how much each one tells.
        sentences: Those of its splitter.
        budgets: In words of returned text.
    """

    def __init__(self, snapshot: Snapshot, sentences: Sentences, budgets: Sequence[int]) -> None:
        self._snapshot, self._budgets = snapshot, tuple(budgets)
        self._words_of_sentences = lru_cache(maxsize=1 << 14)(
            lambda text: tuple(frozenset(words_of(span.of(text))) for span in sentences(text))
        )
        self._known: dict[tuple[str, ...], tuple[list[dict[str, float]], int]] = {}

    def weights(self, statement: str) -> dict[str, float]:
        """The statement's words by their stems, without those that tell nothing, and what each counts.

        That is its inverse document frequency as BM25 has it (Robertson and Sparck Jones): ``ln(1 + (N - n + 0.5) / (n
        + 0.5))`` of a word in n of N passages.
        """
        words, total = query_terms(statement), self._snapshot.passage_count
        counts = self._snapshot.terms.document_frequencies(words)
        return {
            word: math.log(1 + (total - count + 0.5) / (count + 0.5))
            for word, count in zip(words, map(float, counts), strict=True)
        }

    def of(self, statements: Sequence[str], texts: Sequence[str]) -> StatementCoverage:
        """How many of the statements are covered by the texts returned, best first; each is read by itself."""
        key = tuple(statements)
        if key not in self._known:
            weights = [self.weights(statement) for statement in statements]
            self._known[key] = weights, sum(map(self._is_coverable, weights))
        weights, coverable = self._known[key]
        at_words = {budget: self._count(weights, texts, budget) for budget in self._budgets}
        return StatementCoverage(len(statements), coverable, at_words)

    def _count(self, weights: Sequence[Mapping[str, float]], texts: Sequence[str], budget: int) -> int:
        read = [self._words_of_sentences(text) for text in _within(texts, budget)]
        return sum(any(is_covered(one, sentences) for sentences in read) for one in weights)

    def _is_coverable(self, weights: Mapping[str, float]) -> bool:
        """Whether any passage covers a statement; only those that hold enough of its words are read."""
        words, each = list(weights), np.array(list(weights.values()), dtype=np.float64)
        for start in range(0, self._snapshot.passage_count, _PASSAGES):
            rows = np.arange(start, min(start + _PASSAGES, self._snapshot.passage_count), dtype=np.int64)
            held = self._snapshot.terms.contains(words, rows) @ each
            near = rows[held >= ENOUGH * each.sum() * (1 - 1e-9)]
            passages = self._snapshot.passages([int(row) for row in near])
            if any(is_covered(weights, self._words_of_sentences(passage.text)) for passage in passages):
                return True
        return False


def _within(texts: Sequence[str], budget: int) -> list[str]:
    """The texts that fit into a budget of words, and as much of the next as does."""
    kept: list[str] = []
    for text in texts:
        count = len(text.split())
        if count > budget:
            return [*kept, " ".join(truncate_texts([text], budget))] if budget else kept
        kept.append(text)
        budget -= count
    return kept
