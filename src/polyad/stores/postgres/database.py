"""A PostgreSQL database with a pool of connections, which opens, repeats and ends transactions."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from polyad.errors import IndexMismatchError, StoreError
from polyad.protocols.store import WITHDRAWN, Manifest
from polyad.stores.postgres.address import DatabaseAddress
from polyad.stores.postgres.connection import (
    PostgresConnection,
    Queries,
    ReadConnection,
    ReadState,
    prepare_connection,
    run_query,
)
from polyad.stores.postgres.errors import is_retryable, translate_errors
from polyad.stores.relational.rows import DamageError

LOG_LENGTH = 100_000
"""How many of the last versions the log of removals covers."""

BUSY_SECONDS = 60
"""Seconds that a writer waits for another process that is writing."""

_MIN_VERSION = 140000
_CONNECT_SECONDS = 10
_MAX_CONNECTIONS = 32
"""Connections of one process: more threads wait for each other."""

_ATTEMPTS = 8
"""Attempts at one transaction, with pauses of 0.1 s, 0.2 s, ...: some 12 s, in which a server restarts."""

_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

RARE_NAMESPACES = (WITHDRAWN,)
"""Namespaces of values that each search reads, and that most indexes leave empty."""

_READ_STATE = (
    "SELECT counter.version, manifest.value, "
    "ARRAY(SELECT name FROM unnest(?::text[]) AS name WHERE EXISTS (SELECT FROM value WHERE namespace = name)) "
    "FROM counter, manifest WHERE manifest.key = 'embedder'"
)

_BEGIN_WRITE = (
    f"BEGIN; SET LOCAL lock_timeout = '{BUSY_SECONDS}s'; SET LOCAL idle_in_transaction_session_timeout = '{{idle}}s'; "
    "SELECT version, document, passage, hyperedge, entity FROM counter FOR UPDATE; "
    "SELECT value FROM manifest WHERE key = 'embedder'"
)
"""The lock comes first, so that the statements behind it see the commit of the previous writer."""

_DISK_BYTES = (
    "SELECT SUM(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = ?::regnamespace"
)

_KEYS = ("document", "passage", "hyperedge", "entity")

T = TypeVar("T")

logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # errors are reported; do not print them twice


class PostgresDatabase:
    """A schema of a PostgreSQL database with a pool of connections, which opens and retries transactions.

    Args:
        address: The address.
    """

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address
        self.is_read_only = False
        self._pool: ConnectionPool[psycopg.Connection[Any]] | None = None
        self._releases = ThreadPoolExecutor(1, thread_name_prefix="polyad-postgres")
        self._opening = threading.Lock()
        self._is_closed = False

    def connect(self) -> psycopg.Connection[Any]:
        """Open a connection outside the pool; the caller closes the connection.

        Raises:
            ConfigurationError: The login was refused, or there is no such database.
            StoreError: The server is too old, or the database has another encoding than UTF-8.
        """
        with translate_errors(self.address.name):
            connection = psycopg.connect(self.address.connection_info, **self._parameters)
            self._configure(connection)
        problem = ""
        if connection.info.server_version < _MIN_VERSION:
            problem = f"runs PostgreSQL {connection.info.server_version // 10000}; expected 14 or later"
        elif (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
            problem = f"has the encoding {encoding}; expected a database that was created with: createdb -E UTF8"
        if problem:
            connection.close()
            raise StoreError(f"{self.address.name} {problem}")
        return connection

    @property
    def _parameters(self) -> dict[str, Any]:
        return {
            "autocommit": True,
            "connect_timeout": _CONNECT_SECONDS,
            "application_name": "polyad",
            "keepalives_idle": 30,
        }

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        prepare_connection(connection)
        connection.execute("SELECT set_config('search_path', %s, false)", [f'"{self.address.schema}"'])

    def _get_pool(self) -> ConnectionPool[psycopg.Connection[Any]]:
        with self._opening:
            if self._is_closed:
                raise StoreError(f"{self.address.name} was closed; open it again")
            if self._pool is None:
                self._pool = ConnectionPool(
                    self.address.connection_info,
                    kwargs=self._parameters,
                    configure=self._configure,
                    min_size=0,
                    max_size=_MAX_CONNECTIONS,
                    timeout=_CONNECT_SECONDS,
                    open=True,
                )
            return self._pool

    @contextmanager
    def reading(self, manifest: Manifest) -> Iterator[ReadConnection]:
        """Yield a connection whose read transaction begins with the first query and ends after the ``with`` block.

        The transaction is ended in another thread, so that a search does not wait for the server. The first query
        raises IndexMismatchError if all vectors were replaced since the index was opened.
        """
        connection = ReadConnection(lambda queries: self.retry(lambda: self._open_read_transaction(queries, manifest)))
        try:
            yield connection
        finally:
            if connection.is_open:
                try:
                    self._releases.submit(self._release, connection.driver)
                except RuntimeError:  # the store was closed meanwhile
                    self._release(connection.driver)

    @contextmanager
    def writing(
        self, manifest: Manifest, *, max_idle_seconds: int = BUSY_SECONDS
    ) -> Iterator[tuple[PostgresConnection, int]]:
        """Wait for other writers, open a write transaction, and yield (its connection, the new store version).

        The transaction is rolled back unless the block ends it with :meth:`commit`.

        Args:
            manifest: The manifest of the index when it was opened.
            max_idle_seconds: The server ends a transaction whose client sends nothing for this time; 0 for never.
        """
        connection, [(version, *keys), (embedder,)] = self._open_transaction(_BEGIN_WRITE.format(idle=max_idle_seconds))
        try:
            _require_embedder(embedder, manifest)
            last_keys = dict(zip(_KEYS, keys, strict=True))
            yield PostgresConnection(connection, last_keys, manifest.vector_type), version + 1
        finally:
            self._release(connection)

    def commit(self, connection: PostgresConnection, version: int, token: str) -> None:
        """Commit a write transaction, record its new store ``version`` and ``token``, and notify all readers.

        Args:
            connection: Connection of the transaction.
            version: The new version of the index.
            token: Random token, by which the version is recognised.
        """
        keys = ", ".join(f"{name} = {key}" for name, key in connection.last_keys.items())
        outdated = version - LOG_LENGTH
        connection.run_script(
            f"UPDATE counter SET version = {version}, {keys}; INSERT INTO state VALUES ({version}, '{token}'); "
            f"DELETE FROM removal WHERE version <= {outdated}; DELETE FROM state WHERE version <= {outdated}; "
            f"NOTIFY \"{self.address.schema}\", '{version}'; COMMIT"
        )

    def run_autocommit(self, run: Callable[[PostgresConnection], T]) -> T:
        """Call ``run`` with a pooled connection outside a transaction, to save round trips; return its result."""
        connection = self._get_connection()
        try:
            return run(PostgresConnection(connection))
        finally:
            self._release(connection)

    @contextmanager
    def updating(self) -> Iterator[PostgresConnection]:
        """Open a transaction for changes of jobs or key-value pairs, yield its connection, and commit at the end."""
        connection, _ = self._open_transaction(f"BEGIN; SET LOCAL lock_timeout = '{BUSY_SECONDS}s'")
        try:
            yield PostgresConnection(connection)
            connection.execute("COMMIT")
        finally:
            self._release(connection)

    def retry(self, transaction: Callable[[], T]) -> T:
        """Call ``transaction()`` and return its result; repeat the call after a lost connection or a conflict."""
        for attempt in range(_ATTEMPTS):
            try:
                return transaction()
            except psycopg.Error as error:
                if attempt == _ATTEMPTS - 1 or not is_retryable(error):
                    with translate_errors(self.address.name):
                        raise
                if self._pool is not None:
                    self._pool.check()  # discards connections that the server has closed
                time.sleep(0.1 * 2**attempt * random.uniform(0.5, 1))
        raise AssertionError("unreachable: the last attempt returns or raises")

    @contextmanager
    def report_errors(self) -> Iterator[None]:
        """Convert errors of PostgreSQL, and DamageError, in the ``with`` block into StoreError."""
        with translate_errors(self.address.name):
            try:
                yield
            except DamageError as error:
                raise StoreError(f"{self.address.name} is damaged ({error}); restore it from a backup") from error

    def get_disk_bytes(self) -> int:
        """Return the size of the index's tables and SQL indexes in bytes."""
        parameters = [f'"{self.address.schema}"']
        [(size,)] = self.run_autocommit(lambda connection: connection.execute(_DISK_BYTES, parameters).fetchall())
        return int(size or 0)

    def close(self) -> None:
        """Close all pooled connections; a connection in use is closed when its transaction ends."""
        with self._opening:
            self._is_closed = True
            self._releases.shutdown()
            if self._pool is not None:
                self._pool.close()

    def _open_read_transaction(
        self, queries: Queries, manifest: Manifest
    ) -> tuple[psycopg.Connection[Any], ReadState, list[psycopg.Cursor[Any]]]:
        """Open a read transaction and run queries in one round trip; return (connection, state, cursors)."""
        connection = self._get_connection()
        try:
            with connection.pipeline():
                connection.execute(_BEGIN_READ)
                state = run_query(connection, _READ_STATE, [list(RARE_NAMESPACES)])
                cursors = [run_query(connection, *query) for query in queries]
            [(version, embedder, namespaces)] = state.fetchall()
            _require_embedder(embedder, manifest)
        except BaseException:
            self._release(connection)
            raise
        return connection, ReadState(version, embedder, namespaces), cursors

    def _open_transaction(self, statements: str) -> tuple[psycopg.Connection[Any], list[tuple[Any, ...]]]:
        """Open a transaction with ``statements``; return (connection, first row of each result)."""
        connection = self._get_connection()
        try:
            cursor = connection.execute(statements, prepare=False)
            rows = [rows[0] for result in cursor.results() if result.description and (rows := result.fetchall())]
        except BaseException:
            self._release(connection)
            raise
        return connection, rows

    def _get_connection(self) -> psycopg.Connection[Any]:
        try:
            return self._get_pool().getconn()
        except PoolTimeout:
            self.connect().close()  # raises the reason, unless all connections are in use
            raise

    def _release(self, connection: psycopg.Connection[Any]) -> None:
        """Return a connection to the pool, after rolling back a transaction that is still open."""
        with suppress(psycopg.Error):
            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK", prepare=False)
        if self._pool is not None:
            self._pool.putconn(connection)


def _require_embedder(embedder: str, manifest: Manifest) -> None:
    """Raise IndexMismatchError if the index's vectors come from another embedder than when the index was opened."""
    if embedder != manifest.embedder:
        raise IndexMismatchError(
            f"the vectors of the index were replaced by those of {embedder!r} since it was opened; open it again"
        )
