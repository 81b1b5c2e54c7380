"""Runs a server as several processes: workers that search, one that runs jobs and one that embeds questions."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from polyad.errors import ConfigurationError
from polyad.server.encoder_process import run_encoder, share_remote_embedders
from polyad.server.run import BACKLOG, ServerOptions, describe_server, listen, open_app, serve_app
from polyad.server.workspaces import Workspaces

_POLL_SECONDS = 0.2
_RESTART_SECONDS = 1.0
"""Time between the starts of one process, so that a process that cannot start does not take all time."""

_EXIT_SECONDS = 2.0
"""Time that a process may take to end after its answers."""

_LOG = logging.getLogger(__name__)


def run_workers(options: ServerOptions, announce: Callable[[str], None]) -> None:
    """Serve indexes with several processes until SIGINT or SIGTERM; a process that ends early is started again.

    The workers read the same mapped files and accept connections on one port. Each worker has its own rate limits.

    Args:
        options: Indexes, address, processes and limits.
        announce: Called with lines for the user.

    Raises:
        ConfigurationError: As for a single process, or the options or the system permit no second process.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise ConfigurationError("this system cannot start several workers; leave out --workers")
    if options.settings.mcp_sessions:
        raise ConfigurationError("mcp_sessions needs a single worker, which keeps the sessions; leave out --workers")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="polyad-")))
        listeners = [stack.enter_context(each) for each in _listen(options)]
        for listener in listeners:
            listener.listen(BACKLOG)  # requests wait until the workers are ready
        with open_app(options, runs_jobs=False) as (_, workspaces):
            announce(describe_server(options, workspaces, listeners[0]))
        address = folder / "encoder"
        workers = {
            f"worker {number}": partial(_run_worker, options, listeners, number, address)
            for number in range(options.workers)
        }
        writer = {"job process": partial(_run_jobs, options, listeners)}
        encoder = {"encoder process": partial(_run_encoder, options, listeners, address)}
        _Supervisor([encoder, workers | writer], listeners, options.settings.drain_seconds).run()


def _listen(options: ServerOptions) -> list[socket.socket]:
    """Return listening sockets: one per worker process if the system supports it, otherwise a shared one."""
    listener = listen(options.host, options.port)  # fails if another server uses the port, unlike shared sockets
    if not hasattr(socket, "SO_REUSEPORT"):
        return [listener] * options.workers
    port = listener.getsockname()[1]
    listener.close()
    return [listen(options.host, port, is_shared=True) for _ in range(options.workers)]


def _run_worker(options: ServerOptions, listeners: list[socket.socket], number: int, address: Path) -> None:
    """Run a worker process: serve requests, and send questions to the encoder process."""
    for listener in listeners:
        if (
            listener is not listeners[number]
        ):  # connections of another worker's socket would wait here if that worker ended
            listener.close()
    with open_app(options, runs_jobs=False, load_embedder=share_remote_embedders(address).get) as (app, workspaces):
        serve_app(app, workspaces, options, listeners[number])


def _run_encoder(options: ServerOptions, listeners: list[socket.socket], address: Path) -> None:
    for listener in listeners:
        listener.close()
    run_encoder(address, options.encoder)


def _run_jobs(options: ServerOptions, listeners: list[socket.socket]) -> None:
    """Run the job process, which indexes uploaded files in all workspaces."""
    for listener in listeners:
        listener.close()
    stop_signal = _StopSignal()
    drain_seconds = options.settings.drain_seconds
    workspaces = Workspaces(options.open_index, options.stores, options.root, drain_seconds=drain_seconds)
    with closing(workspaces):
        while not stop_signal.is_received:
            workspaces.list_all()
            time.sleep(_POLL_SECONDS)


class _StopSignal:
    """A flag that is set when the process receives SIGINT or SIGTERM.

    A ``threading.Event`` could deadlock if the signal arrives while its thread waits.
    """

    def __init__(self) -> None:
        self.is_received = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        self.is_received = True


class _Supervisor:
    """Starts child processes, restarts a process that ends, and ends all processes after a signal.

    Args:
        groups: Processes by name, in groups; later groups are ended first.
        listeners: Sockets that are closed when the processes are ended.
        drain_seconds: Time for the processes to end after a signal.
    """

    def __init__(
        self, groups: list[Mapping[str, Callable[[], None]]], listeners: list[socket.socket], drain_seconds: float
    ) -> None:
        self._groups = groups
        self._listeners = listeners
        self._drain_seconds = drain_seconds
        self._context = multiprocessing.get_context("fork")
        self._processes: dict[str, BaseProcess] = {}
        self._starts: dict[str, float] = {}

    def run(self) -> None:
        """Run all child processes until SIGINT or SIGTERM, then end them."""
        stop_signal = _StopSignal()
        while not stop_signal.is_received:
            for group in self._groups:
                for name, target in group.items():
                    self._keep_running(name, target)
            time.sleep(_POLL_SECONDS)
        for listener in self._listeners:
            listener.close()
        deadline = time.monotonic() + self._drain_seconds + _EXIT_SECONDS
        for group in reversed(self._groups):
            self._end([self._processes[name] for name in group if name in self._processes], deadline)

    def _keep_running(self, name: str, target: Callable[[], None]) -> None:
        process = self._processes.get(name)
        if process is not None and process.is_alive():
            return
        if process is not None:
            if time.monotonic() < self._starts[name] + _RESTART_SECONDS:
                return
            _LOG.error("the %s ended with exit code %s and is started again", name, process.exitcode)
        self._starts[name] = time.monotonic()
        self._processes[name] = process = self._context.Process(
            target=_run_child, args=(target, os.getpid()), name=name
        )
        process.start()

    def _end(self, processes: list[BaseProcess], deadline: float) -> None:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                _LOG.error("the %s did not end in time and is killed", process.name)
                process.kill()
                process.join()


def _run_child(target: Callable[[], None], parent_id: int) -> None:
    """Run a function in a child process, which ends if the parent process is killed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the supervisor ends this process
    threading.Thread(target=_terminate_after_parent, args=(parent_id,), daemon=True).start()
    target()


def _terminate_after_parent(parent_id: int) -> None:
    while os.getppid() == parent_id:
        time.sleep(_RESTART_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
