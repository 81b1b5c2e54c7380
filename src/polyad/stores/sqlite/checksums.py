"""A checksum in every row, so that a damaged file never passes for an answer.

SQLite notices damage to its own structures, not to what it was given to keep. A query that reads rows for an answer
asks for :func:`sound` ones; it then fails, as on other damage, at a row that is not as it was written. How many rows
belong to another is a column of that other, so that rows which got lost are missed.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "document": (
        *("number", "version", "id", "title", "source", "url", "metadata", "places", "digest", "tokens"),
        *("passages", "text_checksum"),
    ),
    "removal": ("version", "first_passage", "last_passage"),
    "passage": (
        *("number", "document", "id", "title", "text", "start", "end", "page", "heading", "sheet", "slide", "digest"),
        *("hyperedges", "vector"),
    ),
    "hyperedge": ("number", "passage", "id", "kind", "text", "start", "end", "score", "incidences", "vector"),
    "entity": ("number", "key"),
    "incidence": ("entity", "hyperedge", "role", "name", "type", "description", "score", "grounded", "strength"),
    "entity_vector": ("entity", "digest", "vector"),
    "given": ("number", "relation", "arguments"),
    "argument": ("given", "place", "role", "value", "verbatim", "type", "unit", "names", "low", "end"),
}
"""By table, the columns that the checksum of a row is of, in this order; a vector is the last."""

_BESIDE: Mapping[str, tuple[str, ...]] = {"document": ("text",)}
"""By table, columns that have a checksum of their own: a long text is read only where it is wanted."""

SOUND_TEXT = "is_sound(document.text_checksum, document.text)"
"""SQL that is true of a document whose text is as it was written; the query fails at any other."""

_INSERTIONS: Mapping[str, str] = {
    table: "INSERT INTO {} ({}, checksum) VALUES ({}?)".format(
        table, ", ".join(f'"{name}"' for name in (*names, *beside)), "?, " * len((*names, *beside))
    )
    for table, names in COLUMNS.items()
    for beside in [_BESIDE.get(table, ())]
}
"""By table, the statement that inserts a row."""

_IDS: Mapping[str, str] = {
    **dict.fromkeys(("document", "passage", "hyperedge"), "id"),
    "removal": "version",
    "entity": "key",
    "incidence": "entity || '/' || hyperedge || '/' || role",
    "entity_vector": "entity",
    "given": "number",
    "argument": "given || '/' || place",
}
"""By table, what tells a row from others."""

_COUNTED = (("document", "passages"), ("passage", "hyperedges"), ("hyperedge", "incidences"), ("given", "arguments"))
"""Tables, and for each the column that says how many rows of another belong to a row of it."""

_JOINED = ["\x1f".join(["%s"] * count) for count in range(1 + max(map(len, COLUMNS.values())))]
"""By how many values there are, the format that joins them: with one, a row takes half the time of ``str.join``."""

UNSOUND = "user-defined function raised exception"
"""What SQLite says of a query that came upon an unsound row."""


def define_checksums(connection: sqlite3.Connection) -> None:
    """Let statements on this connection use the functions that this module writes into them."""
    connection.create_function("row_checksum", -1, checksum, deterministic=True)
    connection.create_function("is_sound", -1, is_sound, deterministic=True)


def checksum(*values: str | int | float | bytes | None) -> int:
    """Of a row, by its values as they are stored: a whole number in a column of other ones would not do."""
    if isinstance(values[-1], bytes):
        return zlib.crc32((_JOINED[len(values) - 1] % values[:-1]).encode(), zlib.crc32(values[-1]))
    return zlib.crc32((_JOINED[len(values)] % values).encode())


def checksum_of(table: str) -> str:
    """SQL for the checksum of a row of ``table``."""
    return f"row_checksum({', '.join(_columns(table))})"


def sound(table: str) -> str:
    """SQL that is true of a row of ``table`` that is as it was written; the query fails at any other."""
    return f"is_sound({checked_columns(table)})"


def checked_columns(table: str) -> str:
    """SQL for what :func:`is_sound` takes of a row of ``table``: its checksum, and the columns that this is of."""
    return f"{table}.checksum, {', '.join(_columns(table))}"


def is_sound(written: int, *values: str | int | float | bytes | None) -> bool:
    """Whether a row is as it was written: raises ValueError at any that is not."""
    if written != checksum(*values):
        raise ValueError("a row is not as it was written")
    return True


def insert(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows, each of the values of all :data:`COLUMNS` of ``table`` and those beside, with their checksums."""
    checked = len(COLUMNS[table])
    connection.executemany(_INSERTIONS[table], ((*row, checksum(*row[:checked])) for row in rows))


def find_unsound(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Table and id of every row that is not as it was written, or has lost rows that belong to it, by table and id."""
    found = set()
    for table in COLUMNS:
        query = f"SELECT {_IDS[table]} FROM {table} WHERE checksum <> {checksum_of(table)}"
        found |= {(table, str(id)) for (id,) in connection.execute(query)}
    texts = "SELECT id FROM document WHERE text_checksum <> row_checksum(text)"
    found |= {("document", id) for (id,) in connection.execute(texts)}
    for table, column in _COUNTED:
        belonging = f"SELECT COUNT(*) FROM {column[:-1]} WHERE {column[:-1]}.{table} = {table}.number"
        query = f"SELECT {_IDS[table]} FROM {table} WHERE {column} <> ({belonging})"
        found |= {(table, str(id)) for (id,) in connection.execute(query)}
    tuples = "SELECT id FROM hyperedge WHERE kind = 'tuple' AND number NOT IN (SELECT number FROM given)"
    found |= {("hyperedge", id) for (id,) in connection.execute(tuples)}
    return sorted(found)


def _columns(table: str) -> list[str]:
    return [f'{table}."{name}"' for name in COLUMNS[table]]
