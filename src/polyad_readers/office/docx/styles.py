"""Paragraph styles of a Word document: which are headings, titles and contents lists, and which carry numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from polyad_readers.office.docx.package import get_number, get_value

_MAX_ANCESTORS = 20
_BODY_LEVEL = 9
"""Outline level of a paragraph that is not a heading; headings have levels from 0."""

_LOWEST_RANK = 6
_HEADING = re.compile(r"heading ?([1-9])")
_CONTENTS = re.compile(
    r"(?:toc|contents|index) ?[1-9]|(?:toc|contents|index) ?heading|table ?of ?(?:figures|authorities)"
)
"""Word's names of the styles in generated tables of contents and indexes, the same in all languages."""

_CODE = re.compile(r"\b(?:source|program)? ?code\b|preformatted|verbatim|listing|macro ?text")
_MONOSPACED = re.compile(r"mono|courier|consol|menlo|monaco|typewriter|\bcode\b|fixed", re.IGNORECASE)

_UNDEFINED = Element("w-style")


class Style(NamedTuple):
    """A paragraph style with what it takes from the styles on which it is based.

    Attributes:
        id: Id of the style, which depends on Word's language.
        name: Name of the style in lower case, which Word stores in English; the id if the style is not defined.
        outline_level: Level as a heading, from 0; 9 if paragraphs of the style are not headings.
        list_id: Id of the list whose numbers the style carries; empty if there is none.
        list_level: Level in this list from 0; None if the style does not state it.
        is_contents: Whether the style is that of generated tables of contents and indexes.
        is_code: Whether the style has a monospaced font, or its name is that of code.
    """

    id: str
    name: str
    outline_level: int
    list_id: str
    list_level: int | None
    is_contents: bool
    is_code: bool


class Styles:
    """The paragraph styles of a Word document."""

    def __init__(self, root: Element) -> None:
        self._elements = {get_value(element, "styleId"): element for element in root.iterfind("w-style")}
        is_default = {key: get_value(element, "default") in ("1", "true") for key, element in self._elements.items()}
        paragraph_ids = (key for key, element in self._elements.items() if get_value(element, "type") == "paragraph")
        self._default_id = next(filter(is_default.get, paragraph_ids), "")
        self._styles: dict[str, Style] = {}

    def get_style(self, paragraph: Element) -> Style:
        """Return the style of a paragraph."""
        style_id = get_value(paragraph.find("w-pPr/w-pStyle")) or self._default_id
        if style_id not in self._styles:
            self._styles[style_id] = self._read_style(style_id)
        return self._styles[style_id]

    def get_rank(self, paragraph: Element) -> int:
        """Return the rank of a paragraph as a heading, from 1; 0 if the paragraph is not a heading."""
        outline = paragraph.find("w-pPr/w-outlineLvl")
        level = self.get_style(paragraph).outline_level if outline is None else get_number(outline, default=_BODY_LEVEL)
        return min(level + 1, _LOWEST_RANK) if level < _BODY_LEVEL else 0

    def find_list(self, paragraph: Element) -> tuple[str, int | None]:
        """Return the id of a paragraph's list (empty if there is none), and the level if the document states it."""
        style = self.get_style(paragraph)
        list_id, level = _read_list(paragraph)
        return (list_id, level) if list_id else (style.list_id, style.list_level if level is None else level)

    def _read_style(self, style_id: str) -> Style:
        outline_level = list_level = None
        list_id = ""
        is_code = _CODE.search(name := _get_name(style_id, self._elements.get(style_id, _UNDEFINED))) is not None
        for ancestor_id, element in self._list_ancestry(style_id):
            is_code = is_code or is_monospaced(element)
            if outline_level is None:
                outline_level = _read_outline_level(ancestor_id, element)
            if not list_id:
                list_id, level = _read_list(element)
                list_level = level if list_level is None else list_level
        if outline_level is None:
            outline_level = 0 if name == "heading" else _BODY_LEVEL  # Apple Pages
        return Style(style_id, name, outline_level, list_id, list_level, _CONTENTS.fullmatch(name) is not None, is_code)

    def _list_ancestry(self, style_id: str) -> Iterator[tuple[str, Element]]:
        """Yield id and element of a style and of the styles on which it is based."""
        for _ in range(_MAX_ANCESTORS):
            element = self._elements.get(style_id, _UNDEFINED)
            yield style_id, element
            style_id = get_value(element.find("w-basedOn"))
            if not style_id:
                return


def is_monospaced(element: Element) -> bool:
    """Return whether a style or a run states a monospaced font."""
    return _MONOSPACED.search(get_value(element.find("w-rPr/w-rFonts"), "ascii")) is not None


def _get_name(style_id: str, element: Element) -> str:
    return (get_value(element.find("w-name")) or style_id).lower()


def _read_outline_level(style_id: str, element: Element) -> int | None:
    """Return the outline level that a style itself has; None if it has none."""
    outline, heading = element.find("w-pPr/w-outlineLvl"), _HEADING.fullmatch(_get_name(style_id, element))
    if outline is not None:
        return get_number(outline, default=_BODY_LEVEL)
    return int(heading[1]) - 1 if heading else None


def _read_list(element: Element) -> tuple[str, int | None]:
    """Return list id (may be empty) and level, if stated, in the properties of a paragraph or a style."""
    level = element.find("w-pPr/w-numPr/w-ilvl")
    return get_value(element.find("w-pPr/w-numPr/w-numId")), None if level is None else min(get_number(level), 8)
