"""JSONL files of records that are appended to: a killed process leaves every line complete or absent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from io import FileIO
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.json_files import parse_json, read_lines
from polyad.text.json_types import parse_value


class Record(Protocol):
    """A value, such as an answer, that a run folder stores as one line of a JSONL file."""

    def to_json(self) -> dict[str, object]:
        """Return the record as a JSON object."""

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Self:
        """Return the record of a JSON object.

        Raises:
            KeyError, TypeError, ValueError: the object is no such record.
        """


class DataclassRecord:
    """A base class of dataclasses that are stored as JSON objects; fields with default values are omitted."""

    __slots__ = ()

    def to_json(self) -> dict[str, object]:
        """Return the fields whose values differ from their defaults."""
        defaults = {field.name: field.default for field in fields(self)}  # type: ignore[arg-type]
        values = asdict(self)  # type: ignore[call-overload]
        return {name: value for name, value in values.items() if value != defaults[name]}

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Self:
        """Return the record of a JSON object.

        Raises:
            ValueError: a key is missing or unknown, or a value has another type.
        """
        record: Self = parse_value(line, cls)
        return record


R = TypeVar("R", bound=Record)


class RecordFile(Generic[R]):
    """A JSONL file that one process at a time appends records to.

    Args:
        path: The file; created if it is missing.
        record_type: Type of the records.

    Attributes:
        records: The records that the file held when it was opened.

    Raises:
        ConfigurationError: another process has the file open, or a line is damaged.
    """

    def __init__(self, path: Path, record_type: type[R]) -> None:
        self._file: FileIO = path.open("a+b", buffering=0)
        try:
            _lock(self._file, path)
            self._drop_incomplete_line()
            self.records = list(read_records(path, record_type))
        except BaseException:
            self.close()
            raise

    def append(self, *records: R) -> None:
        """Write records with one system call, so that they survive if the process is killed afterwards."""
        self._file.write("".join(json.dumps(record.to_json()) + "\n" for record in records).encode())

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drop_incomplete_line(self) -> None:
        """Cut off the line that an earlier process was writing when it was killed."""
        self._file.seek(0)
        self._file.truncate(self._file.readall().rfind(b"\n") + 1)


def _lock(file: FileIO, path: Path) -> None:
    """Lock the file for this process. Windows has no such locks, so two processes are not told apart there."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ConfigurationError(
            f"another process is writing into {str(path.parent)!r}; wait for it, or give another --out"
        ) from error


def read_records(path: Path, record_type: type[R], *, missing_ok: bool = False) -> Iterator[R]:
    """Yield the records of a JSONL file. Skip an incomplete last line, which another process is writing.

    Args:
        path: The file.
        record_type: Type of the records.
        missing_ok: Whether a missing file has no records; otherwise a missing file is an error.

    Raises:
        ConfigurationError: the file cannot be read, or a line is damaged; the message names file and line.
    """
    if missing_ok and not path.exists():
        return
    for number, line in read_lines(path):
        if not line.endswith("\n"):
            return
        value = parse_json(path, line, number)
        try:
            if not isinstance(value, dict):
                raise ValueError("expected an object")
            yield record_type.from_json(value)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: {line[:80]!r} is no {record_type.__name__} that polyad has written: "
                f"{error}"
            ) from error


def make_folder(folder: Path) -> None:
    """Create a folder unless it exists.

    Raises:
        ConfigurationError: the folder cannot be created, or holds a link.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(folder)!r}: {error.strerror}") from error
    require_no_links(folder.iterdir())


def require_no_links(paths: Iterable[Path]) -> None:
    """Raise ConfigurationError if a path is a symbolic link, through which a file elsewhere would be written.

    Pipes and devices are refused, too.
    """
    for path in paths:
        if path.is_symlink() or (path.exists() and not path.is_file() and not path.is_dir()):
            raise ConfigurationError(f"{str(path)!r} is a link, a pipe or a device; expected a file: remove it")
