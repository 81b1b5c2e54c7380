"""Reads one file within the limits, in this process or in a worker process."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from polyad.config import ReadSettings
from polyad.errors import PolyadError, ReadError
from polyad.protocols.components import report_failure
from polyad.readers.embedded_pictures import PictureReader
from polyad.readers.plain_text import Content, to_single_line
from polyad.readers.properties import prepend_properties

OnPage = Callable[[int, int, str], None]
"""Called with the number of the page that was read, from 1, the number of pages, and the kind of the page.

For a picture inside a document: the number of pictures so far, 0, and the kind of a new scan."""

TEXT_PAGE, STORED_SCAN, NEW_SCAN = "", "stored", "new"
"""Kinds of pages: with text, scanned and recognised by an earlier run, and scanned and recognised by this run."""

_READ_PDF = "polyad.readers.pdf:read_pdf"

PAGED_READERS = (_READ_PDF, "polyad.readers.pictures:read_picture")
"""The readers of files whose pages can be shown; they report their progress and recognise the text of scans."""

PICTURE_READERS = {
    ".docx": "polyad.readers.docx:read_docx",
    ".pptx": "polyad.readers.pptx:read_pptx",
    ".epub": "polyad.readers.epub:read_epub",
    ".eml": "polyad.readers.eml:read_eml",
    **dict.fromkeys((".html", ".htm", ".xhtml"), "polyad.readers.html:read_html"),
}
"""The readers of documents with pictures inside, by extension."""

_BASE_CHARACTERS, _CHARACTERS_PER_BYTE = 500_000, 50
"""Limit on characters: the base, and this number for each byte of the file. Real files have some four a byte, sheets
with long column names twenty; a file with far more repeats itself, and would cost its reader more than its writer."""

PDF_FACTOR = 16
"""Multiple of ``max_bytes`` that a PDF file may have. One page of it is in memory at a time, and a scan of 2,000 pages
has 100 MB to 1 GB."""

_MAX_PLACES = 200_000
"""Sections, pages, sheets and slides of a document together; manuals of thousands of pages have ten thousand."""


def read_content(path: Path, function: str, settings: ReadSettings, on_page: OnPage = lambda *_: None) -> Content:
    """Return the content of a file, with its title and author as first lines unless the text begins with them.

    See :func:`prepend_properties`.

    Args:
        path: A regular file.
        function: The ``module:function`` that converts the bytes to one document.
        settings: Limits on the bytes of the file and the characters of its text. A PDF file, which is not read into
            memory, may be :data:`PDF_FACTOR` times as large.
        on_page: Called after each page of a PDF or picture, and each picture in a document.

    Raises:
        ReadError: The file exceeds a limit, or the function cannot read the file.
        OSError: The file cannot be opened.
    """
    read = load_function(function)
    with nullcontext() if function.startswith("polyad.") else report_failure(ReadError, f"the reader {function!r}"):
        content: Content
        if function == _READ_PDF:
            with path.open("rb") as file:
                size = require_size(os.fstat(file.fileno()).st_size, PDF_FACTOR * settings.max_bytes)
                content = read(file, on_page, settings)
        else:
            data = read_bytes(path, settings.max_bytes)
            size = len(data)
            if function in PICTURE_READERS.values():
                pictures = open_pictures(path, data, settings, lambda number: on_page(number, 0, NEW_SCAN))
                content = pictures.complete(read(data, pictures))
            else:
                content = read(data, on_page, settings) if function in PAGED_READERS else read(data)
        if not isinstance(content, Content):
            raise TypeError(f"it returned {repr(content)[:60]}; expected a polyad.readers.plain_text.Content")
    require_plausible_length(len(content.text), size)
    if len(content.text) > settings.max_characters:
        raise ReadError(
            f"{len(content.text):,} characters of text; at most {settings.max_characters:,} are read (max_characters)"
        )
    if (places := len(content.sections) + len(content.places)) > _MAX_PLACES:
        raise ReadError(f"{places:,} headings and pages; at most {_MAX_PLACES:,} are read: split it")
    return prepend_properties(content)


def open_pictures(
    path: Path, data: bytes, settings: ReadSettings, on_picture: Callable[[int], None] = lambda _: None
) -> PictureReader:
    """Return the reader of the pictures in a document; those of a web page may also lie in its folder.

    Args:
        path: The file. A copy in an index has no extension, so that no file in its folder is opened.
        data: The bytes of the file.
        settings: Limits on pictures.
        on_picture: Called after a picture was recognised, with the number of such pictures.
    """
    is_page = path.suffix.lower() in (".html", ".htm", ".xhtml")
    return PictureReader(settings, data, on_picture, path.parent if is_page else None)


def require_plausible_length(characters: int, size: int) -> None:
    """Raise ReadError if the text of a file is implausibly long for the file's size (a decompression bomb)."""
    if characters > (limit := _BASE_CHARACTERS + _CHARACTERS_PER_BYTE * size):
        raise ReadError(f"more than {limit:,} characters of text, the limit for a file of {size:,} bytes")


def load_function(reference: str) -> Callable[..., Any]:
    """Import and return a function from a reference of the form ``module:function``.

    Raises:
        MissingExtraError: The module needs a package that is not installed.
    """
    module, function = reference.split(":")
    imported: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return imported


def format_reason(error: Exception | SystemExit) -> str:
    """Return the reason why a file could not be read, as one line for a message to the user."""
    if isinstance(error, PolyadError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return to_single_line(f"cannot be read: {type(error).__name__}: {error}")


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a regular file that has at most ``max_bytes`` bytes.

    The size that the file system states is not trusted, because a file may grow.

    Raises:
        ReadError: The file is larger than ``max_bytes``.
    """
    size = require_size(path.stat().st_size, max_bytes)
    with path.open("rb") as file:
        contents = file.read(max_bytes + 1)
    require_size(max(size, len(contents)), max_bytes)
    return contents


def require_size(size: int, max_bytes: int) -> int:
    """Return the size of a file. Raise ReadError if it is above ``max_bytes``."""
    if size > max_bytes:
        raise ReadError(f"{size:,} bytes; at most {max_bytes:,} are read (max_bytes)")
    return size
