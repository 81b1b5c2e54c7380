"""The engine: the one place where adapters meet pipelines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, runtime_checkable

from polyad.adapters.reading.sources import Gone, gone
from polyad.adapters.reply_cache import CachedLanguageModel
from polyad.adapters.sqlite import REPLIES_FILE_NAME, SqliteReplies, SqliteStore
from polyad.answering.answer import CitingAnswerer
from polyad.answering.located import located
from polyad.answering.summary import summarise
from polyad.assembly import (
    METHODS,
    NEED_LANGUAGE_MODEL,
    RETRIEVERS,
    Limits,
    make_builder,
    method_called,
    retrieval_called,
)
from polyad.by_name import (
    DEFAULT_EMBEDDER,
    DEFAULT_EXTRACTOR,
    embedder_name,
    load_embedder,
    load_extractor,
    load_language_model,
    load_reranker,
)
from polyad.config import LanguageModelSettings, Settings
from polyad.embedded.files import ViewFiles
from polyad.embedded.keeper import ViewKeeper
from polyad.errors import ConfigurationError, StaleViewError
from polyad.indexing.builder import HyperedgeBuilder
from polyad.indexing.facts.grounding import grounded_share
from polyad.indexing.pipeline import Indexer
from polyad.indexing.report import IndexReport
from polyad.indexing.split import SentenceSplitter
from polyad.model import (
    Answer,
    Document,
    Entity,
    Evidence,
    Failure,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    Origin,
    Passage,
    Query,
    Statistics,
    Timings,
    Usage,
)
from polyad.parts import Parts
from polyad.protocols import Embedder, LanguageModel, MentionExtractor, Progress, Reader, Reranker, Retriever, silent
from polyad.retrieval.default.signals import Candidates, SignalExtractor
from polyad.retrieval.nearest import NearestParts
from polyad.retrieval.question import QuestionLinker
from polyad.retrieval.reranking import reranked
from polyad.retrieval.roles import RoleBinding, answer_roles, roles_taken
from polyad.retrieval.selection import Wanted, gather
from polyad.text.keys import name_key
from polyad.view import View

__all__ = ["METHODS", "NEED_LANGUAGE_MODEL", "RETRIEVERS", "Engine"]

Paths = str | Path | Iterable[str | Path]
"""A file or folder, or several."""

DEFAULT_METHOD = "semantic-units"

_ATTEMPTS = 6
"""At a search beside a writer that removes documents; each attempt sees a newer index."""


@runtime_checkable
class _Preparable(Protocol):
    """A retriever that makes more, once for a view, than entity vectors."""

    def prepare(self, view: View) -> object:
        """Make it, unless it is there."""


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
        language_model: CachedLanguageModel | None,
        settings: Settings,
        reranker: Reranker | None = None,
    ) -> None:
        self._store = store
        self._parts = Parts(store, embedder, extractor, language_model, settings, reranker)
        self._views = ViewKeeper(store, store.manifest.dimension, ViewFiles(store.directory))
        self._retrievers: dict[str, Retriever] = {}
        self._written = 0

    @classmethod
    def open(
        cls,
        directory: str | Path,
        *,
        embedder: str | Embedder | None = None,
        mentions: str | MentionExtractor | None = None,
        language_model: str | LanguageModelSettings | LanguageModel | None = None,
        reranker: str | Reranker | None = None,
        settings: Settings | None = None,
        replies: str | Path | None = None,
        create: bool = True,
    ) -> Engine:
        """Open the index in ``directory``; an empty one is made unless ``create`` is off.

        Args:
            directory: Where the index is kept.
            embedder: A model's name (see :func:`polyad.by_name.load_embedder`) or an embedder. By default
                the one the index was built with; for a new index, ``all-MiniLM-L6-v2``.
            mentions: An extractor's name (see :func:`polyad.by_name.load_extractor`) or an extractor. By
                default the one the index was built with; for a new index, ``rules``, which needs no model.
            language_model: Answers questions, and plans and extracts where a method asks for it: a model's name at
                the endpoint of ``OPENAI_BASE_URL``, its settings (see :func:`polyad.by_name.load_language_model`), or
                a language model. None works too.
            reranker: Puts what every search finds in another order: a name (see :func:`polyad.by_name.load_reranker`)
                or a reranker. None for the order of the retriever.
            settings: How each stage behaves.
            replies: The file in which replies of the language model are kept; several indexes may share one. By default
                ``replies.sqlite`` beside the index.
            create: Make an empty index when there is none.

        Raises:
            StoreNotFoundError: there is no index and ``create`` is off.
            IndexMismatchError: the index was built with another embedder or extractor.
            ConfigurationError: there is no such embedder, extractor, language model or reranker.
        """
        path, settings = Path(directory), settings or Settings()
        kept = Path(replies) if replies is not None else None
        if isinstance(language_model, str | LanguageModelSettings):
            language_model = load_language_model(language_model)
        creating = create and not SqliteStore.exists(path)
        if creating:
            embedder = embedder or DEFAULT_EMBEDDER
            mentions = mentions or DEFAULT_EXTRACTOR
        elif isinstance(embedder, str):
            with closing(SqliteStore.open(path, replies=kept)) as store:
                store.check(embedder=embedder_name(embedder))
            embedder = None  # the index's own, which is loaded when it is first needed: search by words needs none
        model = load_embedder(embedder, device=settings.encoder.device) if isinstance(embedder, str) else embedder
        extractor = load_extractor(mentions, language_model) if isinstance(mentions, str) else mentions
        if creating and model is not None and extractor is not None:
            store = SqliteStore.create(path, model.name, model.dimension, extractor.name, replies=kept)
        else:
            store = SqliteStore.open(path, replies=kept)
            store.check(
                embedder=model.name if model else None,
                mentions=extractor.name if extractor else None,
            )
        return cls(
            store,
            embedder=model,
            extractor=None if mentions == "llm" else extractor,  # that one asks the index's own, cached model
            language_model=_paying_once(language_model, store, path, kept) if language_model else None,
            settings=settings,
            reranker=load_reranker(reranker, settings.reranker) if isinstance(reranker, str) else reranker,
        )

    @staticmethod
    def exists(directory: str | Path) -> bool:
        """Whether there is an index in ``directory``."""
        return SqliteStore.exists(Path(directory))

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the index's files."""
        self._store.close()
        if self._parts.language_model is not None:
            self._parts.language_model.close()

    # Indexing

    def index(
        self,
        paths: Paths,
        *,
        method: str = "",
        max_cost: float = 0.0,
        max_tokens: int = 0,
        prune: bool = False,
        progress: Progress = silent,
    ) -> IndexReport:
        """Index files and folders; what is unchanged since the last time is left alone.

        Args:
            paths: Files and folders of .txt .md .html .pdf .docx .xlsx .pptx .epub .odt .rst .eml .csv .jsonl and
                source code; of .csv and .jsonl for ``tuples``.
            method: How hyperedges are built; one of :data:`METHODS`. By default ``facts`` for an index of these, which
                were paid for, ``tuples`` for an index of nothing else, whose roles another method would lose, and
                ``semantic-units`` for any other.
            max_cost: US dollars that ``facts`` may spend on the language model in this run; 0 for no limit.
            max_tokens: Tokens likewise.
            prune: Remove documents that came from these paths and are no longer there, except from a path in
                which there is nothing at all: that looks like a disk that is missing.
            progress: Told how far it is.

        Raises:
            ConfigurationError: a path does not exist, there is no such method, or it lacks what it needs. Nothing was
                changed.
        """
        given = _listed(paths)
        method = self._method(method)
        reader = self._reader(method)
        read: set[str] = set()
        position: tuple[int, int | None] = (0, None)

        def told(done: int, total: int | None, message: str) -> None:
            nonlocal position
            position = done, total
            progress(done, total, message)

        def remembered(items: Iterable[Document | Failure]) -> Iterator[Document | Failure]:
            for item in items:
                read.add(item.id)
                yield item

        with closing(reader.read(given, lambda words: progress(*position, f"files, {words}"))) as items:
            report = self._index(remembered(items), method, Limits(max_cost, max_tokens), told, reader.count(given))
        missing = Gone() if report.counts.stopped else gone(self._store.sources(), given, read, report.failures)
        removed = set(missing.ids) - set(missing.spared) if prune else ()
        if removed:
            self.remove(sorted(removed))
        moved = set(missing.ids)  # a file under a new name: the old one is gone, and the new one is no duplicate
        duplicates = tuple((id, earlier) for id, earlier in report.counts.duplicates if earlier not in moved)
        counts = replace(report.counts, duplicates=duplicates)
        skipped = tuple(reader.skipped)
        return replace(report, counts=counts, skipped=skipped, gone=missing.ids, spared=missing.spared, pruned=prune)

    def _method(self, name: str) -> str:
        if name:
            return name
        kinds = self._store.statistics().kinds
        if set(kinds) == {HyperedgeKind.TUPLE}:
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
        """Index documents that are already in memory; otherwise as :meth:`index`."""
        return self._index(documents, self._method(method), Limits(max_cost, max_tokens), progress)

    def _index(
        self,
        documents: Iterable[Document | Failure],
        method: str,
        limits: Limits,
        progress: Progress,
        files: int | None = None,
    ) -> IndexReport:
        parts = self._parts
        builder = make_builder(method, parts, limits)
        embedder = parts.embedder
        started, encoding, texts, spent = time.perf_counter(), embedder.seconds, embedder.texts, self._spent
        counts = self._indexer(builder, method).index(documents, progress, files)
        self._written = self._store.version()
        self._views.settle()
        if method_called(method).describes_entities and counts.passages:
            self._view(progress, described=True)
        return IndexReport(
            method,
            counts,
            skipped=(),
            seconds=time.perf_counter() - started,
            encode_seconds=embedder.seconds - encoding,
            embedded_texts=embedder.texts - texts,
            usage=self._spent - spent,
        )

    def estimate(self, paths: Paths, *, method: str = "facts") -> Usage:
        """What indexing would spend on the language model: calls, tokens and cost, before anything is spent.

        Prompts are counted; what the model will say is guessed. A method that asks no model costs nothing.

        Raises:
            ConfigurationError: as for :meth:`index`.
        """
        builder = make_builder(method, self._parts, Limits())
        with closing(self._reader(method).read(_listed(paths))) as documents:
            if not method_called(method).needs_language_model:
                return Usage()
            known = self._parts.require_language_model("an estimate").known
            batches = self._indexer(builder, method).pending(documents)
            return sum((builder.estimate(passages, known) for passages in batches), Usage())

    def _reader(self, method: str) -> Reader:
        return method_called(method).read(self._parts.settings.read)

    def _indexer(self, builder: HyperedgeBuilder, method: str) -> Indexer:
        splitter = SentenceSplitter(self._parts.settings.split, method_called(method).usual_passages)
        return Indexer(self._store, self._parts.embedder, splitter, builder)

    def _view(self, progress: Progress = silent, *, described: bool = False) -> View:
        """The index as it is now, and no earlier than what this engine wrote last."""
        if described:
            return self._views.described(self._parts.embedder, progress)
        return self._views.current(at_least=self._written)

    def remove(self, document_ids: str | Sequence[str]) -> None:
        """Remove a document or several, and everything that came from them.

        Raises:
            NotFoundError: one of them is not in the index; none was removed.
        """
        self._store.remove([document_ids] if isinstance(document_ids, str) else document_ids)
        self._written = self._store.version()

    # Asking

    def search(
        self,
        question: str,
        k: int | None = None,
        *,
        words: int | None = None,
        retriever: str = "default",
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
            words: The most words of text in all hits together.
            retriever: Finds them; one of :data:`RETRIEVERS`.
            merge: Off, the hits are the passages as the retriever ranks them, for measurements.
            min_relevance: Relevance, in [0, 1], below which passages are left out; 0 for none.
            progress: Told of what the first search of an index makes once, such as the vectors of entities.

        Raises:
            ConfigurationError: the question is blank or too long, a limit is below 1, there is no such retriever, or
                it does not say how relevant passages are and ``min_relevance`` is above 0.
        """
        self._require_question(question)
        wanted = Wanted(k=k, words=words, merge=merge, min_relevance=min_relevance)
        self.prepare(retriever, progress)
        started, encoding = time.perf_counter(), self._parts.seconds_encoding()
        evidence = self._retrieve(question, wanted, retriever)
        encode = self._parts.seconds_encoding() - encoding
        return replace(
            evidence,
            timings=Timings(encode=1000 * encode, retrieve=1000 * (time.perf_counter() - started - encode)),
        )

    def _require_question(self, question: str) -> None:
        if not question.strip():
            raise ConfigurationError("the question is blank; expected some words")
        most = self._parts.settings.question.max_characters
        if len(question) > most:
            raise ConfigurationError(
                f"the question has {len(question):,} characters; at most {most:,} are taken (max_characters in the "
                "section [question]); ask for what is to be found in them"
            )

    def prepare(self, retriever: str = "default", progress: Progress = silent) -> None:
        """Load and make what a retriever needs once: no part of a search's time. :meth:`search` does it by itself.

        Args:
            retriever: One of :data:`RETRIEVERS`.
            progress: Told how far it is.

        Raises:
            ConfigurationError: there is no such retriever, or it lacks what it needs.
        """
        made, view = self.retriever(retriever), self.view(retriever, progress)
        if isinstance(made, _Preparable):
            made.prepare(view)

    def _retrieve(self, question: str, wanted: Wanted, retriever: str) -> Evidence:
        parts = self._parts
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._gather(question, wanted, retriever, self.view(retriever))
            except StaleViewError:  # what was to be shown has been removed: begin again with a later view
                if parts.language_model is None:  # what that costs could not be written down in a store that is held
                    break
                self._views.current(at_least=self._store.version())
        else:
            return self._gather(question, wanted, retriever, self.view(retriever))
        reads_entities = retrieval_called(retriever).reads_entity_vectors
        with self._views.held(parts.embedder if reads_entities else None) as view:
            return self._gather(question, wanted, retriever, view)

    def _gather(self, question: str, wanted: Wanted, name: str, view: View) -> Evidence:
        retrieval, made, reranker = retrieval_called(name), self.retriever(name), self._parts.reranker
        nearest = NearestParts(view, question, self._parts.embedder if retrieval.embeds_question else None)

        def retrieve(k: int) -> Evidence:
            return made.retrieve(Query(question, k), view)

        if reranker is not None:
            retrieve = partial(reranked, retrieve, reranker)
        return gather(retrieve, wanted, nearest, is_listed=retrieval.lists_nearest, again=reranker is None)

    def ask(
        self,
        question: str,
        k: int | None = None,
        *,
        words: int | None = None,
        retriever: str = "default",
        min_relevance: float = 0.0,
        on_text: Callable[[str], None] | None = None,
        progress: Progress = silent,
    ) -> Answer:
        """Answer a question from the evidence that :meth:`search` finds; see :meth:`answer`.

        Args:
            question: What to answer.
            k: Hits to answer from.
            words: Words of evidence to answer from.
            retriever: Finds them.
            min_relevance: Relevance below which nothing is answered from. Where all evidence is, no model is asked.
            on_text: Called with each piece of the answer as it is written.
            progress: As for :meth:`search`.

        Raises:
            ConfigurationError: as for :meth:`search`.
            LanguageModelError: the language model gave no usable reply.
        """
        evidence = self.search(
            question, k, words=words, retriever=retriever, min_relevance=min_relevance, progress=progress
        )
        return self.answer(evidence, on_text)

    def answer(self, evidence: Evidence, on_text: Callable[[str], None] | None = None) -> Answer:
        """Answer a question from evidence at hand, with citations; without a language model, the evidence alone.

        Args:
            evidence: As :meth:`search` found it, or a part of it.
            on_text: Called with each piece of the answer as it is written.

        Raises:
            LanguageModelError: the language model gave no usable reply.
        """
        parts = self._parts
        answerer = CitingAnswerer(parts.language_model, parts.settings.answer, parts.splitter.count_tokens)
        return located(answerer.answer(evidence, on_text), self._store)

    def retriever(self, name: str) -> Retriever:
        """The retriever of that name.

        Raises:
            ConfigurationError: there is none, or it lacks what it needs.
        """
        made = self._retrievers.get(name)
        if made is None:
            made = self._retrievers.setdefault(name, retrieval_called(name).make(self._parts))
        return made

    def view(self, retriever: str = "default", progress: Progress = silent) -> View:
        """The index as it is now, as that retriever searches it; made ready for it where that was not done before."""
        return self._view(progress, described=retrieval_called(retriever).reads_entity_vectors)

    def signals(self, questions: Iterable[str]) -> Iterator[Candidates]:
        """What the default retriever's scorer is trained on: see :meth:`SignalExtractor.candidates`, with rewriting."""
        view, parts = self._view(), self._parts
        extractor = SignalExtractor(view, parts.embedder, QuestionLinker(view, parts.extractor), rewriting=True)
        return map(extractor.candidates, questions)

    def training_parts(self, progress: Progress = silent) -> tuple[View, Embedder, MentionExtractor]:
        """What scorers of triples are trained on: the index, its embedder, and what finds the names in questions."""
        return self._view(progress, described=True), self._parts.embedder, self._parts.extractor

    # Looking

    def statistics(self) -> Statistics:
        """Sizes of the index."""
        return self._store.statistics()

    def sources(self) -> dict[str, str]:
        """The source of every document, such as its file, by the document's id."""
        return self._store.sources()

    def entities(self) -> list[Entity]:
        """Every entity, sorted by key."""
        return self._store.all_entities()

    def hyperedges(self) -> list[Hyperedge]:
        """Every hyperedge, sorted by id."""
        return self._store.all_hyperedges()

    def origin(self, document_id: str) -> Origin:
        """What is known of a document beside its text. Raises NotFoundError."""
        return self._store.origins([document_id])[0]

    def document(self, id: str) -> Document:
        """A document, with its whole text. Raises NotFoundError; so do the next three."""
        return self._store.documents([id])[0]

    def passage(self, id: str) -> Passage:
        """A passage."""
        return self._store.passages([id])[0]

    def hyperedge(self, id: str) -> tuple[Hyperedge, list[Incidence]]:
        """A hyperedge and its incidences."""
        return self._store.hyperedges([id])[0], self._store.incidences([id])[id]

    def grounded(self, hyperedge: Hyperedge) -> float:
        """The share of a hyperedge's content words that stand in the text it is from, in [0, 1]. Raises NotFoundError.

        A fact that a language model stated need not keep to its passage.
        """
        source = self.passage(hyperedge.passage_id).text[hyperedge.start : hyperedge.end]
        return grounded_share(hyperedge.text, source)

    def entity(self, name: str) -> tuple[Entity, list[str]]:
        """An entity, by its key or a name, and the ids of the hyperedges that join it."""
        key = name_key(name) or name
        return self._store.entities([key])[0], self._store.memberships(key)

    def summary(self, name: str) -> str:
        """What the documents say of an entity, in a few sentences; made by the language model once, and then kept.

        Raises:
            NotFoundError: there is no such entity.
            LanguageModelError: there is much to say and no usable reply, or no model.
        """
        return summarise(self.entity(name)[0], self._parts.language_model)

    def joining(self, names: Sequence[str]) -> list[Hyperedge]:
        """The hyperedges that join all of some entities, sorted by id; names are matched by their key.

        Raises:
            ConfigurationError: no name is given.
            NotFoundError: one of them is no entity of the index.
        """
        if not names:
            raise ConfigurationError("no entity is named; expected at least one name")
        postings = [set(self.entity(name)[1]) for name in names]
        return self._store.hyperedges(sorted(set.intersection(*postings)))

    def meet(self, first: str, second: str) -> bool:
        """Whether some hyperedge joins both entities. Raises NotFoundError."""
        return bool(self.joining([first, second]))

    def roles(self, bound: Mapping[str, str | Sequence[str]], wanted: Sequence[str] = ()) -> list[RoleBinding]:
        """Facts in which some roles are taken by given entities; see :func:`polyad.retrieval.roles.answer_roles`."""
        return answer_roles(self._store, bound, wanted)

    def roles_taken(self, name: str) -> list[str]:
        """The roles that an entity takes anywhere, sorted; none for a name that is no entity's."""
        return roles_taken(self._store, name)

    @property
    def llm_tokens(self) -> int:
        """Prompt and completion tokens that this thread has spent on the language model."""
        return self._spent.tokens

    @property
    def _spent(self) -> Usage:
        """By this thread on the language model."""
        model = self._parts.language_model
        return model.usage if model else Usage()


def _paying_once(
    model: LanguageModel, store: SqliteStore, directory: Path, replies: Path | None
) -> CachedLanguageModel:
    """The model with its replies kept in the file that is named, or beside the index as far as it may be written."""
    try:
        opened = SqliteReplies(replies or directory / REPLIES_FILE_NAME, must_keep=replies is not None)
        return CachedLanguageModel(model, opened, store.charge)
    except BaseException:
        store.close()
        raise


def _listed(paths: Paths) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
