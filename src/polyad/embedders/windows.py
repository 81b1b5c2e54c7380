"""What local encoders share: the vectors of token windows, into which long texts are split, and processors."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from polyad.errors import EmbedderError
from polyad.model import FloatArray


def average_windows(
    vectors: FloatArray, windows: Sequence[list[int]], text_of_window: Sequence[int], text_count: int
) -> FloatArray:
    """Return one unit vector per text: the mean of its windows' vectors, weighted by number of tokens.

    The vector of a text with one window is unchanged.

    Args:
        vectors: Unit vectors of the windows, float32 ``[windows, dimension]``.
        windows: Token ids of each window.
        text_of_window: Position of the text of each window, ascending; every text has at least one window.
        text_count: Number of texts.

    Returns:
        float32 ``[text_count, dimension]``.
    """
    if len(windows) == text_count:
        return vectors
    lengths = np.array([len(window) for window in windows], dtype=np.float32)
    first = np.searchsorted(text_of_window, np.arange(text_count))
    sums = np.add.reduceat(vectors * lengths[:, None], first)
    is_single = np.bincount(text_of_window, minlength=text_count) == 1
    return np.where(is_single[:, None], vectors[first], normalise_vectors(sums))


def normalise_vectors(vectors: FloatArray) -> FloatArray:
    """Return the vectors scaled to length 1, float32 ``[rows, dimension]``.

    Raises:
        EmbedderError: a number is not finite.
    """
    if not np.isfinite(vectors).all():
        raise EmbedderError("the embedding model returned numbers that are not finite; try precision='float32'")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: FloatArray = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32, copy=False)
    return result


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
