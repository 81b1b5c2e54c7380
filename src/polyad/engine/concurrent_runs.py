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
"""Namespace of values, one for each command that is indexing the store: its process, start and last heartbeat."""

FIRST_BEAT = 1.0
"""Seconds until the first heartbeat: a short run writes none, and so takes no further commit."""

INTERVAL = 5.0
"""Seconds between two heartbeats. One is left out while another process is writing."""

MAX_SILENCE = 30.0
"""Seconds after which a run without a heartbeat has ended, for example because its process was killed."""


@contextmanager
def notice_other_runs(store: ValueStore) -> Iterator[None]:
    """Write heartbeats while the ``with`` block indexes, and log one warning if another process indexes the store.

    Nothing waits for the other process.
    """
    heartbeat = _Heartbeat(store)
    heartbeat.warn_of_others()
    thread = threading.Thread(target=heartbeat.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        heartbeat.end.set()
        thread.join(INTERVAL)
        heartbeat.delete()


class _Heartbeat:
    """The heartbeat of this process's run in a store, and the warning about the runs of other processes.

    Attributes:
        end: Ends the heartbeat.
    """

    def __init__(self, store: ValueStore) -> None:
        self.end = threading.Event()
        self._store, self._id = store, secrets.token_hex(8)
        self._process = [os.getpid(), socket.gethostname()]
        self._start = datetime.now(UTC).isoformat(timespec="seconds")
        self._is_stored = self._has_warned = False

    def run(self) -> None:
        """Write a heartbeat now and then until the run ends; errors of the store are those of the run itself."""
        seconds = FIRST_BEAT
        with suppress(PolyadError):
            while not self.end.wait(seconds):
                run = {"process": self._process, "start": self._start, "beat": datetime.now(UTC).isoformat()}
                self._is_stored = True
                self._store.put_values(RUNS, {self._id: json.dumps(run).encode()}, is_optional=True)
                self.warn_of_others()
                seconds = INTERVAL

    def warn_of_others(self) -> None:
        """Log a warning, once, if another process indexes the store."""
        now = datetime.now(UTC)
        for value in () if self._has_warned else self._store.get_values(RUNS).values():
            try:
                run = json.loads(value)
                is_silent = abs((now - datetime.fromisoformat(run["beat"])).total_seconds()) > MAX_SILENCE
                (process_id, host), start = run["process"], run["start"]
            except (ValueError, TypeError, KeyError):  # damaged, or of another version
                continue
            if [process_id, host] != self._process and not is_silent:
                self._has_warned = True
                what = "has been indexing this store since %s; the same documents may be read twice"
                _LOG.warning(f"another process (%s, %s) {what}", process_id, host, start)
                break

    def delete(self) -> None:
        """Delete all heartbeats from the store: a killed process cannot, and a run that goes on writes one again."""
        if self._is_stored:
            with suppress(PolyadError):
                self._store.put_values(RUNS, None)
