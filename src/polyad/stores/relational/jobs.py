"""The queue of jobs in the SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, ClassVar, TypeVar

from polyad.protocols.jobs import Job, LeaseLostError, Outcomes, State
from polyad.stores.relational.connection import Connection
from polyad.stores.relational.rows import iterate_batches

T = TypeVar("T")

_BATCH_JOBS, _BATCH_CHARACTERS = 64, 200_000
"""Limits of the jobs that a worker takes together: documents that fill the calls of the embedder."""

_SHARE = 8
"""A worker takes at most an eighth of the waiting jobs, so that no worker is idle until the end of a run."""

_ADDED_ROWS = 50
"""Rows of one statement: SQLite's lowest limit is 999 values."""

_STATE = "CASE WHEN worker <> '' THEN 'running' ELSE state END"
"""The state of a job for readers. A cancelled job is running until its worker has noticed."""

_ADDED = ("run", "kind", "name", "method", "content", "size", "source", "digest", "created", "outcome")
"""The columns of a new job behind its id."""

_COLUMNS = ("number", "run", "kind", "name", "method", "attempts", "reason", "revision", "created", "ended", "outcome")
"""The columns that are read, before state and content."""

_SELECT = f"SELECT {', '.join(_COLUMNS)}, {_STATE}, {{}} FROM job WHERE {{}} ORDER BY number"

_ADD = f"""
INSERT INTO job (id, {", ".join(_ADDED)}) VALUES {{}} ON CONFLICT (id) DO UPDATE SET
{", ".join(f"{name} = excluded.{name}" for name in _ADDED)}, state = 'queued', attempts = 0, is_suspect = FALSE,
worker = '', leased_until = 0, reason = '', removed = '[]', revision = job.revision + 1, ended = ''
WHERE job.run <> excluded.run
"""

_CANDIDATES = """
SELECT number, kind, run, method, size, is_suspect FROM job WHERE state = 'queued' AND {}
ORDER BY {}, number LIMIT ?{}
"""

_FREE: Mapping[str, Any] = {"worker": "", "leased_until": 0.0}
"""Columns of a job that no worker has."""

_DELETE_FILES = (
    "DELETE FROM job_file WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.run = job_file.run AND state = 'queued')"
)


class RelationalJobQueue(ABC):
    """A queue of jobs in a database, which implements :class:`polyad.protocols.jobs.JobQueue`."""

    _now: ClassVar[str]
    """The time of the database in seconds, as SQL."""

    _row_lock: ClassVar[str] = ""
    """End of a query whose rows no other worker may take."""

    @abstractmethod
    def _change(self, change: Callable[[Connection], T]) -> T:
        """Call ``change`` in a transaction, and return its result; another call may follow a lost connection."""

    @abstractmethod
    def _select(self, query: str, parameters: Sequence[Any]) -> list[Any]:
        """Return the rows of a query."""

    def add(self, jobs: Sequence[Job]) -> list[tuple[Job, str]]:
        """Queue jobs; see :meth:`polyad.protocols.jobs.JobQueue.add`."""
        rows: dict[bytes, list[Any]] = {}
        for job in jobs:
            row = [json.dumps(job.outcome) if name == "outcome" else getattr(job, name) for name in _ADDED]
            rows.setdefault(_build_id(job), [_build_id(job), *row])

        def change(connection: Connection) -> list[tuple[Job, str]]:
            count = 0
            for batch in iterate_batches([*rows.values()], _ADDED_ROWS):
                places = ", ".join([f"({', '.join('?' * len(batch[0]))})"] * len(batch))
                count += connection.execute(_ADD.format(places), [*chain.from_iterable(batch)]).rowcount
            for job in jobs if count else ():
                for place, content in enumerate(job.files):
                    query = "INSERT INTO job_file (run, place, content) VALUES (?, ?, ?)"
                    connection.execute(query, [job.run, place, content])
            query = "SELECT id, source, digest FROM job WHERE id IN ({})"
            stored = {bytes(id): rest for id, *rest in connection.select_in(query, rows)}
            return [(job, stored[_build_id(job)][0]) for job in jobs if stored[_build_id(job)][1] != job.digest]

        return self._change(change)

    def take(
        self, kinds: Sequence[str], worker: str, lease_seconds: float, max_attempts: int, *, is_ordered: bool = False
    ) -> list[Job]:
        """Reserve the next jobs; see :meth:`polyad.protocols.jobs.JobQueue.take`."""
        condition = f"state = 'queued' AND kind {_format_in(kinds)}"
        order = "CASE kind" + "".join(f" WHEN ? THEN {place}" for place in range(len(kinds))) + " END"
        if not is_ordered:
            condition += f" AND leased_until <= {self._now}"
        candidates = _CANDIDATES.format(condition, "number - ?" if is_ordered else order, self._row_lock)
        reason = f"the worker process ended {max_attempts} times while it had this job"

        def change(connection: Connection) -> list[Job]:
            if is_ordered:  # a worker that vanished had a job that was cancelled meanwhile
                _set(connection, f"state <> 'queued' AND worker <> '' AND kind {_format_in(kinds)}", kinds, worker="")
            failed = _end(state="failed") | {"reason": reason}
            if _set(connection, f"attempts >= ? AND {condition}", [max_attempts, *kinds], **failed):
                connection.execute(_DELETE_FILES)
            limit = 1
            if not is_ordered:
                query = f"SELECT COUNT(*) FROM (SELECT 1 FROM job WHERE {condition} LIMIT ?) AS free"
                [(waiting,)] = connection.execute(query, [*kinds, _SHARE * _BATCH_JOBS])
                limit = max(1, waiting // _SHARE)
            order_values = [0] if is_ordered else kinds
            numbers = _choose_batch(connection.execute(candidates, [*kinds, *order_values, limit]).fetchall())
            if not numbers:
                return []
            are_chosen = f"number {_format_in(numbers)}"
            query = f"UPDATE job SET attempts = attempts + 1 WHERE is_suspect AND {are_chosen}"
            connection.execute(query, numbers)
            query = f"UPDATE job SET leased_until = {self._now} + ? WHERE {are_chosen}"
            connection.execute(query, [lease_seconds, *numbers])
            _set(connection, are_chosen, numbers, worker=worker, is_suspect=True)
            return [_build_job(row) for row in connection.execute(_SELECT.format("content", are_chosen), numbers)]

        return self._change(change)

    def extend(self, worker: str, lease_seconds: float) -> None:
        """Extend the reservation of all jobs of a worker until ``lease_seconds`` from now."""
        query = f"UPDATE job SET leased_until = {self._now} + ? WHERE worker = ? AND state = 'queued'"
        self._change(lambda connection: connection.execute(query, [lease_seconds, worker]))

    def release(self, worker: str, *, has_crashed: bool = False) -> None:
        """Return a worker's jobs to the queue; after a crash (``has_crashed``), each job is then processed alone."""
        self._set("worker = ? AND state = 'queued'", [worker], **_FREE, is_suspect=has_crashed)

    def check(self, job: Job, worker: str) -> tuple[bool, Sequence[str]]:
        """Return whether a worker has a job, and ids to leave out; see :meth:`polyad.protocols.jobs.JobQueue.check`."""
        query = "SELECT worker, state, removed FROM job WHERE number = ?"
        for holder, state, removed in self._select(query, [job.number]):
            return (holder, state) == (worker, "queued"), json.loads(removed)
        return False, ()

    def report(self, job: Job, worker: str, outcome: Mapping[str, Any], *, has_advanced: bool) -> None:
        """Store the ``outcome`` of a running job so far; ``has_advanced`` forgets the attempts before."""
        values = {"attempts": 0} if has_advanced else {}
        self._set("number = ? AND worker = ?", [job.number, worker], outcome=json.dumps(outcome), **values)

    def finish(
        self, worker: str, jobs: Iterable[Job], outcomes: Outcomes, *, state: State = "done", reason: str = ""
    ) -> None:
        """End jobs of a worker with their outcomes; see :meth:`polyad.protocols.jobs.JobQueue.finish`."""
        ended = [job for job in jobs if job.name in outcomes]
        self._change(lambda connection: finish_jobs(connection, worker, ended, outcomes, state=state, reason=reason))

    def advance(self, worker: str, jobs: Iterable[Job], kind: str) -> None:
        """Return jobs of a worker to the queue, with ``kind`` as their next step."""
        values, numbers = {"kind": kind, "attempts": 0, "is_suspect": False}, [job.number for job in jobs]
        if numbers:
            self._set(f"worker = ? AND number {_format_in(numbers)}", [worker, *numbers], **_FREE, **values)

    def fail(self, worker: str, job: Job, reason: str, max_attempts: int, *, fallback: str = "") -> None:
        """Record a failed attempt at a job of a worker; see :meth:`polyad.protocols.jobs.JobQueue.fail`."""
        values: dict[str, Any] = {}
        if job.attempts + 1 >= max_attempts:  # the next attempt would count this one
            values = {"kind": fallback, "attempts": 0} if fallback else _end(state="failed")
        self._set("number = ? AND worker = ?", [job.number, worker], **{**_FREE, **values}, reason=reason)

    def add_failures(self, job: Job, failures: Sequence[tuple[str, str]]) -> None:
        """Add (id, reason) of what is missing to the outcome of a job that has ended."""

        def change(connection: Connection) -> None:
            [(outcome,)] = connection.execute("SELECT outcome FROM job WHERE number = ?", [job.number])
            text = json.dumps({**json.loads(outcome), "failures": [list(each) for each in failures]})
            connection.execute("UPDATE job SET outcome = ? WHERE number = ?", [text, job.number])

        self._change(change)

    def remove_documents(self, run: str, ids: Iterable[str]) -> None:
        """Leave documents with these ids out of the jobs of a run."""

        def change(connection: Connection) -> None:
            connection.execute("UPDATE job SET revision = revision WHERE run = ?", [run])  # locks the rows
            for number, removed in connection.execute(
                "SELECT number, removed FROM job WHERE run = ?", [run]
            ).fetchall():
                text = json.dumps([*json.loads(removed), *ids])
                connection.execute("UPDATE job SET removed = ? WHERE number = ?", [text, number])

        self._change(change)

    def cancel(self, run: str = "", *, kinds: Sequence[str] = (), reason: str) -> None:
        """Cancel jobs; see :meth:`polyad.protocols.jobs.JobQueue.cancel`."""
        condition, parameters = _build_condition(run, kinds)
        values = {"state": "cancelled", "ended": _get_time(), "reason": reason}

        def change(connection: Connection) -> None:
            _set(connection, f"state = 'queued' AND {condition}", parameters, **values)
            connection.execute(_DELETE_FILES)

        self._change(change)

    def count(self, run: str = "", *, kinds: Sequence[str] = (), is_open: bool = False) -> dict[State, int]:
        """Return the number of jobs by state; see :meth:`polyad.protocols.jobs.JobQueue.count`."""
        condition, parameters = _build_condition(run, kinds, is_open=is_open)
        return dict(self._select(f"SELECT {_STATE}, COUNT(*) FROM job WHERE {condition} GROUP BY 1", parameters))

    def list(self, run: str = "", *, kinds: Sequence[str] = (), is_open: bool = False) -> list[Job]:
        """Return jobs in the order in which they were added; see :meth:`polyad.protocols.jobs.JobQueue.list`."""
        condition, parameters = _build_condition(run, kinds, is_open=is_open)
        return [_build_job(row) for row in self._select(_SELECT.format("''", condition), parameters)]

    def read_file(self, run: str, place: int) -> bytes:
        """Return the content of a file of a run; see :meth:`polyad.protocols.jobs.JobQueue.read_file`."""
        for (content,) in self._select("SELECT content FROM job_file WHERE run = ? AND place = ?", [run, place]):
            return bytes(content)
        raise LeaseLostError(f"the files of {run!r} are deleted, because its job has ended")

    def delete(self, run: str = "", *, kinds: Sequence[str] = (), keep: int = 0) -> None:
        """Delete ended jobs; see :meth:`polyad.protocols.jobs.JobQueue.delete`."""
        condition, parameters = _build_condition(run, kinds)
        condition += " AND state <> 'queued' AND worker = ''"
        last = f"SELECT number FROM job WHERE {condition} ORDER BY number DESC LIMIT 1 OFFSET ?"
        query = f"DELETE FROM job WHERE {condition} AND number <= ({last})"
        self._change(lambda connection: connection.execute(query, [*parameters, *parameters, keep]))

    def _set(self, condition: str, parameters: Sequence[Any], **values: Any) -> None:
        self._change(lambda connection: _set(connection, condition, parameters, **values))


def finish_jobs(
    connection: Connection,
    worker: str,
    jobs: Sequence[Job],
    outcomes: Outcomes,
    *,
    state: State = "done",
    reason: str = "",
) -> None:
    """End jobs of a worker inside a transaction of the caller; see :meth:`polyad.protocols.jobs.JobQueue.finish`.

    Raises:
        LeaseLostError: The worker does not have one of the jobs any more.
    """
    for job in jobs:
        has, outcome = [job.number, worker], {"outcome": json.dumps(outcomes[job.name])}
        values = outcome | _end(state) | {"reason": reason}
        if _set(connection, "number = ? AND worker = ? AND state = 'queued'", has, **values):
            continue
        if not _set(connection, "number = ? AND worker = ?", has, **outcome, worker=""):  # it was cancelled
            raise LeaseLostError("the lease of a job expired before its end; raise worker.lease_seconds")
    if jobs:
        connection.execute(_DELETE_FILES)


def _build_id(job: Job) -> bytes:
    """Return a job's id, a hash of its kind and name.

    A file and a document of the same name have different ids; a document keeps its id from step to step.
    """
    return hashlib.sha256(f"{job.kind == 'read'}\0{job.name}".encode()).digest()


def _build_job(row: Sequence[Any]) -> Job:
    """Return the job of a row of :data:`_SELECT`; an outcome that cannot be read is empty."""
    values = dict(zip((*_COLUMNS, "state", "content"), row, strict=True))
    try:
        outcome = json.loads(values["outcome"])
    except ValueError:
        outcome = {}
    return Job(**{**values, "outcome": outcome if isinstance(outcome, dict) else {}})


def _set(connection: Connection, condition: str, parameters: Sequence[Any], **values: Any) -> int:
    """Set columns of the jobs that meet a condition, whose revision grows, and return their number."""
    columns = ", ".join(f"{name} = ?" for name in values)
    query = f"UPDATE job SET revision = revision + 1, {columns} WHERE {condition}"
    return connection.execute(query, [*values.values(), *parameters]).rowcount


def _end(state: State) -> dict[str, Any]:
    """Return the columns of a job that has ended."""
    return {"state": state, "worker": "", "content": "", "ended": _get_time()}


def _build_condition(run: str, kinds: Sequence[str], *, is_open: bool = False) -> tuple[str, list[str]]:
    """Return an SQL condition on run, kinds and state, and its parameters; empty values stand for all."""
    conditions = ["run = ?"] * bool(run) + [f"kind {_format_in(kinds)}"] * bool(kinds)
    conditions += ["(state = 'queued' OR worker <> '')"] * is_open
    return " AND ".join(conditions) or "TRUE", [*([run] if run else ()), *kinds]


def _format_in(values: Sequence[object]) -> str:
    return f"IN ({', '.join('?' * len(values))})"


def _get_time() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _choose_batch(waiting_jobs: Sequence[tuple[Any, ...]]) -> list[int]:
    """Return the primary keys of the first waiting jobs that fit into one batch: same kind, run and method.

    ``waiting_jobs`` are rows (primary key, kind, run, method, characters, whether a worker vanished with the job).

    A suspect job, whose worker vanished, is taken alone.
    """
    batch: list[int] = []
    characters = 0
    for number, *group, size, is_suspect in waiting_jobs:
        if batch and (is_suspect or group != list(waiting_jobs[0][1:4]) or characters + size > _BATCH_CHARACTERS):
            break
        batch.append(number)
        characters += size
        if is_suspect:
            break
    return batch
