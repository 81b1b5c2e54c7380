"""The steps of indexing as jobs, which workers process side by side on any machine that reaches the shared store.

A job is a row: a file to read, or a document to extract and to store. Workers take jobs with leases. The rows of a
document and the end of its job are one transaction, so no process that ends at any time loses or repeats a document.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import chdir, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from polyad.config import LanguageModelSettings
from polyad.engine import loaders
from polyad.engine.engine import Engine
from polyad.engine.jobs import POLL_SECONDS, JobKind, Worker, format_worker_name
from polyad.errors import ConfigurationError, NoMoreRepliesError
from polyad.indexing.documents import hash_content
from polyad.indexing.indexer import format_conflict
from polyad.indexing.run import IndexCounts, IndexReport, Outcome
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.model import Document, Failure, Usage
from polyad.processes import ChildProcess, Start, Supervisor, format_exit_code
from polyad.protocols.components import LanguageModel, Progress
from polyad.protocols.jobs import Job
from polyad.readers.pool.worker import parse_record
from polyad.stores.postgres.address import DatabaseAddress
from polyad.stores.postgres.database import PostgresDatabase
from polyad.stores.postgres.rate_limit import SharedRateLimiter
from polyad.stores.postgres.store import PostgresStore
from polyad.text.files import get_source_file
from polyad.text.json_types import format_value

_LOG = logging.getLogger(__name__)

_END_SECONDS = 10.0
"""Seconds after which a worker process is terminated if jobs of other runs are left, and again until it is killed."""

_QUEUED_DOCUMENTS = 1_000
"""Documents of a file of records that are queued in one transaction."""


@dataclass(frozen=True, slots=True)
class SharedLimitLoader:
    """Loads components like :mod:`polyad.engine.loaders`, with rate limits that all worker processes share.

    Attributes:
        place: Address of the index.
    """

    place: str
    load_embedder = staticmethod(loaders.load_embedder)
    load_extractor = staticmethod(loaders.load_extractor)
    open_reading_pool = staticmethod(loaders.open_reading_pool)

    def load_language_model(self, model: str | LanguageModelSettings) -> LanguageModel:
        """Load a language model behind an endpoint, with a rate limiter in the database of the index."""
        settings = LanguageModelSettings(model=model) if isinstance(model, str) else model
        database, limits = PostgresDatabase(DatabaseAddress.from_url(self.place)), settings
        name = f"{settings.model} at {settings.base_url}"
        limiter = SharedRateLimiter(database, name, limits.requests_per_minute, limits.tokens_per_minute)
        return OpenAILanguageModel(settings, limiter)


def _read_files(worker: Worker, jobs: Sequence[Job]) -> None:
    """Read the files of a batch of jobs, queue one job for each document, and finish the jobs."""
    run, failures = jobs[0].run, list[Failure]()
    documents: list[tuple[str, Document]] = []
    with chdir(jobs[0].content):
        files = [job for job in jobs if Path(job.name).exists()]
        for job in jobs:
            if job not in files:
                worker.fail(job, "the file does not exist on the machine of the worker")
        paths = [Path(job.name) for job in files]
        for method, item in worker.engine.writer.read_files(paths, jobs[0].method):
            if isinstance(item, Failure):
                failures.append(item)
            else:
                documents.append((method, item))
            if len(documents) == _QUEUED_DOCUMENTS:
                failures += _queue_documents(worker, run, documents)
                documents = []
    failures += _queue_documents(worker, run, documents)
    outcomes: dict[str, dict[str, Any]] = {job.name: {} for job in files}
    for outcome in list(outcomes.values())[:1]:
        outcome["failures"] = [[failure.id, failure.reason] for failure in failures]
    worker.queue.finish(worker.name, files, outcomes)


def _queue_documents(worker: Worker, run: str, documents: Sequence[tuple[str, Document]]) -> list[Failure]:
    """Queue a job for each document of ``run``; return a failure for each document whose id the run has already."""
    conflicts = worker.queue.add([_build_job(worker, run, method, document) for method, document in documents])
    return [Failure(job.name, format_conflict(job.source, first_source)) for job, first_source in conflicts]


def _build_job(worker: Worker, run: str, method: str, document: Document) -> Job:
    digest = ""
    with suppress(UnicodeEncodeError):  # a failure of the next step
        digest = hash_content(document)
    return Job(
        run=run,
        kind="extract" if worker.engine.writer.needs_extraction(method) else "embed",
        name=document.id,
        method=method,
        content=json.dumps(format_value(document)),
        size=len(document.text),
        source=get_source_file(document.source) if document.arguments else document.source,
        digest=digest,
    )


def _request_replies(worker: Worker, jobs: Sequence[Job]) -> None:
    """Request the language model's replies for the documents of a batch of jobs, and queue the next step.

    The replies are cached for the next step.
    """
    worker.get_recorder(jobs[0].run)
    waiting = {job.name: job for job in jobs}
    for failure in worker.engine.writer.extract(_parse_documents(jobs), jobs[0].method):
        worker.fail(waiting.pop(failure.id), failure.reason)
    worker.queue.advance(worker.name, waiting.values(), "embed")


def _store_documents(worker: Worker, jobs: Sequence[Job]) -> None:
    """Build hyperedges and vectors for the documents of a batch of jobs, store them, and finish the jobs."""
    waiting, stored = {job.name: job for job in jobs}, list[Job]()

    def record(id: str, outcome: Outcome, _reason: str) -> None:
        if outcome in ("added", "updated"):
            stored.append(waiting.pop(id))

    store = require_shared_store(worker.engine).with_jobs(worker.name, waiting)
    recorder, documents = worker.get_recorder(jobs[0].run), _parse_documents(jobs)
    counts = worker.engine.writer.put(documents, jobs[0].method, recorder, store, record)
    if counts.stop_reason:
        raise NoMoreRepliesError(counts.stop_reason)
    if missing := [(failure.id, failure.reason) for failure in counts.failures if failure.id not in waiting]:
        worker.queue.add_failures(stored[-1], missing)
    for failure in counts.failures:
        if failure.id in waiting:
            worker.fail(waiting.pop(failure.id), failure.reason)
    worker.queue.finish(worker.name, waiting.values(), {id: {"unchanged": 1} for id in waiting})


STEPS: Mapping[str, JobKind] = {
    "embed": JobKind(_store_documents),
    "extract": JobKind(_request_replies, fallback="embed"),  # a document is stored without the missing facts
    "read": JobKind(_read_files),
}
"""The steps of indexing as kinds of jobs, in the order in which a worker prefers them, so that few documents wait."""


class WorkerRun:
    """An indexing run whose work is done by worker processes, through a job queue.

    Args:
        engine: The index.
        start: Starts a worker process on this machine.
        count: Number of worker processes on this machine; 0 if all workers run on other machines.

    Raises:
        ConfigurationError: The index is in another store.
    """

    def __init__(self, engine: Engine, start: Start, count: int) -> None:
        self._store = require_shared_store(engine)
        self._queue = self._store.jobs
        self._writer = engine.writer
        self._supervisor = Supervisor({f"worker {number}": start for number in range(1, count + 1)}, self._handle_end)

    def index(self, paths: Sequence[Path], method: str, progress: Progress, *, prune: bool) -> IndexReport:
        """Queue the files below ``paths`` as jobs, wait until the workers have indexed all, and return the report.

        Raises:
            ConfigurationError: A path does not exist, or a worker could not work.
        """
        now, started, usage_before = datetime.now(UTC), time.perf_counter(), self._store.charge(Usage())
        files, skipped = self._writer.list_files(paths, method)
        run = secrets.token_hex(8)
        failures = [item for item in files if isinstance(item, Failure)]
        folder = str(Path.cwd())
        paths_to_read = [str(file) for file in files if isinstance(file, Path)]
        self._queue.add([Job(run=run, kind="read", name=path, method=method, content=folder) for path in paths_to_read])
        try:
            while waiting := (states := Counter(self._queue.count(run)))["queued"] + states["running"]:
                self._supervisor.check()
                progress(states.total() - waiting, states.total(), "files and documents")
                time.sleep(POLL_SECONDS)
            self._supervisor.wait(_END_SECONDS)  # the processes end when no job is left
        finally:
            self._supervisor.end(_END_SECONDS)
        ended = self._queue.list(run)
        counts = _count_outcomes(ended, failures)
        report = IndexReport(
            method,
            counts,
            skipped,
            seconds=time.perf_counter() - started,
            encode_seconds=0.0,
            embedded_texts=0,
            usage=self._store.charge(Usage()) - usage_before,
        )
        self._queue.delete(run)
        read_ids = {job.name for job in ended if job.kind != "read"}
        return self._writer.finish(paths, read_ids, report, now, prune=prune)

    def _handle_end(self, name: str, process: ChildProcess) -> None:
        """Release the jobs of a worker process that was killed; raise ConfigurationError if it reported an error."""
        code = process.wait()
        if code > 0:
            raise ConfigurationError(f"a worker ended with the exit code {code}; its message is above")
        if code < 0:
            _LOG.warning("the %s was killed (%s); another one continues", name, format_exit_code(code))
            self._queue.release(format_worker_name(process.pid), has_crashed=True)


def require_shared_store(engine: Engine) -> PostgresStore:
    """Return the PostgreSQL store of an engine.

    Raises:
        ConfigurationError: The index is in another store.
    """
    if not isinstance(engine.values, PostgresStore):
        raise ConfigurationError(
            "workers need an index in PostgreSQL; name one with --store postgresql://HOST/DATABASE"
        )
    return engine.values


def _parse_documents(jobs: Sequence[Job]) -> list[Document]:
    records = (parse_record(json.loads(job.content)) for job in jobs)
    return [record for record in records if isinstance(record, Document)]


def _count_outcomes(jobs: Sequence[Job], failures: Sequence[Failure]) -> IndexCounts:
    """Return the sum of the counts in the outcomes of all ``jobs`` of a run; ``failures`` are unreadable files."""
    counts: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    failed = list(failures)
    for job in sorted(jobs, key=lambda job: (job.name, job.kind)):
        counts.update({key: value for key, value in job.outcome.items() if isinstance(value, int)})
        notes.update(job.outcome.get("notes", {}))
        failed += [Failure(*item) for item in job.outcome.get("failures", ())]
        if job.state == "failed":
            failed.append(Failure(job.name, f"{job.reason}; it was set aside"))
    return IndexCounts(
        added=counts["added"],
        updated=counts["updated"],
        unchanged=counts["unchanged"],
        passages=counts["passages"],
        hyperedges=counts["hyperedges"],
        failures=tuple(failed),
        notes=notes,
    )
