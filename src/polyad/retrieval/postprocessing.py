"""Changes the evidence of a retriever: reranks passages, prefers documents, and removes excluded documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from polyad.errors import RerankerError
from polyad.model import Evidence, FloatArray, ScoredPassage
from polyad.protocols.components import Reranker, report_failure
from polyad.protocols.snapshot import Snapshot

MIN_CANDIDATES = 50
"""Passages that a reranker reads at least. Each costs as much as a passage in a language model's prompt."""

NEAR_TIE = 0.9
"""Share of a relevance from which another is nearly equal."""

RERANKER_WEIGHT = 0.5
"""Weight of a reranker beside the retriever. With the index's own cosine in the reranker's place (a weak reranker),
weights up to 0.25 keep Recall@5 (81.3 of musique, 97.5 of hotpotqa), 0.5 costs 0.5 to 1.3 points, and the reranker
alone 19 to 20 points."""


def rerank(evidence: Evidence, reranker: Reranker, weight: float = RERANKER_WEIGHT) -> Evidence:
    """Sort the passages of the evidence by the retriever's score plus ``weight`` times the reranker's.

    A reranker reads the question and one passage, and the second passage of a chain does not resemble the question, so
    the reranker must not decide alone. Both scores are standardised over the passages.

    Args:
        evidence: Passages with scores of any scale.
        reranker: Scores the passages.
        weight: Weight of the reranker's scores beside those of the retriever, 0 or more.

    Raises:
        RerankerError: The reranker failed, or did not return a finite number for each passage.
    """
    if not evidence.passages:
        return evidence
    ranked = np.array([hit.score for hit in evidence.passages], dtype=np.float32)
    scores = _standardise(ranked) + np.float32(weight) * _standardise(_compute_scores(reranker, evidence))
    order = np.argsort(-scores, kind="stable").tolist()
    passages = (_replace_score(evidence.passages[position], float(scores[position])) for position in order)
    return replace(evidence, passages=tuple(passages))


def _standardise(scores: FloatArray) -> FloatArray:
    """Return scores with mean 0 and standard deviation 1; zeros if all are equal."""
    deviations: FloatArray = scores - scores.mean()
    return deviations / max(float(deviations.std()), 1e-6)


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
    reason = "; ".join(filter(None, ("with the score of the reranker", hit.reason)))
    return replace(hit, score=score, reason=reason)


def rank_preferred(evidence: Evidence, is_preferred: Sequence[bool], k: int) -> Evidence:
    """Return the ``k`` best passages, after halving the rank of each passage that ``is_preferred`` marks.

    So a preferred passage never falls, and equal ranks go to preferred passages. It overtakes the others that stand
    between half of its rank and its rank, and those with nearly equal relevance, if the retriever predicts relevance.

    Args:
        evidence: Passages, best first: ``2 * k``, because a passage up to rank ``2 * k`` may move up.
        is_preferred: Whether each passage is preferred.
        k: Number of passages.
    """
    relevances = [1.0 if hit.relevance is None else hit.relevance for hit in evidence.passages]
    is_known = all(hit.relevance is not None for hit in evidence.passages)
    ranks = [float(rank) for rank in range(1, len(relevances) + 1)]
    for place, preferred in enumerate(is_preferred):
        if preferred:
            near = (rank for rank, other in enumerate(relevances, 1) if NEAR_TIE * other <= relevances[place])
            ranks[place] = min(ranks[place] / 2, next(near) if is_known else math.inf)
    order = sorted(range(len(ranks)), key=lambda place: (ranks[place], not is_preferred[place], place))
    return replace(evidence, passages=tuple(evidence.passages[place] for place in order[:k]))


def retrieve_filtered(
    retrieve: Callable[[int], Evidence], retrieve_selected: Callable[[int], Evidence], selected: Snapshot, k: int
) -> Evidence:
    """Search the whole index, but return only the ``k`` best passages of the filtered snapshot ``selected``.

    If there are fewer, passages from a search of the filtered snapshot alone follow.

    Args:
        retrieve: Searches the whole index for a number of passages.
        retrieve_selected: Searches the filtered snapshot alone for a number of passages.
        selected: The snapshot of the documents that may be displayed.
        k: Number of passages.
    """
    depth = k
    while True:
        evidence = retrieve(depth)
        displayed = filter_evidence(evidence, selected)
        if len(displayed.passages) >= k:
            return replace(displayed, passages=displayed.passages[:k])
        if len(evidence.passages) < depth:
            break
        depth *= 2
    present = {hit.passage.id for hit in displayed.passages}
    others = (hit for hit in retrieve_selected(k).passages if hit.passage.id not in present)
    return replace(displayed, passages=(*displayed.passages, *(replace(hit, reason="") for hit in others))[:k])


def filter_evidence(evidence: Evidence, selected: Snapshot) -> Evidence:
    """Remove the passages, hyperedges and entities that the filtered snapshot ``selected`` does not contain.

    Reasons and the trace are dropped, since they may name other documents.
    """
    passages = selected.find_rows("passage", [hit.passage.id for hit in evidence.passages])
    sources = selected.find_rows("passage", {scored.hyperedge.passage_id for scored in evidence.hyperedges})
    rows, _ = selected.graph.hyperedges(np.array(list(sources.values()), dtype=np.int64))
    hyperedges = set(selected.ids("hyperedge", rows))
    members = (member.key for scored in evidence.hyperedges for member in scored.members)
    entities = selected.find_rows("entity", {*members, *(scored.entity.key for scored in evidence.entities)})
    return replace(
        evidence,
        passages=tuple(replace(hit, reason="") for hit in evidence.passages if hit.passage.id in passages),
        hyperedges=tuple(
            replace(scored, members=tuple(member for member in scored.members if member.key in entities))
            for scored in evidence.hyperedges
            if scored.hyperedge.id in hyperedges
        ),
        entities=tuple(scored for scored in evidence.entities if scored.entity.key in entities),
        trace=(),
    )
