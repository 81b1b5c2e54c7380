"""The tables of an index, created and changed by numbered scripts."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from typing import Any

import psycopg

from polyad.errors import ConfigurationError, IndexMismatchError
from polyad.protocols.lookups import OLD_FORMAT_REMEDY

_LOCK = 0x706F6C79
"""Seed of the advisory lock that one process at a time holds to change the tables of a schema."""

_STATEMENT_END = re.compile(r"(?<=;)$", re.MULTILINE)
"""The end of a statement in a script; no other line ends with a semicolon."""


def list_migrations() -> list[tuple[int, str]]:
    """Return (number, SQL text) of each migration script, sorted by number."""
    scripts = (file for file in files("polyad.stores.postgres").joinpath("migrations").iterdir())
    return sorted((int(file.name[:4]), file.read_text("utf-8")) for file in scripts if file.name.endswith(".sql"))


def has_tables(connection: psycopg.Connection[Any], schema: str) -> bool:
    """Return whether the PostgreSQL schema contains the tables of an index."""
    [(has_table,)] = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [f'"{schema}".migration']).fetchall()
    return bool(has_table)


def migrate(connection: psycopg.Connection[Any], schema: str, index_name: str) -> None:
    """Begin a transaction that creates the tables of an index, or updates the tables to the current version.

    The lock is taken before the transaction begins, so that the transaction sees the tables that another process has
    created. The connection holds the lock until it is closed.

    Args:
        connection: The connection.
        schema: The schema.
        index_name: Name of the index, for messages.

    Raises:
        IndexMismatchError: The tables were made by another or a later version of polyad.
    """
    if not _list_pending(connection, schema, index_name):
        connection.execute("BEGIN")
        return
    connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, %s))", [schema, _LOCK])
    connection.execute("BEGIN")
    if not has_tables(connection, schema):
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        connection.execute("CREATE TABLE migration (number BIGINT PRIMARY KEY, digest TEXT NOT NULL)")
    for number, script in _list_pending(connection, schema, index_name):  # another process may have run some meanwhile
        for statement in _STATEMENT_END.split(script):  # Citus forwards a script as one statement, which fails
            connection.execute(statement, prepare=False)
        connection.execute("INSERT INTO migration VALUES (%s, %s)", [number, _compute_digest(script)])


def create_vector_columns(connection: psycopg.Connection[Any], column_type: str, index_name: str) -> None:
    """Change the vector columns of an empty index to a type of the extension pgvector, for queries in SQL.

    Raises:
        ConfigurationError: The extension is not installed, or this user may not create it in the database.
    """
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    except psycopg.Error as error:
        raise ConfigurationError(
            f"{index_name} cannot have vectors in columns of pgvector: {error.diag.message_primary}; run CREATE "
            "EXTENSION vector as an administrator, or leave vectors out of the address"
        ) from None
    [(schema,)] = connection.execute(
        "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
    ).fetchall()
    for table in ("passage", "hyperedge"):
        connection.execute(f"ALTER TABLE {table} ALTER COLUMN vector TYPE {schema}.{column_type} USING NULL")


def _list_pending(connection: psycopg.Connection[Any], schema: str, index_name: str) -> list[tuple[int, str]]:
    """Return (number, SQL text) of each migration script that has not run on the schema yet."""
    scripts = list_migrations()
    if not has_tables(connection, schema):
        return scripts
    applied = dict(connection.execute("SELECT number, digest FROM migration").fetchall())
    digests = {number: _compute_digest(script) for number, script in scripts}
    if later := applied.keys() - digests.keys():
        raise IndexMismatchError(
            f"{index_name} has tables of version {max(later)}, this polyad reads {max(digests)}; upgrade polyad"
        )
    if changed := [number for number, digest in applied.items() if digest != digests[number]]:
        raise IndexMismatchError(
            f"{index_name} has other tables of version {min(changed)} than this polyad; {OLD_FORMAT_REMEDY}"
        )
    return [(number, script) for number, script in scripts if number not in applied]


def _compute_digest(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()
