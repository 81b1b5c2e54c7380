"""From the rows that a retriever ranks to evidence: the one place where rows become what is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from polyad.model import Entity, Evidence, ScoredEntity, ScoredHyperedge, ScoredPassage, TraceStep
from polyad.protocols.snapshot import Snapshot


def evidence(
    snapshot: Snapshot,
    question: str,
    retriever: str,
    passages: Sequence[tuple[int, float, str]],
    hyperedges: Sequence[tuple[int, float]] = (),
    entities: Sequence[tuple[int, float]] = (),
    trace: Sequence[TraceStep] = (),
) -> Evidence:
    """Turn scored rows into evidence.

    Args:
        snapshot: The index.
        question: What was asked.
        retriever: Who answers.
        passages: (row, score, reason), best first.
        hyperedges: (row, score), best first.
        entities: (row, score), best first.
        trace: Why the hyperedges are there.

    Raises:
        StaleSnapshotError: some of it has been removed since.
    """
    rows = [row for row, _, _ in passages]
    with snapshot.read_transaction():
        edges, shown = _hyperedges(snapshot, hyperedges, [row for row, _ in entities])
        found, origins = snapshot.passages(rows), snapshot.origins(rows)
    return Evidence(
        question,
        retriever,
        tuple(
            ScoredPassage(passage, score, reason, origin)
            for passage, origin, (_, score, reason) in zip(found, origins, passages, strict=True)
        ),
        edges,
        tuple(ScoredEntity(entity, score) for entity, (_, score) in zip(shown, entities, strict=True)),
        tuple(trace),
    )


def scored_hyperedges(snapshot: Snapshot, scored: Sequence[tuple[int, float]]) -> tuple[ScoredHyperedge, ...]:
    """Hyperedges with their members as stored, sorted by key; ``scored`` are (row, score)."""
    with snapshot.read_transaction():
        return _hyperedges(snapshot, scored, [])[0]


def _hyperedges(
    snapshot: Snapshot, scored: Sequence[tuple[int, float]], others: Sequence[int]
) -> tuple[tuple[ScoredHyperedge, ...], list[Entity]]:
    """Hyperedges with their members, and some other entities, which are read with these."""
    if not scored:
        return (), snapshot.entities(others)
    rows = np.array([row for row, _ in scored], dtype=np.int64)
    members, owners = snapshot.graph.stored_members(rows)
    order = np.lexsort((snapshot.rank_by_id("entity", members), owners))
    entities = snapshot.entities([*members[order].tolist(), *others])
    own: list[list[Entity]] = [[] for _ in scored]
    for entity, owner in zip(entities[: len(members)], owners[order].tolist(), strict=True):
        own[owner].append(entity)
    edges = zip(snapshot.hyperedges(rows.tolist()), own, scored, strict=True)
    found = tuple(ScoredHyperedge(edge, tuple(joined), score) for edge, joined, (_, score) in edges)
    return found, entities[len(members) :]


def entity_names(snapshot: Snapshot, rows: Iterable[int]) -> dict[int, str]:
    """Display names of entities, by row."""
    wanted = list(rows)
    return {row: entity.name for row, entity in zip(wanted, snapshot.entities(wanted), strict=True)}
