"""Jobs of indexing as rows of a PostgreSQL database, which workers take with leases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyad.errors import StoreError
from polyad.model import Failure, IndexedDocument
from polyad.stores.postgres.connection import PostgresConnection
from polyad.stores.postgres.database import PostgresDatabase
from polyad.text.removals import build_notes

_BATCH_JOBS, _BATCH_CHARACTERS = 64, 200_000
"""Limits of the jobs that a worker takes together: documents that fill the calls of the embedder."""

_SHARE = 8
"""A worker takes at most an eighth of the waiting jobs, so that no worker is idle until the end of a run."""

_CANDIDATES = """
SELECT number, kind, run, method, size, is_suspect FROM job
WHERE state = 'queued' AND kind = ANY(?) AND leased_until < now()
ORDER BY array_position(?::text[], kind), number LIMIT ? FOR UPDATE SKIP LOCKED
"""

_COUNT = """
SELECT COUNT(*) FROM (
    SELECT 1 FROM job WHERE state = 'queued' AND kind = ANY(?) AND leased_until < now() LIMIT ?
) AS waiting
"""

_TAKE = """
UPDATE job SET worker = ?, leased_until = now() + make_interval(secs => ?), is_suspect = TRUE,
attempts = attempts + CASE WHEN is_suspect THEN 1 ELSE 0 END
WHERE number = ANY(?) RETURNING number, run, kind, name, method, content
"""

_SET_ASIDE = """
UPDATE job SET state = 'failed', worker = '', content = '',
outcome = CASE WHEN outcome = '{}' THEN ? ELSE outcome END
WHERE state = 'queued' AND attempts >= ? AND leased_until < now()
"""

_QUEUE = """
INSERT INTO job (id, run, kind, name, method, content, size, source, digest)
SELECT id, ?, ?, name, method, content, size, source, digest
FROM unnest(?::bytea[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[], ?::text[])
AS item(id, name, method, content, size, source, digest)
ON CONFLICT (id) DO UPDATE SET run = excluded.run, kind = excluded.kind, method = excluded.method,
content = excluded.content, size = excluded.size, source = excluded.source, digest = excluded.digest,
state = 'queued', attempts = 0, is_suspect = FALSE, worker = '',
leased_until = '-infinity', outcome = '{}' WHERE job.run <> excluded.run
"""

_CONFLICTS = """
SELECT name, item.source, job.source
FROM unnest(?::bytea[], ?::text[], ?::text[]) WITH ORDINALITY AS item(id, source, digest, position) JOIN job USING (id)
WHERE job.digest <> item.digest ORDER BY position
"""

_FINISH = """
UPDATE job SET state = 'done', worker = '', content = '', outcome = item.outcome
FROM unnest(?::bigint[], ?::text[]) AS item(number, outcome)
WHERE job.number = item.number AND worker = ? AND state = 'queued'
"""

_FAIL = """
UPDATE job SET worker = '', leased_until = '-infinity', outcome = ?,
attempts = CASE WHEN is_last AND fallback <> '' THEN 0 ELSE ended END,
kind = CASE WHEN is_last AND fallback <> '' THEN fallback ELSE kind END,
state = CASE WHEN is_last AND fallback = '' THEN 'failed' ELSE 'queued' END
FROM (
    SELECT number AS job_number, ?::text AS fallback, attempts + ? AS ended, attempts + ? >= ? AS is_last FROM job
) AS attempt
WHERE job_number = number AND number = ? AND worker = ?
"""

_ADD_FAILURES = "UPDATE job SET outcome = (outcome::jsonb || ?::jsonb)::text WHERE number = ?"

_RELEASE = (
    "UPDATE job SET worker = '', leased_until = '-infinity', is_suspect = {} WHERE state = 'queued' AND worker = ?"
)


Outcomes = Mapping[str, Mapping[str, Any]]
"""The outcome of each job by name: numbers to add to the counts of the run, or the failures."""


class LeaseLostError(StoreError):
    """Raised if a worker's lease (time-limited reservation) of a job expired and another worker took the job."""


class QueuedJob(NamedTuple):
    """A job (one indexing step) that is to be added to the queue.

    Attributes:
        name: Path of a file, or id of a document.
        method: Construction method; empty for the method of each document.
        content: Working folder of a file, or the JSON of a document.
        size: Characters of the document.
        source: File of the document.
        digest: Hash of the content of the document.
    """

    name: str
    method: str
    content: str
    size: int
    source: str = ""
    digest: str = ""


class IdConflict(NamedTuple):
    """A document that was not queued, because a different document of the same run has its id.

    Attributes:
        id: The id.
        source: File of the document.
        first_source: File of the other document.
    """

    id: str
    source: str
    first_source: str


@dataclass(frozen=True, slots=True)
class Job:
    """One step of indexing (read a file, extract facts, embed a document) that one worker processes.

    Attributes:
        number: Primary key.
        run: Token of the command that queued the job.
        kind: The step.
        name: Path of a file, or id of a document.
        method: Construction method; empty for the method of each document.
        content: Working folder of a file, or the JSON of a document.
    """

    number: int
    run: str
    kind: str
    name: str
    method: str
    content: str


class JobQueue:
    """A queue of indexing jobs in PostgreSQL, which workers on several machines share.

    A worker takes several jobs together. After a worker process has crashed, each of its jobs is taken alone, which
    shows whether the document of the job causes the crash. Only attempts at a job that is taken alone count.

    Args:
        database: The database.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def add(self, run: str, jobs_by_step: Mapping[str, Sequence[QueuedJob]]) -> list[IdConflict]:
        """Queue jobs of the command ``run``; return an IdConflict for each document whose id is in use.

        A document conflicts with another document of the same run that has the same id and other content. A job of an
        earlier run with the same name is replaced; a job of the same run stays.

        Args:
            run: Token of the command.
            jobs_by_step: The jobs by their first step.
        """

        def update() -> list[IdConflict]:
            conflicts = []
            with self._database.updating() as connection:
                for kind, jobs in jobs_by_step.items():
                    ids = [_build_id(kind, job.name) for job in jobs]
                    first: dict[bytes, QueuedJob] = {}
                    for id, job in zip(ids, jobs, strict=True):
                        first.setdefault(id, job)
                    if first:
                        columns = [list(column) for column in zip(*first.values(), strict=True)]
                        connection.execute(_QUEUE, [run, kind, list(first), *columns])
                    origins = [[job.source for job in jobs], [job.digest for job in jobs]]
                    conflicts += [IdConflict(*row) for row in connection.execute(_CONFLICTS, [ids, *origins])]
            return conflicts

        return self._database.retry(update)

    def take(self, kinds: Sequence[str], worker: str, lease_seconds: float, max_attempts: int) -> list[Job]:
        """Reserve the next jobs of the first of ``kinds`` that has any, for ``lease_seconds``, and return these jobs.

        A job that ended ``max_attempts`` worker processes is set aside as failed.
        """

        def update() -> list[Job]:
            with self._database.updating() as connection:
                reason = json.dumps({"reason": f"the worker process ended {max_attempts} times while it had this job"})
                connection.execute(_SET_ASIDE, [reason, max_attempts])
                order = list(kinds)
                [(waiting,)] = connection.execute(_COUNT, [order, _SHARE * _BATCH_JOBS])
                limit = max(1, waiting // _SHARE)
                candidates = connection.execute(_CANDIDATES, [order, order, limit]).fetchall()
                numbers = _choose_batch(candidates)
                rows = connection.execute(_TAKE, [worker, lease_seconds, numbers]).fetchall() if numbers else []
            return [Job(*row) for row in sorted(rows)]

        return self._database.retry(update)

    def lease(self, jobs: Sequence[Job], worker: str, max_attempts: int, fallback: str = "") -> Lease:
        """Return the :class:`Lease` (time-limited reservation) through which a worker reports the results of jobs."""
        return Lease(self._database, jobs, worker, max_attempts, fallback)

    def extend(self, worker: str, lease_seconds: float) -> None:
        """Extend the reservation of all jobs of a worker until ``lease_seconds`` from now."""
        query = "UPDATE job SET leased_until = now() + make_interval(secs => ?) WHERE worker = ? AND state = 'queued'"
        self._database.retry(lambda: self._database.run_autocommit(lambda c: c.execute(query, [lease_seconds, worker])))

    def release(self, worker: str, *, has_crashed: bool = False) -> None:
        """Return a worker's jobs to the queue; after a crash (``has_crashed``), each job is then processed alone."""
        query = _RELEASE.format(has_crashed)
        self._database.retry(lambda: self._database.run_autocommit(lambda c: c.execute(query, [worker])))

    def count(self, run: str = "") -> dict[str, int]:
        """Return the number of jobs by state ("queued", "done", "failed"), for one run or (empty ``run``) all runs."""
        query = "SELECT state, COUNT(*) FROM job WHERE run = ? OR ? = '' GROUP BY state"
        return self._database.retry(
            lambda: self._database.run_autocommit(lambda c: dict(c.execute(query, [run, run]).fetchall()))
        )

    def list_outcomes(self, run: str) -> list[tuple[str, str, str, Mapping[str, Any]]]:
        """Return (kind, state, name, outcome) of each job of a run, sorted by name."""
        query = "SELECT kind, state, name, outcome FROM job WHERE run = ? ORDER BY name, kind"
        rows = self._database.retry(lambda: self._database.run_autocommit(lambda c: c.execute(query, [run]).fetchall()))
        return [(kind, state, name, json.loads(outcome)) for kind, state, name, outcome in rows]

    def delete(self, run: str) -> None:
        """Delete all jobs of a run from the queue."""
        self._database.retry(
            lambda: self._database.run_autocommit(lambda c: c.execute("DELETE FROM job WHERE run = ?", [run]))
        )

    @contextmanager
    def locked(self, names: Iterable[str]) -> Iterator[None]:
        """Hold a database lock for each of ``names`` in the ``with`` block, so that other machines wait.

        The server releases the locks if this process ends.
        """
        keys = sorted({hash_lock_name(name) for name in names})
        with self._database.connect() as connection:  # closed at the end, which releases the locks
            connection.execute("SELECT pg_advisory_lock(key) FROM unnest(%s::bigint[]) AS key", [keys])
            yield


class Lease:
    """A batch of jobs that is reserved for one worker for a limited time.

    Args:
        database: The database.
        jobs: The jobs.
        worker: Name of the worker.
        max_attempts: Number of failed attempts after which a job is not tried again.
        fallback: The next step of a job that failed ``max_attempts`` times; empty if the job fails then.

    Attributes:
        open: The jobs that have not ended, by name.
    """

    def __init__(
        self, database: PostgresDatabase, jobs: Sequence[Job], worker: str, max_attempts: int, fallback: str
    ) -> None:
        self._database = database
        self._fallback = fallback
        self._worker = worker
        self._max_attempts = max_attempts
        self._is_batch = len(jobs) > 1
        self._stored = 0
        self.open = {job.name: job for job in jobs}

    def finish(self, connection: PostgresConnection, outcomes: Outcomes) -> None:
        """Mark the jobs named in ``outcomes`` as done and store each outcome, within the caller's transaction.

        Args:
            connection: Connection of the transaction.
            outcomes: Outcome by name; names of other jobs are ignored.

        Raises:
            LeaseLostError: another worker has taken a job.
        """
        ended = {self.open[name].number: json.dumps(outcome) for name, outcome in outcomes.items() if name in self.open}
        cursor = connection.execute(_FINISH, [list(ended), list(ended.values()), self._worker])
        if cursor.rowcount != len(ended):
            raise LeaseLostError("the lease of a job expired before its end; raise worker.lease_seconds")

    def close(self, names: Iterable[str]) -> None:
        """Remove finished jobs from the lease, by name, after the transaction of :meth:`finish` was committed."""
        for name in names:
            if name in self.open:
                self._stored = self.open.pop(name).number

    def finish_all(self, outcomes: Outcomes) -> None:
        """Mark all open jobs of the lease as done, and store the outcome of each job from ``outcomes``."""
        self._database.retry(lambda: self._update(lambda c: self.finish(c, outcomes)))
        self.open = {}

    def advance(self, kind: str) -> None:
        """Return all open jobs of the lease to the queue, with ``kind`` as their next indexing step."""
        query = (
            "UPDATE job SET kind = ?, worker = '', leased_until = '-infinity', is_suspect = FALSE, attempts = 0 "
            "WHERE number = ANY(?) AND worker = ?"
        )
        numbers = [job.number for job in self.open.values()]
        self._database.retry(lambda: self._update(lambda c: c.execute(query, [kind, numbers, self._worker])))
        self.open = {}

    def fail(self, name: str, reason: str) -> None:
        """Record a failed attempt at a job, with the reason, and return the job to the queue for another attempt.

        After the last attempt, the job continues with the step ``fallback`` of the lease, or fails if there is none.
        """
        outcome, count = json.dumps({"reason": reason}), int(self._is_batch)
        parameters = [
            outcome,
            self._fallback,
            count,
            count,
            self._max_attempts,
            self.open.pop(name).number,
            self._worker,
        ]
        self._database.retry(lambda: self._update(lambda c: c.execute(_FAIL, parameters)))

    def add_failures(self, failures: Sequence[Failure]) -> None:
        """Add failures of incompletely stored documents to the outcome of the job that this lease finished last."""
        outcome = json.dumps({"failures": [[failure.id, failure.reason] for failure in failures]})
        self._database.retry(lambda: self._update(lambda c: c.execute(_ADD_FAILURES, [outcome, self._stored])))

    def _update(self, write: Callable[[PostgresConnection], object]) -> None:
        with self._database.updating() as connection:
            write(connection)


def describe_stored(documents: Sequence[IndexedDocument], replaced_ids: Set[str]) -> Outcomes:
    """Return the counts that each document adds to the run's report: added or updated, passages, hyperedges, removals.

    The dictionary is keyed by document id. Documents in ``replaced_ids`` are updated, the others added.
    """
    return {
        item.document.id: {
            "updated" if item.document.id in replaced_ids else "added": 1,
            "passages": len(item.passages),
            "hyperedges": sum(len(passage.hyperedges) for passage in item.passages),
            "notes": build_notes(item.document.metadata),
        }
        for item in documents
    }


def hash_lock_name(name: str) -> int:
    """Return the number of the advisory lock with a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def _build_id(kind: str, name: str) -> bytes:
    """Return a job's id, a hash of its kind and name.

    A file and a document of the same name have different ids.
    """
    return hashlib.sha256(f"{kind == 'read'}\0{name}".encode()).digest()


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
