"""Reads PDF files with PDFium, the PDF engine of Chromium."""

from __future__ import annotations

import io
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from io import BufferedIOBase
from types import MappingProxyType
from typing import NamedTuple

from polyad.errors import MissingExtraError, ReadError
from polyad.model import MetadataValue
from polyad.readers.format import DEFAULT_CONTEXT, TEXT_PAGE, Content, Context, OnPage, Source
from polyad.readers.text.headings import build_sections
from polyad.readers.text.metadata import build_metadata, split_keywords
from polyad.readers.text.plain_text import to_single_line
from polyad.readers.text.titles import clean_stated_title
from polyad.text.page_labels import PAGE_LABELS, format_runs
from polyad.text.pictures import MAX_LISTED, PICTURE_LIST, build_label
from polyad.text.removals import INSTALL_OCR, PAGES, PICTURES, SCANS, UNCERTAIN, UNREAD_SCANS, Removals, merge_removals
from polyad_readers.lines.code import indent_code
from polyad_readers.lines.gaps import split_lines
from polyad_readers.lines.lines import Line, extract_lines
from polyad_readers.lines.paragraphs import join_lines
from polyad_readers.lines.rules import Rule
from polyad_readers.lines.tables import format_tables
from polyad_readers.pdf.annotations import Annotation, read_annotations
from polyad_readers.pdf.figures import find_figures
from polyad_readers.pdf.furniture import Pages, remove_furniture
from polyad_readers.pdf.headings import (
    OutlineEntry,
    find_headings_by_type,
    find_largest_lines,
    find_root_entry,
    locate_outline_entries,
    put_title_first,
)
from polyad_readers.pdf.placement import divide_lines, place_annotations
from polyad_readers.pictures.ocr import PageOcr
from polyad_readers.pictures.scanned_pages import Scan, get_scan_kind, is_scan, read_scan

try:
    import pypdfium2  # type: ignore[import-untyped]  # has no stubs
    from pypdfium2 import raw
except ImportError as error:
    raise MissingExtraError("pypdfium2", "documents") from error

_BASE_CHARACTERS, _CHARACTERS_PER_BYTE = 500_000, 20
"""Limit on characters: the base, and this number for each byte of the file. Real files have two a byte at most; a file
with far more repeats one stream on many pages."""

_MAX_LINES = 20_000
"""Lines of a page; the fullest real pages have a thousand."""

_MAX_ENTRIES = 100_000
"""Entries of an outline that are read."""

_MAX_DEPTH = 6
"""Levels of an outline that are read, as many as HTML has."""

_MAX_PICTURE_DEPTH = 3
"""Nested forms of a page in which pictures are looked for."""

_MIN_GARBLED = 10
"""Characters without meaning that make a page one that cannot be read."""

_SPARSE = 100
"""Characters of a page below which it may be a scan with a stamp or a page number."""

_NO_VALUE = ("anonymous", "unknown", "unspecified")
"""Placeholders that programs write for a missing author or subject."""

_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-])(\d\d)'?(\d\d)?'?)?")


class _PageContent(NamedTuple):
    """The content of a page.

    Attributes:
        lines: Its lines; those of a scan are recognised by OCR.
        annotations: Values of form fields, typed texts and notes.
        rules: Ruling lines, if lines of the page have gaps.
        captions: Captions of figures and tables with a box.
        left_out: The page or its uncertain words, by kind: pages that have pictures and no text, pages that cannot be
            read, and scans.
        kind: Kind of the page for progress.
    """

    lines: list[Line]
    annotations: Sequence[Annotation] = ()
    rules: Sequence[Rule] = ()
    captions: Sequence[str] = ()
    left_out: Mapping[str, Sequence[str]] = MappingProxyType({})
    kind: str = TEXT_PAGE


class _RawDocument(NamedTuple):
    """The pages, outline entries (bookmarks), metadata and page labels of a PDF, as PDFium returns them."""

    pages: Sequence[_PageContent]
    entries: list[OutlineEntry]
    properties: Mapping[str, str]
    labels: Sequence[str]

    @property
    def lines(self) -> Pages:
        """The lines of each page."""
        return [page.lines for page in self.pages]

    @property
    def left_out(self) -> Removals:
        """What the text of the pages leaves out, by kind."""
        left_out = merge_removals(page.left_out for page in self.pages)
        return {kind: left_out.get(kind, ()) for kind in (PICTURES, PAGES, SCANS, UNREAD_SCANS, UNCERTAIN)}


def read_pdf(source: Source, context: Context = DEFAULT_CONTEXT) -> Content:
    """Return the content of a PDF, with a location for each page.

    PDFium must not run in two threads at once.

    Values of form fields, typed texts and notes stand at their places. Running headers and footers, tables of contents
    and indexes are removed. The title is the metadata title unless a program generated it, else the largest text on
    the first page, else the outline entry for the whole document. The text of scanned pages is recognised.

    Sections come from the outline (bookmarks), or from larger and bold type without an outline. A file that only
    restricts printing or copying is read.

    Raises:
        ReadError: The file needs a password, is damaged, contains no text, or contains more text than its size allows.
    """
    ocr = PageOcr(context.settings, source.digest)
    try:
        with source.open() as file:
            raw_document = _read_raw(file, context.on_page, ocr)
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise ReadError("encrypted; save it without a password") from error
        raise ReadError(f"not a PDF, or damaged: {error}") from error
    left_out = raw_document.left_out
    if not any(page.lines or page.annotations for page in raw_document.pages):
        if damaged := left_out[PAGES]:
            raise ReadError(f"no text in it, and {len(damaged)} pages that cannot be read, such as {damaged[0]}")
        if left_out[UNREAD_SCANS]:
            raise ReadError(f"no text in it; to read scanned pages, {INSTALL_OCR}")
        raise ReadError("no text in it")
    page_lines, removals = remove_furniture(put_title_first(raw_document.lines))
    placed = map(place_annotations, page_lines, (page.annotations for page in raw_document.pages))
    pages = list(map(format_tables, indent_code(placed), (page.rules for page in raw_document.pages)))
    joined_text = join_lines(pages)
    title = (
        clean_stated_title(raw_document.properties.get("Title", ""))
        or find_largest_lines(raw_document.lines)
        or find_root_entry(raw_document.entries)
    )
    headings = locate_outline_entries(raw_document.entries, pages, joined_text)
    if len(headings) < 2:
        headings = find_headings_by_type(pages, joined_text, has_title=bool(title))
    sections = build_sections(headings, joined_text.text)
    metadata = _build_metadata(raw_document)
    removals = merge_removals([removals, left_out])
    return Content(title, joined_text.text, sections, joined_text.locations, metadata, removals=removals)


def recognize_pages(source: Source, context: Context, part: tuple[int, int]) -> None:
    """Recognise scanned pages, the last one first, and store their text for the process that reads the PDF forwards.

    Args:
        source: The file.
        context: Settings of OCR, and the function that is called after each page.
        part: Number of this process, from 0, and the number of such processes: each recognises every n-th page.
    """
    first, step = part
    ocr = PageOcr(context.settings, source.digest)
    with source.open() as file, pypdfium2.PdfDocument(file) as document:
        indices = range(len(document) - 1 - first, -1, -step)
        deque(_read_pages(document, indices, ocr, context.on_page, sys.maxsize), maxlen=0)


def _read_raw(file: BufferedIOBase, on_page: OnPage, ocr: PageOcr) -> _RawDocument:
    """Return the pages, outline entries (bookmarks), metadata and page labels of a PDF."""
    document = pypdfium2.PdfDocument(file)
    try:
        max_characters = _BASE_CHARACTERS + _CHARACTERS_PER_BYTE * file.seek(0, io.SEEK_END)
        indices = range(len(document))
        pages = list(_read_pages(document, indices, ocr, on_page, max_characters))
        entries = list(_read_outline(document))
        labels = [_read_label(document, index) for index in indices]
        return _RawDocument(pages, entries, _read_properties(document), labels)
    finally:
        document.close()


class _TextLimit:
    """Counts the characters of the pages of a file."""

    def __init__(self, max_characters: int) -> None:
        self._max_characters = max_characters
        self._characters = 0

    def add(self, characters: int) -> None:
        """Add the characters of a page. Raise ReadError if all pages together have too many."""
        self._characters += characters
        if self._characters > self._max_characters:
            raise ReadError(f"more than {self._max_characters:,} characters of text, the limit for a file of this size")


def _read_pages(
    document: pypdfium2.PdfDocument, indices: Iterable[int], ocr: PageOcr, on_page: OnPage, max_characters: int
) -> Iterator[_PageContent]:
    """Yield the content of each page of a PDF; a damaged page has none.

    Args:
        document: The open PDF.
        indices: The pages to read, from 0.
        ocr: Recognises scanned pages.
        on_page: Called after each page that was read.
        max_characters: Characters that all pages together may contain.
    """
    limit = _TextLimit(max_characters)
    for index in indices:
        try:
            page = document[index]
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError:
            yield _PageContent([], left_out={PAGES: [f"p. {index + 1}"]})
            continue
        try:
            annotations = read_annotations(document, page, text_page)
            limit.add(text_page.count_chars() + sum(len(annotation.text) for annotation in annotations))
            content = _read_page(page, text_page, index + 1, annotations, ocr)
        finally:
            text_page.close()
            page.close()
        if len(content.lines) > _MAX_LINES:
            raise ReadError(f"page {index + 1} has more than {_MAX_LINES:,} lines")
        yield content
        on_page(index + 1, len(document), content.kind)


def _read_page(
    page: pypdfium2.PdfPage,
    text_page: pypdfium2.PdfTextPage,
    number: int,
    annotations: list[Annotation],
    ocr: PageOcr,
) -> _PageContent:
    """Return the content of a page; a scan, or a page whose characters are no text, is recognised by OCR."""
    name = f"p. {number}"
    lines, garbled = extract_lines(text_page, _MAX_LINES)
    lines, rules = split_lines(text_page, page, lines)
    captions = [figure.caption for figure in find_figures(page, lines)]
    is_garbled = sum(map(len, garbled)) >= _MIN_GARBLED
    length = sum(len(line.text) for line in lines)
    scan = Scan(None, {})
    if is_scan(page, length) if length < _SPARSE else sum(map(len, garbled)) > length:
        scan = read_scan(page, number, ocr)
        if scan.lines and sum(len(line.text) for line in scan.lines) > length:
            lines, rules, is_garbled = scan.lines, [], False
    parts = [scan.left_out, {PAGES: [name] if is_garbled else []}]
    if annotations and len(lines) <= _MAX_LINES:
        lines = divide_lines(lines, annotations, text_page)
    if not (lines or garbled or UNREAD_SCANS in scan.left_out) and next(
        page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=_MAX_PICTURE_DEPTH), None
    ):
        parts.append({PICTURES: [name]})
    return _PageContent(lines, annotations, rules, captions, merge_removals(parts), get_scan_kind(scan.lines, ocr))


def _read_outline(document: pypdfium2.PdfDocument) -> Iterator[OutlineEntry]:
    """Yield the entries of a PDF's outline (bookmarks) that point to a page."""
    for _, entry in zip(range(_MAX_ENTRIES), document.get_toc(max_depth=_MAX_DEPTH), strict=False):
        try:
            name = to_single_line(entry.get_title())
        except UnicodeError:  # a damaged entry of the outline does not affect the text
            continue
        target = entry.get_dest()
        page = target.get_index() if target else None
        if page is not None:
            yield OutlineEntry(entry.level, name, page, _get_target_height(target))


def _read_properties(document: pypdfium2.PdfDocument) -> dict[str, str]:
    """Return the entries of a PDF's metadata that can be decoded, by key."""
    properties = {}
    for key in ("Title", "Author", "Subject", "Keywords", "CreationDate", "ModDate"):
        with suppress(UnicodeError):
            properties[key] = document.get_metadata_value(key)
    return properties


def _read_label(document: pypdfium2.PdfDocument, index: int) -> str:
    """Return the printed number of a page, such as "iv"; an empty string if it is missing or damaged."""
    try:
        return to_single_line(document.get_page_label(index))
    except UnicodeError:
        return ""


def _get_target_height(target: pypdfium2.PdfDest) -> float | None:
    """Return the height on the page, in points, of a PDF bookmark's target; None if the bookmark states no height."""
    mode, values = target.get_view()
    if mode == raw.PDFDEST_VIEW_XYZ and len(values) > 1:
        return float(values[1])
    return float(values[0]) if mode == raw.PDFDEST_VIEW_FITH and values else None


def _build_metadata(document: _RawDocument) -> dict[str, MetadataValue]:
    """Return the metadata of a PDF without empty and placeholder values."""
    properties = document.properties
    captions = [caption for page in document.pages for caption in page.captions]
    author, subject = (to_single_line(properties.get(name, "")) for name in ("Author", "Subject"))
    return build_metadata(
        {
            "author": "" if author.lower() in _NO_VALUE else author,
            "subject": "" if subject.lower() in _NO_VALUE else subject,
            "keywords": split_keywords(properties.get("Keywords", "")),
            "created": _format_iso_date(properties.get("CreationDate", "")),
            "modified": _format_iso_date(properties.get("ModDate", "")),
            "pages": len(document.pages),
            PAGE_LABELS: format_runs(document.labels),
            PICTURE_LIST: tuple(map(build_label, captions[:MAX_LISTED])),
        }.items()
    )


def _format_iso_date(date: str) -> str:
    """Return a PDF date as ISO 8601; an empty string if the date is invalid.

    >>> [_format_iso_date(date) for date in ("D:20230120164927+01'00'", "D:2023", "20 Jan")]
    ['2023-01-20T16:49:27+01:00', '2023-01-01T00:00:00', '']
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
