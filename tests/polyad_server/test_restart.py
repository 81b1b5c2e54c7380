"""A server that is killed while it indexes continues the job after its next start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

import httpx2

from polyad import Engine
from polyad.config import ReadSettings
from polyad_server.uploads import UploadedFile, read_uploads
from tests.waiting import wait_until

FILES = [
    UploadedFile(
        f"ship-{number:02}.md",
        "\n\n".join(
            f"Captain Larsen{number} sailed to Port Lisle{day} on day {day}. " * 3 for day in range(12)
        ).encode(),
    )
    for number in range(16)
]

SERVE = """
import time
from polyad.cli import main
from polyad.indexing import indexer

put = indexer.Indexer._store_documents

def pause(*arguments):
    time.sleep(0.2)
    return put(*arguments)

indexer.BATCH_CHARACTERS = 1000
indexer.Indexer._store_documents = pause
main()
"""
"""Serves with small batches, each of which takes long enough to be interrupted."""

QUESTION = "Who sailed to Port Lisle7?"
SIZES = ("documents", "passages", "entities", "hyperedges", "incidences", "tokens")


def test_a_job_continues_after_the_server_was_killed_and_indexes_nothing_twice(tmp_path: Path) -> None:
    store = tmp_path / "kb"
    Engine.open(store, embedder="hashing:64").close()
    with run_server(store) as (client, process):
        job = submit(client)
        wait_until(lambda: count_documents(client) > 0)
        process.kill()
        process.wait()
    with Engine.open(store, create=False) as engine:
        complete = engine.catalogue.statistics().documents
    assert 0 < complete < len(FILES)
    with run_server(store) as (client, _):
        assert submit(client) == job, "a client that sends the request again gets the same job"
        wait_until(lambda: read_job(client, job)["state"] == "succeeded")
        report = read_job(client, job)["report"]
        assert len(client.get("/api/v1/jobs").json()["jobs"]) == 1
    assert (report["added"], report["updated"], report["unchanged"]) == (len(FILES) - complete, 0, complete)
    with Engine.open(store, create=False) as resumed, Engine.open(tmp_path / "fresh", embedder="hashing:64") as fresh:
        fresh.index_documents(read_uploads(FILES, {}, "", ReadSettings()))
        statistics, expected = resumed.catalogue.statistics(), fresh.catalogue.statistics()
        assert [getattr(statistics, size) for size in SIZES] == [getattr(expected, size) for size in SIZES]
        passages = [hit.passage.id for hit in resumed.search(QUESTION, k=20).passages]
        assert passages == [hit.passage.id for hit in fresh.search(QUESTION, k=20).passages]


@contextmanager
def run_server(store: Path) -> Iterator[tuple[httpx2.Client, subprocess.Popen[str]]]:
    command = [sys.executable, "-c", SERVE, "serve", "--port", "0", "--store", os.fspath(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            address = re.search(r"at (http://\S+)", process.stdout.readline())
            assert address
            with httpx2.Client(base_url=address[1], timeout=60) as client:
                yield client, process
        finally:
            process.terminate()


def submit(client: httpx2.Client) -> str:
    files = [("files", (file.name, file.content)) for file in FILES]
    response = client.post("/api/v1/documents/files", files=files, headers={"Idempotency-Key": "ships"})
    assert response.status_code == 202
    return str(response.json()["job"]["id"])


def read_job(client: httpx2.Client, id: str) -> dict[str, Any]:
    return dict(client.get("/api/v1/job", params={"id": id}).json()["job"])


def count_documents(client: httpx2.Client) -> int:
    return int(client.get("/api/v1/stats").json()["documents"])
