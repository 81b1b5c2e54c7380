"""Measures of a ranking of documents against gold documents, and of probabilities; all in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence


def recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of the gold documents among the first ``k``.

    >>> recall(["a", "x", "b"], {"a", "b"}, k=2)
    0.5
    """
    return len(set(ranked[:k]) & set(gold)) / len(gold)


def all_recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 if every gold document is among the first ``k``, otherwise 0.

    >>> all_recall(["a", "x", "b"], {"a", "b"}, k=3)
    1.0
    """
    return float(set(gold) <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 / rank of the first gold document, or 0 if there is none.

    >>> reciprocal_rank(["x", "a", "b"], {"a", "b"})
    0.5
    """
    return next((1 / rank for rank, id in enumerate(ranked, 1) if id in gold), 0.0)


def hits(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 if any gold document is among the first ``k``, otherwise 0.

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
