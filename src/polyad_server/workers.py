"""Runs a server as several processes: workers that search, one that runs jobs and one that embeds questions."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from types import FrameType

from polyad.errors import ConfigurationError
from polyad.processes import ChildProcess, ForkedProcess, Start, Supervisor, format_exit_code
from polyad_server.encoder_process import run_encoder, share_remote_embedders
from polyad_server.run import BACKLOG, ServerOptions, describe_server, listen, open_app, serve_app
from polyad_server.workspaces import Workspaces

_POLL_SECONDS = 0.2
_EXIT_SECONDS = 2.0
"""Time that a process may take to end after its answers."""

_LOG = logging.getLogger("polyad.server.workers")


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
        searching: dict[str, Start] = {
            f"worker {number}": partial(ForkedProcess, partial(_run_worker, options, listeners, number, address))
            for number in range(options.workers)
        }
        searching["job process"] = partial(ForkedProcess, partial(_run_jobs, options, listeners))
        encoding = {"encoder process": partial(ForkedProcess, partial(_run_encoder, options, listeners, address))}
        supervisors = Supervisor(encoding, _log_end), Supervisor(searching, _log_end)
        stop_signal = _StopSignal()
        while not stop_signal.is_received:
            for supervisor in supervisors:
                supervisor.check()
            time.sleep(_POLL_SECONDS)
        for listener in listeners:
            listener.close()
        deadline = time.monotonic() + options.settings.drain_seconds + _EXIT_SECONDS
        for supervisor in reversed(supervisors):  # searches need the encoder until they end
            supervisor.end(max(0.0, deadline - time.monotonic()))


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


def _log_end(name: str, process: ChildProcess) -> None:
    _LOG.error("the %s ended (%s) and is started again", name, format_exit_code(process.wait()))
