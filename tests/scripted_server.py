"""A scripted server for tests: it also embeds and reranks, sends faults, and records its requests."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from polyad.language_models.scripted import Request, ScriptedReply
from polyad.language_models.scripted import ScriptedServer as ChatServer
from polyad.language_models.scripted.server import RequestHandler, build_usage

T = TypeVar("T")


class Fault(Protocol):
    """A simulated failure of the server, such as ``tests/faults.py`` defines."""

    def play(self, handler: RequestHandler, /) -> None:
        """Send something else than a reply."""


ChatOutcome = str | ScriptedReply | Fault | Mapping[str, Any]
"""Outcome of a chat request: text, reply, fault, or a mapping that is the whole response body."""

EmbeddingOutcome = Sequence[Sequence[float]] | Fault | Mapping[str, Any]
"""Outcome of an embeddings request: vectors, a fault, or the whole response body."""

RankingOutcome = Sequence[float] | Fault | Mapping[str, Any]
"""Outcome of a rerank request: a score for each document, a fault, or the whole response body."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that the server received.

    Attributes:
        path: Path without ``/v1/``.
        body: The JSON body.
        headers: Names are in lower case.
        at: Seconds on the monotonic clock.
        query: Query string of the address.
    """

    path: str
    body: Request
    headers: Mapping[str, str]
    at: float
    query: str = ""


class ScriptedServer(ChatServer):
    """Serves ``/v1/chat/completions`` (whole and streamed), ``/embeddings``, ``/rerank`` and ``/models`` on 127.0.0.1.

    Args:
        replies: A function of the request, or a sequence of outcomes, whose last one repeats.
        vectors: Outcomes of embeddings requests; by default vectors of hashed words, so that similar texts are similar.
        rankings: Outcomes of rerank requests; by default the share of the query's words in each document.
        delay: Seconds before each reply.
        dimension: Length of the default vectors.
        port: 0 selects a free port.

    Raises:
        ConfigurationError: the port is in use or out of range.
    """

    paths = ("chat/completions", "embeddings", "rerank")

    def __init__(
        self,
        replies: Callable[[Request], ChatOutcome] | Sequence[ChatOutcome] = ("scripted",),
        *,
        vectors: Callable[[Request], EmbeddingOutcome] | Sequence[EmbeddingOutcome] | None = None,
        rankings: Callable[[Request], RankingOutcome] | Sequence[RankingOutcome] | None = None,
        delay: float = 0.0,
        dimension: int = 64,
        port: int = 0,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.max_concurrent_requests = 0
        self._scripts: dict[str, _Script[Any]] = {
            "chat/completions": _Script(replies),
            "embeddings": _Script(vectors or (lambda request: hash_texts(_get_inputs(request), dimension))),
            "rerank": _Script(rankings or score_shared_words),
        }
        self._active_requests = 0
        self._count_lock = threading.Lock()
        super().__init__(lambda _: "", delay=delay, port=port)

    def answer(self, handler: RequestHandler, path: str, body: Request) -> None:
        """Send the next outcome of the script."""
        headers = {name.lower(): value for name, value in handler.headers.items()}
        query = handler.path.partition("?")[2]
        outcome = self._next_outcome(RecordedRequest(path, body, headers, time.monotonic(), query))
        if isinstance(outcome, Mapping):
            handler.send_json(200, outcome)
        elif isinstance(outcome, str | ScriptedReply):
            handler.send_reply(outcome, body)
        elif isinstance(outcome, Sequence) and path == "rerank":
            handler.send_json(200, _build_ranking(cast(Sequence[float], outcome)))
        elif isinstance(outcome, Sequence):
            handler.send_json(200, _build_embeddings(cast(Sequence[Sequence[float]], outcome), body))
        else:
            outcome.play(handler)

    def _next_outcome(self, recorded: RecordedRequest) -> ChatOutcome | EmbeddingOutcome | RankingOutcome:
        """Record a request and return its scripted outcome after the delay.

        A request is active until this method returns: a client may send its next request before the server knows that
        the reply has arrived.
        """
        with self._count_lock:
            self.requests.append(recorded)
            self._active_requests += 1
            self.max_concurrent_requests = max(self.max_concurrent_requests, self._active_requests)
        try:
            self.wait(self._delay)
            return cast(
                ChatOutcome | EmbeddingOutcome | RankingOutcome, self._scripts[recorded.path].next(recorded.body)
            )
        finally:
            with self._count_lock:
                self._active_requests -= 1


class _Script(Generic[T]):
    """Computes outcomes from requests, or returns listed outcomes in order."""

    def __init__(self, outcomes: Callable[[Request], T] | Sequence[T]) -> None:
        if not callable(outcomes) and not outcomes:
            raise ValueError("the script is empty; give it at least one outcome")
        self._outcomes = outcomes
        self._position = 0
        self._lock = threading.Lock()

    def next(self, request: Request) -> T:
        if callable(self._outcomes):
            return self._outcomes(request)
        with self._lock:
            outcome = self._outcomes[min(self._position, len(self._outcomes) - 1)]
            self._position += 1
            return outcome


def hash_texts(texts: Sequence[str], dimension: int) -> list[list[float]]:
    """Return a vector for each text, in which each word adds 1 or -1 at a hashed position. No vector is zero."""
    vectors = []
    for text in texts:
        vector = [0.0] * dimension
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.sha256(word.encode()).digest()
            vector[int.from_bytes(digest[:4]) % dimension] += 1.0 if digest[4] % 2 else -1.0
        if not any(vector):
            vector[0] = 1.0
        vectors.append(vector)
    return vectors


def score_shared_words(request: Request) -> list[float]:
    """Return the share of the query's words that each document contains."""
    query = set(re.findall(r"\w+", str(request.get("query")).lower()))
    documents = [set(re.findall(r"\w+", str(document).lower())) for document in request.get("documents") or ()]
    return [len(query & document) / max(1, len(query)) for document in documents]


def _build_ranking(scores: Sequence[float]) -> dict[str, object]:
    """Return the body of a rerank response, best document first."""
    results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    return {"results": sorted(results, key=lambda result: -result["relevance_score"])}


def _get_inputs(request: Request) -> list[str]:
    inputs = request.get("input") or []
    return [inputs] if isinstance(inputs, str) else [str(text) for text in inputs]


def _build_embeddings(vectors: Sequence[Sequence[float]], body: Request) -> dict[str, object]:
    data = [{"object": "embedding", "index": index, "embedding": list(row)} for index, row in enumerate(vectors)]
    return {
        "object": "list",
        "model": body.get("model"),
        "data": data,
        "usage": build_usage(" ".join(_get_inputs(body)), ""),
    }
