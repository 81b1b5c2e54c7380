"""Measures of a ranking of documents against gold documents, in [0, 1], by name: ``recall@5``, ``recall@500w``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from polyad.errors import ConfigurationError
from polyad_bench.runs.records import QuestionRecord


def recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of the gold documents that are among the first ``k`` documents.

    >>> recall(["a", "x", "b"], {"a", "b"}, k=2)
    0.5
    """
    return len(set(ranked[:k]) & set(gold)) / len(gold)


def all_recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 if all gold documents are among the first ``k`` documents, otherwise 0.

    >>> all_recall(["a", "x", "b"], {"a", "b"}, k=3)
    1.0
    """
    return float(set(gold) <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 / rank of the first gold document in the ranking, or 0 if the ranking has no gold document.

    >>> reciprocal_rank(["x", "a", "b"], {"a", "b"})
    0.5
    """
    return next((1 / rank for rank, id in enumerate(ranked, 1) if id in gold), 0.0)


def hits(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 if any gold document is among the first ``k`` documents, otherwise 0.

    >>> hits(["x", "a", "b"], {"a", "b"}, k=2)
    1.0
    """
    return float(not set(gold).isdisjoint(ranked[:k]))


def ndcg(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first ``k`` documents.

    A gold document at rank r gains 1 / log2(r + 1), as in trec_eval (Jarvelin and Kekalainen, 2002). The sum is divided
    by the gain of a ranking that starts with all gold documents. Relevance is binary.

    >>> round(ndcg(["x", "a"], {"a"}, k=2), 4)
    0.6309
    """
    gain = sum(1 / math.log2(rank + 1) for rank, id in enumerate(ranked[:k], 1) if id in gold)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(gold)) + 1))


_RANKING_MEASURES: dict[str, Callable[[Sequence[str], Collection[str], int], float]] = {
    "recall": recall,
    "all_recall": all_recall,
    "hits": hits,
    "ndcg": ndcg,
    "mrr": lambda ranked, gold, k: reciprocal_rank(ranked[:k], gold),
}

_EVIDENCE_RECALL = "evidence_recall"
"""Recall of the evidence statements of the data set, within a budget of words."""

_NAME = re.compile(r"([a-z_]+)@([1-9][0-9]*)(w?)")


@dataclass(frozen=True, slots=True)
class Measure:
    """A function that computes a retrieval measure, such as ``recall@5``, for one question.

    Attributes:
        name: Full name: kind, ``@``, depth, and ``w`` if the depth is a budget of words.
        kind: Name of a ranking measure, or ``evidence_recall``.
        depth: Depth of the ranking in documents, or in words of returned text.
        in_words: Whether ``depth`` counts words: see :meth:`QuestionRecord.get_documents_within`.
    """

    name: str
    kind: str
    depth: int
    in_words: bool

    def __call__(self, record: QuestionRecord) -> float:
        """Return the value of the measure for one question.

        Raises:
            ConfigurationError: the data set lacks the gold documents or statements that the measure needs.
        """
        missing = f"there is no {self.name} of question {record.query.id!r}: "
        if self.kind == _EVIDENCE_RECALL:
            if record.coverage is None or self.depth not in record.coverage.at_words:
                raise ConfigurationError(
                    f"{missing}expected a data set that states the evidence, and one of the budgets that polyad eval "
                    "measures at"
                )
            return record.coverage.get_recall(self.depth)
        if not record.query.gold:
            raise ConfigurationError(f"{missing}nobody has judged which documents hold its evidence")
        ranked = record.get_documents_within(self.depth) if self.in_words else record.documents
        k = max(1, len(ranked)) if self.in_words else self.depth
        return _RANKING_MEASURES[self.kind](ranked, record.query.gold, k)


def parse_measure(name: str) -> Measure:
    """Return the retrieval measure with this name, such as ``recall@5``.

    >>> parse_measure("recall@500w").in_words
    True

    Raises:
        ConfigurationError: there is no such measure.
    """
    parts = _NAME.fullmatch(name)
    if (
        not parts
        or parts[1] not in (*_RANKING_MEASURES, _EVIDENCE_RECALL)
        or (parts[1] == _EVIDENCE_RECALL and not parts[3])
    ):
        raise ConfigurationError(
            f"no measure {name!r}; expected one of {', '.join(_RANKING_MEASURES)} at a depth: recall@5 of documents, "
            f"recall@500w of words; or {_EVIDENCE_RECALL}@500w"
        )
    return Measure(name, parts[1], int(parts[2]), bool(parts[3]))
