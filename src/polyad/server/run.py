"""Runs the server until it is stopped."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import uvicorn

from polyad.config import ServerSettings
from polyad.errors import ConfigurationError
from polyad.protocols.store import ValueStore
from polyad.server.app import create_app
from polyad.server.workspaces import OpenIndex, Workspaces

_LOG = logging.getLogger(__name__)


def run_server(
    open_index: OpenIndex,
    stores: Sequence[Path],
    root: Path | None,
    settings: ServerSettings,
    *,
    host: str,
    port: int,
    retriever: str,
    k: int | None,
    root_keys: ValueStore | None,
    requires_key: bool,
    allow_writes: bool,
    announce: Callable[[str], None],
) -> None:
    """Serve indexes until SIGINT or SIGTERM; answers then get some time to end.

    Args:
        open_index: Opens an index.
        stores: Folders of indexes.
        root: Folder of further indexes; None for none.
        settings: Limits and addresses.
        host: Name or address to listen on.
        port: Port to listen on; 0 for any.
        retriever: Retriever of requests that name none.
        k: Number of hits of requests that name none.
        root_keys: Store of keys for all indexes below ``root``.
        requires_key: Whether to refuse to start without a key.
        allow_writes: Whether agents may change an index over MCP.
        announce: Called with lines for the user.

    Raises:
        ConfigurationError: A key is missing, the port is in use, or an index cannot be opened.
    """
    workspaces = Workspaces(open_index, stores, root)
    try:
        for directory in stores:
            workspaces.find(directory.resolve().name)
        app = create_app(
            workspaces, settings, retriever=retriever, k=k, root_keys=root_keys, host=host, allow_writes=allow_writes
        )
        if requires_key and not app.state.gatekeeper.has_keys():
            raise ConfigurationError(
                f"--host {host} lets other machines in, and there is no key; add one: polyad key add NAME --store DIR"
            )
        with _listen(host, port) as listener:
            config = uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=round(settings.drain_seconds),
            )
            address = f"http://{_format_host(host)}:{listener.getsockname()[1]}"
            names = ", ".join(workspaces.list_names()) or "no index yet"
            announce(f"serving {names} at {address} (API: {address}/docs); Ctrl-C stops")
            for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again after its end
                signal.signal(number, lambda *_: None)
            _Server(config, workspaces).run([listener])
    finally:
        workspaces.close()


class _Server(uvicorn.Server):
    """A server that ends its jobs and event streams as soon as it is told to stop.

    Args:
        config: Configuration of the server.
        workspaces: The indexes.
    """

    def __init__(self, config: uvicorn.Config, workspaces: Workspaces) -> None:
        super().__init__(config)
        self._workspaces = workspaces

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting connections and begin to stop the jobs."""
        self._workspaces.request_stop()
        super().handle_exit(sig, frame)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from error
    return listener


def _format_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
