"""Opens or creates an index, and checks that its embedder and mention extractor are the ones that built the index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from polyad.config import LanguageModelSettings
from polyad.engine import loaders
from polyad.engine.components import Components
from polyad.engine.settings import Settings
from polyad.errors import StoreNotFoundError
from polyad.language_models.reply_cache import CachedLanguageModel
from polyad.protocols.components import Embedder, LanguageModel, MentionExtractor, Reranker
from polyad.protocols.lookups import check_manifest, get_version
from polyad.protocols.store import EMBEDDER_CHOICE, REPLIES, Manifest, Store, StoreOpener
from polyad.snapshot.files import FOLDER
from polyad.stores.sqlite import FILE_NAME, JOBS_FILE_NAME, REPLIES_FILE_NAME
from polyad.text.prompts import Prompts

LanguageModelChoice = str | LanguageModelSettings | LanguageModel
"""The name of a model at the endpoint of ``OPENAI_BASE_URL``, its settings, or a language model."""

NO_MODELS: Mapping[str, LanguageModelChoice] = MappingProxyType({})
"""No further language models."""


@runtime_checkable
class _LanguageModelExtractor(Protocol):
    """A mention extractor that calls a language model."""

    def with_language_model(self, language_model: LanguageModel, /) -> MentionExtractor:
        """Return a copy of the extractor that calls another language model."""


def open_index(
    place: str | Path,
    open_store: StoreOpener,
    settings: Settings,
    *,
    embedder: str | Embedder | None,
    mention_extractor: str | MentionExtractor | None,
    language_model: LanguageModelChoice | None,
    language_models: Mapping[str, LanguageModelChoice],
    reranker: str | Reranker | None,
    prompts: str | Path | None,
    replies: Path | None,
    reply_cache: bool,
    create: bool,
    loader: loaders.Loader,
) -> tuple[Store, Components]:
    """Open the index in ``place`` and return its store with the components that search and extend it.

    The embedder and the mention extractor of an existing index are loaded when they are first needed. For the keyword
    arguments see :meth:`polyad.engine.engine.Engine.open`.

    Raises:
        StoreNotFoundError: There is no index, and ``create`` is false.
        IndexMismatchError: The index was built with another embedder or extractor.
        ConfigurationError: There is no such embedder, extractor, language model or reranker.
    """
    is_default = embedder is None
    loaded_prompts = Prompts(prompts)
    choices = language_models if language_model is None else {"": language_model, **language_models}
    models = {
        name: loader.load_language_model(model) if isinstance(model, str | LanguageModelSettings) else model
        for name, model in choices.items()
    }
    try:
        store = open_store(place, replies=replies)
    except StoreNotFoundError:
        if not create:
            raise
        if mention_extractor is None:
            mention_extractor = loaders.load_default_extractor(settings.preset, models.get(""), loader)
        elif isinstance(mention_extractor, str):
            mention_extractor = loader.load_extractor(mention_extractor, models.get(""))
        embedder = get_embedder(embedder, settings, loader)
        manifest = Manifest(embedder.name, embedder.dimension, mention_extractor.name)
        store = open_store(place, manifest, replies=replies)
    try:
        if models:
            store.get_values(REPLIES, ())  # an unusable file must be an error before the first request costs money
        cached_models = {
            name: CachedLanguageModel(model, store, store.charge, recalls=reply_cache) for name, model in models.items()
        }
        cached_model = cached_models.pop("", None)
        if isinstance(reranker, str):
            reranker = loaders.load_reranker(reranker, settings.reranker)
        if store.manifest.directory:
            settings = replace(settings, read=replace(settings.read, folder=str(store.manifest.directory)))
        return store, Components(
            settings,
            _get_index_embedder(store, embedder, settings),
            _get_index_extractor(store, mention_extractor, cached_model, loader),
            cached_model,
            reranker,
            loaded_prompts,
            (store.manifest.embedder, store.manifest.dimension),
            loader,
            language_models=cached_models,
            is_embedder_open=is_default and _is_embedder_open(store),
        )
    except BaseException:
        store.close()
        raise


def _is_embedder_open(store: Store) -> bool:
    """Return whether the languages of the documents choose the embedder of an index, because no user named it."""
    if EMBEDDER_CHOICE in store.get_values(EMBEDDER_CHOICE):
        return True
    return store.manifest.embedder == loaders.DEFAULT_EMBEDDER and not get_version(store)


def list_own_files(store: Store) -> list[Path]:
    """Return the files and the folder of an index that no export and no backup may replace."""
    directory = store.manifest.directory
    return [directory / name for name in (FILE_NAME, REPLIES_FILE_NAME, JOBS_FILE_NAME, FOLDER)] if directory else []


def get_embedder(embedder: str | Embedder | None, settings: Settings, loader: loaders.Loader) -> Embedder:
    """Return ``embedder`` if it is an object, else load the embedder with this name; None loads the default."""
    if isinstance(embedder, str) or embedder is None:
        return loader.load_embedder(embedder or loaders.DEFAULT_EMBEDDER, settings.encoder)
    return embedder


def _get_index_embedder(store: Store, embedder: str | Embedder | None, settings: Settings) -> str | Embedder:
    """Return the embedder of an existing index, or its name, if the user named no other ``embedder``.

    Raises:
        IndexMismatchError: The index was built with another embedder.
    """
    if embedder is None or isinstance(embedder, str):
        stored = store.manifest.embedder
        name = loaders.resolve_embedder_name(embedder, settings.encoder, expected=stored) if embedder else None
        check_manifest(store.manifest, embedder=name)
        return stored
    check_manifest(store.manifest, embedder=embedder.name)
    return embedder


def _get_index_extractor(
    store: Store, extractor: str | MentionExtractor | None, model: LanguageModel | None, loader: loaders.Loader
) -> str | MentionExtractor:
    """Return the mention extractor of an existing index, or its name, if the user named no other ``extractor``.

    Args:
        store: Store of the index.
        extractor: Name of an extractor, an extractor, or None for the extractor of the index.
        model: Language model for an extractor that needs one.
        loader: Loads the extractor of a name.

    Raises:
        IndexMismatchError: The index was built with another extractor.
    """
    if extractor in (None, store.manifest.mentions):
        return store.manifest.mentions
    extractor = loader.load_extractor(extractor, model) if isinstance(extractor, str) else extractor
    check_manifest(store.manifest, mentions=extractor.name)
    if model and isinstance(extractor, _LanguageModelExtractor):
        return extractor.with_language_model(model)
    return extractor
