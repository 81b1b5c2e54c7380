"""Follow an index in PostgreSQL while writers hold their transactions open, and count what a reader misses.

Run: python -m tests.attacks.commits [--transactions 100000]
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from polyad.model import IndexedPassage
from polyad.protocols.lookups import get_digests
from polyad.protocols.store import Manifest
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.postgres import open_postgres
from tests.conformance.test_store import indexed
from tests.postgres_server import PostgresServer, find_programs

_WRITERS = 8
_MAX_HELD_SECONDS = 0.2


class HeldPassages(tuple[IndexedPassage, ...]):
    """Passages that hold the transaction of their document open for a random time."""

    def __iter__(self) -> Iterator[IndexedPassage]:
        time.sleep(random.uniform(0, _MAX_HELD_SECONDS) / 8)  # a document is iterated some eight times
        return super().__iter__()


def main() -> None:
    """Print the numbers of written and of missed documents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=100_000)
    options = parser.parse_args()
    server = PostgresServer(find_programs() or Path())
    try:
        run(server.get_url(workspace="commits"), options.transactions)
    finally:
        server.delete()


def run(url: str, transactions: int) -> None:
    """Write documents from several threads while one reader follows the log and one the snapshot."""
    start = time.perf_counter()
    with closing(open_postgres(url, Manifest("test", 4, "rules"))) as store:
        writers = [
            threading.Thread(target=_write, args=[url, each, transactions // _WRITERS]) for each in range(_WRITERS)
        ]
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
            missed += snapshot.version == version and len(snapshot.passage_ids) != len(documents)
            if is_last:
                break
            time.sleep(0.005)
        stored = len(get_digests(store))
    seconds = time.perf_counter() - start
    sys.stdout.write(
        f"{version:,} transactions by {_WRITERS} writers in {seconds:.0f} s, {stored:,} documents stored\n"
        f"{stored - len(set(documents)):,} documents missing in the log, {missed:,} snapshots without a document\n"
        f"in the order of primary keys: {documents == sorted(documents)}\n"
    )


def _write(url: str, writer: int, count: int) -> None:
    with closing(open_postgres(url)) as store:
        for number in range(count):
            document = indexed(f"{writer}-{number}", f"words {number % 10}")
            if random.random() < 0.1:
                document = replace(document, passages=HeldPassages(document.passages))
            store.put(document)


if __name__ == "__main__":
    main()
