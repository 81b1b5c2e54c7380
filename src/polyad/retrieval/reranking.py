"""Reorders the passages of a retriever by the scores of a reranker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from polyad.errors import RerankerError, report_failure
from polyad.model import Evidence, FloatArray, ScoredPassage
from polyad.protocols.components import Reranker

MIN_CANDIDATES = 50
"""Passages that a reranker reads at least. Each costs as much as a passage in a language model's prompt."""


def rerank(retrieve: Callable[[int], Evidence], reranker: Reranker, k: int) -> Evidence:
    """Retrieve at least ``k`` and :data:`MIN_CANDIDATES` passages and sort them by the reranker's scores.

    Raises:
        RerankerError: The reranker failed, or did not return a finite number for each passage.
    """
    evidence = retrieve(max(k, MIN_CANDIDATES))
    if not evidence.passages:
        return evidence
    scores = _compute_scores(reranker, evidence)
    order = np.argsort(-scores, kind="stable").tolist()
    passages = (_replace_score(evidence.passages[position], float(scores[position])) for position in order)
    return replace(evidence, passages=tuple(passages))


def _compute_scores(reranker: Reranker, evidence: Evidence) -> FloatArray:
    texts = ["\n".join(filter(None, (hit.passage.title, hit.passage.text))) for hit in evidence.passages]
    with report_failure(RerankerError, f"the reranker {reranker.name!r}"):
        scores = np.asarray(reranker.scores(evidence.question, texts), dtype=np.float32)
    if scores.shape != (len(texts),) or not np.isfinite(scores).all():
        raise RerankerError(
            f"the reranker {reranker.name!r} gave no finite number for each of {len(texts)} passages; try another model"
        )
    return scores


def _replace_score(hit: ScoredPassage, score: float) -> ScoredPassage:
    reason = "; ".join(filter(None, ("placed here by the reranker", hit.reason)))
    return replace(hit, score=score, reason=reason)
