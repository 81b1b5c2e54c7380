"""The state that all routes of a server share: settings, limits and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from polyad.config import ServerSettings
from polyad.errors import ConfigurationError
from polyad.model import Evidence
from polyad.retrieval.assembly import MinRelevance
from polyad.server.limits import ConcurrencyLimiter
from polyad.server.metrics import Metrics
from polyad.server.models import SearchBody
from polyad.server.problems import RequestError
from polyad.server.tracing import record_evidence, trace_search
from polyad.server.workspaces import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class ServerState:
    """The settings, limits and metrics of a server, shared by all requests.

    Attributes:
        settings: Settings of the server.
        searches, answers: Limit the searches and answers at the same time.
        retriever: Retriever of requests that name none.
        metrics: Counts searches, answers and requests.
        k: Number of hits of requests that name none; None for the default.
    """

    settings: ServerSettings
    searches: ConcurrencyLimiter
    answers: ConcurrencyLimiter
    retriever: str
    metrics: Metrics
    k: int | None = None

    def check_question(self, question: str) -> None:
        """Raise a RequestError if a question is too long."""
        limit = self.settings.max_question_characters
        if len(question) > limit:
            raise RequestError(422, "question_too_long", f"the question is above {limit:,} characters")

    def search(self, workspace: Workspace, body: SearchBody, *, answers: bool = False) -> Evidence:
        """Search a workspace and return the evidence for a question.

        Args:
            workspace: The index.
            body: The question and its options.
            answers: Whether the evidence is for an answer. Then the default of ``min_relevance`` is ``auto``.

        Raises:
            ConfigurationError: An option is invalid.
            RequestError: A limit of the server is exceeded.
        """
        self.check_question(body.question)
        if body.k is not None and body.k > self.settings.max_k:
            raise RequestError(422, "k_too_large", f"k is {body.k}; expected at most {self.settings.max_k}")
        default: MinRelevance = "auto" if answers else 0.0
        retriever = body.retriever or self.retriever
        recorded_question = body.question if self.settings.log_questions else ""
        with self.searches.hold_slot(), trace_search(workspace.name, retriever, recorded_question) as span:
            evidence = workspace.engine.search(
                body.question,
                body.k or (None if body.max_words else self.k),
                max_words=body.max_words,
                retriever=retriever,
                min_relevance=default if body.min_relevance is None else body.min_relevance,
                where=_check_filter(body.where),
                prefer=_check_filter(body.prefer),
                as_of=body.as_of,
                known_at=body.known_at,
            )
            record_evidence(span, evidence)
        self.metrics.count_search(evidence)
        return evidence


def _check_filter(filter: str | Mapping[str, Any] | None) -> str | Mapping[str, Any] | None:
    if isinstance(filter, str) and not filter.strip():
        raise ConfigurationError("the filter is blank; leave it out, or write one such as: year >= 2020")
    return filter


def get_state(request: Request) -> ServerState:
    """Return the ServerState for a request (a FastAPI dependency)."""
    state: ServerState = request.app.state.server
    return state


State = Annotated[ServerState, Depends(get_state)]
