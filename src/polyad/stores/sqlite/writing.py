"""Deletion of documents, within a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from polyad.protocols.store import DOCUMENT_NAMESPACES, ENTITY_VECTORS
from polyad.stores.sqlite.rows import SqliteConnection, delete_values


def delete_documents(connection: SqliteConnection, document_ids: Sequence[str], new_version: int) -> None:
    """Delete documents with their passages and hyperedges, and entities that are in no hyperedge any more.

    The removed passages are logged under ``new_version``. Ids that do not exist are ignored.
    """
    for document_id in document_ids:
        row = connection.execute("SELECT number FROM document WHERE id = ?", [document_id]).fetchone()
        if row is None:
            continue
        (number,) = row
        entities = connection.execute(
            "SELECT DISTINCT incidence.entity FROM passage JOIN hyperedge ON hyperedge.passage = passage.number "
            "JOIN incidence ON incidence.hyperedge = hyperedge.number WHERE passage.document = ?",
            [number],
        ).fetchall()
        connection.execute(
            "INSERT INTO removal SELECT *, row_checksum(version, low, high) FROM (SELECT ? AS version, "
            "MIN(number) AS low, MAX(number) AS high FROM passage WHERE document = ? GROUP BY document)",
            [new_version, number],
        )
        connection.execute("DELETE FROM document WHERE number = ?", [number])
        for namespace in DOCUMENT_NAMESPACES:
            delete_values(connection, namespace, [document_id])
        unused = "FROM entity WHERE number IN ({}) AND NOT EXISTS (SELECT 1 FROM incidence WHERE entity = number)"
        keys = [key for (key,) in connection.select_in(f"SELECT key {unused}", (number for (number,) in entities))]
        connection.executemany("DELETE FROM entity WHERE key = ?", ((key,) for key in keys))
        delete_values(connection, ENTITY_VECTORS, keys)
