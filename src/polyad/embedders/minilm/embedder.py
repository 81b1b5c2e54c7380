"""The embedders of all-MiniLM-L6-v2: with numpy alone, or with PyTorch for documents if it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Lock
from typing import Self

import numpy as np
from threadpoolctl import threadpool_limits

from polyad.config import EncoderSettings
from polyad.embedders.minilm.encoder import Network, WordPieceTokenizer
from polyad.embedders.minilm.weights import find_model_folder, get_model_folder, read_weights
from polyad.embedders.sentence_transformers import (
    SentenceTransformerEmbedder,
    average_windows,
    count_processors,
    normalise_vectors,
)
from polyad.errors import ConfigurationError
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, TextKind
from polyad.text.words import replace_surrogates, split_by_size

MAX_WINDOW_TOKENS = 256
"""Maximum input of the model in tokens, as configured by its authors and in sentence-transformers."""

_BATCH_TOKENS = 256
"""Maximum number of tokens of several queries in one pass: larger matrix products take as long for each token."""


class MiniLMEmbedder:
    """An embedder with the model all-MiniLM-L6-v2, computed by numpy without a machine learning library.

    The vectors equal the float32 vectors of sentence-transformers to within 1e-6, and both embedders have the same
    name: one can search an index that the other built. A text that is longer than the model's input is embedded in
    windows, whose vectors are averaged, weighted by their number of tokens. The vector of a passage depends only on its
    text, bit for bit. Queries are computed together, which takes half the time; their vectors are not stored, and may
    differ in the last bits.

    Each processor computes windows in a thread of its own, and the threads of numpy's matrix library are set to one:
    threads that share a matrix product wait for each other, which on a busy machine is tens of times slower.

    Attributes:
        name: Name of the embedding model, stored in the index.
        dimension: The number of components of the embedding vectors.

    Raises:
        ModelNotFoundError: the model's files are not on this machine and cannot be downloaded.
    """

    name = "all-MiniLM-L6-v2"
    dimension = 384

    def __init__(self) -> None:
        folder = get_model_folder()
        threadpool_limits(1, user_api="blas")
        self._max_workers = count_processors()
        self._network = Network(read_weights(folder / "model.safetensors"))
        self._tokenizer = WordPieceTokenizer((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())

    @classmethod
    def from_name(cls, name: str, settings: EncoderSettings) -> Self:  # noqa: ARG003  # there is one model
        """Return the embedder; ``name`` is ignored because there is only one model.

        Raises:
            ConfigurationError: the settings name a device other than the processor.
            ModelNotFoundError: the model's files are not on this machine and cannot be downloaded.
        """
        if settings.device not in ("auto", "cpu"):
            raise ConfigurationError(
                f"device is {settings.device!r}; without PyTorch only the processor is supported; leave it out, or "
                'run: pip install "polyad[local]"'
            )
        return cls()

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``.

        Raises:
            EmbedderError: the model returned a number that is not finite.
        """
        windows: list[list[int]] = []
        text_of_window: list[int] = []
        for row, text in enumerate(texts):
            text_windows = self._tokenizer.split_windows(replace_surrogates(text), MAX_WINDOW_TOKENS)
            windows += text_windows
            text_of_window += [row] * len(text_windows)
        batches = list(split_by_size(windows, len, _BATCH_TOKENS if kind == "query" else 1))
        vectors = np.empty((len(windows), self.dimension), dtype=np.float32)
        row = 0
        workers = ThreadPoolExecutor(max(1, min(self._max_workers, len(batches))), "polyad-embedder")
        try:
            for batch in workers.map(self._network.encode_windows, batches):
                vectors[row : row + len(batch)] = batch
                row += len(batch)
        finally:
            workers.shutdown(cancel_futures=True)
        return average_windows(normalise_vectors(vectors), windows, text_of_window, len(texts))


class TorchForPassages:
    """An embedder that uses numpy for queries and PyTorch, imported on first use, for passages.

    Importing PyTorch takes seconds, a query milliseconds; for many texts PyTorch is up to three times as fast. The
    vectors of both are equal to within the precision in which PyTorch computes.

    Args:
        settings: Device of PyTorch.

    Attributes:
        name: Name of the embedding model, stored in the index.
        dimension: The number of components of the embedding vectors.
    """

    name = MiniLMEmbedder.name
    dimension = MiniLMEmbedder.dimension

    def __init__(self, settings: EncoderSettings) -> None:
        self._settings = settings
        self._lock = Lock()

    @classmethod
    def from_name(cls, name: str, settings: EncoderSettings) -> Embedder:
        """Return an embedder by numpy and PyTorch, or by PyTorch alone if the model files for numpy are missing.

        Raises:
            ConfigurationError: The device does not exist, or the model cannot be loaded.
        """
        return cls(settings) if find_model_folder() else SentenceTransformerEmbedder.from_name(name, settings)

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``.

        Raises:
            EmbedderError: The model returned a number that is not finite.
        """
        with self._lock:
            embedder = self._queries if kind == "query" else self._passages
        return embedder.encode(texts, kind)

    @cached_property
    def _queries(self) -> MiniLMEmbedder:
        return MiniLMEmbedder()

    @cached_property
    def _passages(self) -> SentenceTransformerEmbedder:
        return SentenceTransformerEmbedder.from_name(self.name, self._settings)
