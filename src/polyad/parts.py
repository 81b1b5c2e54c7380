"""What an engine is made of, loaded when first needed: looking at an index takes no model."""

from __future__ import annotations

import threading

from polyad.adapters.metered import MeteredEmbedder
from polyad.adapters.reply_cache import CachedLanguageModel
from polyad.adapters.sqlite import SqliteStore
from polyad.by_name import load_embedder, load_extractor
from polyad.config import Settings
from polyad.errors import NoLanguageModelError
from polyad.indexing.split import SentenceSplitter
from polyad.protocols import Embedder, MentionExtractor, Reranker


class Parts:
    """The store, the models and the settings of one engine.

    Args:
        store: The index.
        embedder: By default the one the index was built with.
        extractor: By default the one the index was built with.
        language_model: None where none is set.
        settings: Of all stages.
        reranker: None where none is set.
    """

    def __init__(
        self,
        store: SqliteStore,
        embedder: Embedder | None,
        extractor: MentionExtractor | None,
        language_model: CachedLanguageModel | None,
        settings: Settings,
        reranker: Reranker | None = None,
    ) -> None:
        self.store = store
        self.reranker = reranker
        self.settings = settings
        self.splitter = SentenceSplitter(settings.split)
        self.language_model = language_model
        self._given_embedder = embedder
        self._metered: MeteredEmbedder | None = None
        self._given_extractor = extractor
        self._lock = threading.Lock()

    @property
    def embedder(self) -> MeteredEmbedder:
        """The embedder of the index."""
        with self._lock:
            if self._metered is None:
                embedder = self._given_embedder or load_embedder(
                    self.store.manifest.embedder, device=self.settings.encoder.device
                )
                self._metered = MeteredEmbedder(embedder)
            return self._metered

    @property
    def extractor(self) -> MentionExtractor:
        """The mention extractor of the index."""
        with self._lock:
            if self._given_extractor is None:
                self._given_extractor = load_extractor(self.store.manifest.mentions, self.language_model)
            return self._given_extractor

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
