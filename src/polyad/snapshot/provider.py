"""The provider of the current snapshot of an index, which it advances when the index has changed, and saves."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

from polyad.errors import PolyadError
from polyad.protocols.components import Embedder, Progress, silent
from polyad.protocols.store import NotifyingStore, ReadTransaction, Store
from polyad.snapshot.entity_vectors import EntityEmbedder, OutdatedEntities, add_entity_vectors
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.reading import SnapshotReader
from polyad.snapshot.records import build_incidences

MIN_SAVED = 1000
"""Hyperedges from which on a snapshot is saved; a smaller snapshot is built in a moment."""

MAX_DELAY = 0.1
"""Longest time in seconds between a notice of a change and the advance of the snapshot.

The delay is random: many processes of one machine receive the notice at the same time.
"""

POLL_SECONDS = 1.0
"""Seconds after which a follower reads the version of the store without a notice."""

_LOG = logging.getLogger(__name__)


class SnapshotProvider:
    """Provides the current snapshot (index as arrays) to all threads, and updates it after changes of the store.

    One thread at a time builds or advances the snapshot. Other threads use the snapshot before, unless they ask for a
    later version.

    Args:
        store: The store.
        dimension: Length of its vectors.
        files: Where large snapshots are saved for the next process; None to save none.
    """

    def __init__(self, store: Store, dimension: int, files: SnapshotFiles | None = None) -> None:
        self._store = store
        self._files = files
        self._reader = SnapshotReader(store, dimension, files)
        self._snapshot: MappedSnapshot | None = None
        self._unsaved = MIN_SAVED  # hyperedges; the number that earlier processes left unsaved is not known
        self._advancing = threading.Lock()
        self._saving = threading.Lock()
        self._current_until = 0.0
        self._last_advance = 0.0
        self._is_searched = False  # a search used the snapshot since it was advanced last
        self._is_followed = False
        self._is_closed = threading.Event()

    def get_current(self, min_version: int = 0) -> MappedSnapshot:
        """Return the current snapshot; during an update, the previous snapshot unless older than ``min_version``.

        Args:
            min_version: Oldest version of the store that the snapshot may have, so that a caller reads its own writes.
        """
        snapshot = self._snapshot
        if snapshot is None:
            self._advance_current()
            return self._save_if_needed()
        if snapshot.version < min_version:
            return self._advance_current()
        if time.monotonic() < self._current_until:
            self._is_searched = True
            return snapshot
        if self._advancing.acquire(blocking=False):
            try:
                if self._is_followed:  # set before the version is read, since a notice may arrive meanwhile
                    self._current_until = time.monotonic() + POLL_SECONDS
                return self._replace_current()
            except BaseException:
                self._current_until = 0.0
                raise
            finally:
                self._advancing.release()
        return snapshot

    def follow(self, store: NotifyingStore) -> None:
        """Start a thread that updates the snapshot after each change of ``store``, so that searches need not wait.

        While changes are more frequent than searches, the next search updates the snapshot, or the thread does after
        :data:`POLL_SECONDS`. Otherwise processes with few searches would spend their time on every change. A search
        that is not told of a change in time sees the change after :data:`POLL_SECONDS` at the latest.
        """
        self._is_followed = True
        threading.Thread(target=self._follow, args=[store], name="polyad-follow", daemon=True).start()

    def _follow(self, store: NotifyingStore) -> None:
        extra_share = random.uniform(0.5, 1.5)  # one of many followers saves first, and the others load its files
        with closing(store.listen(POLL_SECONDS)) as changes:
            for _ in changes:
                is_idle = not self._is_searched and time.monotonic() < self._last_advance + POLL_SECONDS
                if self._is_closed.wait(0 if is_idle else random.uniform(0, MAX_DELAY)):
                    return
                if is_idle:
                    self._current_until = 0.0  # the next search reads the version of the store
                    continue
                try:
                    self._advance_current()
                    self._save_if_needed(extra_share)
                except PolyadError as error:  # if the error persists, the next search reports it
                    _LOG.info("the snapshot could not be advanced: %s", error)
                else:
                    self._current_until = time.monotonic() + 2 * POLL_SECONDS

    def close(self) -> None:
        """Stop the thread that updates the snapshot."""
        self._is_closed.set()
        self._current_until = 0.0

    def get_with_entity_vectors(self, embedder: Embedder, progress: Progress = silent) -> MappedSnapshot:
        """Return the current snapshot after computing all missing entity vectors."""
        with self._advancing:
            with self._store.read_transaction() as transaction:
                self._snapshot = snapshot = self._read(transaction, self._snapshot)
                outdated = OutdatedEntities.from_snapshot(snapshot)
            entity_embedder = EntityEmbedder(embedder, self._store, progress)
            self._snapshot = snapshot = add_entity_vectors(snapshot, outdated, entity_embedder)
        saved = self._save_if_needed()
        return saved if saved.has_entity_vectors else snapshot  # another thread may have advanced the saved snapshot

    @contextmanager
    def hold(self, embedder: Embedder | None = None) -> Iterator[MappedSnapshot]:
        """Yield the current snapshot inside a read transaction, in which its texts stay readable despite deletions.

        Args:
            embedder: Computes entity vectors; None for a snapshot that may lack them.
        """
        with ExitStack() as stack:
            with self._advancing:
                transaction = stack.enter_context(self._store.read_transaction())
                self._snapshot = snapshot = self._read(transaction, self._snapshot)
                if embedder is not None:
                    outdated = OutdatedEntities.from_snapshot(snapshot)
                    # A read transaction cannot write, so vectors are not stored; a later search computes them again.
                    entity_embedder = EntityEmbedder(embedder, self._store, is_read_only=True)
                    self._snapshot = snapshot = add_entity_vectors(snapshot, outdated, entity_embedder)
            yield snapshot

    def save(self, new_hyperedges: int = MIN_SAVED) -> None:
        """Save the current snapshot to disk if many rows are unsaved, after ``new_hyperedges`` more were stored.

        Searches continue meanwhile. After the first call, nothing is done for fewer than :data:`MIN_SAVED` new
        hyperedges: the next search advances the snapshot.

        Args:
            new_hyperedges: Number of hyperedges that were stored since the last call.
        """
        self._unsaved += new_hyperedges
        if self._unsaved < MIN_SAVED:
            return
        self._unsaved = 0
        self._advance_current()
        self._save_if_needed()

    def _save_if_needed(self, extra_share: float = 0.0) -> MappedSnapshot:
        """Save the current snapshot if too many rows are unsaved; ``extra_share`` 1 allows twice as many.

        Return the snapshot: after saving, with arrays mapped from the files.
        """
        with self._saving:
            snapshot = self._snapshot
            assert snapshot is not None, "a snapshot is built before it is saved"
            if self._files is None or not _should_save(snapshot, extra_share):
                return snapshot
            snapshot = replace(snapshot, incidences=build_incidences(snapshot))
            with self._store.read_transaction() as transaction:
                token = transaction.changes(snapshot.version).token
            self._files.save(snapshot, token)
            with self._store.read_transaction() as transaction:
                saved = self._files.load(self._store, transaction) or snapshot
            if saved.extends(snapshot):
                saved = replace(saved, fields=snapshot.fields, versions=snapshot.versions)
            with self._advancing, self._store.read_transaction() as transaction:
                self._snapshot = snapshot = self._read(transaction, saved)
            return snapshot

    def _advance_current(self) -> MappedSnapshot:
        """Advance the current snapshot to the version of the store and return it; threads do so one after the other."""
        with self._advancing:
            return self._replace_current()

    def _replace_current(self) -> MappedSnapshot:
        """Advance the current snapshot to the store's version and return it; the caller holds the lock."""
        self._is_searched = False
        with self._store.read_transaction() as transaction:
            self._snapshot = self._read(transaction, self._snapshot)
        self._last_advance = time.monotonic()
        return self._snapshot

    def _read(self, transaction: ReadTransaction, snapshot: MappedSnapshot | None) -> MappedSnapshot:
        """Return the snapshot at the transaction's store version: ``snapshot`` or a saved one with later changes."""
        # A snapshot with many unsaved rows is loaded again if another process has saved a later one.
        if self._files and (
            snapshot is None or (_should_save(snapshot) and self._files.get_version() > snapshot.saved.version)
        ):
            snapshot = self._files.load(self._store, transaction) or snapshot
        return self._reader.read(transaction, snapshot)


def _should_save(snapshot: MappedSnapshot, extra_share: float = 0.0) -> bool:
    """Return whether a snapshot is large and has too many unsaved rows; ``extra_share`` 1 allows twice as many."""
    return snapshot.row_count("hyperedge") >= MIN_SAVED and snapshot.needs_saving(extra_share)
