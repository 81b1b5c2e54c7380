"""Connections to PostgreSQL that run the queries of :mod:`polyad.stores.relational`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper
from psycopg.types.string import StrDumper

from polyad.protocols.store import DOCUMENT_NAMESPACES, ENTITY_VECTORS, VectorType
from polyad.stores.relational.connection import Selection
from polyad.stores.relational.rows import COLUMNS, EXTRA_COLUMNS

_ESCAPE = b"\x01"
_ESCAPED = re.compile("\x01([\x01\x02])")
_CHECK = re.compile(r"is_sound\([^()]*\)")


_RANGES = """
SELECT document.number, MIN(passage.number), MAX(passage.number), MIN(hyperedge.number), MAX(hyperedge.number)
FROM document LEFT JOIN passage ON passage.document = document.number
LEFT JOIN hyperedge ON hyperedge.passage = passage.number
WHERE document.id IN ({}) GROUP BY document.number
"""

_DELETE = "DELETE FROM {} USING unnest(?::bigint[], ?::bigint[]) AS range(first, last) WHERE {} BETWEEN first AND last"


class _TextDumper(StrDumper):
    """A psycopg converter that escapes NUL characters in texts, because PostgreSQL cannot store NUL.

    U+0000 becomes U+0001 U+0001, and U+0001 becomes U+0001 U+0002.
    """

    def dump(self, obj: str) -> bytes:
        """Encode a text as UTF-8 bytes, with NUL characters escaped.

        Escaped texts have the same order as the original texts, so ORDER BY and comparisons in SQL stay correct.
        """
        data = obj.encode()
        if b"\x00" in data or _ESCAPE in data:
            return data.replace(b"\x01", b"\x01\x02").replace(b"\x00", b"\x01\x01")
        return data


class _BinaryTextDumper(_TextDumper):
    """A psycopg converter that escapes NUL characters in binary COPY, as :class:`_TextDumper` does."""

    format = psycopg.pq.Format.BINARY


class _TextLoader(Loader):
    """A psycopg converter that restores the NUL characters that :class:`_TextDumper` escaped."""

    format = psycopg.pq.Format.BINARY

    def load(self, data: Buffer) -> str:
        """Decode a text from the database and restore its NUL characters."""
        text = str(data, "utf-8")
        return _ESCAPED.sub(lambda match: "\x00" if match[1] == "\x01" else "\x01", text) if "\x01" in text else text


def prepare_connection(connection: psycopg.Connection[Any]) -> None:
    """Register on a new connection the psycopg converters for texts (NUL is escaped) and integers (bigint)."""
    connection.adapters.register_dumper(int, Int8Dumper)  # one type for all integers: psycopg would choose it by value
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_dumper(str, _BinaryTextDumper)
    connection.adapters.register_loader("text", _TextLoader)


Queries = Sequence[tuple[str, Sequence[Any]]]
"""Queries in the SQL dialect of :mod:`polyad.stores.relational`, each with its parameters."""


class PostgresConnection:
    """A PostgreSQL connection inside a transaction, which runs the SQL that is shared with SQLite.

    It implements :class:`polyad.stores.relational.connection.Connection`.

    Args:
        connection: The connection, in autocommit mode: transactions are opened by statements.
        last_keys: The last primary key of each table, if the transaction writes.
        vector_type: Type of the numbers of stored vectors.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        last_keys: dict[str, int] | None = None,
        vector_type: VectorType = "float32",
    ) -> None:
        self.driver = connection
        self.last_keys = last_keys or {}
        self.vector_type = vector_type

    def execute(self, query: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        """Translate a query from the SQL that is shared with SQLite, run it, and return its cursor."""
        (cursor,) = self.execute_together([(query, parameters)])
        return cursor

    def execute_together(self, queries: Queries) -> list[psycopg.Cursor[Any]]:
        """Run queries in one round trip and return the cursor of each query."""
        if len(queries) == 1:
            return [run_query(self.driver, *queries[0])]
        with self.driver.pipeline():
            return [run_query(self.driver, *query) for query in queries]

    def select_in(
        self, query: str, values: Iterable[str] | Iterable[int] | Iterable[bytes], *parameters: object
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose condition ``column IN ({})`` is filled with ``values``."""
        distinct = list(dict.fromkeys(values))
        return self.execute(query, [*parameters, distinct]).fetchall() if distinct else []

    def select_each(self, selections: Sequence[Selection]) -> list[list[tuple[Any, ...]]]:
        """Return for each query the list of its rows, in one round trip."""
        queries = [
            (query, [*parameters, *([] if values is None else [list(dict.fromkeys(values))])])
            for query, values, parameters in selections
        ]
        return [cursor.fetchall() for cursor in self.execute_together(queries)] if queries else []

    def insert_rows(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows, which are tuples of column values, into a table, and record the last primary key."""
        materialized = list(rows)
        if not materialized:
            return
        if table in self.last_keys:
            self.last_keys[table] = materialized[-1][0]
        statement = f"COPY {table} ({_COPIED_COLUMNS[table]}) FROM STDIN (FORMAT BINARY)"
        with self.driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in materialized:
                copy.write_row(row)

    def delete_documents(self, document_ids: Sequence[str], new_version: int) -> None:
        """Delete documents and unused entities, and log the removed passages under the version ``new_version``.

        An entity is unused if no hyperedge contains it any more. Document ids that do not exist are ignored.
        """
        ranges = self.select_in(_RANGES, document_ids)
        numbers = [row[0] for row in ranges]
        passages = [row[1:3] for row in ranges if row[1] is not None]
        hyperedges = [row[3:5] for row in ranges if row[3] is not None]
        self.execute("DELETE FROM document WHERE number = ANY(?)", [numbers])
        self.insert_rows("removal", ((new_version, *bounds) for bounds in passages))
        self._delete_ranges("passage", "number", passages)
        self._delete_ranges("tuple", "number", hyperedges)
        self._delete_ranges("argument", "tuple", hyperedges)
        self._delete_ranges("hyperedge", "number", hyperedges)
        entities = {number for (number,) in self._delete_ranges("incidence", "hyperedge", hyperedges, "entity")}
        unused = "number = ANY(?) AND NOT EXISTS (SELECT 1 FROM incidence WHERE entity = number)"
        deleted = self.execute(f"DELETE FROM entity WHERE {unused} RETURNING key", [sorted(entities)])
        self.replace_values(ENTITY_VECTORS, dict.fromkeys(key for (key,) in deleted))
        for namespace in DOCUMENT_NAMESPACES:
            self.replace_values(namespace, dict.fromkeys(document_ids))

    def _delete_ranges(
        self, table: str, column: str, ranges: Sequence[Sequence[int]], returned_column: str = ""
    ) -> list[tuple[int]]:
        """Delete rows whose ``column`` is in a (first, last) range; return their values of ``returned_column``."""
        if not ranges:
            return []
        bounds = [list(bound) for bound in zip(*ranges, strict=True)]
        query = _DELETE.format(table, f"{table}.{column}")
        cursor = self.execute(f"{query} RETURNING {table}.{returned_column}" if returned_column else query, bounds)
        return cursor.fetchall() if returned_column else []

    def replace_values(self, namespace: str, values: Mapping[str, bytes | None]) -> None:
        """Store key-value pairs under a namespace; a value of None deletes its key."""
        if deleted := sorted(_build_id(namespace, key) for key, value in values.items() if value is None):
            self.execute("DELETE FROM value WHERE id = ANY(?)", [deleted])
        # Sorted: two transactions that lock rows in the same order do not wait for each other in a circle.
        rows = sorted((_build_id(namespace, key), key, value) for key, value in values.items() if value is not None)
        if rows:
            self.execute(
                "INSERT INTO value (id, namespace, key, value) "
                "SELECT id, ?, key, value FROM unnest(?::bytea[], ?::text[], ?::bytea[]) AS item(id, key, value) "
                "ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                [namespace, *(list(column) for column in zip(*rows, strict=True))],
            )

    def select_values(self, namespace: str, keys: Sequence[str] | None) -> dict[str, bytes]:
        """Return the values of a namespace in a dictionary by key; all values if ``keys`` is None."""
        if keys is None:
            return dict(self.execute("SELECT key, value FROM value WHERE namespace = ?", [namespace]).fetchall())
        ids = [_build_id(namespace, key) for key in keys]
        return dict(self.execute("SELECT key, value FROM value WHERE id = ANY(?)", [ids]).fetchall())

    def run_script(self, script: str) -> None:
        """Run several SQL statements without parameters in one round trip."""
        self.driver.execute(script, prepare=False)

    def get_last_keys(self) -> Mapping[str, int]:
        """Return the highest primary key used so far in each table, including rows of this transaction."""
        return dict(self.last_keys)


class ReadState(NamedTuple):
    """The store version, the embedder's name and the non-empty namespaces that a read transaction sees.

    Attributes:
        version: The store version.
        embedder: Name of the embedder.
        namespaces: The namespaces of :data:`polyad.stores.postgres.database.RARE_NAMESPACES` that contain values.
    """

    version: int
    embedder: str
    namespaces: Sequence[str]


class ReadConnection(PostgresConnection):
    """A PostgreSQL connection that opens its read transaction together with the first query, in one round trip.

    Args:
        begin: Opens a read transaction and runs queries in it; returns the connection, the state of the index and the
            result of each query.
    """

    def __init__(
        self, begin: Callable[[Queries], tuple[psycopg.Connection[Any], ReadState, list[psycopg.Cursor[Any]]]]
    ) -> None:
        self._begin = begin
        self._state: ReadState | None = None

    @property
    def state(self) -> ReadState:
        """The store version, embedder and namespaces that the read transaction sees; opens it if necessary."""
        if self._state is None:
            self.driver, self._state, _ = self._begin([])
        return self._state

    @property
    def is_open(self) -> bool:
        """Whether the read transaction has been opened."""
        return self._state is not None

    def execute_together(self, queries: Queries) -> list[psycopg.Cursor[Any]]:
        """Run queries in one round trip, which also opens the read transaction, and return the cursor of each query."""
        if self._state is not None:
            return super().execute_together(queries)
        self.driver, self._state, cursors = self._begin(queries)
        return cursors


def _build_id(namespace: str, key: str) -> bytes:
    return hashlib.sha256(f"{namespace}\x00{key}".encode()).digest()


def run_query(connection: psycopg.Connection[Any], query: str, parameters: Sequence[Any]) -> psycopg.Cursor[Any]:
    """Translate a query from the SQL that is shared with SQLite, run it on ``connection``, and return its cursor."""
    return connection.execute(translate_query(query), parameters, binary=True)


@cache
def translate_query(query: str) -> str:
    """Translate a query from the SQL that is shared with SQLite to PostgreSQL's SQL.

    Replaces ``?``, ``IN ({})`` and ``INSTR``. Checks of row checksums become TRUE: PostgreSQL has checksums of its own.
    """
    query = _CHECK.sub("TRUE", query).replace("IN ({})", "= ANY(%s)")
    return query.replace("?", "%s").replace("INSTR(", "STRPOS(")


_COPIED_COLUMNS = {
    table: ", ".join(f'"{name}"' for name in (*names, *EXTRA_COLUMNS.get(table, ())) if name != "text_checksum")
    for table, names in COLUMNS.items()
}
"""The columns of each table as SQL."""
