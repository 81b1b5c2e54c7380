from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

import httpx2
import uvicorn

from polyad import Engine
from polyad.config import ServerSettings
from polyad_server import run
from polyad_server.app import create_app
from polyad_server.jobs import JobRunner
from polyad_server.run import listen
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import build_index, open_index

TERMINATE_DURING_STARTUP = """
import os, signal, sys
from polyad.cli import main

def terminate(event, arguments):
    if event == "{event}" and "{module}" in ("", arguments[0]):
        os.kill(os.getpid(), signal.SIGTERM)

sys.addaudithook(terminate)
main()
"""

LIMIT_FILES = """
import resource
from polyad.cli import main

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGTERM")
@pytest.mark.parametrize(
    ("event", "module", "arguments"),
    [
        pytest.param("import", "uvicorn", (), id="while the server is imported"),
        pytest.param("sqlite3.connect", "", ("--workers", "2"), id="while an index is opened", marks=pytest.mark.slow),
        pytest.param("import", "uvicorn.loops.asyncio", (), id="before the server runs", marks=pytest.mark.slow),
    ],
)
def test_a_server_that_is_terminated_during_startup_ends_with_status_0(
    tmp_path: Path, event: str, module: str, arguments: tuple[str, ...]
) -> None:
    store = build_index(tmp_path / "kb")
    command = [sys.executable, "-c", TERMINATE_DURING_STARTUP.format(event=event, module=module)]
    command += ["serve", "--port", "0", "--store", os.fspath(store), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (process.returncode, process.stderr) == (0, "")


def test_errors_of_libraries_are_logged_in_the_format_of_polyad(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "polyad", "serve", "--port", "0", "--store", str(build_index(tmp_path / "kb"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        try:
            address = re.search(r"at http://([\d.]+):(\d+)", process.stdout.readline())
            assert address
            with socket.create_connection((address[1], int(address[2])), timeout=30) as client:
                head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"
                client.sendall(head + b"Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{")
                time.sleep(0.5)  # until the server reads the body
            assert process.stderr.readline() == "polyad: error: Error handling POST request\n"
        finally:
            process.terminate()
        assert "ClientDisconnect" in process.stderr.read()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no limit on open files")
def test_idle_connections_exclude_nobody(tmp_path: Path) -> None:
    store = os.fspath(build_index(tmp_path / "kb"))
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); from polyad.cli import main; main()"
    )
    command = [sys.executable, "-c", limited, "serve", "--port", "0", "--store", store]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        try:
            match = re.search(r"at http://([\d.]+):(\d+)", process.stdout.readline())
            assert match
            address = (match[1], int(match[2]))
            with ExitStack() as clients:
                for _ in range(300):
                    clients.enter_context(socket.create_connection(address, timeout=30))
                client = clients.enter_context(socket.create_connection(address, timeout=30))
                client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert client.recv(12) == b"HTTP/1.1 200"
        finally:
            process.terminate()
        assert process.stderr.read() == ""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGTERM")
def test_a_stopped_server_does_not_wait_for_a_silent_model(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "polyad", "serve", "--port", "0", "--store", str(build_index(tmp_path / "kb"))]
    with socket.create_server(("127.0.0.1", 0)) as model:
        endpoint = f"http://127.0.0.1:{model.getsockname()[1]}/v1"
        environment = {**os.environ, "OPENAI_BASE_URL": endpoint, "POLYAD_SERVER_DRAIN_SECONDS": "1"}
        process = subprocess.Popen([*command, "--model", "m"], stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert process.stdout
            address = re.search(r"at http://([\d.]+):(\d+)", process.stdout.readline())
            assert address
            with socket.create_connection((address[1], int(address[2])), timeout=30) as client:
                body = b'{"question": "Who cast the bell of Tarn?"}'
                head = f"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
                client.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
                model.settimeout(30)
                connection, _ = model.accept()
                process.terminate()
                assert process.wait(20) == 0
                connection.close()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGTERM")
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_stopped_server_does_not_wait_for_a_job_whose_model_is_silent(tmp_path: Path, workers: str) -> None:
    store = build_index(tmp_path / "kb")
    command = [sys.executable, "-m", "polyad", "serve", "--port", "0", "--store", str(store), "--workers", workers]
    with socket.create_server(("127.0.0.1", 0)) as model:
        endpoint = f"http://127.0.0.1:{model.getsockname()[1]}/v1"
        environment = {**os.environ, "OPENAI_BASE_URL": endpoint, "POLYAD_SERVER_DRAIN_SECONDS": "1"}
        process = subprocess.Popen([*command, "--model", "m"], stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert process.stdout
            address = re.search(r"at (http://\S+)", process.stdout.readline())
            assert address
            body = {"documents": [{"id": "new", "text": "Uma Vance rang the bell."}], "method": "facts"}
            job = httpx2.post(f"{address[1]}/api/v1/documents", json=body, timeout=60).json()["job"]["id"]
            model.settimeout(30)
            connection, _ = model.accept()
            process.terminate()
            assert process.wait(20) == 0
            connection.close()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]
    with Engine.open(store) as engine:
        assert not JobRunner(engine).get(job).is_over, "it continues at the next start"


@pytest.mark.parametrize("is_shared", [False, True])
def test_replies_are_sent_without_waiting_for_an_acknowledgement(is_shared: bool) -> None:
    async def get_option() -> int:
        options = asyncio.get_running_loop().create_future()

        def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            options.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = listen("127.0.0.1", 0, is_shared=is_shared)
        async with await asyncio.start_server(accept, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            option: int = await asyncio.wait_for(options, 10)
            writer.close()
            return option

    assert asyncio.run(get_option())


def test_connections_that_send_no_whole_request_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_IDLE_TICKS", 2)
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")], runs_jobs=False)
    app = create_app(workspaces, ServerSettings())
    with closing(listen("127.0.0.1", 0)) as listener:
        server = run._Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=5), workspaces)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        address = listener.getsockname()
        try:
            with ExitStack() as clients:
                silent, slow, waiting = (
                    clients.enter_context(socket.create_connection(address, timeout=10)) for _ in range(3)
                )
                slow.sendall(b"GET /healthz HT")
                body = json.dumps({"documents": [{"id": "new", "text": "The lake of Tarn is deep."}]}).encode()
                head = f"POST /api/v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
                waiting.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body[:-1])
                assert (silent.recv(1), slow.recv(1)) == (b"", b"")
                time.sleep(0.5)  # some further checks
                waiting.sendall(body[-1:])
                assert waiting.recv(12) == b"HTTP/1.1 202"
        finally:
            server.should_exit = True
            thread.join(10)
