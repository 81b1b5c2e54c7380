"""A search on PostgreSQL waits for the server a few times, counted by a proxy that reads the messages of the client."""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document, Evidence
from polyad.snapshot import provider
from tests.postgres_server import get_server

_HEADER, _LENGTH = 1, 4
"""Bytes of the type and of the length of a message; the first message of a connection has no type."""

_WAITED = (b"S", b"Q")
"""Types of the messages after which a client waits: Sync, which ends a pipeline, and a simple query."""


class RoundTripProxy:
    """A proxy between clients and a PostgreSQL server, on a Unix socket, which counts round trips.

    Args:
        server: Folder of the server's socket.

    Attributes:
        folder: Folder of the proxy's socket.
        count: Round trips so far, without those that end a transaction, which no search waits for.
    """

    def __init__(self, server: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="polyad-proxy-"))
        self.count = 0
        self._server = server
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no further connection."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / ".s.PGSQL.5432"))
                threading.Thread(target=self._forward, args=[client, server], daemon=True).start()
                threading.Thread(target=_copy, args=[server, client], daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        """Forward the messages of a client and count those that it waits for."""
        buffer, header, is_rollback = b"", 0, False
        with suppress(OSError):
            while part := client.recv(1 << 16):
                buffer += part
                while len(buffer) >= header + _LENGTH:
                    size = header + int.from_bytes(buffer[header : header + _LENGTH])
                    if len(buffer) < size:
                        break
                    message, buffer = buffer[:size], buffer[size:]
                    is_rollback = is_rollback or b"ROLLBACK" in message
                    if header and message[:_HEADER] in _WAITED:
                        self.count += not is_rollback
                        is_rollback = False
                    header = _HEADER
                server.sendall(part)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(1 << 16):
            target.sendall(part)


@pytest.fixture
def proxy() -> Iterator[RoundTripProxy]:
    proxy = RoundTripProxy(get_server().folder)
    yield proxy
    proxy.close()


def build_documents() -> list[Document]:
    """Return documents about people and towns; each person is named in two documents."""
    return [
        Document(
            f"{number}",
            f"Anna {number}",
            f"Anna {number} met Bob {number // 2} in Oslo. She came from Town {number} in {1900 + number}. "
            f"Bob {number // 2} wrote about Anna {number + 1}.",
        )
        for number in range(30)
    ]


def build_chronicle() -> Document:
    """Return a document whose passages are adjacent and name the same subject, so that a search merges them."""
    years = (
        f"In {year} the lantern of Quay Light was lit by keeper number {year % 37} after a long voyage."
        for year in range(1700, 1850)
    )
    return Document("chronicle", "Quay Light", " ".join(years))


@pytest.mark.parametrize(
    ("retriever", "question"),
    [
        ("default", "Which town did Bob 9 write about?"),
        ("default", "Who lit the lantern of Quay Light?"),
        ("bm25", "Which town did Bob 9 write about?"),
        ("dense", "Which town did Bob 9 write about?"),
        ("hypersu", "Which town did Bob 9 write about?"),
    ],
)
def test_a_search_waits_for_the_database_at_most_six_times(
    proxy: RoundTripProxy, retriever: str, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "POLL_SECONDS", 60.0)
    workspace, embedder = f"trips-{retriever}-{len(question)}", HashingEmbedder(32)
    with Engine.open(get_server().get_url(workspace=workspace), embedder=embedder) as engine:
        engine.index_documents([*build_documents(), build_chronicle()])
    address = f"postgresql://polyad@/postgres?host={proxy.folder}&workspace={workspace}"
    with Engine.open(address, embedder=embedder) as engine:

        def search(question: str) -> tuple[Evidence, int]:
            """Return the evidence for a question, and the number of round trips of the search."""
            time.sleep(0.1)  # until the connection of the search before is free
            before = proxy.count
            evidence = engine.search(question, retriever=retriever)
            return evidence, proxy.count - before

        engine.follow_changes()  # as a server does
        deadline = time.monotonic() + 30
        while search("Who met Anna 1?")[1] != 1:  # the snapshot is not built, or a connection was opened
            assert time.monotonic() < deadline
        uncached, trips = search(question)
        cached, trips_of_cached = search(question)
    assert uncached.passages == cached.passages
    assert 1 < trips <= 6  # two of them for the versions of the hits
    assert trips_of_cached == 1  # the version of the texts in the cache
