"""Automatic numbers of a Word document, as Word displays them before headings, clauses and list items."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from polyad_readers.office.docx.package import get_number, get_value, is_on
from polyad_readers.office.docx.styles import Styles
from polyad_readers.shared.numbering import BULLET, format_number

_MAX_LABEL = 40
"""Characters of the longest label that is read, such as ``Article %1.``; each numbered paragraph repeats it."""

_PLACE = re.compile("%([1-9])")


class _Level(NamedTuple):
    """A level of a list: its first number, how numbers are formatted, and when they start again."""

    start: int
    number_format: str
    text: str
    restart: int
    style_id: str
    is_decimal: bool


class Label(NamedTuple):
    """The number or bullet of a paragraph, and its level from 0."""

    text: str
    level: int


class Numbering:
    """The lists of a Word document with the number that each has reached."""

    def __init__(self, root: Element, styles: Styles) -> None:
        self._styles = styles
        self._definitions = {get_value(element, "abstractNumId"): element for element in root.iterfind("w-abstractNum")}
        self._lists = {get_value(element, "numId"): element for element in root.iterfind("w-num")}
        self._levels: dict[str, tuple[str, dict[int, _Level]]] = {}  # definition and levels of each list that was used
        self._counters: dict[str, dict[int, int]] = {}  # by definition: the last number of each level
        self._started: set[tuple[str, int]] = set()  # lists and levels whose own first number was used

    def next_label(self, paragraph: Element) -> Label | None:
        """Return the label of the next paragraph, and count the paragraph; None if the paragraph has no label."""
        list_id, stated_level = self._styles.find_list(paragraph)
        if list_id not in self._lists:
            return None
        if list_id not in self._levels:
            self._levels[list_id] = self._read_list(list_id)
        definition_id, levels = self._levels[list_id]
        level = stated_level
        if level is None:
            style_id = self._styles.get_style(paragraph).id
            level = next((place for place, level in levels.items() if level.style_id == style_id), 0)
        if level not in levels:
            return Label(BULLET, level)
        counters = self._counters.setdefault(definition_id, {})
        self._count(list_id, level, levels, counters)
        text = _format_label(levels, counters, level)
        return Label(text, level) if text else None

    def _count(self, list_id: str, level: int, levels: Mapping[int, _Level], counters: dict[int, int]) -> None:
        """Advance the number of a level, and start deeper levels again."""
        overrides = self._lists[list_id].iterfind("w-lvlOverride")
        override = next((item.find("w-startOverride") for item in overrides if get_number(item, "ilvl") == level), None)
        if override is not None and (list_id, level) not in self._started:
            counters[level] = get_number(override)
        else:
            counters[level] = counters.get(level, levels[level].start - 1) + 1
        self._started.add((list_id, level))
        for deeper in [place for place in counters if place > level]:
            restart = levels[deeper].restart if deeper in levels else deeper
            if level < restart:
                del counters[deeper]
        for upper in levels:
            if upper < level:
                counters.setdefault(upper, levels[upper].start)

    def _read_list(self, list_id: str) -> tuple[str, dict[int, _Level]]:
        """Return the id of a list's definition, and the list's levels."""
        element = self._lists[list_id]
        definition_id = get_value(element.find("w-abstractNumId"))
        definition = self._definitions.get(definition_id)
        if definition is not None and (link := get_value(definition.find("w-numStyleLink"))):
            definition_id = next(
                (key for key, other in self._definitions.items() if get_value(other.find("w-styleLink")) == link),
                definition_id,
            )
            definition = self._definitions[definition_id]
        levels = [*definition.iterfind("w-lvl")] if definition is not None else []
        levels += element.iterfind("w-lvlOverride/w-lvl")
        return definition_id, {get_number(level, "ilvl"): _read_level(level) for level in levels}


def _read_level(element: Element) -> _Level:
    level = get_number(element, "ilvl")
    return _Level(
        get_number(element.find("w-start")),
        get_value(element.find(".//w-numFmt"), default="decimal"),
        get_value(element.find("w-lvlText"))[:_MAX_LABEL],
        get_number(element.find("w-lvlRestart"), default=level),
        get_value(element.find("w-pStyle")),
        is_on(element.find("w-isLgl")),
    )


def _format_label(levels: Mapping[int, _Level], counters: Mapping[int, int], level: int) -> str:
    """Return the text of a level, such as ``%1.%2``, with the numbers of the levels; a bullet for a symbol."""
    definition = levels[level]
    if definition.number_format == "bullet":
        return BULLET

    def format_place(match: re.Match[str]) -> str:
        place = int(match[1]) - 1
        if place not in levels or levels[place].number_format == "bullet":
            return ""
        is_decimal = definition.is_decimal and levels[place].number_format != "none"
        return format_number(
            counters.get(place, levels[place].start), "decimal" if is_decimal else levels[place].number_format
        )

    return _PLACE.sub(format_place, definition.text).strip()
