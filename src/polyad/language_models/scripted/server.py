"""An HTTP server on loopback that speaks OpenAI's protocol and sends scripted replies.

Standard library only. Each request gets the next reply or fault of the script; requests are recorded for tests.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from polyad.errors import ConfigurationError, PolyadError
from polyad.text.words import count_tokens

Request = Mapping[str, Any]
"""The JSON body of a request."""

T = TypeVar("T")


class Fault(Protocol):
    """A simulated failure of the server, such as ``tests/faults.py`` defines."""

    def play(self, handler: RequestHandler, /) -> None:
        """Send a faulty response instead of a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """A reply with a finish reason, with or without token counts, and its division into stream events.

    Attributes:
        text: Text of the reply.
        finish_reason: ``length`` for a reply cut at its limit.
        usage: Whether token counts are reported.
        pieces: Text of each stream event; by default one word.
    """

    text: str
    finish_reason: str = "stop"
    usage: bool = True
    pieces: Sequence[str] = ()


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


class ScriptedServer:
    """Serves ``/v1/chat/completions`` (whole and streamed), ``/embeddings``, ``/rerank`` and ``/models`` on 127.0.0.1.

    The server is a context manager; any number of clients may connect to ``base_url`` at a time.

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
        self._replies: _Script[ChatOutcome] = _Script(replies)
        self._vectors: _Script[EmbeddingOutcome] = _Script(
            vectors or (lambda request: hash_texts(_get_inputs(request), dimension))
        )
        self._rankings: _Script[RankingOutcome] = _Script(rankings or score_shared_words)
        self._delay = delay
        self._active_requests = 0
        self._count_lock = threading.Lock()
        self._closing = threading.Event()
        try:
            self._http = _HttpServer(("127.0.0.1", port), RequestHandler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else "expected 0 to 65535"
            raise ConfigurationError(
                f"cannot serve at port {port} ({reason}); choose another port, or 0 for any free port"
            ) from error
        self._http.scripted = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def base_url(self) -> str:
        """Base address for clients, with ``/v1``."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server and cut the connections of active requests."""
        self._closing.set()
        if self._thread.is_alive():
            self._http.shutdown()
        self._http.server_close()

    def wait(self, seconds: float) -> None:
        """Wait for some seconds, or until the server is closed."""
        self._closing.wait(seconds)

    def next_outcome(self, recorded: RecordedRequest) -> ChatOutcome | EmbeddingOutcome | RankingOutcome:
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
            scripts: dict[str, _Script[Any]] = {"embeddings": self._vectors, "rerank": self._rankings}
            return cast(
                ChatOutcome | EmbeddingOutcome | RankingOutcome,
                scripts.get(recorded.path, self._replies).next(recorded.body),
            )
        finally:
            with self._count_lock:
                self._active_requests -= 1


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--port`` and ``--delay`` to a command that serves."""
    parser.add_argument("--port", type=int, default=8123, help="0 selects a free port; 8123 by default")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")


def serve(parser: argparse.ArgumentParser, build_server: Callable[[], ScriptedServer]) -> None:
    """Print the server's address to stderr and serve until interrupted. If no server can be built, exit with code 2."""
    try:
        server = build_server()
    except PolyadError as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    with server:
        sys.stderr.write(f"OPENAI_BASE_URL={server.base_url}  (Ctrl-C ends)\n")
        sys.stderr.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            sys.stderr.write("\n")


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


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    scripted: ScriptedServer

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # some tests close connections on purpose
            super().handle_error(cast(Any, request), client_address)


class RequestHandler(BaseHTTPRequestHandler):
    """Handles one connection to a :class:`ScriptedServer`.

    Attributes:
        wants_stream: Whether the current request asks for a streamed reply.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    wants_stream = False

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing; the requests are recorded instead."""

    @property
    def scripted(self) -> ScriptedServer:
        """The server that owns the script."""
        return cast(_HttpServer, self.server).scripted

    def do_GET(self) -> None:
        """List the models."""
        if self.path.rstrip("/") == "/v1/models":
            self.send_json(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        else:
            self.send_json(404, {"error": {"message": f"no {self.path} here"}})

    def do_POST(self) -> None:
        """Answer a chat, embeddings or rerank request."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.removeprefix("/v1/").partition("?")
        if path not in ("chat/completions", "embeddings", "rerank"):
            self.send_json(404, {"error": {"message": f"no {self.path} here"}})
            return
        try:
            body = json.loads(raw)
        except ValueError:
            self.send_json(400, {"error": {"message": "the request is not JSON"}})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        recorded = RecordedRequest(path, body, headers, time.monotonic(), query)
        self._answer(self.scripted.next_outcome(recorded), body)

    def _answer(self, outcome: ChatOutcome | EmbeddingOutcome | RankingOutcome, body: Request) -> None:
        self.wants_stream = bool(body.get("stream"))
        if isinstance(outcome, Mapping):
            self.send_json(200, outcome)
        elif isinstance(outcome, str):
            self._send_reply(ScriptedReply(text=outcome), body)
        elif isinstance(outcome, ScriptedReply):
            self._send_reply(outcome, body)
        elif isinstance(outcome, Sequence) and "query" in body:
            self.send_json(200, _build_ranking(cast(Sequence[float], outcome)))
        elif isinstance(outcome, Sequence):
            self.send_json(200, _build_embeddings(cast(Sequence[Sequence[float]], outcome), body))
        else:
            outcome.play(self)

    def _send_reply(self, reply: ScriptedReply, body: Request) -> None:
        usage = _build_usage(json.dumps(body.get("messages"), ensure_ascii=False), reply.text) if reply.usage else None
        model = body.get("model")
        if not self.wants_stream:
            choice = {"index": 0, "message": _build_message(reply.text), "finish_reason": reply.finish_reason}
            self.send_json(200, {"object": "chat.completion", "model": model, "choices": [choice], "usage": usage})
            return
        self.begin_stream()
        for piece in reply.pieces or re.findall(r"\s*\S+|\s+$", reply.text):
            self.send_event(
                {"model": model, "choices": [{"index": 0, "delta": _build_message(piece), "finish_reason": None}]}
            )
        self.send_event({"model": model, "choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}]})
        if usage and (body.get("stream_options") or {}).get("include_usage"):
            self.send_event({"model": model, "choices": [], "usage": usage})
        self.send_chunk("data: [DONE]\n\n")
        self.send_chunk("")

    def send_json(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        """Send a response with a JSON body."""
        self.send_body(status, json.dumps(body).encode(), headers or {})

    def send_body(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, min_content_length: int = 0
    ) -> None:
        """Send a response. A ``min_content_length`` above the length of the body announces bytes that never come."""
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if body.startswith(b"data:") else "application/json")
        self.send_header("Content-Length", str(max(min_content_length, len(body))))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def begin_stream(self) -> None:
        """Send the headers of a stream of server-sent events."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send_event(self, event: Mapping[str, object]) -> None:
        """Send an event of a streamed chat completion."""
        self.send_chunk(f"data: {json.dumps({'object': 'chat.completion.chunk', **event})}\n\n")

    def send_chunk(self, text: str) -> None:
        """Send text as one HTTP chunk; an empty text ends the stream."""
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


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
        "usage": _build_usage(" ".join(_get_inputs(body)), ""),
    }


def _build_message(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def _build_usage(prompt: str, completion: str) -> dict[str, int]:
    counts = count_tokens(prompt), count_tokens(completion)
    return {"prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts)}
