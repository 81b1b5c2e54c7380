"""Read transactions of the SQLite store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from polyad.errors import IndexMismatchError
from polyad.protocols.store import Changes, EntityIncidence, Manifest
from polyad.stores.relational.connection import Rows
from polyad.stores.relational.read_transaction import (
    RelationalReadTransaction,
    report_errors,
    report_errors_of_generator,
)
from polyad.stores.relational.rows import NUMBER, check_types, format_checksum_columns, iterate_batches
from polyad.stores.relational.tuples import select_entity_names
from polyad.stores.sqlite.database import Database
from polyad.stores.sqlite.rows import BATCH, SqliteConnection, is_sound, pad_values

_REQUESTED_INCIDENCES = f"""
WITH request(place, number, after, last) AS (VALUES {{}})
SELECT request.place, {format_checksum_columns("incidence")}
FROM request CROSS JOIN incidence ON incidence.entity = request.number AND hyperedge > after AND hyperedge <= last
"""
"""The incidences of one request after the other, each by hyperedge: CROSS JOIN keeps the order of its sides."""

_REQUESTED_TYPES = (int, int, int, int, str, str, str, str, NUMBER, int, NUMBER)
"""The column types of :data:`_REQUESTED_INCIDENCES`."""


class SqliteReadTransaction(RelationalReadTransaction):
    """A read transaction of an index in SQLite.

    It implements :class:`polyad.protocols.store.ReadTransaction`.

    Args:
        connection: A connection inside a transaction that lasts as long as this object is used.
        database: The file.
        manifest: The manifest of the index when it was opened.
        log_length: How many of the last versions the log of removals covers.
    """

    def __init__(self, connection: SqliteConnection, database: Database, manifest: Manifest, log_length: int) -> None:
        with database.report_errors():
            [(version,)] = connection.execute("SELECT value FROM manifest WHERE key = 'version'")
            number = int(version)
        super().__init__(connection, database, manifest, log_length, lambda: number)
        self._sqlite = connection
        self._manifest = manifest

    @property
    def is_open(self) -> bool:
        """Whether the transaction is still open; SQLite ends it after a disk error."""
        return self._sqlite.in_transaction

    @report_errors
    def changes(self, since: int | None = None) -> Changes:
        """Return the documents written and deleted after ``since``; all documents if that version is unknown.

        Raises:
            IndexMismatchError: all vectors have been replaced since the index was opened.
        """
        require_embedder(self._sqlite, self._manifest)
        return super().changes(since)

    @report_errors_of_generator
    def entity_names(self, after: int, last: int) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield (entity id, names) for each entity that has names beside its id, as the user's data state.

        Only tuples with a primary key in ``(after, last]`` are read.
        """
        source = "argument" if after else "argument INDEXED BY argument_by_names"
        yield from select_entity_names(self.connection, after, last, source)

    @report_errors
    def incidences(self, requests: Sequence[tuple[int, int, int]]) -> list[list[EntityIncidence]]:
        """Return for each request the memberships of one entity in a range of hyperedges.

        All three numbers are primary keys. Incidences are sorted by hyperedge.
        """
        incidences: list[list[EntityIncidence]] = [[] for _ in requests]
        for batch in iterate_batches([(place, *request) for place, request in enumerate(requests)], BATCH // 4):
            padded = [request or (None,) * 4 for request in pad_values(batch)]
            rows = self.connection.execute(
                _REQUESTED_INCIDENCES.format(",".join(["(?, ?, ?, ?)"] * len(padded))), [*chain.from_iterable(padded)]
            )
            for place, incidence in _check_incidences(rows):
                incidences[place].append(incidence)
        return incidences


def require_embedder(connection: SqliteConnection, manifest: Manifest) -> None:
    """Raise IndexMismatchError if the index's embedder was replaced after the index was opened."""
    [(embedder,)] = connection.execute("SELECT value FROM manifest WHERE key = 'embedder'")
    if embedder != manifest.embedder:
        raise IndexMismatchError(
            f"the vectors of the index were replaced by those of {embedder!r} since it was opened; open it again"
        )


def _check_incidences(rows: Rows) -> Iterator[tuple[int, EntityIncidence]]:
    """Yield (request index, incidence) for each row after verifying its checksum."""
    while batch := check_types(rows.fetchmany(BATCH), *_REQUESTED_TYPES):
        for place, *checked in batch:
            is_sound(*checked)
            _, _, hyperedge, _, name, type, description, score, *_ = checked
            yield place, (hyperedge, name, type, description, score)
