"""The base class of embedders that numpy computes without a machine learning library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import ClassVar, Protocol, Self

import numpy as np
from threadpoolctl import threadpool_limits

from polyad.config import EncoderSettings
from polyad.embedders.minilm.encoder import Network
from polyad.embedders.sentence_transformers import average_windows, count_processors, normalise_vectors
from polyad.errors import ConfigurationError
from polyad.model import FloatArray
from polyad.protocols.components import TextKind
from polyad.text.words import replace_surrogates, split_by_size

_BATCH_TOKENS = 256
"""Maximum number of tokens of several queries in one pass: larger matrix products take as long for each token."""

_TOKENS_OF_WORD = 3
"""Tokens of a text that is one word of the vocabulary: the special tokens, and its own."""


class Tokenizer(Protocol):
    """Converts texts to windows of token ids."""

    def split_windows(self, text: str, max_tokens: int) -> list[list[int]]:
        """Return the token ids of a text in windows of at most ``max_tokens``, special tokens included."""


class NumpyEmbedder(ABC):
    """An embedder that computes a BERT encoder with numpy.

    A text that is longer than the model's input is embedded in windows, whose vectors are averaged, weighted by their
    number of tokens. The vector of a passage depends only on its text, bit for bit. Queries are computed together,
    which takes half the time; their vectors are not stored, and may differ in the last bits.

    Each processor computes windows in a thread of its own, and the threads of numpy's matrix library are set to one:
    threads that share a matrix product wait for each other, which on a busy machine is tens of times slower.

    Attributes:
        name: Name of the embedding model, stored in the index.
        dimension: The number of components of the embedding vectors.
        max_window_tokens: Maximum input of the model in tokens, as configured by its authors.
        prefixes: Prefix of queries and of all other texts, as in the training of the model.

    Raises:
        ModelNotFoundError: the model's files are not on this machine and cannot be downloaded.
    """

    name: ClassVar[str]
    dimension: ClassVar[int] = 384
    max_window_tokens: ClassVar[int]
    prefixes: ClassVar[Mapping[TextKind, str]] = MappingProxyType({"query": "", "passage": ""})

    def __init__(self) -> None:
        self._network, self._tokenizer = self.load_model()
        threadpool_limits(1, user_api="blas")
        self._max_workers = count_processors()

    @staticmethod
    @abstractmethod
    def load_model() -> tuple[Network, Tokenizer]:
        """Return the encoder and its tokenizer.

        Raises:
            ModelNotFoundError: the model's files are not on this machine and cannot be downloaded.
        """

    @classmethod
    def from_name(cls, name: str, settings: EncoderSettings) -> Self:  # noqa: ARG003  # a class has one model
        """Return the embedder; ``name`` is ignored because a class has one model.

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

    def knows_words(self, words: Sequence[str]) -> list[bool]:
        """Return for each word whether it is one token, in lower case or as it is written."""
        return [any(map(self._is_token, {word, word.lower(), word.capitalize()})) for word in words]

    def _is_token(self, word: str) -> bool:
        return len(self._tokenizer.split_windows(word, self.max_window_tokens)[0]) == _TOKENS_OF_WORD

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``.

        Raises:
            EmbedderError: the model returned a number that is not finite.
        """
        prefix = self.prefixes[kind]
        windows: list[list[int]] = []
        text_of_window: list[int] = []
        for row, text in enumerate(texts):
            text_windows = self._tokenizer.split_windows(prefix + replace_surrogates(text), self.max_window_tokens)
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
