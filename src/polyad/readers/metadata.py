"""What a file or a record says of itself, as metadata: of any shape in, strings, numbers, booleans and lists out."""

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


def metadata_of(pairs: Iterable[tuple[str, object]]) -> dict[str, MetadataValue]:
    """Keys and values of any shape as metadata; nothing is lost in silence.

    What is nested becomes JSON. What holds nothing (null, blank text) is left out. A key that comes again with another
    value gets a number. Keys for which there is no room are named under :data:`LEFT_OUT`.

    >>> metadata_of([("a", 1), ("b", ["x", "y"]), ("c", {"d": [2]}), ("e", None), ("a", 3)])
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


def of_file(path: Path) -> dict[str, MetadataValue]:
    """Where a file lies, its kind, and when it was last written, in UTC, unless that is beyond the calendar.

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
    """A value as metadata may hold it; None where there is nothing in it."""
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
    """``key``, with a number where it is taken for another value."""
    number, free = 1, key
    while free in taken and taken[free] != value:
        number += 1
        free = f"{key} {number}"
    return free
