"""The protocol of a queue of jobs, and the records that it holds.

A job is a row: a file to read, a document to embed, the upload of a client. Workers take jobs from the queue. Jobs of
one run, such as a command or a request of a client, have the same token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from polyad.errors import StoreError
from polyad.protocols.store import LockingStore

State = Literal["queued", "running", "done", "failed", "cancelled"]
"""The state of a job: ``running`` while a worker has it, also if that worker has vanished."""

Outcomes = Mapping[str, Mapping[str, Any]]
"""The outcome of each job by name: numbers to add to the counts of the run, or the failures."""


class LeaseLostError(StoreError):
    """Raised if a worker reports about a job that another worker has taken, or that was cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A piece of work in a queue, which one worker processes.

    Attributes:
        run: Token of the command or the request that queued the job.
        kind: What is to be done: a name in a table of :class:`polyad.engine.jobs.JobKind`.
        name: Path of a file, or id of a document or of a request.
        method: Construction method; empty for the method of each document.
        content: Working folder of a file, or the JSON of a document; empty in lists, and after the end.
        size: Characters of the document.
        source: File of the document.
        digest: Hash of the content of the document or of the request.
        created, ended: Times in UTC; empty if unknown or not yet.
        outcome: What the job has done so far, such as counts, failures or a report; of a request also what it asks for.
        files: Contents of the files of a job that is added. They are deleted when it ends.
        number: Primary key, in the order in which jobs were added.
        state: The state.
        attempts: Attempts that failed, or ended their process.
        reason: Reason of the last failure or of the end; empty if there is none.
        revision: Number of this state of the job; grows by one with each change.
    """

    run: str
    kind: str
    name: str
    method: str = ""
    content: str = ""
    size: int = 0
    source: str = ""
    digest: str = ""
    created: str = ""
    ended: str = ""
    outcome: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[bytes] = ()
    number: int = 0
    state: State = "queued"
    attempts: int = 0
    reason: str = ""
    revision: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the job has ended: done, failed or cancelled."""
        return self.state not in ("queued", "running")


class JobQueue(Protocol):
    """A protocol of queues of jobs, which workers in several processes, or on several machines, share.

    A worker takes several jobs together. After a worker process has vanished, each of its jobs is taken alone, which
    shows whether the job ends the process. Only attempts at a job that is taken alone count.
    """

    def add(self, jobs: Sequence[Job]) -> list[tuple[Job, str]]:
        """Queue jobs in one transaction; return those whose name is in use, each with the source of the other job.

        The name is in use if a job of the same run has it, and another content. A job of the same run with the same
        content stays, and a job of an earlier run with the same name is replaced.
        """

    def take(
        self, kinds: Sequence[str], worker: str, lease_seconds: float, max_attempts: int, *, is_ordered: bool = False
    ) -> list[Job]:
        """Reserve the next jobs of the first of ``kinds`` that has any, for ``lease_seconds``, and return these jobs.

        A job that ended ``max_attempts`` worker processes is set aside as failed.

        Args:
            kinds: Kinds of jobs, the preferred ones first.
            worker: Name of the worker.
            lease_seconds: Time after which another worker may take the jobs.
            max_attempts: Attempts alone after which a job is set aside.
            is_ordered: Whether to take one job, the oldest of all ``kinds``, whoever had it before. The caller holds a
                lock, which prevents that two workers have such jobs at the same time.
        """

    def extend(self, worker: str, lease_seconds: float) -> None:
        """Extend the reservation of all jobs of a worker until ``lease_seconds`` from now."""

    def release(self, worker: str, *, has_crashed: bool = False) -> None:
        """Return a worker's jobs to the queue; after a crash (``has_crashed``), each job is then processed alone."""

    def check(self, job: Job, worker: str) -> tuple[bool, Sequence[str]]:
        """Return whether a worker has a job, which was not cancelled, and the ids of documents to leave out."""

    def report(self, job: Job, worker: str, outcome: Mapping[str, Any], *, has_advanced: bool) -> None:
        """Store the ``outcome`` of a running job so far; ``has_advanced`` forgets the attempts before."""

    def finish(
        self, worker: str, jobs: Iterable[Job], outcomes: Outcomes, *, state: State = "done", reason: str = ""
    ) -> None:
        """End jobs of a worker with their outcomes by name, and delete their content and files.

        Raises:
            LeaseLostError: The worker does not have one of the jobs any more; none was ended.
        """

    def advance(self, worker: str, jobs: Iterable[Job], kind: str) -> None:
        """Return jobs of a worker to the queue, with ``kind`` as their next step."""

    def fail(self, worker: str, job: Job, reason: str, max_attempts: int, *, fallback: str = "") -> None:
        """Record a failed attempt at a job of a worker, and return the job to the queue for another attempt.

        After the last attempt, the job continues as the kind ``fallback``, or fails if there is none.

        Args:
            worker: Name of the worker.
            job: The job.
            reason: Reason of the failure.
            max_attempts: Number of attempts that count.
            fallback: Kind of the job after its last attempt; empty to let it fail.
        """

    def add_failures(self, job: Job, failures: Sequence[tuple[str, str]]) -> None:
        """Add (id, reason) of what is missing to the outcome of a job that has ended."""

    def remove_documents(self, run: str, ids: Iterable[str]) -> None:
        """Leave documents with these ids out of the jobs of a run."""

    def cancel(self, run: str = "", *, kinds: Sequence[str] = (), reason: str) -> None:
        """Cancel the jobs of a run, or all jobs of some kinds; a worker that has one ends it at its next check."""

    def count(self, run: str = "", *, kinds: Sequence[str] = (), is_open: bool = False) -> dict[State, int]:
        """Return the number of jobs by state; the arguments are those of :meth:`list`."""

    def list(self, run: str = "", *, kinds: Sequence[str] = (), is_open: bool = False) -> list[Job]:
        """Return jobs in the order in which they were added, without their content.

        Args:
            run: Token of the run; empty for all runs.
            kinds: Kinds of jobs; empty for all.
            is_open: Whether to return only jobs that have not ended.
        """

    def read_file(self, run: str, place: int) -> bytes:
        """Return the content of the file at a place in the list of files of a run.

        Raises:
            LeaseLostError: The run has ended, and its files are deleted.
        """

    def delete(self, run: str = "", *, kinds: Sequence[str] = (), keep: int = 0) -> None:
        """Delete all ended jobs of a run, or of some kinds, except the last ``keep``."""


@runtime_checkable
class SharedJobQueue(JobQueue, Protocol):
    """A protocol of queues that workers on several machines share, which store documents and end jobs together."""

    def locked(self, names: Iterable[str]) -> AbstractContextManager[None]:
        """Hold a lock for each of ``names`` in the ``with`` block, so that other machines wait."""


@runtime_checkable
class QueueStore(LockingStore, Protocol):
    """A protocol of stores with a queue of jobs."""

    @property
    def jobs(self) -> JobQueue:
        """The queue of jobs of the index."""
