"""Word documents through mammoth, which follows footnotes, text boxes, tables and tracked changes, then as HTML."""

from __future__ import annotations

import io
import zipfile
from xml.etree import ElementTree

from polyad.adapters.reading.html import from_markup
from polyad.adapters.reading.plain_text import Content, single_line
from polyad.errors import MissingExtraError, ReadError

try:
    import mammoth  # type: ignore[import-untyped]  # has no stubs
except ImportError as error:
    raise MissingExtraError("mammoth", "documents") from error

_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How the older container begins, which holds .doc files and also every .docx with a password."""

_MAX_EXPANDED = 512 * 1024 * 1024
"""Bytes of XML a document may unpack to; real ones stay far below."""

_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def read_docx(data: bytes) -> Content:
    """The text of a document; the title is the one in its properties, else its first heading of level 1.

    Raises:
        ReadError: It is encrypted, damaged or no Word document.
    """
    if data.startswith(_COMPOUND_FILE):
        raise ReadError("encrypted, or in the older .doc format; save it as .docx without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_size(archive)
            title = _title(archive)
        markup = mammoth.convert_to_html(io.BytesIO(data), convert_image=mammoth.images.img_element(_no_image)).value
    except (zipfile.BadZipFile, KeyError, OSError, ElementTree.ParseError) as error:
        raise ReadError(f"not a Word document, or damaged: {error}") from error
    content = from_markup(markup, is_layout=False)
    return content._replace(title=title or content.title)


def _check_size(archive: zipfile.ZipFile) -> None:
    size = sum(part.file_size for part in archive.infolist() if part.filename.endswith((".xml", ".rels")))
    if size > _MAX_EXPANDED:
        raise ReadError(f"unpacks to {size:,} bytes of XML; at most {_MAX_EXPANDED:,} are read")


def _title(archive: zipfile.ZipFile) -> str:
    if "docProps/core.xml" not in archive.namelist():
        return ""
    return single_line(ElementTree.fromstring(archive.read("docProps/core.xml")).findtext(_TITLE) or "")


def _no_image(_: object) -> dict[str, str]:
    """Keeps the alternative text, which mammoth adds, and spares the encoding of the picture."""
    return {"src": ""}
