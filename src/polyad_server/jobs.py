"""Indexing in the background. Jobs are stored with the index, so they survive a restart of the server."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import anyio
import anyio.to_thread

from polyad.engine import Engine
from polyad.engine.catalogue import Catalogue
from polyad.errors import NotFoundError, PolyadError, StoreUnavailableError
from polyad.indexing.run import IndexReport
from polyad.model import Document, Failure, MetadataValue
from polyad.protocols.store import LockingStore
from polyad.schemas.reports import index_json
from polyad_server.file_results import OUTCOMES, FileResult, FileResults
from polyad_server.problems import RequestError, describe_error
from polyad_server.uploads import UploadedFile, read_uploads
from polyad_server.web_pages import FetchError, fetch_page

JOBS = "server-jobs"
"""Namespace of jobs, by id."""

UPLOADS = "server-uploads"
"""Namespace of the content of uploaded files, by id of the job and number of the file."""

CANCELLATIONS = "server-cancellations"
"""Namespace of the ids of jobs that a client cancelled."""

MAX_ENDED_JOBS = 1000
"""Number of ended jobs that are stored; older jobs are deleted."""

MAX_WAITING_JOBS = 100
"""Number of jobs that wait or run; further ones are rejected, because the store holds their files."""

MAX_INTERRUPTIONS = 3
"""Number of times in a row that a job may end the process without having processed a document more."""

_POLL_SECONDS = 0.25
_LOCK_SECONDS = 60.0
"""Time that a request waits for requests of other processes that add a job to the index."""

_LOG = logging.getLogger("polyad.server.jobs")

State = Literal["queued", "running", "succeeded", "failed", "cancelled"]

Kind = Literal["files", "addresses", "documents"]
"""The inputs of a job: uploaded files, addresses of web pages, or ids of stored documents to index again."""


@dataclass(frozen=True, slots=True)
class Job:
    """An indexing job of the server: its files, and its state such as running or succeeded.

    Attributes:
        id: Id of the job.
        files: Names of the uploaded files, addresses of web pages or ids of documents, as ``kind`` says.
        method: Construction method; empty for the method of the index.
        metadata: Metadata of all documents of the job.
        digest: SHA-256 of the request, by which a repeated request is recognised.
        state: ``queued``, ``running``, ``succeeded``, ``failed`` or ``cancelled``.
        created, started, ended: Times in UTC; empty if not yet.
        done: Number of documents that were processed.
        total: Number of documents of the job; None if it is not known.
        message: Current step of the job, or the reason of its failure.
        report: Output of ``polyad index --json``, once the job has ended.
        number: Number of this state of the job; grows by one with each change.
        interruptions: Number of times in a row that the process ended while it ran the job, without having processed
            more documents than before.
        kind: ``files``, ``addresses`` or ``documents``.
        results: The state and the outcome of each file; see :mod:`polyad_server.file_results`.
    """

    id: str
    files: Sequence[str]
    method: str
    digest: str
    created: str
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    state: State = "queued"
    started: str = ""
    ended: str = ""
    done: int = 0
    total: int | None = None
    message: str = ""
    report: Mapping[str, Any] | None = None
    number: int = 1
    interruptions: int = 0
    kind: Kind = "files"
    results: Sequence[Mapping[str, Any]] = ()

    @property
    def is_over(self) -> bool:
        """Whether the indexing job has ended: succeeded, failed or cancelled."""
        return self.state in ("succeeded", "failed", "cancelled")


class _StoppedError(BaseException):
    """Raised inside an indexing job when the server stops or loses the lock; the job continues at the next start.

    The class is no :class:`Exception`, because the indexer continues with the next document after an exception.
    """


class _CancelledError(BaseException):
    """Raised inside an indexing job that a client cancelled; see :class:`_StoppedError`."""


class JobRunner:
    """Runs the indexing jobs of one index in a background thread, one job after another.

    A lock of the store prevents that two servers run jobs of the index at the same time.

    Args:
        engine: The index.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._values = engine.values
        self._wake = threading.Event()
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._has_lock: Callable[[], bool] = lambda: False

    # Used by requests

    def submit(
        self,
        files: Sequence[UploadedFile],
        *,
        method: str = "",
        metadata: Mapping[str, MetadataValue] | None = None,
        idempotency_key: str = "",
        kind: Kind = "files",
        now: datetime,
    ) -> Job:
        """Store uploaded files together with a job that indexes the files, and return the job.

        A repeated request with the same idempotency key returns the first job. Of web pages and stored documents, the
        names of ``files`` are the addresses and the ids.

        Raises:
            RequestError: Another request has the same idempotency key, or too many jobs are waiting.
            StoreUnavailableError: Other servers add jobs all the time.
        """
        digest = _digest_request(files, method if kind == "files" else f"{method} {kind}", metadata or {})
        id = hashlib.sha256(idempotency_key.encode()).hexdigest()[:24] if idempotency_key else secrets.token_hex(12)
        with self._lock, self._open_lock("submission") as take_lock:
            _wait_for_lock(take_lock)
            if stored := self._values.get_values(JOBS, [id]):
                job = _parse_job(stored[id])
                if job.digest != digest:
                    raise RequestError(409, "idempotency_key_reused", "the Idempotency-Key belongs to another request")
                return job
            if sum(not job.is_over for job in self.list_all()) >= MAX_WAITING_JOBS:
                raise RequestError(429, "busy", f"{MAX_WAITING_JOBS} jobs are waiting; try again", 10)
            uploads = {_upload_key(id, number): file.content for number, file in enumerate(files)}
            self._values.put_values(UPLOADS, dict(uploads))
            names = [file.name for file in files]
            job = Job(id, names, method, digest, self._choose_time(now), metadata or {}, kind=kind)
            self._put(job)
            self._delete_old_jobs()
        self._wake.set()
        return job

    def get(self, id: str) -> Job:
        """Return the indexing job with this id.

        Raises:
            NotFoundError: There is no such job.
        """
        stored = self._values.get_values(JOBS, [id])
        if not stored:
            raise NotFoundError(f"there is no job {id!r}")
        return _parse_job(stored[id])

    def list_all(self) -> list[Job]:
        """Return all jobs of the index, newest first."""
        return sorted(map(_parse_job, self._values.get_values(JOBS).values()), key=lambda job: job.created)[::-1]

    def cancel(self, id: str) -> Job:
        """Cancel an indexing job; documents that it stored before stay in the index.

        Raises:
            NotFoundError: There is no such job.
        """
        job = self.get(id)
        if not job.is_over:
            self._values.put_values(CANCELLATIONS, {id: b""})
            self._wake.set()
        return job

    def cancel_all(self) -> None:
        """Cancel all jobs that have not ended."""
        for job in self._list_unfinished():
            self.cancel(job.id)

    async def follow(self, id: str, after: int = 0) -> AsyncIterator[Job]:
        """Yield the states of a job, from number ``after`` + 1 on, until the job ends.

        No thread waits for the job, so clients that follow jobs do not occupy the threads of other requests.

        Raises:
            NotFoundError: There is no such job.
        """
        while True:
            job = await anyio.to_thread.run_sync(self.get, id)
            if job.number > after:
                yield job
                after = job.number
            if job.is_over or self._is_stopping:
                return
            await anyio.sleep(_POLL_SECONDS)

    # Running

    def start(self) -> None:
        """Start the job thread, which first runs unfinished jobs of an earlier server process."""
        self._thread = threading.Thread(target=self._run, name="polyad-jobs", daemon=True)
        self._thread.start()

    def request_stop(self) -> None:
        """Ask the running job to stop after its current document, and end all state streams; return at once."""
        self._is_stopping = True
        self._wake.set()

    def stop(self, seconds: float | None = None) -> bool:
        """Stop the running job after its current document; the job continues at the next server start.

        Args:
            seconds: Time to wait for the job, which may wait for a model; None for no limit.

        Returns:
            Whether the job has stopped.
        """
        self.request_stop()
        if self._thread is None:
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._is_stopping:
            try:
                if not self._run_next_job():
                    self._wake.wait(_POLL_SECONDS * 4)  # jobs of other processes do not wake this one
                    self._wake.clear()
            except PolyadError as error:
                _LOG.error("jobs cannot be run: %s", error)
                time.sleep(1)

    def _run_next_job(self) -> bool:
        """Run the oldest unfinished job, unless another process runs jobs; return whether a job was run."""
        if not self._list_unfinished():
            return False
        with self._open_lock("jobs") as self._has_lock:
            unfinished = self._list_unfinished() if self._has_lock() else []
            if unfinished:
                self._run_job(unfinished[-1])
            return bool(unfinished)

    def _list_unfinished(self) -> list[Job]:
        return [job for job in self.list_all() if not job.is_over]

    def _open_lock(self, name: str) -> AbstractContextManager[Callable[[], bool]]:
        return self._values.lock(name) if isinstance(self._values, LockingStore) else nullcontext(lambda: True)

    def _run_job(self, job: Job) -> None:
        interruptions = job.interruptions + 1 if job.state == "running" else 0  # the process that ran it has ended
        if interruptions > MAX_INTERRUPTIONS:
            message = f"the server ended {interruptions} times while it ran this job, after {job.done} documents"
            results = [each if each["state"] in OUTCOMES else {**each, "state": "failed"} for each in job.results]
            self._end(replace(job, results=results), "failed", f"{message}; add the files after these one by one")
            return
        job = replace(
            job,
            state="running",
            started=job.started or _now(),
            number=job.number + 1,
            interruptions=interruptions,
        )
        self._put(job)
        recorder = _ProgressRecorder(self, job, self._engine.catalogue)
        try:
            report = self._run_kind(job, recorder)
        except PolyadError as error:
            message = describe_error(error)
            self._end(recorder.end((), message), "failed", message)
        except _StoppedError:
            if self._has_lock():
                self._put(replace(recorder.job, state="queued", number=recorder.job.number + 1))
        except _CancelledError:
            message = "cancelled; what was stored before stays in the index"
            self._end(recorder.end((), "cancelled"), "cancelled", message)
        except Exception:  # a job that always fails must not stop the jobs after it, nor run again at each start
            _LOG.exception("the job %s failed", job.id)
            message = "the server failed; its log contains the cause"
            self._end(recorder.end((), message), "failed", message)
        else:
            is_failed = not report.is_complete and not report.counts.added + report.counts.updated
            message = "; ".join(f"{failure.id}: {failure.reason}" for failure in report.failures[:3])
            ended = recorder.end(report.failures, report.counts.stop_reason)
            self._end(ended, "failed" if is_failed else "succeeded", message, dict(index_json(report)))

    def _run_kind(self, job: Job, recorder: _ProgressRecorder) -> IndexReport:
        if job.kind != "documents":
            documents = self._read(job, recorder.results)
            sizes = self._measure_uploads(job)
            return self._engine.index_documents(documents, method=job.method, file_sizes=sizes, progress=recorder)
        return self._engine.index(job.files, method=job.method, force=True, progress=recorder)

    def _read(self, job: Job, results: FileResults) -> Iterator[Document | Failure]:
        """Yield the documents of a job's files or web pages, and record which file each document comes from."""
        settings = self._engine.components.settings.read
        for number, name in enumerate(job.files):
            self.check_interruption(job)
            results.begin(number)
            try:
                file = fetch_page(name) if job.kind == "addresses" else self._get_upload(job, number)
            except FetchError as error:
                items: Iterable[Document | Failure] = [Failure(name, str(error))]
            else:
                items = read_uploads([file], job.metadata, job.method, settings)
            for item in items:
                self.check_interruption(job)
                results.add(number, item)
                yield item
            results.end(number)

    def _measure_uploads(self, job: Job) -> dict[str, int]:
        """Return the size of each uploaded file in bytes; those of web pages are not known before."""
        if job.kind == "addresses":
            return {}
        contents = self._values.get_values(UPLOADS, [_upload_key(job.id, number) for number in range(len(job.files))])
        return {name: len(contents[_upload_key(job.id, number)]) for number, name in enumerate(job.files)}

    def _get_upload(self, job: Job, number: int) -> UploadedFile:
        key = _upload_key(job.id, number)
        return UploadedFile(job.files[number], self._values.get_values(UPLOADS, [key])[key])

    def check_interruption(self, job: Job) -> None:
        """Raise an internal error that ends the job if the server stops, a client cancelled it or the lock was lost."""
        if self._is_stopping or not self._has_lock():
            raise _StoppedError
        if self._values.get_values(CANCELLATIONS, [job.id]):
            raise _CancelledError

    def _end(self, job: Job, state: State, message: str, report: Mapping[str, Any] | None = None) -> None:
        self._put(replace(job, state=state, ended=_now(), message=message, report=report, number=job.number + 1))
        self._delete_uploads(job)

    def _put(self, job: Job, *, is_optional: bool = False) -> None:
        self._values.put_values(JOBS, {job.id: json.dumps(asdict(job)).encode()}, is_optional=is_optional)

    def _delete_uploads(self, job: Job) -> None:
        self._values.put_values(UPLOADS, {_upload_key(job.id, number): None for number in range(len(job.files))})
        self._values.put_values(CANCELLATIONS, {job.id: None})

    def _choose_time(self, now: datetime) -> str:
        """Return the time ``now``, or a time after all jobs: jobs run in this order, also if the clock was set back."""
        times = (datetime.fromisoformat(job.created) + timedelta(milliseconds=1) for job in self.list_all())
        return max([now, *times]).isoformat(timespec="milliseconds")

    def _delete_old_jobs(self) -> None:
        ended = [job for job in self.list_all() if job.is_over]
        if len(ended) > MAX_ENDED_JOBS:
            self._values.put_values(JOBS, {job.id: None for job in ended[MAX_ENDED_JOBS:]})


class _ProgressRecorder:
    """A progress callback that stores the progress of a job, a few times a second.

    Args:
        runner: Stores the job.
        job: The job.
        catalogue: Looks up which documents are stored.

    Attributes:
        job: The job with its latest progress.
        results: The outcome of each file; of documents that are indexed again, only failures are listed.
    """

    def __init__(self, runner: JobRunner, job: Job, catalogue: Catalogue) -> None:
        self._runner = runner
        self.job = job
        self.results = FileResults(catalogue, [FileResult(name) for name in job.files if job.kind != "documents"])
        self._last_write = 0.0
        self._done_before = job.done

    def end(self, failures: Sequence[Failure], reason: str) -> Job:
        """Return the job with the outcome of each file; ``reason`` says why it ended early, and is empty otherwise."""
        if self.job.kind == "documents":
            failed = [FileResult(one.id, "failed", failed=1, reason=one.reason) for one in failures]
            return replace(self.job, results=[asdict(one) for one in failed])
        return replace(self.job, results=self.results.close(failures, reason))

    def __call__(self, done: int, total: int | None, message: str) -> None:
        interruptions = 0 if done > self._done_before else self.job.interruptions
        self.job = replace(self.job, done=done, total=total, message=message, interruptions=interruptions)
        self._runner.check_interruption(self.job)  # _read makes no more checks if all documents are read
        if time.monotonic() - self._last_write >= _POLL_SECONDS:
            self._last_write = time.monotonic()
            self.job = replace(self.job, number=self.job.number + 1, results=self.results.settle())
            self._runner._put(self.job, is_optional=True)


def _wait_for_lock(take_lock: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while not take_lock():
        if time.monotonic() > deadline:
            raise StoreUnavailableError("other requests have been adding jobs for a minute; try again")
        time.sleep(_POLL_SECONDS / 10)


def _digest_request(files: Sequence[UploadedFile], method: str, metadata: Mapping[str, MetadataValue]) -> str:
    digest = hashlib.sha256(json.dumps([method, dict(metadata), [file.name for file in files]]).encode())
    for file in files:
        digest.update(hashlib.sha256(file.content).digest())
    return digest.hexdigest()


def _upload_key(id: str, number: int) -> str:
    return f"{id}/{number}"


def _parse_job(value: bytes) -> Job:
    return Job(**json.loads(value))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
