"""Workers, which take jobs from the queue of an index and process them by the kind of each job."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from polyad.curation.curator import HistoryRecorder
from polyad.engine.engine import Engine
from polyad.errors import ConfigurationError, NoMoreRepliesError, PolyadError, StoreError
from polyad.protocols.jobs import Job, JobQueue, LeaseLostError, QueueStore, SharedJobQueue

_LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.2
"""Seconds between two looks at an empty queue that many workers share, and between two checks of processes."""

_LOCK = "jobs"
"""Lock of the worker that processes ordered jobs."""

_LOCK_SECONDS = 0.75
"""Seconds until a worker tries again to take the lock that another one has."""


class JobStoppedError(BaseException):
    """Raised inside an ordered job if its worker stops or loses the lock; another worker continues the job.

    The class is no :class:`Exception`, because the indexer continues with the next document after an exception.
    """


class JobCancelledError(BaseException):
    """Raised inside an ordered job that was cancelled; see :class:`JobStoppedError`."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job, a row in a table by name.

    Attributes:
        run: Processes jobs of this kind that a worker has: a batch, or one ordered job.
        fallback: The next kind of a job that failed too often; empty to set the job aside.
        is_ordered: Whether jobs of this and all other ordered kinds are processed one after another, in the order in
            which they were added. They need no store that several machines share.
    """

    run: Callable[[Worker, Sequence[Job]], None]
    fallback: str = ""
    is_ordered: bool = False


class Worker:
    """Takes jobs from the queue of an index and processes them.

    Args:
        engine: The index.
        kinds: The kinds of jobs to take by name, the preferred ones first.

    Attributes:
        engine: The index.
        queue: The queue.
        name: Name of machine and process, under which jobs are reserved.
        is_stopped: Whether :meth:`stop` was called.
        wake: Set it to end a wait for jobs, because a job was added.

    Raises:
        ConfigurationError: The store of the index has no queue for jobs of these kinds.
    """

    def __init__(self, engine: Engine, kinds: Mapping[str, JobKind]) -> None:
        if not isinstance(engine.values, QueueStore):
            raise ConfigurationError("the store of the index has no queue; expected a folder or a PostgreSQL database")
        self.engine = engine
        self.queue: JobQueue = engine.values.jobs
        self._open_lock = engine.values.lock
        self._settings = engine.components.settings.worker
        is_shared = isinstance(self.queue, SharedJobQueue)
        self._kinds = {name: kind for name, kind in kinds.items() if kind.is_ordered or is_shared}
        self._ordered = [name for name, kind in self._kinds.items() if kind.is_ordered]
        self._parallel = [name for name in self._kinds if name not in self._ordered]
        if not self._kinds:
            raise ConfigurationError(
                "workers need an index in PostgreSQL; name one with --store postgresql://HOST/DATABASE"
            )
        self._next_look = 0.0
        self.is_stopped = False
        self.wake = threading.Event()
        self._recorder: tuple[str, HistoryRecorder] | None = None
        self._has_lock: Callable[[], bool] = lambda: False
        self.name = format_worker_name(os.getpid())
        if self._parallel and engine.components.language_model and isinstance(self.queue, SharedJobQueue):
            engine.components.language_model.locked = self.queue.locked

    def stop(self) -> None:
        """Make the worker end after its current document, or its current batch of jobs."""
        self.is_stopped = True
        self.wake.set()

    def wait(self, seconds: float) -> None:
        """Wait until :attr:`wake` is set, at most for some seconds."""
        self.wake.wait(seconds)
        self.wake.clear()

    def run(self, *, until_idle: bool = False) -> int:
        """Process jobs of the queue until :meth:`stop` is called, and return their number.

        Args:
            until_idle: Whether to return when no worker has a job.

        Raises:
            PolyadError: The settings, the language model or the database prevent any further job.
        """
        count, kinds = 0, list(self._kinds)
        with self._extend_leases():
            while not self.is_stopped:
                if done := self.run_next():
                    count += done
                elif until_idle and not self.queue.count(kinds=kinds, is_open=True):
                    break
                else:
                    self.wait(POLL_SECONDS)
        return count

    def run_next(self) -> int:
        """Process the next jobs, and return their number; 0 if there is none, or another worker has the lock."""
        settings = self._settings
        if self._parallel:
            jobs = self.queue.take(self._parallel, self.name, settings.lease_seconds, settings.max_attempts)
            if jobs:
                self._process_jobs(jobs)
                return len(jobs)
        if not self._ordered or time.monotonic() < self._next_look:
            return 0
        if not self.queue.count(kinds=self._ordered, is_open=True):
            return 0
        with self._open_lock(_LOCK) as self._has_lock:
            if not self._has_lock():
                self._next_look = time.monotonic() + _LOCK_SECONDS
                return 0
            jobs = self.queue.take(self._ordered, self.name, 0.0, settings.max_attempts, is_ordered=True)
            if jobs:
                self._process_jobs(jobs)
        return len(jobs)

    def check(self, job: Job) -> Sequence[str]:
        """Return the ids of documents to leave out of an ordered job that this worker may continue.

        Raises:
            JobStoppedError: The worker stops, or has lost the lock.
            JobCancelledError: The job was cancelled.
        """
        if self.is_stopped or not self._has_lock():
            raise JobStoppedError
        is_reserved, removed = self.queue.check(job, self.name)
        if not is_reserved:
            raise JobCancelledError
        return removed

    @contextmanager
    def _extend_leases(self) -> Iterator[None]:
        """Keep this worker's jobs reserved during the ``with`` block by extending their leases, then release them."""
        has_ended = threading.Event()

        def extend() -> None:
            while not has_ended.wait(self._settings.lease_seconds / 3):
                with suppress(StoreError):  # without a connection the leases expire
                    self.queue.extend(self.name, self._settings.lease_seconds)

        thread = threading.Thread(target=extend, name="polyad-leases", daemon=True)
        if self._parallel:
            thread.start()
        try:
            yield
        finally:
            has_ended.set()
            if self._parallel:
                thread.join()
            self.queue.release(self.name)
            self._finish_recorder()

    def _process_jobs(self, jobs: Sequence[Job]) -> None:
        """Process a batch of jobs of the same kind; failed jobs are queued again or marked as failed."""
        try:
            self._kinds[jobs[0].kind].run(self, jobs)
        except LeaseLostError as error:
            _LOG.warning("%s", error)
        except JobStoppedError:
            self.queue.release(self.name)
        except (ConfigurationError, StoreError, NoMoreRepliesError):
            raise  # no document is at fault
        except Exception as error:  # a component may raise any exception, and other jobs may succeed
            for job in jobs:  # of which those that have ended stay as they are
                self.fail(job, str(error) if isinstance(error, PolyadError) else f"{type(error).__name__}: {error}")

    def fail(self, job: Job, reason: str) -> None:
        """Record a failed attempt at a job; see :meth:`polyad.protocols.jobs.JobQueue.fail`."""
        fallback = self._kinds[job.kind].fallback
        self.queue.fail(self.name, job, reason, self._settings.max_attempts, fallback=fallback)

    def get_recorder(self, run: str) -> HistoryRecorder:
        """Return the recorder that adds this worker's documents and costs of a run to the index's history."""
        if self._recorder is None or self._recorder[0] != run:
            self._finish_recorder()
            self._recorder = run, HistoryRecorder("index", datetime.now(UTC), lambda: self.engine.components.usage)
        return self._recorder[1]

    def _finish_recorder(self) -> None:
        if self._recorder is not None:
            self._recorder[1].finish(self.engine.values)


def format_worker_name(process_id: int) -> str:
    """Return the unique name of a worker: the name of this machine with the id of the process."""
    return f"{socket.gethostname()}:{process_id}"
