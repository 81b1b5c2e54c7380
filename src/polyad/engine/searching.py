"""From a question to what a search gives back: the view, the retriever, the reranker, and what is shown of a hit."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Protocol, cast, runtime_checkable

from polyad.config import QuestionSettings
from polyad.embedded.keeper import ViewKeeper
from polyad.engine.models import Models
from polyad.engine.registry import Retrieval, retrievers
from polyad.errors import ConfigurationError, StaleViewError
from polyad.model import Evidence, Query, Timings
from polyad.protocols import Progress, Retriever, silent
from polyad.retrieval.nearest import NearestParts
from polyad.retrieval.reranking import reranked
from polyad.retrieval.selection import Wanted, gather
from polyad.storage import Store
from polyad.view import View

Chosen = str | Retriever | Retrieval
"""A retriever by its name; one that was made; or how one is made of the engine's models."""

_LOG = logging.getLogger(__name__)

_ATTEMPTS = 6
"""At a search beside a writer that removes documents; each attempt sees a newer index."""


@runtime_checkable
class _Preparable(Protocol):
    """A retriever that makes more, once for a view, than entity vectors."""

    def prepare(self, view: View) -> object:
        """Make it, unless it is there."""


class Searcher:
    """Searches one index, by any retriever.

    Args:
        store: The index.
        views: Of it.
        models: Of the engine.
    """

    def __init__(self, store: Store, views: ViewKeeper, models: Models) -> None:
        self._store = store
        self._views = views
        self._models = models
        self._made: dict[str | Retrieval, Retriever] = {}
        self.written = 0
        """A version of the store that every search has to see: that of the last write by this engine."""

    def view(self, chosen: Chosen, progress: Progress = silent) -> View:
        """The index as it is now, made ready for a retriever where that was not done before."""
        if _retrieval(chosen).reads_entity_vectors:
            return self._views.described(self._models.embedder, progress)
        return self._views.current(at_least=self.written)

    def retriever(self, chosen: Chosen) -> Retriever:
        """The retriever, which is made when it is first asked for.

        Raises:
            ConfigurationError: there is none of that name, or it lacks what it needs.
        """
        if not isinstance(chosen, str | Retrieval):
            return _made(chosen)
        if chosen not in self._made:
            self._made.setdefault(chosen, _retrieval(chosen).make(self._models))
        return self._made[chosen]

    def prepare(self, chosen: Chosen, progress: Progress = silent) -> View:
        """Load and make what a retriever needs once; the index as it is now, for which that was done."""
        made, view = self.retriever(chosen), self.view(chosen, progress)
        if isinstance(made, _Preparable):
            made.prepare(view)
        return view

    def search(self, question: str, wanted: Wanted, chosen: Chosen, progress: Progress = silent) -> Evidence:
        """The evidence for a question, and what it took; to load models is no part of that, to see what is new is."""
        self.retriever(chosen)
        started, encoding = time.perf_counter(), self._models.seconds_encoding()
        evidence = self._retrieve(question, wanted, chosen, progress)
        encode = self._models.seconds_encoding() - encoding
        _LOG.debug(
            "%s found %d hits in %.3f s", evidence.retriever, len(evidence.passages), time.perf_counter() - started
        )
        return replace(
            evidence,
            timings=Timings(encode=1000 * encode, retrieve=1000 * (time.perf_counter() - started - encode)),
        )

    def search_many(
        self, questions: Sequence[str], wanted: Wanted, chosen: Chosen, progress: Progress = silent
    ) -> list[Evidence]:
        """The evidence for each of some questions, which are embedded together."""
        self.prepare(chosen, progress)
        if not _retrieval(chosen).embeds_question:
            return [self.search(question, wanted, chosen) for question in questions]
        with self._models.embedder.ahead(questions, "query"):
            return [self.search(question, wanted, chosen) for question in questions]

    def require(self, question: str) -> None:
        """Raise ConfigurationError where a question is no text, blank or too long."""
        if not isinstance(question, str):  # whoever calls from Python may hand over anything
            raise ConfigurationError(f"the question is {question!r}; expected a text")
        if not question.strip():
            raise ConfigurationError("the question is blank; expected some words")
        most = self._models.settings.of(QuestionSettings).max_characters
        if len(question) > most:
            raise ConfigurationError(
                f"the question has {len(question):,} characters; at most {most:,} are taken (max_characters in the "
                "section [question]); ask for what is to be found in them"
            )

    def _retrieve(self, question: str, wanted: Wanted, chosen: Chosen, progress: Progress) -> Evidence:
        models = self._models
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._gather(question, wanted, chosen, self.prepare(chosen, progress))
            except StaleViewError:  # what was to be shown has been removed: begin again with a later view
                if models.language_model is None:  # what that costs could not be written down in a store that is held
                    break
                self._views.current(at_least=self._store.version())
        else:
            return self._gather(question, wanted, chosen, self.prepare(chosen, progress))
        with self._views.held(models.embedder if _retrieval(chosen).reads_entity_vectors else None) as view:
            return self._gather(question, wanted, chosen, view)

    def _gather(self, question: str, wanted: Wanted, chosen: Chosen, view: View) -> Evidence:
        retrieval, made, reranker = _retrieval(chosen), self.retriever(chosen), self._models.reranker
        nearest = NearestParts(view, question, self._models.embedder if retrieval.embeds_question else None)

        def retrieve(k: int) -> Evidence:
            return made.retrieve(Query(question, k), view)

        if reranker is not None:
            retrieve = partial(reranked, retrieve, reranker)
        with self._models.embedder.remembering() if retrieval.embeds_question else nullcontext():
            return gather(retrieve, wanted, nearest, is_listed=retrieval.lists_nearest, again=reranker is None)


def _retrieval(chosen: Chosen) -> Retrieval:
    """What is known of a retriever; of one that was made, that it embeds the question and no more."""
    if isinstance(chosen, Retrieval):
        return chosen
    if isinstance(chosen, str):
        return retrievers[chosen]
    made = _made(chosen)
    return Retrieval(lambda _: made)


def _made(given: object) -> Retriever:
    """A retriever that was handed over, and whoever calls from Python may hand over anything.

    Raises:
        ConfigurationError: it is none.
    """
    if isinstance(given, type) or not callable(getattr(given, "retrieve", None)):
        raise ConfigurationError(
            f"the retriever is {given!r}; expected a name, one of {', '.join(retrievers)}, or an object that has "
            "the method retrieve(query, view)"
        )
    return cast(Retriever, given)
