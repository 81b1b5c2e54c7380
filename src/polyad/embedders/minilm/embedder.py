"""The embedders of all-MiniLM-L6-v2: with numpy alone, or with PyTorch for documents if it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from threading import Lock

from polyad.config import EncoderSettings
from polyad.embedders.minilm.encoder import Network, WordPieceTokenizer
from polyad.embedders.minilm.weights import MINILM, read_weights
from polyad.embedders.numpy_embedder import NumpyEmbedder, Tokenizer
from polyad.embedders.sentence_transformers import (
    SentenceTransformerEmbedder,
)
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, TextKind


class MiniLMEmbedder(NumpyEmbedder):
    """An embedder with the model all-MiniLM-L6-v2, computed by numpy without a machine learning library.

    The vectors equal the float32 vectors of sentence-transformers to within 1e-6, and both embedders have the same
    name: one can search an index that the other built.
    """

    name = "all-MiniLM-L6-v2"
    max_window_tokens = 256

    @staticmethod
    def load_model() -> tuple[Network, Tokenizer]:
        """Return the encoder and its tokenizer."""
        folder = MINILM.get_folder()
        vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        return Network(read_weights(folder / "model.safetensors")), WordPieceTokenizer(vocabulary)


_MAX_NUMPY_CHARACTERS = 80_000
"""Characters of passages from which on PyTorch computes: numpy takes 46 ms of processor time for a text of 500
characters, PyTorch a third of that and 5 s to be imported, so both take as long for some 160 such texts."""


class TorchForPassages:
    """An embedder that uses numpy for queries and the first passages, and PyTorch for many passages.

    Importing PyTorch takes seconds, a query milliseconds; for many texts PyTorch is up to three times as fast. So a
    document that changed in a line is indexed without PyTorch. The vectors of both are equal to within the precision in
    which PyTorch computes. If the settings name a device other than the processor, PyTorch embeds all passages.

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
        self._numpy_characters = _MAX_NUMPY_CHARACTERS if settings.device in ("auto", "cpu") else 0

    @classmethod
    def from_name(cls, name: str, settings: EncoderSettings) -> Embedder:
        """Return an embedder by numpy and PyTorch, or by PyTorch alone if the model files for numpy are missing.

        Raises:
            ConfigurationError: The device does not exist, or the model cannot be loaded.
        """
        return cls(settings) if MINILM.find_folder() else SentenceTransformerEmbedder.from_name(name, settings)

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``.

        Raises:
            EmbedderError: The model returned a number that is not finite.
        """
        with self._lock:
            embedder = self._numpy if kind == "query" else self._choose_for_passages(texts)
        return embedder.encode(texts, kind)

    def knows_words(self, words: Sequence[str]) -> list[bool]:
        """Return for each word whether it is one token of the model."""
        with self._lock:
            embedder = self._numpy
        return embedder.knows_words(words)

    def _choose_for_passages(self, texts: Sequence[str]) -> Embedder:
        """Return numpy's embedder while few passages were embedded, and then that of PyTorch."""
        self._numpy_characters -= sum(map(len, texts))
        return self._numpy if self._numpy_characters >= 0 else self._torch

    @cached_property
    def _numpy(self) -> MiniLMEmbedder:
        return MiniLMEmbedder()

    @cached_property
    def _torch(self) -> SentenceTransformerEmbedder:
        return SentenceTransformerEmbedder.from_name(self.name, self._settings)
