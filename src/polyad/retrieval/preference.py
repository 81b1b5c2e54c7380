"""Preference: passages of preferred documents are ranked higher, and no passage is hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from polyad.model import Evidence


def rank_preferred(evidence: Evidence, are_preferred: Sequence[bool]) -> Evidence:
    """Return the evidence with preferred passages ranked as if they stood at half of their rank.

    So a preferred passage never falls, overtakes at most as many others as stand between half of its rank and its rank,
    and equal ranks go to preferred passages. The ranks do not depend on the scale of the retriever's scores.

    Args:
        evidence: Passages, best first.
        are_preferred: Whether each passage is preferred.
    """
    ranks = [rank / 2 if preferred else rank for rank, preferred in enumerate(are_preferred, 1)]
    order = sorted(range(len(ranks)), key=lambda place: (ranks[place], not are_preferred[place], place))
    return replace(evidence, passages=tuple(evidence.passages[place] for place in order))


def retrieve_preferred(
    retrieve: Callable[[int], Evidence], find_preferred: Callable[[Sequence[str]], Sequence[bool]], k: int
) -> Evidence:
    """Retrieve twice as many passages, of which preferred ones may move up, and return the first k.

    Args:
        retrieve: Returns evidence with a number of passages.
        find_preferred: Returns whether each passage, by id, is preferred.
        k: Number of passages.
    """
    evidence = retrieve(2 * k)
    ranked = rank_preferred(evidence, find_preferred([hit.passage.id for hit in evidence.passages]))
    return replace(ranked, passages=ranked.passages[:k])
