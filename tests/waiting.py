"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 120
"""A busy machine takes long; a test that fails waits this long."""


def wait_until(is_true: Callable[[], bool]) -> None:
    """Return once a condition is true; raise AssertionError if it is not in time."""
    deadline = time.monotonic() + SECONDS
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError("the condition did not become true")
        time.sleep(0.05)
