"""Removes excluded documents from evidence. A search may use them to connect other documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from polyad.model import Evidence
from polyad.protocols.snapshot import Snapshot


def retrieve_displayed(
    retrieve: Callable[[int], Evidence], retrieve_selected: Callable[[int], Evidence], selected: Snapshot, k: int
) -> Evidence:
    """Search the whole index; return evidence with only the ``k`` best passages in ``selected`` (a filtered snapshot).

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
        displayed = select_displayed(evidence, selected)
        if len(displayed.passages) >= k:
            return replace(displayed, passages=displayed.passages[:k])
        if len(evidence.passages) < depth:
            break
        depth *= 2
    present = {hit.passage.id for hit in displayed.passages}
    others = (hit for hit in retrieve_selected(k).passages if hit.passage.id not in present)
    return replace(displayed, passages=(*displayed.passages, *(replace(hit, reason="") for hit in others))[:k])


def select_displayed(evidence: Evidence, selected: Snapshot) -> Evidence:
    """Return only the evidence that is in the snapshot ``selected``, which a filter restricts to some documents.

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
