"""Brings an index of an earlier format to this one, in place.

Replies that were paid for go to their own file first; then everything else changes in one transaction. Numbers stay, so
the words need not be read again: a document's passages had consecutive ones before, too.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

from polyad.errors import StoreError
from polyad.model import Usage
from polyad.protocols.components import Reply
from polyad.stores.sqlite.checksums import checksum_of
from polyad.stores.sqlite.database import Database, run_script
from polyad.stores.sqlite.given import FILL
from polyad.stores.sqlite.replies import SqliteReplies
from polyad.text.files import read_package_file

EARLIER_FORMATS = (3, 4, 5)
"""What can be brought to the present format."""

_BEFORE_GIVEN = 5
"""The format that lacks no more than the tables of what was given as data."""

SCRIPTS = ("schema.sql", "given.sql", "lookups.sql")
"""What makes the tables of an index, in this order."""

_TABLES = ("manifest", "document", "passage", "hyperedge", "entity", "incidence", "entity_vector")
"""Those that are made anew and filled from what they were, each after those that it refers to."""

_NEW_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "document": {"version": "(SELECT value + 1 FROM manifest WHERE key = 'version')", "url": "''"}
    | {"metadata": "'{}'", "places": "'[]'", "text_checksum": "row_checksum(text)"}
    | {"passages": "(SELECT COUNT(*) FROM old_passage AS own WHERE own.document = old_document.number)"},
    "passage": {"page": "NULL", "heading": "''", "sheet": "''", "slide": "NULL"}
    | {"hyperedges": "(SELECT COUNT(*) FROM old_hyperedge AS own WHERE own.passage = old_passage.number)"},
    "hyperedge": {
        "incidences": "(SELECT COUNT(*) FROM old_incidence AS own WHERE own.hyperedge = old_hyperedge.number)"
    },
    "incidence": {"strength": "1.0"},
}
"""What rows hold, in SQL, where their format knew no such column."""

_log = logging.getLogger(__name__)


def migrate(path: Path, replies: Path, format_version: int) -> None:
    """Bring the index at ``path``, which is of an earlier format and may be written, to ``format_version``.

    Another process may do it at the same time: the second finds it done.

    Args:
        path: The index's file.
        replies: The file that its replies go to, which is made when missing.
        format_version: The present one.

    Raises:
        StoreError: a file is damaged, or cannot be written.
    """
    _log.warning("%r is of an earlier format and is converted, once; this may take a while", str(path))
    with closing(Database(path)) as database:
        _move_replies(database, replies)
        with database.writing() as connection, database.understanding():
            [(found,)] = connection.execute("SELECT value FROM manifest WHERE key = 'format_version'")
            if int(found) in EARLIER_FORMATS:
                if int(found) < _BEFORE_GIVEN:
                    _make_anew(connection)
                _add_given(connection)
                connection.execute("UPDATE manifest SET value = ? WHERE key = 'format_version'", [format_version])
                if connection.execute("PRAGMA foreign_key_check").fetchone():
                    raise ValueError("a row that refers to none")
        with suppress(StoreError), database.reading() as connection:
            connection.execute("ROLLBACK")
            if int(found) < _BEFORE_GIVEN:
                connection.execute("VACUUM")  # the space of the tables as they were


def _move_replies(database: Database, path: Path) -> None:
    """Put the usable replies into their file, in one transaction; they leave the index afterwards.

    An index of format 5 holds none.
    """
    with database.reading() as connection:
        if _columns(connection, "reply"):
            rows = connection.execute("SELECT key, text, truncated FROM reply WHERE text IS NOT NULL")
            with closing(SqliteReplies(path)) as replies:
                replies.keep((key, Reply(text, Usage(), truncated=bool(cut))) for key, text, cut in rows)


def _add_given(connection: sqlite3.Connection) -> None:
    """Add tuple arguments and lookup tables. The version stays, since snapshots do not change."""
    for script in SCRIPTS[1:]:
        run_script(connection, read_package_file("polyad.stores.sqlite", script))
    for statement in FILL:
        connection.execute(statement)


def _make_anew(connection: sqlite3.Connection) -> None:
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall():
        connection.execute(f"DROP INDEX {name}")
    for table in _TABLES:
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    for table, owner in (("passage", "document"), ("hyperedge", "passage"), ("incidence", "hyperedge")):
        connection.execute(f"CREATE INDEX old_{table}_by_owner ON old_{table} ({owner})")  # they are counted by it
    run_script(connection, read_package_file("polyad.stores.sqlite", SCRIPTS[0]))
    for table in _TABLES:
        _fill(connection, table)
    connection.execute(
        "UPDATE account SET (calls, prompt_tokens, completion_tokens, cost) = (SELECT COALESCE(SUM(calls), 0), "
        "COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0), COALESCE(SUM(cost), 0.0) FROM reply)"
    )
    for table in ("passage_words", "reply", *(f"old_{table}" for table in reversed(_TABLES))):
        connection.execute(f"DROP TABLE {table}")
    connection.execute("UPDATE manifest SET value = value + 1 WHERE key = 'version'")


def _fill(connection: sqlite3.Connection, table: str) -> None:
    old = _columns(connection, f"old_{table}")
    new = _columns(connection, table)
    columns = {name: f'"{name}"' if name in old else _NEW_COLUMNS[table][name] for name in new if name != "checksum"}
    values = ", ".join(f'{value} AS "{name}"' for name, value in columns.items())
    source = f"SELECT {values} FROM old_{table} ORDER BY 1"
    checksum = f", {checksum_of(table)}" if "checksum" in new else ""
    names = ", ".join(f'"{name}"' for name in (*columns, *(["checksum"] if checksum else [])))
    connection.execute(f"INSERT INTO {table} ({names}) SELECT *{checksum} FROM ({source}) AS {table}")


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?) ORDER BY cid", [table])]
