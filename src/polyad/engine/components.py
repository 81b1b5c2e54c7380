"""The components and the settings of one engine; a model is loaded when it is first needed."""

from __future__ import annotations

import logging
import threading
import time
from typing import Protocol, runtime_checkable

from polyad.config import EncoderSettings, Settings, SplitSettings
from polyad.embedders.metered import MeteredEmbedder
from polyad.engine import registry
from polyad.errors import NoLanguageModelError
from polyad.indexing.split import SentenceSplitter
from polyad.language_models.reply_cache import CachedLanguageModel
from polyad.model import Usage
from polyad.protocols.components import Embedder, MentionExtractor, Reranker
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts

_LOG = logging.getLogger(__name__)


@runtime_checkable
class Told(Protocol):
    """A mention extractor that asks a language model, and what it tells that."""

    def with_prompts(self, prompts: Prompts, /) -> MentionExtractor:
        """The same, but for what the model is told."""

    @property
    def prompt_version(self) -> str:
        """What tells instructions apart that are not the usual ones; empty for those."""


class Components:
    """What indexing and search are made of. Looking at an index takes none of it.

    Args:
        settings: Of all stages.
        embedder: Or its name.
        extractor: Or its name.
        language_model: None where none is set.
        reranker: None where none is set.
        prompts: What the language model is told.
        built_with: The name of the index's embedder, and the length of its vectors; None where there is no index.
    """

    def __init__(
        self,
        settings: Settings,
        embedder: Embedder | str,
        extractor: MentionExtractor | str,
        language_model: CachedLanguageModel | None = None,
        reranker: Reranker | None = None,
        prompts: Prompts = DEFAULT_PROMPTS,
        built_with: tuple[str, int] | None = None,
    ) -> None:
        self._built_with = built_with
        self.prompts = prompts
        self.settings = settings
        self.splitter = SentenceSplitter(settings.of(SplitSettings))
        self.language_model = language_model
        self.reranker = reranker
        self._embedder = embedder
        self._extractor = extractor if isinstance(extractor, str) else self._told(extractor)
        self._metered: MeteredEmbedder | None = None
        self._lock = threading.Lock()

    @property
    def embedder(self) -> MeteredEmbedder:
        """The embedder of the index."""
        with self._lock:
            if self._metered is None:
                given = self._embedder
                if isinstance(given, str):
                    started = time.perf_counter()
                    given = registry.load_embedder(given, self.settings.of(EncoderSettings))
                    _LOG.info("the embedder %r was loaded in %.1f s", given.name, time.perf_counter() - started)
                self._metered = MeteredEmbedder(given, self._built_with)
            return self._metered

    @property
    def extractor(self) -> MentionExtractor:
        """The mention extractor of the index."""
        with self._lock:
            if isinstance(self._extractor, str):
                self._extractor = self._told(registry.load_extractor(self._extractor, self.language_model))
            return self._extractor

    def _told(self, extractor: MentionExtractor) -> MentionExtractor:
        return extractor.with_prompts(self.prompts) if isinstance(extractor, Told) else extractor

    @property
    def asks_for_names(self) -> bool:
        """Whether the mention extractor asks the language model."""
        return isinstance(self.extractor, Told)

    @property
    def prompt_of_names(self) -> str:
        """What tells the mention extractor's instructions apart; empty where there are none, or the usual ones."""
        return self.extractor.prompt_version if isinstance(self.extractor, Told) else ""

    @property
    def usage(self) -> Usage:
        """What this thread has spent on the language model."""
        return self.language_model.usage if self.language_model else Usage()

    @property
    def usage_uncached(self) -> Usage:
        """What :attr:`usage` would be had no reply been recalled; estimated for those that were."""
        return self.language_model.usage_uncached if self.language_model else Usage()

    def seconds_encoding(self) -> float:
        """Spent by this thread so far; asking loads no model."""
        return self._metered.seconds if self._metered else 0.0

    def require_language_model(self, what: str) -> CachedLanguageModel:
        """The language model.

        Raises:
            NoLanguageModelError: none is set; ``what`` needs it.
        """
        if self.language_model is None:
            raise NoLanguageModelError(what)
        return self.language_model
