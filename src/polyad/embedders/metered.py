"""An embedder that keeps account of the time spent inside it, embeds ahead what will be asked for, and is checked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from polyad.errors import EmbedderError, IndexMismatchError
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, TextKind


class MeteredEmbedder:
    """Passes everything on to another embedder, and adds up the seconds and the texts.

    Each thread has its own account, so that a search in one thread does not count another's.

    Args:
        embedder: Makes the vectors.
        built_with: Of the index that they are for: the name of its embedder, and the length of its vectors. None where
            there is no index.
    """

    def __init__(self, embedder: Embedder, built_with: tuple[str, int] | None = None) -> None:
        self._embedder = embedder
        self._built_with = built_with
        self._account = threading.local()

    @property
    def name(self) -> str:
        """The embedder's name."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """That of the index; of none, the embedder's own."""
        return self._built_with[1] if self._built_with else self._embedder.dimension

    @property
    def seconds(self) -> float:
        """Wall time this thread has spent in :meth:`encode`."""
        return getattr(self._account, "seconds", 0.0)

    @property
    def texts(self) -> int:
        """How many texts this thread has had embedded."""
        return getattr(self._account, "texts", 0)

    @contextmanager
    def ahead(self, texts: Sequence[str], kind: TextKind) -> Iterator[None]:
        """Embed ``texts`` in one batch now, so that this thread need not wait for them within the block."""
        distinct = list(dict.fromkeys(texts))
        vectors = self._encode(distinct, kind) if distinct else ()
        with self._knowing({(kind, text): vector for text, vector in zip(distinct, vectors, strict=True)}):
            yield

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Embed each query of this thread once within the block: its vector is asked for by the next stage again."""
        with self._knowing(dict(self._known or {})):
            yield

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Embed ``texts``; see :class:`polyad.protocols.components.Embedder`.

        Raises:
            IndexMismatchError: the vectors are longer or shorter than those of the index.
            EmbedderError: the embedder failed, or gave something else than a vector for each text.
        """
        known = self._known
        if known is None or not texts:
            return self._encode(texts, kind)
        new = [text for text in dict.fromkeys(texts) if (kind, text) not in known]
        made = dict(zip(new, self._encode(new, kind), strict=True)) if new else {}
        if kind == "query":
            known.update(((kind, text), vector) for text, vector in made.items())
        return np.stack([made[text] if text in made else known[kind, text] for text in texts])

    @property
    def _known(self) -> dict[tuple[TextKind, str], FloatArray] | None:
        """What this thread need not embed again; None where nothing is kept."""
        known: dict[tuple[TextKind, str], FloatArray] | None = getattr(self._account, "known", None)
        return known

    @contextmanager
    def _knowing(self, known: dict[tuple[TextKind, str], FloatArray]) -> Iterator[None]:
        before, self._account.known = self._known, known
        try:
            yield
        finally:
            self._account.known = before

    def _encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        started = time.perf_counter()
        try:
            vectors = self._embedder.encode(texts, kind)
        finally:
            self._account.seconds = self.seconds + time.perf_counter() - started
            self._account.texts = self.texts + len(texts)
        self._require_shape(np.shape(vectors), len(texts))
        return vectors

    def _require_shape(self, shape: tuple[int, ...], texts: int) -> None:
        if shape == (texts, self.dimension) or not texts:
            return
        if self._built_with and shape == (texts, self._embedder.dimension):
            name, dimension = self._built_with
            raise IndexMismatchError(
                f"the index was built with {name!r}, vectors of {dimension:,} numbers, and {self.name!r} now gives "
                f"{shape[1]:,}; use the model it was built with, or index into another --store"
            )
        raise EmbedderError(
            f"the embedder {self.name!r} gave an array of shape {shape} for {texts:,} texts; expected "
            f"{(texts, self.dimension)}"
        )
