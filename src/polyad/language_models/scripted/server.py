"""A real HTTP server on loopback that speaks OpenAI's protocol and says what a script tells it to.

Standard library only. Replies and faults are scripted per request; what came in is kept for the test to look at.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Generic, Self, TypeVar, cast

from polyad.errors import ConfigurationError, PolyadError
from polyad.language_models.scripted.faults import Fault
from polyad.text.counting import count_tokens

Request = Mapping[str, Any]
"""The JSON body of a request."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A reply with more to it than its text.

    Attributes:
        text: What to say.
        finish_reason: ``length`` for a reply cut at its limit.
        usage: Whether token counts are reported.
        pieces: How a stream cuts the text; by default before each space.
    """

    text: str
    finish_reason: str = "stop"
    usage: bool = True
    pieces: Sequence[str] = ()


Spoken = str | Say | Fault | Mapping[str, Any]
"""One outcome for a chat request; a mapping is a whole response body, sent as it is."""

Embedded = Sequence[Sequence[float]] | Fault | Mapping[str, Any]
"""One outcome for an embeddings request; a mapping likewise."""

Reranked = Sequence[float] | Fault | Mapping[str, Any]
"""One outcome for a rerank request: a score for each document; a mapping likewise."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request that came in: the end of its path, its body, its headers (names in lower case), when, its query."""

    path: str
    body: Request
    headers: Mapping[str, str]
    at: float
    query: str = ""


class ScriptedServer:
    """Serves ``/v1/chat/completions`` (whole and streamed), ``/embeddings``, ``/rerank`` and ``/models`` on 127.0.0.1.

    Use it as a context manager, and any number of clients at a time against ``base_url``.

    Args:
        replies: What to say: computed from the request, or one outcome after the other, the last one for ever.
        vectors: The same for embeddings; by default vectors of hashed words, so that similar texts are similar.
        rankings: The same for reranking; by default the words that document and query share.
        delay: Seconds before each reply.
        dimension: Length of the default vectors.
        port: 0 for any that is free.

    Raises:
        ConfigurationError: the port is taken, or is none.
    """

    def __init__(
        self,
        replies: Callable[[Request], Spoken] | Sequence[Spoken] = ("scripted",),
        *,
        vectors: Callable[[Request], Embedded] | Sequence[Embedded] | None = None,
        rankings: Callable[[Request], Reranked] | Sequence[Reranked] | None = None,
        delay: float = 0.0,
        dimension: int = 64,
        port: int = 0,
    ) -> None:
        self.requests: list[Recorded] = []
        self.busiest = 0
        self._replies: _Script[Spoken] = _Script(replies)
        self._vectors: _Script[Embedded] = _Script(
            vectors or (lambda request: hashed_vectors(_inputs(request), dimension))
        )
        self._rankings: _Script[Reranked] = _Script(rankings or shared_words)
        self._delay = delay
        self._under_way = 0
        self._counting = threading.Lock()
        self._closing = threading.Event()
        try:
            self._http = _HttpServer(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else "expected 0 to 65535"
            raise ConfigurationError(
                f"cannot serve at port {port} ({reason}); choose another, or 0 for any that is free"
            ) from error
        self._http.scripted = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def base_url(self) -> str:
        """What to give a client."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving; requests under way are cut."""
        self._closing.set()
        if self._thread.is_alive():
            self._http.shutdown()
        self._http.server_close()

    def wait(self, seconds: float) -> None:
        """Let time pass, but not beyond the server's end."""
        self._closing.wait(seconds)

    def outcome(self, recorded: Recorded) -> Spoken | Embedded | Reranked:
        """What the script has for a request, after the delay.

        Requests count as under way until then: a client that has its reply may ask again before this server knows that
        the reply has arrived.
        """
        with self._counting:
            self.requests.append(recorded)
            self._under_way += 1
            self.busiest = max(self.busiest, self._under_way)
        try:
            self.wait(self._delay)
            scripts: dict[str, _Script[Any]] = {"embeddings": self._vectors, "rerank": self._rankings}
            return cast(Spoken | Embedded | Reranked, scripts.get(recorded.path, self._replies).next(recorded.body))
        finally:
            with self._counting:
                self._under_way -= 1


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """The options of every command that serves."""
    parser.add_argument("--port", type=int, default=8123, help="0 for any that is free; 8123 by default")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")


def serve(parser: argparse.ArgumentParser, make: Callable[[], ScriptedServer]) -> None:
    """Say where the server is, and serve until interrupted; what keeps it from being made is one line, exit code 2."""
    try:
        server = make()
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
    """Outcomes computed from requests, or listed."""

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
        if not isinstance(sys.exception(), ConnectionError):  # a client that hung up is what some tests are about
            super().handle_error(cast(Any, request), client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    wants_stream = False

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent; the requests are kept instead."""

    def do_GET(self) -> None:
        if self.path.rstrip("/") == "/v1/models":
            self.send_json(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        else:
            self.send_json(404, {"error": {"message": f"no {self.path} here"}})

    def do_POST(self) -> None:
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
        scripted = cast(_HttpServer, self.server).scripted
        self._answer(scripted.outcome(Recorded(path, body, headers, time.monotonic(), query)), body)

    def _answer(self, outcome: Spoken | Embedded | Reranked, body: Request) -> None:
        self.wants_stream = bool(body.get("stream"))
        if isinstance(outcome, Mapping):
            self.send_json(200, outcome)
        elif isinstance(outcome, str):
            self._say(Say(text=outcome), body)
        elif isinstance(outcome, Say):
            self._say(outcome, body)
        elif isinstance(outcome, Sequence) and "query" in body:
            self.send_json(200, _ranking(cast(Sequence[float], outcome)))
        elif isinstance(outcome, Sequence):
            self.send_json(200, _embeddings(cast(Sequence[Sequence[float]], outcome), body))
        else:
            outcome.play(self)

    def _say(self, say: Say, body: Request) -> None:
        usage = _usage(json.dumps(body.get("messages"), ensure_ascii=False), say.text) if say.usage else None
        model = body.get("model")
        if not self.wants_stream:
            choice = {"index": 0, "message": _said(say.text), "finish_reason": say.finish_reason}
            self.send_json(200, {"object": "chat.completion", "model": model, "choices": [choice], "usage": usage})
            return
        self._begin_stream()
        for piece in say.pieces or re.findall(r"\s*\S+|\s+$", say.text):
            self._send_event({"model": model, "choices": [{"index": 0, "delta": _said(piece), "finish_reason": None}]})
        self._send_event({"model": model, "choices": [{"index": 0, "delta": {}, "finish_reason": say.finish_reason}]})
        if usage and (body.get("stream_options") or {}).get("include_usage"):
            self._send_event({"model": model, "choices": [], "usage": usage})
        self._send_chunk("data: [DONE]\n\n")
        self._send_chunk("")

    def send_json(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        """Answer with a JSON body."""
        self._send(status, json.dumps(body).encode(), headers or {})

    def send_text(self, status: int, body: str, *, claim: int = 0) -> None:
        """Answer with any body, said to be JSON; ``claim`` overstates its length in bytes."""
        self._send(status, body.encode(), {}, claim=claim)

    def send_stream(self, text: str, *, orderly: bool) -> None:
        """Begin a streamed reply that says ``text`` and stops without having finished."""
        self._begin_stream()
        self._send_event({"choices": [{"index": 0, "delta": _said(text), "finish_reason": None}]})
        if orderly:
            self._send_chunk("")

    def cut(self) -> None:
        """Close the connection."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def wait(self, seconds: float) -> None:
        """Do nothing for a while, or until the server is shut down."""
        cast(_HttpServer, self.server).scripted.wait(seconds)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str], claim: int = 0) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if body.startswith(b"data:") else "application/json")
        self.send_header("Content-Length", str(max(claim, len(body))))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _send_event(self, event: Mapping[str, object]) -> None:
        self._send_chunk(f"data: {json.dumps({'object': 'chat.completion.chunk', **event})}\n\n")

    def _send_chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def hashed_vectors(texts: Sequence[str], dimension: int) -> list[list[float]]:
    """A vector a text: its words, each hashed to a place and a sign. The same everywhere, and never zero."""
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


def shared_words(request: Request) -> list[float]:
    """Of the words of the query, the share that each document has."""
    query = set(re.findall(r"\w+", str(request.get("query")).lower()))
    documents = [set(re.findall(r"\w+", str(document).lower())) for document in request.get("documents") or ()]
    return [len(query & document) / max(1, len(query)) for document in documents]


def _ranking(scores: Sequence[float]) -> dict[str, object]:
    """Best first, as servers send it."""
    results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    return {"results": sorted(results, key=lambda result: -result["relevance_score"])}


def _inputs(request: Request) -> list[str]:
    given = request.get("input") or []
    return [given] if isinstance(given, str) else [str(text) for text in given]


def _embeddings(vectors: Sequence[Sequence[float]], body: Request) -> dict[str, object]:
    data = [{"object": "embedding", "index": index, "embedding": list(row)} for index, row in enumerate(vectors)]
    return {"object": "list", "model": body.get("model"), "data": data, "usage": _usage(" ".join(_inputs(body)), "")}


def _said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def _usage(prompt: str, completion: str) -> dict[str, int]:
    counts = count_tokens(prompt), count_tokens(completion)
    return {"prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts)}
