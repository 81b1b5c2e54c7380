"""Responses: JSON that the commands print, pages of lists, and server-sent events."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from polyad.errors import PolyadError
from polyad.schemas.objects import JsonObject
from polyad_server.problems import RequestError, describe_error, get_kind

Event = tuple[str, Mapping[str, Any] | str]
"""Name and data of a server-sent event."""


class ProblemBody(BaseModel):
    """The JSON body of an error response (RFC 9457); programs can compare `kind`."""

    type: str
    title: str
    status: int
    kind: str
    detail: str


class EventResponse(StreamingResponse):
    """A stream of server-sent events that ends its generator when the client disconnects.

    Otherwise an answer would hold its slot until Python collects the generator or the time of the answer is over.

    Args:
        events: The encoded events.
        stop: Called at the end of the response or when the client disconnects. It ends the work that a thread of the
            generator waits for, such as the reply of a language model.
    """

    def __init__(self, events: Generator[str | bytes], stop: Callable[[], None] = lambda: None) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
        self._events = events
        self._stop = stop

    async def listen_for_disconnect(self, receive: Receive) -> None:
        """Wait until the client disconnects, and stop the work: a thread that waits for a piece cannot be cancelled."""
        await super().listen_for_disconnect(receive)
        self._stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stop()
            with suppress(ValueError):  # a thread of a server that stops still runs the generator
                self._events.close()


def stream_events(events: Iterator[Event], stop: Callable[[], None] = lambda: None) -> EventResponse:
    """Return a response that streams server-sent events; after an error, its last event is ``error``.

    Args:
        events: The events.
        stop: See :class:`EventResponse`.
    """

    def encode() -> Generator[bytes]:
        try:
            for name, data in events:
                yield format_sse_event(event=name, data_str=json.dumps(data, ensure_ascii=False))
        except PolyadError as error:
            problem = {"kind": get_kind(error), "message": describe_error(error)}
            yield format_sse_event(event="error", data_str=json.dumps(problem, ensure_ascii=False))

    return EventResponse(encode(), stop)


T = TypeVar("T")


class PageSchema(JsonObject):
    """A part of a list; ``total`` counts all items, and ``next_cursor`` is empty on the last page."""

    total: int
    next_cursor: str


def cut_page(items: Sequence[T], limit: int, cursor: str, total: int | None = None) -> tuple[Sequence[T], PageSchema]:
    """Return the items of one page of a list, with the number of all items and the cursor of the next page.

    Args:
        items: All items, or those of the page only if ``total`` is given.
        limit: Maximum number of items in the page.
        cursor: Cursor of the page; empty for the first page.
        total: Number of all items.

    Raises:
        RequestError: The cursor is not from this server.
    """
    start = parse_cursor(cursor)
    if total is None:
        items, total = items[start : start + limit], len(items)
    is_last = start + limit >= total
    next_cursor = "" if is_last else base64.urlsafe_b64encode(str(start + limit).encode()).decode()
    return items, PageSchema(total=total, next_cursor=next_cursor)


def parse_cursor(cursor: str) -> int:
    """Return the position of the first item of a page; raise RequestError if the cursor is not from this server."""
    if not cursor:
        return 0
    try:
        return max(0, int(base64.urlsafe_b64decode(cursor.encode("ascii")).decode("ascii")[:12]))
    except ValueError:
        raise RequestError(
            422, "invalid_cursor", f"the cursor {cursor[:50]!r} is not one that this server returned"
        ) from None


def describe_problems(*statuses: int) -> dict[int | str, Any]:
    """Return the error responses of a route with these statuses for the OpenAPI description."""
    content = {"application/problem+json": {"schema": ProblemBody.model_json_schema()}}
    return {status: {"description": "The request was rejected.", "content": content} for status in statuses}


EVENTS: dict[int | str, Any] = {200: {"content": {"text/event-stream": {}}}}
"""Response of a route that may stream events."""

PROBLEMS = describe_problems(401, 403, 404, 413, 422, 429)
"""Error responses of most routes."""
