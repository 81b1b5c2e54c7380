"""Workers on an index in PostgreSQL: the index of one process, whichever worker is killed when."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from polyad.config import LanguageModelSettings, WorkerSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine, loaders
from polyad.engine.jobs import Worker
from polyad.engine.settings import Settings
from polyad.engine.workers import STEPS, SharedLimitLoader, WorkerRun
from polyad.errors import ConfigurationError, NoMoreRepliesError
from polyad.indexing.run import IndexReport
from polyad.language_models.scripted import Request, extract_passage
from polyad.model import FloatArray, IndexedDocument
from polyad.protocols.components import TextKind, silent
from polyad.protocols.jobs import Job
from polyad.protocols.store import Store
from polyad.stores.postgres.address import DatabaseAddress
from polyad.stores.postgres.database import PostgresDatabase
from polyad.stores.postgres.jobs import PostgresJobQueue
from polyad.stores.postgres.rate_limit import SharedRateLimiter
from polyad.stores.postgres.store import PostgresStore
from tests.postgres_server import get_url
from tests.scripted_server import ScriptedServer

SETTINGS = Settings(worker=WorkerSettings(lease_seconds=2))


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a workspace without an index. The working folder has a folder of files."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(12):
        text = f"Ines Moreau met Anna {number} in Oslo.\n\nShe came from Aldby in {1900 + number}.\n\n"
        (folder / f"{number}.txt").write_text(text * 5)
    (folder / "people.jsonl").write_text('{"_id": "ada", "text": "Ada Byron wrote to Charles Babbage."}\n')
    (folder / "damaged.pdf").write_bytes(b"%PDF-1.7\nnothing")
    (folder / "photo.jpeg").write_bytes(b"")
    return get_url(tmp_path)


def open_engine(place: str | Path, server: ScriptedServer | None = None, **limits: Any) -> Engine:
    model = LanguageModelSettings(model="m", base_url=server.base_url, api_key="k", **limits) if server else None
    loader: loaders.Loader = SharedLimitLoader(place) if isinstance(place, str) else loaders
    return Engine.open(place, embedder=HashingEmbedder(16), language_model=model, settings=SETTINGS, loader=loader)


def index(
    url: str,
    server: ScriptedServer | None = None,
    paths: Sequence[str] = ("files",),
    *,
    workers: int = 2,
    prune: bool = False,
    **limits: Any,
) -> IndexReport:
    """Index files with workers that are threads."""
    errors: list[Exception] = []

    def raise_errors(done: int, total: int | None, message: str) -> None:
        if errors:
            raise errors[0]

    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(open_engine(url, server))
        for _ in range(workers):
            worker = Worker(stack.enter_context(open_engine(url, server, **limits)), STEPS)
            worker.name = f"thread:{id(worker)}"
            stack.enter_context(running(worker, errors))
        run = WorkerRun(engine, start_nothing, 0)
        return run.index([Path(path) for path in paths], "facts" if server else "", raise_errors, prune=prune)


@contextlib.contextmanager
def running(worker: Worker, errors: list[Exception]) -> Iterator[None]:
    """Run a worker in a thread, and collect its error."""

    def run() -> None:
        try:
            worker.run()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join()


def start_nothing() -> subprocess.Popen[bytes]:
    raise AssertionError("no process of this machine is needed")


def contents(place: str | Path) -> list[object]:
    """Return everything about the documents of an index but the time when they were indexed."""
    with Engine.open(place, create=False) as engine:
        store: Store = engine.values  # type: ignore[assignment]  # the store of an engine is the store of its values
        with store.read_transaction() as transaction:
            documents = transaction.get(IndexedDocument)
    return [
        (
            document.document,
            document.digest,
            [
                (
                    item.passage,
                    item.vector.tobytes(),
                    [(edge.hyperedge, edge.incidences, edge.vector.tobytes()) for edge in item.hyperedges],
                )
                for item in document.passages
            ],
        )
        for document in documents.values()
    ]


def state_fact(request: Request) -> str:
    """Reply with a fact about the passage of a request."""
    words = extract_passage(str(request["messages"][-1]["content"])).split()
    fact = {"text": " ".join(words[:5]), "entities": [words[0], "Oslo"], "score": 9}
    return json.dumps({"facts": [fact], "entities": []})


def get_queue(engine: Engine) -> PostgresJobQueue:
    assert isinstance(engine.values, PostgresStore)
    return engine.values.jobs


def test_the_index_equals_that_of_one_process(url: str, tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        alone = engine.index("files")
    report = index(url)
    assert (report.counts.added, report.counts.passages, report.counts.hyperedges) == (
        alone.counts.added,
        alone.counts.passages,
        alone.counts.hyperedges,
    )
    assert (report.failures, report.skipped) == (alone.failures, alone.skipped)
    assert contents(url) == contents(tmp_path / "kb")
    assert index(url).counts.unchanged == 13


def test_what_documents_leave_out_is_counted(url: str) -> None:
    for name in ("a", "b"):
        page = f"<nav>Home and search</nav><main><h1>Pump {name}</h1><p>It runs.</p></main>"
        Path(f"files/{name}.html").write_text(page, encoding="utf-8")
    assert index(url).counts.notes == {"removed texts of site navigation": 2}


def test_facts_equal_those_of_one_process_and_each_reply_is_paid_once(url: str, tmp_path: Path) -> None:
    for copy in ("copy", "another copy"):  # the same passages, which two workers may read at the same time
        (tmp_path / "files" / f"{copy}.txt").write_text((tmp_path / "files" / "1.txt").read_text())
    with ScriptedServer(state_fact, delay=0.05) as server:
        with open_engine(tmp_path / "kb", server) as engine:
            engine.index("files", method="facts")
        requests = len(server.requests)
        report = index(url, server, workers=4)
        assert len(server.requests) == 2 * requests
        assert report.usage.calls == requests
        assert contents(url) == contents(tmp_path / "kb")
        assert index(url, server).counts.unchanged == 15
        assert len(server.requests) == 2 * requests


def test_removed_files_are_pruned_and_changed_files_updated(url: str, tmp_path: Path) -> None:
    index(url)
    (tmp_path / "files" / "1.txt").unlink()
    (tmp_path / "files" / "2.txt").write_text("Bo Ray was born in Aldby.")
    assert index(url).missing == ("files/1.txt",)
    report = index(url, prune=True)
    assert (report.missing, report.is_pruned) == (("files/1.txt",), True)
    assert "files/1.txt" not in [document[0].id for document in contents(url)]  # type: ignore[index]
    assert [document[0].text for document in contents(url) if document[0].id == "files/2.txt"] == [  # type: ignore[index]
        "Bo Ray was born in Aldby."
    ]


def test_a_document_with_the_id_of_another_file_is_a_failure_as_in_one_process(url: str, tmp_path: Path) -> None:
    (tmp_path / "files" / "more.jsonl").write_text(
        '{"_id": "ada", "text": "Ada Byron wrote to Charles Babbage."}\n{"_id": "bo", "text": "Bo Ray was born."}\n'
    )
    (tmp_path / "files" / "others.jsonl").write_text(
        '{"_id": "ada", "text": "Ada Ray was born."}\n{"_id": "bo", "text": "Bo was born."}\n' * 2
    )
    paths = ["files/people.jsonl", "files/more.jsonl", "files/others.jsonl"]
    with open_engine(tmp_path / "kb") as engine:
        alone = engine.index(paths)
    assert [failure.id for failure in alone.failures] == ["ada", "bo"] * 2
    together = index(url, paths=paths, workers=1)
    assert (together.failures, together.counts.added) == (alone.failures, alone.counts.added)
    assert contents(url) == contents(tmp_path / "kb")
    apart = index(url, paths=paths, workers=3)
    assert [failure.id for failure in apart.failures if "has the id of an earlier document" in failure.reason]


def test_a_document_whose_extraction_fails_three_times_is_stored_without_facts_as_by_one_process(
    url: str, tmp_path: Path
) -> None:
    def reply(request: Request) -> str:
        return "nothing usable" if "Anna 7 " in json.dumps(request) else state_fact(request)

    with ScriptedServer(reply) as server:
        report = index(url, server)
        request_count = sum("Anna 7 " in json.dumps(request.body) for request in server.requests)
        with open_engine(tmp_path / "kb", server) as engine:
            alone = engine.index("files", method="facts")
        failures = {failure.id: failure.reason for failure in report.failures}
        assert failures == {failure.id: failure.reason for failure in alone.failures}
        assert "files/7.txt#0000" in failures
        assert contents(url) == contents(tmp_path / "kb")
        assert request_count >= 3
        before = len(server.requests)
        assert {failure.id for failure in index(url, server).failures} == failures.keys()
        assert len(server.requests) > before, "the next run asks again about the passage"


def test_a_document_that_cannot_be_embedded_is_set_aside_and_named(url: str) -> None:
    class Embedder(HashingEmbedder):
        """An embedder that fails for one document."""

        def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
            if any("Anna 7 " in text for text in texts):
                raise ValueError("no vector")
            return super().encode(texts, kind)

    with (
        open_engine(url) as engine,
        Engine.open(url, embedder=Embedder(16), settings=SETTINGS) as failing,
        running(Worker(failing, STEPS), []),
    ):
        report = WorkerRun(engine, start_nothing, 0).index([Path("files")], "", silent, prune=False)
    reasons = {failure.id: failure.reason for failure in report.failures}
    assert "set aside" in reasons["files/7.txt"]
    assert len(contents(url)) == 12


def test_a_document_that_ends_processes_is_found_and_set_aside(url: str) -> None:
    """Only attempts that have no other job count, so the neighbours of the document are not set aside."""
    with open_engine(url) as engine:
        queue = get_queue(engine)
        queue.add([Job(run="run", kind="embed", name=f"document {n}", content="{}", size=10) for n in range(40)])
        assert [job.name for job in queue.take(["embed"], "first", 0.0, 3)] == [f"document {n}" for n in range(5)]
        attempts: list[str] = []
        while jobs := queue.take(["embed"], "another", 0.0, 3):
            names = [job.name for job in jobs]
            if names == ["document 2"]:
                attempts.append("document 2")
            else:
                assert "document 2" not in names
                queue.finish("another", jobs, {name: {"added": 1} for name in names})
        assert attempts.count("document 2") == 3
        assert queue.count("run") == {"done": 39, "failed": 1}
        [failed] = [job for job in queue.list("run") if job.state == "failed"]
        assert "3 times" in failed.reason


def test_a_worker_whose_lease_expired_stores_nothing(url: str, tmp_path: Path) -> None:
    with open_engine(url) as engine, open_engine(url) as other:
        queue = get_queue(engine)
        document = {"id": "a", "title": "", "text": "Ada met Bo.", "source": "", "url": "", "metadata": {}}
        content = json.dumps({**document, "sections": [], "places": [], "arguments": []})
        queue.add([Job(run="run", kind="embed", name="a", method="semantic-units", content=content, size=11)])
        late, worker = Worker(engine, STEPS), Worker(other, STEPS)
        late.name, worker.name = "late", "worker"
        jobs = queue.take(["embed"], "late", 0.0, 3)
        [job] = queue.take(["embed"], "worker", 60.0, 3)
        late._process_jobs(jobs)
        assert contents(url) == []
        worker._process_jobs([job])
        assert len(contents(url)) == 1
        assert queue.count() == {"done": 1}


def test_requests_of_all_workers_count_for_one_limit(url: str) -> None:
    with open_engine(url):
        database = PostgresDatabase(DatabaseAddress.from_url(url))
        one, other = (SharedRateLimiter(database, "m at somewhere", 3, 0) for _ in range(2))
        waits: list[float] = []

        def give_up(seconds: float) -> None:
            waits.append(seconds)
            raise TimeoutError

        for limiter in (one, other, one):
            limiter.acquire(10).settle(5)
        with pytest.raises(TimeoutError):
            other.acquire(10, give_up)
        SharedRateLimiter(database, "another model", 3, 0).acquire(10, give_up)
    assert len(waits) == 1
    assert 30 < waits[0] <= 60


def test_a_wrong_key_ends_the_worker_and_leaves_the_jobs(url: str) -> None:
    with ScriptedServer() as server, open_engine(url) as engine:
        base_url = server.base_url
        files, _ = engine.writer.list_files([Path("files")], "facts")
        names = [str(path) for path in files if isinstance(path, Path)]
        rows = [Job(run="run", kind="read", name=name, method="facts", content=str(Path.cwd())) for name in names]
        get_queue(engine).add(rows)
    model = LanguageModelSettings(model="m", base_url=base_url, api_key="k", max_retries=0)
    with Engine.open(url, embedder=HashingEmbedder(16), language_model=model, settings=SETTINGS) as engine:
        with pytest.raises(NoMoreRepliesError):
            Worker(engine, STEPS).run(until_idle=True)
        states = get_queue(engine).count()
        assert states.keys() == {"queued", "done"}
        assert get_queue(engine).take(["extract"], "another", 20, 3)  # the lease has ended


def test_workers_need_a_shared_store(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        with pytest.raises(ConfigurationError, match="postgresql://"):
            Worker(engine, STEPS)
        with pytest.raises(ConfigurationError, match="postgresql://"):
            WorkerRun(engine, start_nothing, 1)


@pytest.mark.slow
def test_workers_that_are_killed_lose_no_job_and_pay_no_reply_again(url: str, tmp_path: Path) -> None:
    with ScriptedServer(state_fact, delay=0.2) as server:
        environment_names = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "POLYAD_MODEL": "m"}
        processes: list[subprocess.Popen[bytes]] = []

        def start() -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "polyad", "--set", "worker.lease_seconds=2", "worker", "--until-idle"]
            environment = {**os.environ, **environment_names, "POLYAD_STORE": url}
            processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))
            return processes[-1]

        is_done = threading.Event()
        kills = 0

        def kill() -> None:
            nonlocal kills
            while not is_done.wait(2):
                running = [process for process in processes if process.poll() is None]
                if len(server.requests) and running and kills < 6:
                    running[0].kill()
                    kills += 1

        with open_engine(url, server) as engine:
            thread = threading.Thread(target=kill)
            thread.start()
            try:
                report = WorkerRun(engine, start, 2).index([Path("files")], "facts", silent, prune=False)
            finally:
                is_done.set()
                thread.join()
        distinct = {json.dumps(request.body, sort_keys=True) for request in server.requests}
        assert len(server.requests) <= len(distinct) + 16 * kills  # requests under way when a worker was killed
        assert report.counts.added == 13
        with open_engine(tmp_path / "kb", server) as engine:
            engine.index("files", method="facts")
        assert contents(url) == contents(tmp_path / "kb")


def test_the_database_has_no_job_after_a_run(url: str) -> None:
    index(url)
    with open_engine(url) as engine:
        assert get_queue(engine).count() == {}
    with psycopg.connect(url.replace("workspace=", "application_name=")) as connection:
        locks = connection.execute("SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory'").fetchall()
    assert locks == [(0,)]
