"""The MCP server, called with today's client in memory, over stdio and over HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

pytest.importorskip("mcp")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from polyad import Document, Engine
from polyad.config import ServerSettings
from polyad.server.app import create_app
from polyad.server.mcp import build_mcp_server
from polyad.server.mcp_tools import ToolTarget
from polyad.server.workspaces import Workspaces
from tests.server.serving import DOCUMENTS, RunningServer, build_index, open_index, run_app

READING = {"search", "fetch", "find_evidence", "ask", "describe_entity", "list_documents"}


def run(test: Callable[[], Awaitable[None]]) -> None:
    anyio.run(test)


async def call(client: Client, name: str, /, **arguments: object) -> Any:
    """Return the structured content of a call, after checking that its only text item is the same JSON."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    [item] = result.content
    assert item.type == "text"
    assert len(item.text) <= 25_000
    assert json.loads(item.text) == result.structured_content
    return result.structured_content


async def fail(client: Client, name: str, /, **arguments: object) -> str:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    return "".join(item.text for item in result.content if item.type == "text")


@asynccontextmanager
async def connect(index: Path, *, allow_writes: bool = False) -> AsyncIterator[Client]:
    with Engine.open(index, create=False) as engine:
        target = ToolTarget(engine, "kb", engine.search, "")
        async with Client(build_mcp_server(lambda *_: target, allow_writes=allow_writes)) as client:
            yield client


@asynccontextmanager
async def connect_http(server: RunningServer, key: str = "", query: str = "") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"{server.url}/mcp{query}", http_client=http)
        async with Client(transport) as client:
            yield client


def test_search_and_fetch_keep_the_contract(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == READING
            for name, argument in (("search", "query"), ("fetch", "id")):
                assert list(tools[name].input_schema["properties"]) == [argument]
                assert tools[name].input_schema["properties"][argument]["type"] == "string"
            assert all(tool.description and len(tool.description) > 50 for tool in tools.values())
            found = await call(client, "search", query="Who cast the bell of Tarn?")
            assert set(found) == {"results"}
            assert all(set(result) == {"id", "title", "url"} for result in found["results"])
            first = found["results"][0]
            fetched = await call(client, "fetch", id=first["id"])
            assert set(fetched) == {"id", "title", "text", "url", "metadata"}
            assert fetched["text"].startswith("The bell of Tarn")
            assert fetched["url"] == first["url"]

    run(test)


def test_evidence_entities_and_documents(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index) as client:
            found = await call(client, "find_evidence", question="Who cast the bell of Tarn?", k=1)
            [hit] = found["evidence"]
            assert (hit["document_id"], hit["place"]) == ("bell.md", "Bell of Tarn")
            assert "Ines Moreau" in hit["excerpt"]
            where = 'id = "tower.md"'
            found = await call(client, "find_evidence", question="Who cast the bell?", where=where)
            assert [hit["document_id"] for hit in found["evidence"]] == ["tower.md"]
            entity = await call(client, "describe_entity", name="Ines Moreau")
            assert entity["fact_count"] == len(entity["facts"])
            documents = await call(client, "list_documents")
            assert documents == {"documents": ["bell.md", "moreau.md", "tower.md"], "total": 3, "next_cursor": ""}

    run(test)


def test_failures_are_errors_that_say_what_to_do(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index) as client:
            assert "nowhere" in await fail(client, "fetch", id="nowhere#0")
            assert "question" in await fail(client, "find_evidence", question=" ")
            assert "year" in await fail(client, "find_evidence", question="bell?", where="year >=")
            assert "find_evidence" in await fail(client, "ask", question="Who cast the bell?")
            assert "nobody" in await fail(client, "describe_entity", name="Nobody")
            assert "next_cursor" in await fail(client, "list_documents", cursor="x")

    run(test)


def test_long_results_come_in_parts(tmp_path: Path) -> None:
    names = [f"{number:04d}-{'x' * 200}" for number in range(300)]
    documents = tuple(Document(name, "", f"The bell {name} rings.") for name in names)
    long = Document("long", "", "x" * 60_000)
    index = build_index(tmp_path / "kb", (*documents, long))

    async def test() -> None:
        async with connect(index) as client:
            ids, cursor = [], ""
            while True:
                part = await call(client, "list_documents", cursor=cursor)
                ids += part["documents"]
                cursor = part["next_cursor"]
                if not cursor:
                    break
            assert ids == sorted([*names, "long"])
            with Engine.open(index) as engine:
                whole = engine.catalogue.passage("long#0000").text
            text, id = "", "long#0000"
            while id:
                part = await call(client, "fetch", id=id)
                text, id = text + part["text"], part["metadata"].get("next_id", "")
            assert text == whole

    run(test)


def test_writing_is_offered_only_where_it_is_allowed(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index, allow_writes=True) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == READING | {"index", "retract"}
            assert (await call(client, "index", id="orra", text="The Orra rises in Velm."))["added"] == 1
            [hit, *_] = (await call(client, "find_evidence", question="Where does the Orra rise?"))["evidence"]
            assert hit["document_id"] == "orra"
            withdrawn = await call(client, "retract", hyperedge="orra#0000/000", reason="wrong")
            assert withdrawn == {"withdrawn": ["The Orra rises in Velm."]}

    run(test)


def test_over_stdio(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")
    command = StdioServerParameters(command=sys.executable, args=["-m", "polyad", "mcp", "--store", str(index)])

    async def test() -> None:
        async with Client(stdio_client(command)) as client:
            found = await call(client, "search", query="Who cast the bell of Tarn?")
            assert found["results"][0]["id"] == "bell.md#0000"
            assert found["results"][0]["url"] == "polyad:bell.md#0000"

    run(test)


def test_over_http(server: RunningServer) -> None:
    async def test() -> None:
        async with connect_http(server) as client:
            found = await call(client, "search", query="Who cast the bell of Tarn?")
            assert found["results"][0]["url"] == f"{server.url}/#/passage?workspace=kb&id=bell.md%230000"

    run(test)
    response = server.client.post("/mcp", json={}, headers={"Host": "evil.example"})
    assert response.status_code == 421


@pytest.mark.parametrize("sessions", [False, True])
def test_a_get_disconnects_no_client(tmp_path: Path, sessions: bool) -> None:
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(mcp_sessions=sessions))) as server:

        async def test() -> None:
            async with connect_http(server) as client:
                await call(client, "list_documents")
                response = server.client.get("/mcp", headers={"Accept": "text/plain"})
                assert response.status_code in (400, 405, 406)
                await anyio.sleep(0.1)
                await call(client, "list_documents")

        run(test)


def test_a_client_continues_after_a_restart(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")
    servers: list[RunningServer] = []

    async def test() -> None:
        async with (
            httpx2.AsyncClient(transport=_Proxy(servers)) as http,
            Client(streamable_http_client("http://localhost/mcp", http_client=http)) as client,
        ):
            assert (await call(client, "list_documents"))["total"] == len(DOCUMENTS)
            await anyio.to_thread.run_sync(restart)
            assert (await call(client, "list_documents"))["total"] == len(DOCUMENTS)

    first = run_app(create_app(Workspaces(open_index(), [index])))
    second = run_app(create_app(Workspaces(open_index(), [index])))

    def restart() -> None:
        first.__exit__(None, None, None)
        servers[:] = [second.__enter__()]

    servers.append(first.__enter__())
    try:
        run(test)
    finally:
        second.__exit__(None, None, None)


class _Proxy(httpx2.AsyncBaseTransport):
    """Sends requests to the server that runs at the time."""

    def __init__(self, servers: list[RunningServer]) -> None:
        self._servers = servers
        self._transport = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(port=httpx2.URL(self._servers[0].url).port, host="127.0.0.1")
        return await self._transport.handle_async_request(request)


def test_keys_are_those_of_the_server(tenants: tuple[RunningServer, dict[str, str]]) -> None:
    server, keys = tenants
    assert server.client.post("/mcp", json={}).status_code == 401
    response = server.client.post("/mcp?workspace=two", json={}, headers={"Authorization": f"Bearer {keys['one']}"})
    assert response.status_code == 404

    async def test() -> None:
        async with connect_http(server, keys["one"]) as client:
            [hit] = (await call(client, "find_evidence", question="What is the secret?"))["evidence"]
            assert "amber" in hit["excerpt"]
            assert {tool.name for tool in (await client.list_tools()).tools} == READING

    run(test)
