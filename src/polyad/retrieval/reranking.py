"""What a retriever finds, in the order of a reranker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from polyad.errors import RerankerError
from polyad.model import Evidence, FloatArray, ScoredPassage
from polyad.protocols.components import Reranker

RERANKED = 50
"""Passages that a reranker reads, where no more are wanted. It costs as much a passage as a language model's prompt."""


def reranked(retrieve: Callable[[int], Evidence], reranker: Reranker, k: int) -> Evidence:
    """The passages that ``retrieve`` finds, at least 50 or as many as there are, best first by the reranker.

    Raises:
        RerankerError: it failed, or did not give a finite number for each passage.
    """
    evidence = retrieve(max(k, RERANKED))
    if not evidence.passages:
        return evidence
    scores = _scores(reranker, evidence)
    order = np.argsort(-scores, kind="stable").tolist()
    return replace(evidence, passages=tuple(_placed(evidence.passages[place], float(scores[place])) for place in order))


def _scores(reranker: Reranker, evidence: Evidence) -> FloatArray:
    texts = ["\n".join(filter(None, (hit.passage.title, hit.passage.text))) for hit in evidence.passages]
    scores = np.asarray(reranker.scores(evidence.question, texts), dtype=np.float32)
    if scores.shape != (len(texts),) or not np.isfinite(scores).all():
        raise RerankerError(
            f"the reranker {reranker.name!r} gave no finite number for each of {len(texts)} passages; try another model"
        )
    return scores


def _placed(hit: ScoredPassage, score: float) -> ScoredPassage:
    reason = "; ".join(filter(None, ("placed here by the reranker", hit.reason)))
    return replace(hit, score=score, reason=reason)
