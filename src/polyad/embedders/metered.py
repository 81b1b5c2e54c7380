"""An embedder that measures the time of another embedder, caches vectors of queries and checks shapes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from polyad.errors import EmbedderError, IndexMismatchError
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, TextKind, WordModel, report_failure


class MeteredEmbedder:
    """A wrapper around an embedder that measures the embedding time and caches the vectors of repeated queries.

    Args:
        embedder: Computes the vectors.
        built_with: Name of the embedder and length of the vectors of the index; None if there is no index.

    Attributes:
        name: Name of the wrapped embedder.
    """

    def __init__(self, embedder: Embedder, built_with: tuple[str, int] | None = None) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._built_with = built_with
        self._account = threading.local()

    def replace_embedder(self, embedder: Embedder, built_with: tuple[str, int]) -> None:
        """Wrap another embedder. The arguments are those of the constructor."""
        self.name, self._embedder, self._built_with = embedder.name, embedder, built_with

    @property
    def dimension(self) -> int:
        """The number of components of the vectors in the index or, without an index, of the embedder."""
        return self._built_with[1] if self._built_with else self._embedder.dimension

    @property
    def parallelism(self) -> int:
        """Number of processes in which the wrapped embedder computes.

        See :func:`polyad.indexing.embedding.get_parallelism`.
        """
        return getattr(self._embedder, "parallelism", 1)

    @property
    def word_model(self) -> WordModel | None:
        """The wrapped embedder, if it states which words it knows."""
        return self._embedder if isinstance(self._embedder, WordModel) else None

    @property
    def seconds(self) -> float:
        """Wall time that this thread has spent in the embedder."""
        return getattr(self._account, "seconds", 0.0)

    @property
    def text_count(self) -> int:
        """Number of texts that this thread has embedded."""
        return getattr(self._account, "text_count", 0)

    @contextmanager
    def prefetch(self, texts: Sequence[str], kind: TextKind) -> Iterator[None]:
        """Embed texts in one batch, so that this thread reads their vectors from a cache in the ``with`` block."""
        distinct = list(dict.fromkeys(texts))
        vectors = self._encode(distinct, kind) if distinct else ()
        with self._use_cache({(kind, text): vector for text, vector in zip(distinct, vectors, strict=True)}):
            yield

    @contextmanager
    def cache_queries(self) -> Iterator[None]:
        """Cache the vectors of this thread's queries during the ``with`` block."""
        with self._use_cache(dict(self._cache or {})):
            yield

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``.

        Raises:
            IndexMismatchError: the vectors have another length than the vectors of the index.
            EmbedderError: the embedder failed, or did not return one vector for each text.
        """
        cache = self._cache
        if cache is None or not texts:
            return self._encode(texts, kind)
        missing = [text for text in dict.fromkeys(texts) if (kind, text) not in cache]
        vectors = dict(zip(missing, self._encode(missing, kind), strict=True)) if missing else {}
        if kind == "query":
            cache.update(((kind, text), vector) for text, vector in vectors.items())
        return np.stack([vectors[text] if text in vectors else cache[kind, text] for text in texts])

    @property
    def _cache(self) -> dict[tuple[TextKind, str], FloatArray] | None:
        """This thread's cache of vectors, by kind and text; None if this thread has no cache.

        See :meth:`prefetch` and :meth:`cache_queries`.
        """
        cache: dict[tuple[TextKind, str], FloatArray] | None = getattr(self._account, "cache", None)
        return cache

    @contextmanager
    def _use_cache(self, cache: dict[tuple[TextKind, str], FloatArray]) -> Iterator[None]:
        outer, self._account.cache = self._cache, cache
        try:
            yield
        finally:
            self._account.cache = outer

    def _encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        started = time.perf_counter()
        try:
            with report_failure(EmbedderError, f"the embedder {self.name!r}"):
                vectors = self._embedder.encode(texts, kind)
        finally:
            self._account.seconds = self.seconds + time.perf_counter() - started
            self._account.text_count = self.text_count + len(texts)
        self._check_shape(np.shape(vectors), len(texts))
        return vectors

    def _check_shape(self, shape: tuple[int, ...], text_count: int) -> None:
        if shape == (text_count, self.dimension) or not text_count:
            return
        if self._built_with and shape == (text_count, self._embedder.dimension):
            name, dimension = self._built_with
            raise IndexMismatchError(
                f"the index was built with {name!r}, vectors of {dimension:,} numbers, and {self.name!r} now returns "
                f"{shape[1]:,}; use the model it was built with, or index into another --store"
            )
        raise EmbedderError(
            f"the embedder {self.name!r} returned an array of shape {shape} for {text_count:,} texts; expected "
            f"{(text_count, self.dimension)}"
        )
