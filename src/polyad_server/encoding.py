"""Embeds the questions of several searches in one pass of the model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from polyad.config import EncoderSettings
from polyad.engine.loaders import load_embedder
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, TextKind, knows_words

LoadEmbedder = Callable[[str, EncoderSettings], Embedder]
"""Loads an embedder by its name."""

MAX_BATCH = 16
"""Maximum number of requests in one batch. A larger batch takes as long per question, and its first waits longer."""

_ENDPOINT = "openai:"


class _Request:
    """The texts of one thread, waiting for the next embedding batch.

    Attributes:
        texts: The texts.
        ready: Set when the vectors are computed, or when the thread of this request has to compute the next batch.
        vectors: The vectors; None until they are computed.
        error: Exception of the embedder; None if the vectors could be computed.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.ready = threading.Event()
        self.vectors: FloatArray | None = None
        self.error: Exception | None = None


class BatchingEmbedder:
    """An embedder that combines the queries of concurrent threads into one batch.

    While one batch is computed, further queries wait; together they are the next batch. So a query waits at most for
    one batch, and not at all if no batch is being computed. The thread of the first query computes the batch.

    Args:
        embedder: Computes the vectors.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._waiting: list[_Request] = []
        self._is_busy = False

    @property
    def name(self) -> str:
        """The name of the embedding model."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """The number of components of the embedding vectors."""
        return self._embedder.dimension

    def knows_words(self, words: Sequence[str]) -> Sequence[bool]:
        """Return for each word whether the embedder knows it."""
        return knows_words(self._embedder, words)

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``; concurrent queries form one batch."""
        if kind != "query":
            return self._embedder.encode(texts, kind)
        request = _Request(texts)
        with self._lock:
            self._waiting.append(request)
            must_wait, self._is_busy = self._is_busy, True
        if must_wait:
            request.ready.wait()
        if request.vectors is None and request.error is None:
            self._encode_batch()
        if request.error is not None:
            raise request.error
        assert request.vectors is not None
        return request.vectors

    def _encode_batch(self) -> None:
        """Embed the texts of all waiting threads in one batch."""
        with self._lock:
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        try:
            self._encode_together(batch)
        except Exception:  # one text that the model rejects should not fail the questions of others
            for request in batch:
                self._encode_alone(request)
        finally:
            for request in batch:
                request.ready.set()
            with self._lock:
                self._is_busy = bool(self._waiting)
                if self._waiting:
                    self._waiting[0].ready.set()

    def _encode_together(self, batch: Sequence[_Request]) -> None:
        vectors = self._embedder.encode([text for request in batch for text in request.texts], "query")
        start = 0
        for request in batch:
            request.vectors = vectors[start : start + len(request.texts)]
            start += len(request.texts)

    def _encode_alone(self, request: _Request) -> None:
        try:
            request.vectors = self._embedder.encode(request.texts, "query")
        except Exception as error:
            request.error = error


class SharedEmbedders:
    """A cache of embedders, by name, that all indexes share; queries to local models are batched.

    An embedder behind an HTTP endpoint accepts concurrent requests, so its queries are not batched.

    Args:
        load: Loads an embedder.
        load_local: Loads an embedder that is not behind an endpoint; by default with ``load``, and batches its queries.
    """

    def __init__(self, load: LoadEmbedder = load_embedder, load_local: LoadEmbedder | None = None) -> None:
        self._load = load
        self._load_local = load_local or (lambda name, settings: BatchingEmbedder(load(name, settings)))
        self._lock = threading.Lock()
        self._loaded: dict[str, Embedder] = {}

    def get(self, name: str, settings: EncoderSettings) -> Embedder:
        """Return the embedder with this name; the first call loads the embedder with ``settings``."""
        with self._lock:
            if name not in self._loaded:
                load = self._load if name.startswith(_ENDPOINT) else self._load_local
                self._loaded[name] = load(name, settings)
            return self._loaded[name]
