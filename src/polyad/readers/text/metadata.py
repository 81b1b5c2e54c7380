"""Converts metadata of files and records of any shape to strings, numbers, booleans and lists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from pathlib import Path
from types import MappingProxyType

from polyad.model import METADATA_KEYS, MetadataValue
from polyad.readers.text.plain_text import to_single_line
from polyad.readers.text.sources import format_path
from polyad.text.json_types import is_metadata_number

TITLE_FROM = "title_from"
"""Metadata key with the origin of a title that the document itself does not state: its file name, or a column.

Such a title is displayed, but does not say what each passage is about.
"""

FILE_NAME = "file name"

CONTENT_HASH = "sha256"
"""Metadata key with the SHA-256 of a PDF file or picture, by which its pages are shown only while it is unchanged."""

LEFT_OUT = "left_out"
"""Metadata key that lists the keys beyond the maximum number."""

_UNDECODABLE = "undecodable"
"""Metadata key with the number of characters that could not be decoded and are U+FFFD in the text."""

NO_METADATA: Mapping[str, MetadataValue] = MappingProxyType({})

_MAX_KEY = 100
_KEYWORD_SEPARATOR = re.compile("[,;\n]")
_RESERVED = 19  # keys that polyad adds: five of the file, TITLE_FROM, LEFT_OUT, two of the text, ten about removals


def build_metadata(pairs: Iterable[tuple[str, object]]) -> dict[str, MetadataValue]:
    """Return document metadata from (key, value) pairs, with values as strings, numbers or lists of strings.

    Nested values become JSON. Null and blank values are omitted. A key that occurs again with another value gets a
    number. Keys beyond the maximum are listed under :data:`LEFT_OUT`.

    >>> build_metadata([("a", 1), ("b", ["x", "y"]), ("c", {"d": [2]}), ("e", None), ("a", 3)])
    {'a': 1, 'b': ('x', 'y'), 'c': '{"d": [2]}', 'a 2': 3}
    """
    metadata: dict[str, MetadataValue] = {}
    left_out: list[str] = []
    for name, raw_value in pairs:
        value = _convert_value(raw_value)
        if value is None:
            continue
        key = _choose_key(to_single_line(name)[:_MAX_KEY] or "unnamed", value, metadata)
        if key not in metadata and len(metadata) >= METADATA_KEYS - _RESERVED:
            left_out.append(key)
        else:
            metadata[key] = value
    if left_out:
        metadata[LEFT_OUT] = tuple(left_out)
    return metadata


def split_keywords(keywords: str) -> tuple[str, ...]:
    """Split a text such as ``pumps, seals; valves`` at commas, semicolons and line breaks into distinct keywords.

    >>> split_keywords("pumps, seals; ,valves")
    ('pumps', 'seals', 'valves')
    """
    parts = map(to_single_line, _KEYWORD_SEPARATOR.split(keywords))
    return tuple(dict.fromkeys(part for part in parts if part))


def get_file_metadata(path: Path) -> dict[str, MetadataValue]:
    """Return path, folder, extension and, if it can be represented, modification time (UTC) of a file as metadata.

    Raises:
        OSError: The file cannot be accessed.
    """
    metadata = {"path": format_path(path), "folder": format_path(path.parent), "extension": path.suffix.lower()}
    modified_seconds = int(path.stat().st_mtime)
    try:
        return {**metadata, "modified": datetime.fromtimestamp(modified_seconds, UTC).isoformat()}
    except (OverflowError, ValueError, OSError):
        return {**metadata}


def count_undecodable(text: str) -> dict[str, MetadataValue]:
    """Return the number of undecodable characters (U+FFFD) in a text as metadata; empty if there are none."""
    count = text.count("\ufffd")
    return {_UNDECODABLE: count} if count else {}


def _convert_value(value: object) -> MetadataValue | None:
    """Return a value as a type that document metadata may have, such as string or number; None if it is empty."""
    if isinstance(value, str):
        return value.strip() or None
    if is_metadata_number(value):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(item for item in value if item.strip()) or None
    if isinstance(value, date | time):
        return value.isoformat()
    return None if value is None else _format_json(value)


def _format_json(value: object) -> str:
    """Return a value as JSON, or a note with its type if JSON cannot represent the value."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        return f"a {type(value).__name__} that cannot be written as JSON"


def _choose_key(key: str, value: MetadataValue, metadata: Mapping[str, MetadataValue]) -> str:
    """Return ``key`` or, if ``metadata`` already has another value for this key, ``key`` followed by a number."""
    number, free = 1, key
    while free in metadata and metadata[free] != value:
        number += 1
        free = f"{key} {number}"
    return free
