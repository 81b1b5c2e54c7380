"""The key-value table of an index, and a file that has only this table: cached replies of language models.

The file of replies has a format of its own, so that replies survive when an index is deleted or built again in another
format. Several indexes may share the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from polyad.errors import IndexMismatchError, StoreError
from polyad.protocols.store import Damage
from polyad.stores.relational.rows import check_types
from polyad.stores.sqlite.connection import SqliteConnection
from polyad.stores.sqlite.database import SqliteDatabase, check_path, create_tables, run_script
from polyad.stores.sqlite.integrity import find_value_damage, repair_values
from polyad.text.files import make_folder, read_package_file

REPLIES_FILE_NAME = "replies.sqlite"

_FORMAT_VERSION = 2
_OTHER_FILE = "name another file with --replies"
_REMEDY = f"restore it from a copy, or {_OTHER_FILE}"


def read_value_schema() -> str:
    """Return the SQL statements that create the table of key-value pairs."""
    return read_package_file("polyad.stores.sqlite", "values.sql")


class SqliteValueFile:
    """A SQLite file of key-value pairs that several indexes may share, such as cached replies.

    Implements :class:`polyad.protocols.store.ValueStore`.

    Safe for several threads and processes. A read-only file is read, and values are not stored.

    Args:
        path: Path of the file, which is created if missing.
        is_required: Whether an error is raised if the file is missing and cannot be created. If False, no values are
            stored in this case.

    Raises:
        IndexMismatchError: the file has another format.
        StoreError: the file is damaged, belongs to another program or cannot be created, or the path is too long.
    """

    def __init__(self, path: Path, *, is_required: bool = True) -> None:
        self._database: SqliteDatabase | None = None
        check_path(path, "--replies")
        if not is_required and not path.exists() and not os.access(path.parent, os.W_OK):
            return
        try:
            make_folder(path.parent)
        except OSError as error:
            raise StoreError(f"cannot make the directory {str(path.parent)!r}: {error.strerror}") from error
        if not path.exists() or os.access(path, os.W_OK):
            create_tables(path, _create_tables, _REMEDY)
        self._database = SqliteDatabase(path, _REMEDY)
        try:
            _check_format(self._database)
        except BaseException:
            self.close()
            raise

    def get_values(self, namespace: str, keys: Sequence[str] | None = None) -> dict[str, bytes]:
        """Return the values of a namespace in a dictionary by key; all values if ``keys`` is None."""
        if not self._database:
            return {}
        with self._database.reading() as connection:
            return connection.select_values(namespace, keys)

    def put_values(
        self, namespace: str, values: Mapping[str, bytes | None] | None, *, is_optional: bool = False
    ) -> None:
        """Store the key-value pairs ``values`` in a namespace, in one transaction; nothing in a read-only file.

        A key whose value is None is deleted; ``values=None`` deletes all keys of the namespace.
        """
        if self._database and not self._database.is_read_only:
            self._database.put_values(namespace, values, is_optional=is_optional)

    def has_values(self) -> bool:
        """Return whether the file contains any value."""
        if not self._database:
            return False
        with self._database.reading() as connection:
            return bool(connection.execute("SELECT 1 FROM value LIMIT 1").fetchall())

    def verify(self) -> list[Damage]:
        """Return a sorted list with a :class:`Damage` for each damaged value of the file."""
        if not self._database:
            return []
        with self._database.reading() as connection:
            return find_value_damage(connection, read_value_schema())

    def repair(self) -> None:
        """Delete damaged derived values, such as cached replies that cannot be parsed."""
        if self._database:
            with self._database.writing() as connection:
                repair_values(connection)

    def close(self) -> None:
        """Close the database file; no other method may be called afterwards."""
        if self._database:
            self._database.close()


def _create_tables(connection: SqliteConnection) -> None:
    run_script(connection, read_value_schema())
    connection.execute(f"PRAGMA user_version = {_FORMAT_VERSION}")


def _check_format(database: SqliteDatabase) -> None:
    with database.reading() as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        [(version,)] = check_types(connection.execute("PRAGMA user_version"), int)
    if not version or not tables & {"value", "reply"}:  # "reply": the table of format 1
        raise StoreError(f"{str(database.path)!r} belongs to another program; {_OTHER_FILE}")
    if version != _FORMAT_VERSION:
        raise IndexMismatchError(
            f"{str(database.path)!r} has format {version} of replies, this polyad reads {_FORMAT_VERSION}; "
            f"{'upgrade polyad, or ' if version > _FORMAT_VERSION else ''}{_OTHER_FILE}"
        )
