"""Indexing in the background. Jobs are stored with the index, so they survive a restart of the server."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, starmap
from typing import Any, Literal, get_args

import anyio
import anyio.to_thread

from polyad.engine import Engine
from polyad.engine.catalogue import Catalogue
from polyad.errors import NotFoundError, PolyadError
from polyad.indexing.run import IndexReport
from polyad.model import Document, Failure, MetadataValue
from polyad.schemas.reports import index_json
from polyad_server.file_results import OUTCOMES, FileResult, FileResults
from polyad_server.locks import hold_lock, open_lock
from polyad_server.problems import RequestError, describe_error
from polyad_server.uploads import UploadedFile, read_uploads
from polyad_server.web_pages import FetchError, fetch_page

JOBS = "server-jobs"
"""Namespace of jobs that have not ended, by id."""

ENDED_JOBS = "server-ended-jobs"
"""Namespace of ended jobs, by id, which a look at the queue does not read."""

ENDED_STATES = "server-ended-states"
"""Namespace of one value: id, time and state of each ended job, oldest first."""

REMOVALS = "server-removals"
"""Namespace of the ids of documents that were removed before the job that contains them had ended, by id of the job."""

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
_RETRY_SECONDS = 1.0

_RECORD_FILES = (".jsonl", ".json", ".csv", ".tsv")
"""Extensions of files whose documents are named by their content."""

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

    def get_key(self, number: int) -> str:
        """Return the key of the content of a file among the uploads."""
        return f"{self.id}/{number}"

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
        self._is_failing = False
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
        with self._lock, hold_lock(self._values, "submission"):
            if job := self._find(id):
                if job.digest != digest:
                    raise RequestError(409, "idempotency_key_reused", "the Idempotency-Key belongs to another request")
                return job
            unfinished = self._list_unfinished()
            if len(unfinished) >= MAX_WAITING_JOBS:
                raise RequestError(429, "busy", f"{MAX_WAITING_JOBS} jobs are waiting; try again", 10)
            uploads = {f"{id}/{number}": file.content for number, file in enumerate(files)}
            self._values.put_values(UPLOADS, dict(uploads))
            names = [file.name for file in files]
            job = Job(id, names, method, digest, self._choose_time(now, unfinished), metadata or {}, kind=kind)
            self._put(job)
        self._wake.set()
        return job

    def get(self, id: str) -> Job:
        """Return the indexing job with this id.

        Raises:
            NotFoundError: There is no such job.
        """
        job = self._find(id)
        if job is None:
            raise NotFoundError(f"there is no job {id!r}")
        return job

    def _find(self, id: str, namespaces: Sequence[str] = (JOBS, ENDED_JOBS)) -> Job | None:
        # in this order, because an ended job is stored among the ended ones before it leaves the queue
        for namespace in namespaces:
            if stored := self._values.get_values(namespace, [id]):
                return _parse_job(id, stored[id])
        return None

    def list_all(self) -> list[Job]:
        """Return all jobs of the index, newest first."""
        values = self._values.get_values(JOBS) | self._values.get_values(ENDED_JOBS)
        return _sort_jobs(values)

    def count_states(self) -> Counter[str]:
        """Return the number of jobs by state."""
        states = [job.state for job in _sort_jobs(self._values.get_values(JOBS)) if not job.is_over]
        return Counter(states) + Counter(state for *_, state in self._list_ended())

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

    def remove_documents(self, ids: Sequence[str]) -> None:
        """Remove documents, also those that jobs have yet to index.

        Raises:
            NotFoundError: A document is neither in the index nor in a job; no document was removed.
        """
        with self._lock, hold_lock(self._values, "submission"):
            waiting = {job.id: [id for id in ids if self._may_contain(job, id)] for job in self._list_unfinished()}
            stored = self._engine.catalogue.digests(ids)
            if missing := set(ids) - stored.keys() - set(chain.from_iterable(waiting.values())):
                raise NotFoundError(f"there is no document {min(missing)!r}")
            removals = self._values.get_values(REMOVALS, [*waiting])
            self._values.put_values(
                REMOVALS,
                {
                    job: json.dumps([*json.loads(removals.get(job, b"[]")), *removed]).encode()
                    for job, removed in waiting.items()
                    if removed
                },
            )
        self._remove_stored(ids)  # after the jobs were told, so that none stores a document between

    def _may_contain(self, job: Job, id: str) -> bool:
        """Return whether a job may index a document with this id, by the names and the content of its files."""
        if any(id.startswith(name) for name in job.files):
            return True
        numbers = [number for number, name in enumerate(job.files) if name.lower().endswith(_RECORD_FILES)]
        contents = (self._values.get_values(UPLOADS, [key]).get(key, b"") for key in map(job.get_key, numbers))
        return any(form in content for content in contents for form in (id.encode(), json.dumps(id)[1:-1].encode()))

    def _remove_stored(self, ids: Iterable[str]) -> None:
        stored = [*self._engine.catalogue.digests([*ids])]
        if stored:
            self._engine.remove(stored)

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

    @property
    def is_failing(self) -> bool:
        """Whether the job thread has ended without being asked to, or failed at its last look at the queue."""
        is_dead = self._thread is not None and not self._thread.is_alive() and not self._is_stopping
        return is_dead or self._is_failing

    def restart(self) -> None:
        """Start the job thread again if it has ended without being asked to."""
        if self._thread is not None and not self._thread.is_alive() and not self._is_stopping:
            _LOG.error("the thread of indexing jobs had ended and is started again")
            self.start()

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
                is_idle = not self._run_next_job()
                self._is_failing = False
                if is_idle:
                    self._wake.wait(_POLL_SECONDS * 4)  # jobs of other processes do not wake this one
                    self._wake.clear()
            except PolyadError as error:
                _LOG.error("jobs cannot be run: %s", error)
                time.sleep(_RETRY_SECONDS)
            except Exception:  # whatever it is, it must not end indexing until the next start
                self._is_failing = True
                _LOG.exception("jobs cannot be run")
                time.sleep(_RETRY_SECONDS)

    def _run_next_job(self) -> bool:
        """Run the oldest unfinished job, unless another process runs jobs; return whether a job was run."""
        if not self._values.get_values(JOBS):
            return False
        with open_lock(self._values, "jobs") as self._has_lock:
            unfinished = self._list_unfinished() if self._has_lock() else []
            if self._has_lock():
                self._archive_ended()
            if unfinished:
                self._run_job(unfinished[-1])
            return bool(unfinished)

    def _list_unfinished(self) -> list[Job]:
        """Return the jobs that have not ended, newest first."""
        jobs = [job for job in _sort_jobs(self._values.get_values(JOBS)) if not job.is_over]
        ended = self._values.get_values(ENDED_JOBS, [job.id for job in jobs]) if jobs else {}
        return [job for job in jobs if job.id not in ended]

    def _archive_ended(self) -> None:
        """Move jobs out of the queue whose record cannot be read, or that an earlier version or a crash left there."""
        jobs = reversed(_sort_jobs(self._values.get_values(JOBS)))
        if ended := list(filter(None, (job if job.is_over else self._find(job.id, [ENDED_JOBS]) for job in jobs))):
            self._archive(*ended)
            for job in ended:
                self._delete_uploads(job)

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
            try:
                report = self._run_kind(job, recorder)
            finally:
                self._remove_stored(self._get_removals(job) - recorder.skipped)
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
            documents = self._read(job, recorder)
            sizes = self._measure_uploads(job)
            return self._engine.index_documents(documents, method=job.method, file_sizes=sizes, progress=recorder)
        return self._engine.index(job.files, method=job.method, force=True, progress=recorder)

    def _read(self, job: Job, recorder: _ProgressRecorder) -> Iterator[Document | Failure]:
        """Yield the documents of a job's files or web pages, and record which file each document comes from."""
        settings, results = self._engine.components.settings.read, recorder.results
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
                if item.id in self._get_removals(job):
                    recorder.skipped.add(item.id)
                    item = Failure(item.id, "the document was removed before it was indexed")
                results.add(number, item)
                yield item
            results.end(number)

    def _measure_uploads(self, job: Job) -> dict[str, int]:
        """Return the size of each uploaded file in bytes; those of web pages are not known before."""
        if job.kind == "addresses":
            return {}
        contents = self._values.get_values(UPLOADS, [job.get_key(number) for number in range(len(job.files))])
        return {name: len(contents[job.get_key(number)]) for number, name in enumerate(job.files)}

    def _get_upload(self, job: Job, number: int) -> UploadedFile:
        key = job.get_key(number)
        return UploadedFile(job.files[number], self._values.get_values(UPLOADS, [key])[key])

    def _get_removals(self, job: Job) -> set[str]:
        """Return the ids of documents of a job that clients removed since its request."""
        return set(json.loads(self._values.get_values(REMOVALS, [job.id]).get(job.id, b"[]")))

    def check_interruption(self, job: Job) -> None:
        """Raise an internal error that ends the job if the server stops, a client cancelled it or the lock was lost."""
        if self._is_stopping or not self._has_lock():
            raise _StoppedError
        if self._values.get_values(CANCELLATIONS, [job.id]):
            raise _CancelledError

    def _end(self, job: Job, state: State, message: str, report: Mapping[str, Any] | None = None) -> None:
        self._archive(replace(job, state=state, ended=_now(), message=message, report=report, number=job.number + 1))
        self._delete_uploads(job)

    def _archive(self, *jobs: Job) -> None:
        """Move ended jobs out of the queue, and delete the oldest ended jobs beyond their maximum number."""
        self._values.put_values(ENDED_JOBS, {job.id: _format_job(job) for job in jobs})
        ids = {job.id for job in jobs}
        rows = [row for row in self._list_ended() if row[0] not in ids]
        rows += [[job.id, job.created, job.state] for job in jobs]
        self._values.put_values(ENDED_JOBS, {id: None for id, *_ in rows[:-MAX_ENDED_JOBS]})
        self._values.put_values(ENDED_STATES, {"": json.dumps(rows[-MAX_ENDED_JOBS:]).encode()})
        self._values.put_values(JOBS, dict.fromkeys(ids))

    def _list_ended(self) -> list[list[str]]:
        """Return id, time of the request and state of each ended job, oldest first."""
        rows: list[list[str]] = json.loads(self._values.get_values(ENDED_STATES).get("", b"[]"))
        return rows

    def _put(self, job: Job, *, is_optional: bool = False) -> None:
        self._values.put_values(JOBS, {job.id: _format_job(job)}, is_optional=is_optional)

    def _delete_uploads(self, job: Job) -> None:
        self._values.put_values(UPLOADS, {job.get_key(number): None for number in range(len(job.files))})
        for namespace in (CANCELLATIONS, REMOVALS):
            self._values.put_values(namespace, {job.id: None})

    def _choose_time(self, now: datetime, unfinished: Sequence[Job]) -> str:
        """Return the time ``now``, or a time after all jobs: jobs run in this order, also if the clock was set back."""
        created = [job.created for job in unfinished] + [row[1] for row in self._list_ended() if row[1]]
        times = (datetime.fromisoformat(time) + timedelta(milliseconds=1) for time in created)
        return max([now, *times]).isoformat(timespec="milliseconds")


class _ProgressRecorder:
    """A progress callback that stores the progress of a job, a few times a second.

    Args:
        runner: Stores the job.
        job: The job.
        catalogue: Looks up which documents are stored.

    Attributes:
        job: The job with its latest progress.
        skipped: Ids of documents that were removed before they were indexed.
        results: The outcome of each file; of documents that are indexed again, only failures are listed.
    """

    def __init__(self, runner: JobRunner, job: Job, catalogue: Catalogue) -> None:
        self._runner = runner
        self.job = job
        self.skipped: set[str] = set()
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


def _digest_request(files: Sequence[UploadedFile], method: str, metadata: Mapping[str, MetadataValue]) -> str:
    digest = hashlib.sha256(json.dumps([method, dict(metadata), [file.name for file in files]]).encode())
    for file in files:
        digest.update(hashlib.sha256(file.content).digest())
    return digest.hexdigest()


def _sort_jobs(values: Mapping[str, bytes]) -> list[Job]:
    """Return stored jobs, newest first."""
    return sorted(starmap(_parse_job, values.items()), key=lambda job: job.created)[::-1]


def _parse_job(id: str, value: bytes) -> Job:
    """Return a stored job without fields of later versions; a failed job if its record cannot be read."""
    try:
        stored = json.loads(value)
        job = Job(**{each.name: stored[each.name] for each in fields(Job) if each.name in stored})
        datetime.fromisoformat(job.created)
        if job.state in get_args(State) and job.kind in get_args(Kind) and isinstance(job.files, list):
            return job
    except (ValueError, TypeError):
        pass
    message = "the record of this job is damaged, or of another version; send its documents again"
    return Job(id, [], "", "", "", state="failed", message=message)


def _format_job(job: Job) -> bytes:
    return json.dumps(asdict(job)).encode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
