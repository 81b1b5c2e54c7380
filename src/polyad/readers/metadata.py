"""Converts metadata of files and records of any shape to strings, numbers, booleans and lists."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from pathlib import Path
from types import MappingProxyType

from polyad.model import METADATA_KEYS, MetadataValue
from polyad.readers.plain_text import single_line
from polyad.readers.sources import displayed

TITLE_FROM = "title_from"
"""Key of the metadata that says where a title is from when the document does not say it itself.

Its one value is :data:`FILE_NAME`. Such a title is there to be shown. It does not say what each passage is about.
"""

FILE_NAME = "file name"

LEFT_OUT = "left_out"
"""Key of the metadata that names the keys for which there was no room."""

NONE: Mapping[str, MetadataValue] = MappingProxyType({})

_LONGEST_KEY = 100
_RESERVED = 6  # keys that are of the file itself, and two of the above


def build_metadata(pairs: Iterable[tuple[str, object]]) -> dict[str, MetadataValue]:
    """Convert keys and values of any shape to metadata, and list the keys for which there was no room.

    What is nested becomes JSON. What holds nothing (null, blank text) is left out. A key that comes again with another
    value gets a number. Keys for which there is no room are named under :data:`LEFT_OUT`.

    >>> build_metadata([("a", 1), ("b", ["x", "y"]), ("c", {"d": [2]}), ("e", None), ("a", 3)])
    {'a': 1, 'b': ('x', 'y'), 'c': '{"d": [2]}', 'a 2': 3}
    """
    found: dict[str, MetadataValue] = {}
    left_out: list[str] = []
    for name, given in pairs:
        value = _value(given)
        if value is None:
            continue
        key = _free(single_line(name)[:_LONGEST_KEY] or "unnamed", value, found)
        if key not in found and len(found) >= METADATA_KEYS - _RESERVED:
            left_out.append(key)
        else:
            found[key] = value
    if left_out:
        found[LEFT_OUT] = tuple(left_out)
    return found


def get_file_metadata(path: Path) -> dict[str, MetadataValue]:
    """Return path, folder, extension and modification time (UTC) of a file; no time if out of range.

    Raises:
        OSError: It cannot be looked at.
    """
    place = {"path": displayed(path), "folder": displayed(path.parent), "extension": path.suffix.lower()}
    written = int(path.stat().st_mtime)
    try:
        return {**place, "modified": datetime.fromtimestamp(written, UTC).isoformat()}
    except (OverflowError, ValueError, OSError):
        return {**place}


def _value(given: object) -> MetadataValue | None:
    """Convert a value to a metadata value; None if the value is empty."""
    if isinstance(given, str):
        return given.strip() or None
    if isinstance(given, bool | int) and -(2**63) <= given < 2**63:
        return given
    if isinstance(given, float) and math.isfinite(given):
        return given
    if isinstance(given, list | tuple) and all(isinstance(item, str) for item in given):
        return tuple(item for item in given if item.strip()) or None
    if isinstance(given, date | time):
        return given.isoformat()
    return None if given is None else _as_json(given)


def _as_json(given: object) -> str:
    try:
        return json.dumps(given, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        return f"a {type(given).__name__} that cannot be written as JSON"


def _free(key: str, value: MetadataValue, taken: Mapping[str, MetadataValue]) -> str:
    """Return ``key``, with a number if it already has another value."""
    number, free = 1, key
    while free in taken and taken[free] != value:
        number += 1
        free = f"{key} {number}"
    return free
