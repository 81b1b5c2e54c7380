"""Safe access to documents that are ZIP archives of XML: Word, Excel, PowerPoint, OpenDocument and EPUB files."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from polyad.errors import ReadError
from polyad.model import MetadataValue
from polyad.readers.text.metadata import build_metadata, split_keywords
from polyad.readers.text.plain_text import to_single_line

_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""First bytes of an OLE2 compound file: .doc, .xls and .ppt, and any Office file with a password."""

_TEXT_PARTS = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx", ".vml")
_TYPED_PAGES = (".svg", ".html", ".htm", ".xhtml")
"""Pictures and pages may declare a document type: the libraries for Office files do not parse these parts."""

_PREFIX_BYTES = 1024
_LEADING_BYTES = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"
"""Bytes that may precede the first ``<`` of XML: byte order marks, zero bytes of UTF-16 and white space."""

_MAX_UNPACKED = 1024**3
"""Bytes that all parts of an archive may unpack to, pictures included; the packed file may have 64 MiB."""

_BASE_TEXT, _MAX_RATIO = 10 * 1024 * 1024, 100
"""Bytes that XML may unpack to: the base, and this multiple of the file. Text packs to 10 %, sheets to 2 %."""

_ENCRYPTED = 1
EMBEDDED_KINDS = ("package", "oleObject")
"""Kinds of the relations of an Office file to other files inside."""

_CORE_PROPERTIES = "docProps/core.xml"
DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
_PROPERTY_ELEMENTS = {
    "title": f"{DUBLIN_CORE}title",
    "author": f"{DUBLIN_CORE}creator",
    "subject": f"{DUBLIN_CORE}subject",
    "keywords": "{http://schemas.openxmlformats.org/package/2006/metadata/core-properties}keywords",
    "created": "{http://purl.org/dc/terms/}created",
    "modified": "{http://purl.org/dc/terms/}modified",
}
"""Metadata key to the XML element of an Office document's core properties."""


class _RootReached(Exception):  # noqa: N818  # not an error: leaves the parser early
    """Raised by a parser callback to stop parsing XML at the first element."""


@contextmanager
def open_archive(data: bytes, file_kind: str, *, max_text: int) -> Iterator[zipfile.ZipFile]:
    """Yield an open ZIP archive whose parts are safe to unpack; ``file_kind``, such as "a workbook", is for messages.

    Args:
        data: The bytes of the file.
        file_kind: The expected file type with its article, for messages: "an EPUB book".
        max_text: Bytes that the XML and HTML parts may unpack to.

    Raises:
        ReadError: The file is encrypted, damaged, too large or of another type; also if the block fails on the file.
    """
    if data.startswith(_COMPOUND_FILE):
        raise ReadError("encrypted, or in a format from before 2007; save it in the current format without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_sizes(archive, min(max_text, _BASE_TEXT + _MAX_RATIO * len(data)))
            yield archive
    except ReadError:
        raise
    except Exception as error:  # each library raises its own exceptions for damaged files
        raise ReadError(f"not {file_kind}, or damaged: {to_single_line(str(error)) or type(error).__name__}") from error


@contextmanager
def open_office_file(
    data: bytes, kind: str, *, max_text: int, max_tags: int | None = None
) -> Iterator[tuple[str, dict[str, MetadataValue]]]:
    """Yield title and metadata of an Office file, after checks that libraries can parse the file safely.

    A library may read ``data`` inside the block: no XML part declares a document type, all parts together have at most
    ``max_tags`` tags, and the other checks, arguments and errors are the same as in :func:`open_archive`.
    """
    with open_archive(data, kind, max_text=max_text) as archive:
        _reject_document_types(archive)
        if max_tags is not None:
            # A thousand empty elements compress to a few bytes.
            parts = [part for part in archive.infolist() if _is_text_part(archive, part)]
            if (tags := sum(archive.read(part).count(b"<") for part in parts)) > max_tags:
                raise ReadError(f"{tags:,} tags of XML; at most {max_tags:,} are read; split the document")
        yield _read_core_properties(archive)


def _check_sizes(archive: zipfile.ZipFile, max_text: int) -> None:
    """Raise ReadError if parts of an archive are encrypted or too large: over ``max_text`` bytes of XML and HTML.

    No part unpacks to more than its stated size.
    """
    parts = archive.infolist()
    if any(part.flag_bits & _ENCRYPTED for part in parts):
        raise ReadError("encrypted; save it without a password")
    text = sum(part.file_size for part in parts if _is_text_part(archive, part))
    if text > max_text:
        raise ReadError(f"unpacks to {text:,} bytes of XML; at most {max_text:,} are read; split the document")
    total = sum(part.file_size for part in parts)
    if total > _MAX_UNPACKED:
        raise ReadError(f"unpacks to {total:,} bytes; at most {_MAX_UNPACKED:,} are read; split the document")


def _is_text_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bool:
    """Return whether a part of an archive is XML or HTML, by its name or its first bytes.

    The first bytes count because relations in an Office file may name any part.
    """
    if part.filename.lower().endswith(_TEXT_PARTS):
        return True
    try:
        with archive.open(part) as file:
            prefix = file.read(_PREFIX_BYTES).lstrip(_LEADING_BYTES)
    except Exception:  # the library reports the damage if it needs the part
        return False
    return prefix.startswith(b"<") or (not prefix and part.file_size > _PREFIX_BYTES)


def _reject_document_types(archive: zipfile.ZipFile) -> None:
    """Raise ReadError if an XML part declares a document type.

    Some libraries expand the entities of a document type, which a few bytes can make gigabytes.
    """
    for part in archive.infolist():
        if part.filename.lower().endswith(_TYPED_PAGES) or not _is_text_part(archive, part):
            continue
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = _reject_entity
        parser.StartElementHandler = _stop_parsing
        try:
            with archive.open(part) as file:
                while block := file.read(io.DEFAULT_BUFFER_SIZE):
                    parser.Parse(block)
        except (_RootReached, expat.ExpatError):  # the library reports invalid XML if it needs the part
            continue


def _stop_parsing(*_: object) -> NoReturn:
    """Raise _RootReached when an XML parser reaches the first element (a parser callback)."""
    raise _RootReached


def _reject_entity(*_: object) -> NoReturn:
    """Raise ReadError when an XML parser meets a document type or entity declaration (a parser callback)."""
    raise ReadError("its XML declares a document type or entities, which such files never need")


def create_xml_parser() -> expat.XMLParserType:
    """Return an XML parser that rejects entity declarations and reports an element's name as ``namespace}name``."""
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.EntityDeclHandler = _reject_entity
    return parser


def to_clark_name(name: str) -> str:
    """Return an XML name ``namespace}name`` in ElementTree's notation ``{namespace}name``."""
    return f"{{{name}" if "}" in name else name


def parse_xml(data: bytes) -> Element:
    """Return the root element of a small XML document.

    Raises:
        ReadError: The document declares entities.
        ParseError: The document is not well-formed XML.
    """
    builder = TreeBuilder()
    parser = create_xml_parser()
    parser.StartElementHandler = lambda name, attributes: builder.start(
        to_clark_name(name), {to_clark_name(key): value for key, value in attributes.items()}
    )
    parser.EndElementHandler = lambda name: builder.end(to_clark_name(name))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ParseError(str(error)) from error
    return builder.close()


def read_relations(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """Return kind and path of the parts to which a part of an Office file refers, by the id of the relation.

    The kind is the last word of the relation's type, such as ``worksheet``. An empty ``part`` is the whole file. A
    relation may name a part that does not exist.
    """
    folder, name = posixpath.split(part)
    path = posixpath.join(folder, "_rels", f"{name}.rels")
    return {
        relation.get("Id", ""): (
            relation.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/"),
        )
        for relation in (parse_xml(archive.read(path)) if path in archive.namelist() else ())
    }


def _read_core_properties(archive: zipfile.ZipFile) -> tuple[str, dict[str, MetadataValue]]:
    """Return the title (may be empty) and the metadata in the core properties of an Office document."""
    if _CORE_PROPERTIES not in archive.namelist():
        return "", {}
    core = parse_xml(archive.read(_CORE_PROPERTIES))
    values = {key: core.findtext(element) or "" for key, element in _PROPERTY_ELEMENTS.items()}
    title = to_single_line(values.pop("title"))
    return title, build_metadata(
        (key, split_keywords(value) if key == "keywords" else to_single_line(value)) for key, value in values.items()
    )
