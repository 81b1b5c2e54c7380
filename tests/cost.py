"""Measures what a call costs, in a unit that is the same on slow and fast machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache


def measure_cost(run: Callable[[], object]) -> float:
    """Return the processor time of a call, divided by the time of a loop of a million additions (some 30 ms)."""
    return _measure_seconds(run) / _measure_loop()


@cache
def _measure_loop() -> float:
    return min(_measure_seconds(_add_a_million_times) for _ in range(3))


def _add_a_million_times() -> None:
    total = 0
    for number in range(1_000_000):
        total += number


def _measure_seconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began
