"""Measures of a ranking against gold documents. Each is between 0 and 1, averaged over the questions."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np


def recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Share of the gold documents among the first ``k``.

    >>> recall(["a", "x", "b"], {"a", "b"}, k=2)
    0.5
    """
    return len(set(ranked[:k]) & set(gold)) / len(gold)


def all_recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """1 when every gold document is among the first ``k``, else 0.

    >>> all_recall(["a", "x", "b"], {"a", "b"}, k=3)
    1.0
    """
    return float(set(gold) <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """1 / rank of the first gold document, 0 when there is none.

    >>> reciprocal_rank(["x", "a", "b"], {"a", "b"})
    0.5
    """
    return next((1 / rank for rank, id in enumerate(ranked, 1) if id in gold), 0.0)


def expected_calibration_error(told: Sequence[float], happened: Sequence[bool], bins: int = 10) -> float:
    """Expected calibration error: how far probabilities are from how often it was so, over bins of equal size.

    >>> expected_calibration_error([0.2, 0.2, 0.9, 0.9], [False, False, True, True], bins=2)
    0.15

    Args:
        told: Probabilities, in [0, 1].
        happened: Whether it was so.
        bins: Into which the sorted probabilities are divided.
    """
    order = np.argsort(np.asarray(told), kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    pairs = [(np.asarray(told)[part], np.asarray(happened, dtype=float)[part]) for part in parts]
    return round(float(sum(len(own) * abs(own.mean() - was.mean()) for own, was in pairs) / len(order)), 6)


def hits(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """1 when some gold answer is among the first ``k``, else 0.

    >>> hits(["x", "a", "b"], {"a", "b"}, k=2)
    1.0
    """
    return float(not set(gold).isdisjoint(ranked[:k]))


def ndcg(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Normalised discounted cumulative gain of the first ``k``: 1 when they begin with gold documents alone.

    A gold document at rank r gains 1 / log2(r + 1), as trec_eval counts it (Jarvelin and Kekalainen, 2002); what may be
    gained at most is gained by all gold documents at the top. A document is gold or not: there are no grades.

    >>> round(ndcg(["x", "a"], {"a"}, k=2), 4)
    0.6309
    """
    gained = sum(1 / math.log2(rank + 1) for rank, id in enumerate(ranked[:k], 1) if id in gold)
    return gained / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(gold)) + 1))
