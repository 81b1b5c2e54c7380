"""Paragraph styles of a Word document: which are headings, titles and contents lists, and which carry numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from xml.etree.ElementTree import Element

from polyad.readers.docx_package import get_number, get_value

_MAX_ANCESTORS = 20
_BODY_LEVEL = 9
"""Outline level of a paragraph that is not a heading; headings have levels from 0."""

_LOWEST_RANK = 6
_UNDEFINED = Element("w-style")
_HEADING = re.compile(r"heading ?([1-9])")
_CONTENTS = re.compile(
    r"(?:toc|contents|index) ?[1-9]|(?:toc|contents|index) ?heading|table ?of ?(?:figures|authorities)"
)
"""Word's names of the styles in generated tables of contents and indexes, the same in all languages."""


class Styles:
    """The paragraph styles of a Word document. A style is found by its id, which depends on Word's language."""

    def __init__(self, root: Element) -> None:
        self._elements = {
            get_value(element, "styleId"): element
            for element in root.iterfind("w-style")
            if get_value(element, "type", "paragraph") == "paragraph"
        }
        defaults = (key for key, element in self._elements.items() if get_value(element, "default") in ("1", "true"))
        self._default_id = next(defaults, "")
        self.get_name = cache(self._get_name)
        self.is_contents = cache(self._is_contents)
        self._find_level = cache(self._find_level_of_style)
        self._find_numbering = cache(self._find_numbering_of_style)

    def get_id(self, properties: Element | None) -> str:
        """Return the id of the style that paragraph properties (``w-pPr``) name, else of the default style."""
        return get_value(properties.find("w-pStyle") if properties is not None else None) or self._default_id

    def _get_name(self, style_id: str) -> str:
        """Return the lower-case name of a style, which Word stores in English; its id if the style is not defined."""
        element = self._elements.get(style_id)
        return (get_value(element.find("w-name")) if element is not None else style_id).lower()

    def _is_contents(self, style_id: str) -> bool:
        """Return whether a style is that of an entry or a heading of a generated table of contents or index."""
        return _CONTENTS.fullmatch(self.get_name(style_id)) is not None

    def find_rank(self, properties: Element | None) -> int:
        """Return the rank of a paragraph as a heading, from 1; 0 if the paragraph is not a heading."""
        outline = properties.find("w-outlineLvl") if properties is not None else None
        style_id = self.get_id(properties)
        level = self._find_level(style_id) if outline is None else get_number(outline, default=_BODY_LEVEL)
        return min(level + 1, _LOWEST_RANK) if level < _BODY_LEVEL else 0

    def find_numbering(self, properties: Element | None) -> tuple[str, int | None]:
        """Return the numbering id (may be empty) and the level, if stated, of a paragraph or else of its style."""
        own_id, own_level = _read_numbering(properties)
        style_id, style_level = self._find_numbering(self.get_id(properties))
        return (own_id, own_level) if own_id else (style_id, style_level if own_level is None else own_level)

    def _list_ancestry(self, style_id: str) -> Iterator[tuple[str, Element]]:
        """Yield id and element of a style and of the styles on which it is based."""
        for _ in range(_MAX_ANCESTORS if style_id else 0):
            element = self._elements.get(style_id, _UNDEFINED)
            yield style_id, element
            style_id = get_value(element.find("w-basedOn"))
            if not style_id:
                return

    def _find_level_of_style(self, style_id: str) -> int:
        if self.get_name(style_id) == "heading":  # Apple Pages
            return 0
        for ancestor_id, element in self._list_ancestry(style_id):
            outline = element.find("w-pPr/w-outlineLvl")
            if outline is not None:
                return get_number(outline, default=_BODY_LEVEL)
            if heading := _HEADING.fullmatch(self.get_name(ancestor_id)):
                return int(heading[1]) - 1
        return _BODY_LEVEL

    def _find_numbering_of_style(self, style_id: str) -> tuple[str, int | None]:
        level = None
        for _, element in self._list_ancestry(style_id):
            own_id, own_level = _read_numbering(element.find("w-pPr"))
            level = own_level if level is None else level
            if own_id:
                return own_id, level
        return "", None


def _read_numbering(properties: Element | None) -> tuple[str, int | None]:
    """Return numbering id (may be empty) and level, if stated, in paragraph properties."""
    numbering = properties.find("w-numPr") if properties is not None else None
    if numbering is None:
        return "", None
    level = numbering.find("w-ilvl")
    return get_value(numbering.find("w-numId")), None if level is None else min(get_number(level), _LOWEST_RANK + 2)
