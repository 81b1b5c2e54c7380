"""Writes one index: reads files, builds hyperedges by any method, and stores them."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path

from polyad.curation.corrections import load_effects
from polyad.curation.curator import Curator, HistoryRecorder
from polyad.embedders.metered import MeteredEmbedder
from polyad.engine.components import Components
from polyad.engine.concurrent_runs import notice_other_runs
from polyad.engine.embedder_choice import (
    LANGUAGE_EMBEDDERS,
    choose_embedder,
    choose_embedder_for_questions,
    follow_languages,
)
from polyad.engine.file_runs import FileRuns, FileSelection, MethodRun
from polyad.engine.registry import (
    DEFAULT_METHOD,
    METHOD_BY_KIND,
    MethodAssignment,
    SpendingLimits,
    make_builder,
    methods,
)
from polyad.engine.search import Searcher
from polyad.engine.transfer import Importer, ImportReport
from polyad.errors import ConfigurationError, NoMoreRepliesError, NotFoundError
from polyad.indexing.indexer import Indexer
from polyad.indexing.remaining_time import NO_SIZES
from polyad.indexing.replacement import VectorReplacement
from polyad.indexing.run import IndexCounts, IndexReport, OnOutcome, RebuildCheckpoint, ignore_outcome
from polyad.indexing.split import SentenceSplitter
from polyad.model import Document, Failure, HyperedgeKind, Usage
from polyad.protocols.components import Embedder, HyperedgeBuilder, Progress, Prompt, silent
from polyad.protocols.lookups import find_duplicates, get_document_kinds, get_kinds, get_sources, get_version
from polyad.protocols.store import Store, StoredDocument
from polyad.readers.folder.files import FileReader
from polyad.readers.formats import estimate_lengths
from polyad.readers.text.sources import MissingDocuments, find_missing_documents, find_moved_documents, get_source_roots
from polyad.snapshot.provider import SnapshotProvider

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Command:
    """One command that indexes files or documents: its limits, its progress callback and its entry in the history.

    Attributes:
        limits: Limits on the language model.
        progress: Receives the progress of indexing.
        recorder: Writes the documents and costs of the command to the history.
        checkpoint: Checkpoint of a full rebuild; None for other commands.
        on_outcome: Receives the outcome of each document.
    """

    limits: SpendingLimits
    progress: Progress
    recorder: HistoryRecorder
    checkpoint: RebuildCheckpoint | None = None
    on_outcome: OnOutcome = ignore_outcome


class Writer:
    """Indexes files and documents into one store.

    Args:
        store: Record of the index.
        snapshots: Provides and saves snapshots of the index.
        searcher: Searches the index; receives the version of each write, so that an engine reads its own writes.
        components: Embedder, mention extractor, language model and settings.
        method: Construction method of an index without documents.
    """

    def __init__(
        self, store: Store, snapshots: SnapshotProvider, searcher: Searcher, components: Components, method: str
    ) -> None:
        self._store = store
        self._snapshots = snapshots
        self._searcher = searcher
        self._components = components
        self._method = method

    def index(
        self,
        paths: str | Path | Iterable[str | Path],
        method: str,
        limits: SpendingLimits,
        progress: Progress,
        *,
        prune: bool,
        force: bool,
        now: datetime,
    ) -> IndexReport:
        """Index files and folders, and return a report.

        See :meth:`polyad.engine.engine.Engine.index`.
        """
        files, checkpoint = self._select_files(_list_paths(paths), method, force=force)
        if checkpoint:
            _LOG.warning("an earlier rebuild was interrupted; this run continues it")
        with self._record(now) as recorder:
            report = self._index_files(files, _Command(limits, progress, recorder, checkpoint))
        if checkpoint is not None and not report.counts.stop_reason:
            checkpoint.finish()
        if not files.selection.ids:
            report = self._add_missing_documents(files, report, now, prune=prune)
        self.follow_languages(progress, now)
        return report

    @contextmanager
    def _record(self, now: datetime) -> Iterator[HistoryRecorder]:
        """Yield a recorder that writes the documents and costs of the ``with`` block to the index's history.

        A warning is logged if another process indexes the store meanwhile.
        """
        recorder = HistoryRecorder("index", now, lambda: self._components.usage)
        with notice_other_runs(self._store):
            try:
                yield recorder
            finally:
                recorder.finish(self._store)

    def _select_files(
        self, paths: Sequence[Path], method: str, *, force: bool
    ) -> tuple[FileRuns, RebuildCheckpoint | None]:
        """Return (files to read with the construction method of each document, checkpoint of a rebuild)."""
        selection = FileSelection.from_paths_or_ids(paths, get_sources(self._store)) if force else FileSelection(paths)
        assignment = MethodAssignment(method) if method else self._get_assignment()
        settings, open_pool = self._components.settings.read, self._components.loader.open_reading_pool
        files = FileRuns(selection, assignment, settings, open_pool, is_method_explicit=bool(method))
        model = self._components.language_model
        names = [method, model.cache_name if model else "", *map(str, paths)]
        return files, RebuildCheckpoint(self._store, names) if force else None

    def _index_files(self, files: FileRuns, command: _Command) -> IndexReport:
        """Index files, one construction method after the other, and return a report; stop at a cost limit."""
        report: IndexReport | None = None
        has_one_method = len(files.assignment.methods) == 1
        with closing(files.read(command.progress)) as runs:
            for run in runs:
                is_limited = has_one_method or methods[run.method].needs_language_model
                run_report = self._index_run(run, command if is_limited else replace(command, limits=SpendingLimits()))
                if report is None:
                    report = run_report
                elif run.document_count:
                    report = report.merge(run_report, run.document_count)
                if report.counts.stop_reason:
                    break
        if report is None:  # there is always a default method
            raise AssertionError
        return report

    def _add_missing_documents(
        self, files: FileRuns, report: IndexReport, now: datetime, *, prune: bool
    ) -> IndexReport:
        """Return ``report`` with the documents whose files are deleted; with ``prune``, remove the documents."""
        is_stopped = bool(report.counts.stop_reason)
        missing = MissingDocuments() if is_stopped else self._find_missing_documents(files, report)
        moved = {} if is_stopped else self._find_moved_documents(files, report, prune=prune)
        while removed := (set(missing.ids) - set(missing.protected)) | moved.keys() if prune else ():
            try:
                Curator(self._store).remove(sorted(removed), HistoryRecorder("prune", now))
            except NotFoundError:  # another process removed one of them
                before, missing = missing, self._find_missing_documents(files, report)
                moved = self._find_moved_documents(files, report, prune=prune)
                if missing == before:
                    raise
            else:
                self._searcher.min_version = get_version(self._store)
                break
        old_ids = {*missing.ids, *moved}  # a file under a new name is no duplicate of the missing file
        duplicates = tuple((id, earlier) for id, earlier in report.counts.duplicates if earlier not in old_ids)
        return replace(
            report,
            counts=replace(report.counts, duplicates=duplicates),
            skipped=files.skipped,
            ignored=files.ignored,
            missing=missing.ids,
            protected=missing.protected,
            moved=tuple(sorted(moved.items())),
            is_pruned=prune,
        )

    def _find_moved_documents(self, files: FileRuns, report: IndexReport, *, prune: bool) -> dict[str, str]:
        """Return the documents whose files have another name now, as a dictionary: old id -> new id.

        Their passages, with facts and vectors, were reused for the new documents: passages are compared by content.
        With ``prune``, files that an earlier run indexed under their new names count too.
        """
        duplicates = report.counts.duplicates
        if prune:
            duplicates = tuple(find_duplicates(self._store, sorted(files.read_ids)).items())
        with self._store.read_transaction() as transaction:
            documents = transaction.get(StoredDocument, [old for _, old in duplicates])
        sources = {id: document.source for id, document in documents.items()}
        return find_moved_documents(sources, duplicates, files.read_ids)

    def _find_missing_documents(self, files: FileRuns, report: IndexReport) -> MissingDocuments:
        paths = files.selection.paths
        sources = get_sources(self._store, get_source_roots(paths))
        return find_missing_documents(sources, paths, files.read_ids, report.failures, files.skipped)

    def _get_assignment(self) -> MethodAssignment:
        """Return the construction method of each document of the index and the default method of new documents."""
        hidden = {id: kind for id, effects in load_effects(self._store).items() for kind in effects.kinds}
        kinds = get_kinds(self._store) | set(hidden.values())
        default = self._get_default_method(kinds) if kinds else self._method
        others = {kind for kind in kinds if METHOD_BY_KIND[kind] != default}
        if not others:
            return MethodAssignment(default)
        document_kinds = get_document_kinds(self._store, others)
        document_kinds |= {id: kind for id, kind in hidden.items() if kind in others}
        with self._store.read_transaction() as transaction:
            documents = transaction.get(StoredDocument, list(document_kinds))
        sources = {id: document.source for id, document in documents.items()}
        return MethodAssignment.from_index(default, document_kinds, sources)

    @staticmethod
    def _get_default_method(kinds: Set[HyperedgeKind]) -> str:
        """Return the construction method for new documents: the method of the index's existing hyperedges."""
        if HyperedgeKind.TUPLE in kinds and len(kinds) == 1:
            return "tuples"
        has_facts_only = HyperedgeKind.FACT in kinds and HyperedgeKind.SEMANTIC_UNIT not in kinds
        return "facts" if has_facts_only else DEFAULT_METHOD

    def index_documents(
        self,
        documents: Iterable[Document | Failure],
        method: str,
        limits: SpendingLimits,
        progress: Progress,
        now: datetime,
        file_sizes: Mapping[str, int] = NO_SIZES,
        on_outcome: OnOutcome = ignore_outcome,
    ) -> IndexReport:
        """Index documents that are in memory, instead of files.

        See :meth:`polyad.engine.engine.Engine.index_documents`.
        """
        with self._record(now) as recorder:
            command = _Command(limits, progress, recorder, on_outcome=on_outcome)
            report = self._index_groups(_check_documents(documents), method, command, file_sizes)
        self.follow_languages(progress, now)
        return report

    def follow_languages(self, progress: Progress, now: datetime) -> None:
        """Embed all texts with another embedder if the user named none and the languages of the documents ask for it.

        The index is searched as before until all vectors are there. The next call continues an interrupted one.
        """
        if self._store.manifest.embedder not in LANGUAGE_EMBEDDERS:
            return
        snapshot = self._snapshots.get_current(min_version=get_version(self._store))
        recorder, embedding = HistoryRecorder("embed", now), self._components.settings.embedding

        def replace_vectors(embedder: Embedder) -> None:
            VectorReplacement(self._store, MeteredEmbedder(embedder), embedding, recorder).run(progress)

        if follow_languages(snapshot.count_languages(), self._store, self._components, replace_vectors):
            self._searcher.min_version = get_version(self._store)
            self._searcher.forget_retrievers()
            self._snapshots.save()

    def expect_questions(self, questions: Iterable[str]) -> None:
        """Choose the embedder of an empty index by the language of the questions that it will be asked."""
        choose_embedder_for_questions(questions, self._store, self._components)

    def _index_groups(
        self, documents: Iterable[Document | Failure], method: str, command: _Command, file_sizes: Mapping[str, int]
    ) -> IndexReport:
        """Index documents in memory, grouped by construction method, and return a report; stop at a cost limit."""
        file_count = len(file_sizes) or None
        if method:
            run = MethodRun(method, command.progress, iter(documents), file_count, file_sizes)
            return self._index_run(run, command)
        assignment = self._get_assignment()
        report: IndexReport | None = None
        for group_method, group in groupby(documents, assignment.get_method):
            is_limited = group_method == assignment.default or methods[group_method].needs_language_model
            run = MethodRun(group_method, command.progress, group, file_count, file_sizes)
            group_report = self._index_run(run, command if is_limited else replace(command, limits=SpendingLimits()))
            report = group_report if report is None else report.merge(group_report, group_report.documents)
            if report.counts.stop_reason:
                break
        return report or self._index_run(MethodRun(assignment.default, command.progress), command)

    def _index_run(self, run: MethodRun, command: _Command) -> IndexReport:
        """Index documents whose hyperedges one construction method builds, save the snapshot, and return a report."""
        documents = choose_embedder(run.documents, self._store, self._components)
        builder, checkpoint = make_builder(run.method, self._components, command.limits), command.checkpoint
        embedder, usage_before = self._components.embedder, self._components.usage
        start, encode_seconds_before, texts_before = time.perf_counter(), embedder.seconds, embedder.text_count
        model = self._components.language_model
        with model.replacing_replies(checkpoint) if model and checkpoint is not None else nullcontext():
            indexer = self._build_indexer(builder, run.method, command.recorder)
            counts = indexer.index(
                documents,
                run.progress,
                run.file_count,
                file_lengths=estimate_lengths(run.file_sizes),
                checkpoint=checkpoint,
                on_outcome=command.on_outcome,
            )
        self._searcher.min_version = get_version(self._store)
        self._snapshots.save(counts.hyperedges)
        if methods[run.method].describes_entities and counts.passages:
            self._snapshots.get_with_entity_vectors(embedder, run.progress)
        return IndexReport(
            run.method,
            counts,
            skipped=(),
            seconds=time.perf_counter() - start,
            encode_seconds=embedder.seconds - encode_seconds_before,
            embedded_texts=embedder.text_count - texts_before,
            usage=self._components.usage - usage_before,
        )

    def import_file(self, path: Path, progress: Progress, now: datetime) -> ImportReport:
        """Import an exported index into this index, and save the snapshot.

        See :meth:`polyad.engine.engine.Engine.import_file`.
        """
        report = Importer(self._store, self._components, path, HistoryRecorder("import", now)).run(progress)
        self._searcher.min_version = get_version(self._store)
        self._snapshots.save()
        self.follow_languages(progress, now)
        return report

    def estimate(self, paths: str | Path | Iterable[str | Path], method: str, *, force: bool) -> Usage:
        """Estimate the calls, tokens and cost of the language model for indexing, without calling the model.

        See :meth:`polyad.engine.engine.Engine.estimate`.
        """
        files, checkpoint = self._select_files(_list_paths(paths), method, force=force)
        with closing(files.read(silent)) as runs:
            return sum((self._estimate_by_method(run.documents, run.method, checkpoint) for run in runs), Usage())

    def _estimate_by_method(
        self, documents: Iterable[Document | Failure], method: str, checkpoint: RebuildCheckpoint | None
    ) -> Usage:
        """Estimate the usage of the language model for documents of one construction method."""
        builder, components = make_builder(method, self._components, SpendingLimits()), self._components
        if not methods[method].needs_language_model and not components.extracts_by_language_model:
            return Usage()
        model = components.language_model
        find_replies = model.find_replies if model else _find_no_replies
        batches = self._build_indexer(builder, method).find_new_passages(documents, checkpoint)
        with model.replacing_replies(checkpoint) if model and checkpoint is not None else nullcontext():
            return sum((builder.estimate(passages, find_replies) for passages in batches), Usage())

    # Steps of workers, which index documents of the same run side by side

    def list_files(self, paths: Sequence[Path], method: str) -> tuple[list[Path | Failure], tuple[str, ...]]:
        """Return (files below ``paths``, or a failure for each unreadable path; files that were skipped).

        The first documents choose the embedder of a new index, before workers open the index.
        """
        default = method or self._get_assignment().default
        reader = methods[default].read(self._components.settings.read)
        if not isinstance(reader, FileReader):
            raise ConfigurationError(f"the method {default!r} reads no files one by one; leave out --workers")
        files = list(reader.list_files(paths))
        with closing(self.read_files([path for path in files if isinstance(path, Path)], method)) as documents:
            choose_embedder((item for _, item in documents), self._store, self._components)
        return files, tuple(reader.skipped)

    def read_files(self, paths: Sequence[Path], method: str) -> Generator[tuple[str, Document | Failure], None, None]:
        """Yield (construction method, document or failure) for each document in the files ``paths``."""
        files, _ = self._select_files(paths, method, force=False)
        # A link that leads out of its folder was refused when the files were listed.
        files.settings = replace(files.settings, follow_links=True)
        with closing(files.read(silent)) as runs:
            for run in runs:
                yield from ((run.method, item) for item in run.documents)

    def needs_extraction(self, method: str) -> bool:
        """Return whether a construction method calls the language model."""
        return methods[method].needs_language_model or self._components.extracts_by_language_model

    def extract(self, documents: Sequence[Document], method: str) -> list[Failure]:
        """Call the language model for the documents' new passages, so that its replies are cached; return failures.

        Each failure has the id of a document.

        Raises:
            NoMoreRepliesError: Further requests would fail too.
        """
        builder = make_builder(method, self._components, SpendingLimits())
        failures = {}
        for passages in self._build_indexer(builder, method).find_new_passages(documents):
            for passage, result in zip(passages, builder.build(passages), strict=True):
                if isinstance(result.failure, NoMoreRepliesError):
                    raise result.failure
                if result.failure is not None:
                    failures[passage.document_id] = str(result.failure)
        return [Failure(id, reason) for id, reason in failures.items()]

    def put(
        self,
        documents: Sequence[Document],
        method: str,
        recorder: HistoryRecorder,
        store: Store,
        on_outcome: OnOutcome,
    ) -> IndexCounts:
        """Build hyperedges for documents, embed the documents, put them into ``store``, and return counts.

        ``store`` is a view of the index, such as one that also ends jobs. The snapshot is not updated.
        """
        builder = make_builder(method, self._components, SpendingLimits())
        return self._build_indexer(builder, method, recorder, store).index(documents, silent, on_outcome=on_outcome)

    def finish(
        self, paths: Sequence[Path], read_ids: Set[str], report: IndexReport, now: datetime, *, prune: bool
    ) -> IndexReport:
        """Save the snapshot after workers indexed ``paths``; return ``report`` with missing documents.

        The report also gets the duplicates among ``read_ids``, the ids of all documents that the workers read.
        """
        files, _ = self._select_files(paths, report.method, force=False)
        files.read_ids |= read_ids
        duplicates = tuple(sorted(find_duplicates(self._store, sorted(read_ids)).items()))
        counts = replace(report.counts, duplicates=duplicates)
        report = replace(report, method=files.assignment.default, counts=counts)
        report = replace(self._add_missing_documents(files, report, now, prune=prune), skipped=report.skipped)
        self._searcher.min_version = get_version(self._store)
        self._snapshots.save()
        self.follow_languages(silent, now)
        return report

    def _build_indexer(
        self,
        builder: HyperedgeBuilder,
        method: str,
        recorder: HistoryRecorder | None = None,
        store: Store | None = None,
    ) -> Indexer:
        components = self._components
        splitter = SentenceSplitter(components.settings.split, methods[method].default_passages)
        return Indexer(
            store or self._store,
            components.embedder,
            splitter,
            builder,
            components.settings.embedding,
            recorder,
        )


def _find_no_replies(prompts: Sequence[Prompt]) -> list[str | None]:
    return [None for _ in prompts]


def _check_documents(documents: Iterable[Document | Failure]) -> Iterator[Document | Failure]:
    """Yield the documents; raise an error at the first item that is not a Document.

    Raises:
        ConfigurationError: An item is no document.
    """
    if not isinstance(documents, Iterable):
        raise ConfigurationError(f"documents is {repr(documents)[:100]}; expected an iterable of polyad.Document")
    for number, item in enumerate(documents):
        if not isinstance(item, Document | Failure):
            raise ConfigurationError(f"documents[{number}] is {repr(item)[:100]}; expected a polyad.Document")
        yield item


def _list_paths(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
