"""Keeps the snapshot of an index that is used now, and moves it on when the index has changed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from polyad.protocols.components import Embedder, Progress, silent
from polyad.protocols.store import Changes, ReadTransaction, Store, StoredRows
from polyad.snapshot.described import Undescribed, described
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.mapped_snapshot import MappedSnapshot

FEWEST = 1000
"""Hyperedges from which on a snapshot is kept in files; a smaller one is made in a moment."""

BLOCK = 150_000
"""Passages read at a time where all are: what is made of them lies on disk before the next are read."""


class _ReadOnlyValues:
    """A store whose values are only read: a thread in a read transaction cannot write."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_values(self, namespace: str, keys: Sequence[str] | None = None) -> dict[str, bytes]:
        """Return the stored values by key."""
        return self._store.get_values(namespace, keys)

    def put_values(
        self, namespace: str, values: Mapping[str, bytes | None] | None, *, is_optional: bool = False
    ) -> None:
        """Store nothing: the values are computed again when they are needed."""


class SnapshotProvider:
    """The latest snapshot of one store, for many threads.

    Making or moving on a snapshot is the work of one thread; others go on with the snapshot there is, unless they ask
    for what was just written.

    Args:
        store: Is read.
        dimension: Length of its vectors.
        files: Where the arrays of a large snapshot are kept for the next process; None for nowhere.
    """

    def __init__(self, store: Store, dimension: int, files: SnapshotFiles | None = None) -> None:
        self._store = store
        self._files = files
        self._dimension = dimension
        self._snapshot: MappedSnapshot | None = None
        self._moving = threading.Lock()
        self._keeping = threading.Lock()

    def current(self, at_least: int = 0) -> MappedSnapshot:
        """The latest snapshot there is.

        Args:
            at_least: A version of the store that the snapshot must have reached, such as that of one's own last write.
        """
        snapshot = self._snapshot
        if snapshot is None:
            self._moved_on()
            return self._settled()
        if snapshot.version < at_least:
            return self._moved_on()
        if self._moving.acquire(blocking=False):
            try:
                return self._move_on()
            finally:
                self._moving.release()
        return snapshot

    def described(self, embedder: Embedder, progress: Progress = silent) -> MappedSnapshot:
        """The latest snapshot, with a vector for each entity: see :mod:`polyad.snapshot.described`."""
        with self._moving:
            with self._store.read_transaction() as transaction:
                self._snapshot = snapshot = self._moved_on_to(transaction, self._snapshot)
                missing = Undescribed.of(snapshot)
            self._snapshot = snapshot = described(snapshot, missing, self._store, embedder, progress)
        settled = self._settled()
        return settled if settled.is_described else snapshot  # others may have moved on to what is not described yet

    @contextmanager
    def held(self, embedder: Embedder | None = None) -> Iterator[MappedSnapshot]:
        """Yield the latest snapshot inside a read transaction of this thread.

        Nothing that the snapshot shows can be deleted meanwhile.

        Args:
            embedder: Describes the entities, unless they are; None where that is not wanted.
        """
        with ExitStack() as stack:
            with self._moving:
                transaction = stack.enter_context(self._store.read_transaction())
                self._snapshot = snapshot = self._moved_on_to(transaction, self._snapshot)
                if embedder is not None:
                    self._snapshot = snapshot = described(
                        snapshot, Undescribed.of(snapshot), _ReadOnlyValues(self._store), embedder
                    )
            yield snapshot

    def settle(self) -> None:
        """Keep the latest snapshot for the next process, where much of it is new; searches go on meanwhile."""
        self._moved_on()
        self._settled()

    def _settled(self) -> MappedSnapshot:
        """The snapshot there is, with its arrays on disk where that is worth while; others move it on meanwhile."""
        with self._keeping:
            snapshot = self._snapshot
            assert snapshot is not None, "a snapshot is made before it is kept"
            if self._files is None or not snapshot.is_mostly_new or snapshot.row_count("hyperedge") < FEWEST:
                return snapshot
            snapshot.count_common()
            with self._store.read_transaction() as transaction:
                token = transaction.changes(snapshot.version).token
            self._files.keep(snapshot, token)
            with self._store.read_transaction() as transaction:
                kept = self._files.load(self._store, transaction) or snapshot
            with self._moving, self._store.read_transaction() as transaction:
                self._snapshot = snapshot = self._moved_on_to(transaction, kept)
            return snapshot

    def _moved_on(self) -> MappedSnapshot:
        with self._moving:
            return self._move_on()

    def _move_on(self) -> MappedSnapshot:
        """To the store as it is now; by one thread at a time."""
        with self._store.read_transaction() as transaction:
            self._snapshot = self._moved_on_to(transaction, self._snapshot)
        return self._snapshot

    def _moved_on_to(self, transaction: ReadTransaction, snapshot: MappedSnapshot | None) -> MappedSnapshot:
        if self._files and (
            snapshot is None or (snapshot.is_mostly_new and self._files.version() > snapshot.kept_version)
        ):
            snapshot = (
                self._files.load(self._store, transaction) or snapshot
            )  # in the second case another process kept a later one
        if snapshot is not None and snapshot.version == transaction.version:
            return snapshot
        changes = transaction.changes(snapshot.version if snapshot else None)
        if snapshot is None or changes.is_complete or snapshot.is_mostly_gone:
            return self._made(transaction)
        return snapshot.advanced(changes, transaction.rows(changes.documents, snapshot.entity_numbers.last()))

    def _made(self, transaction: ReadTransaction) -> MappedSnapshot:
        """Build a snapshot from the whole store, one block of passages at a time."""
        snapshot = MappedSnapshot.none(self._store, self._dimension).knowing(transaction.entity_keys())
        nothing = Changes(transaction.version, (), ())
        for block in _blocks(transaction.rows(transaction.changes().documents, snapshot.entity_numbers.last())):
            if self._files and snapshot.row_count("entity") > BLOCK:
                snapshot = self._files.put_aside(snapshot)
            snapshot = snapshot.advanced(nothing, block, is_whole=False)
        return replace(snapshot.linked(), version=transaction.version)


def _blocks(batches: Iterable[StoredRows]) -> Iterator[Iterator[StoredRows]]:
    """Some at a time, with :data:`BLOCK` passages or a few more; each block has to be read whole before the next."""
    left = iter(batches)
    for first in left:
        yield _block(first, left)


def _block(first: StoredRows, left: Iterator[StoredRows]) -> Iterator[StoredRows]:
    yield first
    passages = len(first.passage_ids)
    while passages < BLOCK and (batch := next(left, None)):
        yield batch
        passages += len(batch.passage_ids)
