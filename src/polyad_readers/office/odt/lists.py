"""Automatic numbers of headings and list items in OpenDocument texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from polyad_readers.shared.numbering import BULLET, format_number

_MAX_LEVEL = 10
_MAX_AFFIX = 20
"""Characters before or after a number that are read; each item repeats them."""

_FORMATS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", "": "none"}
"""Word's name of each format of numbers."""

HEADINGS = "headings"
"""Name of the list style that numbers headings."""


class _Level(NamedTuple):
    """A level of a list style."""

    number_format: str
    prefix: str
    suffix: str
    start: int
    displayed: int


@dataclass(slots=True)
class _List:
    """An open list: its style, its level from 0, and whether its current item still has no label."""

    style: str
    level: int
    counters: dict[int, int]
    is_label_due: bool = False
    start: int | None = None


@dataclass(slots=True)
class ListCounter:
    """Counts the items of lists by the styles that a document defines."""

    _styles: dict[str, dict[int, _Level]] = field(default_factory=dict)
    _open: list[_List] = field(default_factory=list)
    _by_style: dict[str, dict[int, int]] = field(default_factory=dict)  # the last numbers of each style
    _by_id: dict[str, dict[int, int]] = field(default_factory=dict)

    def define_level(self, style: str, attributes: Mapping[str, str]) -> None:
        """Define a level of a list style with numbers from the attributes, keyed by local name, of its element."""
        self._styles.setdefault(style, {})[parse_number(attributes.get("level"), 1) - 1] = _Level(
            _FORMATS.get(attributes.get("num-format", ""), "decimal"),
            attributes.get("num-prefix", "")[:_MAX_AFFIX],
            attributes.get("num-suffix", "")[:_MAX_AFFIX],
            parse_number(attributes.get("start-value"), 1),
            parse_number(attributes.get("display-levels"), 1),
        )

    def begin_list(self, attributes: Mapping[str, str]) -> None:
        """Begin a list; a list inside another is its next level and has its style unless it names another."""
        upper = self._open[-1] if self._open else None
        style = attributes.get("style-name") or (upper.style if upper else "")
        if upper is not None:
            counters = upper.counters
        elif earlier := attributes.get("continue-list"):
            counters = self._by_id.get(earlier, {})
        else:
            counters = self._by_style.get(style, {}) if attributes.get("continue-numbering") == "true" else {}
        self._by_style[style] = self._by_id[attributes.get("id", "")] = counters
        self._open.append(_List(style, min(upper.level + 1, _MAX_LEVEL - 1) if upper else 0, counters))

    def end_list(self) -> None:
        """End the innermost list."""
        self._open.pop()

    def begin_item(self, attributes: Mapping[str, str]) -> None:
        """Begin an item, which is counted when its first paragraph begins."""
        if self._open:
            start = attributes.get("start-value", "")
            self._open[-1].is_label_due = True
            self._open[-1].start = int(start) if start.isdecimal() else None

    def next_label(self) -> tuple[str, int] | None:
        """Return label and level for a paragraph; None outside of lists, and for later paragraphs of an item."""
        if not self._open or not self._open[-1].is_label_due:
            return None
        item = self._open[-1]
        item.is_label_due = False
        return self._count(item.style, item.level, item.counters, item.start), item.level

    def next_heading_label(self, level: int, attributes: Mapping[str, str]) -> str:
        """Return the number of the next heading of a level from 0; an empty string if headings have no numbers."""
        if attributes.get("is-list-header") == "true":
            return ""
        label = self._count(HEADINGS, level, self._by_style.setdefault(HEADINGS, {}), None)
        return "" if label == BULLET else label

    def _count(self, style: str, level: int, counters: dict[int, int], start: int | None) -> str:
        levels = self._styles.get(style, {})
        definition = levels.get(level)
        if definition is None:
            return BULLET
        counters[level] = counters.get(level, definition.start - 1) + 1 if start is None else start
        for deeper in [place for place in counters if place > level]:
            del counters[deeper]
        first = max(0, level + 1 - definition.displayed)
        numbers = [
            format_number(counters.setdefault(place, upper.start), upper.number_format)
            for place in range(first, level + 1)
            if (upper := levels.get(place)) and upper.number_format != "none"
        ]
        return f"{definition.prefix}{'.'.join(numbers)}{definition.suffix}".strip() if numbers else ""


def parse_number(text: str | None, default: int) -> int:
    """Return the positive number in an attribute; ``default`` if the number is missing, 0, invalid or very large."""
    return int(text) if text and text.isdecimal() and len(text) < 7 and int(text) else default
