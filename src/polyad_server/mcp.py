"""The MCP server: the tools of :mod:`polyad_server.mcp_tools`, over stdio and for :mod:`polyad_server.mcp_http`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resources.templates import ResourceSecurity
from mcp.server.mcpserver.tools import Tool, ToolManager
from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError
from starlette.requests import Request

from polyad import __version__
from polyad.errors import PolyadError
from polyad.model import Document
from polyad_server import mcp_results, mcp_tools
from polyad_server.keys import Scope as KeyScope
from polyad_server.mcp_limits import ToolInputError
from polyad_server.mcp_tools import ToolTarget
from polyad_server.problems import describe_error, describe_invalid_value

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

_TOOLS_BY_COMMAND = (
    ("`polyad list documents` prints", "the tool list_documents returns"),
    ("`polyad search` prints", "the tool search returns"),
    ("`polyad list hyperedges --like TEXT` prints", "the tool describe_entity returns"),
    ("`polyad list entities --like NAME` prints similar names", "the tool find_text finds other spellings"),
    ("as a phrase (polyad grep -F)", "with regex=false"),
)
"""Parts of error messages with commands of a shell, which an agent does not have, and the tools in their place."""

_ALWAYS_TEXT = ("search", "fetch")
"""Tools whose results chat programs read from the text alone."""

Question = Annotated[
    str, Field(max_length=8000, description="One complete question about one fact, with names in place of pronouns.")
]
Where = Annotated[
    str,
    Field(max_length=4000, description="Filter of documents: year >= 2020 and path like 'manuals/*'; empty for all."),
]
MaxTokens = Annotated[int, Field(ge=0, le=100_000, description="About the most tokens to return; 0 for the most.")]
AsOf = Annotated[str, Field(max_length=40, description="What held at this date; empty for now.")]
KnownAt = Annotated[
    str, Field(max_length=40, description="Only documents that the index knew at this date; empty for all.")
]
Cursor = Annotated[str, Field(max_length=20, description="next_cursor of the result before; empty for the first.")]


class _Server(MCPServer[Any]):
    """An MCP server that takes null for an optional argument, as clients with strict schemas send it.

    Attributes:
        sends_text: Whether results are also text, for clients that do not take structured content.
    """

    sends_text: bool = True

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool without arguments that are null.

        Raises:
            ToolError: The call failed; the message names each invalid or unknown argument.
        """
        tool = self._tool_manager.get_tool(name)
        names = tool.parameters["properties"] if tool else arguments
        if unknown := [argument for argument in arguments if argument not in names]:
            raise ToolError(f"{name} has no argument {unknown[0]!r}; expected some of: {', '.join(names)}")
        try:
            result = await super().call_tool(name, {k: v for k, v in arguments.items() if v is not None}, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError("; ".join(map(describe_invalid_value, error.__cause__.errors()))) from error
            raise
        if isinstance(result, CallToolResult) and result.structured_content is not None:
            text = json.dumps(result.structured_content, ensure_ascii=False)  # compact: an agent pays for each blank
            is_text = self.sends_text or name in _ALWAYS_TEXT
            result.content = [TextContent(type="text", text=text)] if is_text else []
        return result


def build_mcp_server(get_target: GetTarget, *, allow_writes: bool = False, sends_text: bool = True) -> MCPServer[Any]:
    """Return an MCP server (tools for AI agents) whose tools search an index.

    Args:
        get_target: Returns the index of a call.
        allow_writes: Whether to offer the tools ``index`` and ``retract``.
        sends_text: Whether results are also sent as text, for clients that do not take structured content.
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
    server.sends_text = sends_text
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
        message = describe_error(error)
        for command, tool in _TOOLS_BY_COMMAND:
            message = message.replace(command, tool)
        raise ToolError(message) from error


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
        prefer: Annotated[
            str,
            Field(max_length=4000, description="Filter of documents to rank higher, which hides nothing."),
        ] = "",
        min_relevance: Annotated[
            float | Literal["auto"],
            Field(description="Leave out passages below, 0 to 1; auto: return none if nothing answers."),
        ] = 0.0,
    ) -> mcp_results.EvidenceResults:
        """Return the sentences of the documents that answer a question, with document, page, relevance and facts.

        Prefer this tool to search where an answer is wanted: one call returns what search and fetch return in several.
        A relevance near 0 means that the documents may not contain the answer. Facts under "retracted" are wrong. The
        trace names what links passages: ask about such a name next, with the ids that you have in seen.
        """
        options = {"where": where, "prefer": prefer, "as_of": as_of, "min_relevance": min_relevance}
        arguments = (question, k, options, cursor, seen, max_tokens)
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
        known_at: KnownAt = "",
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
            "known_at": known_at or None,
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
        """Withdraw a fact that is wrong or expired: no search returns it any more. The user can undo it."""
        return _call(get_target, context, KeyScope.WRITE, mcp_tools.retract, hyperedge, entity, reason)

    return tools.list_tools()
