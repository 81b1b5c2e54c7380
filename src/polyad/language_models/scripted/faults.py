"""What can go wrong between a client and a language model's server, one class a fault, to be played on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class Wire(Protocol):
    """The server's end of one request."""

    def send_json(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        """Answer with a JSON body."""

    def send_text(self, status: int, body: str, *, claim: int = 0) -> None:
        """Answer with any body, said to be JSON; ``claim`` overstates its length in bytes."""

    def send_stream(self, text: str, *, orderly: bool) -> None:
        """Begin a streamed reply that says ``text`` and stops without having finished; ``orderly``: as HTTP, it did."""

    def cut(self) -> None:
        """Close the connection."""

    def wait(self, seconds: float) -> None:
        """Do nothing for a while, or until the server is shut down."""

    @property
    def wants_stream(self) -> bool:
        """Whether the client asked for a streamed reply."""


class Fault(Protocol):
    """Something that happens instead of a reply."""

    def play(self, wire: Wire) -> None:
        """Let it happen."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An error response of any status, with the body OpenAI would send."""

    status: int
    message: str = "refused as scripted"
    code: str = ""
    param: str = ""

    def play(self, wire: Wire) -> None:
        """Send it."""
        wire.send_json(self.status, _error(self.message, self.code, self.param))


@dataclass(frozen=True, slots=True)
class Body:
    """Any response: what servers send that is not as OpenAI would send it.

    Attributes:
        status: Of any kind, 200 too.
        body: Sent as JSON; a string as it is.
    """

    status: int
    body: object

    def play(self, wire: Wire) -> None:
        """Send it."""
        if isinstance(self.body, str):
            wire.send_text(self.status, self.body)
        else:
            wire.send_json(self.status, self.body)


@dataclass(frozen=True, slots=True)
class RateLimited:
    """Status 429; ``Retry-After`` in seconds, or as the text of the header."""

    retry_after: float | str | None = None

    def play(self, wire: Wire) -> None:
        """Send it."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        wire.send_json(429, _error("too many requests", "rate_limit_exceeded"), headers)


@dataclass(frozen=True, slots=True)
class ServerError:
    """Any status from 500."""

    status: int = 500

    def play(self, wire: Wire) -> None:
        """Send it, with a body that is not JSON, as proxies do."""
        wire.send_text(self.status, "<html>something broke</html>")


@dataclass(frozen=True, slots=True)
class Hang:
    """Silence, then a closed connection."""

    seconds: float

    def play(self, wire: Wire) -> None:
        """Be silent."""
        wire.wait(self.seconds)
        wire.cut()


@dataclass(frozen=True, slots=True)
class CutConnection:
    """The connection is closed before the reply, or in it once ``text`` is said.

    Attributes:
        text: What gets through.
        orderly: For a stream: it ends as HTTP wants it, but without saying that the reply is finished.
    """

    text: str = ""
    orderly: bool = False

    def play(self, wire: Wire) -> None:
        """Send what gets through, and close."""
        if wire.wants_stream and self.text:
            wire.send_stream(self.text, orderly=self.orderly)
        elif self.text:
            wire.send_text(200, f'{{"choices": [{{"message": {{"content": "{self.text}', claim=4096)
        wire.cut()


@dataclass(frozen=True, slots=True)
class MalformedJson:
    """Status 200 and a body that breaks off."""

    body: str = '{"choices": [{"message": {"content": "half'

    def play(self, wire: Wire) -> None:
        """Send it; to a client that wants a stream, as its only event."""
        wire.send_text(200, f"data: {self.body}\n\n" if wire.wants_stream else self.body)


@dataclass(frozen=True, slots=True)
class EmptyReply:
    """A well-formed reply that says nothing, or has no choice at all."""

    without_choices: bool = False

    def play(self, wire: Wire) -> None:
        """Send it."""
        message = {"role": "assistant", "content": ""}
        choices = [] if self.without_choices else [{"index": 0, "message": message, "finish_reason": "stop"}]
        wire.send_json(200, {"object": "chat.completion", "choices": choices})


@dataclass(frozen=True, slots=True)
class UnsupportedSchema:
    """Status 400 as from a server that does not know this kind of ``response_format``."""

    def play(self, wire: Wire) -> None:
        """Send it."""
        wire.send_json(400, _error("This response_format type is unavailable now", "invalid_request_error"))


def _error(message: str, code: str = "", param: str = "") -> dict[str, object]:
    return {"error": {"message": message, "type": code or "error", "code": code or None, "param": param or None}}
