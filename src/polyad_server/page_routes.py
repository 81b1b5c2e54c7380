"""The web page: routes of its files, with headers that restrict the browser."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.datastructures import MutableHeaders
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The page loads its own files and calls its own server; nothing inside a document is executed."""

_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class _SecureHeaders:
    """An ASGI application that adds security headers to each file of the web page.

    Args:
        app: Serves the files.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def add_page(app: FastAPI) -> None:
    """Add the route of the web page at ``/``; call this function after adding all other routes."""

    @app.get("/docs", include_in_schema=False)
    def describe_api() -> RedirectResponse:
        """Redirect to the part of the web page that describes the HTTP API."""
        return RedirectResponse("./#/api")  # relative, for a proxy that removes a path prefix

    folder = Path(str(resources.files("polyad_server") / "page"))
    app.mount("/", _SecureHeaders(StaticFiles(directory=folder, html=True)), name="page")
