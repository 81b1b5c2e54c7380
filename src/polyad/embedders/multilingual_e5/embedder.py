"""The embedders with the model multilingual-e5-small: with numpy, or with PyTorch and the original weights."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from polyad.config import EncoderSettings
from polyad.embedders.minilm.encoder import Network
from polyad.embedders.multilingual_e5.tokenizer import UnigramTokenizer
from polyad.embedders.multilingual_e5.weights import FILE, MULTILINGUAL_E5, read_model_file
from polyad.embedders.numpy_embedder import NumpyEmbedder, Tokenizer
from polyad.embedders.prefixes import find_prefixes
from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder
from polyad.errors import ConfigurationError
from polyad.protocols.components import Embedder, TextKind

_NAME = "multilingual-e5-small"
_HUB_NAME = f"intfloat/{_NAME}"


class MultilingualE5Embedder(NumpyEmbedder):
    """An embedder for texts in about 100 languages (Wang et al., 2024, arXiv 2402.05672), with weights of 4 bits."""

    name = _NAME
    max_window_tokens = 512
    prefixes: ClassVar[Mapping[TextKind, str]] = MappingProxyType(
        {"query": find_prefixes(_NAME).query, "passage": find_prefixes(_NAME).passage}
    )

    @staticmethod
    def load_model() -> tuple[Network, Tokenizer]:
        """Return the encoder and its tokenizer."""
        return read_model(MULTILINGUAL_E5.get_folder() / FILE)


def read_model(file: Path) -> tuple[Network, UnigramTokenizer]:
    """Return the encoder and the tokenizer in a model file.

    Raises:
        ModelNotFoundError: the file has another format.
    """
    model = read_model_file(file)
    return Network(model.weights, model.words), UnigramTokenizer(model.pieces, model.scores)


class OriginalMultilingualE5Embedder(SentenceTransformerEmbedder):
    """An embedder with the original weights of multilingual-e5-small; cosine to those of 4 bits about 0.98."""

    name = _NAME


def load_multilingual_embedder(name: str, settings: EncoderSettings) -> Embedder:  # noqa: ARG001  # there is one
    """Return the embedder with original weights if they are on this machine or the hub, else with weights of 4 bits.

    Args:
        name: Ignored: there is one model.
        settings: Device and backend; ``numpy`` always selects the weights of 4 bits.

    Raises:
        ConfigurationError: The settings require PyTorch, and the model or the device does not exist.
        ModelNotFoundError: The model is not on this machine and cannot be downloaded.
    """
    is_optional = settings.backend == "auto" and settings.device in ("auto", "cpu")
    if not is_optional and settings.backend != "numpy":
        return OriginalMultilingualE5Embedder.from_name(_HUB_NAME, settings)
    has_torch = is_optional and find_spec("sentence_transformers") is not None
    if has_torch and (_is_cached() or not MULTILINGUAL_E5.find_folder()):
        with suppress(ConfigurationError):
            return OriginalMultilingualE5Embedder.from_name(_HUB_NAME, settings)
    return MultilingualE5Embedder.from_name(_NAME, settings)


def _is_cached() -> bool:
    """Return whether the original model is in the cache of the Hugging Face hub."""
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(_HUB_NAME, "model.safetensors"), str)
