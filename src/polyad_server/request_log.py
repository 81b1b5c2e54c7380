"""One line of JSON for each request: time, id, route, status and duration, but neither question nor key."""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from datetime import UTC, datetime

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyad_server.metrics import Metrics

LOG = logging.getLogger("polyad.server.requests")

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NO_ROUTE = "unknown"


class RequestLog:
    """ASGI middleware that gives each request an id, logs the request and counts it.

    The id is the request's header ``X-Request-ID``, or is new; the response has the same header.

    Args:
        app: The application.
        metrics: Counts the requests.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stated = Headers(scope=scope).get("x-request-id", "")
        id = stated if _ID.fullmatch(stated) else secrets.token_hex(8)
        begin, status = time.perf_counter(), 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = id
                self._metrics.count_request(_get_route(scope), status, time.perf_counter() - begin)
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            self._log(scope, id, status, time.perf_counter() - begin)

    def _log(self, scope: Scope, id: str, status: int, seconds: float) -> None:
        if not LOG.isEnabledFor(logging.INFO):
            return
        state = scope.get("state", {})
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request_id": id,
            "method": scope["method"],
            "route": _get_route(scope),
            "status": status,
            "ms": round(seconds * 1000, 1),
            "workspace": state.get("workspace", ""),
            "key": state.get("key", ""),
        }
        LOG.info("%s", json.dumps(line))


def _get_route(scope: Scope) -> str:
    """Return the path template of a request's route, such as ``/documents/{id}``."""
    return str(getattr(scope.get("route"), "path", _NO_ROUTE))
