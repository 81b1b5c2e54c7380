"""A checksum in every row, so that a search never returns the contents of a damaged file.

SQLite detects damage to its own structures, not to the values in them. A query that reads rows for an answer contains
:func:`format_check`: the query fails at a row that was changed outside of polyad. A row also stores how many other rows
belong to it, so that missing rows are detected.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "document": (
        *("number", "version", "id", "title", "source", "url", "metadata", "places", "digest", "tokens"),
        *("recorded", "passages", "text_checksum"),
    ),
    "removal": ("version", "first_passage", "last_passage"),
    "passage": (
        *("number", "document", "id", "title", "text", "start", "end", "page", "heading", "sheet", "slide", "digest"),
        *("hyperedges", "vector"),
    ),
    "hyperedge": (
        *("number", "passage", "id", "kind", "text", "start", "end", "score", "valid_from", "valid_to"),
        *("incidences", "vector"),
    ),
    "entity": ("number", "key"),
    "incidence": ("entity", "hyperedge", "role", "name", "type", "description", "score", "grounded", "strength"),
    "tuple": ("number", "relation", "arguments"),
    "argument": ("tuple", "place", "role", "value", "verbatim", "type", "unit", "names", "low", "end"),
    "value": ("namespace", "key", "value"),
}
"""The columns of each table that the checksum of a row covers, in this order; a blob is the last."""

_EXTRA_COLUMNS: Mapping[str, tuple[str, ...]] = {"document": ("text",)}
"""Columns of each table with a checksum of their own: a long text is read only where it is needed."""

TEXT_CHECK = "is_sound(document.text_checksum, document.text)"
"""SQL condition that is true for a document whose text is undamaged; the query fails at a damaged text."""

_INSERTIONS: Mapping[str, str] = {
    table: "INSERT INTO {} ({}, checksum) VALUES ({}?)".format(
        table, ", ".join(f'"{name}"' for name in (*names, *extra)), "?, " * len((*names, *extra))
    )
    for table, names in COLUMNS.items()
    for extra in [_EXTRA_COLUMNS.get(table, ())]
}

_JOINED = ["\x1f".join(["%s"] * count) for count in range(1 + max(map(len, COLUMNS.values())))]
"""Format strings that join n values. Formatting takes half the time of ``str.join``."""

UNSOUND = "user-defined function raised exception"
"""Message of SQLite's error when a query reaches a damaged row."""


def define_checksum_functions(connection: sqlite3.Connection) -> None:
    """Define the SQL functions of the checksums on a connection."""
    connection.create_function("row_checksum", -1, compute_checksum, deterministic=True)
    connection.create_function("is_sound", -1, is_sound, deterministic=True)


def compute_checksum(*values: str | int | float | bytes | None) -> int:
    """Return the CRC-32 of the values of a row.

    The values must have the types that SQLite returns: a REAL column needs floats, since 1 and 1.0 differ as text.
    """
    if isinstance(values[-1], bytes):
        return zlib.crc32((_JOINED[len(values) - 1] % values[:-1]).encode(), zlib.crc32(values[-1]))
    return zlib.crc32((_JOINED[len(values)] % values).encode())


def format_check(table: str) -> str:
    """Return an SQL condition that is true for an undamaged row of ``table``; the query fails at a damaged row."""
    return f"is_sound({format_checksum_columns(table)})"


def format_checksum_columns(table: str) -> str:
    """Return the SQL arguments of :func:`is_sound` for a row: the stored checksum, then the columns that it covers."""
    return f"{table}.checksum, {_qualify_columns(table)}"


def is_sound(stored_checksum: int, *values: str | int | float | bytes | None) -> bool:
    """Return True if the values of a row match its checksum.

    Raises:
        ValueError: they do not match.
    """
    if stored_checksum != compute_checksum(*values):
        raise ValueError("a row was changed since it was written")
    return True


def insert_rows(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows with their checksums. A row has the values of :data:`COLUMNS`, then those of the extra columns."""
    checked = len(COLUMNS[table])
    connection.executemany(_INSERTIONS[table], ((*row, compute_checksum(*row[:checked])) for row in rows))


def _qualify_columns(table: str) -> str:
    return ", ".join(f'{table}."{name}"' for name in COLUMNS[table])
