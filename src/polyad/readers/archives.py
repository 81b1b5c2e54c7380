"""Safe access to documents that are ZIP archives of XML: Word, Excel, PowerPoint, OpenDocument and EPUB files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from polyad.errors import ReadError
from polyad.model import MetadataValue
from polyad.readers.plain_text import single_line
from polyad.readers.properties import listed, stated

_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How the older container begins, which holds .doc, .xls and .ppt files and also what has a password."""

_TEXT_PARTS = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx", ".vml")
_UNTYPED = (".svg", ".html", ".htm", ".xhtml")
"""Parts that may well declare a type: pictures and pages, which such libraries do not look at."""

_BEGINNING = 1024
_BLANK = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"
"""What XML of any encoding may have before its first sign."""

_MAX_PARTS = 1024**3
"""Bytes that all parts of an archive may unpack to, pictures included; a file may have 64 MiB, and those are packed."""

_ENCRYPTED = 1
_CORE = "docProps/core.xml"
_DUBLIN_CORE, _DATES = "{http://purl.org/dc/elements/1.1/}", "{http://purl.org/dc/terms/}"
_KEYWORDS = "{http://schemas.openxmlformats.org/package/2006/metadata/core-properties}keywords"


class _RootReached(Exception):  # noqa: N818  # no error: the way out of a parser
    """Raised at the first element of an XML document, to stop the parser there."""


@contextmanager
def opened(data: bytes, kind: str, *, max_text: int) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive after checking that its parts can be unpacked and parsed safely.

    Args:
        data: The file.
        kind: What it should be, with its article.
        max_text: Bytes that its XML and HTML may unpack to.

    Raises:
        ReadError: It is encrypted, damaged, too large or no such file, as far as this shows here or in the block.
    """
    if data.startswith(_COMPOUND_FILE):
        raise ReadError("encrypted, or in the format of before 2007; save it in the newer one without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_sizes(archive, max_text)
            yield archive
    except ReadError:
        raise
    except Exception as error:  # whatever the libraries raise on damaged files: each has its own
        raise ReadError(f"not {kind}, or damaged: {single_line(str(error)) or type(error).__name__}") from error


def _check_sizes(archive: zipfile.ZipFile, max_text: int) -> None:
    """Raise ReadError if the archive's stated sizes exceed the limits. No part unpacks to more than its stated size."""
    parts = archive.infolist()
    if any(part.flag_bits & _ENCRYPTED for part in parts):
        raise ReadError("encrypted; save it without a password")
    text = sum(part.file_size for part in parts if _is_text(archive, part))
    if text > max_text:
        raise ReadError(f"unpacks to {text:,} bytes of XML; at most {max_text:,} are read")
    total = sum(part.file_size for part in parts)
    if total > _MAX_PARTS:
        raise ReadError(f"unpacks to {total:,} bytes; at most {_MAX_PARTS:,} are read")


def _is_text(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bool:
    """Return whether a part is XML or HTML, by its name or, since relations may name any part, by its first bytes."""
    if part.filename.lower().endswith(_TEXT_PARTS):
        return True
    try:
        with archive.open(part) as file:
            beginning = file.read(_BEGINNING).lstrip(_BLANK)
    except Exception:  # whoever needs it will say what is wrong with it
        return False
    return beginning.startswith(b"<") or (not beginning and part.file_size > _BEGINNING)


def reject_document_types(archive: zipfile.ZipFile) -> None:
    """Raise ReadError if a part declares a document type, whose entities some libraries expand.

    Raises:
        ReadError: A part does.
    """
    for part in archive.infolist():
        if part.filename.lower().endswith(_UNTYPED) or not _is_text(archive, part):
            continue
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = _refuse
        parser.StartElementHandler = _stop
        try:
            with archive.open(part) as file:
                while block := file.read(io.DEFAULT_BUFFER_SIZE):
                    parser.Parse(block)
        except (_RootReached, expat.ExpatError):  # what is no XML is the library's to report, if it needs the part
            continue


def _stop(*_: object) -> NoReturn:
    raise _RootReached


def _refuse(*_: object) -> NoReturn:
    raise ReadError("its XML declares a document type or entities, which such files never need")


def xml_parser() -> expat.XMLParserType:
    """Return an XML parser that rejects entity declarations and separates namespaces from names by "}"."""
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.EntityDeclHandler = _refuse
    return parser


def full_name(name: str) -> str:
    """Return a name of an :func:`xml_parser` in ElementTree's form, ``{namespace}name``."""
    return f"{{{name}" if "}" in name else name


def parsed(data: bytes) -> Element:
    """Return the element tree of a small XML document.

    Raises:
        ReadError: It declares entities.
        ParseError: It is no XML.
    """
    builder = TreeBuilder()
    parser = xml_parser()
    parser.StartElementHandler = lambda name, attributes: builder.start(
        full_name(name), {full_name(key): value for key, value in attributes.items()}
    )
    parser.EndElementHandler = lambda name: builder.end(full_name(name))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ParseError(str(error)) from error
    return builder.close()


def read_core_properties(archive: zipfile.ZipFile) -> tuple[str, dict[str, MetadataValue]]:
    """Return the title of an Office document, which may be empty, and the metadata in its core properties."""
    if _CORE not in archive.namelist():
        return "", {}
    core = parsed(archive.read(_CORE))
    title, author, subject, created, modified = (
        single_line(core.findtext(name) or "")
        for name in (
            f"{_DUBLIN_CORE}title",
            f"{_DUBLIN_CORE}creator",
            f"{_DUBLIN_CORE}subject",
            f"{_DATES}created",
            f"{_DATES}modified",
        )
    )
    keywords = listed(core.findtext(_KEYWORDS) or "")
    return title, stated(author=author, subject=subject, keywords=keywords, created=created, modified=modified)
