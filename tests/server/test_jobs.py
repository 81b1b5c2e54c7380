from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

import anyio

from polyad import Engine
from polyad.embedders.hashing import HashingEmbedder
from polyad.server.jobs import Job, JobRunner
from polyad.server.uploads import UploadedFile
from tests.server.serving import build_index

FILES = [UploadedFile(f"{number}.md", f"Bell {number} of Tarn rings.".encode()) for number in range(40)]


class PausedEmbedder:
    """Stops the embedder at its first call until the test lets it continue."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_embedding, self.may_continue = threading.Event(), threading.Event()
        encode = HashingEmbedder.encode

        def wait_and_encode(*arguments: Any) -> Any:
            self.is_embedding.set()
            assert self.may_continue.wait(10)
            return encode(*arguments)

        monkeypatch.setattr(HashingEmbedder, "encode", wait_and_encode)


def follow(runner: JobRunner, id: str) -> list[Job]:
    async def collect() -> list[Job]:
        return [job async for job in runner.follow(id)]

    return anyio.run(collect)


def test_a_stopped_job_ends_while_its_documents_are_embedded_and_continues_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        with monkeypatch.context() as patch:
            embedder = PausedEmbedder(patch)
            runner = JobRunner(engine)
            job = runner.submit(FILES, now=datetime.now(UTC))
            runner.start()
            assert embedder.is_embedding.wait(10)
            runner.request_stop()
            embedder.may_continue.set()
            runner.stop()
        assert runner.get(job.id).state == "queued"
        assert engine.catalogue.statistics().documents < 43
        runner = JobRunner(engine)
        runner.start()
        assert follow(runner, job.id)[-1].state == "succeeded"
        runner.stop()
        assert engine.catalogue.statistics().documents == 43


def test_a_job_that_is_cancelled_while_its_documents_are_embedded_stores_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        embedder = PausedEmbedder(monkeypatch)
        runner = JobRunner(engine)
        job = runner.submit(FILES, now=datetime.now(UTC))
        runner.start()
        assert embedder.is_embedding.wait(10)  # all documents are read
        runner.cancel(job.id)
        embedder.may_continue.set()
        assert follow(runner, job.id)[-1].state == "cancelled"
        later = runner.submit([UploadedFile("later.md", b"The lake of Tarn is deep.")], now=datetime.now(UTC))
        assert follow(runner, later.id)[-1].state == "succeeded"
        runner.stop()
        assert engine.catalogue.statistics().documents == 4
