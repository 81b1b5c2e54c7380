from __future__ import annotations

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

import anyio
import psycopg

from polyad import Engine
from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import NotFoundError
from polyad_server import jobs
from polyad_server.app import create_app
from polyad_server.jobs import JOBS, MAX_INTERRUPTIONS, Job, JobRunner
from polyad_server.problems import RequestError
from polyad_server.uploads import UploadedFile
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import build_index, open_index, run_app
from tests.postgres_server import get_server, get_url
from tests.waiting import wait_until

FILES = [UploadedFile(f"{number}.md", f"Bell {number} of Tarn rings.".encode()) for number in range(40)]


@pytest.fixture(params=["folder", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """An index in a folder, or in PostgreSQL."""
    return build_index(tmp_path / "kb") if request.param == "folder" else build_index(get_url(tmp_path))


class PausedEmbedder:
    """Stops the embedder at its first call until the test lets it continue."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_embedding, self.may_continue = threading.Event(), threading.Event()
        self.threads: set[threading.Thread] = set()
        encode = HashingEmbedder.encode

        def wait_and_encode(*arguments: Any) -> Any:
            self.is_embedding.set()
            self.threads.add(threading.current_thread())
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


def test_a_job_that_ends_its_process_again_and_again_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end_process(*_: object) -> None:
        raise KeyboardInterrupt  # leaves the job as a killed process does

    with Engine.open(build_index(tmp_path / "kb")) as engine:
        job = JobRunner(engine).submit(FILES[:2], now=datetime.now(UTC))
        with monkeypatch.context() as patch:
            patch.setattr("polyad_server.jobs.read_uploads", end_process)
            for _ in range(1 + MAX_INTERRUPTIONS):
                with pytest.raises(KeyboardInterrupt):
                    JobRunner(engine)._run_next_job()
        JobRunner(engine)._run_next_job()
        ended = JobRunner(engine).get(job.id)
        assert (ended.state, ended.message.split(";")[0]) == (
            "failed",
            "the server ended 4 times while it ran this job, after 0 documents",
        )
        assert not JobRunner(engine)._run_next_job()


def test_two_servers_run_a_job_once(place: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine.open(place) as engine, Engine.open(place) as other_engine:
        embedder = PausedEmbedder(monkeypatch)
        runner, other = JobRunner(engine), JobRunner(other_engine)
        job = runner.submit(FILES, now=datetime.now(UTC))
        runner.start()
        assert embedder.is_embedding.wait(10)
        other.start()
        time.sleep(1.5)  # until the other server has seen the job
        assert len(embedder.threads) == 1
        embedder.may_continue.set()
        assert follow(other, job.id)[-1].state == "succeeded"
        later = runner.submit([UploadedFile("later.md", b"The lake of Tarn is deep.")], now=datetime.now(UTC))
        runner.stop()
        assert follow(other, later.id)[-1].state == "succeeded", "the other server takes over"
        other.stop()
        report = runner.get(job.id).report
        assert report
        assert (report["added"], report["unchanged"]) == (len(FILES), 0)


def test_a_server_without_connection_leaves_its_job_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = build_index(get_url(tmp_path))
    with Engine.open(place) as engine, Engine.open(place) as other_engine:
        embedder = PausedEmbedder(monkeypatch)
        runner, other = JobRunner(engine), JobRunner(other_engine)
        job = runner.submit(FILES, now=datetime.now(UTC))
        runner.start()
        assert embedder.is_embedding.wait(10)
        query = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
        with psycopg.connect(get_server().get_url(), autocommit=True) as connection:
            assert connection.execute(query).rowcount == 1
        other.start()
        wait_until(lambda: len(embedder.threads) == 2)
        embedder.may_continue.set()
        assert follow(other, job.id)[-1].state == "succeeded"
        runner.stop()
        other.stop()
        assert other.get(job.id).state == "succeeded"
        assert engine.catalogue.statistics().documents == 3 + len(FILES)


def test_an_idempotency_key_belongs_to_one_request_of_all_servers(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine.open(place) as engine, Engine.open(place) as other_engine:
        get_values = type(engine.values).get_values

        def get_values_slowly(*arguments: Any) -> Any:
            values = get_values(*arguments)
            time.sleep(0.2)
            return values

        monkeypatch.setattr(type(engine.values), "get_values", get_values_slowly)

        def submit(runner: JobRunner, file: UploadedFile) -> int:
            try:
                runner.submit([file], idempotency_key="upload", now=datetime.now(UTC))
            except RequestError as error:
                return error.status
            return 202

        with ThreadPoolExecutor() as threads:
            runners = [JobRunner(engine), JobRunner(other_engine)]
            assert sorted(threads.map(submit, runners, FILES)) == [202, 409]


@pytest.mark.parametrize("hours", [0, 1])
def test_jobs_run_in_the_order_of_their_requests_if_the_clock_is_set_back(tmp_path: Path, hours: int) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        runner, now = JobRunner(engine), datetime.now(UTC)
        texts = [f"Edition {number} of the bell of Tarn." for number in range(6)]
        jobs = [
            runner.submit([UploadedFile("bell.md", text.encode())], now=now - number * timedelta(hours=hours))
            for number, text in enumerate(texts)
        ]
        assert [job.id for job in runner.list_all()] == [job.id for job in reversed(jobs)]
        runner.start()
        follow(runner, jobs[-1].id)
        runner.stop()
        assert engine.catalogue.document("bell.md").text == texts[-1]


def test_a_record_that_cannot_be_read_fails_alone(tmp_path: Path) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        runner = JobRunner(engine)
        newer, plain = (runner.submit([file], now=datetime.now(UTC)) for file in FILES[:2])
        stored = json.loads(engine.values.get_values(JOBS, [newer.id])[newer.id])
        records = {newer.id: json.dumps({**stored, "priority": 3}).encode(), "odd": b'{"id": "odd"}', "cut": b"{"}
        engine.values.put_values(JOBS, records)
        assert [each.state for each in runner.list_all()].count("failed") == 2

        runner.start()
        states = [follow(runner, id)[-1].state for id in (newer.id, plain.id, "odd", "cut")]
        assert runner.stop(10)

        assert states == ["succeeded", "succeeded", "failed", "failed"]
        assert engine.catalogue.statistics().documents == 5
        assert not engine.values.get_values(JOBS)
        assert "send its documents again" in runner.get("odd").message


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_thread_is_reported_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run_app(create_app(Workspaces(open_index(), [build_index(tmp_path / "kb")]))) as server:
        with monkeypatch.context() as patch:
            patch.setattr(JobRunner, "_run_next_job", lambda _: sys.exit())
            wait_until(lambda: server.client.get("/readyz").status_code == 503)
            assert server.client.get("/readyz").json()["status"] == "indexing fails"
        job = server.client.post("/api/v1/documents", json={"documents": [{"id": "a", "text": "Amber."}]}).json()["job"]
        wait_until(
            lambda: server.client.get("/api/v1/job", params={"id": job["id"]}).json()["job"]["state"] == "succeeded"
        )
        assert server.client.get("/readyz").status_code == 200


def test_ended_jobs_leave_the_queue_and_the_oldest_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MAX_ENDED_JOBS", 3)
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        runner = JobRunner(engine)
        submitted = [runner.submit([file], now=datetime.now(UTC)) for file in FILES[:4]]
        ended = json.dumps(asdict(replace(submitted[0], id="earlier", state="succeeded"))).encode()
        engine.values.put_values(JOBS, {"earlier": ended})  # as earlier versions stored it
        runner.start()
        follow(runner, submitted[-1].id)
        assert runner.stop(10)

        assert not engine.values.get_values(JOBS)
        assert [job.id for job in runner.list_all()] == [job.id for job in submitted[:0:-1]]
        assert runner.count_states() == {"succeeded": 3}
        with pytest.raises(NotFoundError):
            runner.get("earlier")


@pytest.mark.parametrize("name", ["0.md", "records.jsonl"])
def test_a_document_that_is_removed_while_its_job_waits_does_not_appear(tmp_path: Path, name: str) -> None:
    record = b'{"_id": "0.md", "title": "", "text": "Bell 0 of Tarn rings."}'
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        runner = JobRunner(engine)
        job = runner.submit([UploadedFile(name, record), FILES[1]], now=datetime.now(UTC))
        with pytest.raises(NotFoundError):
            runner.remove_documents(["unknown"])
        runner.remove_documents(["0.md"])
        later = runner.submit([UploadedFile("2.md", b"Later.")], now=datetime.now(UTC))
        runner.start()
        ended = follow(runner, job.id)[-1]
        follow(runner, later.id)
        assert runner.stop(10)

        assert set(engine.catalogue.digests(["0.md", "1.md", "2.md"])) == {"1.md", "2.md"}
        assert ended.state == "succeeded"
        assert "removed" in ended.results[0]["reason"]


def test_a_document_that_is_removed_while_it_is_embedded_is_removed_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        paused, runner = PausedEmbedder(monkeypatch), JobRunner(engine)
        job = runner.submit(FILES[:1], now=datetime.now(UTC))
        runner.start()
        assert paused.is_embedding.wait(10)
        runner.remove_documents(["0.md"])
        paused.may_continue.set()
        follow(runner, job.id)
        assert runner.stop(10)

        assert not engine.catalogue.digests(["0.md"])
