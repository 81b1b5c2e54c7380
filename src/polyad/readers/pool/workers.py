"""Reads documents in a pool of worker processes and kills each process that exceeds a limit.

A hostile document may take hours, exhaust the memory or crash the library that reads it, which Python cannot stop in
its own process. The processes are started as separate programs, not by ``multiprocessing``, which would run the user's
script again in each process. The processes import only the modules that reading needs. For the messages see
:mod:`polyad.readers.pool.worker`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from polyad.config import ReadSettings
from polyad.errors import ReadError
from polyad.model import Document, Failure
from polyad.processes import format_exit_code
from polyad.readers.format import NEW_SCAN, Content, Format
from polyad.readers.pool.worker import MEMORY_UNIT, format_memory_failure, get_peak_memory, parse_record
from polyad.text.json_types import parse_value

_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from polyad.readers.pool.worker import main; main(int(sys.argv[1]))"

_START_SECONDS = 60.0
"""Seconds within which a process must be ready; a quarter of a second is usual."""

_CLOCK_FACTOR = 10 if hasattr(signal, "setitimer") else 2
"""Multiple of ``max_seconds`` that may pass on the clock, for busy machines and network file systems. It is smaller on
Windows, which does not limit processor time."""

_MAX_WORKERS = 4
"""Default number of processes; each may use ``max_memory``."""

_BYTES_PER_CHARACTER = 8
_SPARE_BYTES = 256 * 1024 * 1024
"""Bytes of a reply for headings, locations and metadata."""

_MEMORY_SHARE = 0.6
"""A killed process that used more than this share of ``max_memory`` is reported as out of memory.

The share is below 1, because ``max_memory`` limits addresses rather than memory in use."""

_RATE_SCANS = 50
"""Last recognised pages from which the pages per minute are measured."""

_PROGRESS_SECONDS = 0.2
"""Seconds between two progress messages."""


_MIN_SCANS = 3
"""Recognised pages of a document after which idle processes recognise some of its pages too."""


class SlowFileError(ReadError):
    """Raised if a file, or the page of which a picture is requested, exceeds the limit on time."""


class ReadJob:
    """A job of a worker process: to read one document; it has a progress, and a future with the content.

    Attributes:
        page: The progress, as ``p. 12/311``, ``p. 12/311, 25 pages per minute`` for a scan, or ``picture 4``; empty for
            documents without pages and pictures.
        future: The content of the document.
    """

    def __init__(self) -> None:
        self.page = ""
        self.future: Future[Content] = Future()
        self._last_page = 0
        self._ahead: set[int] = set()  # pages that other processes recognised
        self._scan_times: list[float] = []
        self._lock = threading.Lock()

    def add_page(self, page: int, pages: int, kind: str, *, is_ahead: bool = False) -> int:
        """Record that a page was read, and return the number of pages that were recognised so far.

        Args:
            page: The page, from 1.
            pages: Number of pages; 0 if ``page`` is the number of a picture inside the document.
            kind: Kind of the page (see :mod:`polyad.readers.format`).
            is_ahead: Whether another process recognised the page for the one that reads the document.
        """
        with self._lock:
            if is_ahead:
                self._ahead.add(page)
            else:
                self._last_page = page
            if kind == NEW_SCAN:
                self._scan_times.append(time.monotonic())
            complete = self._last_page + sum(each > self._last_page for each in self._ahead)
            progress = f"p. {complete:,}/{pages:,}" if pages else f"picture {page:,}"
            if len(self._scan_times) > _MIN_SCANS:
                last = self._scan_times[-_RATE_SCANS:]
                progress += f", {60 * (len(last) - 1) / max(last[-1] - last[0], 0.001):.0f} pages per minute"
            self.page = progress
            return len(self._scan_times)

    def wait(self, on_progress: Callable[[str], None]) -> Content:
        """Wait until the document is read, and return its content; ``on_progress`` receives the current page.

        Args:
            on_progress: Called with ``page`` from time to time.

        Raises:
            ReadError: The document cannot be read or exceeds a limit.
        """
        while not wait([self.future], _PROGRESS_SECONDS).done:
            on_progress(self.page)
        return self.future.result()


class WorkerPool:
    """A pool of processes that read documents, started on demand.

    Args:
        settings: Number of processes, and limits on each document.
    """

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self.count = settings.workers or min(_MAX_WORKERS, _count_processors())
        self._threads = ThreadPoolExecutor(self.count, thread_name_prefix="polyad-reading")  # each waits for a process
        self._lock = threading.Condition()  # notified when a process is free or gone
        self._processes: set[_Process] = set()
        self._idle: list[_Process] = []
        self._is_closed = False

    def submit(self, path: Path, format: Format) -> ReadJob:
        """Let the next idle worker process read a file of one document, and return the job with the content."""
        job = ReadJob()
        job.future = self._threads.submit(self._read_in_worker, path, format, job)
        return job

    def close(self) -> None:
        """Kill every process immediately."""
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
            for process in self._processes:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            process.end()

    def _read_in_worker(self, path: Path, format: Format, job: ReadJob) -> Content:
        """Return the content of a file that a worker process reads; ``job`` receives the current page.

        The process ends afterwards if it has used too much memory or failed.
        """
        pieces: list[str] = []
        has_help = self.count == 1 or not self._settings.folder or not format.recognize
        for reply in self._send_request(path, format):
            if "page" in reply:
                scans = job.add_page(int(reply["page"]), int(reply["pages"]), reply["kind"])
                if scans >= _MIN_SCANS and not has_help:
                    has_help = True
                    with suppress(RuntimeError):  # the pool is closed
                        for number in range(self.count - 1):
                            self._threads.submit(self._recognize_ahead, path, format, number, job)
            elif "text" in reply:
                pieces.append(reply["text"])
        content: Content = parse_value(reply["content"] | {"text": "".join(pieces)}, Content)
        return content

    def _recognize_ahead(self, path: Path, format: Format, number: int, job: ReadJob) -> None:
        """Let an idle process recognise and store pages of the document that another process reads.

        Failures do not matter: the process that reads the document tries the same pages.
        """
        if job.future.done():
            return
        with suppress(ReadError), closing(self._send_request(path, format, part=(number, self.count - 1))) as replies:
            for reply in replies:
                if job.future.done():
                    return
                if "page" in reply:
                    job.add_page(int(reply["page"]), int(reply["pages"]), reply["kind"], is_ahead=True)

    def read_records(self, path: Path, format: Format, name: str) -> Iterator[Document | Failure]:
        """Yield the documents of a file with many documents, while a worker process reads the next documents.

        Args:
            path: The file.
            format: A format of records.
            name: Name of the file in the ids of its documents.

        Raises:
            ReadError: The file cannot be read or a record exceeds a limit.
        """
        for reply in self._send_request(path, format, name=name):
            yield from map(parse_record, reply.get("records", ()))

    def render_page(self, path: Path, format: Format, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the picture of a page that a worker process renders (see :mod:`polyad_readers.pdf.page_image`).

        Raises:
            ReadError: The file cannot be read, was changed, or exceeds a limit.
        """
        *_, reply = self._send_request(path, format, image=request)
        image: Mapping[str, Any] = reply["image"]
        return image

    def _send_request(self, path: Path, format: Format, **more: Any) -> Generator[dict[str, Any], None, None]:
        """Send a worker process the request to read a file, and yield its replies.

        The process ends if it has used too much memory or failed, or if the caller stops the iteration.
        """
        message = {"path": str(path.absolute()), "format": asdict(format), "settings": asdict(self._settings), **more}
        process = self._get_idle_process()
        is_spent = True
        try:
            for reply in process.request(message):
                yield reply
            is_spent = bool(reply["is_spent"])
        finally:
            if is_spent:
                process.end()
            with self._lock:
                if is_spent:
                    self._processes.discard(process)
                else:
                    self._idle.append(process)
                self._lock.notify()
        if "failure" in reply:
            raise ReadError(str(reply["failure"]))

    def _get_idle_process(self) -> _Process:
        """Return an idle worker process, or start one; wait for another request if all processes of the pool work."""
        with self._lock:
            self._lock.wait_for(lambda: self._idle or self._is_closed or len(self._processes) < self.count)
            while self._idle:
                process = self._idle.pop()
                if process.is_alive():
                    return process
                self._processes.discard(process)
                process.end()
            if self._is_closed:
                raise ReadError("reading was cancelled")
            try:
                process = _Process(self._settings)
            except OSError as error:
                raise ReadError(f"the worker process {sys.executable!r} did not start: {error.strerror}") from error
            self._processes.add(process)
            return process


class _Process:
    """A worker process, with the pipes for requests and replies."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._is_ready = False
        self._is_late = False
        self._peak_memory = 0
        self._parent_memory = get_peak_memory()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                _PROGRAM,  # -P: nothing is imported from the working directory
                str(settings.max_memory),
                *filter(None, sys.path),  # an empty entry is the working directory
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # libraries print messages about damaged files
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # numpy would reserve memory for each processor
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        with suppress(OSError):
            self._process.kill()

    def end(self) -> None:
        """Kill the process, if it is running, and close its pipes."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # a buffered request cannot be written any more
                if stream:
                    stream.close()

    def request(self, message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a request to the worker process and yield the replies; the last reply has the key ``is_spent``.

        Args:
            message: The path, format and settings of the request.

        Raises:
            ReadError: The process ended or was killed.
        """
        if not self._is_ready:
            self._wait_for_reply(_START_SECONDS)
            self._is_ready = True
        seconds = _CLOCK_FACTOR * self._settings.max_seconds
        with suppress(OSError):  # the process has ended, so that there is no reply either
            assert self._process.stdin
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        is_last = False
        remaining = seconds
        while not is_last:
            start = time.monotonic()
            reply = self._wait_for_reply(max(0.0, remaining))
            is_last = "is_spent" in reply
            # The limit is for one document or scanned page, without the time that the caller takes between two replies.
            is_new = "records" in reply or reply.get("kind")
            remaining = seconds if is_new else remaining - (time.monotonic() - start)
            yield reply

    def _wait_for_reply(self, seconds: float) -> dict[str, Any]:
        """Return the next reply of the process; kill the process if there is no reply within ``seconds``."""
        assert self._process.stdout
        max_bytes = _BYTES_PER_CHARACTER * self._settings.max_characters + _SPARE_BYTES
        timer = threading.Timer(seconds, self._kill_late_process)
        timer.daemon = True
        timer.start()
        try:
            line = self._process.stdout.readline(max_bytes)
            if line.endswith(b"\n"):
                reply: dict[str, Any] = json.loads(line)
                return reply
            self._measure_memory()
        finally:
            timer.cancel()
        self.end()
        is_slow = self._is_ready and (self._is_late or self._process.returncode == -getattr(signal, "SIGPROF", 0))
        raise (SlowFileError if is_slow else ReadError)(self._describe_failure())

    def _measure_memory(self) -> None:
        """Wait for the end of the process and store the peak memory of the process, if measurable.

        On Linux, the peak memory of a process includes the memory of its parent at the start. So only a larger value
        counts.
        """
        if hasattr(os, "wait4"):
            with suppress(ChildProcessError):  # this class killed the process and has waited for its end
                _, status, usage = os.wait4(self._process.pid, 0)
                self._process.returncode = os.waitstatus_to_exitcode(status)
                peak = MEMORY_UNIT * usage.ru_maxrss
                self._peak_memory = peak if peak > self._parent_memory else 0

    def _kill_late_process(self) -> None:
        self._is_late = True
        self.kill()

    def _describe_failure(self) -> str:
        """Return the reason why the process ended, for the message about the document that was read."""
        code, settings = self._process.returncode, self._settings
        if not self._is_ready:
            return f"the worker process did not start ({format_exit_code(code)})"
        if self._is_late:
            seconds = _CLOCK_FACTOR * settings.max_seconds
            return f"takes more than {seconds:g} seconds by the clock to read ({_CLOCK_FACTOR} times max_seconds)"
        if code == -getattr(signal, "SIGPROF", 0):
            return f"takes more than {settings.max_seconds:g} seconds of processor time to read (max_seconds)"
        if code < 0 and self._peak_memory > _MEMORY_SHARE * settings.max_memory:
            return format_memory_failure(settings)
        cause = f"the file is damaged, or {format_memory_failure(settings)}"
        return f"the worker process ended ({format_exit_code(code)}): {cause}"


def _count_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
