"""JSON files of many items, with the line of each: for messages that say where something is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError

_BLANK = re.compile(r"\s*,?\s*")


def read_text(path: Path) -> str:
    """What is in a file.

    Raises:
        ConfigurationError: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{str(path)!r} is not UTF-8 ({error.reason} at byte {error.start})") from error


def read_json(path: Path) -> Any:
    """The one value of a file.

    Raises:
        ConfigurationError: it cannot be read or is no JSON: says file and line.
    """
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{str(path)!r}, line {error.lineno}: no JSON: {error.msg}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{str(path)!r} is nested too deeply") from error


def read_json_objects(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of an array, or one by itself, each with the line it begins in, from 1.

    Raises:
        ConfigurationError: there is anything else: says file and line.
    """
    text = read_text(path)
    begin = len(text) - len(text.lstrip())
    is_array = text[begin : begin + 1] == "["
    place, end = begin + is_array, len(text.rstrip())
    decoder, line, seen = json.JSONDecoder(), 1, 0
    while True:
        place = _skipped(text, place)
        line, seen = line + text.count("\n", seen, place), place
        if place >= end or (is_array and text[place] == "]"):
            if is_array and (place >= end or text[place + 1 :].strip()):
                raise ConfigurationError(f"{str(path)!r}, line {line}: expected one array of objects")
            return
        try:
            item, place = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError) as error:
            wrong = error.lineno if isinstance(error, json.JSONDecodeError) else line
            raise ConfigurationError(f"{str(path)!r}, line {wrong}: no JSON: {error}") from error
        if not isinstance(item, dict):
            raise ConfigurationError(f"{str(path)!r}, line {line}: {str(item)[:60]!r}; expected an object")
        yield line, item


def _skipped(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


def find_line(path: Path, text: str) -> int:
    """The first line of a file in which a text stands as JSON, from 1; 1 where it does not."""
    contents = read_text(path)
    for written in (json.dumps(text, ensure_ascii=False), json.dumps(text)):
        place = contents.find(written)
        if place >= 0:
            return contents.count("\n", 0, place) + 1
    return 1
