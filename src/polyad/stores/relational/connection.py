"""The protocol of a database connection inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol


class Selection(NamedTuple):
    """A query for the rows of some records.

    Attributes:
        query: The query, in which ``IN ({})`` stands for a condition on distinct values.
        values: The values; None if the query has no such condition.
        parameters: Bound before the values.
    """

    query: str
    values: Sequence[str] | Sequence[int] | None
    parameters: Sequence[object] = ()


class Rows(Protocol):
    """A protocol of query results, which the cursors of SQLite and PostgreSQL satisfy."""

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the remaining rows."""

    def fetchall(self) -> list[Any]:
        """Return all remaining rows of the query result."""

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return the next batch of rows of the query result; an empty list at the end."""


class Connection(Protocol):
    """A protocol of database connections inside a transaction, for SQLite and PostgreSQL.

    Queries are written in the SQL that SQLite and PostgreSQL share, with ``?`` as placeholder. A query may contain
    :func:`polyad.stores.relational.rows.format_check`.
    """

    def execute(self, query: str, parameters: Sequence[Any] = (), /) -> Rows:
        """Run an SQL query and return its rows."""

    def select_in(
        self, query: str, values: Iterable[str] | Iterable[int], *parameters: object
    ) -> list[tuple[Any, ...]]:
        """Run a query whose condition ``IN ({})`` compares with ``values``.

        A database may run the query several times, for batches of values.

        ``parameters`` are bound before the values. ORDER BY sorts the rows of one batch only.
        """

    def select_each(self, selections: Sequence[Selection]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each selection. A database server receives all of them at once."""

    def insert_rows(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows into a table.

        The values are those of :data:`polyad.stores.relational.rows.COLUMNS`, then of the extra columns.
        """

    def get_last_keys(self) -> Mapping[str, int]:
        """Return the last primary key of each table; 0 for a new table."""


class WritingConnection(Connection, Protocol):
    """A protocol of database connections inside a write transaction."""

    def delete_documents(self, document_ids: Sequence[str], new_version: int) -> None:
        """Delete documents with their passages and hyperedges, and entities that are in no hyperedge any more.

        The removed passages are logged under ``new_version``. Ids that do not exist are ignored.
        """

    def replace_values(self, namespace: str, values: Mapping[str, bytes | None]) -> None:
        """Store key-value pairs of a namespace; None deletes a key."""


class Database(Protocol):
    """A protocol of databases that convert their errors into StoreError."""

    def report_errors(self) -> AbstractContextManager[None]:
        """Convert errors of the database, and of parsing damaged rows, into StoreError."""

    def get_disk_bytes(self) -> int:
        """Return the size of the index in bytes."""
