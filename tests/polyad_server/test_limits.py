from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import numpy as np
import pytest

pytest.importorskip("fastapi")

from polyad.config import LanguageModelSettings, ServerSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import StoreUnavailableError
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import FloatArray
from polyad.protocols.components import Prompt, TextKind
from polyad.stores.sqlite.database import SqliteDatabase
from polyad_server import jobs, limits
from polyad_server.app import create_app
from polyad_server.limits import ConcurrencyLimiter
from polyad_server.problems import RequestError
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import build_index, open_index, run_app


def test_slots_are_assigned_in_the_order_of_arrival() -> None:
    limiter = ConcurrencyLimiter(running=1, waiting=1, name="searches")
    order: list[str] = []
    is_full = threading.Event()

    def search() -> None:
        try:
            with limiter.hold_slot():
                order.append("earlier")
        except RequestError:
            is_full.set()

    threads = [threading.Thread(target=search) for _ in range(2)]
    with limiter.hold_slot():
        for thread in threads:
            thread.start()
        assert is_full.wait(10)  # so the other one is in the queue
    with limiter.hold_slot():
        order.append("later")
    for thread in threads:
        thread.join(10)
    assert order == ["earlier", "later"]


def test_one_client_holds_half_of_the_shared_slots_and_of_the_queue() -> None:
    limiter = ConcurrencyLimiter(running=2, waiting=2, name="pictures", is_shared=True)
    order: list[str] = []
    is_full = threading.Event()

    def render() -> None:
        try:
            with limiter.hold_slot("one"):
                order.append("one")
        except RequestError:
            is_full.set()

    threads = [threading.Thread(target=render) for _ in range(2)]
    with limiter.hold_slot("one"):
        for thread in threads:
            thread.start()
        assert is_full.wait(10)  # so the other one is in the queue
        with limiter.hold_slot("two"):
            order.append("two")
    for thread in threads:
        thread.join(10)
    assert order == ["two", "one"]


def test_a_failed_request_releases_its_slot() -> None:
    limiter = ConcurrencyLimiter(running=1, waiting=0, name="searches")
    for _ in range(3):
        with pytest.raises(KeyError), limiter.hold_slot():
            raise KeyError
    with limiter.hold_slot(), pytest.raises(RequestError) as caught, limiter.hold_slot():
        pass
    assert (caught.value.status, caught.value.retry_after) == (429, 1)


def test_a_client_that_does_not_read_its_answer_frees_its_slot_when_the_time_is_over(tmp_path: Path) -> None:
    replies = [
        ("x" * 2000 + " ") * 4000,
        "It hangs in Corven Tower [1].",
    ]  # the first fills the buffers of a connection
    workspaces = Workspaces(open_index(ScriptedLanguageModel(replies)), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(answers=1, answer_seconds=2))) as server:
        body = json.dumps({"question": "Who cast the bell of Tarn?", "stream": True}).encode()
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as client:
            head = f"POST /api/v1/ask HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            assert client.recv(12) == b"HTTP/1.1 200"
            reply = server.client.post("/api/v1/ask", json={"question": "Where does the bell hang?"}, timeout=10)
    assert reply.json()["answer"] == "It hangs in Corven Tower [1]."


def test_clients_that_follow_jobs_occupy_no_threads(tmp_path: Path) -> None:
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")], runs_jobs=False)
    with (
        run_app(create_app(workspaces, ServerSettings(searches=1, answers=1, queue=0))) as server,
        ExitStack() as clients,
    ):
        body = {"documents": [{"id": "new", "text": "The lake of Tarn is deep."}]}
        id = server.client.post("/api/v1/documents", json=body).json()["job"]["id"]
        address = urlsplit(server.url)
        for _ in range(50):  # more than the server has threads
            client = clients.enter_context(socket.create_connection((address.hostname, address.port)))
            client.sendall(f"GET /api/v1/job/events?id={id} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
            assert client.recv(12) == b"HTTP/1.1 200"
        time.sleep(0.5)  # until each client has read the first state
        for path in ("/healthz", "/api/v1/stats"):
            assert server.client.get(path, timeout=5).status_code == 200


def test_a_client_that_disconnects_frees_the_slot_of_its_answer(tmp_path: Path) -> None:
    replies = ["word " * 500_000, "It hangs in Corven Tower [1]."]  # the first fills the buffers of a connection
    workspaces = Workspaces(open_index(ScriptedLanguageModel(replies)), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(answers=1))) as server:
        body = {"question": "Who cast the bell of Tarn?", "stream": True}
        with server.client.stream("POST", "/api/v1/ask", json=body) as response:
            assert "event: text" in response.iter_lines()
        reply = server.client.post("/api/v1/ask", json={"question": "Where does the bell hang?"}, timeout=60)
    assert reply.json()["answer"] == "It hangs in Corven Tower [1]."


def test_a_client_that_stops_a_stream_frees_its_slot_while_the_model_is_silent(tmp_path: Path) -> None:
    is_over, waiting = threading.Event(), threading.Event()

    def write(_: Prompt) -> str:
        if not waiting.is_set():
            waiting.set()
            is_over.wait(120)
        return "It hangs in Corven Tower [1]."

    workspaces = Workspaces(open_index(ScriptedLanguageModel(write)), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(answers=1))) as server:
        body = {"question": "Who cast the bell of Tarn?", "stream": True}
        with server.client.stream("POST", "/api/v1/ask", json=body) as response:
            lines = response.iter_lines()  # without a reference the connection would be closed
            assert "event: evidence" in lines
            assert waiting.wait(60)
        reply = server.client.post("/api/v1/ask", json={"question": "Where does the bell hang?"}, timeout=60)
        is_over.set()
    assert reply.json()["answer"] == "It hangs in Corven Tower [1]."


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/ask", {"question": "Who cast the bell of Tarn?"}),
        ("/v1/chat/completions", {"model": "kb", "messages": [{"role": "user", "content": "Who cast the bell?"}]}),
    ],
)
def test_a_client_that_does_not_wait_for_its_answer_frees_its_slot(
    path: str, body: dict[str, object], tmp_path: Path
) -> None:
    is_asked, is_over = threading.Event(), threading.Event()

    def wait_for_the_first(_: Prompt) -> str:
        if not is_asked.is_set():
            is_asked.set()
            is_over.wait(30)
        return "It hangs in Corven Tower [1]."

    model = ScriptedLanguageModel(wait_for_the_first)
    workspaces = Workspaces(open_index(model), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(answers=1, queue=1))) as server:
        content = json.dumps(body).encode()
        address = urlsplit(server.url)
        try:
            with socket.create_connection((address.hostname, address.port)) as client:
                head = f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
                client.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
                assert is_asked.wait(10)
            reply = server.client.post("/api/v1/ask", json={"question": "Where does the bell hang?"}, timeout=10)
        finally:
            is_over.set()
    assert reply.json()["answer"] == "It hangs in Corven Tower [1]."


def test_embeddings_stop_when_their_client_disconnects_or_their_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []

    def encode(embedder: HashingEmbedder, texts: Sequence[str], _kind: TextKind) -> FloatArray:
        batches.append(len(texts))
        time.sleep(0.3)
        return np.zeros((len(texts), embedder.dimension), dtype=np.float32)

    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")])
    monkeypatch.setattr(HashingEmbedder, "encode", encode)
    body = {"model": "kb", "input": ["word"] * 2000}
    with run_app(create_app(workspaces, ServerSettings(answer_seconds=1))) as server:
        with pytest.raises(httpx2.ReadTimeout):
            server.client.post("/v1/embeddings", json=body, timeout=0.4)
        time.sleep(1)
        assert len(batches) <= 3
        assert server.client.post("/v1/embeddings", json=body).status_code == 504
        assert len(batches) <= 8
        reply = server.client.post("/v1/embeddings", json={"model": "kb", "input": ["word"] * 70})
    assert len(reply.json()["data"]) == 70


def test_the_number_of_waiting_jobs_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MAX_WAITING_JOBS", 2)
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")], runs_jobs=False)
    with run_app(create_app(workspaces, ServerSettings())) as server:
        body = {"documents": [{"id": "new", "text": "The lake of Tarn is deep."}]}
        headers = {"Idempotency-Key": "first"}
        replies = [server.client.post("/api/v1/documents", json=body, headers=headers)]
        replies += [server.client.post("/api/v1/documents", json=body) for _ in range(2)]
        replies += [server.client.post("/api/v1/documents", json=body, headers=headers)]
    assert [reply.status_code for reply in replies] == [202, 202, 429, 202]
    assert int(replies[2].headers["Retry-After"]) > 0


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_full_disk_prevents_no_answer(
    is_stream: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @contextmanager
    def fail(_database: SqliteDatabase, seconds: float = 0.0) -> Iterator[None]:
        raise StoreUnavailableError(f"no space is left after {seconds} seconds")
        yield

    model = ScriptedLanguageModel(lambda _: "It hangs in Corven Tower [1].")
    workspaces = Workspaces(open_index(model), [build_index(tmp_path / "kb")], runs_jobs=False)
    with run_app(create_app(workspaces, ServerSettings())) as server:
        monkeypatch.setattr(SqliteDatabase, "writing", fail)
        question = {"role": "user", "content": "Where does the bell of Tarn hang?"}
        history = [question, {"role": "assistant", "content": "In Aldby."}]
        body = {"model": "kb", "messages": [*history, question], "stream": is_stream}
        reply = server.client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200
    assert "It hangs in Corven Tower [1]." in "".join(re.findall(r'"content": ?"([^"]*)"', reply.text))
    assert "error" not in reply.text
    assert "no space is left" in caplog.text


def test_a_missing_index_is_not_the_fault_of_the_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index, copy = build_index(tmp_path / "kb"), tmp_path / "copy"
    with run_app(create_app(Workspaces(open_index(), [index]), ServerSettings())) as server:
        assert server.client.get("/readyz").status_code == 200
        index.rename(copy)
        assert server.client.get("/readyz").status_code == 503
        for _ in range(2):
            reply = server.client.post("/api/v1/search", json={"question": "Who cast the bell?"})
            assert reply.status_code == 503
            assert str(tmp_path) not in reply.text
            time.sleep(1.1)  # until the keys are read again
        copy.rename(index)
        assert server.client.get("/readyz").status_code == 200
        assert server.client.post("/api/v1/search", json={"question": "Who cast the bell?"}).status_code == 200
    assert str(tmp_path) in caplog.text


@pytest.mark.parametrize(("values", "status"), [(1_400_000, 422), (1_600_000, 413)])
def test_json_of_very_many_values_is_not_parsed(values: int, status: int, tmp_path: Path) -> None:
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings())) as server:
        body = b'{"documents":[' + b",".join([b"[]"] * values) + b"]}"
        headers = {"Content-Type": "application/json"}
        reply = server.client.post("/api/v1/documents", content=body, headers=headers, timeout=60)
    assert reply.status_code == status
    assert status == 422 or "1,500,000 values" in reply.json()["detail"]


@pytest.mark.parametrize("path", ["/api/v1/search", "/v1/embeddings", "/mcp"])
def test_a_body_that_is_sent_too_slowly_is_rejected(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_BODY_SECONDS", 0.3)
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings())) as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as client:
            head = f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAccept: application/json, text/event-stream\r\n"
            client.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{".encode())
            with client.makefile("rb") as reply:
                assert reply.read().startswith(b"HTTP/1.1 408")  # up to the end of the connection


def test_a_model_that_completes_no_question_and_no_title_is_given_up_in_time(tmp_path: Path) -> None:
    is_over = threading.Event()

    def wait(_: Prompt) -> str:
        is_over.wait(30)
        return "Where does the bell hang?"

    workspaces = Workspaces(open_index(ScriptedLanguageModel(wait)), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(answers=1, answer_seconds=0.3))) as server:
        history = [{"role": "user", "content": "Who cast the bell?"}, {"role": "assistant", "content": "Ines Moreau."}]
        title = {"role": "user", "content": "### Task:\nGenerate a title.\n<chat_history>Bells</chat_history>"}
        try:
            for path, body in (
                ("/api/v1/ask", {"question": "Where does it hang?", "history": history}),
                ("/v1/chat/completions", {"model": "kb", "messages": [title]}),
            ):
                assert server.client.post(path, json=body, timeout=10).status_code == 504
        finally:
            is_over.set()


@pytest.mark.parametrize("is_stream", [False, True])
def test_clients_are_not_told_where_the_language_model_is(
    is_stream: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = LanguageModelSettings(model="gpt", base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0)
    workspaces = Workspaces(open_index(OpenAILanguageModel(settings)), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings())) as server:
        body = {"question": "Who cast the bell of Tarn?", "stream": is_stream}
        chat = {"model": "kb", "messages": [{"role": "user", "content": "Who cast the bell?"}], "stream": is_stream}
        replies = [server.client.post("/api/v1/ask", json=body), server.client.post("/v1/chat/completions", json=chat)]
    for reply in replies:
        assert "model 'gpt' cannot be reached" in reply.text
        assert "127.0.0.1" not in reply.text
    assert "127.0.0.1:9" in caplog.text


def test_clients_are_not_told_where_the_database_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailableError("the connection to postgresql://db.internal/kb failed; check the server")

    monkeypatch.setattr(Engine, "search", fail)
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings())) as server:
        chat = {"model": "kb", "messages": [{"role": "user", "content": "Who cast the bell?"}]}
        replies = [
            server.client.post("/api/v1/search", json={"question": "Who cast the bell?"}),
            server.client.post("/v1/chat/completions", json=chat),
        ]
    for reply in replies:
        assert reply.status_code == 503
        assert "the index is not available" in reply.text
        assert "db.internal" not in reply.text
    assert "db.internal" in caplog.text
