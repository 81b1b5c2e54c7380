"""Waits for changes of files, for ``polyad index --watch``."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from polyad.cli.streams import warn
from polyad.errors import ConfigurationError, MissingExtraError

DEBOUNCE_MS = 1000
"""Milliseconds of quiet after which changes are reported: editors and downloads write a file several times."""


def require_watchfiles() -> None:
    """Raise MissingExtraError if the package watchfiles is not installed."""
    if importlib.util.find_spec("watchfiles") is None:
        raise MissingExtraError("watchfiles", "watch")


def wait_for_changes(paths: Sequence[Path], store: Path | None) -> Iterator[int]:
    """Yield the number of changed files after each change of files in ``paths``, until Ctrl-C.

    Args:
        paths: Files and folders.
        store: Directory of the index, whose changes do not count.
    """
    from watchfiles import watch

    logging.getLogger("watchfiles").setLevel(logging.ERROR)  # it reports Ctrl-C as a warning
    ignored = store.absolute() if store else None

    def is_watched(_: object, path: str) -> bool:
        return ignored is None or not Path(path).absolute().is_relative_to(ignored)

    roots = [path for path in paths if path.exists()]
    for changes in watch(*roots, watch_filter=is_watched, debounce=DEBOUNCE_MS, step=100, raise_interrupt=False):
        yield len(changes)


def warn_of_error(error: ConfigurationError) -> None:
    """Print a warning that an indexing run of ``--watch`` failed, and that watching continues."""
    warn("warning", f"nothing was indexed: {error}; still watching")
