"""The MCP server, called with today's client in memory, over stdio and over HTTP."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
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
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Section
from polyad.text.words import count_tokens
from polyad_server.app import create_app
from polyad_server.keys import add_key
from polyad_server.mcp import build_mcp_server
from polyad_server.mcp_tools import ToolTarget
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import DOCUMENTS, RunningServer, build_index, open_index, run_app

READING = {"search", "fetch", "find_evidence", "find_text", "outline", "ask", "describe_entity", "list_documents"}


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
        target = ToolTarget(engine, "kb", engine.search, engine.find_text, engine.ask, "")
        async with Client(build_mcp_server(lambda *_: target, allow_writes=allow_writes)) as client:
            yield client


@asynccontextmanager
async def connect_http(
    server: RunningServer, key: str = "", mode: str = "auto", requests: list[httpx2.Request] | None = None
) -> AsyncIterator[Client]:
    """Connect to a server.

    Args:
        server: The server.
        key: An API key.
        mode: ``legacy`` for a client of the protocol 2025-11-25.
        requests: Receives the requests of the client.
    """

    async def record(request: httpx2.Request) -> None:
        if requests is not None:
            requests.append(request)

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, event_hooks={"request": [record]}) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


MODES_AND_SESSIONS = [
    ("auto", False),
    ("legacy", True),
    pytest.param("auto", True, marks=pytest.mark.slow),
    pytest.param("legacy", False, marks=pytest.mark.slow),
]


def test_search_and_fetch_keep_the_contract(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == READING
            for name, argument in (("search", "query"), ("fetch", "id")):
                assert tools[name].input_schema["required"] == [argument]
                assert tools[name].input_schema["properties"][argument]["type"] == "string"
            assert all(tool.description and len(tool.description) > 50 for tool in tools.values())
            results = await call(client, "search", query="Who cast the bell of Tarn?")
            assert set(results) == {"results"}
            assert all(set(result) == {"id", "title", "url"} for result in results["results"])
            first = results["results"][0]
            fetched = await call(client, "fetch", id=first["id"])
            assert set(fetched) == {"id", "title", "text", "url", "metadata"}
            assert fetched["text"].startswith("The bell of Tarn")
            assert fetched["url"] == first["url"]

    run(test)


def test_evidence_entities_and_documents(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index) as client:
            actual = await call(client, "find_evidence", question="Who cast the bell of Tarn?", k=1)
            [hit] = actual["evidence"]
            assert (hit["document_id"], hit["place"]) == ("bell.md", "Bell of Tarn")
            assert "Ines Moreau" in hit["excerpt"]
            assert actual["note"] == ""
            actual = await call(client, "find_evidence", question="founder of Corvne Tower")
            assert actual["note"] == "searched Corven for Corvne"
            where = 'id = "tower.md"'
            actual = await call(client, "find_evidence", question="Who cast the bell?", where=where)
            assert [hit["document_id"] for hit in actual["evidence"]] == ["tower.md"]
            entity = await call(client, "describe_entity", name="Ines Moreau")
            assert entity["fact_count"] == len(entity["facts"])
            listed = await call(client, "list_documents", like="o")
            documents = [
                {"id": "moreau.md", "title": "Ines Moreau", "metadata": {"language": "en"}},
                {"id": "tower.md", "title": "Corven Tower", "metadata": {"language": "en"}},
            ]
            assert listed == {"documents": documents, "total": 2, "next_cursor": ""}

    run(test)


def test_what_was_seen_is_left_out_and_a_name_leads_on(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index) as client:
            question = "Who was the architect of the tower in which the bell of Tarn hangs?"
            [first] = (await call(client, "find_evidence", question=question, k=1))["evidence"]
            assert (first["id"], first["link"]) == ("bell.md#0000", "")
            actual = await call(client, "find_evidence", question=question, k=1, seen=[first["id"]])
            [second] = actual["evidence"]
            assert second["id"] == "tower.md#0000"
            assert second["link"] == "'Corven Tower' is also in bell.md#0000"
            assert actual["trace"] == ["tower.md#0000: 'Corven Tower' is also in bell.md#0000"]
            seen = [first["id"], second["id"], "moreau.md#0000"]
            assert (await call(client, "find_evidence", question=question, seen=seen))["evidence"] == []
            assert "nowhere" in await fail(client, "find_evidence", question=question, seen=["nowhere#0"])

    run(test)


def test_exact_text_is_found(tmp_path: Path) -> None:
    lines = "\n".join(f"Person {number} rang the bell." for number in range(500))
    index = build_index(tmp_path / "kb", (*DOCUMENTS, Document("log.md", "Log", lines)))

    async def test() -> None:
        async with connect(index) as client:
            actual = await call(client, "find_text", pattern="Corven Tower")
            assert [match["id"] for match in actual["matches"]] == ["bell.md#0000", "tower.md#0000"]
            assert actual["documents"] == {"bell.md": 1, "tower.md": 1}
            assert actual["matches"][1]["place"] == "Corven Tower"
            actual = await call(client, "find_text", pattern="in 19[0-9]+", regex=True, where='id = "moreau.md"')
            assert [match["document_id"] for match in actual["matches"]] == ["moreau.md"]
            assert "(a" in await fail(client, "find_text", pattern="(a", regex=True)
            assert (await call(client, "find_text", pattern="no such text"))["total"] == 0
            read, cursor = [], ""
            while True:
                part = await call(client, "find_text", pattern="rang", lines_around=1, cursor=cursor, max_tokens=400)
                assert count_tokens(json.dumps(part)) < 600
                read += [match["line"] for match in part["matches"]]
                cursor = part["next_cursor"]
                if not cursor:
                    break
            assert read == list(range(1, 501))

    run(test)


def test_a_document_is_read_by_its_headings(tmp_path: Path) -> None:
    text = "\n\n".join(f"{'Pump ' * 150}ends with {number}." for number in range(6))
    sections = tuple(
        Section(name, text.index(f"{start}."), len(text)) for name, start in (("Repair", "1"), ("Seals", "4"))
    )
    index = build_index(tmp_path / "kb", (Document("pumps.md", "Pumps", text, sections=sections),))

    async def test() -> None:
        async with connect(index) as client:
            actual = await call(client, "outline", id="pumps.md")
            assert actual["title"] == "Pumps"
            assert [section["heading"].split(" / ")[-1] for section in actual["sections"]][-1] == "Seals"
            with Engine.open(index) as engine:
                passages = engine.catalogue.passages_of_document("pumps.md")
            assert sum(section["passages"] for section in actual["sections"]) == len(passages)
            middle = passages[2]
            whole = await call(client, "fetch", id=middle.id, around=1)
            assert whole["text"] == text[passages[1].start : passages[3].end]
            read, id = "", middle.id
            while id:
                part = await call(client, "fetch", id=id, around=1, max_tokens=50)
                assert count_tokens(part["text"]) <= 50
                read, id = read + part["text"], part["metadata"]["next_id"]
            assert read == whole["text"]
            assert "nothing" in await fail(client, "outline", id="nothing")

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
            assert "@offset=500" in await fail(client, "fetch", id="bell.md#0000@offset=500")
            nothing = 'id = "nothing"'
            assert "no document" in await fail(client, "find_evidence", question="bell?", where=nothing)
            assert "no document" in await fail(client, "list_documents", where=nothing)

    run(test)


def test_an_unknown_argument_is_an_error_that_names_the_others(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index) as client:
            message = await fail(client, "list_documents", limit=3)
            assert "'limit'" in message
            assert "like, where, cursor" in message
            assert "'year'" in await fail(client, "find_evidence", question="Who cast the bell?", year=None)
            result = await call(client, "find_evidence", question="Who cast the bell?", k="1", max_tokens="900")
            assert len(result["evidence"]) == 1

    run(test)


def test_errors_name_tools_and_no_commands(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index, allow_writes=True) as client:
            messages = [
                await fail(client, "fetch", id="nowhere#0"),
                await fail(client, "outline", id="nowhere"),
                await fail(client, "describe_entity", name="Nobody"),
                await fail(client, "find_text", pattern="(a", regex=True),
                await fail(client, "retract", hyperedge="nothing", reason="wrong"),
                await fail(client, "retract", hyperedge="bell.md#0000/000", entity="Nobody", reason="wrong"),
                await fail(client, "find_evidence", question="bell?", min_relevance="much"),
                await fail(client, "find_evidence", question="bell?", as_of="some day"),
                await fail(client, "find_evidence", question="bell?", prefer="year >="),
                await fail(client, "list_documents", where="year >="),
            ]
            assert not [each for each in messages if re.search("polyad [a-z]|--[a-z]| -[a-zA-Z]", each)], messages
            assert "list_documents" in messages[0]
            tools = (await client.list_tools()).tools
            assert not [tool.name for tool in tools if "`polyad " in (tool.description or "")]

    run(test)


def test_evidence_takes_preferred_documents_and_a_minimum_relevance(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index) as client:
            question = "Who cast the bell of Tarn?"
            [first, *_] = (await call(client, "find_evidence", question=question))["evidence"]
            assert first["id"] == "bell.md#0000"
            preferred = await call(client, "find_evidence", question=question, prefer='id = "tower.md"')
            assert preferred["evidence"][0]["id"] == "tower.md#0000"
            assert (await call(client, "find_evidence", question=question, min_relevance="1"))["evidence"] == []
            assert (await call(client, "find_evidence", question="Who won in 2031?", min_relevance="auto")) is not None
            assert (await call(client, "find_text", pattern="Corven Tower", known_at="2031"))["total"] == 2
            assert (await call(client, "find_text", pattern="Corven", known_at="1999"))["total"] == 0

    run(test)


def test_results_are_sent_once_to_clients_that_take_structured_content(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        with Engine.open(index, create=False) as engine:
            target = ToolTarget(engine, "kb", engine.search, engine.find_text, engine.ask, "")
            async with Client(build_mcp_server(lambda *_: target, sends_text=False)) as client:
                result = await client.call_tool("list_documents", {})
                assert (result.content, len(result.structured_content["documents"])) == ([], 3)
                [item] = (await client.call_tool("search", {"query": "Who cast the bell of Tarn?"})).content
                assert item.type == "text"
                assert json.loads(item.text)["results"]

    run(test)


def test_standard_streams_need_no_package_of_http_or_metrics(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['fastapi', 'prometheus_client'])); "
        "from polyad.__main__ import main; main()"
    )
    command = StdioServerParameters(command=sys.executable, args=["-c", code, "mcp", "--store", str(index)])

    async def test() -> None:
        async with Client(stdio_client(command)) as client:
            assert (await call(client, "search", query="Who cast the bell of Tarn?"))["results"]

    run(test)


def test_a_search_of_an_empty_index_is_an_error(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb", ())

    async def test() -> None:
        async with connect(index) as client:
            for name, argument in (("search", "query"), ("find_evidence", "question")):
                assert "no document" in await fail(client, name, **{argument: "Who cast the bell of Tarn?"})

    run(test)


def test_a_document_is_fetched_by_its_id(tmp_path: Path) -> None:
    text = " ".join(f"Person {number} rang the bell of Tarn." for number in range(3000))
    index = build_index(tmp_path / "kb", (Document("long.md", "Bells", text),))

    async def test() -> None:
        async with connect(index) as client:
            fetched, id = "", "long.md"
            while id:
                part = await call(client, "fetch", id=id)
                assert part["title"] == "Bells"
                fetched, id = fetched + part["text"], part["metadata"].get("next_id", "")
            assert fetched == text

    run(test)


def _name_people(number: int) -> str:
    return f"of {number} " + ", ".join(f"Person{each} Lisle{number}" for each in range(60))


def test_hostile_documents_do_not_exceed_the_limit(tmp_path: Path) -> None:
    metadata: dict[str, Any] = {f"{number}{'k' * 90}": "\n" * 900 for number in range(60)}
    metadata["tags"] = tuple("t" * 90 for _ in range(60))
    documents = [
        Document(
            f"{number}{'钟' * 400}",
            '"' * 1_000,
            f"Ines Moreau saw the bell {_name_people(number)}.",
            metadata=metadata,
        )
        for number in range(40)
    ]
    index = build_index(tmp_path / "kb", (*documents, Document("code", "", 'say "bell"\n' * 9000)))

    async def test() -> None:
        async with connect(index) as client:
            question = "Who saw the bell?"
            assert len((await call(client, "search", query=question))["results"]) > 1
            ids, cursor = [], ""
            while True:
                part = await call(client, "find_evidence", question=question, k=30, cursor=cursor)
                ids += [hit["id"] for hit in part["evidence"]]
                cursor = part["next_cursor"]
                if not cursor:
                    break
            assert len(ids) == len(set(ids)) == 30
            for id in (*ids, documents[0].id, "code", "code#0000"):
                assert (await call(client, "fetch", id=id))["text"]
            facts, cursor = [], ""
            while True:
                part = await call(client, "describe_entity", name="Ines Moreau", cursor=cursor)
                facts += [fact["passage_id"] for fact in part["facts"]]
                cursor = part["next_cursor"]
                if not cursor:
                    break
            assert len(facts) == len(set(facts)) == part["fact_count"] == 40
            await call(client, "list_documents")

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
                ids += [document["id"] for document in part["documents"]]
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
            assert (await call(client, "index", id="orra", text="The Orra rises in Velm."))["unchanged"] == 1
            withdrawn = await call(client, "retract", hyperedge="orra#0000/000", reason="wrong")
            assert withdrawn == {"withdrawn": ["The Orra rises in Velm."]}
            assert "blank" in await fail(client, "index", id="blank", text=" \n ")

    run(test)


def test_over_stdio(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")
    command = StdioServerParameters(command=sys.executable, args=["-m", "polyad", "mcp", "--store", str(index)])

    async def test() -> None:
        async with Client(stdio_client(command)) as client:
            actual = await call(client, "search", query="Who cast the bell of Tarn?")
            assert actual["results"][0]["id"] == "bell.md#0000"
            assert actual["results"][0]["url"] == "polyad:bell.md#0000"
            assert (await call(client, "find_text", pattern="Corven Tower"))["total"] == 2

    run(test)


def test_null_is_the_default_of_an_optional_argument_and_an_error_names_the_argument(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")

    async def test() -> None:
        async with connect(index) as client:
            question = "Who built the Corven Tower?"
            optional = dict.fromkeys(("k", "where", "as_of", "cursor", "seen", "max_tokens"))
            same = await call(client, "find_evidence", question=question)
            assert await call(client, "find_evidence", question=question, **optional) == same
            assert await fail(client, "find_evidence", question=None) == "question: Field required"
            reason = await fail(client, "find_evidence", question=question, k="many")
            assert reason.startswith("k: ")
            assert "pydantic" not in reason

    run(test)


def test_standard_output_carries_only_the_protocol(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")
    version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    calls = [
        {"name": "index", "arguments": {"id": "orra", "text": "The Orra rises in Velm."}},
        {"name": "search", "arguments": {"query": "Where does the Orra rise?"}},
        {"name": "fetch", "arguments": {"id": "nowhere"}},
    ]
    messages: list[dict[str, Any]] = [{"id": 0, "method": "initialize", "params": version}]
    messages += [{"method": "notifications/initialized"}]
    messages += [{"id": number, "method": "tools/call", "params": each} for number, each in enumerate(calls, 1)]
    command = [sys.executable, "-m", "polyad", "mcp", "--store", str(index), "--allow-writes"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        replies = []
        for message in messages:
            process.stdin.write(f"{json.dumps({'jsonrpc': '2.0', **message})}\n")
            process.stdin.flush()
            if "id" in message:
                replies.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(30) == 0
    assert [reply["id"] for reply in replies] == [0, 1, 2, 3]
    assert replies[0]["result"]["protocolVersion"] == "2025-11-25"
    assert [reply["result"].get("isError", False) for reply in replies[1:]] == [False, False, True]


def test_a_missing_index_ends_the_command_without_output(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "polyad", "mcp", "--store", str(tmp_path / "none")]
    finished = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "none" in finished.stderr


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_http(server: RunningServer, mode: str) -> None:
    async def test() -> None:
        async with connect_http(server, mode=mode) as client:
            actual = await call(client, "search", query="Who cast the bell of Tarn?")
            assert (
                actual["results"][0]["url"] == f"{server.url}/#/passage?workspace=kb&id=bell.md%230000&start=0&end=75"
            )
            assert (await call(client, "find_text", pattern="Corven Tower"))["total"] == 2

    run(test)
    response = server.client.post("/mcp", json={}, headers={"Host": "evil.example"})
    assert response.status_code == 421


@pytest.mark.parametrize(("mode", "sessions"), MODES_AND_SESSIONS)
def test_a_get_disconnects_no_client(tmp_path: Path, sessions: bool, mode: str) -> None:
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(mcp_sessions=sessions))) as server:

        async def test() -> None:
            requests: list[httpx2.Request] = []
            async with connect_http(server, mode=mode, requests=requests) as client:
                await call(client, "list_documents")
                response = server.client.get("/mcp", headers={"Accept": "text/plain"})
                assert response.status_code in (400, 405, 406)
                headers = {"Accept": "text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
                session = requests[-1].headers.get("Mcp-Session-Id")
                if session is None:
                    with server.client.stream("GET", "/mcp", headers=headers) as stream:
                        assert stream.status_code == (400 if sessions else 405)
                        await call(client, "list_documents")
                await call(client, "list_documents")
            if mode == "legacy" and sessions:
                assert "GET" in {request.method for request in requests}

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


@pytest.mark.parametrize(("mode", "sessions"), MODES_AND_SESSIONS)
def test_writing_tools_exist_only_for_keys_that_may_write(tmp_path: Path, sessions: bool, mode: str) -> None:
    index = build_index(tmp_path / "kb")
    with Engine.open(index) as engine:
        keys = {scope: add_key(engine.values, scope, scope, datetime.now(UTC)) for scope in ("read", "write")}
    settings = ServerSettings(mcp_sessions=sessions)
    with run_app(create_app(Workspaces(open_index(), [index]), settings, allow_writes=True)) as server:

        async def test() -> None:
            async with connect_http(server, keys["read"], mode) as client:
                assert {tool.name for tool in (await client.list_tools()).tools} == READING
                await fail(client, "index", id="orra", text="The Orra rises in Velm.")
            async with connect_http(server, keys["write"], mode) as client:
                assert {tool.name for tool in (await client.list_tools()).tools} == READING | {"index", "retract"}
                assert (await call(client, "index", id="orra", text="The Orra rises in Velm."))["added"] == 1

        run(test)


def test_a_session_serves_only_the_key_that_opened_it(tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")
    with Engine.open(index) as engine:
        keys = [add_key(engine.values, name, "read", datetime.now(UTC)) for name in ("first", "second")]
    settings = ServerSettings(mcp_sessions=True)
    with run_app(create_app(Workspaces(open_index(), [index]), settings)) as server:

        async def test() -> None:
            requests: list[httpx2.Request] = []
            async with connect_http(server, keys[0], "legacy", requests) as client:
                await call(client, "list_documents")
                headers = {
                    "Mcp-Session-Id": requests[-1].headers["Mcp-Session-Id"],
                    "Accept": "application/json, text/event-stream",
                }
                body = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
                statuses = [
                    server.client.post("/mcp", json=body, headers={**headers, "Authorization": f"Bearer {key}"})
                    for key in keys
                ]
                assert [response.status_code for response in statuses] == [200, 404]

        run(test)


def test_the_server_limits_answers_to_agents(tmp_path: Path) -> None:
    def reply_late(_: object) -> str:
        time.sleep(1.0)
        return "Ines Moreau [1]."

    model = ScriptedLanguageModel(reply_late)
    workspaces = Workspaces(open_index(model), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(answer_seconds=0.3))) as server:

        async def test() -> None:
            async with connect_http(server) as client:
                assert "0.3 seconds" in await fail(client, "ask", question="Who cast the bell of Tarn?")

        run(test)


def test_any_host_may_be_allowed(tmp_path: Path) -> None:
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")])
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream"}
    with run_app(create_app(workspaces, ServerSettings(hosts="*, kb.example.org"))) as server:
        for host in ("any.example", "kb.example.org"):
            origin = f"https://{host}"
            response = server.client.post("/mcp", json=body, headers={**headers, "Host": host, "Origin": origin})
            assert response.status_code == 200
    workspaces = Workspaces(open_index(), [tmp_path / "kb"])
    with run_app(create_app(workspaces, ServerSettings(hosts="kb.example.org"))) as server:
        for host, status in (("any.example", 421), ("kb.example.org", 200)):
            origin = f"https://{host}"
            response = server.client.post("/mcp", json=body, headers={**headers, "Host": host, "Origin": origin})
            assert response.status_code == status
