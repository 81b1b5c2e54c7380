"""Kills a PostgreSQL server with SIGKILL while documents are indexed, and checks what is left.

``python -m tests.attacks.database_kills --runs 100`` indexes new editions of some documents, one or two a transaction,
and kills all processes of the server after a random part of the time that a run takes. Every second run, the server
starts again at once and the run continues; otherwise the run fails first. Then the script checks:

- lost: a document whose transaction was acknowledged does not have its new edition;
- torn: a document differs from the same edition in a fresh index;
- damaged: `polyad check` finds damage, or a search finds other passages than in a fresh index;
- repeated: the next run does not complete the index, or does again what was done already.
"""

# ruff: noqa: T201  a script that prints

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import StoreUnavailableError
from polyad.indexing import indexer
from polyad.model import Document, IndexedDocument
from polyad.protocols.store import NO_VALUES, Manifest, Values
from polyad.stores.memory import MemoryStore
from polyad.stores.postgres import database
from polyad.stores.postgres.store import PostgresStore
from tests.attacks.kills import DOCUMENTS, read_contents, read_editions, write_text
from tests.postgres_server import PostgresServer, find_programs

_EMBEDDER = HashingEmbedder(32)

_PAUSE_SECONDS = 0.02
"""Pause before each transaction, so that the kill often falls between two of them."""


@dataclass
class Findings:
    """What was checked, and each violation in one line."""

    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


class _AcknowledgedStore(PostgresStore):
    """A store that records the documents whose transactions were acknowledged."""

    acknowledged: set[str]

    def put(
        self,
        *documents: IndexedDocument,
        values: Values = NO_VALUES,
        expected_version: int | None = None,
        expected_values: Values = NO_VALUES,
        values_version: int | None = None,
    ) -> None:
        """Store documents and record their ids afterwards."""
        time.sleep(_PAUSE_SECONDS)
        super().put(
            *documents,
            values=values,
            expected_version=expected_version,
            expected_values=expected_values,
            values_version=values_version,
        )
        self.acknowledged.update(item.document.id for item in documents)


def _open_acknowledged(
    place: str | Path, manifest: Manifest | None = None, *, replies: Path | None = None
) -> PostgresStore:
    return _AcknowledgedStore.open(str(place), manifest, replies=replies)


def kill_again_and_again(
    server: PostgresServer, runs: int, seed: int = 0, *, report_progress: bool = False
) -> Findings:
    """Index new editions of documents run after run, and kill the server in each run."""
    chance, findings, seconds = random.Random(seed), Findings(), 1.0
    editions: dict[str, int] = {}
    with patch.object(indexer, "BATCH_CHARACTERS", 2 * len(write_text(0, 0))):
        for run in range(runs):
            documents = _build_documents(dict.fromkeys(map(str, range(DOCUMENTS)), run))
            acknowledged = set[str]()
            start = time.perf_counter()
            with _killing(server, chance.uniform(0, seconds), is_restarted=bool(run % 2)):
                try:
                    _index(server, documents, acknowledged)
                except StoreUnavailableError:
                    findings.outcomes["failed"] += 1
                else:
                    findings.outcomes["ended"] += 1
                    seconds = min(seconds, time.perf_counter() - start)
            findings.outcomes["acknowledged"] += len(acknowledged)
            findings.outcomes["partial"] += 0 < len(acknowledged) < DOCUMENTS
            violations = _check(server, documents, editions, acknowledged)
            findings.violations += [f"run {run}: {violation}" for violation in violations]
            editions = {document.id: run for document in documents}
            if report_progress:
                print(run + 1, dict(findings.outcomes), findings.violations, file=sys.stderr, flush=True)
    return findings


def _build_documents(editions: Mapping[str, int]) -> list[Document]:
    return [Document(id, f"Town {id}", write_text(int(id), edition)) for id, edition in editions.items()]


def _index(server: PostgresServer, documents: Sequence[Document], acknowledged: set[str]) -> None:
    url = server.get_url(workspace="kills")
    with Engine.open(url, store=_open_acknowledged, embedder=_EMBEDDER) as engine:
        assert isinstance(engine.values, _AcknowledgedStore)
        engine.values.acknowledged = acknowledged
        engine.index_documents(documents)


@contextmanager
def _killing(server: PostgresServer, seconds: float, *, is_restarted: bool) -> Iterator[None]:
    """Kill the server after some seconds of the block, and start it again: at once, or after the block."""

    def kill() -> None:
        time.sleep(seconds)
        server.kill()
        if is_restarted:
            server.start()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        if is_restarted:
            yield
        else:  # a run without a server fails soon
            with patch.object(database, "_ATTEMPTS", 2), patch.object(database, "_CONNECT_SECONDS", 2):
                yield
    finally:
        thread.join()
        if not is_restarted:
            server.start()


def _check(
    server: PostgresServer, documents: Sequence[Document], before: Mapping[str, int], acknowledged: set[str]
) -> list[str]:
    """Return the violations after a run that was killed, and after the same run once more."""
    (edition,) = {int(document.text.split()[4]) for document in documents}
    violations = []
    with Engine.open(server.get_url(workspace="kills"), embedder=_EMBEDDER) as engine:
        editions = {id: sorted(numbers) for id, numbers in read_editions(engine).items()}
        violations += [f"lost {id}: {editions.get(id)}" for id in acknowledged if editions.get(id) != [edition]]
        violations += [f"lost {id}" for id in before.keys() - editions.keys()]
        allowed = {id: [[edition], [before[id]] if id in before else [edition]] for id in editions}
        violations += [f"torn {id}: {numbers}" for id, numbers in editions.items() if numbers not in allowed[id]]
        violations += [f"damaged {one}" for one in engine.check().damage]
        violations += _compare(engine, {id: numbers[0] for id, numbers in editions.items()})
        counts = engine.index_documents(documents).counts
        missing = sum(editions.get(document.id) != [edition] for document in documents)
        if counts.added + counts.updated != missing:
            violations.append(f"repeated {counts.added + counts.updated} documents of which {missing} were missing")
        violations += _compare(engine, {document.id: edition for document in documents})
    return violations


def _compare(engine: Engine, editions: Mapping[str, int]) -> list[str]:
    """Return the differences between an index and a fresh index of editions of documents."""
    place = f"memory://{time.perf_counter_ns()}"
    with Engine.open(place, store=MemoryStore.open, embedder=_EMBEDDER) as fresh:
        fresh.index_documents(_build_documents(editions))
        expected = read_contents(fresh)
    contents = read_contents(engine)
    return [f"unequal {name}" for name in expected if contents[name] != expected[name]]


def main() -> int:
    """Print the outcomes and the violations; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    started = time.perf_counter()
    server = PostgresServer(find_programs() or Path())
    try:
        findings = kill_again_and_again(server, arguments.runs, arguments.seed, report_progress=True)
    finally:
        server.delete()
    print(f"{arguments.runs} kills of the server in {time.perf_counter() - started:.0f} s: {dict(findings.outcomes)}")
    print("\n".join([*findings.violations[:40], f"{len(findings.violations)} violations"]))
    return 1 if findings.violations else 0


if __name__ == "__main__":
    sys.exit(main())
