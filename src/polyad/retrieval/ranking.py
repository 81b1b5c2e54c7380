"""What retrievers share in ranking: filling up with what is similar, and places among equals."""

from __future__ import annotations

from collections.abc import Sequence

from polyad.model import FloatArray
from polyad.protocols.snapshot import Snapshot

RankedPassage = tuple[int, float, str]
"""Row, score and reason of a passage."""

HYPEREDGES_SHOWN = 3
"""Of each passage, in the evidence."""


def filled(snapshot: Snapshot, hits: Sequence[RankedPassage], question: FloatArray, k: int) -> list[RankedPassage]:
    """The first ``k`` of ``hits``, and if they are fewer, the passages nearest to the question, scored below them.

    Args:
        snapshot: The index.
        hits: Best first.
        question: Its vector, ``[dimension]``.
        k: How many are wanted.
    """
    filled = list(hits[:k])
    if len(filled) == k:
        return filled
    found = {row for row, _, _ in filled}
    floor = min([0.0, *(score for _, score, _ in filled)])
    ((rows, cosines),) = snapshot.nearest("passage", question[None], k + len(found))
    for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
        if len(filled) < k and row not in found:
            filled.append((row, floor + min(0.0, cosine - 1), "similar to the question, not reached"))
    return filled
