"""The embedder, mention extractor, reranker and language model of an engine, each loaded on first use."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar, cast, runtime_checkable

from polyad.config import EncoderSettings
from polyad.embedders.metered import MeteredEmbedder
from polyad.engine import loaders
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError, EmbedderError, NoLanguageModelError
from polyad.indexing.split import SentenceSplitter
from polyad.language_models.reply_cache import CachedLanguageModel
from polyad.model import Usage
from polyad.protocols.components import Embedder, MentionExtractor, Reranker, report_failure
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts

_LOG = logging.getLogger(__name__)

SectionT = TypeVar("SectionT")


@runtime_checkable
class PromptedExtractor(Protocol):
    """A mention extractor that uses language model prompts, which the user may replace."""

    def with_prompts(self, prompts: Prompts, /) -> MentionExtractor:
        """Return a copy of the mention extractor that uses ``prompts``."""

    @property
    def prompt_version(self) -> str:
        """A hash of the prompts that the user replaced; an empty string if none were replaced."""


class Components:
    """The embedder, mention extractor, language model and other components that indexing and search share.

    Lookups in an index need none of them.

    Args:
        settings: Settings of all stages.
        embedder: An embedder, or the name of one.
        extractor: A mention extractor, or the name of one.
        language_model: The language model; None if none is configured.
        reranker: The reranker; None if none is configured.
        prompts: Prompts of the language model.
        language_models: Further language models, of which an answer may name one, by name.
        index_embedder: Name and dimension of the embedder that built the index; None if there is no index.
        loader: Loads components by name.

    Attributes:
        load_embedder: Loads an embedder by its name. A program with several indexes replaces it, to load a model once.
        is_embedder_open: Whether the languages of the documents choose the embedder, because the user named none.
    """

    def __init__(
        self,
        settings: Settings,
        embedder: Embedder | str,
        extractor: MentionExtractor | str,
        language_model: CachedLanguageModel | None = None,
        reranker: Reranker | None = None,
        prompts: Prompts = DEFAULT_PROMPTS,
        index_embedder: tuple[str, int] | None = None,
        loader: loaders.Loader = loaders,
        *,
        language_models: Mapping[str, CachedLanguageModel] | None = None,
        is_embedder_open: bool = False,
    ) -> None:
        self.loader = loader
        self.is_embedder_open = is_embedder_open
        self._index_embedder = index_embedder
        self.prompts = prompts
        self.settings = settings
        self.splitter = SentenceSplitter(settings.split)
        self.language_model = language_model
        self.language_models = language_models or {}
        self.reranker = reranker
        self.load_embedder: Callable[[str, EncoderSettings], Embedder] = loader.load_embedder
        self._embedder = embedder
        self._extractor = extractor if isinstance(extractor, str) else self._with_prompts(extractor)
        self._metered: MeteredEmbedder | None = None
        self._lock = threading.Lock()

    @property
    def embedder(self) -> MeteredEmbedder:
        """The embedder of the index, loaded at its first use; it counts texts and seconds."""
        with self._lock:
            if self._metered is None:
                embedder = self._embedder
                if isinstance(embedder, str):
                    start = time.perf_counter()
                    with report_failure(EmbedderError, f"loading the embedder {embedder!r}"):
                        embedder = self.load_embedder(embedder, self.settings.encoder)
                    _LOG.info("the embedder %r was loaded in %.1f s", embedder.name, time.perf_counter() - start)
                self._metered = MeteredEmbedder(embedder, self._index_embedder)
            return self._metered

    def replace_embedder(self, embedder: Embedder) -> None:
        """Use another embedder, which built the index, also in retrievers that were made before."""
        with self._lock:
            self._embedder, self._index_embedder = embedder, (embedder.name, embedder.dimension)
            if self._metered is not None:
                self._metered.replace_embedder(embedder, self._index_embedder)

    @property
    def extractor(self) -> MentionExtractor:
        """The mention extractor (finds entity names in texts) of the index, loaded at its first use."""
        with self._lock:
            if isinstance(self._extractor, str):
                self._extractor = self._with_prompts(self.loader.load_extractor(self._extractor, self.language_model))
            return self._extractor

    def _with_prompts(self, extractor: MentionExtractor) -> MentionExtractor:
        return extractor.with_prompts(self.prompts) if isinstance(extractor, PromptedExtractor) else extractor

    def get_settings(self, name: str, section: type[SectionT]) -> SectionT:
        """Return the plug-in's settings in ``polyad.toml``; the defaults of the class ``section`` if none are set.

        Args:
            name: Name of the plug-in's entry point, which is also the name of the section.
            section: Dataclass of the section, as in a :class:`polyad.engine.registry.RetrieverSpec`.
        """
        return cast(SectionT, self.settings.plugins.get(name) or section())

    @property
    def extracts_by_language_model(self) -> bool:
        """Whether the mention extractor calls a language model."""
        return isinstance(self.extractor, PromptedExtractor)

    @property
    def extractor_prompt_version(self) -> str:
        """A hash of the mention extractor's prompts that the user replaced; an empty string if none were replaced."""
        return self.extractor.prompt_version if isinstance(self.extractor, PromptedExtractor) else ""

    @property
    def usage(self) -> Usage:
        """The language model usage of this thread: calls, tokens and cost."""
        return self.language_model.usage if self.language_model else Usage()

    @property
    def usage_uncached(self) -> Usage:
        """The language model usage of this thread as if there were no reply cache: calls, tokens and estimated cost."""
        return self.language_model.usage_uncached if self.language_model else Usage()

    def get_encode_seconds(self) -> float:
        """Return the seconds that this thread has spent in the embedder; 0 if the embedder was never loaded."""
        return self._metered.seconds if self._metered else 0.0

    def get_language_model(self, name: str = "") -> CachedLanguageModel | None:
        """Return the further language model of this name; without a name, the language model, or None.

        Raises:
            ConfigurationError: No further language model has this name.
        """
        if name and name not in self.language_models:
            names = ", ".join(self.language_models) or "no name, because none is configured"
            raise ConfigurationError(f"the model is {name!r}; expected {names} (sections [models.NAME] of polyad.toml)")
        return self.language_models[name] if name else self.language_model

    def require_language_model(self, purpose: str) -> CachedLanguageModel:
        """Return the language model, or raise an error that names ``purpose`` if no language model is configured.

        Raises:
            NoLanguageModelError: None is configured; the message names the ``purpose``.
        """
        if self.language_model is None:
            raise NoLanguageModelError(purpose)
        return self.language_model
