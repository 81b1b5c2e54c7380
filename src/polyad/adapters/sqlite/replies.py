"""Replies of language models in a file of their own, which outlives the index they were bought for.

The file has a format of its own: an index may be made again, or be of another format, and what was paid for is still
there. Several indexes may share one, at the same time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from polyad.adapters.sqlite.database import Database, lay_out, require_length
from polyad.adapters.sqlite.rows import as_written, select_in
from polyad.errors import IndexMismatchError, StoreError
from polyad.model import Usage
from polyad.protocols import Reply

REPLIES_FILE_NAME = "replies.sqlite"

_FORMAT_VERSION = 1
_OTHER_FILE = "name another file with --replies"
_REMEDY = f"restore it from a copy, or {_OTHER_FILE}"
_SCHEMA = "CREATE TABLE reply (key TEXT PRIMARY KEY, text TEXT NOT NULL, truncated INTEGER NOT NULL) WITHOUT ROWID"


class SqliteReplies:
    """The replies in a file, which is made when missing; implements :class:`polyad.storage.Replies`.

    Safe to use from several threads and processes. A file that may not be written is read, and nothing is kept.

    Args:
        path: Of the file.
        must_keep: Whether it is an error that there is no file and none may be made; else nothing is kept.

    Raises:
        IndexMismatchError: the file is of another format.
        StoreError: it is damaged, belongs to another program, cannot be made, or its path is too long.
    """

    def __init__(self, path: Path, *, must_keep: bool = True) -> None:
        self._database: Database | None = None
        require_length(path, "--replies")
        if not must_keep and not path.exists() and not os.access(path.parent, os.W_OK):
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the directory {str(path.parent)!r}: {error.strerror}") from error
        if not path.exists() or os.access(path, os.W_OK):
            lay_out(path, _make_table, _REMEDY)
        self._database = Database(path, _REMEDY)
        try:
            self._check(self._database)
        except BaseException:
            self.close()
            raise

    def known(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The replies that are here, by key."""
        if self._database is None:
            return {}
        with self._database.reading() as connection:
            rows = select_in(connection, "SELECT key, text, truncated FROM reply WHERE key IN ({})", keys)
            sound = as_written(rows, str, str, int)
        return {key: Reply(text, Usage(), cached=True, truncated=bool(cut)) for key, text, cut in sound}

    def keep(self, replies: Iterable[tuple[str, Reply]]) -> None:
        """Keep replies by their keys, in place of earlier ones; all in one transaction."""
        self._change(
            "INSERT OR REPLACE INTO reply VALUES (?, ?, ?)",
            ((key, reply.text, reply.truncated) for key, reply in replies),
        )

    def forget(self, keys: Iterable[str]) -> None:
        """Have some asked for again."""
        self._change("DELETE FROM reply WHERE key = ?", ((key,) for key in keys))

    def close(self) -> None:
        """Release the file, which cannot be used afterwards."""
        if self._database is not None:
            self._database.close()

    def _change(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        if self._database is not None and not self._database.is_read_only:
            with self._database.writing() as connection:
                connection.executemany(statement, values)

    @staticmethod
    def _check(database: Database) -> None:
        with database.reading() as connection:
            tables = connection.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'reply' AND type = 'table'"
            ).fetchall()
            [(version,)] = as_written(connection.execute("PRAGMA user_version"), int)
            if not tables or not version:
                raise StoreError(f"{str(database.path)!r} belongs to another program; {_OTHER_FILE}")
            if version != _FORMAT_VERSION:
                raise IndexMismatchError(
                    f"{str(database.path)!r} has format {version} of replies, this polyad reads {_FORMAT_VERSION}; "
                    f"{_OTHER_FILE}"
                )


def _make_table(connection: sqlite3.Connection) -> None:
    connection.execute(_SCHEMA)
    connection.execute(f"PRAGMA user_version = {_FORMAT_VERSION}")
