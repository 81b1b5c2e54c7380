"""Measures by the names that tables and command lines give them: ``recall@5``, ``ndcg@10``, ``recall@500w``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from polyad.errors import ConfigurationError
from polyad.evaluation.measures import all_recall, hits, ndcg, recall, reciprocal_rank
from polyad.evaluation.records import Asked

_RANKING: dict[str, Callable[[Sequence[str], Collection[str], int], float]] = {
    "recall": recall,
    "all_recall": all_recall,
    "hits": hits,
    "ndcg": ndcg,
    "mrr": lambda ranked, gold, k: reciprocal_rank(ranked[:k], gold),
}

_NAME = re.compile(r"([a-z_]+)@([1-9][0-9]*)(w?)")


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of a record, in [0, 1].

    Attributes:
        name: As it is written: the measure, ``@``, the depth in documents, or in words of returned text with a ``w``.
        kind: One of those above.
        depth: At which the ranking is cut.
        in_words: Whether that is a budget of words: see :meth:`polyad.evaluation.records.Asked.within_words`.
    """

    name: str
    kind: str
    depth: int
    in_words: bool

    def __call__(self, record: Asked) -> float:
        """What the retriever reached on this question."""
        ranked = record.within_words(self.depth) if self.in_words else record.documents
        k = max(1, len(ranked)) if self.in_words else self.depth
        return _RANKING[self.kind](ranked, record.query.gold, k)


def measure_called(name: str) -> Measure:
    """The measure of that name.

    >>> measure_called("recall@500w").in_words
    True

    Raises:
        ConfigurationError: there is none.
    """
    parts = _NAME.fullmatch(name)
    if not parts or parts[1] not in _RANKING:
        raise ConfigurationError(
            f"no measure {name!r}; expected one of {', '.join(_RANKING)} at a depth: recall@5 of documents, "
            "recall@500w of words"
        )
    return Measure(name, parts[1], int(parts[2]), bool(parts[3]))
