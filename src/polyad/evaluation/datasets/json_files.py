"""JSON files with line numbers, for messages that name the line of an error."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.text.files import open_file, read_file

_MAX_BYTES = 1 << 30
_MAX_LINE_BYTES = 1 << 26
_MAX_DEPTH = 50
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SEPARATOR = re.compile(r"\s*,?\s*")


def read_text(path: Path) -> str:
    """Return the text of a file.

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
    """Return the value of a JSON file.

    Raises:
        ConfigurationError: the file cannot be read or is no JSON; the message names file and line.
    """
    return parse_json(path, read_text(path))


def parse_json(path: Path, text: str, line: int = 1) -> Any:
    """Return the value of a JSON text that begins in a line of a file.

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
    """Yield number, from 1, and text of each line that is not blank; a line that the file ends in has no line feed.

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
    """Yield the objects of a JSON array, or a single object, each with the number of its first line, from 1.

    Raises:
        ConfigurationError: the file holds anything else; the message names file and line.
    """
    text = read_text(path)
    start = len(text) - len(text.lstrip())
    is_array = text[start : start + 1] == "["
    position, end = start + is_array, len(text.rstrip())
    decoder, line, counted_to = json.JSONDecoder(), 1, 0
    while True:
        separator = _SEPARATOR.match(text, position)
        position = separator.end() if separator else position
        line, counted_to = line + text.count("\n", counted_to, position), position
        if position >= end or (is_array and text[position] == "]"):
            if is_array and (position >= end or text[position + 1 :].strip()):
                raise ConfigurationError(f"{str(path)!r}, line {line}: expected one array of objects")
            return
        try:
            _, end_of_item = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            error_line = error.lineno if isinstance(error, json.JSONDecodeError) else line
            raise ConfigurationError(f"{str(path)!r}, line {error_line}: no JSON: {error}") from error
        item, position = parse_json(path, text[position:end_of_item], line), end_of_item
        if not isinstance(item, dict):
            raise ConfigurationError(f"{str(path)!r}, line {line}: {str(item)[:60]!r}; expected an object")
        yield line, item


def find_line(path: Path, text: str) -> int:
    """Return the number of the first line that contains a text as a JSON string, or 1 if no line does."""
    contents = read_text(path)
    for string in (json.dumps(text, ensure_ascii=False), json.dumps(text)):
        position = contents.find(string)
        if position >= 0:
            return contents.count("\n", 0, position) + 1
    return 1
