"""The kinds of jobs of a server by name: the steps of indexing, and the requests of clients.

A request is one ordered job. Its row has all that clients see of it, and any worker of the index may process it: the
thread of a server, or ``polyad worker``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from polyad.engine.jobs import JobCancelledError, JobKind, Worker
from polyad.errors import PolyadError, StoreUnavailableError
from polyad.indexing.run import IndexReport
from polyad.model import Document, Failure
from polyad.protocols.jobs import Job, State
from polyad.schemas.reports import check_json, index_json
from polyad.text.json_types import format_value
from polyad_server.file_results import FileResult, FileResults
from polyad_server.problems import RequestError, describe_error
from polyad_server.uploads import UploadedFile, read_uploads
from polyad_server.web_pages import FetchError, fetch_page

MAX_ENDED_JOBS = 1000
"""Number of ended requests that are stored; older ones are deleted."""

CANCELLED = "cancelled; what was stored before stays in the index"

REPORT_SECONDS = 0.25
"""Time between two records of the progress of a job, and between two looks at it."""

_LOG = logging.getLogger("polyad.server.jobs")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The end of a request.

    Attributes:
        message: Failures, or the reason why it failed; empty if there is none.
        report: JSON of the command that does the same; None if the request failed before.
        state: State of the job.
    """

    message: str
    report: Mapping[str, Any] | None = None
    state: State = "done"


class RequestRun:
    """One attempt at a request: what it reads, and the record of its progress.

    Args:
        worker: Has the job.
        job: The job.

    Attributes:
        engine: The index.
        job: The job.
        names: Names of the uploaded files, addresses of web pages or ids of documents.
        record: What clients see of the request, beside the columns of its row.
        results: The outcome of each file.
    """

    def __init__(self, worker: Worker, job: Job) -> None:
        self._worker = worker
        self.engine = worker.engine
        self.job = job
        self.names: Sequence[str] = job.outcome.get("files", ())
        self.record = {**job.outcome, "started": job.outcome.get("started") or _get_time()}
        self.results = FileResults(list_files(job.kind, self.names))
        self._left_out: set[str] = set()
        self._last_write = 0.0
        self._is_ahead = False

    def report_progress(self, done: int, total: int | None, message: str) -> None:
        """Record the progress a few times a second; an end of the job is raised here if all documents are read."""
        self._is_ahead |= done > self.job.outcome.get("done", 0)
        self.record |= {"done": done, "total": total, "message": message}
        self._worker.check(self.job)
        if time.monotonic() - self._last_write >= REPORT_SECONDS:
            self._last_write = time.monotonic()
            record = {**self.record, "results": self.results.format()}
            with suppress(StoreUnavailableError):
                self._worker.queue.report(self.job, self._worker.name, record, has_advanced=self._is_ahead)

    def read_documents(self) -> Iterator[Document | Failure]:
        """Yield the documents of the files or web pages, and record which file each document comes from."""
        settings = self.engine.components.settings.read
        for number, name in enumerate(self.names):
            self._worker.check(self.job)
            self.results.begin(number)
            try:
                file = fetch_page(name) if self.job.kind == "addresses" else self._get_upload(number)
            except FetchError as error:
                items: Iterable[Document | Failure] = [Failure(name, str(error))]
            else:
                items = read_uploads([file], self.record["metadata"], self.job.method, settings)
            for item in items:
                if item.id in self._worker.check(self.job):
                    self._left_out.add(item.id)
                    item = Failure(item.id, "the document was removed before it was indexed")
                self.results.add(number, item)
                yield item
            self.results.end(number)

    def measure_files(self) -> dict[str, int]:
        """Return the size of each uploaded file in bytes; those of web pages are not known before."""
        return dict(zip(self.names, self.record.get("sizes", ()), strict=False))

    def _get_upload(self, number: int) -> UploadedFile:
        return UploadedFile(self.names[number], self._worker.queue.read_file(self.job.run, number))

    def finish(self, conclusion: Conclusion) -> None:
        """End the job with all that clients see of it."""
        self.results.close(conclusion.message if conclusion.report is None else conclusion.report.get("stopped", ""))
        self.record |= {"results": self.results.format(), "report": conclusion.report, "message": conclusion.message}
        queue, state, reason = self._worker.queue, conclusion.state, conclusion.message
        queue.finish(self._worker.name, [self.job], {self.job.name: self.record}, state=state, reason=reason)
        queue.delete(kinds=[*REQUEST_KINDS], keep=MAX_ENDED_JOBS)

    def remove_documents(self) -> None:
        """Remove the documents that clients removed while they were being indexed."""
        _, removed = self._worker.queue.check(self.job, self._worker.name)
        if stored := [*self.engine.catalogue.digests([*{*removed} - self._left_out])]:
            self.engine.remove(stored)


def _process_request(process: Callable[[RequestRun], Conclusion], worker: Worker, jobs: Sequence[Job]) -> None:
    """Process a request, and end its job unless the worker stops."""
    run = RequestRun(worker, jobs[0])
    try:
        if "files" not in run.record:
            raise RequestError(500, "damaged_job", "the record of this job is damaged; send its documents again")
        try:
            conclusion = process(run)
        finally:
            run.remove_documents()
    except PolyadError as error:
        conclusion = Conclusion(describe_error(error), state="failed")
    except JobCancelledError:
        conclusion = Conclusion(CANCELLED, state="cancelled")
    except Exception:  # a job that always fails must not stop the jobs after it, nor run again at each start
        _LOG.exception("the job %s failed", jobs[0].run)
        conclusion = Conclusion("the server failed; its log contains the cause", state="failed")
    run.finish(conclusion)


def _index_files(run: RequestRun) -> Conclusion:
    """Index uploaded files, or web pages."""
    report = run.engine.index_documents(
        run.read_documents(),
        method=run.job.method,
        file_sizes=run.measure_files(),
        progress=run.report_progress,
        on_outcome=run.results.record,
    )
    return _conclude(report)


def _index_again(run: RequestRun) -> Conclusion:
    """Index stored documents again from their files; only failures are listed."""
    report = run.engine.index(run.names, method=run.job.method, force=True, progress=run.report_progress)
    run.results.files = [FileResult(one.id, "failed", failed=1, reason=one.reason) for one in report.failures]
    return _conclude(report)


def _conclude(report: IndexReport) -> Conclusion:
    is_failed = not report.is_complete and not report.counts.added + report.counts.updated
    message = "; ".join(f"{failure.id}: {failure.reason}" for failure in report.failures[:3])
    return Conclusion(message, format_value(index_json(report)), "failed" if is_failed else "done")


def _check(run: RequestRun) -> Conclusion:
    """Check the index for damage, which the report lists."""
    return Conclusion("", format_value(check_json(run.engine.check(progress=run.report_progress))))


def list_files(kind: str, names: Sequence[str]) -> list[FileResult]:
    """Return the results of a request's files before it starts; stored documents have results only if they fail."""
    return [FileResult(name) for name in names if kind in ("files", "addresses")]


def _get_time() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


REQUEST_KINDS: Mapping[str, JobKind] = {
    name: JobKind(partial(_process_request, process), is_ordered=True)
    for name, process in {
        "files": _index_files,
        "addresses": _index_files,
        "documents": _index_again,
        "check": _check,
    }.items()
}
"""The requests of clients as kinds of jobs: uploaded files, addresses of web pages, ids of stored documents to index
again, and a check of the index."""
