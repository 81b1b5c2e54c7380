"""The embedder of all-MiniLM-L6-v2 if PyTorch is installed: numpy embeds questions, PyTorch documents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from threading import Lock

from polyad.config import EncoderSettings
from polyad.embedders.minilm.embedder import MiniLMEmbedder
from polyad.embedders.minilm.weights import find_model_folder
from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, TextKind


class TorchForPassages:
    """An embedder that uses numpy for queries and PyTorch, imported on first use, for passages.

    Importing PyTorch takes seconds, a query milliseconds; for many texts PyTorch is up to three times as fast. The
    vectors of both are equal to within the precision in which PyTorch computes.

    Args:
        settings: Device of PyTorch.
    """

    def __init__(self, settings: EncoderSettings) -> None:
        self._settings = settings
        self._lock = Lock()

    @classmethod
    def from_name(cls, name: str, settings: EncoderSettings) -> Embedder:
        """Return the embedder; if the files for numpy are missing, PyTorch embeds queries too.

        Raises:
            ConfigurationError: The device does not exist, or the model cannot be loaded.
        """
        return cls(settings) if find_model_folder() else SentenceTransformerEmbedder.from_name(name, settings)

    @property
    def name(self) -> str:
        """Name of the embedding model, stored in the index."""
        return "all-MiniLM-L6-v2"

    @property
    def dimension(self) -> int:
        """The number of components of the embedding vectors."""
        return 384

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
