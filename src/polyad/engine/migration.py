"""Copies an index into another store, such as a folder into a PostgreSQL database."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from polyad.engine.loaders import get_store_opener
from polyad.errors import ConfigurationError
from polyad.model import IndexedDocument, Usage
from polyad.protocols.components import Progress, silent
from polyad.protocols.lookups import get_digests
from polyad.protocols.store import ENTITY_VECTORS, ReadTransaction, Store

T = TypeVar("T")

_BATCH = 100
"""Documents, or entity vectors, in memory at a time; an interrupted migration repeats one batch."""


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The result of a migration: the numbers of copied documents and values.

    Attributes:
        documents: Number of documents in the target.
        copied: Number of documents that this run copied.
        values: Number of values, such as corrections, history and cached replies.
        seconds: Wall time.
    """

    documents: int
    copied: int
    values: int
    seconds: float


def migrate_index(source_place: str | Path, target_place: str | Path, progress: Progress = silent) -> MigrationReport:
    """Copy an index to another store, such as from a folder to PostgreSQL; create the target if necessary.

    Documents that the target already has are compared and skipped, so a repeated call continues an interrupted one.

    Raises:
        StoreNotFoundError: There is no index at ``source_place``.
        IndexMismatchError: The target was built with another embedder or mention extractor.
        ConfigurationError: The target holds documents that the source does not have.
    """
    start = time.perf_counter()
    source = get_store_opener(source_place)(source_place)
    try:
        manifest = replace(source.manifest, directory=None, place="")
        target = get_store_opener(target_place)(target_place, manifest)
        try:
            with source.read_transaction() as transaction:
                copied = _copy_documents(transaction, get_digests(source), target, progress)
                values = sum(_copy_values(source, target, namespace) for namespace in source.list_namespaces())
            if target.charge(Usage()) == Usage():
                target.charge(source.charge(Usage()))
            return MigrationReport(len(get_digests(target)), copied, values, time.perf_counter() - start)
        finally:
            target.close()
    finally:
        source.close()


def _copy_documents(source: ReadTransaction, digests: Mapping[str, str], target: Store, progress: Progress) -> int:
    """Copy documents that ``target`` does not have, or has in another version, and return the number of copies.

    ``digests`` has the ids of all documents in the source. Documents are copied in the order of the source's writes.
    """
    if others := sorted(get_digests(target).keys() - digests.keys()):
        raise ConfigurationError(
            f"the target has the document {others[0]!r}, which the source does not have; expected a target without an "
            "index, or one that an interrupted migration left"
        )
    remaining, copied = dict.fromkeys(digests), 0
    for numbers in _iterate_batches(source.changes().documents):
        ids = list(dict.fromkeys(id for rows in source.rows(numbers) for id in rows.document_ids))
        copied += _copy_batch(source, target, ids)
        for id in ids:
            del remaining[id]
        progress(len(digests) - len(remaining), len(digests), "documents")
    # What remains are documents without passages.
    return copied + sum(_copy_batch(source, target, ids) for ids in _iterate_batches([*remaining]))


def _copy_batch(source: ReadTransaction, target: Store, ids: Sequence[str]) -> int:
    documents = source.get(IndexedDocument, ids)
    with target.read_transaction() as transaction:
        existing = {id: _list_fields(item) for id, item in transaction.get(IndexedDocument, ids).items()}
    different = [item for id, item in documents.items() if existing.get(id) != _list_fields(item)]
    target.put(*different)
    return len(different)


def _list_fields(item: IndexedDocument) -> list[object]:
    """Return all fields of a document as a list that can be compared with ``==``; vectors become bytes."""
    fields: list[object] = [item.document, item.digest, item.tokens, item.recorded]
    for passage in item.passages:
        fields += [passage.passage, passage.digest, passage.vector.tobytes()]
        fields += [(edge.hyperedge, edge.incidences, edge.vector.tobytes()) for edge in passage.hyperedges]
    return fields


def _copy_values(source: Store, target: Store, namespace: str) -> int:
    """Make a namespace of key-value pairs equal in the target and the source; return the number of pairs."""
    if namespace == ENTITY_VECTORS:
        return _copy_entity_vectors(source, target)
    values = source.get_values(namespace)
    target.put_values(namespace, {**dict.fromkeys(target.get_values(namespace)), **values})
    return len(values)


def _copy_entity_vectors(source: Store, target: Store) -> int:
    copied = 0
    with source.read_transaction() as transaction:
        for batch in _iterate_batches([key for _, key in transaction.entity_keys()]):
            values = source.get_values(ENTITY_VECTORS, batch)
            target.put_values(ENTITY_VECTORS, values)
            copied += len(values)
    return copied


def _iterate_batches(values: Sequence[T]) -> Iterator[list[T]]:
    remaining = iter(values)
    while batch := list(islice(remaining, _BATCH)):
        yield batch
