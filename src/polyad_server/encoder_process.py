"""A process that embeds the questions of all search processes, and the embedder that sends questions to it."""

from __future__ import annotations

import json
import logging
import signal
import threading
import time
from collections.abc import Sequence
from functools import cached_property
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

import numpy as np

from polyad.config import EncoderSettings
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, TextKind, knows_words
from polyad_server.encoding import LoadEmbedder, SharedEmbedders

_BACKLOG = 128
_MAX_SECONDS = 10.0
"""Seconds to wait for the encoder process; then the search process embeds the question itself."""

_RETRY_SECONDS = 1.0
"""Seconds after a failure in which the encoder process receives no request."""

_WORDS = "words"
"""Kind of a request that asks which words the embedder knows."""

_LOG = logging.getLogger("polyad.server.encoder_process")


def run_encoder(address: Path, settings: EncoderSettings) -> None:
    """Run the encoder process, which embeds questions that arrive over a Unix socket until it is terminated.

    A request is JSON, ``[name of the embedder, texts, kind]``. The reply has the vectors as float32 bytes, or one byte
    for each word if the kind is "words", or is empty after an error.

    Args:
        address: Path of the socket, which only this user may reach.
        settings: Device or backend of local models.
    """
    load = SharedEmbedders().get
    # Ctrl-C reaches all processes, and searches need the encoder until they end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    address.unlink(missing_ok=True)
    with Listener(str(address), "AF_UNIX", backlog=_BACKLOG) as listener:
        while True:
            threading.Thread(target=_serve_connection, args=(listener.accept(), load, settings), daemon=True).start()


def _serve_connection(connection: Connection, load: LoadEmbedder, settings: EncoderSettings) -> None:
    while True:
        try:
            name, texts, kind = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        reply = b""
        try:
            embedder = load(name, settings)
            is_word = kind == _WORDS
            reply = bytes(knows_words(embedder, texts)) if is_word else embedder.encode(texts, kind).tobytes()
        except Exception as error:  # the search process embeds the question itself, and reports what fails
            _LOG.warning("the encoder process cannot embed a question: %s", error)
        connection.send_bytes(reply)


class RemoteEmbedder:
    """An embedder that sends queries to the encoder process, or embeds them locally if the process has ended.

    Args:
        name: Name of the embedder.
        settings: Device or backend of the local embedder.
        address: Socket of the encoder process.
        load: Loads the local embedder, which embeds passages too.
    """

    def __init__(self, name: str, settings: EncoderSettings, address: Path, load: LoadEmbedder) -> None:
        self._name = name
        self._settings = settings
        self._address = str(address)
        self._load = load
        self._idle: list[Connection] = []
        self._next_attempt = 0.0

    @property
    def name(self) -> str:
        """The name of the embedding model."""
        return self._name

    @property
    def dimension(self) -> int:
        """The number of components of the embedding vectors."""
        return self._local.dimension

    @cached_property
    def _local(self) -> Embedder:
        return self._load(self._name, self._settings)

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``."""
        if kind == "query" and (reply := self._request(texts, kind)):
            return np.frombuffer(reply, np.float32).reshape(len(texts), -1)
        return self._local.encode(texts, kind)

    def knows_words(self, words: Sequence[str]) -> Sequence[bool]:
        """Return for each word whether the embedder knows it."""
        reply = self._request(words, _WORDS)
        return [*map(bool, reply)] if reply else knows_words(self._local, words)

    def _request(self, texts: Sequence[str], kind: str) -> bytes:
        """Return the reply of the encoder process; empty bytes if there is none."""
        if not texts or time.monotonic() < self._next_attempt:
            return b""
        request = json.dumps([self._name, list(texts), kind]).encode()
        while self._idle:
            if reply := self._ask(self._idle.pop(), request):
                return reply
        try:
            if reply := self._ask(Client(self._address, "AF_UNIX"), request):
                return reply
        except OSError:
            pass
        self._next_attempt = time.monotonic() + _RETRY_SECONDS
        return b""

    def _ask(self, connection: Connection, request: bytes) -> bytes:
        """Send a request to the encoder process and return its reply; empty bytes if the connection failed."""
        try:
            connection.send_bytes(request)
            reply = connection.recv_bytes() if connection.poll(_MAX_SECONDS) else b""
        except (EOFError, OSError):
            reply = b""
        if reply:
            self._idle.append(connection)
        else:
            connection.close()
        return reply


def share_remote_embedders(address: Path) -> SharedEmbedders:
    """Return a cache of embedders, by name, that send queries to the encoder process at a Unix socket.

    An embedder behind an HTTP endpoint does not use the encoder process: each process calls the endpoint itself.
    """
    local = SharedEmbedders()
    return SharedEmbedders(load_local=lambda name, settings: RemoteEmbedder(name, settings, address, local.get))
