"""The state that all routes of a server share: settings, limits and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Unpack

from fastapi import Depends, Request

from polyad.config import ServerSettings
from polyad.engine.registry import retrievers
from polyad.errors import ConfigurationError
from polyad.model import Evidence
from polyad.retrieval.options import AUTO, OptionArguments
from polyad_server.limits import ClientRateLimiter, ConcurrencyLimiter, split_list
from polyad_server.metrics import Metrics
from polyad_server.problems import RequestError
from polyad_server.tracing import record_evidence, trace_search
from polyad_server.workspaces import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class ServerState:
    """The settings, limits and metrics of a server, shared by all requests.

    Attributes:
        settings: Settings of the server.
        searches, answers, heavy_requests: Limit these requests at the same time. A search waits for no other request.
        retriever: Retriever of requests that name none.
        metrics: Counts searches, answers and requests.
        model_answers: Limits the answers of each key by models that cost more than stored answers.
        k: Number of hits of requests that name none; None for the default.
    """

    settings: ServerSettings
    searches: ConcurrencyLimiter
    answers: ConcurrencyLimiter
    heavy_requests: ConcurrencyLimiter
    retriever: str
    metrics: Metrics
    model_answers: ClientRateLimiter
    k: int | None = None

    @property
    def retrievers(self) -> list[str]:
        """The names of the retrievers that requests may name."""
        names = split_list(self.settings.retrievers) or retrievers.builtin_names
        return list(dict.fromkeys((self.retriever, *names)))

    def check_question(self, question: str) -> None:
        """Raise a RequestError if a question is too long."""
        limit = self.settings.max_question_characters
        if len(question) > limit:
            raise RequestError(422, "question_too_long", f"the question is above {limit:,} characters")

    def search(
        self,
        workspace: Workspace,
        question: str,
        k: int | None = None,
        *,
        retriever: str = "",
        answers: bool = False,
        **options: Unpack[OptionArguments],
    ) -> Evidence:
        """Search a workspace and return the evidence for a question.

        Args:
            workspace: The index.
            question: The question.
            k: Maximum number of hits; None for the default of the server.
            retriever: Name of the retriever; empty for the default of the server.
            answers: Whether the evidence is for an answer. Then the default of ``min_relevance`` is ``auto``.
            **options: Further options of the search.

        Raises:
            ConfigurationError: An option is invalid.
            RequestError: A limit of the server is exceeded.
        """
        self.check_question(question)
        if k is not None and k > self.settings.max_k:
            raise RequestError(422, "k_too_large", f"k is {k}; expected at most {self.settings.max_k}")
        for filter in (options.get("where"), options.get("prefer")):
            if isinstance(filter, str) and not filter.strip():
                raise ConfigurationError("the filter is blank; leave it out, or write one such as: year >= 2020")
        if answers:
            options.setdefault("min_relevance", AUTO)
        retriever = retriever or self.retriever
        if retriever not in self.retrievers:
            raise ConfigurationError(f"the retriever is {retriever!r}; expected one of {', '.join(self.retrievers)}")
        recorded_question = question if self.settings.log_questions else ""
        slot = self.searches.hold_slot()
        if retriever in retrievers.plugins:
            slot = self.heavy_requests.hold_slot(workspace.name)
        with slot, trace_search(workspace.name, retriever, recorded_question) as span:
            k = k or (None if options.get("max_words") else self.k)
            evidence = workspace.engine.search(question, k, retriever=retriever, **options)
            record_evidence(span, evidence)
        self.metrics.count_search(evidence)
        return evidence


def get_state(request: Request) -> ServerState:
    """Return the ServerState for a request (a FastAPI dependency)."""
    state: ServerState = request.app.state.server
    return state


State = Annotated[ServerState, Depends(get_state)]
