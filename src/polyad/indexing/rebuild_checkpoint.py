"""What a run that builds all anew has done, so that the same run goes on from there once it was stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from polyad.protocols.store import Store


class RebuildCheckpoint:
    """What one run has done, documents by id and replies by key; what was added is there whatever dies when.

    Args:
        store: Keeps them until the run is finished.
        run: What the run is of: the same again, it goes on. Another, it begins.
    """

    def __init__(self, store: Store, run: Iterable[str]) -> None:
        self._store = store
        self._run = hashlib.sha256(json.dumps(list(run)).encode()).hexdigest()
        self._names = store.redone(self._run)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, *names: str) -> None:
        """It has done these, too."""
        new = [name for name in names if name not in self._names]
        if new:
            self._store.keep_redone(self._run, new)
            self._names.update(new)

    def finish(self) -> None:
        """The run is over; the same once more is a new one."""
        self._store.drop_redone(self._run)
        self._names = set()
