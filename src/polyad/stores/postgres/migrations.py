"""The tables of an index, created and changed by numbered scripts."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Any

import psycopg

from polyad.errors import IndexMismatchError

_LOCK = 0x706F6C79
"""Seed of the advisory lock that one process at a time holds to change the tables of a schema."""


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
        connection.execute(script, prepare=False)
        connection.execute("INSERT INTO migration VALUES (%s, %s)", [number, _compute_digest(script)])


def _list_pending(connection: psycopg.Connection[Any], schema: str, index_name: str) -> list[tuple[int, str]]:
    """Return (number, SQL text) of each migration script that has not run on the schema yet."""
    scripts = list_migrations()
    if not has_tables(connection, schema):
        return scripts
    applied = dict(connection.execute("SELECT number, digest FROM migration").fetchall())
    digests = {number: _compute_digest(script) for number, script in scripts}
    if later := applied.keys() - digests.keys():
        raise IndexMismatchError(
            f"{index_name} has tables of version {max(later)}, this polyad reads {max(digests)}; install a later polyad"
        )
    if changed := [number for number, digest in applied.items() if digest != digests[number]]:
        raise IndexMismatchError(
            f"{index_name} has other tables of version {min(changed)} than this polyad; index again"
        )
    return [(number, script) for number, script in scripts if number not in applied]


def _compute_digest(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()
