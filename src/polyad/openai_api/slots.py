"""A limit on concurrent requests that adapts to an endpoint's speed."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

from polyad.text.words import format_count

_STEADY = 20
"""Number of consecutive replies in time after which the limit grows by one."""

_POLL = 0.05
"""Seconds between checks whether the caller gave up."""

_logger = logging.getLogger(__name__)


class Slots:
    """A limit on concurrent requests that is halved after each timeout.

    Servers on one machine process a few requests at a time and queue all other requests, which time out in the queue,
    and again after retries. Safe to use from many threads.

    Args:
        max_requests: Maximum number of concurrent requests.
        too_slow: Error that a request raises after a timeout.
    """

    def __init__(self, max_requests: int, too_slow: type[Exception]) -> None:
        self._max_requests = max_requests
        self._too_slow = too_slow
        self._limit = max_requests
        self._occupied = 0
        self._in_time = 0
        self._halved_at = 0.0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def acquire(self, check: Callable[[], None]) -> Iterator[None]:
        """Wait for a free request slot and hold it during the ``with`` block.

        Args:
            check: Called while waiting; may raise an error to give up.
        """
        with self._changed:
            while self._occupied >= self._limit:
                check()
                self._changed.wait(_POLL)
            self._occupied += 1
        began = time.monotonic()
        try:
            yield
        except self._too_slow:
            self._halve(began)
            raise
        else:
            self._grow()
        finally:
            with self._changed:
                self._occupied -= 1
                self._changed.notify_all()

    def _halve(self, began: float) -> None:
        with self._changed:
            self._in_time = 0
            if self._limit == 1 or began < self._halved_at:  # requests sent together time out together: halve once
                return
            self._limit = max(1, self._limit // 2)
            self._halved_at = time.monotonic()
            _logger.warning(
                "a request timed out; sending %s at a time from now on", format_count(self._limit, "request")
            )

    def _grow(self) -> None:
        with self._changed:
            self._in_time += 1
            if self._in_time >= _STEADY:
                self._in_time = 0
                self._limit = min(self._limit + 1, self._max_requests)
