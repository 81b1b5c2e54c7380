"""The protocol of a database connection inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from polyad.protocols.store import VectorType


class Selection(NamedTuple):
    """An SQL query with its parameters, optionally with a list of values for its condition ``IN ({})``.

    Attributes:
        query: The query, in which ``IN ({})`` stands for a condition on distinct values.
        values: The values; None if the query has no such condition.
        parameters: Bound before the values.
    """

    query: str
    values: Sequence[str] | Sequence[int] | None
    parameters: Sequence[object] = ()


class Rows(Protocol):
    """A protocol of the rows that an SQL query returns, which the cursors of SQLite and PostgreSQL satisfy."""

    @property
    def rowcount(self) -> int:
        """Number of rows that a statement has changed."""

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the rows that have not been read yet, each a tuple of column values."""

    def fetchall(self) -> list[Any]:
        """Return all rows of the query result that have not been read yet."""

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return the next rows of the query result, at most ``size``; an empty list after the last row."""


class Connection(Protocol):
    """A protocol of database connections (SQLite or PostgreSQL) inside an open transaction.

    Queries are written in the SQL that SQLite and PostgreSQL share, with ``?`` as placeholder. A query may contain
    :func:`polyad.stores.relational.rows.format_check`.

    Attributes:
        vector_type: Type of the numbers of vectors that are inserted.
    """

    vector_type: VectorType

    def execute(self, query: str, parameters: Sequence[Any] = (), /) -> Rows:
        """Run an SQL query and return its rows."""

    def select_in(
        self, query: str, values: Iterable[str] | Iterable[int] | Iterable[bytes], *parameters: object
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose condition ``column IN ({})`` is filled with ``values``.

        A database may run the query several times, for batches of values.

        ``parameters`` are bound before the values. ORDER BY sorts the rows of one batch only.
        """

    def select_each(self, selections: Sequence[Selection]) -> list[list[tuple[Any, ...]]]:
        """Return for each query the list of its rows.

        PostgreSQL runs all queries in one round trip.
        """

    def insert_rows(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows, which are tuples of column values, into a table of the index.

        The values are those of :data:`polyad.stores.relational.rows.COLUMNS`, then of the extra columns.
        """

    def get_last_keys(self) -> Mapping[str, int]:
        """Return the highest primary key used so far in each table, by table name; 0 for a new table."""


class WritingConnection(Connection, Protocol):
    """A protocol of database connections inside a write transaction, which can delete documents."""

    def delete_documents(self, document_ids: Sequence[str], new_version: int) -> None:
        """Delete documents and unused entities, and log the removed passages under the version ``new_version``.

        An entity is unused if no hyperedge contains it any more. Document ids that do not exist are ignored.
        """

    def select_values(self, namespace: str, keys: Sequence[str] | None) -> dict[str, bytes]:
        """Return the values of a namespace in a dictionary by key; all values if ``keys`` is None."""

    def replace_values(self, namespace: str, values: Mapping[str, bytes | None]) -> None:
        """Store key-value pairs under a namespace; a value of None deletes its key."""


class Database(Protocol):
    """A protocol of databases that convert their driver's errors into StoreError and know their size."""

    def report_errors(self) -> AbstractContextManager[None]:
        """Convert database errors, and DamageError, in the ``with`` block to StoreError."""

    def get_disk_bytes(self) -> int:
        """Return the size of all tables and indexes of the database on disk, in bytes."""
