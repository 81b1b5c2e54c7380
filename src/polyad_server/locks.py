"""Locks of an index, by which the threads, processes and machines of its servers take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from polyad.errors import StoreUnavailableError
from polyad.protocols.store import LockingStore, ValueStore

_LOCK_SECONDS = 60.0
"""Time that a request waits for requests of other processes."""

_POLL_SECONDS = 0.025


def open_lock(values: ValueStore, name: str) -> AbstractContextManager[Callable[[], bool]]:
    """Return a context manager that yields a function, which tries to take a lock of the index."""
    return values.lock(name) if isinstance(values, LockingStore) else nullcontext(lambda: True)


@contextmanager
def hold_lock(values: ValueStore, name: str) -> Iterator[None]:
    """Wait for a lock of the index, and hold it during the ``with`` block.

    Raises:
        StoreUnavailableError: Other requests hold the lock all the time.
    """
    deadline = time.monotonic() + _LOCK_SECONDS
    with open_lock(values, name) as take_lock:
        while not take_lock():
            if time.monotonic() > deadline:
                raise StoreUnavailableError("other requests have been changing the index for a minute; try again")
            time.sleep(_POLL_SECONDS)
        yield
