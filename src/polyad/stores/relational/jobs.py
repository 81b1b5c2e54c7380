"""The queue of jobs in the SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, ClassVar, TypeVar

from polyad.model import Failure
from polyad.protocols.jobs import IdConflict, Job, JobQueue, LeaseLostError, Outcomes, QueuedJob, State
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

_COLUMNS = f"number, run, kind, name, method, {{}}, {_STATE}, attempts, reason, revision, created, ended, outcome"

_ADD = """
INSERT INTO job (id, run, kind, name, method, content, size, source, digest, outcome, created) VALUES {}
ON CONFLICT (id) DO UPDATE SET run = excluded.run, kind = excluded.kind, method = excluded.method,
content = excluded.content, size = excluded.size, source = excluded.source, digest = excluded.digest,
outcome = excluded.outcome, created = excluded.created, state = 'queued', attempts = 0, is_suspect = FALSE,
worker = '', leased_until = 0, reason = '', removed = '[]', revision = job.revision + 1, ended = ''
WHERE job.run <> excluded.run
"""

_SET_ASIDE = """
UPDATE job SET state = 'failed', worker = '', content = '', ended = ?, revision = revision + 1,
reason = CASE WHEN reason = '' THEN ? ELSE reason END
WHERE state = 'queued' AND attempts >= ? AND {}
"""

_CANDIDATES = """
SELECT number, kind, run, method, size, is_suspect FROM job WHERE state = 'queued' AND {}
ORDER BY {}, number LIMIT ?{}
"""

_TAKE = """
UPDATE job SET worker = ?, leased_until = {now} + ?, revision = revision + 1,
attempts = attempts + CASE WHEN is_suspect THEN 1 ELSE 0 END, is_suspect = TRUE WHERE {numbers}
"""

_FAIL = """
UPDATE job SET worker = '', leased_until = 0, reason = ?, revision = revision + 1,
attempts = CASE WHEN {is_last} AND ? <> '' THEN 0 ELSE attempts END,
kind = CASE WHEN {is_last} AND ? <> '' THEN ? ELSE kind END,
ended = CASE WHEN {is_last} AND ? = '' THEN ? ELSE '' END,
state = CASE WHEN {is_last} AND ? = '' THEN 'failed' ELSE state END
WHERE number = ? AND worker = ?
"""

_IS_OPEN = "(state = 'queued' OR worker <> '')"

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

    def _execute(self, query: str, parameters: Sequence[Any]) -> int:
        """Run a statement in a transaction of its own, and return the number of changed rows."""
        return self._change(lambda connection: connection.execute(query, parameters).rowcount)

    def add(self, run: str, jobs_by_kind: Mapping[str, Sequence[QueuedJob]]) -> list[IdConflict]:
        """Queue jobs of one run; see :meth:`polyad.protocols.jobs.JobQueue.add`."""
        jobs = [(_build_id(kind, job.name), kind, job) for kind, group in jobs_by_kind.items() for job in group]
        first: dict[bytes, tuple[Any, ...]] = {}
        for id, kind, job in jobs:
            first.setdefault(id, (id, run, kind, *_format_columns(job)))
        files = [(run, place, content) for *_, job in jobs for place, content in enumerate(job.files)]

        def change(connection: Connection) -> list[IdConflict]:
            count = 0
            for batch in iterate_batches([*first.values()], _ADDED_ROWS):
                row = f"({', '.join('?' * len(batch[0]))})"
                query = _ADD.format(", ".join([row] * len(batch)))
                count += connection.execute(query, [*chain.from_iterable(batch)]).rowcount
            if count:
                for file in files:
                    connection.execute("INSERT INTO job_file (run, place, content) VALUES (?, ?, ?)", file)
            query = "SELECT id, source, digest FROM job WHERE id IN ({})"
            stored = {bytes(id): rest for id, *rest in connection.select_in(query, first)}
            return [
                IdConflict(job.name, job.source, stored[id][0]) for id, _, job in jobs if stored[id][1] != job.digest
            ]

        return self._change(change)

    def take(
        self, kinds: Sequence[str], worker: str, lease_seconds: float, max_attempts: int, *, is_ordered: bool = False
    ) -> list[Job]:
        """Reserve the next jobs; see :meth:`polyad.protocols.jobs.JobQueue.take`."""
        is_free, names = f"kind {_format_in(kinds)}", list(kinds)
        order = "CASE kind" + "".join(f" WHEN ? THEN {place}" for place in range(len(kinds))) + " END"
        if not is_ordered:
            is_free += f" AND leased_until < {self._now}"
        order, order_names = ("1", []) if is_ordered else (order, names)
        reason = f"the worker process ended {max_attempts} times while it had this job"

        def change(connection: Connection) -> list[Job]:
            if is_ordered:  # a worker that vanished had jobs that were cancelled meanwhile
                query = f"UPDATE job SET worker = '', ended = ? WHERE state <> 'queued' AND worker <> '' AND {is_free}"
                connection.execute(query, [_get_time(), *names])
            if connection.execute(_SET_ASIDE.format(is_free), [_get_time(), reason, max_attempts, *names]).rowcount:
                connection.execute(_DELETE_FILES)
            limit = 1
            if not is_ordered:
                query = f"SELECT COUNT(*) FROM (SELECT 1 FROM job WHERE state = 'queued' AND {is_free} LIMIT ?) AS free"
                [(waiting,)] = connection.execute(query, [*names, _SHARE * _BATCH_JOBS])
                limit = max(1, waiting // _SHARE)
            query = _CANDIDATES.format(is_free, order, self._row_lock)
            numbers = _choose_batch(connection.execute(query, [*names, *order_names, limit]).fetchall())
            if not numbers:
                return []
            are_chosen = f"number {_format_in(numbers)}"
            query = _TAKE.format(now=self._now, numbers=are_chosen)
            connection.execute(query, [worker, lease_seconds, *numbers])
            query = f"SELECT {_COLUMNS.format('content')} FROM job WHERE {are_chosen} ORDER BY number"
            return [_build_job(row) for row in connection.execute(query, numbers)]

        return self._change(change)

    def extend(self, worker: str, lease_seconds: float) -> None:
        """Extend the reservation of all jobs of a worker until ``lease_seconds`` from now."""
        query = f"UPDATE job SET leased_until = {self._now} + ? WHERE worker = ? AND state = 'queued'"
        self._execute(query, [lease_seconds, worker])

    def release(self, worker: str, *, has_crashed: bool = False) -> None:
        """Return a worker's jobs to the queue; after a crash (``has_crashed``), each job is then processed alone."""
        query = f"UPDATE job SET worker = '', leased_until = 0, revision = revision + 1, is_suspect = {has_crashed}"
        self._execute(f"{query} WHERE state = 'queued' AND worker = ?", [worker])

    def is_reserved(self, job: Job, worker: str) -> bool:
        """Return whether a worker has a job, which was not cancelled."""
        query = "SELECT 1 FROM job WHERE number = ? AND worker = ? AND state = 'queued'"
        return bool(self._select(query, [job.number, worker]))

    def report(self, job: Job, worker: str, outcome: Mapping[str, Any], *, has_advanced: bool) -> None:
        """Store the ``outcome`` of a running job so far; ``has_advanced`` forgets the attempts before."""
        attempts = "0" if has_advanced else "attempts"
        query = f"UPDATE job SET outcome = ?, attempts = {attempts}, revision = revision + 1"
        self._execute(f"{query} WHERE number = ? AND worker = ?", [json.dumps(outcome), job.number, worker])

    def finish(
        self, worker: str, jobs: Iterable[Job], outcomes: Outcomes, *, state: State = "done", reason: str = ""
    ) -> None:
        """End jobs of a worker with their outcomes; see :meth:`polyad.protocols.jobs.JobQueue.finish`."""
        ended = [job for job in jobs if job.name in outcomes]
        self._change(lambda connection: finish_jobs(connection, worker, ended, outcomes, state=state, reason=reason))

    def advance(self, worker: str, jobs: Iterable[Job], kind: str) -> None:
        """Return jobs of a worker to the queue, with ``kind`` as their next step."""
        numbers = [job.number for job in jobs]
        if not numbers:
            return
        query = "UPDATE job SET kind = ?, worker = '', leased_until = 0, is_suspect = FALSE, attempts = 0"
        self._execute(f"{query} WHERE worker = ? AND number {_format_in(numbers)}", [kind, worker, *numbers])

    def fail(self, worker: str, job: Job, reason: str, max_attempts: int, *, fallback: str = "") -> None:
        """Record a failed attempt at a job of a worker; see :meth:`polyad.protocols.jobs.JobQueue.fail`."""
        query = _FAIL.format(is_last=f"attempts + 1 >= {max_attempts:d}")  # the next attempt counts this one
        last = [fallback, _get_time(), fallback, job.number, worker]
        self._execute(query, [reason, fallback, fallback, fallback, *last])

    def add_failures(self, job: Job, failures: Sequence[tuple[str, str]]) -> None:
        """Add (id, reason) of what is missing to the outcome of a job that has ended."""

        def change(connection: Connection) -> None:
            [(outcome,)] = connection.execute("SELECT outcome FROM job WHERE number = ?", [job.number])
            text = json.dumps({**json.loads(outcome), "failures": [list(each) for each in failures]})
            connection.execute("UPDATE job SET outcome = ? WHERE number = ?", [text, job.number])

        self._change(change)

    def list_removed(self, job: Job) -> Sequence[str]:
        """Return the ids of documents that were left out of a job, also if it has ended."""
        rows = self._select("SELECT removed FROM job WHERE number = ?", [job.number])
        return [id for (removed,) in rows for id in json.loads(removed)]

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
        query = "UPDATE job SET state = 'cancelled', content = '', reason = ?, ended = ?, revision = revision + 1"

        def change(connection: Connection) -> None:
            connection.execute(f"{query} WHERE state = 'queued' AND {condition}", [reason, _get_time(), *parameters])
            connection.execute(_DELETE_FILES)

        self._change(change)

    def count(self, run: str = "", *, kinds: Sequence[str] = ()) -> dict[State, int]:
        """Return the number of jobs by state, for one run or all runs, and for some kinds or all."""
        condition, parameters = _build_condition(run, kinds)
        return dict(self._select(f"SELECT {_STATE}, COUNT(*) FROM job WHERE {condition} GROUP BY 1", parameters))

    def has_open(self, kinds: Sequence[str]) -> bool:
        """Return whether any job of these kinds has not ended."""
        query = f"SELECT 1 FROM job WHERE {_IS_OPEN} AND kind {_format_in(kinds)} LIMIT 1"
        return bool(self._select(query, kinds))

    def list(self, run: str = "", *, kinds: Sequence[str] = (), is_open: bool = False) -> list[Job]:
        """Return jobs in the order in which they were added; see :meth:`polyad.protocols.jobs.JobQueue.list`."""
        condition, parameters = _build_condition(run, kinds)
        if is_open:
            condition += f" AND {_IS_OPEN}"
        columns = _COLUMNS.format("''")
        query = f"SELECT {columns} FROM job WHERE {condition} ORDER BY number"
        return [_build_job(row) for row in self._select(query, parameters)]

    def list_file_sizes(self, run: str) -> Sequence[int]:
        """Return the sizes in bytes of the files of a run, none after its end."""
        rows = self._select("SELECT LENGTH(content) FROM job_file WHERE run = ? ORDER BY place", [run])
        return [size for (size,) in rows]

    def read_file(self, run: str, place: int) -> bytes:
        """Return the content of a file of a run; see :meth:`polyad.protocols.jobs.JobQueue.read_file`."""
        for (content,) in self._select("SELECT content FROM job_file WHERE run = ? AND place = ?", [run, place]):
            return bytes(content)
        raise LeaseLostError(f"the files of {run!r} are deleted, because its job has ended")

    def delete(self, run: str) -> None:
        """Delete all jobs of a run from the queue."""
        self._execute("DELETE FROM job WHERE run = ?", [run])

    def delete_ended(self, kinds: Sequence[str], keep: int) -> None:
        """Delete the oldest ended jobs of some kinds, except the last ``keep``."""
        are_ended = f"state <> 'queued' AND worker = '' AND kind {_format_in(kinds)}"
        last = f"SELECT number FROM job WHERE {are_ended} ORDER BY number DESC LIMIT 1 OFFSET ?"
        self._execute(f"DELETE FROM job WHERE {are_ended} AND number <= ({last})", [*kinds, *kinds, keep])


class Lease:
    """A batch of jobs that is reserved for one worker.

    Args:
        queue: The queue.
        jobs: The jobs.
        worker: Name of the worker.
        max_attempts: Number of failed attempts after which a job is not tried again.
        fallback: The next kind of a job that failed ``max_attempts`` times; empty if the job fails then.

    Attributes:
        open: The jobs that have not ended, by name.
    """

    def __init__(
        self, queue: JobQueue, jobs: Sequence[Job], worker: str, max_attempts: int, fallback: str = ""
    ) -> None:
        self._queue = queue
        self._worker = worker
        self._max_attempts = max_attempts
        self._fallback = fallback
        self._last: Job | None = None
        self.open = {job.name: job for job in jobs}

    def end(self, connection: Connection, outcomes: Outcomes) -> None:
        """End the jobs named in ``outcomes`` within the caller's transaction; names of other jobs are ignored.

        Raises:
            LeaseLostError: Another worker has taken a job.
        """
        finish_jobs(connection, self._worker, [job for job in self.open.values() if job.name in outcomes], outcomes)

    def close(self, names: Iterable[str]) -> None:
        """Remove ended jobs from the lease, by name, after the transaction of :meth:`end` was committed."""
        for name in names:
            self._last = self.open.pop(name, self._last)

    def finish_all(self, outcomes: Outcomes) -> None:
        """End all open jobs, whose outcomes are ``outcomes``."""
        self._queue.finish(self._worker, self.open.values(), outcomes)
        self.open = {}

    def advance(self, kind: str) -> None:
        """Return all open jobs to the queue, with ``kind`` as their next step."""
        self._queue.advance(self._worker, self.open.values(), kind)
        self.open = {}

    def fail(self, name: str, reason: str) -> None:
        """Record a failed attempt at a job; see :meth:`polyad.protocols.jobs.JobQueue.fail`."""
        job = self.open.pop(name)
        self._queue.fail(self._worker, job, reason, self._max_attempts, fallback=self._fallback)

    def add_failures(self, failures: Sequence[Failure]) -> None:
        """Add failures of incompletely stored documents to the outcome of the job that ended last."""
        if self._last is not None:
            self._queue.add_failures(self._last, [(failure.id, failure.reason) for failure in failures])


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
    if not jobs:
        return
    cases = [value for job in jobs for value in (job.number, json.dumps(outcomes[job.name]))]
    query = (
        f"UPDATE job SET outcome = CASE number {'WHEN ? THEN ? ' * len(jobs)}END, worker = '', content = '', "
        "reason = CASE WHEN state = 'queued' THEN ? ELSE reason END, revision = revision + 1, ended = ?, "
        "state = CASE WHEN state = 'queued' THEN ? ELSE state END "
        f"WHERE worker = ? AND number {_format_in(jobs)}"
    )
    parameters = [*cases, reason, _get_time(), state, worker, *(job.number for job in jobs)]
    if connection.execute(query, parameters).rowcount != len(jobs):
        raise LeaseLostError("the lease of a job expired before its end; raise worker.lease_seconds")
    connection.execute(_DELETE_FILES)


def _build_id(kind: str, name: str) -> bytes:
    """Return a job's id, a hash of its kind and name.

    A file and a document of the same name have different ids; a document keeps its id from step to step.
    """
    return hashlib.sha256(f"{kind == 'read'}\0{name}".encode()).digest()


def _format_columns(job: QueuedJob) -> tuple[Any, ...]:
    outcome = json.dumps(job.outcome)
    return job.name, job.method, job.content, job.size, job.source, job.digest, outcome, job.created


def _build_job(row: Sequence[Any]) -> Job:
    """Return the job of a row of :data:`_COLUMNS`; an outcome that cannot be read is empty."""
    *values, outcome = row
    try:
        parsed = json.loads(outcome)
    except ValueError:
        parsed = {}
    return Job(*values, outcome=parsed if isinstance(parsed, dict) else {})


def _build_condition(run: str, kinds: Sequence[str]) -> tuple[str, list[str]]:
    """Return an SQL condition on run and kinds, each of which may be empty, and its parameters."""
    conditions = ["run = ?"] * bool(run) + [f"kind {_format_in(kinds)}"] * bool(kinds)
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
