"""Limits of the server: requests per minute, concurrent requests, and the size of a request."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyad_server.problems import RequestError

_MAX_QUERY_BYTES = 8_000_000
"""Maximum size of a body that holds no documents. All JSON is parsed in the event loop: 60 MB stop it for 5 s."""

_MAX_VALUES = 1_500_000
"""Maximum number of values in JSON, counted as commas: 20 million empty lists in 60 MB are parsed in 20 s, in which no
other thread runs. English prose has one comma in some 60 bytes."""

_BODY_SECONDS = 30.0
"""Time in which a client has to send its body, plus a second for each 10 kB."""

_MIN_BYTES_PER_SECOND = 10_000

_MINUTE = 60.0
_MAX_CLIENTS = 10_000


class ClientRateLimiter:
    """Limits the number of requests that each client may send in one minute.

    Args:
        limit: Requests a minute.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._times: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def count(self, client: str) -> None:
        """Count a request of a client, unless the client has reached the rate limit.

        Raises:
            RequestError: The client has reached the limit.
        """
        now = time.monotonic()
        with self._lock:
            if len(self._times) > _MAX_CLIENTS:
                self._times = {each: times for each, times in self._times.items() if times[-1] > now - _MINUTE}
            times = self._times.setdefault(client, deque())
            while times and times[0] <= now - _MINUTE:
                times.popleft()
            if len(times) >= self._limit:
                wait = int(times[0] + _MINUTE - now) + 1
                raise RequestError(429, "rate_limited", f"more than {self._limit} requests in a minute", wait)
            times.append(now)


class ConcurrencyLimiter:
    """Limits the number of concurrent requests; further requests wait in a queue of limited length.

    Slots are assigned in the order of arrival. A semaphore would let new requests overtake waiting requests, some of
    which would then wait several times as long as others.

    Args:
        running: Maximum number of requests that run at the same time.
        waiting: Maximum number of requests that wait.
        name: Name of the limited requests in messages, such as ``searches``.
        is_shared: Whether one client holds at most half of the slots, and of the queue, so that others need not wait
            for it.
    """

    def __init__(self, running: int, waiting: int, name: str, *, is_shared: bool = False) -> None:
        self._free = running
        self._max_waiting = waiting
        self._share = (running + 1) // 2 if is_shared else running
        self._waiting_share = (waiting + 1) // 2 if is_shared else waiting
        self._held: Counter[str] = Counter()
        self._queue: deque[tuple[str, threading.Event]] = deque()
        self._lock = threading.Lock()
        self._name = name

    @contextmanager
    def hold_slot(self, client: str = "") -> Iterator[None]:
        """Wait for a free request slot and hold it during the ``with`` block.

        Args:
            client: Name of the client, if slots are shared, such as that of the workspace.

        Raises:
            RequestError: Too many requests are waiting.
        """
        turn = threading.Event()
        with self._lock:
            if self._free and self._held[client] < self._share:
                self._free -= 1
                self._held[client] += 1
                turn.set()
            elif len(self._queue) < self._max_waiting and self._count_waiting(client) < self._waiting_share:
                self._queue.append((client, turn))
            else:
                raise RequestError(429, "busy", f"too many {self._name} are waiting; try again", 1)
        turn.wait()
        try:
            yield
        finally:
            with self._lock:
                self._release(client)

    def _count_waiting(self, client: str) -> int:
        return sum(each == client for each, _ in self._queue)

    def _release(self, client: str) -> None:
        """Assign the slot of a client to the first waiting client that holds less than its share."""
        self._held -= Counter([client])  # without zeros, so that it does not grow with the number of clients
        for entry in self._queue:
            waiting, turn = entry
            if self._held[waiting] < self._share:
                self._queue.remove(entry)
                self._held[waiting] += 1
                turn.set()
                return
        self._free += 1


def check_value_count(body: bytes) -> None:
    """Raise RequestError if a body of JSON has so many values that parsing would stop the server for seconds."""
    if body.count(b",") > _MAX_VALUES:
        detail = f"the request has more than {_MAX_VALUES:,} values, counted by commas; send fewer documents, or files"
        raise RequestError(413, "http_error", detail)


def split_list(text: str) -> list[str]:
    """Return the items of a setting's value, which are separated by commas."""
    return [item.strip() for item in text.split(",") if item.strip()]


class HeadRequests:
    """ASGI middleware that answers ``HEAD`` on all routes of ``GET``; the HTTP server leaves out the body.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        await self._app({**scope, "method": "GET"} if scope.get("method") == "HEAD" else scope, receive, send)


class BodyLimit:
    """ASGI middleware that rejects a request as soon as its body exceeds a size, or is sent too slowly.

    Args:
        app: The application.
        max_bytes: Maximum size of a request that adds documents; all others may have at most 8 MB.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        has_documents = scope.get("path", "").endswith(("/documents", "/documents/files"))
        max_bytes = self._max_bytes if has_documents else min(self._max_bytes, _MAX_QUERY_BYTES)
        received, start, is_whole = 0, 0.0, False

        async def receive_limited() -> Message:
            nonlocal received, start, is_whole
            start = start or time.monotonic()
            seconds = start + _BODY_SECONDS + received / _MIN_BYTES_PER_SECOND - time.monotonic()
            try:
                async with asyncio.timeout(None if is_whole else seconds):
                    message = await receive()
            except TimeoutError:
                detail = f"the body is sent too slowly; expected {_MIN_BYTES_PER_SECOND / 1000:.0f} kB a second"
                raise HTTPException(408, detail, {"Connection": "close"}) from None
            received, is_whole = received + len(message.get("body", b"")), not message.get("more_body", False)
            if received > max_bytes:
                raise HTTPException(413, f"the request has more than {max_bytes / 1e6:.0f} MB")
            return message

        await self._app(scope, receive_limited, send)
