"""Files of JSON lines that are only added to: a line is in one whole or not at all, whoever is killed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError


class JsonLinesFile:
    """A file of lines that is only ever added to, by one process at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO = path.open("a+b", buffering=0)
        try:
            _lock(self._file)
        except OSError as error:
            self._file.close()
            raise ConfigurationError(
                f"another process is writing into {str(path.parent)!r}; wait for it, or give another --out"
            ) from error
        self._drop_torn_line()

    def add(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Write lines, at once and past every buffer: a process that is killed then has written them."""
        self._file.write("".join(json.dumps(line) + "\n" for line in lines).encode())

    def close(self) -> None:
        """Let others write."""
        self._file.close()

    def _drop_torn_line(self) -> None:
        """Cut off what was being written when a run was killed: all behind the last end of a line."""
        self._file.seek(0)
        contents = self._file.readall()
        self._file.truncate(contents.rfind(b"\n") + 1)


def _lock(file: FileIO) -> None:
    """Keep other processes from writing; where the system has no such locks, nothing does.

    Raises:
        OSError: another one has it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def read_json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects of a file of lines; a last line without its end was being written and is passed over.

    Raises:
        ConfigurationError: the file is not there, or a line is no object.
    """
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    for number, line in enumerate(contents.split(b"\n")[:-1], 1):
        try:
            value = json.loads(line)
        except ValueError as error:
            raise ConfigurationError(f"{str(path)!r}, line {number}: {line[:80]!r} is no JSON") from error
        if not isinstance(value, dict):
            raise ConfigurationError(f"{str(path)!r}, line {number}: {line[:80]!r}; expected an object")
        yield value
