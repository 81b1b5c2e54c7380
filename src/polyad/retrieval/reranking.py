"""Reorders the passages of a retriever: by the scores of a reranker, and by preferred documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyad.errors import RerankerError
from polyad.model import Evidence, FloatArray, ScoredPassage
from polyad.protocols.components import Reranker, report_failure

MIN_CANDIDATES = 50
"""Passages that a reranker reads at least. Each costs as much as a passage in a language model's prompt."""


def rerank(evidence: Evidence, reranker: Reranker) -> Evidence:
    """Return the evidence with its passages scored and sorted by the reranker.

    Raises:
        RerankerError: The reranker failed, or did not return a finite number for each passage.
    """
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


def rank_preferred(evidence: Evidence, is_preferred: Sequence[bool], k: int) -> Evidence:
    """Return the ``k`` best passages, where a passage that ``is_preferred`` marks counts with half its rank.

    So a preferred passage never falls, overtakes at most as many others as stand between half of its rank and its rank,
    and equal ranks go to preferred passages. The ranks do not depend on the scale of the retriever's scores.

    Args:
        evidence: Passages, best first: ``2 * k``, because a passage up to rank ``2 * k`` may move up.
        is_preferred: Whether each passage is preferred.
        k: Number of passages.
    """
    ranks = [rank / 2 if preferred else rank for rank, preferred in enumerate(is_preferred, 1)]
    order = sorted(range(len(ranks)), key=lambda place: (ranks[place], not is_preferred[place], place))
    return replace(evidence, passages=tuple(evidence.passages[place] for place in order[:k]))
