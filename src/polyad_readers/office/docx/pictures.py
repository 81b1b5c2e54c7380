"""Reads the pictures in the main part of a Word document, with their captions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from xml.etree.ElementTree import Element

from polyad.readers.format import Pictures
from polyad_readers.office.docx.package import Relation, WordPackage, get_value

_IDS = {"blip": "embed", "v-imagedata": "id"}
"""Attribute with the relation id, by the name of the element that shows a picture."""


def get_picture_id(element: Element) -> str:
    """Return the relation id of the picture that an element shows; an empty string for other elements."""
    return get_value(element, _IDS[element.tag]) if element.tag in _IDS else ""


class WordPictures:
    """The pictures and captions in the main text of a Word document (not in its headers, footers or notes).

    Args:
        package: The document.
        relations: Relations of the main part by id.
        pictures: Reads the text of pictures.
    """

    def __init__(self, package: WordPackage, relations: Mapping[str, Relation], pictures: Pictures) -> None:
        self._package = package
        self._relations = relations
        self._pictures = pictures

    def read(self, element: Element, description: str) -> tuple[str, bool]:
        """Return the text of a picture to be written at its place, and whether the picture has text at all."""
        relation = self._relations.get(get_picture_id(element))
        if relation is None:  # on the network
            return "", False
        load = partial(self._pictures.load_part, self._package.get_name(relation.path))
        text = self._pictures.read(relation.path, load, description)
        return text, self._pictures.has_text(relation.path)

    def end_paragraph(self, text: str, style: str, *, has_picture: bool) -> None:
        """Note a paragraph: a caption belongs to the picture directly before, or else directly after.

        Args:
            text: Text of the paragraph.
            style: Name of its style.
            has_picture: Whether a picture stands in it, whose description is part of the text.
        """
        if text.strip() and not has_picture:
            self._pictures.add_caption(text if style == "caption" else "")
