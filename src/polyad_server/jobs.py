"""The requests of clients that a server processes in the background, as jobs in the queue of the index.

They survive a restart of the server.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import Any

import anyio
import anyio.to_thread

from polyad.engine import Engine
from polyad.engine.jobs import Worker
from polyad.errors import NotFoundError, PolyadError
from polyad.model import MetadataValue
from polyad.protocols.jobs import Job, LeaseLostError
from polyad_server.file_results import OUTCOMES, FileResults
from polyad_server.job_kinds import CANCELLED, REPORT_SECONDS, REQUEST_KINDS, list_files
from polyad_server.problems import RequestError
from polyad_server.uploads import UploadedFile

MAX_WAITING_JOBS = 100
"""Number of jobs that wait or run; further ones are rejected, because the store holds their files."""

_EARLIER_NAMESPACES = ("jobs", "ended-jobs", "ended-states", "removals", "uploads", "cancellations")
"""Ends of the namespaces in which earlier versions stored jobs with the index."""

_IDLE_SECONDS = 1.0
_RETRY_SECONDS = 1.0

_KINDS = tuple(REQUEST_KINDS)

_RECORD_FILES = (".jsonl", ".json", ".csv", ".tsv")
"""Extensions of files whose documents are named by their content."""

_NEW_RECORD: Mapping[str, Any] = {"started": "", "done": 0, "total": None, "message": "", "report": None}
"""What clients see of a request that has not started."""

_STATES = {"done": "succeeded"}
"""The names of states for clients."""

_LOG = logging.getLogger("polyad.server.jobs")


class JobRunner:
    """Adds the requests of clients to the queue of one index, and processes them in a thread, one after another.

    Args:
        engine: The index.

    Attributes:
        worker: Processes the jobs.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.worker = Worker(engine, REQUEST_KINDS)
        self.worker.name += f":{secrets.token_hex(4)}"  # a process has one for each index
        self._queue = self.worker.queue
        self._thread: threading.Thread | None = None
        self._is_failing = False

    # Used by requests

    def submit(
        self,
        files: Sequence[UploadedFile],
        *,
        method: str = "",
        metadata: Mapping[str, MetadataValue] | None = None,
        idempotency_key: str = "",
        kind: str = "files",
        now: datetime,
    ) -> Job:
        """Store uploaded files together with a job that indexes the files, and return the job.

        A repeated request with the same idempotency key returns the first job. Of web pages and stored documents, the
        names of ``files`` are the addresses and the ids.

        Raises:
            RequestError: Another request has the same idempotency key, or too many jobs are waiting.
        """
        id = hashlib.sha256(idempotency_key.encode()).hexdigest()[:24] if idempotency_key else secrets.token_hex(12)
        names, contents = [file.name for file in files], [file.content for file in files if kind == "files"]
        results = FileResults(list_files(kind, names)).format()
        waiting = self._queue.count(kinds=_KINDS, is_open=True).values()
        if sum(waiting) >= MAX_WAITING_JOBS and not self._queue.list(id):
            raise RequestError(429, "busy", f"{MAX_WAITING_JOBS} jobs are waiting; try again", 10)
        job = Job(
            run=id,
            kind=kind,
            name=id,
            method=method,
            digest=_digest_request(files, f"{method} {kind}", metadata or {}),
            created=now.isoformat(timespec="milliseconds"),
            outcome={"files": names, "sizes": [*map(len, contents)], "metadata": metadata or {}, "results": results},
            files=contents,
        )
        if self._queue.add([job]):
            raise RequestError(409, "idempotency_key_reused", "the Idempotency-Key belongs to another request")
        self.worker.wake.set()
        return self.get(id)

    def get(self, id: str) -> Job:
        """Return the job with this id.

        Raises:
            NotFoundError: There is no such job.
        """
        for job in self._queue.list(id, kinds=_KINDS):
            return job
        raise NotFoundError(f"there is no job {id!r}")

    def list_all(self) -> list[Job]:
        """Return all jobs of the index, newest first."""
        return self._queue.list(kinds=_KINDS)[::-1]

    def count_states(self) -> Counter[str]:
        """Return the number of jobs by state."""
        return Counter({_STATES.get(state, state): n for state, n in self._queue.count(kinds=_KINDS).items()})

    def cancel(self, id: str) -> Job:
        """Cancel a job; documents that it stored before stay in the index.

        Raises:
            NotFoundError: There is no such job.
        """
        self.get(id)
        self._queue.cancel(id, reason=CANCELLED)
        return self.get(id)

    def cancel_all(self) -> None:
        """Cancel all jobs that have not ended."""
        self._queue.cancel(kinds=_KINDS, reason=CANCELLED)

    def remove_documents(self, ids: Sequence[str]) -> None:
        """Remove documents, also those that jobs have yet to index.

        Raises:
            NotFoundError: A document is neither in the index nor in a job; no document was removed.
        """
        jobs = self._queue.list(kinds=_KINDS, is_open=True)
        waiting = {job.run: [id for id in ids if self._may_contain(job, id)] for job in jobs}
        stored = self._engine.catalogue.digests(ids)
        if missing := set(ids) - stored.keys() - set(chain.from_iterable(waiting.values())):
            raise NotFoundError(f"there is no document {min(missing)!r}")
        for run, removed in waiting.items():
            if removed:
                self._queue.remove_documents(run, removed)
        # After the jobs were told, so that none stores a document between.
        if stored := self._engine.catalogue.digests(ids):
            self._engine.remove([*stored])

    def _may_contain(self, job: Job, id: str) -> bool:
        """Return whether a job may index a document with this id, by the names and the content of its files."""
        names: Sequence[str] = job.outcome.get("files", ())
        if any(id.startswith(name) for name in names):
            return True
        forms = id.encode(), json.dumps(id)[1:-1].encode()
        with suppress(LeaseLostError):  # it has ended meanwhile
            for place, name in enumerate(names if job.kind == "files" else ()):
                if name.lower().endswith(_RECORD_FILES):
                    content = self._queue.read_file(job.run, place)
                    if any(form in content for form in forms):
                        return True
        return False

    async def follow(self, id: str, after: int = 0) -> AsyncIterator[Job]:
        """Yield the states of a job, from revision ``after`` + 1 on, until the job ends.

        No thread waits for the job, so clients that follow jobs do not occupy the threads of other requests.

        Raises:
            NotFoundError: There is no such job.
        """
        while True:
            job = await anyio.to_thread.run_sync(self.get, id)
            if job.revision > after:
                yield job
                after = job.revision
            if job.is_over or self.worker.is_stopped:
                return
            await anyio.sleep(REPORT_SECONDS)

    # Running

    @property
    def is_failing(self) -> bool:
        """Whether the job thread has ended without being asked to, or failed at its last look at the queue."""
        is_dead = self._thread is not None and not self._thread.is_alive() and not self.worker.is_stopped
        return is_dead or self._is_failing

    def restart(self) -> None:
        """Start the job thread again if it has ended without being asked to."""
        if self._thread is not None and not self._thread.is_alive() and not self.worker.is_stopped:
            _LOG.error("the thread of indexing jobs had ended and is started again")
            self.start()

    def start(self) -> None:
        """Start the job thread, which first runs unfinished jobs of an earlier server process."""
        for name in _EARLIER_NAMESPACES:
            self._engine.values.put_values(f"server-{name}", None, is_optional=True)
        self._thread = threading.Thread(target=self._run, name="polyad-jobs", daemon=True)
        self._thread.start()

    def request_stop(self) -> None:
        """Ask the running job to stop after its current document, and end all state streams; return at once."""
        self.worker.stop()

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
        while not self.worker.is_stopped:
            try:
                if not self.worker.run_next():
                    self.worker.wait(_IDLE_SECONDS)  # jobs of other processes do not wake this one
                self._is_failing = False
            except PolyadError as error:
                _LOG.error("jobs cannot be run: %s", error)
                time.sleep(_RETRY_SECONDS)
            except Exception:  # whatever it is, it must not end indexing until the next start
                self._is_failing = True
                _LOG.exception("jobs cannot be run")
                time.sleep(_RETRY_SECONDS)


def format_job(job: Job) -> dict[str, Any]:
    """Return the state of a job as a JSON object."""
    record, is_over = {**_NEW_RECORD, "files": [], "metadata": {}, "results": [], **job.outcome}, job.is_over
    if is_over:  # a job that was set aside, or cancelled while it waited
        record["results"] = [
            each if each["state"] in OUTCOMES else {**each, "state": "failed"} for each in record["results"]
        ]
    return record | {
        "id": job.run,
        "method": job.method,
        "created": job.created,
        "state": _STATES.get(job.state, job.state),
        "ended": job.ended if is_over else "",
        "message": job.reason if is_over else record["message"],
        "number": job.revision,
        "interruptions": job.attempts,
        "kind": job.kind,
    }


def _digest_request(files: Sequence[UploadedFile], method: str, metadata: Mapping[str, MetadataValue]) -> str:
    digest = hashlib.sha256(json.dumps([method, dict(metadata), [file.name for file in files]]).encode())
    for file in files:
        digest.update(hashlib.sha256(file.content).digest())
    return digest.hexdigest()
