"""Addresses of passages in the web page, for citations."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from polyad.model import Excerpt

if TYPE_CHECKING:  # an MCP server on standard streams does without the packages of HTTP
    from starlette.requests import Request

    from polyad_server.state import ServerState


def get_base_url(request: Request, state: ServerState) -> str:
    """Return the public URL of the server, without a final slash, from the settings or the request."""
    return (state.settings.base_url or str(request.base_url)).rstrip("/")


def build_passage_url(base_url: str, workspace: str, passage_id: str, excerpt: Excerpt | None = None) -> str:
    """Return the URL that opens a passage in the web page and highlights the sentences of the excerpt."""
    span = {"start": excerpt.start, "end": excerpt.end} if excerpt else {}
    return f"{base_url}/#/passage?{urlencode({'workspace': workspace, 'id': passage_id, **span})}"
