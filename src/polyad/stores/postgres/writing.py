"""Deletion of documents, and the key-value table, within a transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from polyad.protocols.store import DOCUMENT_NAMESPACES, ENTITY_VECTORS
from polyad.stores.postgres.connection import PostgresConnection
from polyad.stores.relational.connection import Connection

_RANGES = """
SELECT document.number, MIN(passage.number), MAX(passage.number), MIN(hyperedge.number), MAX(hyperedge.number)
FROM document LEFT JOIN passage ON passage.document = document.number
LEFT JOIN hyperedge ON hyperedge.passage = passage.number
WHERE document.id IN ({}) GROUP BY document.number
"""

_DELETE = "DELETE FROM {} USING unnest(?::bigint[], ?::bigint[]) AS range(first, last) WHERE {} BETWEEN first AND last"


def delete_documents(connection: PostgresConnection, document_ids: Sequence[str], new_version: int) -> None:
    """Delete documents with their passages and hyperedges, and entities that are in no hyperedge any more.

    The removed passages are logged under ``new_version``. Ids that do not exist are ignored.
    """
    ranges = connection.select_in(_RANGES, document_ids)
    numbers = [row[0] for row in ranges]
    passages = [row[1:3] for row in ranges if row[1] is not None]
    hyperedges = [row[3:5] for row in ranges if row[3] is not None]
    connection.execute("DELETE FROM document WHERE number = ANY(?)", [numbers])
    connection.insert_rows("removal", ((new_version, *bounds) for bounds in passages))
    _delete_ranges(connection, "passage", "number", passages)
    _delete_ranges(connection, "tuple", "number", hyperedges)
    _delete_ranges(connection, "argument", "tuple", hyperedges)
    _delete_ranges(connection, "hyperedge", "number", hyperedges)
    entities = {number for (number,) in _delete_ranges(connection, "incidence", "hyperedge", hyperedges, "entity")}
    unused = "number = ANY(?) AND NOT EXISTS (SELECT 1 FROM incidence WHERE entity = number)"
    deleted = connection.execute(f"DELETE FROM entity WHERE {unused} RETURNING key", [sorted(entities)])
    delete_values(connection, ENTITY_VECTORS, [key for (key,) in deleted])
    for namespace in DOCUMENT_NAMESPACES:
        delete_values(connection, namespace, document_ids)


def _delete_ranges(
    connection: PostgresConnection, table: str, column: str, ranges: Sequence[Sequence[int]], returning: str = ""
) -> list[tuple[int]]:
    """Delete database rows whose ``column`` is in one of the ranges; return their columns ``returning``."""
    if not ranges:
        return []
    bounds = [list(bound) for bound in zip(*ranges, strict=True)]
    query = _DELETE.format(table, f"{table}.{column}")
    cursor = connection.execute(f"{query} RETURNING {table}.{returning}" if returning else query, bounds)
    return cursor.fetchall() if returning else []


def replace_values(connection: PostgresConnection, namespace: str, values: Mapping[str, bytes | None]) -> None:
    """Store key-value pairs of a namespace, within a transaction; None deletes a key."""
    delete_values(connection, namespace, [key for key, value in values.items() if value is None])
    # Sorted: two transactions that lock rows in the same order do not wait for each other in a circle.
    rows = sorted((_build_id(namespace, key), key, value) for key, value in values.items() if value is not None)
    if rows:
        connection.execute(
            "INSERT INTO value (id, namespace, key, value) "
            "SELECT id, ?, key, value FROM unnest(?::bytea[], ?::text[], ?::bytea[]) AS item(id, key, value) "
            "ON CONFLICT (id) DO UPDATE SET value = excluded.value",
            [namespace, *(list(column) for column in zip(*rows, strict=True))],
        )


def delete_values(connection: PostgresConnection, namespace: str, keys: Iterable[str]) -> None:
    """Delete the values with these keys from a namespace; does not commit."""
    if ids := sorted(_build_id(namespace, key) for key in keys):
        connection.execute("DELETE FROM value WHERE id = ANY(?)", [ids])


def select_values(connection: Connection, namespace: str, keys: Sequence[str] | None) -> dict[str, bytes]:
    """Return stored key-value pairs of a namespace; all of them if ``keys`` is None."""
    if keys is None:
        return dict(connection.execute("SELECT key, value FROM value WHERE namespace = ?", [namespace]).fetchall())
    ids = [_build_id(namespace, key) for key in keys]
    return dict(connection.execute("SELECT key, value FROM value WHERE id = ANY(?)", [ids]).fetchall())


def _build_id(namespace: str, key: str) -> bytes:
    return hashlib.sha256(f"{namespace}\x00{key}".encode()).digest()
