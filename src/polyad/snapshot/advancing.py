"""Updates a snapshot to a later version of the store: deletes rows, appends those of added documents, counts links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np

from polyad.errors import StoreError
from polyad.hypergraph.sparse import expand_ranges, sort_unique, union
from polyad.model import IntArray
from polyad.protocols.store import Changes, StoredRows, build_intervals
from polyad.snapshot.columns import Column, hash_string
from polyad.snapshot.incidences import NewIncidences, count_links, find_affected_passages
from polyad.snapshot.mapped_snapshot import MappedSnapshot, sum_vectors
from polyad.snapshot.records import RecordCache
from polyad.snapshot.segments import Segment
from polyad.snapshot.tables import HyperedgeColumns, PassageColumns
from polyad.snapshot.term_index import Postings, build_postings

_SEPARATE = ("texts", "document_dates", "document_families", "entity_keys")
"""Columns of batches that are not concatenated."""

_LINK_BLOCK = 1 << 14
"""Passages whose links are counted at a time."""


def advance(snapshot: MappedSnapshot, changes: Changes, batches: Iterable[StoredRows]) -> MappedSnapshot:
    """Return the snapshot at a later version of the store: delete documents as ``changes`` says, append ``batches``.

    Args:
        snapshot: The snapshot before.
        changes: The changes of the store since.
        batches: The rows of the documents that were added.
    """
    later, changed = apply_changes(snapshot, changes, batches)
    graph, changed = later.graph.update_short_names(later.entities.keys, snapshot.graph, changed)
    entities = later.entities
    if entities.vectors is not None:
        entities = replace(entities, outdated=union([entities.outdated, changed]))
    later = replace(
        later,
        graph=graph,
        entities=entities,
        records=snapshot.records.without_changed_entities(changed),
    )
    return replace(later, link_count=_update_link_count(snapshot, later, changed))


def apply_changes(
    snapshot: MappedSnapshot, changes: Changes, batches: Iterable[StoredRows]
) -> tuple[MappedSnapshot, IntArray]:
    """Delete and append the rows of changed documents; return (later snapshot, rows of the affected entities).

    Name variants and link counts are those of the snapshot before: see :func:`resolve_links`. The caller sets
    ``records``.
    """
    deleted = _find_live_passages(snapshot, changes.removed)
    passages, hyperedges = snapshot.passages, snapshot.hyperedges
    new = NewRows.from_batches(batches, snapshot)
    added = new.rows
    later = add_entities(snapshot, sorted(added.entity_keys.items()))
    passage_pks = passages.pks.append(added.passage_numbers)
    hyperedge_pks = hyperedges.pks.append(added.hyperedge_numbers)
    graph, changed = snapshot.graph.with_changes(
        deleted,
        NewIncidences(
            passage_count=len(added.passage_ids),
            passage_of=find_rows(passage_pks, added.passage_of_hyperedge),
            scores=added.hyperedge_scores,
            entities=find_rows(later.entities.pks, added.incidence_entity),
            hyperedges=find_rows(hyperedge_pks, added.incidence_hyperedge),
            strengths=added.incidence_strength,
        ),
    )
    deleted_sum = sum_vectors(passages.vectors.take(deleted))
    later = replace(
        later,
        version=changes.version,
        passages=PassageColumns(
            ids=passages.ids.append(added.passage_ids),
            pks=passage_pks,
            document=passages.document.append(len(passages.documents) + new.document_of_passage),
            documents=passages.documents.append(new.documents),
            vectors=passages.vectors.with_changes(graph.live_passages, added.passage_vectors),
            vector_sum=passages.vector_sum - deleted_sum + sum_vectors(added.passage_vectors),
            terms=passages.terms.with_changes(graph.live_passages, deleted, new.postings),
            intervals=passages.intervals.append(len(passages.ids), added.passage_intervals),
        ),
        hyperedges=HyperedgeColumns(
            ids=hyperedges.ids.append(added.hyperedge_ids),
            pks=hyperedge_pks,
            vectors=hyperedges.vectors.with_changes(graph.live_hyperedges, added.hyperedge_vectors),
            intervals=hyperedges.intervals.append(len(hyperedges.ids), added.hyperedge_intervals),
        ),
        graph=graph,
        records=RecordCache(),
        names=snapshot.names.renew(keep_labels=not len(deleted)),
    )
    return later, changed


def add_entities(snapshot: MappedSnapshot, entities: Iterable[tuple[int, str]]) -> MappedSnapshot:
    """Return the snapshot with new entity rows at the end; ``entities`` are (primary key, entity key) pairs."""
    pairs, columns = list(entities), snapshot.entities
    pks, keys = np.array([pk for pk, _ in pairs], dtype=np.int64), [key for _, key in pairs]
    words = columns.words.append(_index_words(keys, len(columns.keys)))
    return replace(
        snapshot, entities=replace(columns, keys=columns.keys.append(keys), pks=columns.pks.append(pks), words=words)
    )


def _index_words(keys: Sequence[str], first_row: int) -> Segment:
    """Return entity rows by the hashes of the words of their ``keys``; the rows begin at ``first_row``."""
    words = [key.split() for key in keys]
    hashes = {word: hash_string(word) for word in set(chain.from_iterable(words))}
    rows = np.arange(first_row, first_row + len(keys)).repeat([len(of_key) for of_key in words])
    return Segment.from_entries(np.fromiter(map(hashes.__getitem__, chain.from_iterable(words)), dtype=np.uint64), rows)


def resolve_links(snapshot: MappedSnapshot) -> MappedSnapshot:
    """Return the snapshot with short names resolved to full names and with the number of links between passages."""
    graph = snapshot.graph.resolve_short_names(snapshot.entities.keys)
    passages, link_count = graph.live_passages.to_rows(), 0
    for start in range(0, len(passages), _LINK_BLOCK):
        link_count += count_links(graph, snapshot.passages.document, passages[start : start + _LINK_BLOCK])
    return replace(snapshot, graph=graph, link_count=link_count)


def _update_link_count(snapshot: MappedSnapshot, later: MappedSnapshot, changed_entities: IntArray) -> int:
    """Return the number of links in ``later``: the number in ``snapshot``, updated for ``changed_entities``.

    The hyperedges or names of these entities changed between the two snapshots.
    """
    is_earlier = changed_entities < len(snapshot.entities.keys)
    before = find_affected_passages(snapshot.graph, changed_entities[is_earlier])
    affected = union([before, find_affected_passages(later.graph, changed_entities)])
    earlier = affected[affected < len(snapshot.passages.ids)]
    live = affected[later.graph.live_passages.are_live(affected)]
    lost = count_links(snapshot.graph, snapshot.passages.document, earlier)
    return snapshot.link_count - lost + count_links(later.graph, later.passages.document, live)


def _find_live_passages(snapshot: MappedSnapshot, ranges: Sequence[tuple[int, int]]) -> IntArray:
    """Return the rows of live passages with primary keys in ``ranges``, pairs of first and last key."""
    bounds = np.array(ranges, dtype=np.int64).reshape(-1, 2)
    starts, ends = snapshot.passages.pks.count_below(bounds[:, 0]), snapshot.passages.pks.count_below(bounds[:, 1] + 1)
    rows = sort_unique(expand_ranges(starts, ends - starts))
    return rows[snapshot.graph.live_passages.are_live(rows)]


@dataclass(frozen=True, slots=True, eq=False)
class NewRows:
    """The passages, hyperedges and terms of added documents as arrays, ready to be appended to a snapshot.

    Attributes:
        rows: The rows of all documents, without texts, and the keys of new entities alone.
        documents: Unique document ids.
        document_of_passage: For each passage the position of its document in ``documents``.
        postings: The terms of passages.
    """

    rows: StoredRows
    documents: list[str]
    document_of_passage: IntArray
    postings: list[Postings]

    @classmethod
    def from_batches(cls, batches: Iterable[StoredRows], snapshot: MappedSnapshot) -> NewRows:
        """Join batches of rows of added documents, as read from the store, to arrays that extend ``snapshot``.

        Texts become posting lists (term frequencies). Entities that the snapshot has already are left out.
        """
        first_row, last_entity_pk = len(snapshot.passages.ids), snapshot.entities.pks.last()
        dimension = len(snapshot.passages.vector_sum)
        columns: dict[str, list[Any]] = {name: [empty] for name, empty in _get_columns(_empty_rows(dimension))}
        keys: dict[int, str] = {}
        postings: list[Postings] = []
        for batch in batches:
            labels = batch.document_ids, batch.document_dates, batch.document_families
            postings.append(build_postings(batch.texts, first_row, *labels))
            first_row += len(batch.passage_ids)
            for name, column in _get_columns(batch):
                columns[name].append(column)
            keys.update(pair for pair in batch.entity_keys.items() if pair[0] > last_entity_pk)
        rows = StoredRows(
            texts=(),
            document_dates=(),
            document_families=(),
            entity_keys=keys,
            **{name: _join(columns.pop(name)) for name in list(columns)},
        )
        positions = {id: position for position, id in enumerate(dict.fromkeys(rows.document_ids))}
        document_of_passage = np.array([positions[id] for id in rows.document_ids], dtype=np.int64)
        return cls(rows, list(positions), document_of_passage, postings)


def _empty_rows(dimension: int) -> StoredRows:
    integers, floats = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    vectors, times = np.empty((0, dimension), dtype=np.float32), build_intervals([])
    return StoredRows(
        passage_numbers=integers,
        passage_ids=[],
        document_ids=[],
        texts=[],
        document_dates=[],
        document_families=[],
        passage_vectors=vectors,
        hyperedge_numbers=integers,
        hyperedge_ids=[],
        passage_of_hyperedge=integers,
        hyperedge_scores=floats,
        hyperedge_vectors=vectors,
        passage_intervals=times,
        hyperedge_intervals=times,
        incidence_entity=integers,
        incidence_hyperedge=integers,
        incidence_strength=floats,
        entity_keys={},
    )


def _get_columns(rows: StoredRows) -> Iterator[tuple[str, Any]]:
    return ((field.name, getattr(rows, field.name)) for field in fields(rows) if field.name not in _SEPARATE)


def _join(parts: list[Any]) -> Any:
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else list(chain.from_iterable(parts))


def find_rows(key_of_row: Column, keys: IntArray) -> IntArray:
    """Return the row number of each of ``keys`` (primary keys), by binary search in the sorted column ``key_of_row``.

    Raises:
        StoreError: A primary key has no row, as in a damaged database.
    """
    rows = key_of_row.count_below(keys)
    if len(rows) and not (rows.max() < len(key_of_row) and (key_of_row.take(rows) == keys).all()):
        raise StoreError(
            "the index is damaged: a stored reference points to a row that does not exist; restore the index from a "
            "copy, or index again into another --store"
        )
    return rows
