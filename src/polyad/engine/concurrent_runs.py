"""Notices that two processes index one store, which wastes work: both may read the same documents.

Each run writes a heartbeat into the store, so that the notice needs no file and works for a folder and for a database.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from polyad.errors import PolyadError
from polyad.protocols.store import ValueStore

_LOG = logging.getLogger(__name__)

RUNS = "indexing-runs"
"""Namespace of the runs that index the store now, by a random id."""

FIRST_BEAT = 1.0
"""Seconds until the first heartbeat: a short run writes none, and so takes no further commit."""

INTERVAL = 5.0
"""Seconds between two heartbeats. One is left out while another process is writing."""

MAX_SILENCE = 30.0
"""Seconds after which a run without a heartbeat has ended, for example because its process was killed."""

_JOIN_SECONDS = 5.0


@contextmanager
def notice_other_runs(store: ValueStore) -> Iterator[None]:
    """Write heartbeats while the ``with`` block indexes, and log one warning if another process indexes the store.

    Nothing waits for the other process.
    """
    heartbeat = _Heartbeat(store)
    heartbeat.warn_of_others()
    thread = threading.Thread(target=heartbeat.run, name="indexing heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        heartbeat.end.set()
        thread.join(_JOIN_SECONDS)
        heartbeat.delete()


class _Heartbeat:
    """The heartbeat of this process's run in a store, and the warning about the runs of other processes.

    Attributes:
        end: Ends the heartbeat.
    """

    def __init__(self, store: ValueStore) -> None:
        self.end = threading.Event()
        self._store = store
        self._id = secrets.token_hex(8)
        self._process = {"pid": os.getpid(), "host": socket.gethostname()}
        self._start = datetime.now(UTC)
        self._is_stored = False
        self._has_warned = False

    def run(self) -> None:
        """Write a heartbeat now and then until the run ends; errors of the store are those of the run itself."""
        seconds = FIRST_BEAT
        with suppress(PolyadError):
            while not self.end.wait(seconds):
                run = {**self._process, "start": self._start.isoformat(), "beat": datetime.now(UTC).isoformat()}
                self._is_stored = True
                self._store.put_values(RUNS, {self._id: json.dumps(run).encode()}, is_optional=True)
                self.warn_of_others()
                seconds = INTERVAL

    def warn_of_others(self) -> None:
        """Log a warning, once, if another process indexes the store; delete the runs that have ended silently."""
        if self._has_warned:
            return
        now = datetime.now(UTC)
        ended: list[str] = []
        for id, value in self._store.get_values(RUNS).items():
            run = json.loads(value)
            if abs((now - datetime.fromisoformat(run["beat"])).total_seconds()) > MAX_SILENCE:
                ended.append(id)
            elif {name: run[name] for name in self._process} != self._process and not self._has_warned:
                self._has_warned = True
                start = datetime.fromisoformat(run["start"]).strftime("%Y-%m-%d %H:%M:%S UTC")
                _LOG.warning(
                    "another process (%s, %s) has been indexing this store since %s; the same documents may be read "
                    "twice",
                    run["pid"],
                    run["host"],
                    start,
                )
        if ended and self._is_stored:
            self._store.put_values(RUNS, dict.fromkeys(ended), is_optional=True)

    def delete(self) -> None:
        """Delete the heartbeat from the store."""
        if self._is_stored:
            with suppress(PolyadError):
                self._store.put_values(RUNS, {self._id: None})
