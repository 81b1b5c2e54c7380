"""Searches one index: the retriever links the question and ranks passages -> rerank -> assemble hits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, cast, runtime_checkable

from polyad.curation.corrections import mark_retracted
from polyad.engine.components import Components
from polyad.engine.registry import RetrieverSpec, retrievers
from polyad.engine.text_search import TextBlockCache, TextSearcher, TextSearchOptions
from polyad.errors import ConfigurationError, RetrieverError, StaleSnapshotError
from polyad.model import Evidence, Query, TextMatches, Timings
from polyad.protocols.components import Progress, Retriever, report_failure, silent
from polyad.protocols.lookups import get_version
from polyad.protocols.snapshot import Snapshot
from polyad.protocols.store import ENCODER_TRUST, ReadTransaction, Store
from polyad.retrieval.assembly import MAX_DEPTH_FACTOR, assemble_hits
from polyad.retrieval.default.encoder_trust import EncoderTrust
from polyad.retrieval.default.relevance import load_relevance_model
from polyad.retrieval.excerpts import ExcerptSelector, locate_excerpts
from polyad.retrieval.hits import SpanRanker
from polyad.retrieval.options import SearchOptions
from polyad.retrieval.postprocessing import MIN_CANDIDATES, rank_preferred, rerank, retrieve_filtered
from polyad.retrieval.rewriting import RewrittenQuestion
from polyad.retrieval.versions import rank_latest, rank_versions
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.part_cache import PartCache
from polyad.snapshot.parts import build_passage_filter
from polyad.snapshot.provider import SnapshotProvider
from polyad.text.patterns import TextPattern
from polyad.text.sentences import split_sentences
from polyad.text.versions import VersionReference

RetrieverLike = str | Retriever | RetrieverSpec
"""A retriever's name, a retriever, or a specification that builds one from the engine's components."""

_LOG = logging.getLogger(__name__)

SELECTED_PASSAGES = "passages that the filter selects"
"""Key in the notes of evidence that was searched with a filter; the value is the number of passages that match."""

OTHER_TIMES = "passages that do not hold at the time"
"""Key in the notes of evidence without hits; the value is the number of passages that are not valid at the time."""

_ATTEMPTS = 6
"""Attempts at a search while a writer removes documents; each attempt reads a newer snapshot."""


@runtime_checkable
class _PreparableRetriever(Protocol):
    """A retriever with a method ``prepare``, which computes cached data once per snapshot."""

    def prepare(self, snapshot: Snapshot) -> object:
        """Compute the data that the retriever caches for a snapshot, unless they are cached already."""


@runtime_checkable
class _RankingRetriever(Protocol):
    """A retriever with a method ``rank_candidates``, which scores a question's candidates once for all ``k``."""

    def rank_candidates(self, question: str, snapshot: Snapshot) -> Callable[[int], Evidence]:
        """Score all candidate passages of a question; return a function ``k -> evidence`` with the k best."""


@runtime_checkable
class _TrustingRetriever(Protocol):
    """A retriever with a method ``measure_trust``: how far it can trust the encoder of the index."""

    encoder_trust: EncoderTrust

    def measure_trust(self, snapshot: Snapshot) -> EncoderTrust:
        """Return the trust in the encoder, by language."""


@runtime_checkable
class _ThresholdRetriever(Protocol):
    """A retriever with a method ``measure_thresholds``, for an embedder whose cosines are not calibrated."""

    def measure_thresholds(self, snapshot: Snapshot) -> None:
        """Measure thresholds of cosines on a snapshot of the whole index, unless that is done or not needed."""


@dataclass(frozen=True, slots=True)
class ResolvedRetriever:
    """A retriever object with its registry row, which states whether it needs a language model.

    Attributes:
        retriever: The retriever.
        spec: Requirements: whether the retriever embeds the question, reads entity vectors, and so on.
    """

    retriever: Retriever
    spec: RetrieverSpec


class Searcher:
    """Searches one index: finds the retriever, ranks, reranks, and assembles hits.

    Args:
        store: Record of the index.
        snapshots: Provides the current snapshot.
        components: Embedder, reranker, language model and settings.
        default_retriever: Retriever of a search that names none.

    Attributes:
        min_version: Oldest store version that a search may read, so that an engine reads its own writes.
    """

    def __init__(
        self, store: Store, snapshots: SnapshotProvider, components: Components, default_retriever: str
    ) -> None:
        self._store = store
        self._snapshots = snapshots
        self._parts = PartCache()
        self._texts = TextBlockCache()
        self._components = components
        self._default_retriever = default_retriever
        self._max_characters = components.settings.question.max_characters
        self._split_sentences = partial(split_sentences, language=components.settings.split.language)
        self._resolved: dict[str | RetrieverSpec, ResolvedRetriever] = {}
        self._bridges_outside = components.settings.question.bridge_outside
        self._ranks_versions = components.settings.question.versions
        self.min_version = 0

    def resolve(self, retriever: RetrieverLike | None) -> ResolvedRetriever:
        """Return the retriever for a name, a registry row or a retriever object, with its requirements.

        None stands for the default retriever.

        Raises:
            ConfigurationError: The name is unknown, the object is no retriever, or a component is missing.
        """
        retriever = retriever or self._default_retriever
        if not isinstance(retriever, str | RetrieverSpec):
            return _wrap_retriever(retriever)
        if retriever not in self._resolved:
            spec = self.get_spec(retriever)
            with report_failure(RetrieverError, f"building the retriever {retriever!r}"):
                self._resolved.setdefault(retriever, ResolvedRetriever(spec.make(self._components), spec))
        return self._resolved[retriever]

    def forget_retrievers(self) -> None:
        """Build retrievers again at their next use: they cache measurements of the embedder, which was replaced."""
        self._resolved = {}

    def get_spec(self, retriever: RetrieverLike | None) -> RetrieverSpec:
        """Return the registry row of a retriever (its requirements) without building the retriever."""
        retriever = retriever or self._default_retriever
        if isinstance(retriever, str):
            return retrievers[retriever]
        return retriever if isinstance(retriever, RetrieverSpec) else _wrap_retriever(retriever).spec

    def get_snapshot(self, spec: RetrieverSpec, progress: Progress = silent) -> MappedSnapshot:
        """Return the current snapshot of the index, with entity vectors if the retriever needs them."""
        if spec.reads_entity_vectors:
            return self._snapshots.get_with_entity_vectors(self._components.embedder, progress)
        return self._snapshots.get_current(min_version=self.min_version)

    def prepare(self, resolved: ResolvedRetriever, progress: Progress = silent) -> MappedSnapshot:
        """Compute the cached data of a retriever for the current snapshot, and return the snapshot."""
        snapshot = self.get_snapshot(resolved.spec, progress)
        if isinstance(resolved.retriever, _PreparableRetriever):
            with report_failure(RetrieverError, _describe(resolved.retriever)):
                resolved.retriever.prepare(snapshot)
        return snapshot

    def search(
        self,
        question: str,
        options: SearchOptions,
        retriever: RetrieverLike | None = None,
        progress: Progress = silent,
    ) -> Evidence:
        """Return the evidence for a question, with timings that do not include the loading of components.

        Raises:
            ConfigurationError: The question is invalid, or there is no such retriever.
        """
        self.check_question(question)
        resolved = self.resolve(retriever)
        start = time.perf_counter()
        snapshot = self.get_snapshot(resolved.spec, progress)
        seconds = time.perf_counter() - start
        if isinstance(resolved.retriever, _TrustingRetriever):
            self._measure_trust(resolved.retriever, snapshot)
        if isinstance(resolved.retriever, _ThresholdRetriever):
            resolved.retriever.measure_thresholds(snapshot)
        start, start_encoding = time.perf_counter(), self._components.get_encode_seconds()
        evidence = self._search_current(question, options, resolved, snapshot)
        encode = self._components.get_encode_seconds() - start_encoding
        seconds += time.perf_counter() - start
        _LOG.debug("%s found %d hits in %.3f s", evidence.retriever, len(evidence.passages), seconds)
        return replace(evidence, timings=Timings(encode=1000 * encode, retrieve=1000 * (seconds - encode)))

    def find_text(self, pattern: TextPattern, options: SearchOptions, page: TextSearchOptions) -> TextMatches:
        """Return the lines that match a pattern, in the documents that the filter and the date of ``options`` select.

        Raises:
            ConfigurationError: The filter compares a field that no document has.
        """

        def search(snapshot: MappedSnapshot, transaction: ReadTransaction) -> TextMatches:
            part = self._parts.restrict(snapshot, options.get_filter(), options.get_time())
            return TextSearcher(part.selected, transaction, pattern, self._texts).search(page)

        snapshot = self._snapshots.get_current(min_version=self.min_version)
        with suppress(StaleSnapshotError), self._store.read_transaction() as transaction:
            if transaction.version == snapshot.version:
                return search(snapshot, transaction)
        with self._snapshots.hold() as snapshot, self._store.read_transaction() as transaction:
            return search(snapshot, transaction)

    @contextmanager
    def prefetch(
        self, questions: Sequence[str], retriever: RetrieverLike | None, progress: Progress = silent
    ) -> Iterator[None]:
        """Embed all questions in one batch; searches of this thread inside the ``with`` block use these vectors.

        Raises:
            ConfigurationError: A question is invalid, or there is no such retriever.
        """
        for question in questions:
            self.check_question(question)
        resolved = self.resolve(retriever)
        self.prepare(resolved, progress)
        embedder = self._components.embedder if resolved.spec.embeds_question else None
        with embedder.prefetch(questions, "query") if embedder else nullcontext():
            yield

    def _measure_trust(self, retriever: _TrustingRetriever, snapshot: Snapshot) -> None:
        """Measure how far a retriever can trust the encoder of this index, unless a stored measurement is valid."""
        if retriever.encoder_trust.is_current(snapshot.passage_count):
            return
        if stored := self._store.get_values(ENCODER_TRUST).get(ENCODER_TRUST):
            retriever.encoder_trust = EncoderTrust.from_bytes(stored)
        if not retriever.encoder_trust.is_current(snapshot.passage_count):
            with suppress(StaleSnapshotError):  # a writer deleted a sampled passage; the next search measures
                retriever.encoder_trust = retriever.measure_trust(snapshot)
                values = {ENCODER_TRUST: retriever.encoder_trust.to_bytes()}
                self._store.put_values(ENCODER_TRUST, values, is_optional=True)

    def check_question(self, question: str) -> None:
        """Raise ConfigurationError if a question is not text, is blank or is too long."""
        if not isinstance(question, str):  # Python callers may pass anything
            raise ConfigurationError(f"the question is {question!r}; expected a text")
        if not question.strip():
            raise ConfigurationError("the question is blank; expected some words")
        if len(question) > self._max_characters:
            raise ConfigurationError(
                f"the question has {len(question):,} characters; expected at most {self._max_characters:,} "
                "(max_characters in the section [question]); shorten the question"
            )

    def _search_current(
        self, question: str, options: SearchOptions, resolved: ResolvedRetriever, snapshot: MappedSnapshot
    ) -> Evidence:
        """Search the current snapshot, and a newer one if a document that would be displayed is deleted meanwhile."""
        if self._components.language_model is None:
            return self._search_in_transaction(question, options, resolved, snapshot)
        # A language model records its cost in the store, which a read transaction would block.
        for _ in range(_ATTEMPTS - 1):
            with suppress(StaleSnapshotError):
                return self._search_snapshot(question, options, resolved, snapshot)
            self._snapshots.get_current(min_version=get_version(self._store))
            snapshot = self.get_snapshot(resolved.spec)
        return self._search_snapshot(question, options, resolved, snapshot)

    def _search_in_transaction(
        self, question: str, options: SearchOptions, resolved: ResolvedRetriever, snapshot: MappedSnapshot
    ) -> Evidence:
        """Search a snapshot in a read transaction; after a deletion, search a newer version."""
        with suppress(StaleSnapshotError), self._store.read_transaction():
            return self._search_snapshot(question, options, resolved, snapshot)
        embedder = self._components.embedder if resolved.spec.reads_entity_vectors else None
        with self._snapshots.hold(embedder) as snapshot:
            return self._search_snapshot(question, options, resolved, snapshot)

    def _search_snapshot(
        self, question: str, options: SearchOptions, resolved: ResolvedRetriever, snapshot: MappedSnapshot
    ) -> Evidence:
        """Search one snapshot: retrieve, rerank and assemble hits, within the filter and date of ``options``."""
        where, prefer = options.get_filter(), options.get_preferred()
        part = self._parts.restrict(snapshot, where, options.get_time(), bridges_outside=self._bridges_outside)
        snapshot, retriever, reranker = part.selected, resolved.retriever, self._components.reranker
        embedder = self._components.embedder if resolved.spec.embeds_question else None
        find_preferred = build_passage_filter(snapshot, prefer) if prefer is not None else None
        word_model = embedder.word_model if embedder else None
        rewritten = RewrittenQuestion.from_question(question, snapshot, options.get_time(), word_model)
        typed_question, question = question, rewritten.text
        with embedder.cache_queries() if embedder else nullcontext():
            rank = _prepare_retrieval(retriever, question, snapshot)
            if part.connected is not None:
                rank_connected = _prepare_retrieval(retriever, question, part.connected)
                rank = partial(retrieve_filtered, rank_connected, rank, snapshot)

            reference = VersionReference.from_question(options.typed_question or question)

            def retrieve(k: int) -> Evidence:
                """Return evidence with at least k passages, ordered by retriever, reranker and preference."""
                depth = 2 * k if find_preferred else k
                evidence = rank(max(depth, MIN_CANDIDATES) if reranker else depth)
                evidence = rerank(evidence, reranker) if reranker else evidence
                if self._ranks_versions:
                    rank_more = (lambda: evidence) if reranker else partial(rank, 2 * depth)
                    evidence = _rank_versions(evidence, rank_more, snapshot, reference, options.get_time())
                if find_preferred is None:
                    return evidence
                return rank_preferred(evidence, find_preferred([hit.passage.id for hit in evidence.passages]), k)

            evidence = assemble_hits(
                retrieve,
                options,
                SpanRanker(snapshot, question, embedder),
                ExcerptSelector(snapshot, rewritten.apply(options.typed_question) or question, self._split_sentences)
                if options.merge
                else None,
                # A reranker reads a fixed number of candidates, so a larger request returns no other passages.
                max_depth_factor=MAX_DEPTH_FACTOR if reranker is None else 1,
                auto_limit=load_relevance_model().limit,
            )
            if where is not None:
                evidence = replace(evidence, notes={**evidence.notes, SELECTED_PASSAGES: snapshot.passage_count})
            excluded = part.whole.passage_count - part.valid.passage_count
            if excluded and not evidence.passages:
                evidence = replace(evidence, notes={**evidence.notes, OTHER_TIMES: excluded})
            evidence = rewritten.explain(locate_excerpts(evidence, snapshot), typed_question)
            return mark_retracted(evidence, self._store)


def _rank_versions(
    evidence: Evidence,
    rank_more: Callable[[], Evidence],
    snapshot: MappedSnapshot,
    reference: VersionReference,
    now: float,
) -> Evidence:
    """Return the evidence with the right version of a document before its other versions.

    If the question is about one of several versions, or about the latest, more passages are candidates.
    """
    ids = [hit.passage.id for hit in evidence.passages]
    families = snapshot.versions.find_families(snapshot, ids)
    distinct = {id(family): family for _, family in families.values()}
    is_latest = reference.is_latest and not reference.periods
    if is_latest or any(reference.choose(family, now) for family in distinct.values()):
        evidence = rank_more()
        ids = [hit.passage.id for hit in evidence.passages]
        families = snapshot.versions.find_families(snapshot, ids)
    if is_latest:
        evidence = rank_latest(evidence, snapshot.versions.find_starts(snapshot, ids))
    return rank_versions(evidence, families, reference, now) if families else evidence


def _prepare_retrieval(retriever: Retriever, question: str, snapshot: Snapshot) -> Callable[[int], Evidence]:
    """Return a function ``retrieve(k)`` for one question, which ranks the candidates only once.

    Raises:
        RetrieverError: The retriever failed or did not return evidence; here, or when the function is called.
    """
    rank: Callable[[int], Evidence] | None = None
    if isinstance(retriever, _RankingRetriever):
        with report_failure(RetrieverError, _describe(retriever)):
            rank = retriever.rank_candidates(question, snapshot)

    def retrieve(k: int) -> Evidence:
        with report_failure(RetrieverError, _describe(retriever)):
            evidence: object = rank(k) if rank else retriever.retrieve(Query(question, k), snapshot)
        if not isinstance(evidence, Evidence):
            raise RetrieverError(f"{_describe(retriever)} returned {repr(evidence)[:60]}; expected polyad.Evidence")
        return evidence

    return retrieve


def _describe(retriever: object) -> str:
    return f"the retriever {getattr(retriever, 'name', type(retriever).__name__)!r}"


def _wrap_retriever(retriever: object) -> ResolvedRetriever:
    """Return a user's retriever object with a default registry row, after checking its method ``retrieve``.

    Raises:
        ConfigurationError: The object has no method ``retrieve``.
    """
    if isinstance(retriever, type) or not callable(getattr(retriever, "retrieve", None)):
        raise ConfigurationError(
            f"the retriever is {retriever!r}; expected a name, one of {', '.join(retrievers)}, or an object that has "
            "the method retrieve(query, snapshot)"
        )
    checked = cast(Retriever, retriever)
    return ResolvedRetriever(checked, RetrieverSpec(lambda _: checked))
