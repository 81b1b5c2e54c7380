"""Faults between a client and the server of a language model, for :class:`ScriptedServer` to simulate."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from polyad.language_models.scripted.server import RequestHandler


@dataclass(frozen=True, slots=True)
class RejectionFault:
    """Simulates an error response with any status and the body that OpenAI would send."""

    status: int
    message: str = "refused as scripted"
    code: str = ""
    param: str = ""

    def play(self, handler: RequestHandler) -> None:
        """Send the response."""
        handler.send_json(self.status, _build_error(self.message, self.code, self.param))


@dataclass(frozen=True, slots=True)
class RawResponseFault:
    """Simulates a response with any status and body. A string is sent as it is, another value as JSON."""

    status: int
    body: object

    def play(self, handler: RequestHandler) -> None:
        """Send the response."""
        if isinstance(self.body, str):
            handler.send_body(self.status, self.body.encode())
        else:
            handler.send_json(self.status, self.body)


@dataclass(frozen=True, slots=True)
class RateLimitFault:
    """Simulates status 429 with an optional ``Retry-After`` header: seconds, or the text of the header."""

    retry_after: float | str | None = None

    def play(self, handler: RequestHandler) -> None:
        """Send the response."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        handler.send_json(429, _build_error("too many requests", "rate_limit_exceeded"), headers)


@dataclass(frozen=True, slots=True)
class ServerErrorFault:
    """Simulates a status from 500 with a body of HTML, as proxies send it."""

    status: int = 500

    def play(self, handler: RequestHandler) -> None:
        """Send the response."""
        handler.send_body(self.status, b"<html>something broke</html>")


@dataclass(frozen=True, slots=True)
class HangFault:
    """Simulates a server that is silent for some seconds and then closes the connection."""

    seconds: float

    def play(self, handler: RequestHandler) -> None:
        """Wait, then close the connection."""
        handler.scripted.wait(self.seconds)
        _cut(handler)


@dataclass(frozen=True, slots=True)
class CutConnectionFault:
    """Simulates a connection that closes before or during the reply.

    Attributes:
        text: Beginning of the reply that the client receives.
        orderly: Whether a stream ends with the last chunk of HTTP, though without the end of the reply.
    """

    text: str = ""
    orderly: bool = False

    def play(self, handler: RequestHandler) -> None:
        """Send the beginning of the reply and close the connection."""
        if handler.wants_stream and self.text:
            handler.begin_stream()
            delta = {"role": "assistant", "content": self.text}
            handler.send_event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            if self.orderly:
                handler.send_chunk("")
        elif self.text:
            body = f'{{"choices": [{{"message": {{"content": "{self.text}'
            handler.send_body(200, body.encode(), min_content_length=4096)
        _cut(handler)


@dataclass(frozen=True, slots=True)
class MalformedJsonFault:
    """Simulates status 200 with JSON that ends early; a client that requests a stream receives it as the only event."""

    body: str = '{"choices": [{"message": {"content": "half'

    def play(self, handler: RequestHandler) -> None:
        """Send the response."""
        handler.send_body(200, (f"data: {self.body}\n\n" if handler.wants_stream else self.body).encode())


@dataclass(frozen=True, slots=True)
class EmptyReplyFault:
    """Simulates a well-formed reply with an empty text, or without any choice."""

    without_choices: bool = False

    def play(self, handler: RequestHandler) -> None:
        """Send the response."""
        message = {"role": "assistant", "content": ""}
        choices = [] if self.without_choices else [{"index": 0, "message": message, "finish_reason": "stop"}]
        handler.send_json(200, {"object": "chat.completion", "choices": choices})


@dataclass(frozen=True, slots=True)
class UnsupportedResponseFormatFault:
    """Simulates a server that rejects the requested ``response_format`` with status 400."""

    def play(self, handler: RequestHandler) -> None:
        """Send the response."""
        handler.send_json(400, _build_error("This response_format type is unavailable now", "invalid_request_error"))


def _cut(handler: RequestHandler) -> None:
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def _build_error(message: str, code: str = "", param: str = "") -> dict[str, object]:
    return {"error": {"message": message, "type": code or "error", "code": code or None, "param": param or None}}
