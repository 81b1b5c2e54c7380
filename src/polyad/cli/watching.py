"""Waits for changes of files, for ``polyad index --watch``."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Sequence, Sized
from pathlib import Path

from polyad.cli.streams import warn
from polyad.errors import ConfigurationError, MissingExtraError

DEBOUNCE_MS = 1000
"""Milliseconds of quiet after which changes are reported: editors and downloads write a file several times."""

_TIMEOUT_MS = 500
"""Milliseconds after which a step without changes ends."""


def require_watchfiles() -> None:
    """Raise MissingExtraError if the package watchfiles is not installed."""
    if importlib.util.find_spec("watchfiles") is None:
        raise MissingExtraError("watchfiles", "watch")


def watch_changes(paths: Sequence[Path], store: Path | None) -> Iterator[int]:
    """Begin to watch files, and return an iterator that waits: it yields the number of changed files after each change.

    Changes between two steps of the iterator are reported at the second. The iterator ends at Ctrl-C.

    Args:
        paths: Files and folders.
        store: Directory of the index, whose changes do not count.
    """
    from watchfiles import watch

    logging.getLogger("watchfiles").setLevel(logging.ERROR)  # it reports Ctrl-C as a warning
    ignored = store.absolute() if store else None

    def is_watched(_: object, path: str) -> bool:
        return ignored is None or not Path(path).absolute().is_relative_to(ignored)

    watcher = watch(
        *(path for path in paths if path.exists()),
        watch_filter=is_watched,
        debounce=DEBOUNCE_MS,
        step=100,
        rust_timeout=_TIMEOUT_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
    )
    files = [path for path in paths if path.is_file()]
    states = _get_states(files)
    next(watcher, None)  # watching begins at the first step, which ends after the timeout
    return _count_changes(watcher, files, states)


def _count_changes(watcher: Iterator[Sized], files: Sequence[Path], states: Sequence[object]) -> Iterator[int]:
    """Yield the number of changes in each step of ``watcher`` that has any, and of changes of ``files``.

    The system does not report changes of a file that was replaced, as editors do, so the states of files are compared.
    """
    for changes in watcher:
        before, states = states, _get_states(files)
        if count := max(len(changes), sum(state != earlier for state, earlier in zip(states, before, strict=True))):
            yield count


def _get_states(files: Sequence[Path]) -> list[tuple[int, int, int] | None]:
    """Return the identity, size and time of change of each file; None for a missing file."""
    states: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            states.append(None)
        else:
            states.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return states


def warn_of_error(error: ConfigurationError) -> None:
    """Print a warning that an indexing run of ``--watch`` failed, and that watching continues."""
    warn("warning", f"nothing was indexed: {error}; still watching")
