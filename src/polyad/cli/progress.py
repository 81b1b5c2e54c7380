"""Progress of long commands on the error stream."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from polyad.protocols.components import Progress, silent


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress]:
    """Yield a callback that draws a progress bar on the error stream, if that is a terminal and not ``quiet``."""
    screen = Console(file=sys.stderr, stderr=True, markup=False, highlight=False, emoji=False)
    if quiet or not screen.is_terminal:  # a bar that is disabled ends with an empty line before rich 15
        yield silent
        return
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
            count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
            bar.update(task, completed=done, total=total, description=f"{count} {message}")

        with _forward_downloads(show):
            yield show


@contextmanager
def _forward_downloads(show: Progress) -> Iterator[None]:
    """Call ``show`` with the progress of model downloads, which the library logs."""
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
    """Passes log records on progress to a callback."""

    def __init__(self, show: Progress) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        done, total = getattr(record, "done", 0), getattr(record, "total", None)
        self._show(done, total, record.getMessage())
