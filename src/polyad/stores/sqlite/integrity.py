"""Invariants of the files of an index: one function for each yields what violates it, and derived rows are repaired."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np

from polyad.protocols.store import (
    DOCUMENT_NAMESPACES,
    ORIGINALS,
    REBUILDS,
    REPLIES,
    VECTOR_NAMESPACES,
    WITHDRAWN,
    Damage,
    Remedy,
)
from polyad.stores.relational.rows import COLUMNS
from polyad.stores.sqlite.connection import compute_checksum

_Check = Callable[[sqlite3.Connection], Iterator[Damage]]
"""A function that checks one invariant of a database file and yields a Damage for each violation."""

_NORM_TOLERANCE: Final = 0.01
"""Accepted difference of the length of a vector from 1: some endpoints return rounded vectors."""

_DERIVED: Final = (*VECTOR_NAMESPACES, WITHDRAWN, REPLIES)
"""Namespaces of values that can be deleted, because they are computed, or requested from a model, again."""

_BATCH: Final = 1024
"""Vectors in memory while their lengths are computed."""

_IDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("document", "passage", "hyperedge"), "id"),
    "removal": "version",
    "entity": "key",
    "incidence": "entity || '/' || hyperedge || '/' || role",
    "tuple": "number",
    "argument": "tuple || '/' || place",
    "value": "namespace || '/' || key",
}
"""SQL expression of each table that identifies a row in a report."""

_PARENTS: Final[Mapping[str, tuple[str, str]]] = {
    "document": ("number", "document"),
    "passage": ("document", "document"),
    "hyperedge": ("passage", "passage"),
    "incidence": ("hyperedge", "hyperedge"),
    "tuple": ("number", "hyperedge"),
    "argument": ("tuple", "hyperedge"),
    "entity": ("number", "entity"),
}
"""Column of each table that leads to the document of a row, and the table whose primary key it holds."""

_DOCUMENTS: Final[Mapping[str, str]] = {
    "document": "SELECT id FROM document WHERE number = ?",
    "passage": "SELECT document.id FROM passage JOIN document ON document.number = passage.document "
    "WHERE passage.number = ?",
    "hyperedge": "SELECT document.id FROM hyperedge JOIN passage ON passage.number = hyperedge.passage "
    "JOIN document ON document.number = passage.document WHERE hyperedge.number = ?",
    "entity": "SELECT DISTINCT document.id FROM incidence JOIN hyperedge ON hyperedge.number = incidence.hyperedge "
    "JOIN passage ON passage.number = hyperedge.passage JOIN document ON document.number = passage.document "
    "WHERE incidence.entity = ?",
}
"""Queries for the documents of a row, by the table of :data:`_PARENTS`."""

_REFERENCES: Final = (
    ("passage", "document", "document"),
    ("hyperedge", "passage", "passage"),
    ("incidence", "hyperedge", "hyperedge"),
    ("incidence", "entity", "entity"),
    ("tuple", "number", "hyperedge"),
    ("argument", "tuple", "tuple"),
)
"""Foreign keys: table, column and the table that it refers to, parents before their children."""

_COUNTED: Final = (
    ("document", "passages"),
    ("passage", "hyperedges"),
    ("hyperedge", "incidences"),
    ("tuple", "arguments"),
)
"""Pairs of a table and its column that counts the rows of another table that belong to a row."""

_MAXIMA: Final = (
    ("document", "SELECT MAX(number) FROM document"),
    ("passage", "SELECT MAX(number) FROM passage UNION ALL SELECT MAX(last_passage) FROM removal"),
    ("hyperedge", "SELECT MAX(number) FROM hyperedge"),
    ("entity", "SELECT MAX(number) FROM entity"),
)
"""Queries for the primary keys that were used, by table."""

_VERSIONS: Final = "SELECT MAX(version) FROM document UNION ALL SELECT MAX(version) FROM state"

_SEAL: Final = (
    "SELECT row_checksum((SELECT GROUP_CONCAT(key || '=' || value) FROM (SELECT key, value FROM manifest "
    "WHERE key NOT IN ('version', 'checksum') ORDER BY key)), calls, prompt_tokens, completion_tokens, cost) "
    "FROM account"
)

_ORPHANED: Final = "NOT EXISTS (SELECT 1 FROM incidence WHERE incidence.entity = entity.number)"

_COMMENT_OR_SPACE: Final = re.compile(r"--[^\n]*|\s+")


def seal_manifest(connection: sqlite3.Connection) -> None:
    """Store a checksum over the index's fixed properties and the totals of its language-model usage."""
    [(checksum,)] = connection.execute(_SEAL)
    connection.execute("INSERT OR REPLACE INTO manifest VALUES ('checksum', ?)", [str(checksum)])


# Invariants


def check_structure(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield a Damage for each broken page of the file and each SQL index that differs from its table."""
    for (message,) in connection.execute("PRAGMA integrity_check(1000)"):
        if message != "ok":
            is_index = " index " in message and ("missing from" in message or "entries" in message)
            yield Damage("structure", "file", "", str(message), remedy="repair" if is_index else "restore")


def check_tables(connection: sqlite3.Connection, schema: str) -> Iterator[Damage]:
    """Yield a Damage for each table and SQL index whose definition differs from the SQL in ``schema``."""
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'sqlite_sequence'"
    expected = sqlite3.connect(":memory:")
    expected.executescript(schema)
    tables, defined = (
        {name: _COMMENT_OR_SPACE.sub("", sql) for name, sql in one.execute(query)} for one in (connection, expected)
    )
    expected.close()
    for name in sorted(tables.keys() | defined.keys()):
        if tables.get(name) != defined.get(name):
            yield Damage("tables", "file", name, "is not defined as in this format", remedy="restore")


def check_checksums(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield a Damage for each row whose values do not match the checksum stored in the row."""
    for table, names in COLUMNS.items():
        if table == "value":
            continue
        columns = ", ".join(f'"{name}"' for name in names)
        parent, _ = _PARENTS.get(table, ("NULL", ""))
        for id, owner, checksum, *values in connection.execute(
            f"SELECT {_IDS[table]}, {parent}, checksum, {columns} FROM {table}"
        ):
            if not _is_sound(checksum, values):
                yield from _report(connection, "checksums", table, id, owner, "was changed since it was written")
    for id, number, checksum, text in connection.execute("SELECT id, number, text_checksum, text FROM document"):
        if not _is_sound(checksum, [text]):
            yield from _report(connection, "checksums", "document", id, number, "its text was changed")


def check_counts(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield a Damage for each row with missing or extra child rows, such as a document without a passage."""
    for table, column in _COUNTED:
        count = f"(SELECT COUNT(*) FROM {column[:-1]} WHERE {column[:-1]}.{table} = {table}.number)"
        query = f"SELECT {_IDS[table]}, {_PARENTS[table][0]}, {column}, {count} AS found FROM {table} "
        for id, owner, expected, number in connection.execute(f"{query} WHERE {column} <> found"):
            problem = f"has {number} {column} where {expected} were written"
            yield from _report(connection, "counts", table, id, owner, problem)
    missing = "SELECT id, passage FROM hyperedge WHERE kind = 'tuple' AND number NOT IN (SELECT number FROM tuple)"
    for id, owner in connection.execute(missing):
        yield from _report(connection, "counts", "hyperedge", id, owner, "has no relation and arguments")


def check_references(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield a Damage for each row whose parent row is missing, such as a passage without its document."""
    for table, column, parent in _REFERENCES:
        missing = f"NOT EXISTS (SELECT 1 FROM {parent} WHERE {parent}.number = {table}.{column})"
        for id, owner in connection.execute(f"SELECT {_IDS[table]}, {_PARENTS[table][0]} FROM {table} WHERE {missing}"):
            if parent == "entity":  # the key of the entity is lost
                yield from _report(connection, "references", table, id, owner, "its entity is missing")
            else:
                yield Damage("references", table, str(id), f"its {parent} is missing", remedy="repair")


def check_vectors(connection: sqlite3.Connection, dimension: int) -> Iterator[Damage]:
    """Yield a Damage for each vector with a wrong length, or with a norm other than 1 (0 for a blank text)."""
    for table in ("passage", "hyperedge"):
        cursor = connection.execute(f"SELECT id, {_PARENTS[table][0]}, vector FROM {table}")
        while rows := cursor.fetchmany(_BATCH):
            for id, owner, vector in rows:
                size = len(vector) if isinstance(vector, bytes) else 0
                if size != 4 * dimension:
                    problem = f"has a vector of {size} bytes; expected {4 * dimension}"
                    yield from _report(connection, "vectors", table, id, owner, problem)
            whole = [row for row in rows if isinstance(row[2], bytes) and len(row[2]) == 4 * dimension]
            vectors = np.frombuffer(b"".join(row[2] for row in whole), dtype="<f4").reshape(-1, dimension)
            norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
            is_unit = (np.abs(norms - 1) <= _NORM_TOLERANCE) | (norms == 0)
            for place in np.flatnonzero(~is_unit):
                id, owner, _ = whole[place]
                problem = f"has a vector of norm {norms[place]:.3g}; expected 1"
                yield from _report(connection, "vectors", table, id, owner, problem)


def check_spans(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield a Damage for each passage that is not at its offsets in the document, and for wrong hyperedge offsets."""
    texts = connection.execute("SELECT number, text FROM document ORDER BY number")
    rows = connection.execute('SELECT id, document, text, "start", "end" FROM passage ORDER BY document')
    passages = groupby(rows, key=itemgetter(1))
    group = next(passages, None)
    for number, text in texts:
        while group is not None and group[0] < number:
            group = next(passages, None)
        if group is None or group[0] != number:
            continue
        for id, owner, passage, start, end in group[1]:
            if not _is_span(start, end, len(text)) or text[start:end] != passage:
                yield from _report(connection, "spans", "passage", id, owner, "is not the text of its span")
    spans = 'SELECT hyperedge.id, passage, passage.text, hyperedge."start", hyperedge."end" FROM hyperedge '
    for id, owner, passage, start, end in connection.execute(f"{spans} JOIN passage ON passage.number = passage"):
        if not _is_span(start, end, len(passage)):
            yield from _report(connection, "spans", "hyperedge", id, owner, "its span is outside of its passage")


def check_primary_keys(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield a Damage for each table in which a primary key could be reused, since SQLite has not recorded it."""
    recorded = dict(connection.execute("SELECT name, seq FROM sqlite_sequence"))
    for table, query in _MAXIMA:
        used = max((number or 0 for (number,) in connection.execute(query)), default=0)
        if not isinstance(recorded.get(table, 0), int) or recorded.get(table, 0) < used:
            yield Damage("primary keys", table, str(used), "is not recorded as used", remedy="repair")


def check_versions(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield a Damage if the store version is lower than the version of a document or of a logged removal."""
    [(version,)] = connection.execute("SELECT value FROM manifest WHERE key = 'version'")
    last = max(number or 0 for (number,) in connection.execute(_VERSIONS))
    if not str(version).isdecimal() or int(version) < last:
        yield Damage("versions", "manifest", "version", f"is {version!r}; expected {last} or more", remedy="repair")


def check_entities(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield a Damage for each entity that no hyperedge contains."""
    for (key,) in connection.execute(f"SELECT key FROM entity WHERE {_ORPHANED}"):
        yield Damage("entities", "entity", str(key), "has no incidence", remedy="repair")


def check_values(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield a Damage for each key-value pair that was altered, whose document is missing, or that cannot be parsed."""
    for _, namespace, key, problem in _find_damaged_values(connection):
        remedy = _find_remedy(namespace, problem)
        yield Damage("values", namespace, key, problem, key if remedy == "index" else "", remedy)


def check_usage(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield a Damage if the manifest or the totals of language-model usage do not match their checksum."""
    stored = connection.execute("SELECT value FROM manifest WHERE key = 'checksum'").fetchone()
    [(checksum,)] = connection.execute(_SEAL)
    if stored is None or stored[0] != str(checksum):  # without a checksum, no later damage would be found
        problem = "embedder, extractor or usage were changed; `polyad stats` prints what is accepted by a repair"
        yield Damage("usage", "manifest", "", problem, remedy="repair")


def find_index_damage(connection: sqlite3.Connection, schema: str, dimension: int) -> list[Damage]:
    """Return a sorted list of all damage in an index file: wrong tables, checksums, references, vectors and so on.

    Args:
        connection: The file, in a read transaction.
        schema: SQL that creates the tables.
        dimension: Length of the vectors.
    """
    return _find_damage(
        connection,
        *(partial(check_tables, schema=schema), check_structure, check_checksums, check_counts, check_references),
        *(partial(check_vectors, dimension=dimension), check_spans, check_primary_keys, check_versions),
        *(check_entities, check_values, check_usage),
    )


def find_value_damage(connection: sqlite3.Connection, schema: str) -> list[Damage]:
    """Return a sorted list of all damage in a file of key-value pairs whose tables should be as in ``schema``."""
    return _find_damage(connection, partial(check_tables, schema=schema), check_structure, check_values)


def _find_damage(connection: sqlite3.Connection, *checks: _Check) -> list[Damage]:
    damage: set[Damage] = set()
    connection.text_factory = lambda value: value.decode("utf-8", "surrogateescape")  # a damaged text may be no UTF-8
    try:
        for check in checks:
            try:
                damage.update(check(connection))
            except (sqlite3.DatabaseError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                damage.add(Damage("structure", "file", "", f"cannot be read: {error}", remedy="restore"))
    finally:
        connection.text_factory = str
    return sorted(damage)


def repair(connection: sqlite3.Connection, min_version: int) -> None:
    """Delete orphaned rows and damaged derived values, and set the store version to at least ``min_version``.

    Args:
        connection: The file of an index.
        min_version: Lowest version of the index afterwards, which no snapshot can be advanced to.
    """
    repair_values(connection)
    for table, column, parent in _REFERENCES:
        if parent != "entity":
            connection.execute(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT number FROM {parent})")
    connection.execute(f"DELETE FROM entity WHERE {_ORPHANED}")
    for table, query in _MAXIMA:
        used = max((number or 0 for (number,) in connection.execute(query)), default=0)
        connection.execute("UPDATE sqlite_sequence SET seq = MAX(?, seq) WHERE name = ?", [used, table])
    connection.execute("DELETE FROM removal")
    connection.execute("DELETE FROM state")
    last = max(number or 0 for (number,) in connection.execute(_VERSIONS))
    connection.execute("UPDATE manifest SET value = ? WHERE key = 'version'", [max(min_version, last)])
    seal_manifest(connection)


def repair_values(connection: sqlite3.Connection) -> None:
    """Rebuild SQLite's indexes and delete damaged values that can be computed again."""
    connection.execute("REINDEX")
    damaged = list(_find_damaged_values(connection))
    numbers = [(number,) for number, name, _, problem in damaged if _find_remedy(name, problem) == "repair"]
    connection.executemany("DELETE FROM value WHERE number = ?", numbers)


_CHANGED: Final = "was changed since it was written"


def _find_damaged_values(connection: sqlite3.Connection) -> Iterator[tuple[int, str, str, str]]:
    """Yield ``(primary key, namespace, key, problem)`` of each damaged value."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    documents = {id for (id,) in connection.execute("SELECT id FROM document")} if "document" in tables else set()
    rows = connection.execute("SELECT number, checksum, namespace, key, value FROM value")
    for number, checksum, namespace, key, value in rows:
        if namespace in DOCUMENT_NAMESPACES and key not in documents:
            yield number, namespace, str(key), "its document is missing"
        elif not _is_sound(checksum, [namespace, key, value]):
            yield number, str(namespace), str(key), _CHANGED
        elif namespace == REPLIES and not _is_reply(value):
            yield number, namespace, key, "cannot be read"


def _find_remedy(namespace: str, problem: str) -> Remedy:
    """Return the remedy for a damaged value: "repair" (delete), "index" the document again, or "restore" a backup."""
    if problem != _CHANGED or namespace in _DERIVED or namespace.startswith(REBUILDS):
        return "repair"
    return "index" if namespace == ORIGINALS else "restore"


def _is_reply(value: bytes) -> bool:
    try:
        fields = json.loads(value)
        return isinstance(fields["text"], str) and isinstance(fields["truncated"], bool)
    except (ValueError, LookupError, TypeError):
        return False


def _is_sound(checksum: object, values: Sequence[Any]) -> bool:
    try:
        return checksum == compute_checksum(*values)
    except (ValueError, TypeError):  # a text that is no UTF-8
        return False


def _is_span(start: object, end: object, length: int) -> bool:
    return isinstance(start, int) and isinstance(end, int) and 0 <= start <= end <= length


def _report(
    connection: sqlite3.Connection, invariant: str, table: str, id: object, parent_key: object, problem: str
) -> Iterator[Damage]:
    """Yield a Damage for a row, once for each document that contains its parent row (primary key ``parent_key``).

    A row without a document is derived or orphaned, and can be deleted.
    """
    _, parent = _PARENTS.get(table, ("", ""))
    documents = [str(key) for (key,) in connection.execute(_DOCUMENTS[parent], [parent_key])] if parent else []
    for document_id in documents:
        yield Damage(invariant, table, str(id), problem, document_id, "index")
    if not documents:
        yield Damage(invariant, table, str(id), problem, remedy="repair")
