"""Limits of the arguments and results of MCP tools: errors of arguments, pages of a list, and shortened texts."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from polyad.model import MetadataValue
from polyad.text.words import count_tokens

MAX_CHARACTERS = 24_000
"""Maximum characters of the JSON of one result; clients cut longer results at 25,000."""

MAX_TEXT = 300
"""Characters of a title, a fact or a name."""

OFFSET_MARK = "@offset="
"""Separates the id of a document or passage from the offset of the part that is read, in characters."""

CURSOR_MESSAGE = "the cursor is {!r}; expected next_cursor of the result before"

_MAX_KEYS = 20
_MAX_DIGITS = 12

ItemT = TypeVar("ItemT")


class ToolInputError(ValueError):
    """Raised if an argument of an MCP tool is invalid; the message tells the agent how to correct it."""


def take_page(
    items: Sequence[ItemT],
    cursor: str,
    max_characters: int = MAX_CHARACTERS - 1000,
    max_items: int = 1000,
    max_tokens: int = 0,
) -> tuple[list[ItemT], str]:
    """Return the items from ``cursor`` on that fit into one result of an MCP tool, and the next cursor ("" at the end).

    At most ``max_items`` items are returned, with ``max_characters`` characters and ``max_tokens`` tokens of JSON (0
    for any number), but at least one item.

    Raises:
        ToolInputError: The cursor is not from an earlier result.
    """
    start = read_cursor(cursor)
    if start and start >= len(items):
        raise ToolInputError(CURSOR_MESSAGE.format(cursor))
    part: list[ItemT] = []
    size = tokens = 0
    for item in items[start:]:
        size += count_characters(item)
        tokens += count_tokens(json.dumps(item, ensure_ascii=False)) if max_tokens else 0
        if part and (size > max_characters or tokens > max_tokens or len(part) == max_items):
            return part, str(start + len(part))
        part.append(item)
    return part, ""


def read_cursor(cursor: str) -> int:
    """Return the position in a list at which a cursor continues, 0 without one.

    Raises:
        ToolInputError: The cursor is not from an earlier result.
    """
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < _MAX_DIGITS):
        raise ToolInputError(CURSOR_MESSAGE.format(cursor))
    return int(cursor or 0)


def count_characters(value: object) -> int:
    """Return the number of characters of a value in indented JSON, as the result of an MCP tool contains it."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return len(text) + 4 * (text.count("\n") + 1) + 2


def truncate(text: str, limit: int = MAX_TEXT) -> str:
    """Return the longest beginning of a text whose JSON has at most ``limit`` characters."""
    ends = range(min(len(text), limit) + 1)
    return text[: bisect_right(ends, limit, key=lambda end: len(json.dumps(text[:end], ensure_ascii=False)) - 2) - 1]


def split_offset(id: str) -> tuple[str, int]:
    """Return the id of a document or passage, and the offset behind it in characters, 0 without one."""
    item_id, mark, offset = id.rpartition(OFFSET_MARK)
    is_offset = mark and offset.isascii() and offset.isdigit() and len(offset) < _MAX_DIGITS
    return (item_id, int(offset)) if is_offset else (id, 0)


def shorten_metadata(metadata: Mapping[str, MetadataValue]) -> dict[str, Any]:
    """Return the first keys of metadata, with shortened values."""
    return {truncate(key, 100): _shorten_value(value) for key, value in list(metadata.items())[:_MAX_KEYS]}


def _shorten_value(value: MetadataValue) -> object:
    if isinstance(value, str):
        return truncate(value, 200)
    return [truncate(each, 50) for each in value[:10]] if isinstance(value, tuple) else value
