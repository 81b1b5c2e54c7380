"""Progress of long commands on the error stream."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console

from polyad.cli.streams import warn
from polyad.protocols.components import Progress, silent

_INTERVAL = 30.0
"""Seconds between two lines of progress."""

_REPEAT = 10
"""Intervals after which a line is printed again though nothing has changed."""


@contextmanager
def progress_bar(quiet: bool, interval: float = _INTERVAL) -> Iterator[Progress]:
    """Yield a callback that prints progress on stderr: a bar on a terminal, otherwise a line per ``interval``.

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
    """Yield a progress callback whose last message is printed on stderr every ``interval`` seconds if it is new.

    An old one is printed again after :data:`_REPEAT` intervals, so that a long step is not taken for the end.
    """
    last: tuple[int, int | None, str] | None = None
    is_finished = threading.Event()

    def show(done: int, total: int | None, message: str) -> None:
        nonlocal last
        last = (done, total, message)

    def repeat() -> None:
        printed, age = "", 0
        while not is_finished.wait(interval):
            line = _format_count(*last) if last else ""
            age = age + 1 if line == printed else 0
            if line and age % _REPEAT == 0:
                with suppress(OSError):  # nobody reads the error stream
                    warn("progress", line)
            printed = line

    thread = threading.Thread(target=repeat, name="polyad-progress", daemon=True)
    thread.start()
    try:
        yield show
    finally:
        is_finished.set()
        thread.join()


def _format_count(done: int, total: int | None, message: str) -> str:
    count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
    return f"{count} {message}"


@contextmanager
def _forward_downloads(show: Progress) -> Iterator[None]:
    """Call ``show`` with the progress of model downloads during the ``with`` block."""
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
    """A log handler that passes the progress in each log record to the callback ``show``."""

    def __init__(self, show: Progress) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        done, total = getattr(record, "done", 0), getattr(record, "total", None)
        self._show(done, total, record.getMessage())
