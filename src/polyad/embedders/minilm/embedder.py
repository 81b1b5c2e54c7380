"""all-MiniLM-L6-v2 without PyTorch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np
from threadpoolctl import threadpool_limits

from polyad.config import EncoderSettings
from polyad.embedders.minilm.network import Network
from polyad.embedders.minilm.weights import read_weights, weights_folder
from polyad.embedders.minilm.word_pieces import WordPieces
from polyad.embedders.windows import encodable, normalised, pooled
from polyad.errors import ConfigurationError
from polyad.model import FloatArray
from polyad.protocols.components import TextKind

WINDOW = 256
"""Tokens that the model reads at once; what its makers set, as sentence-transformers does."""


class MiniLMEmbedder:
    """Embeds with all-MiniLM-L6-v2 in float32, by numpy alone; any processor, no other package.

    Its vectors are those of sentence-transformers in float32 to within 1e-6, and both go by the same name: an index
    made by one is searched by the other. A text longer than the model reads is embedded in windows whose vectors are
    averaged, weighted by their length in tokens. A vector depends on its text alone, bit for bit.

    Computes with one thread a processor, each on windows of its own, and sets the threads of numpy's matrix library to
    one: threads that share each product wait for one another, which on a busy machine takes tens of times as long.

    Raises:
        ModelNotFoundError: the model's files are not on this machine, and cannot be fetched.
    """

    def __init__(self) -> None:
        folder = weights_folder()
        threadpool_limits(1, user_api="blas")
        self._network = Network(read_weights(folder / "model.safetensors"))
        self._tokenizer = WordPieces((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())

    @classmethod
    def from_name(cls, name: str, settings: EncoderSettings) -> Self:  # noqa: ARG003  # it is the one model
        """The embedder.

        Raises:
            ConfigurationError: the settings ask for a device that numpy does not compute on.
            ModelNotFoundError: the model's files are not on this machine, and cannot be fetched.
        """
        if settings.device not in ("auto", "cpu"):
            raise ConfigurationError(
                f"device is {settings.device!r}, and without PyTorch only the processor computes; leave it out, or "
                'run: pip install "polyad[local]"'
            )
        return cls()

    @property
    def name(self) -> str:
        """The model's name, as it can be given again to load it."""
        return "all-MiniLM-L6-v2"

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._network.width

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:  # noqa: ARG002  # questions are like passages
        """Embed ``texts``; see :class:`polyad.protocols.components.Embedder`.

        Raises:
            EmbedderError: the model gave a number that is not finite.
        """
        windows: list[list[int]] = []
        owners: list[int] = []
        for row, text in enumerate(texts):
            found = self._tokenizer.windows(encodable(text), WINDOW)
            windows += found
            owners += [row] * len(found)
        vectors = np.empty((len(windows), self.dimension), dtype=np.float32)
        workers = ThreadPoolExecutor(max(1, min(_processors(), len(windows))), "polyad-embedder")
        try:
            for row, vector in enumerate(workers.map(self._network.mean, windows)):
                vectors[row] = vector
        finally:
            workers.shutdown(cancel_futures=True)
        return pooled(normalised(vectors), windows, owners, len(texts))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
