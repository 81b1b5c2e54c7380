from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

import httpx2

from polyad import Document
from polyad.config import EncoderSettings
from polyad_server.encoder_process import share_remote_embedders
from tests.polyad_server.serving import build_index
from tests.waiting import wait_until

FILES = {"files": ("b.md", b"Uma Vance rang the bell of Sedge.")}
QUESTION = {"question": "Who cast the bell of Tarn?"}


@contextmanager
def run_workers(*arguments: str) -> Iterator[tuple[httpx2.Client, subprocess.Popen[str]]]:
    """Run a server of two workers; each request has a connection of its own."""
    command = [sys.executable, "-m", "polyad", "serve", "--port", "0", "--workers", "2", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        address = re.search(r"at (http://\S+)", process.stdout.readline())
        assert address
        limits = httpx2.Limits(max_keepalive_connections=0)
        with httpx2.Client(base_url=address[1], timeout=60, limits=limits) as client:
            assert client.get("/readyz").status_code == 200
            yield client, process
    finally:
        process.terminate()
        assert process.wait(30) == 0
        wait_until(lambda: not list_children(process.pid))


def list_children(parent: int) -> dict[int, int]:
    """Return the resident memory of the child processes by pid."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            values = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(values[1]) == parent:
            children[int(path.parent.name)] = int(values[21])
    return children


pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="lists processes by /proc")


def test_workers_search_index_start_again_and_end_with_status_0(tmp_path: Path) -> None:
    with run_workers("--store", str(build_index(tmp_path / "kb"))) as (client, process):
        replies = [client.post("/api/v1/search", json=QUESTION) for _ in range(20)]
        assert {reply.status_code for reply in replies} == {200}
        assert len({reply.json()["hits"][0]["document_id"] for reply in replies}) == 1
        job = client.post("/api/v1/documents/files", files=FILES).json()["job"]
        wait_until(lambda: client.get("/api/v1/job", params={"id": job["id"]}).json()["job"]["state"] == "succeeded")
        replies = [client.post("/api/v1/search", json={"question": "Who rang the bell of Sedge?"}) for _ in range(20)]
        assert all("Uma Vance" in reply.text for reply in replies)
        wait_until(lambda: len(list_children(process.pid)) == 4)
        killed = min(list_children(process.pid))
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: len(set(list_children(process.pid)) - {killed}) == 4)
        assert client.post("/api/v1/search", json=QUESTION).status_code == 200


@pytest.mark.slow
def test_each_killed_process_is_started_again_and_the_others_answer_meanwhile(tmp_path: Path) -> None:
    with run_workers("--store", str(build_index(tmp_path / "kb"))) as (client, process):
        wait_until(lambda: len(list_children(process.pid)) == 4)
        for pid in list_children(process.pid):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: len(set(list_children(process.pid)) - {pid}) == 4)  # type: ignore[misc]
            assert client.post("/api/v1/search", json=QUESTION).status_code == 200
    assert process.stderr
    lines = process.stderr.read().splitlines()
    assert len(lines) == 4
    assert all(line.endswith("ended (SIGKILL) and is started again") for line in lines)


@pytest.mark.slow
def test_a_deleted_workspace_is_missing_in_all_workers_and_may_be_created_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        build_index(tmp_path / name, (Document("a.md", name, "The bell of Tarn."),))
    with run_workers("--root", str(tmp_path)) as (client, _):
        url = "/api/v1/search?workspace=one"
        assert {client.post(url, json=QUESTION).status_code for _ in range(10)} == {200}
        assert client.delete("/api/v1/workspaces", params={"workspace": "one"}).is_success
        assert {client.post(url, json=QUESTION).status_code for _ in range(20)} == {404}
        build_index(tmp_path / "one", (Document("b.md", "new", "The bell of Sedge."),))
        replies = [client.post(url, json=QUESTION) for _ in range(20)]
        assert all("Sedge" in reply.text for reply in replies)


@pytest.mark.slow
def test_the_processes_end_with_a_killed_supervisor(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "polyad", "serve", "--port", "0", "--workers", "2"]
    command += ["--store", str(build_index(tmp_path / "kb"))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_until(lambda: len(list_children(process.pid)) == 4)
    children = set(list_children(process.pid))
    process.kill()
    process.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))


def test_without_the_encoder_process_a_question_is_embedded_locally(tmp_path: Path) -> None:
    embedder = share_remote_embedders(tmp_path / "missing").get("hashing:64", EncoderSettings())
    assert embedder.encode(["a", "b"], "query").shape == (2, 64)
    assert embedder.dimension == 64
