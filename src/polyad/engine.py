"""The engine: the one place where adapters meet pipelines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from polyad.adapters.files import FileReader
from polyad.adapters.metered import MeteredEmbedder
from polyad.adapters.reply_cache import CachedLanguageModel
from polyad.adapters.sqlite import SqliteStore
from polyad.answering.answer import CitingAnswerer
from polyad.by_name import DEFAULT_EMBEDDER, DEFAULT_EXTRACTOR, load_embedder, load_extractor
from polyad.config import DefaultSettings, Settings
from polyad.errors import ConfigurationError, NotFoundError
from polyad.indexing.builder import HyperedgeBuilder
from polyad.indexing.pipeline import IndexCounts, Indexer
from polyad.indexing.split import SentenceSplitter
from polyad.indexing.unit_builder import SemanticUnitBuilder
from polyad.model import (
    Answer,
    Document,
    Entity,
    Evidence,
    Failure,
    FloatArray,
    Hyperedge,
    Incidence,
    Passage,
    Statistics,
    Timings,
    Usage,
)
from polyad.protocols import Embedder, LanguageModel, MentionExtractor, Progress, Retriever, silent
from polyad.retrieval.clues import LanguageModelClues, QuestionClues
from polyad.retrieval.default import DefaultRetriever
from polyad.retrieval.hypersu import HyperSURetriever
from polyad.retrieval.passages import DenseRetriever, LexicalRetriever, NoRetriever
from polyad.retrieval.question import QuestionLinker
from polyad.retrieval.scorer import LinearScorer
from polyad.retrieval.similar_names import SimilarNames
from polyad.retrieval.snapshot import Snapshot

METHODS = ("semantic-units",)
"""Ways to build hyperedges."""

RETRIEVERS = ("default", "hypersu", "standard", "bm25", "none")
"""Ways to find evidence."""


_ATTEMPTS = 6
"""At a search beside a writer that removes documents; each attempt sees a newer index."""


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a run of indexing did. ``encode_seconds`` is the part of ``seconds`` spent inside the embedder."""

    counts: IndexCounts
    skipped: tuple[str, ...]
    seconds: float
    encode_seconds: float
    embedded_texts: int

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The documents that could not be indexed, with reasons."""
        return self.counts.failures


class Engine:
    """An index in a directory, and everything that can be done with it.

    Example:
        >>> engine = Engine.open("kb")                                          # doctest: +SKIP
        >>> engine.index(["handbook/", "trials.pdf"])                           # doctest: +SKIP
        >>> engine.search("Who funded the trial?").passages[0].passage.title    # doctest: +SKIP

    Not tied to a thread: searches may run side by side, and beside one writer.
    """

    def __init__(
        self,
        store: SqliteStore,
        *,
        embedder: Embedder | None,
        extractor: MentionExtractor | None,
        language_model: LanguageModel | None,
        settings: Settings,
    ) -> None:
        self._store = store
        self._given_embedder = embedder
        self._given_extractor = extractor
        self._metered: MeteredEmbedder | None = None
        self._settings = settings
        self._splitter = SentenceSplitter(settings.split)
        self._language_model = CachedLanguageModel(language_model, store) if language_model else None
        self._retrievers: dict[str, Retriever] = {}
        self._snapshot: Snapshot | None = None
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls,
        directory: str | Path,
        *,
        embedder: str | Embedder | None = None,
        mentions: str | MentionExtractor | None = None,
        language_model: LanguageModel | None = None,
        settings: Settings | None = None,
        create: bool = True,
    ) -> Engine:
        """Open the index in ``directory``; an empty one is made unless ``create`` is off.

        Args:
            directory: Where the index is kept.
            embedder: A model's name (see :func:`polyad.by_name.load_embedder`) or an embedder. By default
                the one the index was built with; for a new index, ``all-MiniLM-L6-v2``.
            mentions: An extractor's name (see :func:`polyad.by_name.load_extractor`) or an extractor. By
                default the one the index was built with; for a new index, ``rules``, which needs no model.
            language_model: Answers questions, and plans and extracts where a method asks for it. None works too.
            settings: How each stage behaves.
            create: Make an empty index when there is none.

        Raises:
            StoreNotFoundError: there is no index and ``create`` is off.
            IndexMismatchError: the index was built with another embedder or extractor.
            ConfigurationError: there is no such embedder or extractor.
        """
        path = Path(directory)
        creating = create and not SqliteStore.exists(path)
        if creating:
            embedder = embedder or DEFAULT_EMBEDDER
            mentions = mentions or DEFAULT_EXTRACTOR
        model = load_embedder(embedder) if isinstance(embedder, str) else embedder
        extractor = load_extractor(mentions, language_model) if isinstance(mentions, str) else mentions
        if creating and model is not None and extractor is not None:
            store = SqliteStore.create(path, model.name, model.dimension, extractor.name)
        else:
            store = SqliteStore.open(path)
            store.check(
                embedder=model.name if model else None,
                mentions=extractor.name if extractor else None,
            )
        return cls(
            store,
            embedder=model,
            extractor=extractor,
            language_model=language_model,
            settings=settings or Settings(),
        )

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the index's file."""
        self._store.close()

    # What costs time to load is loaded when it is first needed: `stats` and `show` need no model.

    @property
    def _embedder(self) -> MeteredEmbedder:
        with self._lock:
            if self._metered is None:
                self._metered = MeteredEmbedder(self._given_embedder or load_embedder(self._store.manifest.embedder))
            return self._metered

    @property
    def _extractor(self) -> MentionExtractor:
        with self._lock:
            if self._given_extractor is None:
                self._given_extractor = load_extractor(self._store.manifest.mentions, self._language_model)
            return self._given_extractor

    def _seconds_encoding(self) -> float:
        """Spent by this thread so far; asking loads no model."""
        return self._metered.seconds if self._metered else 0.0

    # Indexing

    def index(
        self,
        paths: Iterable[str | Path],
        *,
        method: str = "semantic-units",
        progress: Progress = silent,
    ) -> IndexReport:
        """Index files and folders; what is unchanged since the last time is left alone.

        Args:
            paths: Files and folders of .txt .md .html .pdf .docx .csv .jsonl.
            method: How hyperedges are built; one of :data:`METHODS`.
            progress: Told how far it is.

        Raises:
            ConfigurationError: a path does not exist, or there is no such method. Nothing was changed.
        """
        reader = FileReader(self._settings.read)
        report = self.index_documents(reader.read([Path(path) for path in paths]), method=method, progress=progress)
        return replace(report, skipped=tuple(reader.skipped))

    def index_documents(
        self,
        documents: Iterable[Document | Failure],
        *,
        method: str = "semantic-units",
        progress: Progress = silent,
    ) -> IndexReport:
        """Index documents that are already in memory; otherwise as :meth:`index`."""
        indexer = Indexer(self._store, self._embedder, self._splitter, self._builder(method))
        started, encoding, texts = time.perf_counter(), self._embedder.seconds, self._embedder.texts
        counts = indexer.index(documents, progress)
        return IndexReport(
            counts,
            skipped=(),
            seconds=time.perf_counter() - started,
            encode_seconds=self._embedder.seconds - encoding,
            embedded_texts=self._embedder.texts - texts,
        )

    def _builder(self, method: str) -> HyperedgeBuilder:
        if method not in METHODS:
            raise ConfigurationError(f"no method {method!r}; expected one of {', '.join(METHODS)}")
        return SemanticUnitBuilder(self._splitter, self._extractor, self._embedder, self._settings.segmentation)

    def remove(self, document_ids: Sequence[str]) -> None:
        """Remove documents and everything that came from them.

        Raises:
            NotFoundError: one of them is not in the index; none was removed.
        """
        self._store.remove(document_ids)

    # Asking

    def search(self, question: str, k: int = 5, *, retriever: str = "default") -> Evidence:
        """The evidence for a question: the ``k`` best passages and what led to them.

        Raises:
            ConfigurationError: the question is blank, ``k`` is not above 0, or there is no such retriever.
        """
        if not question.strip():
            raise ConfigurationError("the question is blank; expected some words")
        if k < 1:
            raise ConfigurationError(f"k is {k}; expected 1 or more")
        self.retriever(retriever)  # what is loaded once is no part of a search's time
        started, encoding = time.perf_counter(), self._seconds_encoding()
        evidence = self._retrieve(question, k, retriever)
        encode = self._seconds_encoding() - encoding
        return replace(
            evidence,
            timings=Timings(encode=1000 * encode, retrieve=1000 * (time.perf_counter() - started - encode)),
        )

    def _retrieve(self, question: str, k: int, retriever: str) -> Evidence:
        for _ in range(_ATTEMPTS - 1):
            try:
                return self.retriever(retriever).retrieve(question, k)
            except NotFoundError:  # what was to be shown has been removed since the snapshot was made
                continue
        return self.retriever(retriever).retrieve(question, k)

    def ask(
        self,
        question: str,
        k: int = 5,
        *,
        retriever: str = "default",
        on_text: Callable[[str], None] | None = None,
    ) -> Answer:
        """Answer a question from its evidence, with citations; without a language model, the evidence alone.

        Args:
            question: What to answer.
            k: Passages to answer from.
            retriever: Finds them.
            on_text: Called with each piece of the answer as it is written.

        Raises:
            LanguageModelError: the language model gave no usable reply.
        """
        evidence = self.search(question, k, retriever=retriever)
        answerer = CitingAnswerer(self._language_model, self._settings.answer, self._splitter.count_tokens)
        return answerer.answer(evidence, on_text)

    def retriever(self, name: str) -> Retriever:
        """The retriever of that name, over the index as it is now.

        Raises:
            ConfigurationError: there is none.
        """
        if name not in RETRIEVERS:
            raise ConfigurationError(f"no retriever {name!r}; expected one of {', '.join(RETRIEVERS)}")
        with self._lock:
            snapshot = self._current_snapshot()
            if name not in self._retrievers:
                self._retrievers[name] = self._make_retriever(name, snapshot)
            return self._retrievers[name]

    def _current_snapshot(self) -> Snapshot:
        if self._snapshot is None or self._snapshot.version != self._store.version():
            self._snapshot = Snapshot(self._store)
            self._retrievers = {}
        return self._snapshot

    def _make_retriever(self, name: str, snapshot: Snapshot) -> Retriever:
        settings = self._settings
        if name == "none":
            return NoRetriever(snapshot)
        if name == "bm25":
            return LexicalRetriever(snapshot)
        if name == "standard":
            return DenseRetriever(snapshot, self._embedder)
        linker = QuestionLinker(snapshot, self._extractor)
        if name == "hypersu":
            model = self._language_model
            agent = LanguageModelClues(model, settings.hypersu.max_clues) if model else QuestionClues()
            similar = SimilarNames(snapshot, self._embedder, settings.hypersu.link_threshold)
            linker = QuestionLinker(snapshot, self._extractor, similar if settings.hypersu.link_threshold < 1 else None)
            return HyperSURetriever(snapshot, self._embedder, linker, agent, settings.hypersu)
        return self._default(snapshot, linker, settings.default)

    def _default(self, snapshot: Snapshot, linker: QuestionLinker, settings: DefaultSettings) -> DefaultRetriever:
        scorer = LinearScorer.load(Path(settings.weights)) if settings.weights else None
        return DefaultRetriever(snapshot, self._embedder, linker, scorer, rewriting=settings.rewriting)

    def signals(self, questions: Iterable[str]) -> Iterator[tuple[list[str], FloatArray]]:
        """What the default retriever's scorer is trained on: see :meth:`DefaultRetriever.signals`, with rewriting."""
        with self._lock:
            snapshot = self._current_snapshot()
        retriever = self._default(snapshot, QuestionLinker(snapshot, self._extractor), DefaultSettings(rewriting=True))
        return map(retriever.signals, questions)

    # Looking

    def statistics(self) -> Statistics:
        """Sizes of the index."""
        return self._store.statistics()

    def document(self, id: str) -> Document:
        """A document, with its whole text. Raises NotFoundError; so do the next three."""
        return self._store.documents([id])[0]

    def passage(self, id: str) -> Passage:
        """A passage."""
        return self._store.passages([id])[0]

    def hyperedge(self, id: str) -> tuple[Hyperedge, list[Incidence]]:
        """A hyperedge and its incidences."""
        return self._store.hyperedges([id])[0], self._store.incidences([id])[id]

    def entity(self, key: str) -> tuple[Entity, list[str]]:
        """An entity and the ids of the hyperedges that join it."""
        return self._store.entities([key])[0], self._store.memberships(key)

    @property
    def llm_tokens(self) -> int:
        """Prompt and completion tokens this engine has spent on its language model."""
        usage = self._language_model.usage if self._language_model else Usage()
        return usage.prompt_tokens + usage.completion_tokens
