"""Texts that are longer than a model reads: cut into windows of tokens, whose vectors are put together again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyad.errors import EmbedderError
from polyad.model import FloatArray


def encodable(text: str) -> str:
    """``text`` with a question mark for each lone surrogate, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def pooled(vectors: FloatArray, windows: Sequence[list[int]], owners: Sequence[int], count: int) -> FloatArray:
    """The mean of each text's windows, weighted by length; the vector itself where a text has one window.

    Args:
        vectors: Of length 1, float32 ``[windows, dimension]``.
        windows: Tokens.
        owners: The text that each window is of, ascending; every text has one at least.
        count: Of texts.

    Returns:
        Vectors of length 1, float32 ``[count, dimension]``.
    """
    if len(windows) == count:
        return vectors
    lengths = np.array([len(window) for window in windows], dtype=np.float32)
    first = np.searchsorted(owners, np.arange(count))
    sums = np.add.reduceat(vectors * lengths[:, None], first)
    alone = np.bincount(owners, minlength=count) == 1
    return np.where(alone[:, None], vectors[first], normalised(sums))


def normalised(vectors: FloatArray) -> FloatArray:
    """Rows of length 1, float32 ``[rows, dimension]``.

    Raises:
        EmbedderError: a number is not finite.
    """
    if not np.isfinite(vectors).all():
        raise EmbedderError("the embedding model returned numbers that are not finite; try precision='float32'")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: FloatArray = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32, copy=False)
    return result
