"""Searches one index: question to evidence, by any retriever, reranked and assembled into hits."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Protocol, cast, runtime_checkable

from polyad.config import QuestionSettings
from polyad.engine.components import Components
from polyad.engine.registry import RetrieverSpec, retrievers
from polyad.errors import ConfigurationError, StaleSnapshotError
from polyad.model import Evidence, Query, Timings
from polyad.protocols.components import Progress, Retriever, silent
from polyad.protocols.lookups import get_version
from polyad.protocols.snapshot import Snapshot
from polyad.protocols.store import Store
from polyad.retrieval.nearest import NearestParts
from polyad.retrieval.reranking import reranked
from polyad.retrieval.selection import SearchOptions, assemble_hits
from polyad.snapshot.provider import SnapshotProvider

RetrieverLike = str | Retriever | RetrieverSpec
"""A retriever by its name; one that was made; or how one is made of the engine's components."""

_LOG = logging.getLogger(__name__)

_ATTEMPTS = 6
"""At a search beside a writer that removes documents; each attempt sees a newer index."""


@runtime_checkable
class _Preparable(Protocol):
    """A retriever that makes more, once for a snapshot, than entity vectors."""

    def prepare(self, snapshot: Snapshot) -> object:
        """Make it, unless it is there."""


class Searcher:
    """Searches one index, by any retriever.

    Args:
        store: The index.
        snapshots: Of it.
        components: Of the engine.
    """

    def __init__(self, store: Store, snapshots: SnapshotProvider, components: Components) -> None:
        self._store = store
        self._snapshots = snapshots
        self._components = components
        self._made: dict[str | RetrieverSpec, Retriever] = {}
        self.written = 0
        """A version of the store that every search has to see: that of the last write by this engine."""

    def snapshot(self, chosen: RetrieverLike, progress: Progress = silent) -> Snapshot:
        """The index as it is now, made ready for a retriever where that was not done before."""
        if _retrieval(chosen).reads_entity_vectors:
            return self._snapshots.get_with_entity_vectors(self._components.embedder, progress)
        return self._snapshots.get_current(min_version=self.written)

    def retriever(self, chosen: RetrieverLike) -> Retriever:
        """The retriever, which is made when it is first asked for.

        Raises:
            ConfigurationError: there is none of that name, or it lacks what it needs.
        """
        if not isinstance(chosen, str | RetrieverSpec):
            return _made(chosen)
        if chosen not in self._made:
            self._made.setdefault(chosen, _retrieval(chosen).make(self._components))
        return self._made[chosen]

    def prepare(self, chosen: RetrieverLike, progress: Progress = silent) -> Snapshot:
        """Load and make what a retriever needs once; the index as it is now, for which that was done."""
        made, snapshot = self.retriever(chosen), self.snapshot(chosen, progress)
        if isinstance(made, _Preparable):
            made.prepare(snapshot)
        return snapshot

    def search(
        self, question: str, wanted: SearchOptions, chosen: RetrieverLike, progress: Progress = silent
    ) -> Evidence:
        """Return the evidence for a question, with timings; loading components does not count."""
        self.retriever(chosen)
        started, encoding = time.perf_counter(), self._components.seconds_encoding()
        evidence = self._retrieve(question, wanted, chosen, progress)
        encode = self._components.seconds_encoding() - encoding
        _LOG.debug(
            "%s found %d hits in %.3f s", evidence.retriever, len(evidence.passages), time.perf_counter() - started
        )
        return replace(
            evidence,
            timings=Timings(encode=1000 * encode, retrieve=1000 * (time.perf_counter() - started - encode)),
        )

    def search_many(
        self, questions: Sequence[str], wanted: SearchOptions, chosen: RetrieverLike, progress: Progress = silent
    ) -> list[Evidence]:
        """The evidence for each of some questions, which are embedded together."""
        self.prepare(chosen, progress)
        if not _retrieval(chosen).embeds_question:
            return [self.search(question, wanted, chosen) for question in questions]
        with self._components.embedder.prefetch(questions, "query"):
            return [self.search(question, wanted, chosen) for question in questions]

    def require(self, question: str) -> None:
        """Raise ConfigurationError where a question is no text, blank or too long."""
        if not isinstance(question, str):  # whoever calls from Python may hand over anything
            raise ConfigurationError(f"the question is {question!r}; expected a text")
        if not question.strip():
            raise ConfigurationError("the question is blank; expected some words")
        most = self._components.settings.of(QuestionSettings).max_characters
        if len(question) > most:
            raise ConfigurationError(
                f"the question has {len(question):,} characters; at most {most:,} are taken (max_characters in the "
                "section [question]); ask for what is to be found in them"
            )

    def _retrieve(self, question: str, wanted: SearchOptions, chosen: RetrieverLike, progress: Progress) -> Evidence:
        components = self._components
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._gather(question, wanted, chosen, self.prepare(chosen, progress))
            except StaleSnapshotError:  # what was to be shown has been removed: begin again with a later snapshot
                if (
                    components.language_model is None
                ):  # what that costs could not be written down in a store that is held
                    break
                self._snapshots.get_current(min_version=get_version(self._store))
        else:
            return self._gather(question, wanted, chosen, self.prepare(chosen, progress))
        with self._snapshots.hold(components.embedder if _retrieval(chosen).reads_entity_vectors else None) as snapshot:
            return self._gather(question, wanted, chosen, snapshot)

    def _gather(self, question: str, wanted: SearchOptions, chosen: RetrieverLike, snapshot: Snapshot) -> Evidence:
        retrieval, made, reranker = _retrieval(chosen), self.retriever(chosen), self._components.reranker
        nearest = NearestParts(snapshot, question, self._components.embedder if retrieval.embeds_question else None)

        def retrieve(k: int) -> Evidence:
            return made.retrieve(Query(question, k), snapshot)

        if reranker is not None:
            retrieve = partial(reranked, retrieve, reranker)
        with self._components.embedder.cache_queries() if retrieval.embeds_question else nullcontext():
            return assemble_hits(retrieve, wanted, nearest, is_listed=retrieval.lists_nearest, again=reranker is None)


def _retrieval(chosen: RetrieverLike) -> RetrieverSpec:
    """What is known of a retriever; of one that was made, that it embeds the question and no more."""
    if isinstance(chosen, RetrieverSpec):
        return chosen
    if isinstance(chosen, str):
        return retrievers[chosen]
    made = _made(chosen)
    return RetrieverSpec(lambda _: made)


def _made(given: object) -> Retriever:
    """A retriever that was handed over, and whoever calls from Python may hand over anything.

    Raises:
        ConfigurationError: it is none.
    """
    if isinstance(given, type) or not callable(getattr(given, "retrieve", None)):
        raise ConfigurationError(
            f"the retriever is {given!r}; expected a name, one of {', '.join(retrievers)}, or an object that has "
            "the method retrieve(query, snapshot)"
        )
    return cast(Retriever, given)
