"""Vectors that wait for the rest of their document: an interrupted run need not make them again.

Their table is there only while something waits, so that a finished index holds nothing of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence

from polyad.model import FloatArray
from polyad.stores.sqlite.rows import as_written, blob_of, matrix_from, select_in

MOST = 100_000
"""Vectors that wait at once, those of about 25 MB of text; of more the earliest are given up."""

_MAKE = (
    "CREATE TABLE IF NOT EXISTS pending_vector (number INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, "
    "document TEXT NOT NULL, vector BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS pending_of_document ON pending_vector (document)",
)


def is_there(connection: sqlite3.Connection) -> bool:
    """Whether there is a table of what waits."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'pending_vector'")
    return found.fetchone() is not None


def select_pending(connection: sqlite3.Connection, digests: Sequence[str], dimension: int) -> dict[str, FloatArray]:
    """The vectors that wait, by the digest of their text."""
    if not is_there(connection):
        return {}
    rows = as_written(
        select_in(connection, "SELECT digest, vector FROM pending_vector WHERE digest IN ({})", digests), str, bytes
    )
    vectors = matrix_from([blob for _, blob in rows], dimension)
    return {digest: vector for (digest, _), vector in zip(rows, vectors, strict=True)}


def insert_pending(connection: sqlite3.Connection, vectors: Mapping[str, tuple[str, FloatArray]]) -> None:
    """Have vectors wait: by the digest of the text of each, the id of its document and the vector."""
    for statement in _MAKE:
        connection.execute(statement)
    connection.executemany(
        "INSERT OR IGNORE INTO pending_vector (digest, document, vector) VALUES (?, ?, ?)",
        ((digest, document_id, blob_of(vector)) for digest, (document_id, vector) in vectors.items()),
    )
    connection.execute(
        "DELETE FROM pending_vector WHERE number <= (SELECT MAX(number) FROM pending_vector) - ?", [MOST]
    )


def delete_pending(connection: sqlite3.Connection, document_ids: Iterable[str]) -> None:
    """Forget what waits for these documents; what is written next takes its place in the file."""
    if is_there(connection):
        connection.executemany("DELETE FROM pending_vector WHERE document = ?", ((id,) for id in document_ids))


def delete_other_pending(connection: sqlite3.Connection, document_ids: Container[str]) -> None:
    """Forget what waits for other documents than these, and the table if nothing is left in it, if there is one."""
    if not is_there(connection):
        return
    waiting = [id for (id,) in connection.execute("SELECT DISTINCT document FROM pending_vector").fetchall()]
    delete_pending(connection, [id for id in waiting if id not in document_ids])
    if connection.execute("SELECT 1 FROM pending_vector LIMIT 1").fetchone() is None:
        connection.execute("DROP TABLE pending_vector")
