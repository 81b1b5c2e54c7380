"""Reads documents in a pool of worker processes and kills each process that exceeds a limit.

A document may be made to take hours, or all memory, or to crash the library that reads it, and Python can stop none of
that in its own process. The processes are started as programs of their own rather than by ``multiprocessing``, which
would run the user's script again in each; they load what reading needs and nothing else. See
:mod:`polyad.readers.worker` for what is said to them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from polyad.config import ReadSettings
from polyad.errors import ReadError
from polyad.readers.plain_text import Content
from polyad.readers.worker import format_memory_failure, parse_content

_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from polyad.readers.worker import main; main(int(sys.argv[1]))"

_START_SECONDS = 60.0
"""In which a process has to be ready; a quarter of a second is usual."""

_WAITING = 10 if hasattr(signal, "setitimer") else 2
"""So many times ``max_seconds`` may pass on the clock: on a busy machine, or where a file comes over a network. Twice
where the system does not count a process's own time, which is Windows."""

_MOST_WORKERS = 4
"""Processes where the settings do not say; each takes up to ``max_memory``."""

_BYTES_A_CHARACTER = 8
_SPARE_BYTES = 256 * 1024 * 1024
"""Beside its text a document has headings, places and metadata."""

_TELL_SECONDS = 0.2
"""After which it is said again what is being read."""


class Reading:
    """A document that a worker process is reading.

    Attributes:
        page: Which page it is at, as ``p. 12/311``; empty where nothing is known of that.
    """

    def __init__(self) -> None:
        self.page = ""
        self.future: Future[Content] = Future()

    def content(self, told: Callable[[str], None]) -> Content:
        """Wait for the content of the document.

        Args:
            told: Called with ``page``, now and then while it is waited for.

        Raises:
            ReadError: It cannot be read, or is beyond a limit.
        """
        while not wait([self.future], _TELL_SECONDS).done:
            told(self.page)
        return self.future.result()


class Workers:
    """A pool of processes that read documents, started on demand.

    Args:
        settings: How many there are, and what each document may take.
    """

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self.count = settings.workers or min(_MOST_WORKERS, _processors())
        self._threads = ThreadPoolExecutor(self.count, thread_name_prefix="polyad-reading")  # each waits for a process
        self._lock = threading.Lock()
        self._processes: set[_Process] = set()
        self._idle: list[_Process] = []
        self._is_closed = False

    def begin(self, path: Path, function: str) -> Reading:
        """Queue a file for reading by the next free process.

        Args:
            path: Of the file.
            function: The ``module:function`` that turns its bytes into one document.
        """
        reading = Reading()
        reading.future = self._threads.submit(self._read, path, function, reading)
        return reading

    def close(self) -> None:
        """Kill every process immediately."""
        with self._lock:
            self._is_closed = True
            for process in self._processes:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            process.end()

    def _read(self, path: Path, function: str, reading: Reading) -> Content:
        asked = {"path": str(path.absolute()), "function": function, "settings": asdict(self._settings)}
        process = self._free()
        is_spent = True
        try:
            reply = process.ask(asked, reading)
            is_spent = bool(reply["is_spent"])
        finally:
            if is_spent:
                process.end()
            with self._lock:
                if is_spent:
                    self._processes.discard(process)
                else:
                    self._idle.append(process)
        if "failure" in reply:
            raise ReadError(str(reply["failure"]))
        return parse_content(reply["content"])

    def _free(self) -> _Process:
        """Return an idle process."""
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.is_alive():
                    return process
                self._processes.discard(process)
                process.end()
            if self._is_closed:
                raise ReadError("reading was given up")
            try:
                process = _Process(self._settings)
            except OSError as error:
                raise ReadError(f"{sys.executable!r}, which was to read it, did not start: {error.strerror}") from error
            self._processes.add(process)
            return process


class _Process:
    """A worker process."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._is_ready = False
        self._is_late = False
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(settings.max_memory), *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # what libraries have to say of a damaged file
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # numpy would claim memory for each processor
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        with suppress(OSError):
            self._process.kill()

    def end(self) -> None:
        """Kill the process and close its pipes."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was asked can no longer be written
                if stream:
                    stream.close()

    def ask(self, asked: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
        """Its reply.

        Args:
            asked: For what.
            reading: Told how far it is.

        Raises:
            ReadError: It ended, or was ended.
        """
        if not self._is_ready:
            self._reply(_START_SECONDS)
            self._is_ready = True
        with suppress(OSError):  # it has ended: then there is no reply either
            assert self._process.stdin
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        return self._reply(_WAITING * self._settings.max_seconds, reading)

    def _reply(self, seconds: float, reading: Reading | None = None) -> dict[str, Any]:
        assert self._process.stdout
        most = _BYTES_A_CHARACTER * self._settings.max_characters + _SPARE_BYTES
        timer = threading.Timer(seconds, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            while line := self._process.stdout.readline(most):
                if not line.endswith(b"\n"):
                    break
                reply: dict[str, Any] = json.loads(line)
                if "page" not in reply:
                    return reply
                if reading:
                    reading.page = f"p. {int(reply['page'])}/{int(reply['pages'])}"
        finally:
            timer.cancel()
        self.end()
        raise ReadError(self._cause())

    def _give_up(self) -> None:
        self._is_late = True
        self.kill()

    def _cause(self) -> str:
        """Why it ended, of itself or not."""
        code, settings = self._process.returncode, self._settings
        if not self._is_ready:
            return f"the process that was to read it did not start ({_named(code)})"
        if self._is_late:
            seconds = _WAITING * settings.max_seconds
            return f"takes more than {seconds:g} seconds by the clock to read ({_WAITING} times max_seconds)"
        if code == -getattr(signal, "SIGPROF", 0):
            return f"takes more than {settings.max_seconds:g} seconds of processor time to read (max_seconds)"
        return f"ended the process that read it ({_named(code)}): it is damaged, or {format_memory_failure(settings)}"


def _named(code: int) -> str:
    """Return how a process ended: the name of a signal, or the exit code."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def _processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
