"""Reads PDF files with PDFium, the PDF engine of Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from polyad.errors import MissingExtraError, ReadError
from polyad.model import MetadataValue
from polyad.readers.headings import build_sections
from polyad.readers.one_file import OnPage, ignore_page
from polyad.readers.pdf_furniture import Pages, remove_furniture
from polyad.readers.pdf_headings import Entry, by_type, find_largest_lines, find_root_entry, outlined
from polyad.readers.pdf_lines import Line, lines_of
from polyad.readers.pdf_paragraphs import laid_out
from polyad.readers.plain_text import Content, single_line
from polyad.readers.properties import clean_stated_title, listed, stated

try:
    import pypdfium2  # type: ignore[import-untyped]  # has no stubs
    from pypdfium2 import raw
except ImportError as error:
    raise MissingExtraError("pypdfium2", "documents") from error

_SPARE_CHARACTERS, _CHARACTERS_A_BYTE = 500_000, 20
"""A file may hold so many characters, and so many more for each of its bytes. Real files have two a byte at most; one
with far more shows the same stream on many pages."""

_MAX_LINES = 20_000
"""Lines of a page; the fullest of real ones have a thousand."""

_MAX_ENTRIES = 100_000
"""Entries of an outline that are read."""

_DEEPEST = 6
"""Levels of an outline that are read, as many as HTML has."""

_UNSTATED = ("anonymous", "unknown", "unspecified")
"""What programs write for want of an author or a subject."""

_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-])(\d\d)'?(\d\d)?'?)?")


class _Raw(NamedTuple):
    """Pages, outline and metadata of a document as PDFium returns them."""

    pages: Pages
    entries: list[Entry]
    known: Mapping[str, str]


def read_pdf(data: bytes, on_page: OnPage = ignore_page) -> Content:
    """Return the text of a PDF with a location for each page. PDFium must not run in two threads at once.

    Running heads and feet, tables of contents and indexes are left out. The title is the one in the metadata unless a
    program made it up, else what is largest on the first page, else the entry of the outline that all others stand
    below. The outline, which programs show as bookmarks, gives the sections; without one the type of the lines does. A
    file that only restricts printing or copying is read; one that needs a password to be opened is not.

    Args:
        data: The file.
        on_page: Told of each page that was read.

    Raises:
        ReadError: It needs a password, is damaged, holds no text, or more than a file of its size should.
    """
    try:
        given = _read(data, on_page)
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise ReadError("encrypted; it needs a password") from error
        raise ReadError(f"not a PDF, or damaged: {error}") from error
    if not any(given.pages):
        raise ReadError("no text in it; scanned pages need OCR first")
    pages = remove_furniture(given.pages)
    laid = laid_out(pages)
    title = (
        clean_stated_title(given.known.get("Title", ""))
        or find_largest_lines(given.pages)
        or find_root_entry(given.entries)
    )
    headings = outlined(given.entries, pages, laid)
    if len(headings) < 2:
        headings = by_type(pages, laid, has_title=bool(title))
    sections = build_sections(headings, laid.text)
    return Content(title, laid.text, sections, laid.places, _metadata(given.known, len(pages)))


def _read(data: bytes, on_page: OnPage) -> _Raw:
    document = pypdfium2.PdfDocument(data)
    try:
        pages = list(_pages(document, _SPARE_CHARACTERS + _CHARACTERS_A_BYTE * len(data), on_page))
        return _Raw(pages, list(_entries(document)), _known(document))
    finally:
        document.close()


def _pages(document: pypdfium2.PdfDocument, most: int, on_page: OnPage) -> Iterator[list[Line]]:
    """Yield the lines of each page.

    Args:
        document: Whose.
        most: Characters that it may hold.
        on_page: Told of each page that was read.
    """
    characters = 0
    for index in range(len(document)):
        page = document[index]
        text_page = page.get_textpage()
        try:
            characters += text_page.count_chars()
            if characters > most:
                raise ReadError(f"its pages hold more than {most:,} characters; for a file of its size that is all")
            lines = list(islice(lines_of(text_page), _MAX_LINES + 1))
        finally:
            text_page.close()
            page.close()
        if len(lines) > _MAX_LINES:
            raise ReadError(f"page {index + 1} has more than {_MAX_LINES:,} lines")
        yield lines
        on_page(index + 1, len(document))


def _entries(document: pypdfium2.PdfDocument) -> Iterator[Entry]:
    for _, entry in zip(range(_MAX_ENTRIES), document.get_toc(max_depth=_DEEPEST), strict=False):
        try:
            name = single_line(entry.get_title())
        except UnicodeError:  # it is damaged; the text is not
            continue
        target = entry.get_dest()
        page = target.get_index() if target else None
        if page is not None:
            yield Entry(entry.level, name, page, _top(target))


def _known(document: pypdfium2.PdfDocument) -> dict[str, str]:
    """Return the readable entries of the document's metadata."""
    known = {}
    for key in ("Title", "Author", "Subject", "Keywords", "CreationDate", "ModDate"):
        with suppress(UnicodeError):
            known[key] = document.get_metadata_value(key)
    return known


def _top(target: pypdfium2.PdfDest) -> float | None:
    """Return the height of a destination on its page, or None if the destination states no point."""
    mode, values = target.get_view()
    if mode == raw.PDFDEST_VIEW_XYZ and len(values) > 1:
        return float(values[1])
    return float(values[0]) if mode == raw.PDFDEST_VIEW_FITH and values else None


def _metadata(known: Mapping[str, str], pages: int) -> dict[str, MetadataValue]:
    """Convert the metadata of a PDF; omit empty values."""
    author, subject = (single_line(known.get(name, "")) for name in ("Author", "Subject"))
    return stated(
        author="" if author.lower() in _UNSTATED else author,
        subject="" if subject.lower() in _UNSTATED else subject,
        keywords=listed(known.get("Keywords", "")),
        created=_iso(known.get("CreationDate", "")),
        modified=_iso(known.get("ModDate", "")),
        pages=pages,
    )


def _iso(date: str) -> str:
    """Convert a PDF date to ISO 8601; an empty string if the date is invalid.

    >>> _iso("D:20230120164927+01'00'"), _iso("D:2023"), _iso("20 Jan")
    ('2023-01-20T16:49:27+01:00', '2023-01-01T00:00:00', '')
    """
    match = _DATE.match(date)
    if not match:
        return ""
    year, month, day, hour, minute, second, utc, sign, hours, minutes = match.groups()
    zone = "+00:00" if utc else f"{sign}{hours}:{minutes or '00'}" if sign else ""
    iso = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}{zone}"
    try:
        return datetime.fromisoformat(iso).isoformat()
    except ValueError:
        return ""
