"""The engine: an index, and everything that can be done with it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import nullcontext
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Protocol, runtime_checkable

from polyad.answering.answer import CitingAnswerer
from polyad.answering.citations import located
from polyad.config import (
    AnswerSettings,
    EmbeddingSettings,
    EncoderSettings,
    LanguageModelSettings,
    NearestSettings,
    ReadSettings,
    RerankerSettings,
    Settings,
    SplitSettings,
)
from polyad.engine import loaders, registry
from polyad.engine.catalogue import Catalogue
from polyad.engine.changes import joined
from polyad.engine.components import Components
from polyad.engine.file_runs import FileRuns, Selected, selected
from polyad.engine.registry import Limits, make_builder, methods
from polyad.engine.search import RetrieverLike, Searcher
from polyad.engine.streaming import AnswerStream
from polyad.errors import ConfigurationError, IndexMismatchError, StoreError, StoreNotFoundError
from polyad.indexing.builders import METHOD_BY_KIND, HyperedgeBuilder, MethodAssignment
from polyad.indexing.pipeline import Indexer
from polyad.indexing.run import IndexCounts, IndexReport, RebuildCheckpoint
from polyad.indexing.split import SentenceSplitter
from polyad.language_models.reply_cache import CachedLanguageModel
from polyad.model import Answer, Document, Evidence, Failure, HyperedgeKind, Usage
from polyad.presets import PRESETS
from polyad.protocols.components import Embedder, LanguageModel, MentionExtractor, Progress, Prompt, Reranker, silent
from polyad.protocols.lookups import check_manifest, get_document_kinds, get_kinds, get_sources, get_version
from polyad.protocols.snapshot import Snapshot
from polyad.protocols.store import REPLIES, Manifest, Store, StoredDocument, StoreOpener
from polyad.readers.sources import MissingDocuments, find_missing_documents, get_source_roots
from polyad.retrieval.assembly import SearchOptions
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.provider import SnapshotProvider
from polyad.text.prompts import Prompts

_LOG = logging.getLogger(__name__)

Paths = str | Path | Iterable[str | Path]
"""A file or folder, or several."""

DEFAULT_METHOD = "semantic-units"
DEFAULT_RETRIEVER = "default"


@runtime_checkable
class _Asking(Protocol):
    """A mention extractor that asks a language model."""

    def with_language_model(self, language_model: LanguageModel, /) -> MentionExtractor:
        """The same, but for the model that is asked."""


class Engine:
    """An index, and everything that can be done with it.

    Example:
        >>> engine = Engine.open("kb")                                          # doctest: +SKIP
        >>> engine.index(["handbook/", "trials.pdf"])                           # doctest: +SKIP
        >>> engine.search("Who funded the trial?").passages[0].passage.title    # doctest: +SKIP

    Not tied to a thread: searches may run side by side, and beside one writer.

    Attributes:
        components: And settings; each model is loaded when it is first needed.
        catalogue: Looks things up in the index.
    """

    def __init__(self, store: Store, components: Components) -> None:
        self.components = components
        self._store = store
        directory = store.manifest.directory
        files = SnapshotFiles(directory, components.settings.of(NearestSettings)) if directory else None
        self.catalogue = Catalogue(
            store, components.language_model, files.get_recall if files else dict, components.prompts
        )
        self._snapshots = SnapshotProvider(store, store.manifest.dimension, files)
        preset = PRESETS.get(components.settings.preset)
        self._method = preset.method if preset else DEFAULT_METHOD
        self._retriever = preset.retriever if preset else DEFAULT_RETRIEVER
        self._searcher = Searcher(store, self._snapshots, components, self._retriever)

    @classmethod
    def open(
        cls,
        place: str | Path,
        *,
        store: StoreOpener | None = None,
        embedder: str | Embedder | None = None,
        mentions: str | MentionExtractor | None = None,
        language_model: str | LanguageModelSettings | LanguageModel | None = None,
        reranker: str | Reranker | None = None,
        settings: Settings | None = None,
        preset: str = "",
        prompts: str | Path | None = None,
        replies: str | Path | None = None,
        reply_cache: bool = True,
        create: bool = True,
    ) -> Engine:
        """Open the index in ``place``; an empty one is made unless ``create`` is off.

        Args:
            place: Where the index is kept: a directory, or ``NAME://...`` where another kind of stores has that name.
            store: Opens the store, if its name is not in ``place``.
            embedder: A model's name (see :func:`polyad.engine.loaders.load_embedder`) or an embedder. By default
                the one the index was built with; for a new index, ``all-MiniLM-L6-v2``, or, with a warning, hashed
                words where that model is not on this machine and cannot be fetched.
            mentions: An extractor's name (see :func:`polyad.engine.loaders.load_extractor`) or an extractor. By
                default the one the index was built with; for a new index, ``rules``, which needs no model.
            language_model: Answers questions, and plans and extracts where a method asks for it: a model's name at
                the endpoint of ``OPENAI_BASE_URL``, its settings, or a language model. None works too.
            reranker: Puts what every search finds in another order: a name (see
                :func:`polyad.engine.loaders.load_reranker`) or a reranker. None for the order of the retriever.
            settings: How each stage behaves.
            preset: Settings, method and retriever of a paper: one of :data:`polyad.presets.PRESETS`. What ``settings``
                has that is not at its default goes before; so does what
                :func:`polyad.engine.changes.preset_settings` changes.
            prompts: Directory of files that replace prompts by their names, such as ``hypersu_clues.md``; see
                :data:`polyad.text.prompts.FILES`. None for those that come with polyad.
            replies: The file in which replies of the language model are kept; several indexes may share one. By default
                it lies with the index.
            reply_cache: Off, no reply that is kept is used, so that repeated runs are independent of one another; new
                ones are kept all the same.
            create: Make an empty index when there is none.

        Raises:
            StoreNotFoundError: there is no index and ``create`` is off.
            IndexMismatchError: the index was built with another embedder or extractor.
            ConfigurationError: there is no such embedder, extractor, language model, reranker or store.
        """
        open_store, settings = store or loaders.get_store_opener(place), settings or Settings()
        settings = joined(preset, settings) if preset else settings
        registry.check_settings(settings)
        told = Prompts(prompts)
        kept = Path(replies) if replies is not None else None
        if isinstance(language_model, str | LanguageModelSettings):
            language_model = loaders.load_language_model(language_model)
        try:
            opened = open_store(place, replies=kept)
        except StoreNotFoundError:
            if not create:
                raise
            mentions = mentions or loaders.DEFAULT_EXTRACTOR
            embedder = _loaded(embedder, settings)
            mentions = loaders.load_extractor(mentions, language_model) if isinstance(mentions, str) else mentions
            opened = open_store(place, Manifest(embedder.name, embedder.dimension, mentions.name), replies=kept)
        try:
            paid = None
            if language_model is not None:
                opened.get_values(REPLIES, ())  # an unusable file must be an error before anything is paid
                paid = CachedLanguageModel(language_model, opened, opened.charge, recalls=reply_cache)
            if isinstance(reranker, str):
                reranker = loaders.load_reranker(reranker, settings.of(RerankerSettings))
            extractor = _extractor_of(opened, mentions, paid)
            built_with = opened.manifest.embedder, opened.manifest.dimension
            found = _embedder_of(opened, embedder)
            return cls(opened, Components(settings, found, extractor, paid, reranker, told, built_with))
        except BaseException:
            opened.close()
            raise

    @staticmethod
    def exists(place: str | Path, store: StoreOpener | None = None) -> bool:
        """Return whether there is an index in ``place``, which may be damaged or of another format."""
        try:
            (store or loaders.get_store_opener(place))(place).close()
        except StoreNotFoundError:
            return False
        except (StoreError, IndexMismatchError):
            return True
        return True

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the index's files."""
        self._store.close()

    # Indexing

    def index(
        self,
        paths: Paths,
        *,
        method: str = "",
        max_cost: float = 0.0,
        max_tokens: int = 0,
        prune: bool = False,
        force: bool = False,
        progress: Progress = silent,
    ) -> IndexReport:
        """Index files and folders; what is unchanged since the last time is left alone.

        Args:
            paths: Files and folders of .txt .md .html .pdf .docx .xlsx .pptx .epub .odt .rst .eml .csv .jsonl and
                source code; of .csv and .jsonl for ``tuples``.
            method: How hyperedges are built; one of :data:`METHODS`. By default each document keeps the method by which
                it was indexed. What is new is indexed by ``facts`` in an index of these, by ``tuples`` in an index of
                nothing else, and by ``semantic-units`` in any other.
            max_cost: US dollars that ``facts`` may spend on the language model in this run; 0 for no limit.
            max_tokens: Tokens likewise.
            prune: Remove documents that came from these paths and are no longer there, except from a path in
                which there is nothing at all: that looks like a disk that is missing.
            force: Build also what is unchanged anew, and ask the language model anew; what is there stays until the new
                is. Paths may then be ids of documents that are read from files. Where that was stopped, the same call
                goes on from there.
            progress: Told how far it is.

        Raises:
            ConfigurationError: a path does not exist, there is no such method, or it lacks what it needs. Nothing was
                changed.
        """
        runs, redone = self._runs(_listed(paths), method, force=force)
        given, remembered, limits = runs.wanted, runs.remembered, Limits(max_cost, max_tokens)

        def index(items: Iterable[Document | Failure], own: str, told: Progress, files: int) -> IndexReport:
            is_limited = len(remembered.methods) == 1 or methods[own].needs_language_model
            return self._index(items, own, limits if is_limited else Limits(), told, files, redone)

        if redone:
            _LOG.warning("the same was stopped before and goes on from there; once finished, the next begins anew")
        report = runs.index(index, progress)
        if redone is not None and not report.counts.stop_reason:
            redone.finish()
        if given.ids:
            return report
        missing = (
            MissingDocuments()
            if report.counts.stop_reason
            else find_missing_documents(
                get_sources(self._store, get_source_roots(given.paths)),
                given.paths,
                runs.read,
                report.failures,
                runs.skipped,
            )
        )
        removed = set(missing.ids) - set(missing.protected) if prune else ()
        if removed:
            self.remove(sorted(removed))
        moved = set(missing.ids)  # a file under a new name: the old one is gone, and the new one is no duplicate
        duplicates = tuple((id, earlier) for id, earlier in report.counts.duplicates if earlier not in moved)
        counts = replace(report.counts, duplicates=duplicates)
        skipped = runs.skipped
        return replace(
            report, counts=counts, skipped=skipped, missing=missing.ids, protected=missing.protected, is_pruned=prune
        )

    def _runs(self, paths: Sequence[Path], method: str, *, force: bool) -> tuple[FileRuns, RebuildCheckpoint | None]:
        """The runs over some files; where all is built anew, with what the same has done before it was stopped."""
        given = selected(paths, get_sources(self._store)) if force else Selected(paths)
        remembered = MethodAssignment(method) if method else self._remembered()
        runs = FileRuns(given, remembered, self.components.settings.of(ReadSettings), is_named=bool(method))
        model = self.components.language_model
        names = [method, model.kept_as if model else "", *map(str, paths)]
        return runs, RebuildCheckpoint(self._store, names) if force else None

    def _remembered(self) -> MethodAssignment:
        """By which method each document of the index is built, and new ones are."""
        kinds = get_kinds(self._store)
        default = self._default_method(kinds) if kinds else self._method
        others = {kind for kind in kinds if METHOD_BY_KIND[kind] != default}
        if not others:
            return MethodAssignment(default)
        of_documents = get_document_kinds(self._store, others)
        with self._store.read_transaction() as transaction:
            documents = transaction.get(StoredDocument, list(of_documents))
        sources = {id: document.source for id, document in documents.items()}
        return MethodAssignment.from_index(default, of_documents, sources)

    @staticmethod
    def _default_method(kinds: Set[HyperedgeKind]) -> str:
        if HyperedgeKind.TUPLE in kinds and len(kinds) == 1:
            return "tuples"
        is_of_facts = HyperedgeKind.FACT in kinds and HyperedgeKind.SEMANTIC_UNIT not in kinds
        return "facts" if is_of_facts else DEFAULT_METHOD

    def index_documents(
        self,
        documents: Iterable[Document | Failure],
        *,
        method: str = "",
        max_cost: float = 0.0,
        max_tokens: int = 0,
        progress: Progress = silent,
    ) -> IndexReport:
        """Index documents that are already in memory; otherwise as :meth:`index`.

        Facts given as data, in the arguments of documents, are indexed as ``tuples`` where no method is named.

        Raises:
            ConfigurationError: as for :meth:`index`, or something is no document. The documents before it are indexed.
        """
        limits, documents = Limits(max_cost, max_tokens), _documents(documents)
        if method:
            return self._index(documents, method, limits, progress)
        remembered = self._remembered()
        report: IndexReport | None = None
        for own, group in groupby(documents, remembered.get_method):
            is_limited = own == remembered.default or methods[own].needs_language_model
            found = self._index(group, own, limits if is_limited else Limits(), progress)
            report = found if report is None else report.merge(found, found.documents)
            if report.counts.stop_reason:
                break
        return report or self._index((), remembered.default, limits, progress)

    def _index(
        self,
        documents: Iterable[Document | Failure],
        method: str,
        limits: Limits,
        progress: Progress,
        files: int | None = None,
        redone: RebuildCheckpoint | None = None,
    ) -> IndexReport:
        builder = make_builder(method, self.components, limits)
        embedder, spent = self.components.embedder, self.components.usage
        started, encoding, texts = time.perf_counter(), embedder.seconds, embedder.text_count
        model = self.components.language_model
        with model.asking_anew(redone) if model and redone is not None else nullcontext():
            counts = self._indexer(builder, method).index(documents, progress, files, checkpoint=redone)
        self._searcher.min_version = get_version(self._store)
        self._snapshots.save()
        if methods[method].describes_entities and counts.passages:
            self._snapshots.get_with_entity_vectors(embedder, progress)
        return IndexReport(
            method,
            counts,
            skipped=(),
            seconds=time.perf_counter() - started,
            encode_seconds=embedder.seconds - encoding,
            embedded_texts=embedder.text_count - texts,
            usage=self.components.usage - spent,
        )

    def estimate(self, paths: Paths, *, method: str = "facts", force: bool = False) -> Usage:
        """What indexing would spend on the language model: calls, tokens and cost, before anything is spent.

        Prompts are counted; what the model will say is guessed. A method that asks no model costs nothing.

        Args:
            paths: As for :meth:`index`.
            method: As for :meth:`index`; with ``""`` each document is counted by its own.
            force: As for :meth:`index`.

        Raises:
            ConfigurationError: as for :meth:`index`.
        """
        runs, redone = self._runs(_listed(paths), method, force=force)

        def estimate(items: Iterable[Document | Failure], own: str, _: Progress, __: int) -> IndexReport:
            return IndexReport(own, IndexCounts(), (), 0.0, 0.0, 0, self._estimated(items, own, redone))

        return runs.index(estimate, silent).usage

    def _estimated(self, items: Iterable[Document | Failure], method: str, redone: RebuildCheckpoint | None) -> Usage:
        """What building some documents by one method would take."""
        builder, components = make_builder(method, self.components, Limits()), self.components
        if not methods[method].needs_language_model and not components.extracts_by_language_model:
            return Usage()
        model = components.language_model
        known = model.known if model else _nothing_known
        batches = self._indexer(builder, method).find_new_passages(items, redone)
        with model.asking_anew(redone) if model and redone is not None else nullcontext():
            return sum((builder.estimate(passages, known) for passages in batches), Usage())

    def _indexer(self, builder: HyperedgeBuilder, method: str) -> Indexer:
        splitter = SentenceSplitter(self.components.settings.of(SplitSettings), methods[method].default_passages)
        return Indexer(
            self._store, self.components.embedder, splitter, builder, self.components.settings.of(EmbeddingSettings)
        )

    def remove(self, document_ids: str | Sequence[str]) -> None:
        """Remove a document or several, and everything that came from them.

        Raises:
            NotFoundError: one of them is not in the index; none was removed.
        """
        self._store.remove([document_ids] if isinstance(document_ids, str) else document_ids)
        self._searcher.min_version = get_version(self._store)

    # Asking

    def search(
        self,
        question: str,
        k: int | None = None,
        *,
        max_words: int | None = None,
        retriever: RetrieverLike | None = None,
        merge: bool = True,
        min_relevance: float = 0.0,
        progress: Progress = silent,
    ) -> Evidence:
        """The evidence for a question: the best passages and what led to them.

        Passages that follow one another in a document are one hit, and a text that stands in several places is shown
        once. Within a budget of words, long passages are shown by their parts nearest to the question.

        Args:
            question: What to find evidence for.
            k: The most hits; 5 where there is no budget of words either, and no limit where there is one.
            max_words: Maximum number of words in all hits together.
            retriever: Finds them: a name, one of :data:`RETRIEVERS` or of another package; a retriever; or a
                :class:`polyad.engine.registry.RetrieverSpec`, which makes one of the engine's components. None for
                that of the preset, else ``default``.
            merge: Off, the hits are the passages as the retriever ranks them, for measurements.
            min_relevance: Relevance, in [0, 1], below which passages are left out; 0 for none.
            progress: Told of what the first search of an index makes once, such as the vectors of entities.

        Raises:
            ConfigurationError: the question is blank or too long, a limit is below 1, there is no such retriever, or
                it does not say how relevant passages are and ``min_relevance`` is above 0.
        """
        options = SearchOptions(k=k, max_words=max_words, merge=merge, min_relevance=min_relevance)
        return self._searcher.search(question, options, retriever, progress)

    def search_many(
        self,
        questions: Sequence[str],
        k: int | None = None,
        *,
        max_words: int | None = None,
        retriever: RetrieverLike | None = None,
        merge: bool = True,
        min_relevance: float = 0.0,
        progress: Progress = silent,
    ) -> list[Evidence]:
        """The evidence for each of some questions, which are embedded together; otherwise as :meth:`search`."""
        options = SearchOptions(k=k, max_words=max_words, merge=merge, min_relevance=min_relevance)
        return self._searcher.search_many(questions, options, retriever, progress)

    def prepare(self, retriever: RetrieverLike | None = None, progress: Progress = silent) -> None:
        """Load and make what a retriever needs once: no part of a search's time. :meth:`search` does it by itself.

        Raises:
            ConfigurationError: there is no such retriever, or it lacks what it needs.
        """
        self._searcher.prepare(self._searcher.resolve(retriever), progress)

    def snapshot(self, retriever: RetrieverLike | None = None, progress: Progress = silent) -> Snapshot:
        """Return the current snapshot of the index, with entity vectors if a retriever reads them."""
        return self._searcher.get_snapshot(self._searcher.get_spec(retriever), progress)

    def ask(
        self,
        question: str,
        k: int | None = None,
        *,
        max_words: int | None = None,
        retriever: RetrieverLike | None = None,
        min_relevance: float = 0.0,
        on_text: Callable[[str], None] | None = None,
        progress: Progress = silent,
    ) -> Answer:
        """Answer a question from the evidence that :meth:`search` finds; see :meth:`answer`.

        Its usage is that of all calls, those that find names, clues and evidence too.

        Args:
            question: What to answer.
            k: Hits to answer from.
            max_words: Maximum number of words of evidence to answer from.
            retriever: Finds them.
            min_relevance: Relevance below which nothing is answered from. Where all evidence is, no model is asked.
            on_text: Called with each piece of the answer as it is written.
            progress: As for :meth:`search`.

        Raises:
            ConfigurationError: as for :meth:`search`.
            LanguageModelError: the language model gave no usable reply.
        """
        spent = self.components.usage
        evidence = self.search(
            question, k, max_words=max_words, retriever=retriever, min_relevance=min_relevance, progress=progress
        )
        return replace(self.answer(evidence, on_text), usage=self.components.usage - spent)

    def answer(self, evidence: Evidence, on_text: Callable[[str], None] | None = None) -> Answer:
        """Answer a question from evidence at hand, with citations; without a language model, the evidence alone.

        Args:
            evidence: As :meth:`search` found it, or a part of it.
            on_text: Called with each piece of the answer as it is written.

        Raises:
            LanguageModelError: the language model gave no usable reply.
        """
        components = self.components
        answerer = CitingAnswerer(
            components.language_model,
            components.settings.of(AnswerSettings),
            components.splitter.count_tokens,
            components.prompts,
        )
        return located(answerer.answer(evidence, on_text), self._store)

    def stream(
        self,
        question: str,
        k: int | None = None,
        *,
        max_words: int | None = None,
        retriever: RetrieverLike | None = None,
        min_relevance: float = 0.0,
        progress: Progress = silent,
    ) -> AnswerStream:
        """As :meth:`ask`, piece by piece: iterate over the text, then take the whole ``answer``.

        Without a language model there are no pieces, and the answer is the evidence alone.

        Example:
            >>> stream = engine.stream("Who funded the trial?")                 # doctest: +SKIP
            >>> for piece in stream:                                            # doctest: +SKIP
            ...     print(piece, end="")
            >>> stream.answer.citations                                         # doctest: +SKIP

        Raises:
            ConfigurationError: as for :meth:`search`, at once; what the model fails with comes where it is read.
        """
        spent = self.components.usage
        evidence = self.search(
            question, k, max_words=max_words, retriever=retriever, min_relevance=min_relevance, progress=progress
        )
        searched = self.components.usage - spent

        def answered(on_text: Callable[[str], None]) -> Answer:
            answer = self.answer(evidence, on_text)
            return replace(answer, usage=searched + answer.usage)

        return AnswerStream(answered)


def _loaded(embedder: str | Embedder | None, settings: Settings) -> Embedder:
    """The one that is given, or of that name, or the default one."""
    if not embedder:
        return loaders.load_default_embedder(settings.of(EncoderSettings))
    return loaders.load_embedder(embedder, settings.of(EncoderSettings)) if isinstance(embedder, str) else embedder


def _embedder_of(store: Store, given: str | Embedder | None) -> str | Embedder:
    """The one that is given, which has to be the index's own, or else the name of that one.

    Raises:
        IndexMismatchError: the index was built with another.
    """
    if given is None or isinstance(given, str):
        check_manifest(store.manifest, embedder=loaders.resolve_embedder_name(given) if given else None)
        return store.manifest.embedder
    check_manifest(store.manifest, embedder=given.name)
    return given


def _extractor_of(
    store: Store, given: str | MentionExtractor | None, model: LanguageModel | None
) -> str | MentionExtractor:
    """The same for mention extractors, whose full names only they themselves know; one that asks, asks ``model``."""
    if given in (None, store.manifest.mentions):
        return store.manifest.mentions
    extractor = loaders.load_extractor(given, model) if isinstance(given, str) else given
    check_manifest(store.manifest, mentions=extractor.name)
    return extractor.with_language_model(model) if model and isinstance(extractor, _Asking) else extractor


def _nothing_known(prompts: Sequence[Prompt]) -> list[str | None]:
    """The replies to some prompts that were paid for earlier, where there is nobody to reply."""
    return [None for _ in prompts]


def _documents(given: Iterable[Document | Failure]) -> Iterator[Document | Failure]:
    """The documents that were handed over, and whoever calls from Python may hand over anything.

    Raises:
        ConfigurationError: one of them is none.
    """
    if not isinstance(given, Iterable):
        raise ConfigurationError(f"documents is {repr(given)[:100]}; expected several of polyad.Document, as in a list")
    for number, item in enumerate(given):
        if not isinstance(item, Document | Failure):
            raise ConfigurationError(f"documents[{number}] is {repr(item)[:100]}; expected a polyad.Document")
        yield item


def _listed(paths: Paths) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
