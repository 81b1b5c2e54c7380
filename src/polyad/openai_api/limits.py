"""What one try at an endpoint may take: seconds until the reply is whole, bytes of it, and from that server alone.

A client's timeouts are for silence alone. A server that sends a byte now and then, be it of the headers, keeps its
client for ever, and 1 MB that it compressed may be 1 GB to whoever unpacks it.
"""

from __future__ import annotations

import math
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from polyad.config import shown_address
from polyad.errors import MissingExtraError
from polyad.openai_api.failure import UnusableReplyError

try:
    import httpx2
except ImportError as error:
    raise MissingExtraError("httpx2", "llm") from error

_WRITTEN_AT_ONCE = 16 * 1024
_UNPACKED_AT_ONCE = 64 * 1024

_EVENTS = 16
"""Times as long a stream may be as a reply in one piece: each word comes in an event with many others around it."""


class Limits:
    """Hooks for an HTTP client that end a try; each thread has its own time.

    Args:
        seconds: From :meth:`start` until the reply is whole.
        most_bytes: Of a reply, unpacked; of a stream sixteen times as many.
    """

    def __init__(self, seconds: float, most_bytes: int) -> None:
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._clock = threading.local()

    def start(self) -> None:
        """From now on counts what this thread sends and receives."""
        self._clock.end = time.monotonic() + self._seconds

    def hooks(self) -> dict[str, list[Callable[..., Any]]]:
        """For the client's ``event_hooks``."""
        return {"request": [self._watch], "response": [self._bound]}

    def _watch(self, request: httpx2.Request) -> None:
        request.headers["accept-encoding"] = "gzip"  # the one that is unpacked here
        request.extensions = {**request.extensions, "trace": self._trace}

    def _trace(self, event: str, said: dict[str, Any]) -> None:
        """See each connection when it is made, and put a limit on all that goes through it from then on."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            stream = said["return_value"]
            stream.read, stream.write = self._timed(stream.read), self._timed_writes(stream.write)

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(what: Any, timeout: float | None = None) -> Any:
            left = getattr(self._clock, "end", math.inf) - time.monotonic()
            if left <= 0:
                raise httpx2.ReadTimeout(f"the reply was not whole after {self._seconds:g} s")
            return call(what, timeout=min(math.inf if timeout is None else timeout, left))

        return timed

    def _timed_writes(self, call: Callable[..., Any]) -> Callable[..., Any]:
        timed = self._timed(call)

        def write(data: bytes, timeout: float | None = None) -> None:
            for start in range(0, len(data), _WRITTEN_AT_ONCE):
                timed(data[start : start + _WRITTEN_AT_ONCE], timeout)

        return write

    def _bound(self, response: httpx2.Response) -> None:
        _require_same_server(response)
        response.encoding = "utf-8-sig"  # as JSON and events are; what a server names may be no charset at all
        packed = response.headers.pop("content-encoding", "identity").strip().lower()
        if packed not in ("identity", "gzip", "x-gzip", "deflate", ""):
            raise UnusableReplyError(f"the reply is packed as {packed[:20]!r}; expected gzip or none", may_pass=False)
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        most = self._most_bytes * (_EVENTS if is_stream else 1)
        stream: Any = response.stream
        response.stream = _Bounded(stream, packed in ("identity", ""), most, self._most_bytes)


def _require_same_server(response: httpx2.Response) -> None:
    """Raise UnusableReplyError for a reply that sends the request, and all that stands in it, to another server."""
    if not response.has_redirect_location:
        return
    try:
        target = response.url.join(response.headers["location"])
    except httpx2.InvalidURL:  # which the client says by itself
        return
    if (target.scheme, target.host, target.port) != (response.url.scheme, response.url.host, response.url.port):
        raise UnusableReplyError(
            f"the endpoint sends requests on to {shown_address(str(target))}, another server, where nothing is sent; "
            "if that is the one you mean, give its address",
            may_pass=False,
        )


class _Bounded(httpx2.SyncByteStream):
    """The body of a response, unpacked, up to a number of bytes."""

    def __init__(self, stream: httpx2.SyncByteStream, is_plain: bool, most: int, setting: int) -> None:
        self._stream = stream
        self._is_plain = is_plain
        self._most = most
        self._setting = setting

    def __iter__(self) -> Iterator[bytes]:
        left = self._most
        for piece in self._stream if self._is_plain else _unpacked(self._stream):
            left -= len(piece)
            if left < 0:
                raise UnusableReplyError(
                    f"the reply is longer than {self._most:,} bytes (max_reply_bytes = {self._setting}); raise "
                    "max_reply_bytes if it may be so long",
                    may_pass=False,
                )
            yield piece

    def close(self) -> None:
        self._stream.close()


def _unpacked(stream: httpx2.SyncByteStream) -> Iterator[bytes]:
    """What is packed in a stream, a little at a time."""
    unpacking = zlib.decompressobj(wbits=47)  # gzip or zlib, whichever it is
    try:
        for piece in stream:
            while piece and not unpacking.eof:
                yield unpacking.decompress(piece, _UNPACKED_AT_ONCE)
                piece = unpacking.unconsumed_tail
        yield unpacking.flush()
    except zlib.error as error:
        raise httpx2.DecodingError(f"the reply cannot be unpacked: {error}") from error
