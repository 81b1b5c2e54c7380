"""Progress of long commands on the error stream."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console

from polyad.cli.streams import warn
from polyad.protocols.components import Progress, silent

_INTERVAL = 30.0
"""Seconds between two lines of progress."""


@contextmanager
def progress_bar(quiet: bool, interval: float = _INTERVAL) -> Iterator[Progress]:
    """Yield a callback that prints progress on stderr: a bar on a terminal, otherwise lines at an ``interval``.

    Args:
        quiet: Whether to show nothing.
        interval: Seconds between two lines.
    """
    screen = Console(file=sys.stderr, stderr=True, markup=False, highlight=False, emoji=False)
    if quiet:  # a bar that is disabled ends with an empty line before rich 15
        yield silent
        return
    with _draw_bar(screen) if screen.is_terminal else _print_lines(interval) as show, _forward_downloads(show):
        yield show


@contextmanager
def _draw_bar(screen: Console) -> Iterator[Progress]:
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn  # takes 30 ms
    from rich.progress import Progress as Bar

    columns = (
        SpinnerColumn(),
        TimeElapsedColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.description}", markup=False),
    )
    with Bar(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("loading", total=None)

        def show(done: int, total: int | None, message: str) -> None:
            bar.update(task, completed=done, total=total, description=_format_count(done, total, message))

        yield show


@contextmanager
def _print_lines(interval: float) -> Iterator[Progress]:
    """Print a progress line every ``interval`` seconds, also while a long step reports nothing."""
    state, is_finished = ProgressState(), threading.Event()

    def repeat() -> None:
        while not is_finished.wait(interval):
            if line := state.format_line():
                with suppress(OSError):  # nobody reads the error stream
                    warn("progress", line)

    thread = threading.Thread(target=repeat, name="polyad-progress", daemon=True)
    thread.start()
    try:
        yield state.update
    finally:
        is_finished.set()
        thread.join()


class ProgressState:
    """The last progress report of a long operation, with the rate of steps per second.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: tuple[int, int | None, str] | None = None
        self._unit = ""
        self._started = (0.0, 0)  # time and count

    def update(self, done: int, total: int | None, message: str) -> None:
        """Store a progress report: ``done`` of ``total`` steps, and a message.

        See :class:`polyad.protocols.components.Progress`.
        """
        unit = message.partition(",")[0]
        if unit != self._unit or done < self._started[1]:
            self._unit, self._started = unit, (self._clock(), done)
        self._last = (done, total, message)

    def format_line(self) -> str:
        """Return the progress as one line with counts, message and rate; an empty string before the first report.

        >>> times = iter([0.0, 10.0])
        >>> state = ProgressState(lambda: next(times))
        >>> state.update(0, 5, "files")
        >>> state.update(2, 5, "files, reading b.pdf")
        >>> state.format_line()
        '2 of 5 files, reading b.pdf (12 files a minute)'
        """
        if self._last is None:
            return ""
        started_at, first = self._started
        count, elapsed = self._last[0] - first, self._clock() - started_at
        if not count or not elapsed:
            return _format_count(*self._last)
        rate = count / elapsed
        unit = self._unit.split(" ")[0]
        speed = f"{rate:.3g} {unit} a second" if rate >= 1 else f"{60 * rate:.3g} {unit} a minute"
        return f"{_format_count(*self._last)} ({speed})"


def _format_count(done: int, total: int | None, message: str) -> str:
    count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
    return f"{count} {message}"


@contextmanager
def _forward_downloads(show: Progress) -> Iterator[None]:
    """Call ``show`` with the progress of model downloads while the ``with`` block runs."""
    log, handler = logging.getLogger("polyad.progress"), _ProgressHandler(show)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
        log.propagate = True


class _ProgressHandler(logging.Handler):
    """A log handler that passes the progress in log records to a callback."""

    def __init__(self, show: Progress) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        done, total = getattr(record, "done", 0), getattr(record, "total", None)
        self._show(done, total, record.getMessage())
