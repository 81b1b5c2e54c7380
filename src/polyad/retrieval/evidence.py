"""From the rows that a retriever ranks to evidence: the one place where rows become what is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from polyad.model import Evidence, ScoredEntity, ScoredHyperedge, ScoredPassage, TraceStep
from polyad.view import View


def evidence(
    view: View,
    question: str,
    retriever: str,
    passages: Sequence[tuple[int, float, str]],
    hyperedges: Sequence[tuple[int, float]] = (),
    entities: Sequence[tuple[int, float]] = (),
    trace: Sequence[TraceStep] = (),
) -> Evidence:
    """Turn scored rows into evidence.

    Args:
        view: The index.
        question: What was asked.
        retriever: Who answers.
        passages: (row, score, reason), best first.
        hyperedges: (row, score), best first.
        entities: (row, score), best first.
        trace: Why the hyperedges are there.

    Raises:
        StaleViewError: some of it has been removed since.
    """
    rows = [row for row, _, _ in passages]
    shown = view.entities([row for row, _ in entities])
    return Evidence(
        question,
        retriever,
        tuple(
            ScoredPassage(passage, score, reason, origin)
            for passage, origin, (_, score, reason) in zip(
                view.passages(rows), view.origins(rows), passages, strict=True
            )
        ),
        scored_hyperedges(view, hyperedges),
        tuple(ScoredEntity(entity, score) for entity, (_, score) in zip(shown, entities, strict=True)),
        tuple(trace),
    )


def scored_hyperedges(view: View, scored: Sequence[tuple[int, float]]) -> tuple[ScoredHyperedge, ...]:
    """Hyperedges with their members as stored, sorted by key; ``scored`` are (row, score)."""
    rows = np.array([row for row, _ in scored], dtype=np.int64)
    members, owners = view.graph.stored_members(rows)
    order = np.lexsort((view.order("entity", members), owners))
    entities = view.entities(members[order].tolist())
    own: list[list[int]] = [[] for _ in scored]
    for place, owner in enumerate(owners[order].tolist()):
        own[owner].append(place)
    return tuple(
        ScoredHyperedge(edge, tuple(entities[place] for place in places), score)
        for edge, places, (_, score) in zip(view.hyperedges(rows.tolist()), own, scored, strict=True)
    )


def entity_names(view: View, rows: Iterable[int]) -> dict[int, str]:
    """Display names of entities, by row."""
    wanted = list(rows)
    return {row: entity.name for row, entity in zip(wanted, view.entities(wanted), strict=True)}
