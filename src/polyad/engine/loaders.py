"""The tables of replaceable components and the functions that load one by its name.

A new embedder, mention extractor, reranker or store gets a row here. A package of its own names such a row
as an entry point (see :mod:`polyad.plugin_tables`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl, urlsplit

from polyad.config import EncoderSettings, LanguageModelSettings, ReadSettings, RerankerSettings
from polyad.errors import ConfigurationError
from polyad.plugin_tables import Table
from polyad.presets import get_preset
from polyad.protocols.components import Embedder, LanguageModel, MentionExtractor, Reranker
from polyad.protocols.store import StoreOpener
from polyad.text.files import resolve_path

if TYPE_CHECKING:
    from polyad.readers.pool.workers import WorkerPool

_LOG = logging.getLogger(__name__)

# A component's name is the name of a row, optionally followed by a colon and an argument of the row's function.

DEFAULT_EMBEDDER = "all-MiniLM-L6-v2"
MULTILINGUAL_EMBEDDER = "multilingual-e5-small"
DEFAULT_EXTRACTOR = "rules"
DEFAULT_STORE = "sqlite"

embedders: Table[Callable[[str, EncoderSettings], Embedder]] = Table(
    "embedders",
    "embedder",
    {
        "openai": "polyad.embedders.openai:OpenAIEmbedder.from_name",
        "hashing": "polyad.embedders.hashing:HashingEmbedder.from_name",
    },
    callable,
)

_LOCAL_EMBEDDER = "polyad.embedders.sentence_transformers:SentenceTransformerEmbedder.from_name"
"""Loads every name that is no row of the table."""

_TORCH_FOR_PASSAGES = "polyad.embedders.minilm.embedder:TorchForPassages.from_name"
"""Loads the default embedder if PyTorch is installed."""

_NUMPY_EMBEDDER = "polyad.embedders.minilm.embedder:MiniLMEmbedder.from_name"
"""Loads the default embedder without PyTorch."""

_MULTILINGUAL = "polyad.embedders.multilingual_e5.embedder:load_multilingual_embedder"
"""Loads the multilingual embedder with PyTorch, if the original model is available, or with numpy."""

mentions: Table[Callable[[str, LanguageModel | None], MentionExtractor]] = Table(
    "mentions",
    "mention extractor",
    {
        "rules": "polyad.indexing.mentions.rules:RuleMentionExtractor.from_name",
        "gliner": "polyad.indexing.mentions.gliner:GlinerMentionExtractor.from_name",
        "llm": "polyad.indexing.mentions.language_model:LanguageModelMentionExtractor.from_name",
        "given": "polyad.indexing.mentions.from_file:FileMentionExtractor.from_name",
    },
    callable,
    ("rules", "gliner", "gliner:medical", "llm", "given:FILE"),
)

rerankers: Table[Callable[[str, RerankerSettings], Reranker]] = Table(
    "rerankers",
    "reranker",
    {
        "cross-encoder": "polyad.rerankers.cross_encoder:CrossEncoderReranker.from_name",
        "endpoint": "polyad.rerankers.endpoint:EndpointReranker.from_name",
    },
    callable,
    ("cross-encoder:MODEL_OR_FOLDER", "endpoint:MODEL"),
)

stores: Table[StoreOpener] = Table(
    "stores",
    "store",
    {
        "sqlite": "polyad.stores.sqlite:SqliteStore.open",
        "postgresql": "polyad.stores.postgres:open_postgres",
        "memory": "polyad.stores.memory:MemoryStore.open",
    },
    callable,
)


Place = str | Path
"""The folder of an index, or the address of its database, such as ``postgresql://...``."""


def parse_place(text: str) -> Place:
    """Parse the location of an index: a URL such as ``postgresql://HOST/DATABASE``, or a folder path."""
    return text if "://" in text else Path(text)


def get_place_name(place: Place) -> str:
    """Return a short name of an index: the name of its folder, or the workspace or database of its address."""
    if isinstance(place, Path):
        return resolve_path(place).name
    parts = urlsplit(place)
    return dict(parse_qsl(parts.query)).get("workspace") or parts.path.strip("/") or "default"


def get_store_opener(place: str | Path) -> StoreOpener:
    """Return the function that opens the database of an index: SQLite for a folder, otherwise by URL scheme.

    Raises:
        ConfigurationError: there is no store of this name.
    """
    scheme, separator, _ = str(place).partition("://")
    return stores[scheme if separator else DEFAULT_STORE]


_LANGUAGE_MODEL = "polyad.language_models.openai.language_model:OpenAILanguageModel"


class Loader(Protocol):
    """A protocol for loading components: embedders, mention extractors and language models.

    This module implements it, and :class:`polyad.engine.ray_cluster.RayCluster` for a cluster.
    """

    def load_embedder(self, name: str, settings: EncoderSettings | None = None) -> Embedder:
        """Load an embedder (text to vectors) by name.

        See :func:`load_embedder`.
        """

    def load_extractor(self, name: str, language_model: LanguageModel | None) -> MentionExtractor:
        """Load a mention extractor (it finds entity names in texts) by name.

        See :func:`load_extractor`.
        """

    def load_language_model(self, model: str | LanguageModelSettings) -> LanguageModel:
        """Load a language model by name or settings.

        See :func:`load_language_model`.
        """

    def open_reading_pool(self, settings: ReadSettings) -> WorkerPool:
        """Open a pool of processes that read documents from files.

        See :func:`open_reading_pool`.
        """


def load_embedder(name: str, settings: EncoderSettings | None = None) -> Embedder:
    """Load an embedder (text to vectors) by name, such as ``all-MiniLM-L6-v2`` or ``openai:MODEL``.

    ``openai:MODEL`` is served by an OpenAI-compatible endpoint; ``hashing:DIMENSION`` hashes words and needs no model,
    for tests and comparisons; any other name is the name or the folder of a sentence-transformers model. The default
    embedder embeds questions with numpy, and documents with sentence-transformers if that is installed.
    ``multilingual-e5-small`` needs no sentence-transformers either.

    Args:
        name: As above, or the name of another package's embedder.
        settings: Device, backend or endpoint.

    Raises:
        ConfigurationError: The model or the device does not exist.
    """
    settings = settings or EncoderSettings()
    kind, _, rest = name.partition(":")
    if kind in embedders:
        return embedders[kind](rest, settings)
    embedder: Embedder = resolve_name(_choose_local_embedder(name, settings))(resolve_embedder_name(name), settings)
    return embedder


def load_index_embedder(
    name: str, settings: EncoderSettings, load: Callable[[str, EncoderSettings], Embedder]
) -> Embedder:
    """Load the embedder of an index by the name that the index stores.

    An index of an endpoint's model may be older than the prefixes that this model has by default.

    Args:
        name: Name of the embedder that the index stores.
        settings: Device, backend or endpoint.
        load: Loads an embedder by its name.
    """
    embedder = load(name, settings)
    return load(f"{name}+", settings) if embedder.name.startswith(f"{name}+") else embedder


def _choose_local_embedder(name: str, settings: EncoderSettings) -> str:
    """Return the import path of the function that loads a local model with numpy, with PyTorch, or with both.

    Raises:
        ConfigurationError: The settings require numpy for a model that numpy does not support.
    """
    name = resolve_embedder_name(name)
    is_default = name == DEFAULT_EMBEDDER
    if name == MULTILINGUAL_EMBEDDER:
        return _MULTILINGUAL
    if settings.backend == "numpy" and not is_default:
        raise ConfigurationError(
            f"the backend 'numpy' supports {DEFAULT_EMBEDDER!r} and {MULTILINGUAL_EMBEDDER!r} only, not {name!r}; "
            "remove the setting"
        )
    if settings.backend == "torch" or not is_default:
        return _LOCAL_EMBEDDER
    if settings.backend == "numpy" or find_spec("sentence_transformers") is None:
        return _NUMPY_EMBEDDER
    return _TORCH_FOR_PASSAGES if settings.device in ("auto", "cpu") else _LOCAL_EMBEDDER


def resolve_embedder_name(name: str, settings: EncoderSettings | None = None, *, expected: str = "") -> str:
    """Return the name of an embedder as an index stores it, such as ``hashing:384`` for ``hashing``.

    A model folder is named by its absolute path.

    Args:
        name: Name of the embedder in any form.
        settings: Device, backend or endpoint.
        expected: Name that an index stores. An embedder of another kind, which has another name, is not loaded.
    """
    kind, _, rest = name.partition(":")
    if name != expected and kind == expected.partition(":")[0] and kind in embedders:
        return embedders[kind](rest, settings or EncoderSettings()).name
    if Path(name).is_dir():
        return str(Path(name).resolve())
    is_multilingual = name == f"intfloat/{MULTILINGUAL_EMBEDDER}"
    return MULTILINGUAL_EMBEDDER if is_multilingual else name.removeprefix("sentence-transformers/")


def load_extractor(name: str, language_model: LanguageModel | None) -> MentionExtractor:
    """Load a mention extractor (it finds entity names in texts) by name, such as ``rules`` or ``gliner``.

    ``rules`` needs no model; ``gliner`` or ``gliner:LABELS`` or ``gliner:LABELS:MODEL`` with the label set ``general``
    or ``medical``, and ``@sentence`` after the labels to read sentences one by one; ``llm`` asks the language model;
    ``given:FILE`` finds the names listed in a file. The default model of GLiNER knows English only; texts in other
    languages need ``gliner:general:urchade/gliner_multi-v2.1``.

    Raises:
        ConfigurationError: The extractor is unknown or lacks a component.
    """
    kind, _, rest = name.partition(":")
    return mentions[kind](rest, language_model)


def load_default_extractor(preset: str, language_model: LanguageModel | None, loader: Loader) -> MentionExtractor:
    """Load the mention extractor for a new index: the preset's extractor if it can be loaded, else ``rules``.

    Logs a warning if the extractor of the preset cannot be loaded.

    Args:
        preset: Name of the preset; empty for none.
        language_model: Language model for an extractor that needs one.
        loader: Loads the extractor.
    """
    name = get_preset(preset).mention_extractor if preset else ""
    if name:
        try:
            return loader.load_extractor(name, language_model)
        except ConfigurationError as error:
            _LOG.warning("the preset %s extracts names by rules, not by %s as the paper does: %s", preset, name, error)
    return loader.load_extractor(DEFAULT_EXTRACTOR, language_model)


def load_reranker(name: str, settings: RerankerSettings | None = None) -> Reranker:
    """Load a reranker by name, such as ``cross-encoder:MODEL``.

    ``cross-encoder:MODEL`` is a cross-encoder of sentence-transformers, by its name or folder; ``endpoint:MODEL`` is
    served behind ``POST /rerank``, as Cohere and vLLM have it.

    Args:
        name: As above, or the name of another package's reranker.
        settings: Address and timeout of an endpoint.

    Raises:
        ConfigurationError: The reranker is unknown or lacks a component.
    """
    kind, _, rest = name.partition(":")
    return rerankers[kind](rest, settings or RerankerSettings())


def load_language_model(model: str | LanguageModelSettings) -> LanguageModel:
    """Load a language model behind an OpenAI-compatible endpoint, by name or settings.

    The OpenAI library reads ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY`` for values that the settings leave open.

    Raises:
        ConfigurationError: The name is blank, or the extra ``llm`` is not installed.
    """
    settings = LanguageModelSettings(model=model) if isinstance(model, str) else model
    language_model: LanguageModel = resolve_name(_LANGUAGE_MODEL)(settings)
    return language_model


def open_reading_pool(settings: ReadSettings) -> WorkerPool:
    """Open a pool of local processes that read documents from files."""
    from polyad.readers.pool.workers import WorkerPool  # a search reads no documents

    return WorkerPool(settings)
