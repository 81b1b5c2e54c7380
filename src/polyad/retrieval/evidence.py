"""Builds evidence from the rows that a retriever ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from polyad.model import (
    Entity,
    Evidence,
    FloatArray,
    Hyperedge,
    Origin,
    Passage,
    ScoredEntity,
    ScoredHyperedge,
    ScoredPassage,
    TraceStep,
)
from polyad.protocols.snapshot import Snapshot

RankedPassage = tuple[int, float, str]
"""Row number, score and reason of a passage."""

HYPEREDGES_PER_PASSAGE = 3
"""Hyperedges of each passage in the evidence."""


def build_evidence(
    snapshot: Snapshot,
    question: str,
    retriever: str,
    passages: Sequence[RankedPassage],
    hyperedges: Sequence[tuple[int, float]] = (),
    entities: Sequence[tuple[int, float]] = (),
    trace: Sequence[TraceStep] = (),
) -> Evidence:
    """Read the texts of scored rows and return them as evidence.

    Args:
        snapshot: The index.
        question: The question.
        retriever: Name of the retriever.
        passages: Row number, score and reason of each passage, best first.
        hyperedges: Row number and score of each hyperedge, best first.
        entities: Row number and score of each entity, best first.
        trace: Explains the hyperedges.

    Raises:
        StaleSnapshotError: A text was deleted from the store since.
    """
    rows = [row for row, _, _ in passages]
    with snapshot.read_transaction():
        scored_edges, read_entities = _read_hyperedges(snapshot, hyperedges, [row for row, _ in entities])
        read_passages, origins = snapshot.get(Passage, rows), snapshot.get(Origin, rows)
    return Evidence(
        question,
        retriever,
        tuple(
            ScoredPassage(passage, score, reason, origin)
            for passage, origin, (_, score, reason) in zip(read_passages, origins, passages, strict=True)
        ),
        scored_edges,
        tuple(ScoredEntity(entity, score) for entity, (_, score) in zip(read_entities, entities, strict=True)),
        tuple(trace),
    )


def read_scored_hyperedges(snapshot: Snapshot, rows: Sequence[tuple[int, float]]) -> tuple[ScoredHyperedge, ...]:
    """Read hyperedges with their members, sorted by key, from pairs of row number and score."""
    with snapshot.read_transaction():
        return _read_hyperedges(snapshot, rows, [])[0]


def _read_hyperedges(
    snapshot: Snapshot, scored_rows: Sequence[tuple[int, float]], other_entities: Sequence[int]
) -> tuple[tuple[ScoredHyperedge, ...], list[Entity]]:
    """Read hyperedges with their members, together with other entities."""
    if not scored_rows:
        return (), snapshot.get(Entity, other_entities)
    rows = np.array([row for row, _ in scored_rows], dtype=np.int64)
    members, owners = snapshot.graph.stored_members(rows)
    order = np.lexsort((snapshot.rank_by_id("entity", members), owners))
    entities = snapshot.get(Entity, [*members[order].tolist(), *other_entities])
    members_of_edges: list[list[Entity]] = [[] for _ in scored_rows]
    for entity, owner in zip(entities[: len(members)], owners[order].tolist(), strict=True):
        members_of_edges[owner].append(entity)
    edges = zip(snapshot.get(Hyperedge, rows.tolist()), members_of_edges, scored_rows, strict=True)
    scored_edges = tuple(ScoredHyperedge(edge, tuple(joined), score) for edge, joined, (_, score) in edges)
    return scored_edges, entities[len(members) :]


def read_entity_names(snapshot: Snapshot, rows: Iterable[int]) -> dict[int, str]:
    """Return the display names of entities by row number."""
    row_list = list(rows)
    return {row: entity.name for row, entity in zip(row_list, snapshot.get(Entity, row_list), strict=True)}


def fill_with_similar(
    snapshot: Snapshot, passages: Sequence[RankedPassage], question: FloatArray, k: int
) -> list[RankedPassage]:
    """Return the first ``k`` passages; if there are fewer, add the passages nearest to the question, scored lower.

    Args:
        snapshot: The index.
        passages: Ranked passages, best first.
        question: Vector of the question, ``[dimension]``.
        k: Number of passages to return.
    """
    filled = list(passages[:k])
    if len(filled) == k:
        return filled
    ranked_rows = {row for row, _, _ in filled}
    floor = min([0.0, *(score for _, score, _ in filled)])
    ((rows, cosines),) = snapshot.nearest("passage", question[None], k + len(ranked_rows))
    for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
        if len(filled) < k and row not in ranked_rows:
            filled.append((row, floor + min(0.0, cosine - 1), "similar to the question, not reached"))
    return filled
