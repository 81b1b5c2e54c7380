"""Keeps requests below an endpoint's per-minute limits."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

Sleep = Callable[[float], None]

_WINDOW = 60.0


class Reservation:
    """The tokens of one request within the rate limit: first an estimate, then the actual number."""

    __slots__ = ("at", "tokens")

    def __init__(self, at: float, tokens: int) -> None:
        self.at = at
        self.tokens = tokens

    def settle(self, tokens: int) -> None:
        """Replace the estimated number of tokens of a request by the actual number."""
        self.tokens = tokens


class RateLimiter:
    """A thread-safe limit on requests and tokens in any 60 seconds.

    Waiting requests are sent in order, so that small requests do not overtake a large one. A request that is larger
    than the limit is sent when the window is empty.

    Args:
        requests_per_minute: Maximum number of requests; 0 for no limit.
        tokens_per_minute: Maximum number of prompt and completion tokens; 0 for no limit.
        clock: Returns the time of a monotonic clock in seconds.
    """

    def __init__(
        self, requests_per_minute: int = 0, tokens_per_minute: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._requests = requests_per_minute
        self._tokens = tokens_per_minute
        self._clock = clock
        self._turnstile = threading.Lock()
        self._window: deque[Reservation] = deque()
        self._holding = threading.Lock()
        self._held_until = 0.0

    def acquire(self, tokens: int, sleep: Sleep = time.sleep) -> Reservation:
        """Wait until the rate limit allows a request of ``tokens`` tokens, and return a reservation of these tokens.

        Args:
            tokens: Estimated number of prompt and completion tokens.
            sleep: Waits for a number of seconds; may raise an error to give up.
        """
        with self._turnstile:
            while (seconds := self._wait(tokens)) > 0:
                sleep(seconds)
            reservation = Reservation(self._clock(), tokens)
            if self._requests or self._tokens:
                self._window.append(reservation)
            return reservation

    def hold(self, seconds: float) -> None:
        """Delay all further requests by at least ``seconds``, because the endpoint has asked for a pause."""
        with self._holding:
            self._held_until = max(self._held_until, self._clock() + seconds)

    def _wait(self, tokens: int) -> float:
        """Return the seconds until the rate limit allows a request with ``tokens`` tokens; 0 for now."""
        now = self._clock()
        while self._window and self._window[0].at + _WINDOW <= now:
            self._window.popleft()
        excess_requests = len(self._window) + 1 - self._requests if self._requests else 0
        excess_tokens = sum(item.tokens for item in self._window) + tokens - self._tokens if self._tokens else 0
        fits_at = self._held_until
        for item in self._window:
            if excess_requests <= 0 and excess_tokens <= 0:
                break
            fits_at = max(fits_at, item.at + _WINDOW)
            excess_requests -= 1
            excess_tokens -= item.tokens
        return max(0.0, fits_at - now)
