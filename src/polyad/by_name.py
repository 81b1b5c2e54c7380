"""Adapters by the names that a command line or a settings file gives them.

A name is a row of a table, and after a colon whatever the class of that row reads with its ``from_name``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from polyad.config import LanguageModelSettings, RerankerSettings
from polyad.errors import ConfigurationError
from polyad.protocols import Embedder, LanguageModel, MentionExtractor, Reranker

DEFAULT_EMBEDDER = "all-MiniLM-L6-v2"
DEFAULT_EXTRACTOR = "rules"

_EMBEDDERS = {
    "openai": "polyad.adapters.openai.embeddings:OpenAIEmbedder",
    "hashing": "polyad.adapters.hashing:HashingEmbedder",
}
"""What stands before the colon, to the ``module:Class`` that is imported when it is asked for."""

_LOCAL_MODEL = "polyad.adapters.sentence_transformers:SentenceTransformerEmbedder"
"""Takes every other name, whole."""

_LANGUAGE_MODEL = "polyad.adapters.openai:OpenAILanguageModel"

_EXTRACTORS = {
    "rules": "polyad.indexing.mentions.rules:RuleMentionExtractor",
    "gliner": "polyad.adapters.gliner:GlinerMentionExtractor",
    "llm": "polyad.indexing.mentions.llm:LanguageModelMentionExtractor",
    "given": "polyad.indexing.mentions.given:GivenMentionExtractor",
}
"""The same for mention extractors."""

_RERANKERS = {
    "cross-encoder": "polyad.adapters.cross_encoder:CrossEncoderReranker",
    "endpoint": "polyad.adapters.openai:EndpointReranker",
}
"""The same for rerankers."""


def load_embedder(name: str, *, base_url: str = "", api_key: str = "", device: str = "auto") -> Embedder:
    """The embedder called ``name``.

    ``openai:MODEL`` is served by an OpenAI-compatible endpoint; ``hashing:DIMENSION`` hashes words and needs no model,
    for tests and comparisons; anything else is the name or the folder of a sentence-transformers model.

    Args:
        name: As above.
        base_url: The endpoint of ``openai``; empty for the one that the OpenAI library finds in the environment
            (``OPENAI_BASE_URL``).
        api_key: Its key; empty for the one in the environment (``OPENAI_API_KEY``).
        device: Where a sentence-transformers model runs; see :class:`polyad.config.EncoderSettings`.

    Raises:
        ConfigurationError: there is no such model, or no such device.
    """
    kind, _, rest = name.partition(":")
    endpoint = {"base_url": base_url, "api_key": api_key} if kind == "openai" else {}
    embedder: Embedder = (
        _class(_EMBEDDERS[kind]).from_name(rest, **endpoint)
        if kind in _EMBEDDERS
        else _class(_LOCAL_MODEL).from_name(embedder_name(name), device)
    )
    return embedder


def embedder_name(name: str) -> str:
    """The name that an index keeps for an embedder: of a model's folder the absolute path, else the name itself."""
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def load_extractor(name: str, language_model: LanguageModel | None) -> MentionExtractor:
    """The mention extractor called ``name``.

    ``rules`` needs no model; ``gliner`` or ``gliner:LABELS`` or ``gliner:LABELS:MODEL`` with the label set ``general``
    or ``medical``; ``llm`` asks the language model; ``given:FILE`` finds the names listed in a file.

    Raises:
        ConfigurationError: there is no such extractor, or it lacks what it needs.
    """
    kind, _, rest = name.partition(":")
    if kind not in _EXTRACTORS:
        raise ConfigurationError(
            f"no mention extractor {name!r}; expected rules, gliner, gliner:medical, llm or given:FILE"
        )
    needed = {"language_model": language_model} if kind == "llm" else {}
    extractor: MentionExtractor = _class(_EXTRACTORS[kind]).from_name(rest, **needed)
    return extractor


def load_reranker(name: str, settings: RerankerSettings | None = None) -> Reranker:
    """The reranker called ``name``.

    ``cross-encoder:MODEL`` is a cross-encoder of sentence-transformers, by its name or folder; ``endpoint:MODEL`` is
    served behind ``POST /rerank``, as Cohere and vLLM have it.

    Args:
        name: As above.
        settings: Where an endpoint is, and how long to wait for it.

    Raises:
        ConfigurationError: there is no such reranker, or it lacks what it needs.
    """
    kind, _, rest = name.partition(":")
    if kind not in _RERANKERS or not rest.strip():
        raise ConfigurationError(f"no reranker {name!r}; expected cross-encoder:MODEL_OR_FOLDER or endpoint:MODEL")
    reranker: Reranker = _class(_RERANKERS[kind]).from_name(rest, settings or RerankerSettings())
    return reranker


def load_language_model(given: str | LanguageModelSettings) -> LanguageModel:
    """The language model of that name, or with these settings, behind an OpenAI-compatible endpoint.

    What the settings leave open is for the OpenAI library to find in the environment: ``OPENAI_BASE_URL`` and
    ``OPENAI_API_KEY``.

    Raises:
        ConfigurationError: the name is blank, or the extra ``llm`` is not installed.
    """
    settings = LanguageModelSettings(model=given) if isinstance(given, str) else given
    model: LanguageModel = _class(_LANGUAGE_MODEL)(settings)
    return model


def _class(path: str) -> Any:
    """The class at ``module:Class``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
