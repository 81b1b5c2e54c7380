"""What runs that build anew have done, so that one that was stopped goes on where it was.

The table is there only while such a run is unfinished, so that a finished index holds nothing of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from polyad.stores.sqlite.rows import as_written

_MAKE = (
    "CREATE TABLE IF NOT EXISTS redone (run TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (run, name)) WITHOUT ROWID"
)


def has_redone(connection: sqlite3.Connection) -> bool:
    """Whether a run is unfinished."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'redone'")
    return found.fetchone() is not None


def select_redone(connection: sqlite3.Connection, run: str) -> set[str]:
    """What that run has done."""
    if not has_redone(connection):
        return set()
    return {name for (name,) in as_written(connection.execute("SELECT name FROM redone WHERE run = ?", [run]), str)}


def insert_redone(connection: sqlite3.Connection, run: str, names: Iterable[str]) -> None:
    """Note that it has done more."""
    connection.execute(_MAKE)
    connection.executemany("INSERT OR IGNORE INTO redone VALUES (?, ?)", ((run, name) for name in names))


def delete_redone(connection: sqlite3.Connection, run: str) -> None:
    """Forget that run, and the table if nothing is left in it."""
    connection.execute("DELETE FROM redone WHERE run = ?", [run])
    if connection.execute("SELECT 1 FROM redone LIMIT 1").fetchone() is None:
        connection.execute("DROP TABLE redone")
