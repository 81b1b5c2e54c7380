"""The shared store: one schema of a PostgreSQL database for each workspace; needs no extension.

Any number of machines read while one transaction at a time writes: a writer locks the row of the version first, so that
versions and primary keys grow in the order of commits. Every server has its own snapshot in a local folder, which the
change log advances; a search reads only displayed texts from the database.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from copy import copy
from dataclasses import replace
from pathlib import Path

import psycopg

from polyad.errors import IndexMismatchError, PolyadError, StoreError, StoreNotFoundError, StoreUnavailableError
from polyad.model import IndexedDocument, Usage
from polyad.protocols.jobs import Job
from polyad.protocols.lookups import check_manifest
from polyad.protocols.store import NO_VALUES, REPLIES, Damage, Manifest, Values, VectorType
from polyad.stores.postgres.address import DatabaseAddress
from polyad.stores.postgres.connection import PostgresConnection, ReadConnection
from polyad.stores.postgres.database import LOG_LENGTH, RARE_NAMESPACES, PostgresDatabase
from polyad.stores.postgres.errors import translate_errors
from polyad.stores.postgres.integrity import find_damage
from polyad.stores.postgres.jobs import PostgresJobQueue, describe_stored, hash_lock_name
from polyad.stores.postgres.migrations import create_vector_columns, has_tables, migrate
from polyad.stores.postgres.read_transaction import PostgresReadTransaction
from polyad.stores.relational import writing
from polyad.stores.relational.jobs import finish_jobs
from polyad.stores.sqlite import SqliteValueFile

_IS_WRITABLE = "SELECT has_table_privilege(%s, 'UPDATE') AND NOT pg_is_in_recovery()"


class PostgresStore:
    """A store that keeps an index in a schema of a PostgreSQL database.

    Implements ``Store`` and ``MaintainedStore`` of :mod:`polyad.protocols.store`.

    Safe for several threads, processes and machines.

    Args:
        database: The database.
        manifest: The manifest of the index.
        replies: Store of cached replies; by default the index.
    """

    def __init__(self, database: PostgresDatabase, manifest: Manifest, replies: SqliteValueFile | None = None) -> None:
        self._database = database
        self._manifest = manifest
        self._replies = replies
        self._transactions = threading.local()
        self._worker, self._jobs = "", dict[str, Job]()

    @classmethod
    def open(cls, url: str, manifest: Manifest | None = None, *, replies: Path | None = None) -> PostgresStore:
        """Open the index at a PostgreSQL address; if there is none, create an index with ``manifest``.

        The form of the address is ``postgresql://USER@HOST:PORT/DATABASE?workspace=NAME&vectors=float16``.

        Args:
            url: The address; its other parameters are those of libpq, such as ``target_session_attrs``.
            manifest: Properties of a new index, which is created if there is none. None to only open.
            replies: SQLite file of cached replies, which several indexes may share; by default part of the index.

        Raises:
            StoreNotFoundError: there is no index and ``manifest`` is None.
            IndexMismatchError: the index has other tables or vectors, or was built with other components than
                ``manifest``.
            ConfigurationError: the address is malformed, or the login was refused.
            StoreError: the server does not answer, or is too old.
        """
        database = PostgresDatabase(DatabaseAddress.from_url(url))
        stored = database.retry(lambda: _prepare_tables(database, manifest))
        if stored is None:
            raise StoreNotFoundError(
                f"no index in {database.address.name}; expected one made by: polyad index PATH --store ADDRESS"
            )
        if manifest is not None:
            check_manifest(stored, embedder=manifest.embedder, mentions=manifest.mentions)
        return cls(database, stored, SqliteValueFile(replies) if replies else None)

    @property
    def manifest(self) -> Manifest:
        """The properties of the index that are fixed at its creation, such as the embedder's name."""
        return self._manifest

    def put(
        self,
        *documents: IndexedDocument,
        values: Values = NO_VALUES,
        expected_version: int | None = None,
        expected_values: Values = NO_VALUES,
        values_version: int | None = None,
    ) -> None:
        """Store documents and key-value pairs in one transaction; a document replaces a stored one with the same id.

        See :meth:`polyad.protocols.store.Store.put`.
        """

        def write(connection: PostgresConnection, version: int) -> None:
            expected = NO_VALUES if values_version == version - 1 else expected_values
            writing.check_expectations(connection, version - 1, expected_version, expected)
            replaced = writing.put(connection, documents, values, version)
            outcomes = describe_stored(documents, replaced) if self._jobs else {}
            finish_jobs(connection, self._worker, [self._jobs[id] for id in outcomes], outcomes)

        if documents or values:
            self._change_documents(write)

    @property
    def jobs(self) -> PostgresJobQueue:
        """The queue of jobs that all workers share."""
        return PostgresJobQueue(self._database)

    @contextmanager
    def lock(self, name: str) -> Iterator[Callable[[], bool]]:
        """Open a lock that the server releases if this process ends.

        See :meth:`polyad.protocols.store.LockingStore.lock`.
        """
        key = hash_lock_name(f"{self._database.address.schema}/{name}")
        with closing(self._database.connect()) as connection:

            def take() -> bool:
                with suppress(psycopg.Error):
                    [(has_lock,)] = connection.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchall()
                    return bool(has_lock)
                return False

            yield take

    def with_jobs(self, worker: str, jobs: Mapping[str, Job]) -> PostgresStore:
        """Return this store with a :meth:`put` that also ends the jobs of the documents, which ``worker`` has.

        The documents and the end of their jobs are one transaction.

        Args:
            worker: Name of the worker.
            jobs: The jobs by the id of the document.
        """
        store = copy(self)
        store._worker, store._jobs = worker, dict(jobs)
        return store

    def remove(self, document_ids: Sequence[str], *, values: Values = NO_VALUES) -> None:
        """Delete documents with all their rows, and store the key-value pairs ``values``, in one transaction.

        Raises:
            NotFoundError: a document does not exist; no document is deleted.
        """
        self._change_documents(lambda connection, version: writing.remove(connection, document_ids, values, version))

    def replace_vectors(
        self,
        manifest: Manifest,
        embed: Callable[[Sequence[IndexedDocument]], tuple[Sequence[IndexedDocument], Values]],
    ) -> None:
        """Replace all vectors by those from ``embed``, and the embedder in the manifest, in one transaction.

        See :meth:`polyad.protocols.store.Store.replace_vectors`.
        """
        self._require_writable()
        database = self._database
        with (
            translate_errors(database.address.name),
            database.writing(self._manifest, max_idle_seconds=0) as (connection, version),
        ):
            version += LOG_LENGTH + 1  # so that no snapshot of the old vectors is advanced
            transaction = PostgresReadTransaction(connection, database, self._manifest, LOG_LENGTH, lambda: version)
            writing.replace_vectors(connection, transaction, manifest, embed, version)
            database.commit(connection, version, secrets.token_hex(8))
        self._manifest = replace(self._manifest, embedder=manifest.embedder, dimension=manifest.dimension)

    @contextmanager
    def read_transaction(self) -> Iterator[PostgresReadTransaction]:
        """Open a read transaction: all reads in the ``with`` block see one store version, that of the first read.

        Nested blocks on one thread share the transaction.
        """
        outer: PostgresReadTransaction | None = getattr(self._transactions, "current", None)
        if outer is not None:
            yield outer
            return
        with self._database.reading(self._manifest) as connection:
            self._transactions.current = transaction = PostgresReadTransaction(
                connection, self._database, self._manifest, LOG_LENGTH, lambda: connection.state.version
            )
            self._transactions.connection = connection
            try:
                yield transaction
            finally:
                self._transactions.current = self._transactions.connection = None

    def list_namespaces(self) -> list[str]:
        """Return the sorted names of the namespaces (groups of key-value pairs) that have values."""
        with self.read_transaction() as transaction, self._database.report_errors():
            rows = transaction.connection.execute("SELECT DISTINCT namespace FROM value")
            namespaces = {namespace for (namespace,) in rows}
        return sorted(namespaces | ({REPLIES} if self._replies is not None and self._replies.has_values() else set()))

    def charge(self, usage: Usage) -> Usage:
        """Add language-model usage to the total of the index, and return the total; an empty ``usage`` only reads."""
        query = "SELECT calls, prompt_tokens, completion_tokens, cost FROM account"
        parameters: list[float] = []
        if usage != Usage() and not self._database.is_read_only:
            query = (
                "UPDATE account SET calls = calls + ?, prompt_tokens = prompt_tokens + ?, "
                "completion_tokens = completion_tokens + ?, cost = cost + ? "
                "RETURNING calls, prompt_tokens, completion_tokens, cost"
            )
            parameters = [usage.calls, usage.prompt_tokens, usage.completion_tokens, float(usage.cost)]

        def update() -> Usage:
            with self._database.updating() as connection:
                [total] = connection.execute(query, parameters)
            return Usage(*total)

        return self._database.retry(update)

    def get_values(self, namespace: str, keys: Sequence[str] | None = None) -> dict[str, bytes]:
        """Return the values of a namespace in a dictionary by key; all values if ``keys`` is None."""
        if namespace == REPLIES and self._replies is not None:
            return self._replies.get_values(namespace, keys)
        outer: ReadConnection | None = getattr(self._transactions, "connection", None)
        if outer is not None:
            if namespace in RARE_NAMESPACES and namespace not in outer.state.namespaces:
                return {}
            with self._database.report_errors():
                return outer.select_values(namespace, keys)
        return self._database.retry(
            lambda: self._database.run_autocommit(lambda connection: connection.select_values(namespace, keys))
        )

    def put_values(
        self, namespace: str, values: Mapping[str, bytes | None] | None, *, is_optional: bool = False
    ) -> None:
        """Store the key-value pairs ``values`` in a namespace; a key whose value is None is deleted.

        ``values=None`` deletes all keys of the namespace. An optional write is left out if the index cannot be
        written now, for example because it is read-only.

        See :meth:`polyad.protocols.store.ValueStore.put_values`.
        """
        if namespace == REPLIES and self._replies is not None:
            self._replies.put_values(namespace, values, is_optional=is_optional)
            return
        if is_optional and self._database.is_read_only:
            return
        self._require_writable()

        def update() -> None:
            with self._database.updating() as connection:
                if values is None:
                    connection.execute("DELETE FROM value WHERE namespace = ?", [namespace])
                else:
                    connection.replace_values(namespace, values)

        with suppress(*((StoreUnavailableError,) if is_optional else ())):
            self._database.retry(update)

    def listen(self, seconds: float) -> Generator[None]:
        """Yield whenever the index may have changed: at once, after a change, and after ``seconds`` without one."""
        while True:
            try:
                with closing(self._database.connect()) as connection:
                    connection.execute(f'LISTEN "{self._database.address.schema}"')
                    while True:
                        yield
                        for _ in connection.notifies(timeout=seconds, stop_after=1):
                            pass
            except (psycopg.Error, PolyadError):  # the server restarts: poll until it answers
                time.sleep(seconds)
                yield

    def verify(self) -> list[Damage]:
        """Return a sorted list with a :class:`Damage` for each damaged record of the index."""
        with self.read_transaction() as transaction, self._database.report_errors():
            return sorted(find_damage(transaction.connection, self._manifest))

    def repair(self) -> None:
        """Delete entities that no hyperedge contains, and the tokens by which snapshots are recognised."""

        def write(connection: PostgresConnection, version: int) -> None:  # noqa: ARG001  (as other writes)
            connection.execute("DELETE FROM entity WHERE NOT EXISTS (SELECT FROM incidence WHERE entity = number)")
            connection.execute("DELETE FROM state")  # so no saved snapshot has a token of this index

        self._change_documents(write)

    def back_up(self, path: Path) -> list[Path]:
        """Raise StoreError, because an index in PostgreSQL is backed up with tools such as pg_dump."""
        name, schema = self._database.address.name, self._database.address.schema
        raise StoreError(
            f"{name} is not copied to {str(path)!r}; back it up with: pg_dump --format=custom --schema={schema}, or "
            "copy it into a folder with polyad migrate"
        )

    def close(self) -> None:
        """Close the connections. No method may be called afterwards."""
        self._database.close()
        if self._replies is not None:
            self._replies.close()

    def _require_writable(self) -> None:
        if self._database.is_read_only:
            name = self._database.address.name
            raise StoreUnavailableError(f"{name} may not be written by this user; it can only be searched")

    def _change_documents(self, write: Callable[[PostgresConnection, int], None]) -> None:
        """Call ``write(connection, version)`` in a write transaction; repeat the call after a lost connection.

        If the connection is lost during the commit, the token of the version tells whether it was committed.
        """
        self._require_writable()
        token, attempts = secrets.token_hex(8), list[int]()

        def change() -> None:
            with self._database.writing(self._manifest) as (connection, version):
                if attempts and connection.execute("SELECT 1 FROM state WHERE token = ?", [token]).fetchall():
                    return
                attempts.append(version)
                write(connection, version)
                self._database.commit(connection, version, token)

        self._database.retry(change)


def _prepare_tables(database: PostgresDatabase, manifest: Manifest | None) -> Manifest | None:
    """Create or update the tables of an index, and return its manifest; None if there is no index to open.

    Without an index, create one with ``manifest``; return None if that is None.
    """
    schema, name = database.address.schema, database.address.name
    with closing(database.connect()) as connection:
        if manifest is None and not has_tables(connection, schema):
            return None
        migrate(connection, schema, name)
        stored = dict(connection.execute("SELECT key, value FROM manifest").fetchall())
        if not stored:
            assert manifest is not None, "tables are created together with the manifest"
            if database.address.vector_type in ("vector", "halfvec"):
                create_vector_columns(connection, database.address.vector_type, name)
            stored = {
                "embedder": manifest.embedder,
                "dimension": str(manifest.dimension),
                "mentions": manifest.mentions,
                "token": secrets.token_hex(8),
                "vectors": database.address.vector_type or "float32",
            }
            connection.cursor().executemany("INSERT INTO manifest VALUES (%s, %s)", list(stored.items()))
        connection.execute("COMMIT")
        vector_type: VectorType = stored.get("vectors", "float32")
        if database.address.vector_type not in ("", vector_type):
            raise IndexMismatchError(
                f"{name} stores vectors as {vector_type}, not {database.address.vector_type}; leave vectors out of the "
                "address, or copy the index into a new workspace with: polyad migrate"
            )
        [(is_writable,)] = connection.execute(_IS_WRITABLE, [f'"{schema}".counter']).fetchall()
        database.is_read_only = not is_writable
    directory = database.address.get_cache_directory(stored["token"])
    with suppress(OSError):  # without a folder, snapshots stay in memory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    is_usable = directory.is_dir()
    return Manifest(
        embedder=stored["embedder"],
        dimension=int(stored["dimension"]),
        mentions=stored["mentions"],
        directory=directory if is_usable else None,
        place=name,
        vector_type=vector_type,
    )
