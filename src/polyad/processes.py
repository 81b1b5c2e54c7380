"""Child processes: a supervisor that keeps them running, and processes that run a function in a fork.

Index workers and the processes of a server run under a :class:`Supervisor`. The pool of
:mod:`polyad.readers.pool.workers` starts its processes on demand, because a run without documents needs none.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

_LOG = logging.getLogger(__name__)

RESTART_SECONDS = 1.0
"""Time between two starts of one process, so that a process that cannot start does not take all time."""


class ForkedProcess:
    """A child process that runs a function in a copy of this process, and ends if this process is killed.

    It has the methods of :class:`subprocess.Popen` that a :class:`Supervisor` calls.

    Args:
        run: The function.

    Attributes:
        pid: Id of the process.
    """

    def __init__(self, run: Callable[[], None]) -> None:
        self._process = multiprocessing.get_context("fork").Process(target=_run_child, args=(run, os.getpid()))
        self._process.start()
        assert self._process.pid
        self.pid = self._process.pid
        self.terminate, self.kill = self._process.terminate, self._process.kill

    def poll(self) -> int | None:
        """Return the exit code of the process, or None while it is still running."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit code.

        Raises:
            subprocess.TimeoutExpired: The process runs after ``timeout`` seconds.
        """
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return self._process.exitcode


ChildProcess = subprocess.Popen[bytes] | ForkedProcess
Start = Callable[[], ChildProcess]
"""Function that starts a child process."""


class Supervisor:
    """Keeps child processes running: starts each process again after its end, until all are ended together.

    The caller calls :meth:`check` from time to time.

    Args:
        starts: Starts a process, by the name of the process.
        on_end: Receives the name and the ended process before it is started again; may raise an error instead.
    """

    def __init__(self, starts: Mapping[str, Start], on_end: Callable[[str, ChildProcess], None]) -> None:
        self._starts = starts
        self._on_end = on_end
        self._processes: dict[str, ChildProcess] = {}
        self._next_starts: dict[str, float] = {}

    def check(self) -> None:
        """Start each process that does not run, at most once in :data:`RESTART_SECONDS`."""
        for name, start in self._starts.items():
            process = self._processes.get(name)
            if (process and process.poll() is None) or time.monotonic() < self._next_starts.get(name, 0.0):
                continue
            if process:
                self._on_end(name, process)
            self._next_starts[name] = time.monotonic() + RESTART_SECONDS
            self._processes[name] = start()

    def wait(self, seconds: float) -> None:
        """Wait until all processes have ended by themselves, at most for ``seconds``."""
        deadline = time.monotonic() + seconds
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))

    def end(self, seconds: float) -> None:
        """Ask all processes to end, and kill the processes that still run after ``seconds``."""
        for process in self._processes.values():
            process.terminate()
        self.wait(seconds)
        for name, process in self._processes.items():
            if process.poll() is None:
                _LOG.error("the %s did not end in time and is killed", name)
                process.kill()
                process.wait()


def format_exit_code(code: int) -> str:
    """Return the cause of a process's end as text for a message: the name of a signal, or the exit code."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def _run_child(run: Callable[[], None], parent_id: int) -> None:
    """Run a function in a child process, which ends if the parent process is killed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the supervisor ends this process
    threading.Thread(target=_terminate_after_parent, args=(parent_id,), daemon=True).start()
    run()


def _terminate_after_parent(parent_id: int) -> None:
    while os.getppid() == parent_id:
        time.sleep(RESTART_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
