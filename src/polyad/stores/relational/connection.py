"""The protocol of a database connection inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Rows(Protocol):
    """The result of a query; a protocol that cursors of both databases satisfy."""

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the remaining rows."""

    def fetchall(self) -> list[Any]:
        """Return all remaining rows."""

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return the next batch of rows; an empty list at the end."""


class Connection(Protocol):
    """A protocol of a database connection inside a transaction; SQLite and PostgreSQL implement it.

    Queries are written in the SQL that SQLite and PostgreSQL share, with ``?`` as placeholder. A query may contain
    :func:`polyad.stores.relational.rows.format_check`.
    """

    def execute(self, query: str, parameters: Sequence[Any] = (), /) -> Rows:
        """Run a query and return its rows."""

    def select_in(
        self, query: str, values: Iterable[str] | Iterable[int], *parameters: object
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query in which ``IN ({})`` stands for a condition on distinct values.

        A database may run the query several times, for batches of values.

        ``parameters`` are bound before the values. ORDER BY sorts the rows of one batch only.
        """

    def insert_rows(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows with the values of :data:`polyad.stores.relational.rows.COLUMNS`, then of the extra columns."""

    def get_last_keys(self) -> Mapping[str, int]:
        """Return the last primary key of each table; 0 for a new table."""


class Database(Protocol):
    """A protocol of a database that converts its errors into StoreError."""

    def report_errors(self) -> AbstractContextManager[None]:
        """Convert errors of the database, and of parsing damaged rows, into StoreError."""

    def get_disk_bytes(self) -> int:
        """Return the size of the index in bytes."""
