"""An HTTP server on loopback that speaks OpenAI's chat protocol and sends scripted replies. Standard library only."""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self, cast

from polyad.errors import ConfigurationError, PolyadError
from polyad.text.words import count_tokens

Request = Mapping[str, Any]
"""The JSON body of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """A prepared reply of a test server, with finish reason, token counts and stream events.

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


class ScriptedServer:
    """A test HTTP server on 127.0.0.1 that imitates OpenAI's chat API with prepared replies.

    It serves ``/v1/chat/completions`` (whole and streamed) and ``/v1/models``.

    The server is a context manager; any number of clients may connect to ``base_url`` at a time.

    Args:
        reply: Returns the reply to a request.
        delay: Seconds before each reply.
        port: 0 selects a free port.

    Raises:
        ConfigurationError: the port is in use or out of range.
    """

    paths: ClassVar[tuple[str, ...]] = ("chat/completions",)
    """Paths below ``/v1/`` to which requests are posted."""

    def __init__(self, reply: Callable[[Request], str | ScriptedReply], *, delay: float = 0.0, port: int = 0) -> None:
        self._reply = reply
        self._delay = delay
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
        """Base URL of the test server for clients, ending in ``/v1``."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the test server and close the connections of active requests."""
        self._closing.set()
        if self._thread.is_alive():
            self._http.shutdown()
        self._http.server_close()

    def wait(self, seconds: float) -> None:
        """Sleep for ``seconds``, or less if the test server is closed."""
        self._closing.wait(seconds)

    def answer(self, handler: RequestHandler, path: str, body: Request) -> None:  # noqa: ARG002  # for subclasses
        """Send the prepared reply to a request with this ``body``, after the configured delay."""
        self.wait(self._delay)
        handler.send_reply(self._reply(body), body)


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--port`` and ``--delay`` to the parser of a command that runs a scripted server."""
    parser.add_argument("--port", type=int, default=8123, help="0 selects a free port; 8123 by default")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")


def serve(parser: argparse.ArgumentParser, build_server: Callable[[], ScriptedServer]) -> None:
    """Run a test server until it is interrupted; its address is printed to stderr, a failed start exits with code 2."""
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


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    scripted: ScriptedServer

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # some tests close connections on purpose
            super().handle_error(cast(Any, request), client_address)


class RequestHandler(BaseHTTPRequestHandler):
    """Handles the HTTP requests of one connection to the test server.

    Attributes:
        wants_stream: Whether the current request asks for a streamed reply.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    wants_stream = False

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because tests inspect recorded requests instead."""

    @property
    def scripted(self) -> ScriptedServer:
        """The test server to which this connection belongs."""
        return cast(_HttpServer, self.server).scripted

    def do_GET(self) -> None:
        """Answer a GET request with the list of models."""
        if self.path.rstrip("/") == "/v1/models":
            self.send_json(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        else:
            self.send_json(404, {"error": {"message": f"no {self.path} here"}})

    def do_POST(self) -> None:
        """Send the prepared reply to a POST request, or an error for an unknown path."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.removeprefix("/v1/").partition("?")[0]
        if path not in self.scripted.paths:
            self.send_json(404, {"error": {"message": f"no {self.path} here"}})
            return
        try:
            body = json.loads(raw)
        except ValueError:
            self.send_json(400, {"error": {"message": "the request is not JSON"}})
            return
        self.wants_stream = bool(body.get("stream"))
        self.scripted.answer(self, path, body)

    def send_reply(self, reply: str | ScriptedReply, body: Request) -> None:
        """Send a reply to the chat request ``body``, streamed if the request asks for a stream."""
        if isinstance(reply, str):
            reply = ScriptedReply(text=reply)
        usage = build_usage(json.dumps(body.get("messages"), ensure_ascii=False), reply.text) if reply.usage else None
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
        """Send an HTTP response; ``min_content_length`` is the least value of its header Content-Length.

        A value above the length of ``body`` imitates an incomplete body.
        """
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
        """Send one event of a streamed chat completion."""
        self.send_chunk(f"data: {json.dumps({'object': 'chat.completion.chunk', **event})}\n\n")

    def send_chunk(self, text: str) -> None:
        """Send a text as one chunk of the HTTP body; an empty text ends the body."""
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def _build_message(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def build_usage(prompt: str, completion: str) -> dict[str, int]:
    """Return the token counts of a response, in the form of OpenAI's field ``usage``."""
    counts = count_tokens(prompt), count_tokens(completion)
    return {"prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts)}
