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
    """Embeds queries with numpy and passages with PyTorch, which is imported when the first passage is embedded.

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
        """Return the embedder. PyTorch embeds queries too if numpy would have to download the model.

        Raises:
            ConfigurationError: The device does not exist, or the model cannot be loaded.
        """
        return cls(settings) if find_model_folder() else SentenceTransformerEmbedder.from_name(name, settings)

    @property
    def name(self) -> str:
        """Name of the model, by which an index opens the same embedder again."""
        return "all-MiniLM-L6-v2"

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
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
