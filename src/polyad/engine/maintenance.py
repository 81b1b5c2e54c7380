"""Maintenance of an index: backups."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.protocols.store import Store


@dataclass(frozen=True, slots=True)
class BackupReport:
    """The files of a backup.

    Attributes:
        files: The copy of the index, and that of cached replies if there are any.
        bytes: Their size.
        seconds: Wall time.
    """

    files: tuple[str, ...]
    bytes: int
    seconds: float


def back_up(store: Store, path: Path, *, overwrite: bool) -> BackupReport:
    """Copy an index to a file; see :meth:`polyad.engine.engine.Engine.back_up`."""
    start = time.perf_counter()
    if path.is_dir():
        raise ConfigurationError(f"{str(path)!r} is a folder; expected the name of a file")
    if path.exists() and not overwrite:
        raise ConfigurationError(f"{str(path)!r} exists; expected a new file, or replace it with --force")
    files = store.back_up(path)
    return BackupReport(tuple(map(str, files)), sum(file.stat().st_size for file in files), time.perf_counter() - start)
