"""The engine: index documents, search them, and answer questions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import closing, nullcontext
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Protocol, runtime_checkable

from polyad.answering.answer import CitingAnswerer
from polyad.answering.citations import located
from polyad.config import (
    LanguageModelSettings,
)
from polyad.engine import loaders
from polyad.engine.catalogue import Catalogue
from polyad.engine.changes import apply_preset
from polyad.engine.components import Components
from polyad.engine.file_runs import FileRuns, FileSelection
from polyad.engine.registry import Limits, make_builder, methods
from polyad.engine.search import RetrieverLike, Searcher
from polyad.engine.settings import Settings
from polyad.engine.streaming import AnswerStream
from polyad.errors import ConfigurationError, IndexMismatchError, StoreError, StoreNotFoundError
from polyad.indexing.builders import METHOD_BY_KIND, HyperedgeBuilder, MethodAssignment
from polyad.indexing.pipeline import Indexer
from polyad.indexing.run import IndexReport, RebuildCheckpoint
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
class _LanguageModelExtractor(Protocol):
    """A mention extractor that asks a language model."""

    def with_language_model(self, language_model: LanguageModel, /) -> MentionExtractor:
        """Return this extractor with another language model."""


class Engine:
    """Indexes documents, searches the index, and answers questions.

    Example:
        >>> engine = Engine.open("kb")                                          # doctest: +SKIP
        >>> engine.index(["handbook/", "trials.pdf"])                           # doctest: +SKIP
        >>> engine.search("Who funded the trial?").passages[0].passage.title    # doctest: +SKIP

    Safe to use from several threads: searches may run at the same time, and beside one writer.

    Attributes:
        components: Settings and models; each model is loaded when it is first needed.
        catalogue: Looks up documents, passages, entities, hyperedges and statistics.
    """

    def __init__(self, store: Store, components: Components) -> None:
        self.components = components
        self._store = store
        directory = store.manifest.directory
        files = SnapshotFiles(directory, components.settings.nearest) if directory else None
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
        mention_extractor: str | MentionExtractor | None = None,
        language_model: str | LanguageModelSettings | LanguageModel | None = None,
        reranker: str | Reranker | None = None,
        settings: Settings | None = None,
        preset: str = "",
        prompts: str | Path | None = None,
        replies: str | Path | None = None,
        reply_cache: bool = True,
        create: bool = True,
    ) -> Engine:
        """Open the index in ``place``; by default, create an empty index if there is none.

        Args:
            place: Directory of the index, or ``NAME://...`` for another kind of store.
            store: Opens the store, if ``place`` does not name its kind.
            embedder: Name of an embedding model (see :func:`polyad.engine.loaders.load_embedder`) or an embedder. By
                default the embedder of the index; for a new index ``all-MiniLM-L6-v2``, or, with a warning, hashed
                words if that model is not installed and cannot be downloaded.
            mention_extractor: Name of an extractor (see :func:`polyad.engine.loaders.load_extractor`) or an extractor.
                By default the extractor of the index; for a new index ``rules``, which needs no model.
            language_model: Name of a model at the endpoint of ``OPENAI_BASE_URL``, its settings, or a language model.
                Optional: it writes answers, and some methods and retrievers need it.
            reranker: Name of a reranker (see :func:`polyad.engine.loaders.load_reranker`) or a reranker. None for the
                order of the retriever.
            settings: Settings of all stages.
            preset: Paper whose settings, method and retriever are the defaults: one of :data:`polyad.presets.PRESETS`.
                Values in ``settings`` that are not at their defaults override those of the preset.
            prompts: Directory of files that replace prompts of the same name, such as ``hypersu_clues.md``; see
                :data:`polyad.text.prompts.FILES`. None for the prompts of polyad.
            replies: File that stores the language model's replies; several indexes may share it. By default it is
                stored with the index.
            reply_cache: Whether stored replies are reused. New replies are always stored. Without reuse, repeated runs
                are independent of each other.
            create: Whether to create an empty index if there is none.

        Raises:
            StoreNotFoundError: There is no index, and ``create`` is false.
            IndexMismatchError: The index was built with another embedder or extractor.
            ConfigurationError: There is no such embedder, extractor, language model, reranker or store.
        """
        open_store, settings = store or loaders.get_store_opener(place), settings or Settings()
        settings = apply_preset(preset, settings) if preset else settings
        loaded_prompts = Prompts(prompts)
        replies_file = Path(replies) if replies is not None else None
        if isinstance(language_model, str | LanguageModelSettings):
            language_model = loaders.load_language_model(language_model)
        try:
            index = open_store(place, replies=replies_file)
        except StoreNotFoundError:
            if not create:
                raise
            extractor = mention_extractor or loaders.DEFAULT_EXTRACTOR
            extractor = loaders.load_extractor(extractor, language_model) if isinstance(extractor, str) else extractor
            embedder, mention_extractor = _load_embedder(embedder, settings), extractor
            manifest = Manifest(embedder.name, embedder.dimension, extractor.name)
            index = open_store(place, manifest, replies=replies_file)
        try:
            cached_model = None
            if language_model is not None:
                index.get_values(REPLIES, ())  # an unusable file must be an error before any request is paid
                cached_model = CachedLanguageModel(language_model, index, index.charge, recalls=reply_cache)
            if isinstance(reranker, str):
                reranker = loaders.load_reranker(reranker, settings.reranker)
            components = Components(
                settings,
                _check_embedder(index, embedder),
                _check_extractor(index, mention_extractor, cached_model),
                cached_model,
                reranker,
                loaded_prompts,
                (index.manifest.embedder, index.manifest.dimension),
            )
            return cls(index, components)
        except BaseException:
            index.close()
            raise

    @staticmethod
    def exists(place: str | Path, store: StoreOpener | None = None) -> bool:
        """Return whether ``place`` contains an index, even if it is damaged or has another format."""
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
        """Close the files of the index."""
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
        """Index files and folders; documents that did not change since the last run are skipped.

        Args:
            paths: Files and folders of .txt .md .html .pdf .docx .xlsx .pptx .epub .odt .rst .eml .csv .jsonl and
                source code; of .csv and .jsonl for ``tuples``.
            method: Construction method of hyperedges: one of :data:`METHODS`. By default each indexed document keeps
                its method. New documents get ``facts`` in an index of facts, ``tuples`` in an index of tuples only, and
                ``semantic-units`` in any other index.
            max_cost: Maximum cost of the language model in this run, in US dollars; 0 for no limit.
            max_tokens: Maximum number of tokens of the language model in this run; 0 for no limit.
            prune: Whether to remove documents whose files are missing below these paths. Documents of a path without
                any file are protected, since its disk may not be mounted.
            force: Whether to rebuild unchanged documents too, without reusing replies. The old hyperedges stay until
                the new ones are stored. Paths may be ids of documents that were read from files. After an interruption
                the same call continues.
            progress: Called with the progress.

        Raises:
            ConfigurationError: A path does not exist, there is no such method, or it needs a component that is not set.
                The index is unchanged.
        """
        files, checkpoint = self._select_files(_list_paths(paths), method, force=force)
        if checkpoint:
            _LOG.warning("an earlier rebuild was interrupted; this run continues it")
        report = self._index_files(files, Limits(max_cost, max_tokens), progress, checkpoint)
        if checkpoint is not None and not report.counts.stop_reason:
            checkpoint.finish()
        return report if files.selection.ids else self._find_missing(files, report, prune=prune)

    def _select_files(
        self, paths: Sequence[Path], method: str, *, force: bool
    ) -> tuple[FileRuns, RebuildCheckpoint | None]:
        """Return the files to read with the method of each document, and the checkpoint of a rebuild."""
        selection = FileSelection.from_ids(paths, get_sources(self._store)) if force else FileSelection(paths)
        assignment = MethodAssignment(method) if method else self._get_assignment()
        settings = self.components.settings.read
        files = FileRuns(selection, assignment, settings, is_method_explicit=bool(method))
        model = self.components.language_model
        names = [method, model.cache_name if model else "", *map(str, paths)]
        return files, RebuildCheckpoint(self._store, names) if force else None

    def _index_files(
        self, files: FileRuns, limits: Limits, progress: Progress, checkpoint: RebuildCheckpoint | None
    ) -> IndexReport:
        """Index files by one construction method after the other, until a method stops."""
        report: IndexReport | None = None
        has_one_method = len(files.assignment.methods) == 1
        with closing(files.read(progress)) as runs:
            for run in runs:
                is_limited = has_one_method or methods[run.method].needs_language_model
                run_limits = limits if is_limited else Limits()
                run_report = self._index(
                    run.documents, run.method, run_limits, run.progress, run.file_count, checkpoint
                )
                if report is None:
                    report = run_report
                elif run.document_count:
                    report = report.merge(run_report, run.document_count)
                if report.counts.stop_reason:
                    break
        if report is None:  # there is always a default method
            raise AssertionError
        return report

    def _find_missing(self, files: FileRuns, report: IndexReport, *, prune: bool) -> IndexReport:
        """Return the report with the documents whose files are missing, which are removed if ``prune`` is set."""
        missing = MissingDocuments()
        if not report.counts.stop_reason:
            sources = get_sources(self._store, get_source_roots(files.selection.paths))
            paths = files.selection.paths
            missing = find_missing_documents(sources, paths, files.read_ids, report.failures, files.skipped)
        removed = set(missing.ids) - set(missing.protected) if prune else ()
        if removed:
            self.remove(sorted(removed))
        moved = set(missing.ids)  # a file under a new name is no duplicate of the missing one
        duplicates = tuple((id, earlier) for id, earlier in report.counts.duplicates if earlier not in moved)
        return replace(
            report,
            counts=replace(report.counts, duplicates=duplicates),
            skipped=files.skipped,
            missing=missing.ids,
            protected=missing.protected,
            is_pruned=prune,
        )

    def _get_assignment(self) -> MethodAssignment:
        """Return the construction method of each document of the index and of new documents."""
        kinds = get_kinds(self._store)
        default = self._get_default_method(kinds) if kinds else self._method
        others = {kind for kind in kinds if METHOD_BY_KIND[kind] != default}
        if not others:
            return MethodAssignment(default)
        document_kinds = get_document_kinds(self._store, others)
        with self._store.read_transaction() as transaction:
            documents = transaction.get(StoredDocument, list(document_kinds))
        sources = {id: document.source for id, document in documents.items()}
        return MethodAssignment.from_index(default, document_kinds, sources)

    @staticmethod
    def _get_default_method(kinds: Set[HyperedgeKind]) -> str:
        """Return the construction method of new documents in an index with hyperedges of these kinds."""
        if HyperedgeKind.TUPLE in kinds and len(kinds) == 1:
            return "tuples"
        has_facts_only = HyperedgeKind.FACT in kinds and HyperedgeKind.SEMANTIC_UNIT not in kinds
        return "facts" if has_facts_only else DEFAULT_METHOD

    def index_documents(
        self,
        documents: Iterable[Document | Failure],
        *,
        method: str = "",
        max_cost: float = 0.0,
        max_tokens: int = 0,
        progress: Progress = silent,
    ) -> IndexReport:
        """Index documents in memory; otherwise as :meth:`index`.

        Documents with arguments are indexed as ``tuples`` if no method is named.

        Raises:
            ConfigurationError: As for :meth:`index`, or an item is no document. The documents before it are indexed.
        """
        limits, documents = Limits(max_cost, max_tokens), _check_documents(documents)
        if method:
            return self._index(documents, method, limits, progress)
        assignment = self._get_assignment()
        report: IndexReport | None = None
        for group_method, group in groupby(documents, assignment.get_method):
            is_limited = group_method == assignment.default or methods[group_method].needs_language_model
            group_report = self._index(group, group_method, limits if is_limited else Limits(), progress)
            report = group_report if report is None else report.merge(group_report, group_report.documents)
            if report.counts.stop_reason:
                break
        return report or self._index((), assignment.default, limits, progress)

    def _index(
        self,
        documents: Iterable[Document | Failure],
        method: str,
        limits: Limits,
        progress: Progress,
        file_count: int | None = None,
        checkpoint: RebuildCheckpoint | None = None,
    ) -> IndexReport:
        """Index documents by one construction method and save the snapshot."""
        builder = make_builder(method, self.components, limits)
        embedder, usage_before = self.components.embedder, self.components.usage
        start, encode_seconds_before, texts_before = time.perf_counter(), embedder.seconds, embedder.text_count
        model = self.components.language_model
        with model.replacing_replies(checkpoint) if model and checkpoint is not None else nullcontext():
            counts = self._build_indexer(builder, method).index(documents, progress, file_count, checkpoint=checkpoint)
        self._searcher.min_version = get_version(self._store)
        self._snapshots.save()
        if methods[method].describes_entities and counts.passages:
            self._snapshots.get_with_entity_vectors(embedder, progress)
        return IndexReport(
            method,
            counts,
            skipped=(),
            seconds=time.perf_counter() - start,
            encode_seconds=embedder.seconds - encode_seconds_before,
            embedded_texts=embedder.text_count - texts_before,
            usage=self.components.usage - usage_before,
        )

    def estimate(self, paths: Paths, *, method: str = "facts", force: bool = False) -> Usage:
        """Estimate the calls, tokens and cost of the language model for indexing, without any call.

        Prompts are counted; the length of replies is estimated. A method without a language model costs nothing.

        Args:
            paths: As for :meth:`index`.
            method: As for :meth:`index`; ``""`` for the method of each document.
            force: As for :meth:`index`.

        Raises:
            ConfigurationError: As for :meth:`index`.
        """
        files, checkpoint = self._select_files(_list_paths(paths), method, force=force)
        with closing(files.read(silent)) as runs:
            return sum((self._estimate(run.documents, run.method, checkpoint) for run in runs), Usage())

    def _estimate(
        self, documents: Iterable[Document | Failure], method: str, checkpoint: RebuildCheckpoint | None
    ) -> Usage:
        """Estimate the usage of the language model for documents of one construction method."""
        builder, components = make_builder(method, self.components, Limits()), self.components
        if not methods[method].needs_language_model and not components.extracts_by_language_model:
            return Usage()
        model = components.language_model
        find_replies = model.find_replies if model else _find_no_replies
        batches = self._build_indexer(builder, method).find_new_passages(documents, checkpoint)
        with model.replacing_replies(checkpoint) if model and checkpoint is not None else nullcontext():
            return sum((builder.estimate(passages, find_replies) for passages in batches), Usage())

    def _build_indexer(self, builder: HyperedgeBuilder, method: str) -> Indexer:
        splitter = SentenceSplitter(self.components.settings.split, methods[method].default_passages)
        return Indexer(self._store, self.components.embedder, splitter, builder, self.components.settings.embedding)

    def remove(self, document_ids: str | Sequence[str]) -> None:
        """Remove documents with their passages, hyperedges and entities.

        Raises:
            NotFoundError: A document is not in the index; no document was removed.
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
        """Return the evidence for a question: the best passages, and the hyperedges and entities that led to them.

        Adjacent passages are merged into one hit, and identical texts are listed once. With ``max_words``, long
        passages are cut to the parts most similar to the question.

        Args:
            question: The question.
            k: Maximum number of hits. None for 5, or for no limit if ``max_words`` is set.
            max_words: Maximum number of words in all hits together.
            retriever: Name of a retriever (one of :data:`RETRIEVERS` or of a plug-in), a retriever, or a
                :class:`polyad.engine.registry.RetrieverSpec`. None for the retriever of the preset, else ``default``.
            merge: Whether to merge adjacent passages. False returns passages as ranked, for measurements.
            min_relevance: Minimum relevance of a passage, in [0, 1]; 0 for no minimum.
            progress: Called while the first search computes reusable data, such as the vectors of entities.

        Raises:
            ConfigurationError: The question is blank or too long, a limit is below 1, there is no such retriever, or
                the retriever does not predict relevance and ``min_relevance`` is above 0.
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
        """Return the evidence for each question; the questions are embedded together. Otherwise as :meth:`search`."""
        options = SearchOptions(k=k, max_words=max_words, merge=merge, min_relevance=min_relevance)
        return self._searcher.search_many(questions, options, retriever, progress)

    def prepare(self, retriever: RetrieverLike | None = None, progress: Progress = silent) -> None:
        """Load the models of a retriever and compute its reusable data, so that the first search is not slower.

        Raises:
            ConfigurationError: There is no such retriever, or it needs a component that is not set.
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
        """Search for the evidence of a question and answer from it, with citations; see :meth:`answer`.

        The usage of the answer includes the calls of the search.

        Args:
            question: The question.
            k: Maximum number of hits.
            max_words: Maximum number of words in all hits together.
            retriever: As for :meth:`search`.
            min_relevance: Minimum relevance of a passage; if no passage reaches it, the model is not asked.
            on_text: Called with each piece of the answer as it arrives.
            progress: As for :meth:`search`.

        Raises:
            ConfigurationError: As for :meth:`search`.
            LanguageModelError: The language model returned no usable reply.
        """
        usage_before = self.components.usage
        evidence = self.search(
            question, k, max_words=max_words, retriever=retriever, min_relevance=min_relevance, progress=progress
        )
        return replace(self.answer(evidence, on_text), usage=self.components.usage - usage_before)

    def answer(self, evidence: Evidence, on_text: Callable[[str], None] | None = None) -> Answer:
        """Answer the question of some evidence, with citations; without a language model, return the evidence alone.

        Args:
            evidence: Evidence of :meth:`search`, or a part of it.
            on_text: Called with each piece of the answer as it arrives.

        Raises:
            LanguageModelError: The language model returned no usable reply.
        """
        components = self.components
        answerer = CitingAnswerer(
            components.language_model,
            components.settings.answer,
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
        """Answer a question piece by piece: iterate over the text, then read ``answer``; otherwise as :meth:`ask`.

        Without a language model there are no pieces, and the answer contains the evidence alone.

        Example:
            >>> stream = engine.stream("Who funded the trial?")                 # doctest: +SKIP
            >>> for piece in stream:                                            # doctest: +SKIP
            ...     print(piece, end="")
            >>> stream.answer.citations                                         # doctest: +SKIP

        Raises:
            ConfigurationError: As for :meth:`search`. Errors of the language model are raised during iteration.
        """
        usage_before = self.components.usage
        evidence = self.search(
            question, k, max_words=max_words, retriever=retriever, min_relevance=min_relevance, progress=progress
        )
        search_usage = self.components.usage - usage_before

        def answer_with_usage(on_text: Callable[[str], None]) -> Answer:
            answer = self.answer(evidence, on_text)
            return replace(answer, usage=search_usage + answer.usage)

        return AnswerStream(answer_with_usage)


def _load_embedder(embedder: str | Embedder | None, settings: Settings) -> Embedder:
    """Return an embedder as given, by its name, or the default embedder."""
    if isinstance(embedder, str) or embedder is None:
        return loaders.load_embedder(embedder or loaders.DEFAULT_EMBEDDER, settings.encoder)
    return embedder


def _check_embedder(store: Store, embedder: str | Embedder | None) -> str | Embedder:
    """Return an embedder that matches the index, or the name of the index's embedder.

    Raises:
        IndexMismatchError: The index was built with another embedder.
    """
    if embedder is None or isinstance(embedder, str):
        check_manifest(store.manifest, embedder=loaders.resolve_embedder_name(embedder) if embedder else None)
        return store.manifest.embedder
    check_manifest(store.manifest, embedder=embedder.name)
    return embedder


def _check_extractor(
    store: Store, extractor: str | MentionExtractor | None, model: LanguageModel | None
) -> str | MentionExtractor:
    """Return a mention extractor that matches the index, or the name of the index's extractor.

    Args:
        store: Store of the index.
        extractor: Name of an extractor, an extractor, or None.
        model: Language model for an extractor that needs one.

    Raises:
        IndexMismatchError: The index was built with another extractor.
    """
    if extractor in (None, store.manifest.mentions):
        return store.manifest.mentions
    extractor = loaders.load_extractor(extractor, model) if isinstance(extractor, str) else extractor
    check_manifest(store.manifest, mentions=extractor.name)
    if model and isinstance(extractor, _LanguageModelExtractor):
        return extractor.with_language_model(model)
    return extractor


def _find_no_replies(prompts: Sequence[Prompt]) -> list[str | None]:
    """Return None for each prompt: without a language model there are no stored replies."""
    return [None for _ in prompts]


def _check_documents(documents: Iterable[Document | Failure]) -> Iterator[Document | Failure]:
    """Yield documents after checking their type.

    Raises:
        ConfigurationError: An item is no document.
    """
    if not isinstance(documents, Iterable):
        raise ConfigurationError(f"documents is {repr(documents)[:100]}; expected an iterable of polyad.Document")
    for number, item in enumerate(documents):
        if not isinstance(item, Document | Failure):
            raise ConfigurationError(f"documents[{number}] is {repr(item)[:100]}; expected a polyad.Document")
        yield item


def _list_paths(paths: Paths) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
