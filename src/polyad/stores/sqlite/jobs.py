"""The queue of jobs of an index in a folder: a SQLite file of its own beside the index."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from polyad.errors import IndexMismatchError
from polyad.stores.relational.connection import Connection
from polyad.stores.relational.jobs import RelationalJobQueue
from polyad.stores.sqlite.connection import SqliteConnection
from polyad.stores.sqlite.database import SqliteDatabase, create_tables, has_tables, run_script
from polyad.text.files import read_package_file

T = TypeVar("T")

JOBS_FILE_NAME = "jobs.sqlite"

_VERSION = 1
_REMEDY = "delete it; its jobs have to be sent again"


class SqliteJobQueue(RelationalJobQueue):
    """A queue of jobs in a SQLite file, which is created by the first job.

    Args:
        path: Path of the file.
    """

    _now = "(julianday('now') - 2440587.5) * 86400.0"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opening = threading.Lock()
        self._database: SqliteDatabase | None = None

    def _change(self, change: Callable[[Connection], T]) -> T:
        with self._open().writing() as connection:
            return change(connection)

    def _select(self, query: str, parameters: Sequence[Any]) -> list[Any]:
        if not self._path.exists():
            return []
        with self._open().reading() as connection:
            return connection.execute(query, parameters).fetchall()

    def _open(self) -> SqliteDatabase:
        with self._opening:
            if self._database is None:
                if not self._path.exists() or not has_tables(self._path):  # a file of another user can be read
                    create_tables(self._path, _create, _REMEDY)
                self._database = SqliteDatabase(self._path, _REMEDY)
                with self._database.reading() as connection:
                    [(version,)] = connection.execute("PRAGMA user_version")
                if version != _VERSION:
                    raise IndexMismatchError(f"{str(self._path)!r} has version {version} of a queue; {_REMEDY}")
            return self._database

    def close(self) -> None:
        """Close the file; no other method may be called afterwards."""
        if self._database is not None:
            self._database.close()


def _create(connection: SqliteConnection) -> None:
    run_script(connection, read_package_file("polyad.stores.sqlite", "jobs.sql"))
    connection.execute(f"PRAGMA user_version = {_VERSION}")
