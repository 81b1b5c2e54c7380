"""JSON and JSONL files: errors name file and line, and a killed process leaves every line complete or absent."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from polyad.errors import ConfigurationError
from polyad.text.files import open_file, read_file
from polyad.text.json_types import format_value, parse_value

_MAX_BYTES = 1 << 30
_MAX_LINE_BYTES = 1 << 26
_MAX_DEPTH = 50
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ITEM = re.compile(r"[^\[,\s]")


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file.

    Raises:
        ConfigurationError: the file cannot be read, or is not UTF-8.
    """
    try:
        return read_file(path, _MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{str(path)!r} is not UTF-8 ({error.reason} at byte {error.start})") from error


def read_json(path: Path) -> Any:
    """Return the value that a JSON file contains.

    Raises:
        ConfigurationError: the file cannot be read or is no JSON; the message names file and line.
    """
    return parse_json(path, read_text(path))


def parse_json(path: Path, text: str, line: int = 1) -> Any:
    """Return the value of a JSON text that begins at line ``line`` of the file ``path``.

    Raises:
        ConfigurationError: the text is no JSON, is nested deeply or holds half of a surrogate pair, which no file can
            store; the message names file and line.
    """
    try:
        value = json.loads(text := text.rstrip())
        if _is_deep(value):
            raise RecursionError(f"more than {_MAX_DEPTH} levels")
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        place = line + getattr(error, "lineno", 1) - 1
        reason = getattr(error, "msg", str(error))
        raise ConfigurationError(f"{str(path)!r}, line {place}: {text[:80]!r} is no JSON: {reason}") from error
    return value


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for parent in level
            if isinstance(parent, dict | list)
            for item in (parent.values() if isinstance(parent, dict) else parent)
        ]
    return bool(level)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) for each non-blank line of a UTF-8 file; the first line has number 1.

    Raises:
        ConfigurationError: the file cannot be read, or a line is not UTF-8 or too long.
    """
    try:
        with open_file(path) as file:
            for number in itertools.count(1):
                if not (line := file.readline(_MAX_LINE_BYTES)):
                    return
                if len(line) == _MAX_LINE_BYTES:
                    raise ConfigurationError(f"{str(path)!r}, line {number} has {_MAX_LINE_BYTES:,} bytes or more")
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip():
                    yield number, text
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{str(path)!r}, line {number} is not UTF-8 ({error.reason} at byte {error.start})"
        ) from error


def read_json_objects(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (line number, object) for each object in a JSON file, which contains one object or an array of objects.

    Raises:
        ConfigurationError: the file holds anything else; the message names file and line.
    """
    text = read_text(path)
    value = parse_json(path, text)
    decoder, line, position = json.JSONDecoder(), 1, 0
    for item in value if isinstance(value, list) else [value]:
        start = next(_ITEM.finditer(text, position)).start()
        line += text.count("\n", position, start)
        if not isinstance(item, dict):
            raise ConfigurationError(f"{str(path)!r}, line {line}: {str(item)[:60]!r}; expected an object")
        yield line, item
        position = decoder.raw_decode(text, start)[1]  # ``json`` does not report the position of an item
        line += text.count("\n", start, position)


def find_line(path: Path, text: str) -> int:
    """Return the number of the first line that contains ``text`` as a JSON string; 1 if no line contains ``text``."""
    contents = read_text(path)
    for string in (json.dumps(text, ensure_ascii=False), json.dumps(text)):
        position = contents.find(string)
        if position >= 0:
            return contents.count("\n", 0, position) + 1
    return 1


class Record(Protocol):
    """The protocol of dataclasses that are stored as lines of a JSONL file, such as answers."""

    @property
    def key(self) -> Any:
        """The key that identifies the record within its file."""


R = TypeVar("R", bound=Record)


class RecordFile(Generic[R]):
    """A JSONL file of records; only one process at a time may append records.

    Args:
        path: The file; created if it is missing.
        record_type: Type of the records.

    Attributes:
        path: The file.
        records: The records that were in the file when it was opened.
        by_key: The first record of each key, including appended records.

    Raises:
        ConfigurationError: another process has the file open, or a line is damaged.
    """

    def __init__(self, path: Path, record_type: type[R]) -> None:
        self.path = path
        self._file: FileIO = path.open("a+b", buffering=0)
        try:
            _lock(self._file, path)
            self._drop_incomplete_line()
            self.records = list(read_records(path, record_type))
            self.by_key = index_records(self.records)
        except BaseException:
            self.close()
            raise

    def append(self, *records: R) -> None:
        """Append records to the file with one system call, so that they survive a crash."""
        self._file.write("".join(json.dumps(format_value(record)) + "\n" for record in records).encode())
        for record in records:
            self.by_key.setdefault(record.key, record)

    def close(self) -> None:
        """Close the record file and release its lock."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drop_incomplete_line(self) -> None:
        """Delete the last line of the file if a killed process has written the line incompletely."""
        self._file.seek(0)
        self._file.truncate(self._file.readall().rfind(b"\n") + 1)


def _lock(file: FileIO, path: Path) -> None:
    """Lock a file until this process closes the file; raise ConfigurationError if another process holds the lock.

    On Windows nothing is locked.
    """
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ConfigurationError(
            f"another process is writing into {str(path.parent)!r}; wait for it, or give another --out"
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"the file system of {str(path.parent)!r} cannot lock files ({error.strerror}); give another --out"
        ) from error


def read_records(path: Path, record_type: type[R], *, missing_ok: bool = False) -> Iterator[R]:
    """Yield the records of a JSONL file, without an incomplete last line.

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
            record: R = parse_value(value, record_type)
        except ValueError as error:
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: {line[:80]!r} is no {record_type.__name__} that polyad has written: "
                f"{error}"
            ) from error
        yield record


def index_records(records: Iterable[R]) -> dict[Any, R]:
    """Return the records, keyed by ``record.key``; the first of several records with the same key counts."""
    by_key: dict[Any, R] = {}
    for record in records:
        by_key.setdefault(record.key, record)
    return by_key


def make_folder(folder: Path) -> None:
    """Create ``folder`` unless it exists; raise ConfigurationError if that fails or a file in it is a link.

    Raises:
        ConfigurationError: the folder cannot be created, or holds a link.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(folder)!r}: {error.strerror}") from error
    require_no_links(folder.iterdir())


def require_no_links(paths: Iterable[Path]) -> None:
    """Raise ConfigurationError if a path is a symbolic link, a pipe or a device, because writing would follow it."""
    for path in paths:
        if path.is_symlink() or (path.exists() and not path.is_file() and not path.is_dir()):
            raise ConfigurationError(f"{str(path)!r} is a link, a pipe or a device; expected a file: remove it")
