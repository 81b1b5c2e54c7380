"""Connections that insert, select and delete rows, each with a checksum.

SQLite detects damage to its own structures, not to the values in them. So every row has a checksum: a query that reads
rows for an answer contains :func:`polyad.stores.relational.rows.format_check` and fails at a row that was changed
outside of polyad.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polyad.protocols.store import DOCUMENT_NAMESPACES, ENTITY_VECTORS, VectorType
from polyad.stores.relational.connection import Selection
from polyad.stores.relational.rows import (
    COLUMNS,
    EXTRA_COLUMNS,
    DamageError,
    check_types,
    format_check,
    get_only_row,
    iterate_batches,
)

BATCH = 256
"""Values bound to one statement: a power of two, see :func:`pad_values`. SQLite's lowest limit is 999."""

_INSERTIONS: Mapping[str, str] = {
    table: "INSERT INTO {} ({}, checksum) VALUES ({}?)".format(
        table, ", ".join(f'"{name}"' for name in (*names, *extra)), "?, " * len((*names, *extra))
    )
    for table, names in COLUMNS.items()
    for extra in [EXTRA_COLUMNS.get(table, ())]
}

_JOINED = ["\x1f".join(["%s"] * count) for count in range(1 + max(map(len, COLUMNS.values())))]
"""Format strings that join n values. Formatting takes half the time of ``str.join``."""

UNSOUND = "user-defined function raised exception"
"""Message of SQLite's error when a query reaches a damaged row."""


class SqliteConnection(sqlite3.Connection):
    """A SQLite connection with checksum functions for SQL queries, and with methods that insert and delete rows.

    Implements :class:`polyad.stores.relational.connection.Connection`.
    """

    vector_type: VectorType = "float32"

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.create_function("row_checksum", -1, compute_checksum, deterministic=True)
        self.create_function("is_sound", -1, is_sound, deterministic=True)

    def select_in(
        self, query: str, values: Iterable[str] | Iterable[int] | Iterable[bytes], *parameters: object
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose condition ``column IN ({})`` is filled with ``values``, in batches."""
        rows: list[tuple[Any, ...]] = []
        for batch in iterate_batches(list(dict.fromkeys(values)), BATCH):
            bound = pad_values(batch)
            rows += self.execute(query.format(format_placeholders(bound)), [*parameters, *bound]).fetchall()
        return rows

    def select_each(self, selections: Sequence[Selection]) -> list[list[tuple[Any, ...]]]:
        """Return for each query the list of its rows."""
        return [
            self.execute(query, parameters).fetchall() if values is None else self.select_in(query, values, *parameters)
            for query, values, parameters in selections
        ]

    def insert_rows(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows, which are tuples of column values, with their checksums into a table.

        An extra column, such as a long text, has its own checksum.
        """
        extra = len(EXTRA_COLUMNS.get(table, ()))
        if extra:
            rows = ((*row[:-extra], *map(compute_checksum, row[-extra:]), *row[-extra:]) for row in rows)
        checked = len(COLUMNS[table])
        self.executemany(_INSERTIONS[table], ((*row, compute_checksum(*row[:checked])) for row in rows))

    def get_version(self) -> int:
        """Return the version of the index; raise DamageError if the file has none."""
        (version,) = get_only_row(self.execute("SELECT value FROM manifest WHERE key = 'version'"))
        if not str(version).isdecimal():
            raise DamageError(f"the version {version!r}")
        return int(version)

    def get_last_keys(self) -> Mapping[str, int]:
        """Return the highest primary key used so far in each table, by table name; 0 for a new table."""
        return defaultdict(int, self.execute("SELECT name, seq FROM sqlite_sequence"))

    def delete_documents(self, document_ids: Sequence[str], new_version: int) -> None:
        """Delete documents and unused entities, and log the removed passages under the version ``new_version``.

        An entity is unused if no hyperedge contains it any more. Document ids that do not exist are ignored.
        """
        for document_id in document_ids:
            row = self.execute("SELECT number FROM document WHERE id = ?", [document_id]).fetchone()
            if row is None:
                continue
            (number,) = row
            entities = self.execute(
                "SELECT DISTINCT incidence.entity FROM passage JOIN hyperedge ON hyperedge.passage = passage.number "
                "JOIN incidence ON incidence.hyperedge = hyperedge.number WHERE passage.document = ?",
                [number],
            ).fetchall()
            self.execute(
                "INSERT INTO removal SELECT *, row_checksum(version, low, high) FROM (SELECT ? AS version, "
                "MIN(number) AS low, MAX(number) AS high FROM passage WHERE document = ? GROUP BY document)",
                [new_version, number],
            )
            self.execute("DELETE FROM document WHERE number = ?", [number])
            for namespace in DOCUMENT_NAMESPACES:
                self.replace_values(namespace, {document_id: None})
            unused = "FROM entity WHERE number IN ({}) AND NOT EXISTS (SELECT 1 FROM incidence WHERE entity = number)"
            keys = [key for (key,) in self.select_in(f"SELECT key {unused}", (number for (number,) in entities))]
            self.executemany("DELETE FROM entity WHERE key = ?", ((key,) for key in keys))
            self.replace_values(ENTITY_VECTORS, dict.fromkeys(keys))

    def select_values(self, namespace: str, keys: Sequence[str] | None) -> dict[str, bytes]:
        """Return the values of a namespace in a dictionary by key; all values if ``keys`` is None."""
        query = f"SELECT key, value FROM value WHERE namespace = ? AND {format_check('value')}"
        if keys is None:
            rows = self.execute(query, [namespace]).fetchall()
        else:
            rows = self.select_in(f"{query} AND key IN ({{}})", keys, namespace)
        return dict(check_types(rows, str, bytes))

    def replace_values(self, namespace: str, values: Mapping[str, bytes | None]) -> None:
        """Store key-value pairs under a namespace; a value of None deletes its key."""
        self.executemany("DELETE FROM value WHERE namespace = ? AND key = ?", ((namespace, key) for key in values))
        self.executemany(
            "INSERT INTO value (namespace, key, checksum, value) VALUES (?, ?, ?, ?)",
            (
                (namespace, key, compute_checksum(namespace, key, value), value)
                for key, value in values.items()
                if value is not None
            ),
        )


def compute_checksum(*values: str | int | float | bytes | None) -> int:
    """Return the CRC-32 checksum of a row's column values.

    The values must have the types that SQLite returns: a REAL column needs floats, since 1 and 1.0 differ as text.
    """
    if isinstance(values[-1], bytes):
        return zlib.crc32((_JOINED[len(values) - 1] % values[:-1]).encode(), zlib.crc32(values[-1]))
    return zlib.crc32((_JOINED[len(values)] % values).encode())


def is_sound(stored_checksum: int, *values: str | int | float | bytes | None) -> bool:
    """Return True if a row's values match the stored checksum; otherwise raise DamageError.

    Raises:
        DamageError: they do not match. In a query, SQLite raises OperationalError instead; see :data:`UNSOUND`.
    """
    if stored_checksum != compute_checksum(*values):
        raise DamageError("a row was changed since it was written")
    return True


def pad_values(values: Sequence[Any]) -> list[Any]:
    """Return ``values`` padded with None to a power-of-two length, so that SQLite prepares few distinct queries.

    SQLite caches prepared statements by their text, so fewer lengths mean more reuse.
    """
    return [*values, *[None] * ((1 << (len(values) - 1).bit_length()) - len(values))]


def format_placeholders(values: Sequence[object]) -> str:
    """Return the SQL placeholders ``?,?,...``, one for each of ``values``."""
    return ",".join("?" * len(values))
