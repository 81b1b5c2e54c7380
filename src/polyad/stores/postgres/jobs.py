"""The queue of jobs of an index in PostgreSQL, which workers on several machines share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any, TypeVar

from polyad.model import IndexedDocument
from polyad.protocols.jobs import Outcomes
from polyad.stores.postgres.database import PostgresDatabase
from polyad.stores.relational.connection import Connection
from polyad.stores.relational.jobs import RelationalJobQueue
from polyad.text.removals import build_notes

T = TypeVar("T")


class PostgresJobQueue(RelationalJobQueue):
    """A queue of jobs in PostgreSQL.

    Args:
        database: The database.
    """

    _now = "EXTRACT(EPOCH FROM now())::float8"
    _row_lock = " FOR UPDATE SKIP LOCKED"

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def _change(self, change: Callable[[Connection], T]) -> T:
        def run() -> T:
            with self._database.updating() as connection:
                return change(connection)

        return self._database.retry(run)

    def _select(self, query: str, parameters: Sequence[Any]) -> list[Any]:
        run = self._database.run_autocommit
        return self._database.retry(lambda: run(lambda connection: connection.execute(query, parameters).fetchall()))

    @contextmanager
    def locked(self, names: Iterable[str]) -> Iterator[None]:
        """Hold a database lock for each of ``names`` in the ``with`` block, so that other machines wait.

        The server releases the locks if this process ends.
        """
        keys = sorted({hash_lock_name(name) for name in names})
        with self._database.connect() as connection:  # closed at the end, which releases the locks
            connection.execute("SELECT pg_advisory_lock(key) FROM unnest(%s::bigint[]) AS key", [keys])
            yield


def describe_stored(documents: Sequence[IndexedDocument], replaced_ids: Set[str]) -> Outcomes:
    """Return the counts that each document adds to the run's report: added or updated, passages, hyperedges, removals.

    The dictionary is keyed by document id. Documents in ``replaced_ids`` are updated, the others added.
    """
    return {
        item.document.id: {
            "updated" if item.document.id in replaced_ids else "added": 1,
            "passages": len(item.passages),
            "hyperedges": sum(len(passage.hyperedges) for passage in item.passages),
            "notes": build_notes(item.document.metadata),
        }
        for item in documents
    }


def hash_lock_name(name: str) -> int:
    """Return the number of the advisory lock with a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
