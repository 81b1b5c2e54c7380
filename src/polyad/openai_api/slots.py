"""Keeps no more requests under way than an endpoint answers in time."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

from polyad.text.counting import format_count

_STEADY = 20
"""Replies in time, one after another, after which one more request is let through."""

_POLL = 0.05
"""Seconds between looks at whether the caller gave up."""

_logger = logging.getLogger(__name__)


class Slots:
    """How many requests may be under way: at first as many as are allowed, half of them after one that timed out.

    Servers on one machine work on a few requests at a time and let the others wait in line, where they time out though
    nothing is wrong, and again when they are retried, behind those that came meanwhile. Safe to use from many threads.

    Args:
        most: Requests under way at once, and never more.
        too_slow: What a request that timed out raises.
    """

    def __init__(self, most: int, too_slow: type[Exception]) -> None:
        self._most = most
        self._too_slow = too_slow
        self._limit = most
        self._taken = 0
        self._in_time = 0
        self._halved_at = 0.0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def one(self, check: Callable[[], None]) -> Iterator[None]:
        """Wait for a slot and hold it.

        Args:
            check: Called while waiting; may raise, and then nothing is held.
        """
        with self._changed:
            while self._taken >= self._limit:
                check()
                self._changed.wait(_POLL)
            self._taken += 1
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
                self._taken -= 1
                self._changed.notify_all()

    def _halve(self, began: float) -> None:
        with self._changed:
            self._in_time = 0
            if self._limit == 1 or began < self._halved_at:  # requests of one moment time out together
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
                self._limit = min(self._limit + 1, self._most)
