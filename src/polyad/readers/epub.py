"""Reads the chapters of EPUB books, which are HTML, in reading order."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element, ParseError
from zipfile import ZipFile

from polyad.errors import ReadError
from polyad.model import MetadataValue, Section
from polyad.readers.archives import opened, parsed
from polyad.readers.html import read_html
from polyad.readers.plain_text import Content, single_line
from polyad.readers.properties import clean_stated_title, stated

_MAX_EXPANDED = 128 * 1024 * 1024
"""Bytes of HTML a book may unpack to; long novels are 3 MB."""

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PACKAGE = "{http://www.idpf.org/2007/opf}"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
_CONTENTS = "{http://www.daisy.org/z3986/2005/ncx/}"
_PAGE = "{http://www.w3.org/1999/xhtml}"

_SELF_CLOSING = re.compile(
    rb"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([\w:-]+)([^<>]*)/>"
)
"""Elements that XHTML closes and HTML does not, in which all that follows would be lost, as in ``<title/>``."""

_BETWEEN = "\n\n"

_MOST_PIECES = 100
"""Pieces of text that are read of a link, which in a book that is well formed holds no other link."""

_NO_DATE = "0101-"
"""How calibre, which most books pass through, writes that it knows no date."""


class _Item(NamedTuple):
    """A file in an EPUB archive."""

    path: str
    properties: str


def read_epub(data: bytes) -> Content:
    """Return the chapters of a book, without its table of contents. Sections are its headings.

    Raises:
        ReadError: It is encrypted, damaged, too large or no EPUB book.
    """
    with opened(data, "an EPUB book", max_text=_MAX_EXPANDED) as archive:
        package_path = _package_path(archive)
        package = parsed(archive.read(package_path))
        items = _items(package, package_path)
        files = set(archive.namelist())
        spine = [item for item in _spine(package, items) if item.path in files]
        _refuse_encrypted(archive, spine)
        names = _names(archive, items)
        contents = _contents(package, package_path)
        chapters = [
            (read_html(_SELF_CLOSING.sub(rb"<\1\2></\1>", archive.read(item.path))), names.get(item.path, ""))
            for item in spine
            if "nav" not in item.properties.split() and item.path not in contents
        ]
        title, metadata = _properties(package)
    pieces: list[str] = []
    sections: list[Section] = []
    start = 0
    for chapter, name in chapters:
        text = chapter.text.strip("\n")
        if not text.strip():
            continue
        cut = len(chapter.text) - len(chapter.text.lstrip("\n"))
        sections += _sections(chapter, name, start - cut, start, start + len(text))
        pieces.append(text)
        start += len(text) + len(_BETWEEN)
    return Content(clean_stated_title(title), _BETWEEN.join(pieces), tuple(sections), metadata=metadata)


def _sections(chapter: Content, name: str, shift: int, start: int, end: int) -> Iterator[Section]:
    """Yield the sections of a chapter as spans of the book's text."""
    for section in chapter.sections:
        yield Section(section.name, max(section.start + shift, start), min(section.end + shift, end))
    if not chapter.sections and name:
        yield Section(name, start, end)


def _package_path(archive: ZipFile) -> str:
    rootfile = parsed(archive.read(_CONTAINER)).find(".//{*}rootfile")
    if rootfile is None:
        raise ReadError("not an EPUB book, or damaged: it names no package")
    return rootfile.get("full-path", "")


def _items(package: Element, package_path: str) -> dict[str, _Item]:
    """Return the files of a book by id."""
    return {
        item.get("id", ""): _Item(_resolved(package_path, item.get("href", "")), item.get("properties", ""))
        for item in package.iter(f"{_PACKAGE}item")
    }


def _resolved(base: str, reference: str) -> str:
    """Return the archive path that a reference in the file ``base`` points to."""
    path = unquote(urlsplit(reference).path)
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path))


def _spine(package: Element, items: Mapping[str, _Item]) -> Iterator[_Item]:
    """Yield each chapter once, in reading order."""
    references = (reference.get("idref", "") for reference in package.iter(f"{_PACKAGE}itemref"))
    chapters = [items[reference] for reference in references if reference in items]
    return iter({item.path: item for item in chapters}.values())


def _contents(package: Element, package_path: str) -> set[str]:
    """Return the pages that an EPUB 2 book declares as its table of contents."""
    guide = package.iter(f"{_PACKAGE}reference")
    return {_resolved(package_path, page.get("href", "")) for page in guide if page.get("type") == "toc"}


def _refuse_encrypted(archive: ZipFile, spine: list[_Item]) -> None:
    """Raise ReadError if a chapter is encrypted; encrypted fonts are harmless."""
    if _ENCRYPTION in archive.namelist():
        references = parsed(archive.read(_ENCRYPTION)).iterfind(".//{*}CipherReference")
        if {reference.get("URI") for reference in references} & {item.path for item in spine}:
            raise ReadError("encrypted (DRM); export it without")


def _names(archive: ZipFile, items: Mapping[str, _Item]) -> dict[str, str]:
    """Return the first name of each file in the tables of contents; later names refer to parts of the file."""
    names: dict[str, str] = {}
    files = set(archive.namelist())
    for item in {item.path: item for item in items.values()}.values():
        if item.path in files and ("nav" in item.properties.split() or item.path.endswith(".ncx")):
            try:
                entries = list(_entries(parsed(archive.read(item.path))))
            except (ParseError, ReadError):  # the book can do without
                continue
            for reference, name in entries:
                names.setdefault(_resolved(item.path, reference), single_line(name))
    return names


def _entries(contents: Element) -> Iterator[tuple[str, str]]:
    """Yield reference and name of each entry in a table of contents (NCX or EPUB 3 navigation)."""
    for point in contents.iter(f"{_CONTENTS}navPoint"):
        target = point.find(f"{_CONTENTS}content")
        if target is not None:
            yield target.get("src", ""), point.findtext(f"{_CONTENTS}navLabel/{_CONTENTS}text") or ""
    for link in contents.iter(f"{_PAGE}a"):
        yield link.get("href", ""), "".join(islice(link.itertext(), _MOST_PIECES))


def _properties(package: Element) -> tuple[str, dict[str, MetadataValue]]:
    """Return the title of a book, which may be empty, and its other metadata."""
    values = {
        name: [text for element in package.iter(_DUBLIN_CORE + name) if (text := single_line(element.text or ""))]
        for name in ("title", "creator", "subject", "date", "language", "publisher")
    }
    first = {name: texts[0] if texts else "" for name, texts in values.items()}
    return first["title"], stated(
        author=", ".join(values["creator"]),
        keywords=tuple(dict.fromkeys(values["subject"])),
        created="" if first["date"].startswith(_NO_DATE) else first["date"],
        language=first["language"],
        publisher=first["publisher"],
    )
