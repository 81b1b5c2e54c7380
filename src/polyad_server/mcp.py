"""The MCP server: the tools of :mod:`polyad_server.mcp_tools` over stdio and streamable HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resources.templates import ResourceSecurity
from mcp.server.mcpserver.tools import Tool, ToolManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from polyad import __version__
from polyad.errors import PolyadError
from polyad.model import Answer, Document, TextMatches
from polyad_server import mcp_results, mcp_tools
from polyad_server.access import Access, Gatekeeper
from polyad_server.answers import write_answer
from polyad_server.keys import Scope as KeyScope
from polyad_server.links import get_base_url
from polyad_server.mcp_limits import ToolInputError
from polyad_server.mcp_tools import ToolTarget
from polyad_server.problems import RequestError, describe_error, describe_invalid_value, respond
from polyad_server.state import ServerState

P = ParamSpec("P")
T = TypeVar("T")

GetTarget = Callable[[Request | None, KeyScope], ToolTarget]
"""Returns the index of a call: takes the HTTP request (None over stdio) and the scope that the tool needs."""

INSTRUCTIONS = """Searches the user's own documents. Every statement of an answer should name its source: the place or
url that a tool returned. Write queries as complete questions about one fact each, with names in place of pronouns:
"Who funded the Tarn trial?" rather than "who funded it". A question with several parts needs several calls. If the
results do not answer, try other words for the same thing before you say that the documents do not say it. find_text
finds exact words: a number, a code, a quotation, or every passage with a name."""

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)

_MAX_SESSIONS = 200
"""Maximum number of sessions, each of which may hold a stream open."""

Question = Annotated[
    str, Field(max_length=8000, description="One complete question about one fact, with names in place of pronouns.")
]
Where = Annotated[
    str,
    Field(max_length=4000, description="Filter of documents: year >= 2020 and path like 'manuals/*'; empty for all."),
]
MaxTokens = Annotated[int, Field(ge=0, le=100_000, description="About the most tokens to return; 0 for the most.")]
AsOf = Annotated[str, Field(max_length=40, description="What held at this date; empty for now.")]
Cursor = Annotated[str, Field(max_length=20, description="next_cursor of the result before; empty for the first.")]


class _Server(MCPServer[Any]):
    """An MCP server that takes null for an optional argument, as clients with strict schemas send it."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool without arguments that are null.

        Raises:
            ToolError: The call failed; the message names each invalid argument.
        """
        try:
            return await super().call_tool(name, {k: v for k, v in arguments.items() if v is not None}, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError("; ".join(map(describe_invalid_value, error.__cause__.errors()))) from error
            raise


def build_mcp_server(get_target: GetTarget, *, allow_writes: bool = False) -> MCPServer[Any]:
    """Return an MCP server (tools for AI agents) whose tools search an index.

    Args:
        get_target: Returns the index of a call.
        allow_writes: Whether to offer the tools ``index`` and ``retract``.
    """
    server = _Server(
        "polyad",
        title="polyad",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
        subscriptions=False,  # the server has no notifications, and each subscription would hold a stream open
        tools=[*_build_reading_tools(get_target), *(_build_writing_tools(get_target) if allow_writes else ())],
    )
    _add_page_images(server, get_target)
    return server


def _call(
    get_target: GetTarget,
    context: Context[Any, Any],
    scope: KeyScope,
    function: Callable[Concatenate[ToolTarget, P], T],
    *arguments: P.args,
    **options: P.kwargs,
) -> T:
    """Call the function of an MCP tool; convert errors that the AI agent can correct into ToolError.

    Raises:
        ToolError: The call failed.
    """
    try:
        return function(get_target(context.request_context.request, scope), *arguments, **options)
    except (PolyadError, ToolInputError) as error:
        raise ToolError(describe_error(error)) from error


@lru_cache(maxsize=1)  # the schemas take 40 ms, and the servers for readers and for writers share them
def _build_reading_tools(get_target: GetTarget) -> list[Tool]:
    tools = ToolManager()
    add_tool = partial(tools.add_tool, annotations=_READS)

    @add_tool
    def search(
        query: Annotated[str, Field(max_length=8000, description="A complete question, with names.")],
        context: Context[Any, Any],
    ) -> mcp_results.SearchResults:
        """Search the documents for a query and return ids, titles and addresses of passages; read them with fetch.

        One fact a query: ask "When was the Corven Tower built?" and "Who was its architect?" in two calls, the second
        with the tower's name.
        """
        return _call(get_target, context, KeyScope.READ, mcp_tools.search, query)

    @add_tool
    def fetch(
        id: Annotated[str, Field(max_length=1100, description="Id of a passage or document from another tool.")],
        context: Context[Any, Any],
        around: Annotated[int, Field(ge=0, le=20, description="Passages to add before and after.")] = 0,
        max_tokens: MaxTokens = 0,
    ) -> mcp_results.FetchedPassage:
        """Return the whole text of a passage with its place in the document, or the whole text of a document.

        A long text continues under the id in metadata.next_id (with the same around), which is empty at the end.
        metadata.image is the address of a resource with the picture of the passage's page, for PDF files and scans.
        """
        return _call(get_target, context, KeyScope.READ, mcp_tools.fetch, id, around, max_tokens)

    @add_tool
    def find_evidence(
        question: Question,
        context: Context[Any, Any],
        k: Annotated[int, Field(ge=1, le=50, description="Maximum number of passages.")] = 5,
        where: Where = "",
        as_of: AsOf = "",
        cursor: Cursor = "",
        seen: Annotated[
            Sequence[str], Field(max_length=100, description="Ids of passages that you have; only others are returned.")
        ] = (),
        max_tokens: MaxTokens = 0,
    ) -> mcp_results.EvidenceResults:
        """Return the sentences of the documents that answer a question, with document, page, relevance and facts.

        Prefer this tool to search where an answer is wanted: one call returns what search and fetch return in several.
        A relevance near 0 means that the documents may not contain the answer. Facts under "retracted" are wrong. The
        trace names what links passages: ask about such a name next, with the ids that you have in seen.
        """
        arguments = (question, k, where, as_of, cursor, seen, max_tokens)
        return _call(get_target, context, KeyScope.READ, mcp_tools.find_evidence, *arguments)

    @add_tool
    def find_text(
        pattern: Annotated[str, Field(min_length=1, max_length=1000, description="Literal text.")],
        context: Context[Any, Any],
        regex: Annotated[bool, Field(description="Take the pattern as a regular expression of RE2.")] = False,
        ignore_case: Annotated[bool, Field(description="Take upper and lower case as the same.")] = False,
        lines_around: Annotated[int, Field(ge=0, le=5, description="Lines to add before and after.")] = 0,
        where: Where = "",
        as_of: AsOf = "",
        cursor: Cursor = "",
        max_tokens: MaxTokens = 2000,
    ) -> mcp_results.TextResults:
        """Return the lines of the documents that contain a text exactly, with passage, place and counts by document.

        Use it for names, numbers, codes and quotations, and to check that a text occurs nowhere. A regular expression
        matches within a line. Read more of a result with fetch.
        """
        options = {
            "phrase": not regex,
            "ignore_case": ignore_case,
            "context": lines_around,
            "limit": 50,
            "where": where or None,
            "as_of": as_of or None,
        }
        return _call(get_target, context, KeyScope.READ, mcp_tools.find_text, pattern, cursor, max_tokens, options)

    @add_tool
    def outline(
        id: Annotated[str, Field(max_length=1000, description="Id of a document.")],
        context: Context[Any, Any],
        cursor: Cursor = "",
    ) -> mcp_results.OutlineResult:
        """Return the headings of a document, each with the id of its first passage, to be read with fetch."""
        return _call(get_target, context, KeyScope.READ, mcp_tools.outline, id, cursor)

    @add_tool
    def ask(question: Question, context: Context[Any, Any]) -> mcp_results.AnswerResult:
        """Return an answer that the server's language model writes from the documents, with its sources.

        Use find_evidence instead if you can write the answer yourself.
        """
        return _call(get_target, context, KeyScope.READ, mcp_tools.ask, question)

    @add_tool
    def describe_entity(
        name: Annotated[str, Field(max_length=500, description="Name of a person, place, product or term.")],
        context: Context[Any, Any],
        cursor: Cursor = "",
    ) -> mcp_results.EntityResult:
        """Return the facts about one entity from all documents, and the entities that it is connected with."""
        return _call(get_target, context, KeyScope.READ, mcp_tools.describe_entity, name, cursor)

    @add_tool
    def list_documents(
        context: Context[Any, Any],
        like: Annotated[str, Field(max_length=500, description="Text in the id; empty for all.")] = "",
        where: Where = "",
        cursor: Cursor = "",
    ) -> mcp_results.DocumentsResult:
        """Return ids, titles and metadata of the documents, to see what there is and to write filters."""
        return _call(get_target, context, KeyScope.READ, mcp_tools.list_documents, like, where, cursor)

    return tools.list_tools()


def _add_page_images(server: MCPServer[Any], get_target: GetTarget) -> None:
    @server.resource(
        f"{mcp_tools.PAGE_IMAGES}{{id}}",
        name="page",
        mime_type="image/png",
        security=ResourceSecurity(reject_path_traversal=False, reject_absolute_paths=False),  # an id is no path
    )
    def read_page_image(id: str, context: Context[Any, Any]) -> bytes:
        """Return the page of a passage in a PDF file or scan, with the passage marked; fetch has its address."""
        request = context.request_context.request

        def read(target: ToolTarget) -> bytes:
            with request.state.server.heavy_requests.hold_slot(target.workspace) if request else nullcontext():
                return mcp_tools.read_page_image(target, id)

        return _call(get_target, context, KeyScope.READ, read)


@lru_cache(maxsize=1)
def _build_writing_tools(get_target: GetTarget) -> list[Tool]:
    tools = ToolManager()
    add_tool = partial(tools.add_tool, annotations=_WRITES)

    @add_tool
    def index(
        id: Annotated[str, Field(min_length=1, max_length=500, description="Id of the document, such as a title.")],
        text: Annotated[str, Field(min_length=1, max_length=1_000_000, description="The whole text.")],
        context: Context[Any, Any],
        title: Annotated[str, Field(max_length=500)] = "",
    ) -> mcp_results.IndexResult:
        """Add a document, or replace the document with the same id. Takes the text itself, never a path or address."""
        return _call(get_target, context, KeyScope.WRITE, mcp_tools.index, Document(id, title, text))

    @add_tool
    def retract(
        reason: Annotated[str, Field(min_length=1, max_length=2000, description="Why the fact does not hold.")],
        hyperedge: Annotated[str, Field(min_length=1, max_length=1100, description="Id of the fact.")],
        context: Context[Any, Any],
        entity: Annotated[str, Field(max_length=500, description="Only this entity; empty for the fact.")] = "",
    ) -> mcp_results.RetractionResult:
        """Withdraw a fact that is wrong or expired: no search returns it any more. `polyad restore` undoes it."""
        return _call(get_target, context, KeyScope.WRITE, mcp_tools.retract, hyperedge, entity, reason)

    return tools.list_tools()


# Over HTTP


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
