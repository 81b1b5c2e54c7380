"""What every queue of jobs has to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from polyad.protocols.jobs import Job, JobQueue, LeaseLostError, QueueStore
from polyad.protocols.store import Manifest, StoreOpener
from polyad.stores.sqlite import SqliteStore
from tests.postgres_server import open_workspace

STORES: dict[str, StoreOpener] = {"postgres": open_workspace, "sqlite": SqliteStore.open}
"""One line for each store with a queue."""

Opener = Callable[[], JobQueue]
"""Opens the queue of a test; each call returns another handle."""


@pytest.fixture(params=sorted(STORES))
def open_queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    opened: list[QueueStore] = []

    def opener() -> JobQueue:
        store = STORES[request.param](tmp_path / "index", Manifest("test", 4, "rules"))
        assert isinstance(store, QueueStore)
        opened.append(store)
        return store.jobs

    yield opener
    for store in opened:
        store.close()  # type: ignore[attr-defined]


@pytest.fixture
def queue(open_queue: Opener) -> JobQueue:
    return open_queue()


def take(queue: JobQueue, *kinds: str, worker: str = "worker", seconds: float = 60.0) -> list[Job]:
    return queue.take(kinds or ("embed",), worker, seconds, 3)


def take_first(queue: JobQueue, worker: str = "worker") -> list[Job]:
    return queue.take(("files", "check"), worker, 0.0, 3, is_ordered=True)


def build(name: str, kind: str = "embed", run: str = "run", **values: Any) -> Job:
    return Job(run=run, kind=kind, name=name, **values)


def request(name: str, **values: Any) -> Job:
    return build(name, "files", name, **values)


def names(jobs: list[Job]) -> list[str]:
    return [job.name for job in jobs]


def test_a_new_queue_is_empty(queue: JobQueue) -> None:
    assert (
        queue.count(),
        queue.list(),
        bool(queue.count(kinds=["embed"], is_open=True)),
        take(queue),
        take_first(queue),
    ) == (
        {},
        [],
        False,
        [],
        [],
    )


def test_the_preferred_kind_is_taken_first_and_in_order(queue: JobQueue) -> None:
    rows = [build(f"document {number}", method="facts", content="{}", size=10) for number in range(9)]
    assert queue.add([build("a.txt", "read", content="/home"), *rows]) == []
    [job] = take(queue, "embed", "read")
    assert (job.name, job.kind, job.run, job.method, job.content, job.state) == (
        *("document 0", "embed", "run", "facts", "{}", "running"),
    )
    assert names(take(queue, "read", "embed")) == ["a.txt"]
    assert queue.count("run") == {"running": 2, "queued": 8}
    assert queue.count(kinds=["read"]) == {"running": 1}
    assert queue.count("another") == {}
    assert names(queue.list("run")) == ["a.txt", *(row.name for row in rows)]


def test_two_workers_never_have_one_job(open_queue: Opener) -> None:
    queues = [open_queue() for _ in range(4)]
    queues[0].add([build(str(number), size=100_000) for number in range(40)])

    def take_all(number: int) -> list[str]:
        all_names: list[str] = []
        while jobs := take(queues[number], worker=str(number)):
            all_names += names(jobs)
        return all_names

    with ThreadPoolExecutor() as threads:
        all_names = [name for each in threads.map(take_all, range(4)) for name in each]
    assert sorted(all_names, key=int) == [str(number) for number in range(40)]


def test_a_name_of_the_same_run_with_other_content_is_a_conflict_and_stays(queue: JobQueue) -> None:
    first, other = (build("a", digest=text, source=f"{text}.txt", outcome={"n": text}) for text in ("one", "two"))
    assert queue.add([first]) == []
    assert queue.add([first]) == []
    assert queue.add([other, first]) == [(other, "one.txt")]
    assert [job.outcome for job in queue.list()] == [{"n": "one"}]
    assert queue.add([replace(other, run="later")]) == []
    assert [(job.run, job.outcome) for job in queue.list()] == [("later", {"n": "two"})]


def test_an_expired_lease_ends_nothing(queue: JobQueue) -> None:
    queue.add([build("a", content="text")])
    late = take(queue, worker="late", seconds=0.0)
    [job] = take(queue, worker="worker")
    with pytest.raises(LeaseLostError):
        queue.finish("late", late, {"a": {"added": 1}})
    assert not queue.check(job, "late")[0]
    assert queue.check(job, "worker")[0]
    queue.finish("worker", [job], {"a": {"added": 2}})
    [ended] = queue.list()
    assert (ended.state, ended.outcome, ended.is_over, bool(ended.ended)) == ("done", {"added": 2}, True, True)
    assert take(queue) == []


def test_an_extended_lease_holds_and_a_released_job_is_taken_again(queue: JobQueue) -> None:
    queue.add([build("a")])
    assert take(queue, seconds=0.0)
    queue.extend("worker", 60.0)
    assert take(queue, worker="another") == []
    queue.release("worker")
    assert names(take(queue, worker="another")) == ["a"]


def test_a_job_that_fails_alone_ends_after_its_attempts_or_continues_as_its_fallback(queue: JobQueue) -> None:
    queue.add([build("a", "extract"), build("b", "extract")])
    for name, fallback in (("a", ""), ("b", "embed")):
        for attempt in range(3):
            [job] = take(queue, "extract")
            assert (job.name, job.attempts) == (name, attempt)
            queue.fail("worker", job, f"attempt {attempt}", 3, fallback=fallback)
    failed, other = queue.list()
    assert (failed.state, failed.reason, failed.kind) == ("failed", "attempt 2", "extract")
    assert (other.state, other.kind, other.attempts) == ("queued", "embed", 0)


def test_failures_and_the_next_step_of_a_lease(queue: JobQueue) -> None:
    queue.add([build("a", "extract")])
    queue.advance("worker", take(queue, "extract"), "embed")
    jobs = take(queue)
    queue.finish("worker", jobs, {"a": {"added": 1}})
    queue.add_failures(jobs[0], [("a#0001", "no reply")])
    assert queue.list()[0].outcome == {"added": 1, "failures": [["a#0001", "no reply"]]}


def test_a_job_whose_workers_vanish_is_set_aside_with_its_files(queue: JobQueue) -> None:
    queue.add([request("request", files=[b"text"], outcome={"files": ["a"]})])
    for attempt in range(4):
        assert [job.attempts for job in take_first(queue, worker=str(attempt))] == [attempt]
    assert take_first(queue) == []
    [job] = queue.list()
    assert (job.state, job.outcome) == ("failed", {"files": ["a"]})
    with pytest.raises(LeaseLostError):
        queue.read_file("request", 0)
    assert "3 times" in job.reason


def test_progress_forgets_the_attempts_before(queue: JobQueue) -> None:
    queue.add([request("request")])
    for _ in range(3):
        [job] = take_first(queue)
    queue.report(job, "another", {"done": 9}, has_advanced=True)
    queue.report(job, "worker", {"done": 1}, has_advanced=True)
    [reported] = queue.list()
    assert (reported.outcome, reported.attempts) == ({"done": 1}, 0)
    assert reported.revision > job.revision


def test_ordered_jobs_are_taken_one_by_one_whatever_their_kind(queue: JobQueue) -> None:
    for name, kind in (("1", "files"), ("2", "check"), ("3", "files")):
        queue.add([build(name, kind, name)])
    queue.add([build("a")])
    for name in "123":
        jobs = take_first(queue)
        assert names(jobs) == [name]
        queue.finish("worker", jobs, {name: {}})
    assert not queue.count(kinds=["files", "check"], is_open=True)
    assert bool(queue.count(kinds=["embed"], is_open=True))


def test_files_are_read_until_the_job_ends(queue: JobQueue) -> None:
    queue.add([request("request", digest="x", files=[b"\x00one", b""])])
    assert [queue.read_file("request", place) for place in (0, 1)] == [b"\x00one", b""]
    jobs = take_first(queue)
    queue.finish("worker", jobs, {"request": {}}, state="failed", reason="no")
    assert (queue.list()[0].state, queue.list()[0].reason) == ("failed", "no")
    with pytest.raises(LeaseLostError):
        queue.read_file("request", 0)
    queue.add([request("request", digest="x", files=[b"again"])])
    with pytest.raises(LeaseLostError):  # a repeated request stores nothing
        queue.read_file("request", 0)


def test_a_cancelled_job_is_running_until_its_worker_ends_it(queue: JobQueue) -> None:
    for name in ("1", "2"):
        queue.add([request(name, files=[b"text"])])
    [job] = take_first(queue)
    queue.cancel(kinds=["files"], reason="stopped")
    assert queue.count() == {"running": 1, "cancelled": 1}
    assert not queue.check(job, "worker")[0]
    queue.finish("worker", [job], {"1": {"done": 1}}, reason="late")
    assert [(job.state, job.reason, job.outcome) for job in queue.list()] == [
        ("cancelled", "stopped", {"done": 1}),
        ("cancelled", "stopped", {}),
    ]
    with pytest.raises(LeaseLostError):
        queue.read_file("2", 0)


def test_a_cancelled_job_whose_worker_vanished_ends_with_the_next_look(queue: JobQueue) -> None:
    queue.add([request("1")])
    take_first(queue)
    queue.cancel("1", reason="stopped")
    assert queue.count(kinds=["files"], is_open=True)
    assert take_first(queue, worker="another") == []
    assert queue.count() == {"cancelled": 1}


def test_documents_are_left_out_of_one_run(queue: JobQueue) -> None:
    queue.add([request("1")])
    queue.add([request("2")])
    queue.remove_documents("1", ["a"])
    queue.remove_documents("1", ["b"])
    assert [list(queue.check(job, "worker")[1]) for job in queue.list()] == [["a", "b"], []]


def test_the_oldest_ended_jobs_of_some_kinds_are_deleted(queue: JobQueue) -> None:
    for name in "12345":
        queue.add([request(name)])
    for name in "1234":
        queue.finish("worker", take_first(queue), {name: {}})
    queue.delete(kinds=["embed"])
    queue.delete(kinds=["files"], keep=2)
    assert names(queue.list()) == ["3", "4", "5"]
    assert names(queue.list(kinds=["files"], is_open=True)) == ["5"]
    queue.delete("4")
    assert names(queue.list()) == ["3", "5"]
