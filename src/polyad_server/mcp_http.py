"""The MCP server over streamable HTTP: keys, workspaces and limits of the server."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcp.server import MCPServer
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from polyad.model import Answer, TextMatches
from polyad_server.access import Access, Gatekeeper
from polyad_server.answers import write_answer
from polyad_server.keys import Scope as KeyScope
from polyad_server.links import get_base_url
from polyad_server.mcp_tools import ToolTarget
from polyad_server.problems import RequestError, respond
from polyad_server.state import ServerState

_MAX_SESSIONS = 200
"""Maximum number of sessions, each of which may hold a stream open."""


def get_http_target(request: Request | None, scope: KeyScope) -> ToolTarget:
    """Return the index for a tool call over HTTP; :class:`AuthorizedMcp` has authorised the request before.

    Raises:
        RequestError: The key lacks the scope.
    """
    if request is None:
        raise RequestError(400, "no_request", "the call has no HTTP request")
    access: Access = request.state.access
    access.principal.require(scope)
    state: ServerState = request.state.server

    search = partial(state.search, access.workspace)

    def find_text(pattern: str, **options: Any) -> TextMatches:
        with state.heavy_requests.hold_slot(access.workspace.name):
            return access.workspace.engine.find_text(pattern, **options)

    def answer(question: str) -> Answer:
        return write_answer(state, access.workspace, question).finish()

    return ToolTarget(
        access.workspace.engine, access.workspace.name, search, find_text, answer, get_base_url(request, state)
    )


class AuthorizedMcp:
    """An ASGI application that checks the API key of a request before an MCP server receives the request.

    Args:
        reading_app: Application of the MCP server whose tools read.
        writing_app: Application of the MCP server for keys that may write.
        gatekeeper: Decides which key may use which workspace.
        state: Limits of the server.
    """

    def __init__(self, reading_app: ASGIApp, writing_app: ASGIApp, gatekeeper: Gatekeeper, state: ServerState) -> None:
        self._reading_app = reading_app
        self._writing_app = writing_app
        self._gatekeeper = gatekeeper
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; the workspace is the parameter ``workspace`` of its address."""
        from anyio.to_thread import run_sync

        request = Request(scope, receive)
        workspace = request.query_params.get("workspace", "")
        try:
            access = await run_sync(self._gatekeeper.authorize, request, workspace, KeyScope.READ)
            if request.method == "GET" and not self._state.settings.mcp_sessions:  # the stream would never end
                raise RequestError(405, "method_not_allowed", "there are no sessions, so no streams; expected POST")
        except RequestError as error:
            response = respond(request, error.status, error.kind, str(error), error.retry_after)
            await response(scope, receive, send)
            return
        request.state.access, request.state.server = access, self._state
        key = access.principal.key
        if key is not None:  # so that a session serves no other key
            token = AccessToken(token="", client_id=key.id, scopes=[key.scope])
            scope["user"] = AuthenticatedUser(token)
        app = self._writing_app if access.principal.scope >= KeyScope.WRITE else self._reading_app
        await app({**scope, "path": "/mcp"}, receive, send)


def build_mcp_app(server: MCPServer[Any], hosts: list[str], origins: list[str], *, is_stateful: bool) -> ASGIApp:
    """Return the ASGI application of an MCP server over streamable HTTP, at the path ``/mcp``.

    Args:
        server: The MCP server.
        hosts: Names under which clients reach the server.
        origins: Origins of web pages that may use the server.
        is_stateful: Whether the server stores sessions. Without sessions, a client continues after a restart.
    """
    names = [pattern for host in hosts for pattern in (host, f"{host}:*")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection="*" not in (*hosts, *origins),  # HostCheck has read these names already
        allowed_hosts=names,
        allowed_origins=[*origins, *(f"{kind}://{name}" for name in names for kind in ("http", "https"))],
    )
    return server.streamable_http_app(
        stateless_http=not is_stateful, transport_security=security, max_sessions=_MAX_SESSIONS
    )
