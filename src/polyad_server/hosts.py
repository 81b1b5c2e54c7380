"""Rejects requests that a foreign web page sends through the browser of a user."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/@]+)(?::\d*)?")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class HostCheck:
    """ASGI middleware that rejects unknown host names, and write requests from web pages of other origins.

    The check of host names protects from a foreign name that resolves to this machine (DNS rebinding). The check of
    origins protects from a foreign web page that sends requests from this machine.

    Args:
        app: The application.
        names: Names of this server; ``*`` for any.
        origins: Origins of web pages that may send requests.
    """

    def __init__(self, app: ASGIApp, names: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        self._names = {name.lower() for name in names}
        self._origins = set(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host = get_host_name(headers.get("host", ""))
            if "*" not in self._names and host not in self._names:
                await _reject(421, f"this server is not {host[:100]!r}; set server.hosts")(scope, receive, send)
                return
            origin = headers.get("origin")
            if origin and scope["method"] not in _SAFE_METHODS and not self._is_known(origin, headers.get("host", "")):
                await _reject(403, "the web page may not use this server; set server.cors_origins")(
                    scope, receive, send
                )
                return
        await self._app(scope, receive, send)

    def _is_known(self, origin: str, host: str) -> bool:
        return origin in self._origins or "*" in self._origins or urlsplit(origin).netloc.lower() == host.lower()


def get_host_name(host: str) -> str:
    """Return the lower-case host name in a header ``Host``, without the port; empty if the header is malformed."""
    match = _HOST.fullmatch(host.strip().lower())
    return match[1] if match else ""


def _reject(status: int, detail: str) -> JSONResponse:
    kind = {421: "unknown_host", 403: "unknown_origin"}[status]
    body = {"type": "about:blank", "title": kind.replace("_", " "), "status": status, "kind": kind, "detail": detail}
    return JSONResponse(body, status, media_type="application/problem+json")
