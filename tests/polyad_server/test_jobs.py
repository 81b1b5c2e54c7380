from __future__ import annotations

import json
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

import anyio
import psycopg

from polyad import Engine
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine.jobs import Worker
from polyad.errors import NotFoundError
from polyad.protocols.jobs import Job
from polyad.stores.sqlite import JOBS_FILE_NAME
from polyad_server import job_kinds
from polyad_server.app import create_app
from polyad_server.jobs import JobRunner, format_job
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
        assert runner.get(job.run).state == "queued"
        assert engine.catalogue.statistics().documents < 43
        runner = JobRunner(engine)
        runner.start()
        assert follow(runner, job.run)[-1].state == "done"
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
        runner.cancel(job.run)
        embedder.may_continue.set()
        assert follow(runner, job.run)[-1].state == "cancelled"
        later = runner.submit([UploadedFile("later.md", b"The lake of Tarn is deep.")], now=datetime.now(UTC))
        assert follow(runner, later.run)[-1].state == "done"
        runner.stop()
        assert engine.catalogue.statistics().documents == 4


def test_a_job_that_ends_its_process_again_and_again_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end_process(*_: object) -> None:
        raise KeyboardInterrupt  # leaves the job as a killed process does

    with Engine.open(build_index(tmp_path / "kb")) as engine:
        job = JobRunner(engine).submit(FILES[:2], now=datetime.now(UTC))
        with monkeypatch.context() as patch:
            patch.setattr("polyad_server.job_kinds.read_uploads", end_process)
            for _ in range(1 + engine.components.settings.worker.max_attempts):
                with pytest.raises(KeyboardInterrupt):
                    JobRunner(engine).worker.run_next()
        assert not JobRunner(engine).worker.run_next()
        ended = format_job(JobRunner(engine).get(job.run))
        assert (ended["state"], ended["done"], bool(ended["ended"])) == ("failed", 0, True)
        assert {each["state"] for each in ended["results"]} == {"failed"}
        assert "3 times" in ended["message"]


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
        assert follow(other, job.run)[-1].state == "done"
        later = runner.submit([UploadedFile("later.md", b"The lake of Tarn is deep.")], now=datetime.now(UTC))
        runner.stop()
        assert follow(other, later.run)[-1].state == "done", "the other server takes over"
        other.stop()
        report = runner.get(job.run).outcome["report"]
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
        assert follow(other, job.run)[-1].state == "done"
        runner.stop()
        other.stop()
        assert other.get(job.run).state == "done"
        assert engine.catalogue.statistics().documents == 3 + len(FILES)


def test_an_idempotency_key_belongs_to_one_request_of_all_servers(place: Path | str) -> None:
    with Engine.open(place) as engine, Engine.open(place) as other_engine:

        def submit(runner: JobRunner, file: UploadedFile) -> int:
            try:
                runner.submit([file], idempotency_key="upload", now=datetime.now(UTC))
            except RequestError as error:
                return error.status
            return 202

        with ThreadPoolExecutor() as threads:
            runners = [JobRunner(engine), JobRunner(other_engine)]
            assert sorted(threads.map(submit, runners, FILES)) == [202, 409]
        assert submit(runners[0], FILES[2]) == 409
        [job] = runners[0].list_all()
        assert len(job.outcome["files"]) == 1


@pytest.mark.parametrize("hours", [0, 1])
def test_jobs_run_in_the_order_of_their_requests_if_the_clock_is_set_back(tmp_path: Path, hours: int) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        runner, now = JobRunner(engine), datetime.now(UTC)
        texts = [f"Edition {number} of the bell of Tarn." for number in range(6)]
        jobs = [
            runner.submit([UploadedFile("bell.md", text.encode())], now=now - number * timedelta(hours=hours))
            for number, text in enumerate(texts)
        ]
        assert [job.run for job in runner.list_all()] == [job.run for job in reversed(jobs)]
        runner.start()
        follow(runner, jobs[-1].run)
        runner.stop()
        assert engine.catalogue.document("bell.md").text == texts[-1]


def test_a_record_that_cannot_be_read_fails_alone(tmp_path: Path) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        runner = JobRunner(engine)
        newer, odd, cut, plain = (runner.submit([file], now=datetime.now(UTC)) for file in FILES[:4])
        with closing(sqlite3.connect(tmp_path / "kb" / JOBS_FILE_NAME, isolation_level=None)) as connection:
            for job, outcome in (
                (newer, json.dumps({**newer.outcome, "priority": 3})),
                (odd, '{"id": "odd"}'),
                (cut, "{"),
            ):
                connection.execute("UPDATE job SET outcome = ? WHERE run = ?", [outcome, job.run])
        assert [format_job(each)["state"] for each in runner.list_all()] == ["queued"] * 4

        runner.start()
        states = [follow(runner, job.run)[-1].state for job in (newer, plain, odd, cut)]
        assert runner.stop(10)

        assert states == ["done", "done", "failed", "failed"]
        assert engine.catalogue.statistics().documents == 5
        assert "send its documents again" in runner.get(odd.run).reason


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_thread_is_reported_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run_app(create_app(Workspaces(open_index(), [build_index(tmp_path / "kb")]))) as server:
        with monkeypatch.context() as patch:
            patch.setattr(Worker, "run_next", lambda _: sys.exit())
            wait_until(lambda: server.client.get("/readyz").status_code == 503)
            assert server.client.get("/readyz").json()["status"] == "indexing fails"
        job = server.client.post("/api/v1/documents", json={"documents": [{"id": "a", "text": "Amber."}]}).json()["job"]
        wait_until(
            lambda: server.client.get("/api/v1/job", params={"id": job["id"]}).json()["job"]["state"] == "succeeded"
        )
        assert server.client.get("/readyz").status_code == 200


def test_the_oldest_ended_jobs_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_kinds, "MAX_ENDED_JOBS", 3)
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        runner = JobRunner(engine)
        submitted = [runner.submit([file], now=datetime.now(UTC)) for file in FILES[:5]]
        runner.cancel(submitted[3].run)
        runner.start()
        follow(runner, submitted[-1].run)
        assert runner.stop(10)

        assert [job.run for job in runner.list_all()] == [job.run for job in submitted[:1:-1]]
        assert runner.count_states() == {"succeeded": 2, "cancelled": 1}
        with pytest.raises(NotFoundError):
            runner.get(submitted[0].run)


def test_jobs_of_earlier_versions_are_deleted_from_the_index(tmp_path: Path) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        for name in ("server-jobs", "server-uploads"):
            engine.values.put_values(name, {"a": b"{}"})
        runner = JobRunner(engine)
        runner.start()
        assert runner.stop(10)
        assert not engine.values.get_values("server-jobs") | engine.values.get_values("server-uploads")


def test_a_worker_without_a_server_takes_uploads(place: Path | str) -> None:
    with Engine.open(place) as engine, Engine.open(place) as other_engine:
        runner = JobRunner(engine)
        jobs = [runner.submit([file], now=datetime.now(UTC)) for file in FILES[:2]]
        assert Worker(other_engine, job_kinds.REQUEST_KINDS).run(until_idle=True) == 2
        assert {runner.get(job.run).state for job in jobs} == {"done"}
        assert engine.catalogue.statistics().documents == 5


def test_a_check_is_a_job(tmp_path: Path) -> None:
    with run_app(create_app(Workspaces(open_index(), [build_index(tmp_path / "kb")]))) as server:
        job = server.client.post("/api/v1/check").json()["job"]
        events = server.client.get("/api/v1/job/events", params={"id": job["id"]}).text
        ended = json.loads(events.split("data: ")[-1].splitlines()[0])
        assert (ended["kind"], ended["state"], ended["report"]["damage"]) == ("check", "succeeded", [])


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
        ended = follow(runner, job.run)[-1]
        follow(runner, later.run)
        assert runner.stop(10)

        assert set(engine.catalogue.digests(["0.md", "1.md", "2.md"])) == {"1.md", "2.md"}
        assert ended.state == "done"
        assert "removed" in ended.outcome["results"][0]["reason"]


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
        follow(runner, job.run)
        assert runner.stop(10)

        assert not engine.catalogue.digests(["0.md"])
