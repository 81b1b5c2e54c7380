"""Follow an index in PostgreSQL while writers hold their transactions open, and count what a reader misses.

A tenth of the transactions wait up to 0.2 s between their writes and the commit. Writers queue for the lock of the
version meanwhile, so 100,000 transactions wait some 1,000 s in all.

Run: python -m tests.attacks.commits [--transactions 100000] [--seconds 3600]
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

from polyad.protocols.lookups import get_digests
from polyad.protocols.store import Manifest
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.postgres import open_postgres
from polyad.stores.postgres.address import DatabaseAddress
from polyad.stores.postgres.connection import PostgresConnection
from polyad.stores.postgres.database import PostgresDatabase
from polyad.stores.postgres.store import PostgresStore
from tests.conformance.test_store import indexed
from tests.postgres_server import PostgresServer, find_programs

_WRITERS = 8
_HELD_SHARE = 0.1
_MAX_HELD_SECONDS = 0.2
_SECONDS_PER_LINE = 30
"""Seconds between two lines about the progress."""


class HoldingDatabase(PostgresDatabase):
    """A database that holds a tenth of its write transactions open before the commit."""

    def commit(self, connection: PostgresConnection, version: int, token: str) -> None:
        """Wait a random time, in a tenth of the calls, and commit."""
        if random.random() < _HELD_SHARE:
            time.sleep(random.uniform(0, _MAX_HELD_SECONDS))
        super().commit(connection, version, token)


def main() -> None:
    """Print the numbers of written and of missed documents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=math.inf, help="time after which no transaction begins")
    options = parser.parse_args()
    server = PostgresServer(find_programs() or Path())
    try:
        run(server.get_url(workspace="commits"), options.transactions, options.seconds)
    finally:
        server.delete()


def run(url: str, transactions: int, seconds: float) -> None:
    """Write documents from several threads while one reader follows the log and one the snapshot."""
    start = reported = time.perf_counter()
    with closing(open_postgres(url, Manifest("test", 4, "rules"))) as store:
        writer_store = PostgresStore(HoldingDatabase(DatabaseAddress.from_url(url)), store.manifest)
        arguments = [writer_store, transactions // _WRITERS, start + seconds]
        writers = [threading.Thread(target=_write, args=[each, *arguments]) for each in range(_WRITERS)]
        for writer in writers:
            writer.start()
        documents: list[int] = []
        version = missed = 0
        snapshots = SnapshotProvider(store, 4)
        while True:
            is_last = not any(writer.is_alive() for writer in writers)
            with store.read_transaction() as transaction:
                changes = transaction.changes(version)
            documents += changes.documents
            version = changes.version
            snapshot = snapshots.get_current(version)
            missed += snapshot.version == version and len(snapshot.passages.ids) != len(documents)
            now = time.perf_counter()
            if is_last or now > reported + _SECONDS_PER_LINE:
                sys.stderr.write(f"{now - start:.0f} s: {version:,} transactions, {missed:,} missed\n")
                reported = now
            if is_last:
                break
            time.sleep(0.02)
        stored = len(get_digests(store))
        writer_store.close()
    sys.stdout.write(
        f"{version:,} transactions by {_WRITERS} writers in {now - start:.0f} s, {stored:,} documents stored\n"
        f"{stored - len(set(documents)):,} documents missing in the log, {missed:,} snapshots without a document\n"
        f"in the order of primary keys: {documents == sorted(documents)}\n"
    )


def _write(writer: int, store: PostgresStore, count: int, end: float) -> None:
    for number in range(count):
        if time.perf_counter() > end:
            break
        store.put(indexed(f"{writer}-{number}", f"words {number % 10}"))


if __name__ == "__main__":
    main()
