"""Reads OpenDocument texts, as LibreOffice writes them, by converting their XML to HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from zipfile import ZipFile

from polyad.errors import ReadError
from polyad.model import MetadataValue
from polyad.readers.archives import DUBLIN_CORE, create_xml_parser, open_archive, parse_xml, to_clark_name
from polyad.readers.html import parse_markup
from polyad.readers.metadata import build_metadata, split_keywords
from polyad.readers.plain_text import Content, to_single_line
from polyad.readers.titles import clean_stated_title

_MAX_EXPANDED = 128 * 1024 * 1024
"""Bytes of XML a document may unpack to; a thousand pages are 20 MB."""

_MAX_SPACES = 100
"""Spaces that one element may stand for."""

_BLOCK = 64 * 1024
"""Bytes that are parsed at a time."""

_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
_TEXT, _STYLE, _META = f"{{{_NAMESPACE}text:1.0}}", f"{{{_NAMESPACE}style:1.0}}", f"{{{_NAMESPACE}meta:1.0}}"
_TABLE, _OFFICE, _DRAWING = f"{{{_NAMESPACE}table:1.0}}", f"{{{_NAMESPACE}office:1.0}}", f"{{{_NAMESPACE}drawing:1.0}}"

_HEADING, _PARAGRAPH, _SPACES = f"{_TEXT}h", f"{_TEXT}p", f"{_TEXT}s"
_NOTE = f"{_TEXT}note-body"
_TAGS = {
    f"{_TEXT}list": "ul",
    f"{_TEXT}list-item": "li",
    f"{_TABLE}table": "table",
    f"{_TABLE}table-row": "tr",
    f"{_TABLE}table-cell": "td",
    f"{_DRAWING}text-box": "div",
}
_SEPARATORS = {f"{_TEXT}tab": " ", f"{_TEXT}line-break": "<br>"}
_SKIPPED = {
    f"{_OFFICE}annotation",
    f"{_TEXT}note-citation",
    f"{_TEXT}tracked-changes",
    f"{_TEXT}table-of-content",
    f"{_TEXT}alphabetical-index",
    f"{_TEXT}illustration-index",
    f"{_TEXT}table-index",
}
"""Comments, footnote marks, deleted text, tables of contents and indexes."""


def read_odt(data: bytes) -> Content:
    """Return the text of an OpenDocument text (``.odt``), with footnotes in brackets at their references.

    The title is the first paragraph in the style *Title*, else the title in the properties, else the first heading of
    level 1.

    Raises:
        ReadError: The file is encrypted, damaged, too large or not an OpenDocument text.
    """
    with open_archive(data, "an OpenDocument text", max_text=_MAX_EXPANDED) as archive:
        if "META-INF/manifest.xml" in archive.namelist() and b"encryption-data" in archive.read(
            "META-INF/manifest.xml"
        ):
            raise ReadError("encrypted; save it without a password")
        title, metadata = _read_properties(archive)
        body = _HtmlConverter(archive)
    content = parse_markup(body.text, is_layout=False)
    if title and body.title and title != body.title:
        metadata["title"] = title
    return replace(content, title=body.title or clean_stated_title(title) or content.title, metadata=metadata)


def _read_properties(archive: ZipFile) -> tuple[str, dict[str, MetadataValue]]:
    """Return the title (may be empty) and the other metadata of an OpenDocument file."""
    if "meta.xml" not in archive.namelist():
        return "", {}
    tree = parse_xml(archive.read("meta.xml"))

    def first(*names: str) -> str:
        return next((text for name in names if (text := to_single_line(tree.findtext(f".//{name}") or ""))), "")

    return first(f"{DUBLIN_CORE}title"), build_metadata(
        {
            "author": first(f"{_META}initial-creator", f"{DUBLIN_CORE}creator"),
            "subject": first(f"{DUBLIN_CORE}subject"),
            "keywords": split_keywords("\n".join(element.text or "" for element in tree.iter(f"{_META}keyword"))),
            "created": first(f"{_META}creation-date"),
            "modified": first(f"{DUBLIN_CORE}date"),
        }.items()
    )


class _HtmlConverter:
    """Converts an OpenDocument text to HTML by callbacks of an XML parser, without building a tree.

    Attributes:
        text: The HTML.
        title: The first paragraph in the style *Title* or in a style derived from it; empty if there is none.
    """

    def __init__(self, archive: ZipFile) -> None:
        self.title = ""
        self._pieces: list[str] = []
        self._title_start: int | None = None
        self._title_styles = {"Title"}
        self._skip_depth = 0
        self._note_depth = 0
        self._open_tags: list[str] = []  # the HTML tag of each open element, or an empty string
        self._parser = create_xml_parser()
        self._parser.StartElementHandler = self._start_element
        self._parser.EndElementHandler = self._end_element
        self._parser.CharacterDataHandler = self._add_text
        with archive.open("content.xml") as file:
            while block := file.read(_BLOCK):
                self._parser.Parse(block)
        self._parser.Parse(b"", True)
        self.text = "".join(self._pieces)

    def _start_element(self, tag: str, raw_attributes: Mapping[str, str]) -> None:
        name = to_clark_name(tag)
        if self._skip_depth or name in _SKIPPED:
            self._skip_depth += 1
            return
        attributes = {to_clark_name(key): value for key, value in raw_attributes.items()}
        if name == f"{_STYLE}style" and attributes.get(f"{_STYLE}parent-style-name") == "Title":
            self._title_styles.add(attributes.get(f"{_STYLE}name", ""))
        self._pieces.append(_SEPARATORS.get(name) or self._expand_spaces(name, attributes))
        tag = self._get_html_tag(name, attributes)
        self._open_tags.append(tag)
        if tag:
            self._pieces.append(f"<{tag}>")
        if name == _NOTE:
            self._note_depth += 1
            self._pieces.append(" [")
        if name == _PARAGRAPH and not self.title and attributes.get(f"{_TEXT}style-name") in self._title_styles:
            self._title_start = len(self._pieces)

    def _expand_spaces(self, name: str, attributes: Mapping[str, str]) -> str:
        """Return the spaces that a space element (``<text:s>``) represents; an empty string for other elements."""
        count = attributes.get(f"{_TEXT}c", "1")
        return " " * min(int(count) if count.isdecimal() else 1, _MAX_SPACES) if name == _SPACES else ""

    def _get_html_tag(self, name: str, attributes: Mapping[str, str]) -> str:
        """Return the HTML tag for an OpenDocument element, or an empty string if no tag corresponds.

        A footnote paragraph has no tag, since that would end the surrounding paragraph.
        """
        if name == _HEADING:
            level = attributes.get(f"{_TEXT}outline-level", "1")
            return f"h{min(int(level), 6) or 1}" if level.isdecimal() else "h1"
        if name == _PARAGRAPH:
            return "" if self._note_depth else "p"
        return _TAGS.get(name, "")

    def _end_element(self, tag: str) -> None:
        if self._skip_depth:
            self._skip_depth -= 1
            return
        if closing := self._open_tags.pop():
            if closing == "p" and self._title_start is not None:
                self.title = to_single_line("".join(self._pieces[self._title_start :]))
                self._title_start = None
            self._pieces.append(f"</{closing}>")
        if to_clark_name(tag) == _NOTE:
            self._note_depth -= 1
            self._pieces.append("]")

    def _add_text(self, text: str) -> None:
        if not self._skip_depth and self._open_tags:
            self._pieces.append(escape(text, quote=False))
