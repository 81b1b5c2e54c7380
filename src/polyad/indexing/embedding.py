"""Many texts to vectors, a piece at a time, so that somebody can be told how far it is, and stop it without loss."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from polyad.model import FloatArray
from polyad.protocols.components import Embedder
from polyad.protocols.store import Store

BLOCK_CHARACTERS = 512_000
"""Of texts that are put in the order of their length: all of the documents that are read together, mostly."""

SLICE_CHARACTERS = 128_000
"""Of texts embedded in one call, which takes some seconds on a slow machine. The shorter a call, the more of the passes
of an embedder are filled up: with half of it they hold a tenth more tokens (docs/adr/0007)."""

KEEP_SECONDS = 2.0
"""Of embedding, after which what was made is kept: with the call under way, what an interrupted run loses."""


class Pending:
    """Texts of documents that are not stored yet, whose vectors the store keeps for a run that comes after this one.

    Vectors that are made within :data:`KEEP_SECONDS` are not kept: making them again costs no more.

    Args:
        store: Keeps them until it has the documents.
        texts: To embed.
        owners: The id of the document that each text is from.
        clock: In seconds.
    """

    def __init__(
        self,
        store: Store,
        texts: Sequence[str],
        owners: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts]
        self._owners = owners
        self._clock = clock
        self._kept_at = clock()
        self._unkept: list[int] = []

    def known(self) -> dict[int, FloatArray]:
        """The vectors that an earlier run has made, by the position of their text."""
        found = self._store.pending_vectors(self._digests)
        return {row: found[digest] for row, digest in enumerate(self._digests) if digest in found}

    def made(self, rows: Sequence[int], vectors: FloatArray) -> None:
        """The texts at ``rows`` are embedded; ``vectors`` are those of all texts, as far as they are made."""
        self._unkept += rows
        if self._clock() - self._kept_at >= KEEP_SECONDS:
            self._store.keep_pending_vectors(
                {self._digests[row]: (self._owners[row], vectors[row]) for row in self._unkept}
            )
            self._unkept = []
            self._kept_at = self._clock()


def embed(
    embedder: Embedder, texts: Sequence[str], told: Callable[[int], None], pending: Pending | None = None
) -> FloatArray:
    """The vectors of ``texts`` as passages, float32 ``[texts, dimension]``.

    Texts are taken in blocks, in order, and within a block by length: the embedder pads less, and how far it is can
    still be said by the place of a text.

    Args:
        embedder: Makes the vectors; of each text the same, whatever is embedded beside it.
        texts: To embed.
        told: Of how many are done, after each call.
        pending: Keeps the vectors of the same texts until they are stored; those it has are not made again.
    """
    vectors = np.zeros((len(texts), embedder.dimension), dtype=np.float32)
    known = pending.known() if pending else {}
    for row, vector in known.items():
        vectors[row] = vector
    done = len(known)
    for block in _pieces(texts, [row for row in range(len(texts)) if row not in known], BLOCK_CHARACTERS):
        ordered = sorted(block, key=lambda row: (len(texts[row]), row))
        for rows in _pieces(texts, ordered, SLICE_CHARACTERS):
            vectors[rows] = embedder.encode([texts[row] for row in rows], "passage")
            if pending:
                pending.made(rows, vectors)
            done += len(rows)
            told(done)
    return vectors


def _pieces(texts: Sequence[str], rows: Sequence[int], most: int) -> Iterator[list[int]]:
    """``rows`` in order, in pieces of about ``most`` characters; a longer text is one by itself."""
    piece: list[int] = []
    size = 0
    for row in rows:
        if piece and size + len(texts[row]) > most:
            yield piece
            piece, size = [], 0
        piece.append(row)
        size += len(texts[row])
    if piece:
        yield piece
