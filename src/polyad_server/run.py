"""Runs the server until it is stopped."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from polyad.config import EncoderSettings, ServerSettings
from polyad.engine.loaders import Place, get_place_name
from polyad.errors import ConfigurationError
from polyad.protocols.store import ValueStore
from polyad_server.access import is_loopback
from polyad_server.app import create_app, list_hosts
from polyad_server.encoding import LoadEmbedder
from polyad_server.limits import split_list
from polyad_server.workspaces import OpenIndex, Workspaces

BACKLOG = 2048
"""Number of connections that wait to be accepted."""

_MAX_CONNECTIONS = 2000
"""Maximum number of connections of a process; half of its open files are for connections, the rest for databases."""

_MAX_FILES = 8192

_ACCEPTED_TOGETHER = 16
"""Connections that asyncio accepts before their number is checked. It logs a traceback for each one that fails."""

_IDLE_TICKS = 100
"""Tenths of a second between two checks for idle connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The options of `polyad serve`: indexes, address, processes and limits.

    Attributes:
        open_index: Opens an index.
        stores: Folders or addresses of indexes.
        root: Folder of further indexes; None for none.
        settings: Limits and addresses.
        encoder: Device or backend of local embedders.
        host: Name or address to listen on.
        port: Port to listen on; 0 for any.
        retriever: Retriever of requests that name none.
        k: Number of hits of requests that name none.
        open_root_keys: Opens the store of keys for all indexes below ``root``.
        allow_writes: Whether agents may change an index over MCP.
        workers: Number of processes that search. With more than one, a process of its own runs the jobs, and another
            embeds the questions.
    """

    open_index: OpenIndex
    stores: Sequence[Place]
    root: Path | None
    settings: ServerSettings
    encoder: EncoderSettings
    host: str
    port: int
    retriever: str
    k: int | None
    open_root_keys: Callable[[], AbstractContextManager[ValueStore | None]]
    allow_writes: bool
    workers: int = 1


def run_server(options: ServerOptions, announce: Callable[[str], None]) -> None:
    """Serve indexes until SIGINT or SIGTERM; then wait a limited time for answers in progress.

    Args:
        options: Indexes, address, processes and limits.
        announce: Called with lines for the user.

    Raises:
        ConfigurationError: A key is missing, the port is in use, or an index cannot be opened.
    """
    with open_app(options) as (app, workspaces), listen(options.host, options.port) as listener:
        listener.listen(BACKLOG)  # requests wait until the models are loaded
        announce(describe_server(options, workspaces, listener))
        serve_app(app, workspaces, options, listener)


@contextmanager
def open_app(
    options: ServerOptions, *, runs_jobs: bool = True, load_embedder: LoadEmbedder | None = None
) -> Iterator[tuple[FastAPI, Workspaces]]:
    """Yield the FastAPI application and its workspaces; close the workspaces at the end.

    Args:
        options: Indexes, address, processes and limits.
        runs_jobs: Whether this process runs the jobs.
        load_embedder: Loads an embedder by its name; by default one that all workspaces share.

    Raises:
        ConfigurationError: A key is missing, or an index cannot be opened.
    """
    workspaces = Workspaces(
        options.open_index,
        options.stores,
        options.root,
        runs_jobs=runs_jobs,
        load_embedder=load_embedder,
        drain_seconds=options.settings.drain_seconds,
    )
    with options.open_root_keys() as root_keys, closing(workspaces):
        for place in options.stores:
            workspaces.find(get_place_name(place))
        app = create_app(
            workspaces,
            options.settings,
            retriever=options.retriever,
            k=options.k,
            root_keys=root_keys,
            host=options.host,
            allow_writes=options.allow_writes,
        )
        names = [name.strip("[]") for name in list_hosts(options.settings, options.host) if name != "localhost"]
        dangers = [f"the host {name!r} lets other machines in" for name in names if not is_loopback(name)]
        dangers += [
            f"the origin {each!r} in server.cors_origins lets all web pages in"
            for each in split_list(options.settings.cors_origins)
            if each in ("*", "null")  # "null": a page in a frame of any site
        ]
        # The keys are read in any case, while all indexes can be opened.
        if not app.state.gatekeeper.has_keys() and dangers:
            raise ConfigurationError(f"{dangers[0]}, and there is no key; add one: polyad key add NAME --store DIR")
        yield app, workspaces


def describe_server(options: ServerOptions, workspaces: Workspaces, listener: socket.socket) -> str:
    """Return one line for the terminal with the server's address and the names of its indexes."""
    host = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{host}:{listener.getsockname()[1]}"
    names = ", ".join(workspaces.list_names()) or "no index yet"
    return f"serving {names} at {address} (API: {address}/docs); Ctrl-C stops"


def serve_app(app: FastAPI, workspaces: Workspaces, options: ServerOptions, listener: socket.socket) -> None:
    """Run the application on a socket until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        app,
        http=_Connection,
        backlog=_ACCEPTED_TOGETHER,
        limit_concurrency=min(_MAX_CONNECTIONS, _raise_file_limit() // 2),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # by default, uvicorn lets programs of this machine name any client
        timeout_graceful_shutdown=round(options.settings.drain_seconds),
    )
    server = _Server(config, workspaces)
    for number in (signal.SIGINT, signal.SIGTERM):  # before uvicorn's handlers, and when uvicorn raises them again
        signal.signal(number, server.handle_exit)
    server.run([listener])


def _raise_file_limit() -> int:
    """Raise the number of files that this process may open as far as the system permits, and return the number."""
    with suppress(ImportError, OSError, ValueError):  # Windows has no such limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= soft < _MAX_FILES:
            resource.setrlimit(resource.RLIMIT_NOFILE, (_MAX_FILES if hard < 0 else min(hard, _MAX_FILES), hard))
            return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MAX_FILES


class _Connection(H11Protocol):
    """A connection that closes the oldest idle one if there are too many, so that new clients are served.

    Uvicorn's limit only rejects requests; connections without a request would still use up all open files.
    """

    opened = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether the connection has no request, or has answered all of them."""
        return self.cycle is None or self.cycle.response_complete

    # uvicorn declares a narrower argument than asyncio's protocol.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Add the connection to those of the server."""
        super().connection_made(transport)
        self.opened = time.monotonic()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            others = (each for each in self.connections if isinstance(each, _Connection) and each is not self)
            if oldest := min((each for each in others if each.is_idle), key=lambda each: each.opened, default=None):
                self.connections.discard(oldest)  # the socket is closed a little later
                oldest.transport.abort()


class _Server(uvicorn.Server):
    """A uvicorn server that stops jobs and event streams on the first signal, and closes idle connections.

    Args:
        config: Configuration of the server.
        workspaces: The indexes.
    """

    def __init__(self, config: uvicorn.Config, workspaces: Workspaces) -> None:
        super().__init__(config)
        self._workspaces = workspaces
        self._idle: dict[Any, object] = {}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application; let as many connections wait as before, of which uvicorn accepts a few at a time."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)

    async def on_tick(self, counter: int) -> bool:
        """Close idle connections from time to time; called by uvicorn ten times a second."""
        if counter % _IDLE_TICKS == 0:
            self._close_idle_connections()
        return await super().on_tick(counter)

    def _close_idle_connections(self) -> None:
        """Close the connections that have sent no whole request since the last call; uvicorn never does so."""
        connections: list[Any] = list(self.server_state.connections)
        idle = {each: each.cycle for each in connections if each.cycle is None or each.cycle.response_complete}
        for connection, last_request in idle.items():
            if connection in self._idle and self._idle[connection] is last_request:
                connection.transport.close()
        self._idle = idle

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting connections after a signal, and ask the indexing jobs to stop."""
        self._workspaces.request_stop()
        super().handle_exit(sig, frame)


def listen(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """Return a TCP socket bound to a host and port.

    Args:
        host: Name or address.
        port: Port; 0 for any.
        is_shared: Whether further sockets may be bound to the address; the system spreads connections over them.

    Raises:
        ConfigurationError: The address cannot be used.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from error
    return listener
