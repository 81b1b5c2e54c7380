from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from polyad import Engine
from polyad.embedders.hashing import HashingEmbedder
from polyad.server.jobs import JobRunner
from polyad.server.uploads import UploadedFile
from tests.server.serving import build_index


def test_a_stopped_job_ends_while_its_documents_are_embedded_and_continues_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [UploadedFile(f"{number}.md", f"Bell {number} of Tarn rings.".encode()) for number in range(40)]
    is_embedding, may_continue = threading.Event(), threading.Event()
    encode = HashingEmbedder.encode

    def wait_and_encode(*arguments: Any) -> Any:
        is_embedding.set()
        assert may_continue.wait(10)
        return encode(*arguments)

    with Engine.open(build_index(tmp_path / "kb")) as engine:
        with monkeypatch.context() as patch:
            patch.setattr(HashingEmbedder, "encode", wait_and_encode)
            runner = JobRunner(engine)
            job = runner.submit(files, now=datetime.now(UTC))
            runner.start()
            assert is_embedding.wait(10)
            runner.request_stop()
            may_continue.set()
            runner.stop()
        assert runner.get(job.id).state == "queued"
        assert engine.catalogue.statistics().documents < 43
        runner = JobRunner(engine)
        runner.start()
        assert list(runner.follow(job.id))[-1].state == "succeeded"
        runner.stop()
        assert engine.catalogue.statistics().documents == 43
