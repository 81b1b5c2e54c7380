"""Many texts to vectors, a piece at a time, so that somebody can be told how far it is, and stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from polyad.model import FloatArray
from polyad.protocols import Embedder

BLOCK_CHARACTERS = 256_000
"""Of texts that are put in the order of their length: enough to fill an embedder's batches with like lengths."""

SLICE_CHARACTERS = 64_000
"""Of texts embedded in one call, which takes some seconds on a slow machine."""


def embed(embedder: Embedder, texts: Sequence[str], told: Callable[[int], None]) -> FloatArray:
    """The vectors of ``texts`` as passages, float32 ``[texts, dimension]``.

    Texts are taken in blocks, in order, and within a block by length: the embedder pads less, and how far it is can
    still be said by the place of a text.

    Args:
        embedder: Makes the vectors; of each text the same, whatever is embedded beside it.
        texts: To embed.
        told: Of how many are done, after each call.
    """
    vectors = np.zeros((len(texts), embedder.dimension), dtype=np.float32)
    done = 0
    for block in _pieces(texts, range(len(texts)), BLOCK_CHARACTERS):
        ordered = sorted(block, key=lambda row: (len(texts[row]), row))
        for rows in _pieces(texts, ordered, SLICE_CHARACTERS):
            vectors[rows] = embedder.encode([texts[row] for row in rows], "passage")
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
