"""The engine: index documents, search them, and answer questions."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Unpack
from weakref import WeakSet

from polyad.curation.curator import Curator, HistoryRecorder
from polyad.embedders.metered import MeteredEmbedder
from polyad.engine import loaders, maintenance
from polyad.engine.catalogue import Catalogue
from polyad.engine.changes import apply_preset
from polyad.engine.components import Components
from polyad.engine.corrections import Corrections
from polyad.engine.graph_views import GraphViews
from polyad.engine.maintenance import BackupReport, Checker, CheckReport
from polyad.engine.opening import NO_MODELS, LanguageModelChoice, get_embedder, open_index
from polyad.engine.registry import DEFAULT_METHOD, SpendingLimits
from polyad.engine.search import RetrieverLike, Searcher
from polyad.engine.settings import Settings
from polyad.engine.streaming import AnswerStream
from polyad.engine.text_search import TextSearchOptions
from polyad.errors import ConfigurationError, IndexMismatchError, StoreError, StoreNotFoundError
from polyad.indexing.remaining_time import NO_SIZES
from polyad.model import Answer, Document, Evidence, Failure, TextMatches, Usage
from polyad.presets import PRESETS
from polyad.protocols.components import Embedder, MentionExtractor, Progress, Reranker, silent
from polyad.protocols.lookups import are_vectors_replaced, get_version
from polyad.protocols.snapshot import Snapshot
from polyad.protocols.store import EMBEDDER_CHOICE, NotifyingStore, Store, StoreOpener, ValueStore
from polyad.retrieval.options import AUTO, OptionArguments, SearchOptions
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.provider import SnapshotProvider
from polyad.text.filters import Where
from polyad.text.patterns import TextPattern
from polyad.text.validity import Time

if TYPE_CHECKING:
    from polyad.answering.conversation import CompleteQuestion
    from polyad.engine.page_images import PageImages
    from polyad.engine.transfer import ExportReport, ImportReport
    from polyad.engine.writer import Writer
    from polyad.indexing.replacement import ReplacementReport
    from polyad.indexing.run import IndexReport, OnOutcome

_LOG = logging.getLogger(__name__)

Paths = str | Path | Iterable[str | Path]
"""A file or folder, or several."""

DEFAULT_RETRIEVER = "default"


_ENGINES: WeakSet[Engine] = WeakSet()
"""All engines of this process."""

_INHERITED: list[object] = []
"""Parts of engines that another process opened; SQLite's connections must not even be closed in a forked process."""


class _InheritedPart:
    """Stands for a part of an engine in a forked process, where locks of other threads are never released."""

    def close(self) -> None:
        """Do nothing: the connections belong to the other process."""

    def __getattr__(self, name: str) -> NoReturn:
        raise StoreError(
            "the engine was opened before this process was forked; open it after the fork, or start processes by spawn"
        )


def _give_up_engines() -> None:
    """Make each engine that this process inherited from the process that forked it raise StoreError."""
    for engine in list(_ENGINES):
        _INHERITED.append(dict(vars(engine)))
        vars(engine).update(dict.fromkeys(vars(engine), _InheritedPart()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up_engines)


class SearchArguments(OptionArguments, total=False):
    """The keyword arguments that all search methods of :class:`Engine` share."""

    retriever: RetrieverLike | None
    progress: Progress


class Engine:
    """Indexes documents, searches the index, and answers questions.

    Example:
        >>> engine = Engine.open("kb")                                          # doctest: +SKIP
        >>> engine.index(["handbook/", "trials.pdf"])                           # doctest: +SKIP
        >>> engine.search("Who funded the trial?").passages[0].passage.title    # doctest: +SKIP

    Safe to use from several threads: searches may run at the same time, and beside one writer. Fork before you open
    an engine: in a forked process, methods of an engine that was opened before raise StoreError.

    Attributes:
        components: Settings and models; each model is loaded when it is first needed.
        catalogue: Looks up documents, passages, entities, hyperedges and statistics.
        corrections: Retracts facts, adds aliases of entities, and disables documents.
        graph_views: Selects what drawings of the hypergraph show.
    """

    def __init__(self, store: Store, components: Components) -> None:
        self.components = components
        self._store = store
        directory = store.manifest.directory
        nearest = components.settings.nearest
        is_shared = bool(directory and nearest.shared_folder and store.manifest.place)
        shared = SnapshotFiles(Path(nearest.shared_folder, directory.name)) if directory and is_shared else None
        self._files = files = SnapshotFiles(directory, nearest, shared) if directory else None
        self._snapshots = SnapshotProvider(store, store.manifest.dimension, files)
        recall = files.get_recall if files else dict
        self.catalogue = Catalogue(store, components.language_model, recall, self._get_snapshot, components.prompts)
        preset = PRESETS.get(components.settings.preset)
        self._method = preset.method if preset else DEFAULT_METHOD
        self._retriever = preset.retriever if preset else DEFAULT_RETRIEVER
        self._searcher = Searcher(store, self._snapshots, components, self._retriever)
        self.graph_views = GraphViews(store, self.catalogue, self._get_snapshot)
        self.corrections = Corrections(store, self.catalogue, components, self._see_own_writes)
        _ENGINES.add(self)

    def _get_snapshot(self) -> MappedSnapshot:
        """Return the current snapshot, with what this engine wrote."""
        return self._snapshots.get_current(min_version=self._searcher.min_version)

    @cached_property
    def page_images(self) -> PageImages:
        """Renders the pages of PDF files and scans."""
        from polyad.engine.page_images import PageImages  # imports readers, which a search does not need

        return PageImages(self.catalogue, self.components.settings.read)

    @property
    def values(self) -> ValueStore:
        """The index's key-value store, in which applications such as the server keep data of their own."""
        return self._store

    @property
    def directory(self) -> Path | None:
        """The directory of the index; None if the index is in a database server or in memory."""
        return self._store.manifest.directory

    @property
    def is_outdated(self) -> bool:
        """Whether another process gave the index the embedder for the languages of its documents.

        Then open the index again.
        """
        return self.components.is_embedder_open and are_vectors_replaced(self._store)

    @cached_property
    def writer(self) -> Writer:
        """The component that writes documents into the index."""
        from polyad.engine.writer import Writer  # takes 0.2 s with the readers, which a search does not need

        return Writer(self._store, self._snapshots, self._searcher, self.components, self._method)

    @classmethod
    def open(
        cls,
        place: str | Path,
        *,
        store: StoreOpener | None = None,
        embedder: str | Embedder | None = None,
        mention_extractor: str | MentionExtractor | None = None,
        language_model: LanguageModelChoice | None = None,
        language_models: Mapping[str, LanguageModelChoice] = NO_MODELS,
        reranker: str | Reranker | None = None,
        settings: Settings | None = None,
        preset: str = "",
        prompts: str | Path | None = None,
        replies: str | Path | None = None,
        reply_cache: bool = True,
        create: bool = True,
        loader: loaders.Loader = loaders,
    ) -> Engine:
        """Open the index in ``place``, and by default create an empty index if there is none.

        Args:
            place: Directory of the index, or ``NAME://...`` for another kind of store.
            store: Opens the store, if ``place`` does not name its kind.
            embedder: Name of an embedding model (see :func:`polyad.engine.loaders.load_embedder`) or an embedder. By
                default the embedder of the index; for a new index ``all-MiniLM-L6-v2`` or, if over 2 % of its
                passages are not English, ``multilingual-e5-small``, now and after later changes.
            mention_extractor: Name of an extractor (see :func:`polyad.engine.loaders.load_extractor`) or an extractor.
                By default the extractor of the index; for a new index the preset's extractor if it can be loaded, else
                ``rules``, which needs no model.
            language_model: Name of a model at the endpoint of ``OPENAI_BASE_URL``, its settings, or a language model.
                Optional: it writes answers, and some methods and retrievers need it.
            language_models: Further language models by name; an answer may name one that writes it.
            reranker: Name of a reranker (see :func:`polyad.engine.loaders.load_reranker`) or a reranker. None for the
                order of the retriever.
            settings: Settings of all stages.
            preset: Paper whose settings, method and retriever are the defaults: one of :data:`polyad.presets.PRESETS`.
                Values in ``settings`` that differ from their defaults override the values of the preset.
            prompts: Directory of files that replace prompts of the same name, such as ``hypersu_clues.md``; see
                :data:`polyad.text.prompts.PROMPT_NAMES`. None for the prompts of polyad.
            replies: File that stores the language model's replies; several indexes may share it. By default it is
                stored with the index.
            reply_cache: Whether stored replies are reused. New replies are always stored. Without reuse, repeated runs
                are independent of each other.
            create: Whether to create an empty index if there is none.
            loader: Loads the components that are named, for example on a cluster
                (:class:`polyad.engine.ray_cluster.RayCluster`).

        Raises:
            StoreNotFoundError: There is no index, and ``create`` is false.
            IndexMismatchError: The index was built with another embedder or extractor.
            ConfigurationError: There is no such embedder, extractor, language model, reranker or store.
        """
        opened, components = open_index(
            place,
            store or loaders.get_store_opener(place),
            apply_preset(preset, settings or Settings()) if preset else settings or Settings(),
            embedder=embedder,
            mention_extractor=mention_extractor,
            language_model=language_model,
            language_models=language_models,
            reranker=reranker,
            prompts=prompts,
            replies=Path(replies) if replies is not None else None,
            reply_cache=reply_cache,
            create=create,
            loader=loader,
        )
        try:
            return cls(opened, components)
        except BaseException:
            opened.close()
            raise

    @staticmethod
    def exists(place: str | Path, store: StoreOpener | None = None) -> bool:
        """Return whether ``place`` contains an index, including a damaged index or one of another version."""
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
        """Close the database and the snapshot of the index."""
        if "page_images" in vars(self):
            self.page_images.close()
        self._snapshots.close()
        self._store.close()

    def follow_changes(self) -> None:
        """Update the snapshot in the background whenever another machine writes to the index; for servers.

        Has no effect on an index in a folder, whose version a search reads from the file.
        """
        if isinstance(self._store, NotifyingStore):
            self._snapshots.follow(self._store)

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
        now: datetime | None = None,
        progress: Progress = silent,
    ) -> IndexReport:
        """Index files and folders; documents that did not change since the last run are skipped.

        Args:
            paths: Files and folders of .txt .md .html .pdf .docx .xlsx .pptx .epub .odt .rst .adoc .eml .csv .jsonl and
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
            now: Time of the entry in the history, and time when the index learnt the documents; None for the current
                time.
            progress: Called with the progress.

        Raises:
            ConfigurationError: A path does not exist, there is no such method, or it needs a component that is not set.
                The index is unchanged.
        """
        limits, now = SpendingLimits(max_cost, max_tokens), now or datetime.now(UTC)
        return self.writer.index(paths, method, limits, progress, prune=prune, force=force, now=now)

    def index_documents(
        self,
        documents: Iterable[Document | Failure],
        *,
        method: str = "",
        max_cost: float = 0.0,
        max_tokens: int = 0,
        now: datetime | None = None,
        file_sizes: Mapping[str, int] = NO_SIZES,
        progress: Progress = silent,
        on_outcome: OnOutcome | None = None,
    ) -> IndexReport:
        """Index documents in memory; documents that did not change since the last run are skipped.

        Otherwise as :meth:`index`. ``file_sizes`` are the sizes in bytes of the files of the documents: with them, the
        progress counts files and states the remaining time. ``on_outcome`` is called with the id of each document, with
        ``added``, ``updated``, ``unchanged`` or ``failed``, and with the reason of a failure.

        Documents with arguments are indexed as ``tuples`` if no method is named.

        Raises:
            ConfigurationError: As for :meth:`index`, or an item is no document. The documents before it are indexed.
        """
        limits, now = SpendingLimits(max_cost, max_tokens), now or datetime.now(UTC)
        outcomes = {"on_outcome": on_outcome} if on_outcome else {}
        return self.writer.index_documents(documents, method, limits, progress, now, file_sizes, **outcomes)

    def estimate(self, paths: Paths, *, method: str = "facts", force: bool = False) -> Usage:
        """Estimate the calls, tokens and cost of the language model for indexing, without calling the model.

        Prompts are counted; the length of replies is estimated. A method without a language model costs nothing.

        Args:
            paths: As for :meth:`index`.
            method: As for :meth:`index`; ``""`` for the method of each document.
            force: As for :meth:`index`.

        Raises:
            ConfigurationError: As for :meth:`index`.
        """
        return self.writer.estimate(paths, method, force=force)

    def remove(self, document_ids: str | Sequence[str], now: datetime | None = None) -> None:
        """Remove documents with their passages, hyperedges and entities.

        Args:
            document_ids: Ids of the documents.
            now: Time of the entry in the history; None for the current time.

        Raises:
            NotFoundError: A document is not in the index; no document was removed.
        """
        ids = [document_ids] if isinstance(document_ids, str) else document_ids
        digests = self.page_images.list_digests([*ids])
        Curator(self._store).remove(ids, HistoryRecorder("remove", now or datetime.now(UTC)))
        self._see_own_writes()
        self.page_images.forget(digests)
        if self.components.is_embedder_open:
            self.writer.follow_languages(silent, now or datetime.now(UTC))

    def replace_embedder(
        self, embedder: str | Embedder, progress: Progress = silent, now: datetime | None = None
    ) -> ReplacementReport:
        """Replace all vectors by the vectors of another embedder; facts and mentions are not extracted again.

        The index is searched and written as before until all texts are embedded; then all vectors are replaced in one
        transaction. An interrupted run leaves the index as it was, and the same call continues it. Afterwards the
        languages of documents no longer choose the embedder, and this engine is closed: open the index again.

        Args:
            embedder: Name of an embedding model (see :func:`polyad.engine.loaders.load_embedder`) or an embedder.
            progress: Called with the number of embedded documents.
            now: Time of the entry in the history; None for the current time.

        Raises:
            ConfigurationError: The index has these vectors already, or there is no such embedder.
        """
        from polyad.indexing.replacement import VectorReplacement  # imports the indexing of documents

        settings = self.components.settings
        if isinstance(embedder, str):
            embedder = loaders.load_embedder(embedder, settings.encoder)
        if embedder.name == self._store.manifest.embedder:
            raise ConfigurationError(
                f"the embedder is {embedder.name!r}, whose vectors the index has; expected another"
            )
        recorder, metered = HistoryRecorder("embed", now or datetime.now(UTC)), MeteredEmbedder(embedder)
        report = VectorReplacement(self._store, metered, settings.embedding, recorder).run(progress)
        self._store.put_values(EMBEDDER_CHOICE, {EMBEDDER_CHOICE: None})  # the user named it
        self.close()
        return report

    # Moving

    def export(
        self,
        path: str | Path,
        format: str = "jsonl",
        *,
        vectors: bool = True,
        overwrite: bool = False,
        progress: Progress = silent,
    ) -> ExportReport:
        """Write the index to a file in one consistent version, while other threads search and write.

        Args:
            path: The file; for ``parquet`` a folder.
            format: One of :data:`polyad.engine.transfer.EXPORT_FORMATS`. Only ``jsonl`` is without loss, and can be
                imported again.
            vectors: Whether to include the vectors, if the format has vectors.
            overwrite: Whether existing files are replaced; through a symbolic link, its target.
            progress: Called with the number of exported documents.

        Raises:
            ConfigurationError: There is no such format, the file cannot be written, or it exists and ``overwrite`` is
                false.
        """
        from polyad.engine.transfer import export_index  # imports the indexing of documents

        return export_index(self._store, Path(path), format, progress, vectors=vectors, overwrite=overwrite)

    @classmethod
    def open_like(
        cls,
        path: str | Path,
        place: str | Path,
        *,
        store: StoreOpener | None = None,
        embedder: str | Embedder | None = None,
        settings: Settings | None = None,
    ) -> Engine:
        """Open the index in ``place``; create a missing index with the embedder of the export file ``path``.

        The mention extractor is also that of the exported index.

        Args:
            path: File of :meth:`export` in the format ``jsonl``.
            place: As for :meth:`open`.
            store: As for :meth:`open`.
            embedder: Embedder of a new index; None for the embedder of the exported index.
            settings: Settings of all stages.

        Raises:
            ConfigurationError: The file is no exported index, or as for :meth:`open`.
        """
        from polyad.engine.transfer import create_like  # imports the indexing of documents

        loaded = get_embedder(embedder, settings or Settings(), loaders) if embedder else None
        create_like(Path(path), place, store or loaders.get_store_opener(place), loaded)
        return cls.open(place, store=store, embedder=loaded, settings=settings, create=False)

    def import_file(self, path: str | Path, progress: Progress = silent, now: datetime | None = None) -> ImportReport:
        """Add the documents and corrections of an exported index; facts and mentions are not extracted again.

        Texts are embedded again if the file has no vectors, or vectors of another embedder. A document that the index
        has with the same digest is skipped, so the same call continues after an interruption; another version of a
        document is replaced. Corrections of this index take precedence. A line that cannot be read is reported, and the
        other lines are imported.

        Args:
            path: File of :meth:`export` in the format ``jsonl``.
            progress: Called with the number of imported documents.
            now: Time of the entry in the history; None for the current time.

        Raises:
            ConfigurationError: The file is no exported index.
            IndexMismatchError: The exported index has another mention extractor.
        """
        return self.writer.import_file(Path(path), progress, now or datetime.now(UTC))

    def back_up(self, path: str | Path, *, overwrite: bool = False) -> BackupReport:
        """Copy the index to a file in one consistent version, while other threads search and write.

        Cached replies of the language model that lie beside the index are copied to the same name with ``.replies``
        at its end. To restore a backup, copy the files to ``index.sqlite`` and ``replies.sqlite`` in an empty folder.

        Args:
            path: The file.
            overwrite: Whether an existing file is replaced.

        Raises:
            ConfigurationError: The file exists, and ``overwrite`` is false.
            StoreError: The file cannot be written, or the index is not stored in a file.
        """
        return maintenance.back_up(self._store, Path(path), overwrite=overwrite)

    def check(self, *, repair: bool = False, now: datetime | None = None, progress: Progress = silent) -> CheckReport:
        """Read the whole index and check all its invariants, such as references, checksums and vector lengths.

        Args:
            repair: Whether to delete derived and orphaned data that violates an invariant, and to apply corrections
                again. Documents and users' corrections are never changed: damage to them remains in the report.
            now: Time of the repair, for the history; None for the current time.
            progress: Called with the number of checked groups of invariants.
        """
        recorder = HistoryRecorder("repair", now or datetime.now(UTC))
        report = Checker(self._store, self._files, recorder).run(progress, repairs=repair)
        if repair and report.damage:
            self._see_own_writes()
        return report

    def _see_own_writes(self) -> None:
        """Make all later searches read an index version that contains the changes by this engine."""
        self._searcher.min_version = get_version(self._store)

    # Asking

    def search(
        self,
        question: str,
        k: int | None = None,
        *,
        retriever: RetrieverLike | None = None,
        progress: Progress = silent,
        **options: Unpack[OptionArguments],
    ) -> Evidence:
        """Return the evidence for a question: the best passages, and the hyperedges and entities that led to them.

        Adjacent passages are merged into one hit, and identical texts are listed once. With ``max_words``, long
        passages are cut to the parts most similar to the question.

        Args:
            question: The question.
            k: Maximum number of hits. None for 5, or for no limit if ``max_words`` is set.
            retriever: Name of a retriever (one of :data:`RETRIEVERS` or of a plug-in), a retriever, or a
                :class:`polyad.engine.registry.RetrieverSpec`. None for the retriever of the preset, else ``default``.
            progress: Called while the first search computes reusable data, such as the vectors of entities.
            **options: Further fields of :class:`polyad.retrieval.options.SearchOptions`: ``max_words``, ``merge``,
                ``min_relevance``, the filters ``where`` and ``prefer``, and the times ``as_of`` and ``known_at``.

        Raises:
            ConfigurationError: The question is blank or too long, a limit is below 1, there is no such retriever, or
                the retriever does not predict relevance and ``min_relevance`` is above 0.
        """
        return self._searcher.search(question, SearchOptions(k=k, **options), retriever, progress)

    def search_many(
        self,
        questions: Sequence[str],
        k: int | None = None,
        **options: Unpack[SearchArguments],
    ) -> list[Evidence]:
        """Return one search result (evidence) per question, as :meth:`search` does for one question.

        All questions are embedded in one batch.
        """
        if isinstance(questions, str):
            raise ConfigurationError(f"questions is {questions[:60]!r}; expected a list of questions")
        options["as_of"] = options.get("as_of") or datetime.now(UTC)
        with self._searcher.prefetch(questions, options.get("retriever"), options.get("progress", silent)):
            return [self.search(each, k, **options) for each in questions]

    def find_text(
        self,
        pattern: str,
        limit: int = 20,
        *,
        phrase: bool = False,
        ignore_case: bool = False,
        context: int = 0,
        cursor: int = 0,
        seconds: float = 10.0,
        where: Where = None,
        as_of: Time = None,
        known_at: Time = None,
    ) -> TextMatches:
        """Return the lines of documents that match a pattern exactly, ordered by document id and line.

        A regular expression matches within a line, as in ``grep -E``, in the syntax of RE2: without look-around and
        back references. Each pattern takes time in proportion to the texts that may match. Lines are those of the whole
        text of the document, so a match may cross passages; this text lacks front matter and markup of its file.

        Args:
            pattern: The regular expression or phrase.
            limit: Maximum number of lines to return.
            phrase: Whether the pattern is literal text, in which each space stands for any white space and line ends.
            ignore_case: Whether upper and lower case are the same.
            context: Number of lines to return before and after each line.
            cursor: Number of lines to skip: ``next_cursor`` of the result before.
            seconds: Time limit; a search that reaches it returns the lines so far, with ``is_complete`` false.
            where: Filter of the documents, as for :meth:`search`.
            as_of: Time at which the documents are valid, as for :meth:`search`.
            known_at: Time at which the index knew the documents, as for :meth:`search`.

        Raises:
            ConfigurationError: The pattern is no regular expression, a number is out of range, or the filter is wrong.
        """
        options = SearchOptions(where=where, as_of=as_of, known_at=known_at)
        page = TextSearchOptions(limit=limit, cursor=cursor, context=context, seconds=seconds)
        return self._searcher.find_text(TextPattern(pattern, phrase, ignore_case), options, page)

    def prepare(self, retriever: RetrieverLike | None = None, progress: Progress = silent) -> None:
        """Load a retriever's models and caches in advance, so that the first search is as fast as later ones.

        Raises:
            ConfigurationError: There is no such retriever, or it needs a component that is not set.
        """
        self._searcher.prepare(self._searcher.resolve(retriever), progress)

    def snapshot(self, retriever: RetrieverLike | None = None, progress: Progress = silent) -> Snapshot:
        """Return the current snapshot (a read-only copy of the index in memory-mapped files) for ``retriever``."""
        return self._searcher.get_snapshot(self._searcher.get_spec(retriever), progress)

    def ask(
        self,
        question: str,
        k: int | None = None,
        *,
        on_text: Callable[[str], None] | None = None,
        **options: Unpack[SearchArguments],
    ) -> Answer:
        """Search for the evidence of a question and return an answer with citations.

        Combines :meth:`search` and :meth:`answer`.

        The usage of the answer includes the calls of the search.

        Args:
            question: The question.
            k: As for :meth:`search`.
            on_text: Called with each piece of the answer as it arrives.
            **options: Further arguments of :meth:`search`. The default of ``min_relevance`` is "auto"; if no passage
                reaches it, the model receives no prompt.

        Raises:
            ConfigurationError: As for :meth:`search`.
            LanguageModelError: The language model returned no usable reply.
        """
        usage_before = self.components.usage
        options.setdefault("min_relevance", AUTO)
        evidence = self.search(question, k, **options)
        return replace(self.answer(evidence, on_text), usage=self.components.usage - usage_before)

    def answer(self, evidence: Evidence, on_text: Callable[[str], None] | None = None, *, model: str = "") -> Answer:
        """Return an answer, with citations, to the question of ``evidence`` (a search result).

        Without a language model, return the evidence only.

        Args:
            evidence: Evidence of :meth:`search`, or a part of it.
            on_text: Called with each piece of the answer as it arrives.
            model: Name of a further language model (``language_models`` of :meth:`open`); empty for the language model.

        Raises:
            LanguageModelError: The language model returned no usable reply.
            ConfigurationError: There is no further language model of this name.
        """
        from polyad.answering.answer import CitingAnswerer  # takes 60 ms, which a search does not need
        from polyad.answering.citations import add_locations

        components = self.components
        answerer = CitingAnswerer(
            components.get_language_model(model),
            components.settings.answer,
            components.splitter.count_tokens,
            components.prompts,
        )
        return add_locations(answerer.answer(evidence, on_text), self._store)

    def stream(
        self,
        question: str,
        k: int | None = None,
        **options: Unpack[SearchArguments],
    ) -> AnswerStream:
        """Return a stream that yields the text of an answer in pieces and then provides the complete answer.

        Otherwise as :meth:`ask`.

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
        options.setdefault("min_relevance", AUTO)
        evidence = self.search(question, k, **options)
        return self.stream_answer(evidence, self.components.usage - usage_before)

    def stream_answer(
        self, evidence: Evidence, search_usage: Usage | None = None, *, model: str = "", regenerate: bool = False
    ) -> AnswerStream:
        """Return a stream that yields the text of the answer to ``evidence`` in pieces; see :meth:`answer`.

        Args:
            evidence: Evidence of :meth:`search`.
            search_usage: Usage of the search, which is added to the usage of the answer.
            model: Name of a further language model; empty for the language model.
            regenerate: Whether the language model writes a new answer even if the cache has its reply to the prompt.
        """
        language_model = self.components.get_language_model(model)

        def answer_with_usage(on_text: Callable[[str], None]) -> Answer:
            with language_model.replacing_replies(set()) if language_model and regenerate else nullcontext():
                answer = self.answer(evidence, on_text, model=model)
            return replace(answer, usage=(search_usage or Usage()) + answer.usage)

        return AnswerStream(answer_with_usage)

    def rewrite_question(self, question: str, history: Sequence[Mapping[str, str]], *, model: str = "") -> str:
        """Return a follow-up question, such as "And when?", as a question that is complete without the conversation.

        Args:
            question: The last message of the user.
            history: The messages before it, oldest first, each with ``role`` (``user`` or ``assistant``) and
                ``content``.
            model: Name of a further language model; empty for the language model.

        Returns:
            The question of the language model. If there is no model, or if it fails: the question with the names of the
            last answer; see :func:`polyad.answering.conversation.add_names`.
        """
        return self.complete_question(question, history, model=model).text

    def complete_question(
        self, question: str, history: Sequence[Mapping[str, str]], *, model: str = ""
    ) -> CompleteQuestion:
        """Return a follow-up question that is complete without the conversation, and what else to search for it.

        The arguments are those of :meth:`rewrite_question`.
        """
        # Both take some time, which a search does not need.
        from polyad.answering.conversation import complete_question
        from polyad.retrieval.question import QuestionLinker

        components = self.components
        linker = QuestionLinker(components.extractor)

        def list_names(text: str) -> list[str]:
            linked = linker.link(text, self.snapshot()) if text.strip() else None
            mentions = linked.entities.values() if linked else ()
            return list(dict.fromkeys(mention.name for mention in mentions if mention.name != mention.name.lower()))

        return complete_question(
            question, history, components.get_language_model(model), list_names, components.prompts
        )
