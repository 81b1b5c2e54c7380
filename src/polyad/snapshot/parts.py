"""Copies of a snapshot that are restricted to the rows that a filter selects, or that are valid at a date."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from polyad.model import BoolArray
from polyad.protocols.store import Changes
from polyad.snapshot.advancing import advance
from polyad.snapshot.incidences import count_links
from polyad.snapshot.mapped_snapshot import MappedSnapshot, sum_vectors
from polyad.text.filters import Filter
from polyad.text.validity import Interval

_MAX_EXACT = 10_000
"""Passages of a part of a snapshot up to which its own mean vector, links and name variants are computed."""


def build_passage_filter(snapshot: MappedSnapshot, filter: Filter) -> Callable[[Sequence[str]], list[bool]]:
    """Return a function that maps passage ids to booleans: whether each passage satisfies the metadata ``filter``.

    Raises:
        ConfigurationError: The filter compares a field that no document has.
    """
    passages, _ = snapshot.fields.select(filter, snapshot)

    def find(passage_ids: Sequence[str]) -> list[bool]:
        rows = snapshot.find_rows("passage", passage_ids)
        return [id in rows and bool(passages[rows[id]]) for id in passage_ids]

    return find


def select_time(snapshot: MappedSnapshot, time: float) -> tuple[MappedSnapshot, Interval]:
    """Return (snapshot with only the rows valid at ``time``, longest period in which exactly these rows are valid).

    In the copy, passages that are not valid count as deleted, so that all statistics are those of an index without
    them. Hyperedges that are not valid, in passages that are, are only omitted.

    Args:
        snapshot: The whole index.
        time: In seconds since 1970.
    """
    first = snapshot.passages.intervals.find_unchanged_period(time)
    second = snapshot.hyperedges.intervals.find_unchanged_period(time)
    constant = Interval(max(first.start, second.start), min(first.end, second.end))
    passages = snapshot.passages.intervals.contain(time, snapshot.row_count("passage"))
    hyperedges = snapshot.hyperedges.intervals.contain(time, snapshot.row_count("hyperedge"))
    if passages.all() and hyperedges.all():
        return snapshot, constant
    deleted = snapshot.passages.pks.take((~passages).nonzero()[0])
    valid = advance(snapshot, Changes(snapshot.version, tuple(zip(deleted, deleted, strict=True)), ()), [])
    valid = replace(valid, entities=replace(valid.entities, outdated=snapshot.entities.outdated))
    return restrict(valid, passages, hyperedges), constant


def restrict(snapshot: MappedSnapshot, passages: BoolArray, hyperedges: BoolArray | None = None) -> MappedSnapshot:
    """Return the snapshot with only the rows that the two masks select; all other rows count as deleted.

    Counts, lengths and frequencies of terms are those of these passages. So are linkability, the mean vector and
    name variants if the passages are few; otherwise they remain those of the whole index, as do the vectors and
    scores of entities, because each would be computed from all its passages.

    Args:
        snapshot: The snapshot.
        passages: Mask of the passages; bool ``[passages]``.
        hyperedges: Mask of the hyperedges; None for all of these passages.
    """
    graph = snapshot.graph.restrict(passages, hyperedges)
    rows = graph.live_passages.to_rows()
    if len(rows) <= _MAX_EXACT:
        graph = graph.resolve_short_names_in_part(snapshot.entities.keys)
        vector_sum = sum_vectors(snapshot.passages.vectors.take(rows))
        link_count = count_links(graph, snapshot.passages.document, rows)
    else:
        share = len(rows) / snapshot.passage_count
        vector_sum = np.round(snapshot.passages.vector_sum * share).astype(np.int64)
        link_count = round(snapshot.link_count * share)
    entities = snapshot.entities
    if entities.vectors is not None:
        members = graph.edge_members.get_neighbours(graph.live_hyperedges.to_rows())[0]
        is_member = np.zeros(len(entities.vectors), dtype=bool)
        is_member[members[members < len(is_member)]] = True
        live = entities.vectors.live.restrict(is_member)
        entities = replace(entities, vectors=replace(entities.vectors, live=live))
    return replace(
        snapshot,
        graph=graph,
        passages=replace(
            snapshot.passages,
            vectors=replace(snapshot.passages.vectors, live=graph.live_passages),
            vector_sum=vector_sum,
            terms=snapshot.passages.terms.restrict(graph.live_passages),
        ),
        hyperedges=replace(
            snapshot.hyperedges, vectors=replace(snapshot.hyperedges.vectors, live=graph.live_hyperedges)
        ),
        entities=entities,
        link_count=link_count,
        records=snapshot.records.without_entities(),
    )


def connect(part: MappedSnapshot, whole: MappedSnapshot) -> MappedSnapshot:
    """Return the snapshot ``whole``, in which vector and term searches return only rows of the filtered ``part``.

    Walks pass through the hypergraph of the whole and reach rows outside the part, which the caller removes. Entities
    are aggregated over the hyperedges of the part; an entity without any has only its key.

    Args:
        part: The filtered snapshot.
        whole: The snapshot that this part was selected from.
    """
    return replace(
        whole,
        passages=replace(whole.passages, vectors=part.passages.vectors, terms=part.passages.terms),
        hyperedges=part.hyperedges,
        entities=part.entities,
        records=whole.records.without_entities(),
        displayed=part.graph,
    )
