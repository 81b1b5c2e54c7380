"""Replies of language models in a file of their own, which outlives the index they were bought for.

The file has a format of its own: an index may be made again, or be of another format, and what was paid for is still
there. Several indexes may share one, at the same time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from polyad.errors import IndexMismatchError, StoreError
from polyad.model import Usage
from polyad.protocols.components import Reply
from polyad.stores.sqlite.database import Database, lay_out, require_length
from polyad.stores.sqlite.rows import as_written, select_in

REPLIES_FILE_NAME = "replies.sqlite"

_FORMAT_VERSION = 1
_OTHER_FILE = "name another file with --replies"
_REMEDY = f"restore it from a copy, or {_OTHER_FILE}"
_SCHEMA = "CREATE TABLE reply (key TEXT PRIMARY KEY, text TEXT NOT NULL, truncated INTEGER NOT NULL) WITHOUT ROWID"
_THOUGHTS = "CREATE TABLE IF NOT EXISTS thoughts (key TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"
"""Of replies that have some: made with the first, so that a file of earlier times is of the same format."""


class SqliteReplies:
    """The replies in a file, which is made when missing; implements :class:`polyad.protocols.store.Replies`.

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
            thoughts: dict[str, str] = {}
            if sound and _has_thoughts(connection):
                found = select_in(connection, "SELECT key, text FROM thoughts WHERE key IN ({})", keys)
                thoughts = dict(as_written(found, str, str))
        return {
            key: Reply(text, Usage(), cached=True, truncated=bool(cut), thoughts=thoughts.get(key, ""))
            for key, text, cut in sound
        }

    def keep(self, replies: Iterable[tuple[str, Reply]]) -> None:
        """Keep replies by their keys, in place of earlier ones; all in one transaction."""
        kept = list(replies)
        thoughts = [(key, reply.thoughts) for key, reply in kept if reply.thoughts]
        with self._changing([key for key, _ in kept]) as connection:
            if connection is None:
                return
            rows = ((key, reply.text, reply.truncated) for key, reply in kept)
            connection.executemany("INSERT OR REPLACE INTO reply VALUES (?, ?, ?)", rows)
            if thoughts:
                connection.execute(_THOUGHTS)
                connection.executemany("INSERT OR REPLACE INTO thoughts VALUES (?, ?)", thoughts)

    def forget(self, keys: Iterable[str]) -> None:
        """Have some asked for again."""
        with self._changing(list(keys)):
            pass

    def close(self) -> None:
        """Release the file, which cannot be used afterwards."""
        if self._database is not None:
            self._database.close()

    @contextmanager
    def _changing(self, keys: Sequence[str]) -> Iterator[sqlite3.Connection | None]:
        """One transaction, begun by forgetting what is known by ``keys``; None where nothing may be written."""
        if self._database is None or self._database.is_read_only:
            yield None
            return
        with self._database.writing() as connection:
            for table in ("reply", "thoughts") if _has_thoughts(connection) else ("reply",):
                connection.executemany(f"DELETE FROM {table} WHERE key = ?", ((key,) for key in keys))
            yield connection

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


def _has_thoughts(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'thoughts'").fetchone() is not None


def _make_table(connection: sqlite3.Connection) -> None:
    connection.execute(_SCHEMA)
    connection.execute(f"PRAGMA user_version = {_FORMAT_VERSION}")
