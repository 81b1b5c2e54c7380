"""Limits on one request: total time, decompressed size, and no redirect to another server.

The timeouts of an HTTP client limit silence only: a server that sends a byte now and then could keep a client for ever,
and 1 MB of compressed data may decompress to 1 GB.
"""

from __future__ import annotations

import math
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from polyad.config import mask_url
from polyad.errors import MissingExtraError
from polyad.openai_api.failure import UnusableReplyError

try:
    import httpx2
except ImportError as error:
    raise MissingExtraError("httpx2", "llm") from error

_WRITTEN_AT_ONCE = 16 * 1024
_UNPACKED_AT_ONCE = 64 * 1024

_EVENTS = 16
"""Maximum size of a stream, in maximum sizes of a whole reply: each word of a stream comes in an event of its own."""


class ReplyLimits:
    """Limits on time and size of a client's HTTP responses, enforced by event hooks.

    Args:
        seconds: Maximum time from :meth:`start` to the end of the reply.
        max_bytes: Maximum size of a decompressed reply in bytes; streams may be sixteen times as large.
    """

    def __init__(self, seconds: float, max_bytes: int) -> None:
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._clock = threading.local()

    def start(self) -> None:
        """Start the time limit of this thread's next request."""
        self._clock.end = time.monotonic() + self._seconds

    def hooks(self) -> dict[str, list[Callable[..., Any]]]:
        """Return the limits as the argument ``event_hooks`` of an httpx client."""
        return {"request": [self._trace_request], "response": [self._limit_response]}

    def _trace_request(self, request: httpx2.Request) -> None:
        request.headers["accept-encoding"] = "gzip"  # the only encoding that this module decompresses
        request.extensions = {**request.extensions, "trace": self._trace}

    def _trace(self, event: str, details: dict[str, Any]) -> None:
        """Apply the time limit to all reads and writes of a new connection (a trace callback of the HTTP client)."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            stream = details["return_value"]
            stream.read, stream.write = self._limit_time(stream.read), self._limit_write_time(stream.write)

    def _limit_time(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(what: Any, timeout: float | None = None) -> Any:
            left = getattr(self._clock, "end", math.inf) - time.monotonic()
            if left <= 0:
                raise httpx2.ReadTimeout(f"the reply was not whole after {self._seconds:g} s")
            return call(what, timeout=min(math.inf if timeout is None else timeout, left))

        return timed

    def _limit_write_time(self, call: Callable[..., Any]) -> Callable[..., Any]:
        timed = self._limit_time(call)

        def write(data: bytes, timeout: float | None = None) -> None:
            for start in range(0, len(data), _WRITTEN_AT_ONCE):
                timed(data[start : start + _WRITTEN_AT_ONCE], timeout)

        return write

    def _limit_response(self, response: httpx2.Response) -> None:
        _require_same_server(response)
        response.encoding = "utf-8-sig"  # the encoding of JSON and events; servers may state an invalid one
        packed = response.headers.pop("content-encoding", "identity").strip().lower()
        if packed not in ("identity", "gzip", "x-gzip", "deflate", ""):
            raise UnusableReplyError(
                f"the reply is packed as {packed[:20]!r}; expected gzip or none", is_temporary=False
            )
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        max_bytes = self._max_bytes * (_EVENTS if is_stream else 1)
        stream: Any = response.stream
        response.stream = _LimitedStream(stream, packed in ("identity", ""), max_bytes, self._max_bytes)


def _require_same_server(response: httpx2.Response) -> None:
    """Raise UnusableReplyError for a redirect to another server, which would receive the request."""
    if not response.has_redirect_location:
        return
    try:
        target = response.url.join(response.headers["location"])
    except httpx2.InvalidURL:  # the HTTP client reports an invalid address
        return
    if (target.scheme, target.host, target.port) != (response.url.scheme, response.url.host, response.url.port):
        raise UnusableReplyError(
            f"the endpoint redirects to another server, {mask_url(str(target))}, to which nothing is sent; "
            "if you trust that server, set its address",
            is_temporary=False,
        )


class _LimitedStream(httpx2.SyncByteStream):
    """A decompressed HTTP response body that raises UnusableReplyError beyond a maximum size."""

    def __init__(self, stream: httpx2.SyncByteStream, is_plain: bool, max_bytes: int, setting: int) -> None:
        self._stream = stream
        self._is_plain = is_plain
        self._max_bytes = max_bytes
        self._setting = setting

    def __iter__(self) -> Iterator[bytes]:
        left = self._max_bytes
        for piece in self._stream if self._is_plain else _decompress(self._stream):
            left -= len(piece)
            if left < 0:
                raise UnusableReplyError(
                    f"the reply is longer than {self._max_bytes:,} bytes (max_reply_bytes = {self._setting}); raise "
                    "max_reply_bytes if it may be so long",
                    is_temporary=False,
                )
            yield piece

    def close(self) -> None:
        self._stream.close()


def _decompress(stream: httpx2.SyncByteStream) -> Iterator[bytes]:
    """Yield the decompressed data of a gzip or zlib stream, in pieces of limited size."""
    unpacking = zlib.decompressobj(wbits=47)  # 32 + 15: detects whether the data is gzip or zlib
    try:
        for piece in stream:
            while piece and not unpacking.eof:
                yield unpacking.decompress(piece, _UNPACKED_AT_ONCE)
                piece = unpacking.unconsumed_tail
        yield unpacking.flush()
    except zlib.error as error:
        raise httpx2.DecodingError(f"the reply cannot be unpacked: {error}") from error
