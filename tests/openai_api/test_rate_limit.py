"""Limits hold over any 60 seconds, by a clock that the tests turn."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from polyad.openai_api.rate_limit import RateLimiter


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def limiter(clock: Clock, *, requests: int = 0, tokens: int = 0) -> RateLimiter:
    return RateLimiter(requests, tokens, clock)


def test_without_limits_nothing_waits() -> None:
    clock = Clock()
    for _ in range(1000):
        limiter(clock).acquire(10**9, clock.sleep)
    assert clock.now == 1000.0


def test_the_request_over_the_limit_waits_until_the_first_is_a_minute_old() -> None:
    clock = Clock()
    limited = limiter(clock, requests=2)
    times = []
    for _ in range(5):
        limited.acquire(1, clock.sleep)
        times.append(clock.now - 1000)
        clock.now += 1
    assert times == [0, 1, 60, 61, 120]


def test_tokens_are_limited_and_corrected_when_known() -> None:
    clock = Clock()
    limited = limiter(clock, tokens=100)
    limited.acquire(80, clock.sleep).settle(10)
    limited.acquire(80, clock.sleep)
    assert clock.now == 1000.0
    limited.acquire(80, clock.sleep)
    assert clock.now == 1060.0


def test_a_request_larger_than_the_limit_goes_alone() -> None:
    clock = Clock()
    limited = limiter(clock, tokens=100)
    limited.acquire(50, clock.sleep)
    limited.acquire(500, clock.sleep)
    assert clock.now == 1060.0
    limited.acquire(1, clock.sleep)
    assert clock.now == 1120.0


def test_a_hold_stops_everything_for_so_long() -> None:
    clock = Clock()
    held = limiter(clock)
    held.hold(5)
    held.hold(2)
    held.acquire(1, clock.sleep)
    assert clock.now == 1005.0


@given(
    waits=st.lists(st.tuples(st.floats(0, 30), st.integers(0, 60)), max_size=60),
    requests=st.integers(1, 5),
    tokens=st.integers(60, 100),
)
def test_no_minute_holds_more_than_the_limits(waits: list[tuple[float, int]], requests: int, tokens: int) -> None:
    clock = Clock()
    limited = limiter(clock, requests=requests, tokens=tokens)
    sent: list[tuple[float, int]] = []
    for wait, size in waits:
        clock.now += wait
        limited.acquire(size, clock.sleep)
        sent.append((clock.now, size))
    for at, _ in sent:
        window = [size for time, size in sent if time <= at < time + 60]
        assert len(window) <= requests
        assert sum(window) <= tokens


def test_threads_share_the_limit() -> None:
    clock = Clock()
    limited = limiter(clock, requests=10)
    threads = [threading.Thread(target=limited.acquire, args=(1, clock.sleep)) for _ in range(35)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.now == 1180.0
