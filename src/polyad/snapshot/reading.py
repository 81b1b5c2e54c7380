"""Reads the snapshot at the version of a read transaction: an earlier snapshot with later changes, or all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from polyad.protocols.store import Changes, ReadTransaction, Store, StoredRows
from polyad.snapshot.advancing import add_entities, advance, apply_changes, resolve_links
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.mapped_snapshot import MappedSnapshot

BLOCK = 150_000
"""Passages read at a time when a snapshot is built: the arrays of a block are on disk before the next is read."""


class SnapshotReader:
    """Reads the snapshot of a store at the version of a read transaction.

    Args:
        store: The store.
        dimension: Length of its vectors.
        files: Where the arrays of a large snapshot are stored while it is built; None for in memory.
    """

    def __init__(self, store: Store, dimension: int, files: SnapshotFiles | None = None) -> None:
        self._store = store
        self._dimension = dimension
        self._files = files

    def read(self, transaction: ReadTransaction, snapshot: MappedSnapshot | None) -> MappedSnapshot:
        """Return the snapshot at the transaction's store version: ``snapshot`` with later changes, or a new one."""
        if snapshot is not None and snapshot.version == transaction.version:
            return snapshot
        changes = transaction.changes(snapshot.version if snapshot else None)
        if snapshot is None or changes.is_complete or snapshot.is_mostly_deleted:
            return self.build(transaction)
        return advance(snapshot, changes, transaction.rows(changes.documents, snapshot.entities.pks.last()))

    def build(self, transaction: ReadTransaction) -> MappedSnapshot:
        """Build a snapshot from the whole store, block by block."""
        snapshot = add_entities(MappedSnapshot.empty(self._store, self._dimension), transaction.entity_keys())
        no_changes = Changes(transaction.version, (), ())
        batches = transaction.rows(transaction.changes().documents, snapshot.entities.pks.last())
        for block in _group_into_blocks(batches):
            if self._files and snapshot.row_count("entity") > BLOCK:
                snapshot = self._files.map_unfinished(snapshot)
            snapshot, _ = apply_changes(snapshot, no_changes, block)
        return replace(resolve_links(snapshot), version=transaction.version)


def _group_into_blocks(batches: Iterable[StoredRows]) -> Iterator[Iterator[StoredRows]]:
    """Yield groups of consecutive batches, as iterators, with at least :data:`BLOCK` passages each."""
    remaining = iter(batches)
    for first in remaining:
        yield _iterate_block(first, remaining)


def _iterate_block(first: StoredRows, remaining: Iterator[StoredRows]) -> Iterator[StoredRows]:
    yield first
    passages = len(first.passage_ids)
    while passages < BLOCK and (batch := next(remaining, None)):
        yield batch
        passages += len(batch.passage_ids)
