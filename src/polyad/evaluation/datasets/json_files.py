"""JSON files with line numbers, for messages that name the line of an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.text.files import read_file

_MAX_BYTES = 1 << 30
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
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{str(path)!r}, line {error.lineno}: no JSON: {error.msg}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{str(path)!r} is nested too deeply") from error


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
            item, position = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError) as error:
            error_line = error.lineno if isinstance(error, json.JSONDecodeError) else line
            raise ConfigurationError(f"{str(path)!r}, line {error_line}: no JSON: {error}") from error
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
