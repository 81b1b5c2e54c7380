"""Reads OpenDocument texts, as LibreOffice writes them, by converting their XML to HTML."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from zipfile import ZipFile

from polyad.errors import ReadError
from polyad.model import MetadataValue
from polyad.readers.archives import full_name, opened, parsed, xml_parser
from polyad.readers.html import parse_markup
from polyad.readers.plain_text import Content, single_line
from polyad.readers.properties import clean_stated_title, listed, stated

_MAX_EXPANDED = 128 * 1024 * 1024
"""Bytes of XML a document may unpack to; those of a thousand pages are 20 MB."""

_MAX_BLANKS = 100
"""Blanks that one element may stand for."""

_BLOCK = 64 * 1024
"""Bytes that are parsed at a time."""

_SPACE = "urn:oasis:names:tc:opendocument:xmlns:"
_TEXT, _STYLE, _META = f"{{{_SPACE}text:1.0}}", f"{{{_SPACE}style:1.0}}", f"{{{_SPACE}meta:1.0}}"
_TABLE, _OFFICE, _DRAWING = f"{{{_SPACE}table:1.0}}", f"{{{_SPACE}office:1.0}}", f"{{{_SPACE}drawing:1.0}}"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"

_HEADING, _PARAGRAPH, _BLANKS = f"{_TEXT}h", f"{_TEXT}p", f"{_TEXT}s"
_NOTE = f"{_TEXT}note-body"
_TAGS = {
    f"{_TEXT}list": "ul",
    f"{_TEXT}list-item": "li",
    f"{_TABLE}table": "table",
    f"{_TABLE}table-row": "tr",
    f"{_TABLE}table-cell": "td",
    f"{_DRAWING}text-box": "div",
}
_EMPTY = {f"{_TEXT}tab": " ", f"{_TEXT}line-break": "<br>"}
_LEFT_OUT = {
    f"{_OFFICE}annotation",
    f"{_TEXT}note-citation",
    f"{_TEXT}tracked-changes",
    f"{_TEXT}table-of-content",
    f"{_TEXT}alphabetical-index",
    f"{_TEXT}illustration-index",
    f"{_TEXT}table-index",
}
"""Comments, marks of footnotes, text that was deleted, contents and indexes."""


def read_odt(data: bytes) -> Content:
    """Return the text of an OpenDocument text; footnotes are in brackets at their reference.

    The title is what is set in the style *Title*, else the one in its properties, else its first heading of level 1.

    Raises:
        ReadError: It is encrypted, damaged, too large or no OpenDocument text.
    """
    with opened(data, "an OpenDocument text", max_text=_MAX_EXPANDED) as archive:
        if "META-INF/manifest.xml" in archive.namelist() and b"encryption-data" in archive.read(
            "META-INF/manifest.xml"
        ):
            raise ReadError("encrypted; save it without a password")
        title, metadata = _properties(archive)
        markup = _Markup(archive)
    content = parse_markup(markup.text, is_layout=False)
    if title and markup.title and title != markup.title:
        metadata["title"] = title
    return content._replace(title=markup.title or clean_stated_title(title) or content.title, metadata=metadata)


def _properties(archive: ZipFile) -> tuple[str, dict[str, MetadataValue]]:
    """Return the title, which may be empty, and the other metadata of the document."""
    if "meta.xml" not in archive.namelist():
        return "", {}
    tree = parsed(archive.read("meta.xml"))

    def first(*names: str) -> str:
        return next((text for name in names if (text := single_line(tree.findtext(f".//{name}") or ""))), "")

    return first(f"{_DUBLIN_CORE}title"), stated(
        author=first(f"{_META}initial-creator", f"{_DUBLIN_CORE}creator"),
        subject=first(f"{_DUBLIN_CORE}subject"),
        keywords=listed("\n".join(element.text or "" for element in tree.iter(f"{_META}keyword"))),
        created=first(f"{_META}creation-date"),
        modified=first(f"{_DUBLIN_CORE}date"),
    )


class _Markup:
    """The body of a document as HTML, made while its XML is parsed, so that no tree of it is ever in memory.

    Attributes:
        text: The HTML.
        title: The first paragraph in the style *Title*, or in one made from it; empty if there is none.
    """

    def __init__(self, archive: ZipFile) -> None:
        self.title = ""
        self._pieces: list[str] = []
        self._title_from: int | None = None
        self._title_styles = {"Title"}
        self._left_out = 0
        self._notes = 0
        self._open: list[str] = []  # what closes each element
        self._parser = xml_parser()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        with archive.open("content.xml") as file:
            while block := file.read(_BLOCK):
                self._parser.Parse(block)
        self._parser.Parse(b"", True)
        self.text = "".join(self._pieces)

    def _start(self, tag: str, given: Mapping[str, str]) -> None:
        name = full_name(tag)
        if self._left_out or name in _LEFT_OUT:
            self._left_out += 1
            return
        attributes = {full_name(key): value for key, value in given.items()}
        if name == f"{_STYLE}style" and attributes.get(f"{_STYLE}parent-style-name") == "Title":
            self._title_styles.add(attributes.get(f"{_STYLE}name", ""))
        self._pieces.append(_EMPTY.get(name) or self._blanks(name, attributes))
        tag = self._tag(name, attributes)
        self._open.append(tag)
        if tag:
            self._pieces.append(f"<{tag}>")
        if name == _NOTE:
            self._notes += 1
            self._pieces.append(" [")
        if name == _PARAGRAPH and not self.title and attributes.get(f"{_TEXT}style-name") in self._title_styles:
            self._title_from = len(self._pieces)

    def _blanks(self, name: str, attributes: Mapping[str, str]) -> str:
        count = attributes.get(f"{_TEXT}c", "1")
        return " " * min(int(count) if count.isdecimal() else 1, _MAX_BLANKS) if name == _BLANKS else ""

    def _tag(self, name: str, attributes: Mapping[str, str]) -> str:
        """Return the HTML tag for an element; none for a footnote paragraph, which would end the outer one."""
        if name == _HEADING:
            level = attributes.get(f"{_TEXT}outline-level", "1")
            return f"h{min(int(level), 6) or 1}" if level.isdecimal() else "h1"
        if name == _PARAGRAPH:
            return "" if self._notes else "p"
        return _TAGS.get(name, "")

    def _end(self, tag: str) -> None:
        if self._left_out:
            self._left_out -= 1
            return
        if closing := self._open.pop():
            if closing == "p" and self._title_from is not None:
                self.title = single_line("".join(self._pieces[self._title_from :]))
                self._title_from = None
            self._pieces.append(f"</{closing}>")
        if full_name(tag) == _NOTE:
            self._notes -= 1
            self._pieces.append("]")

    def _characters(self, text: str) -> None:
        if not self._left_out and self._open:
            self._pieces.append(escape(text, quote=False))
