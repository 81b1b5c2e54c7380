"""Builds evidence from the rows that a retriever ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from polyad.hypergraph.sparse import rank_by_id
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
from polyad.protocols.snapshot import NO_ROWS, Kind, Snapshot

RankedPassage = tuple[int, float, str]
"""Row number, score and reason of a passage."""


class RankedHyperedge(NamedTuple):
    """The row number and score of a hyperedge, with the search step that reached it: matched text and entities.

    Attributes:
        row: Row number of the hyperedge.
        score: Score of the hyperedge; higher is better.
        matched: The clue or signal that the hyperedge matched.
        reached: ``forward``, ``backward`` or ``both`` for an expansion; otherwise the reason.
        via: Row numbers of the entities that led to the hyperedge.
        tails: Row numbers of the entities to which the search continued.
        parent: Row number of the hyperedge that led to the first entity of ``via``; -1 at the beginning of a path.
    """

    row: int
    score: float
    matched: str
    reached: str
    via: tuple[int, ...] = ()
    tails: tuple[int, ...] = ()
    parent: int = -1


HYPEREDGES_PER_PASSAGE = 3
"""Hyperedges of each passage in the evidence."""


def build_evidence(
    snapshot: Snapshot,
    question: str,
    retriever: str,
    passages: Sequence[RankedPassage],
    hyperedges: Sequence[RankedHyperedge] = (),
    entities: Sequence[tuple[int, float]] = (),
    prefetched_rows: Mapping[type[Passage | Hyperedge], Sequence[int]] = NO_ROWS,
) -> Evidence:
    """Return evidence from ranked row numbers: read the texts of passages, hyperedges and entities from the store.

    Args:
        snapshot: The index.
        question: The question.
        retriever: Name of the retriever.
        passages: Row number, score and reason of each passage, best first.
        hyperedges: The hyperedges, best first, each with the trace step that explains it.
        entities: Row number and score of each entity, best first.
        prefetched_rows: Row numbers of other passages and hyperedges that are read and cached in the same round trip.

    Raises:
        StaleSnapshotError: A text was deleted from the store since.
    """
    rows = [row for row, _, _ in passages]
    on_paths = sorted({row for edge in hyperedges for row in (*edge.via, *edge.tails)})
    edges = [edge.row for edge in hyperedges]
    members, _ = snapshot.graph.members(np.array(edges, dtype=np.int64), variants=False)
    records = {
        Hyperedge: [*edges, *prefetched_rows.get(Hyperedge, ())],
        Passage: [*rows, *prefetched_rows.get(Passage, ())],
        Origin: rows,
        Entity: [*members.tolist(), *(row for row, _ in entities), *on_paths],
    }
    with snapshot.read_transaction(records):
        scored_edges, read_entities = read_hyperedges(
            snapshot, [(edge.row, edge.score) for edge in hyperedges], [*(row for row, _ in entities), *on_paths]
        )
        read_passages, origins = snapshot.get(Passage, rows), snapshot.get(Origin, rows)
    return Evidence(
        question,
        retriever,
        tuple(
            ScoredPassage(passage, score, reason, origin)
            for passage, origin, (_, score, reason) in zip(read_passages, origins, passages, strict=True)
        ),
        scored_edges,
        tuple(ScoredEntity(entity, score) for entity, (_, score) in zip(read_entities, entities, strict=False)),
        _build_trace(
            snapshot,
            hyperedges,
            scored_edges,
            {row: entity.name for row, entity in zip(on_paths, read_entities[len(entities) :], strict=True)},
        ),
    )


def _build_trace(
    snapshot: Snapshot, edges: Sequence[RankedHyperedge], texts: Sequence[ScoredHyperedge], names: Mapping[int, str]
) -> tuple[TraceStep, ...]:
    """Return the search step that reached each of ``edges``, as text; ``names`` has the names of entities by row.

    The arguments ``edges`` and ``texts`` are the same hyperedges: as row numbers, and as read from the store.
    """
    parents = sorted({edge.parent for edge in edges if edge.parent >= 0})
    parent_ids = dict(zip(parents, snapshot.ids("hyperedge", parents), strict=True))
    return tuple(
        TraceStep(
            scored.hyperedge.id,
            scored.hyperedge.passage_id,
            edge.matched,
            edge.reached,
            tuple(names[row] for row in edge.via),
            edge.score,
            tuple(dict.fromkeys(names[row] for row in edge.tails)),
            parent_ids.get(edge.parent, ""),
        )
        for edge, scored in zip(edges, texts, strict=True)
    )


def read_hyperedges(
    snapshot: Snapshot, scored_rows: Sequence[tuple[int, float]], entity_rows: Sequence[int] = ()
) -> tuple[tuple[ScoredHyperedge, ...], list[Entity]]:
    """Read hyperedges with their entities, and further entities, from the store; return (hyperedges, entities).

    Args:
        snapshot: The index, in a read transaction.
        scored_rows: Row number and score of each hyperedge. Its entities are sorted by key.
        entity_rows: Row numbers of the further entities.
    """
    if not scored_rows:
        return (), snapshot.get(Entity, entity_rows)
    rows = np.array([row for row, _ in scored_rows], dtype=np.int64)
    members, owners = snapshot.graph.members(rows, variants=False)
    order = np.lexsort((rank_by_id(snapshot, "entity", members), owners))
    entities = snapshot.get(Entity, [*members[order].tolist(), *entity_rows])
    members_of_edges: list[list[Entity]] = [[] for _ in scored_rows]
    for entity, owner in zip(entities[: len(members)], owners[order].tolist(), strict=True):
        members_of_edges[owner].append(entity)
    edges = zip(snapshot.get(Hyperedge, rows.tolist()), members_of_edges, scored_rows, strict=True)
    scored_edges = tuple(ScoredHyperedge(edge, tuple(joined), score) for edge, joined, (_, score) in edges)
    return scored_edges, entities[len(members) :]


def sort_by_score(snapshot: Snapshot, kind: Kind, scores: Mapping[int, float]) -> list[tuple[int, float]]:
    """Return the items of ``scores``, a dictionary from row to score, as pairs; best first, ties by id."""
    ids = snapshot.ids(kind, list(scores))
    ranked = sorted(zip(scores.items(), ids, strict=True), key=lambda pair: (-pair[0][1], pair[1]))
    return [pair for pair, _ in ranked]


def read_entity_names(snapshot: Snapshot, rows: Iterable[int]) -> dict[int, str]:
    """Return a dictionary from each entity row in ``rows`` to the entity's display name."""
    row_list = list(rows)
    return {row: entity.name for row, entity in zip(row_list, snapshot.get(Entity, row_list), strict=True)}


def fill_with_similar(
    snapshot: Snapshot, passages: Sequence[RankedPassage], question_vector: FloatArray, k: int
) -> list[RankedPassage]:
    """Return ``k`` ranked passages: ``passages`` first, then with lower scores the passages nearest to the question.

    Args:
        snapshot: The index.
        passages: Ranked passages, best first.
        question_vector: Unit vector, ``[dimension]``.
        k: Number of passages to return.
    """
    filled = list(passages[:k])
    if len(filled) == k:
        return filled
    ranked_rows = {row for row, _, _ in filled}
    floor = min([0.0, *(score for _, score, _ in filled)])
    ((rows, cosines),) = snapshot.nearest("passage", question_vector[None], k + len(ranked_rows))
    for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
        if len(filled) < k and row not in ranked_rows:
            filled.append((row, floor + min(0.0, cosine - 1), "similar to the question, not reached"))
    return filled
