"""Reads PDF files with PDFium, the PDF engine of Chromium."""

from __future__ import annotations

import hashlib
import io
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from polyad.config import ReadSettings
from polyad.errors import MissingExtraError, ReadError
from polyad.model import MetadataValue
from polyad.readers.headings import build_sections
from polyad.readers.metadata import CONTENT_HASH, build_metadata, split_keywords
from polyad.readers.ocr import INSTALL, PageOcr
from polyad.readers.one_file import OnPage
from polyad.readers.pdf_annotations import Annotation, read_annotations
from polyad.readers.pdf_code import indent_code
from polyad.readers.pdf_figures import find_figures
from polyad.readers.pdf_furniture import Pages, remove_furniture
from polyad.readers.pdf_gaps import split_lines
from polyad.readers.pdf_headings import (
    OutlineEntry,
    find_headings_by_type,
    find_largest_lines,
    find_root_entry,
    locate_outline_entries,
    put_title_first,
)
from polyad.readers.pdf_lines import Line, extract_lines
from polyad.readers.pdf_paragraphs import join_lines
from polyad.readers.pdf_placement import divide_lines, place_annotations
from polyad.readers.pdf_rules import Rule
from polyad.readers.pdf_scans import get_scan_kind, is_scan, read_scan
from polyad.readers.pdf_tables import format_tables
from polyad.readers.plain_text import Content, to_single_line
from polyad.readers.titles import clean_stated_title
from polyad.text.page_labels import PAGE_LABELS, format_runs
from polyad.text.pictures import MAX_LISTED, PICTURE_LIST, build_label
from polyad.text.removals import PAGES, PICTURES, SCANS, UNCERTAIN, UNREAD_SCANS, merge_removals

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


class _RawDocument(NamedTuple):
    """The pages, annotations, outline entries (bookmarks), metadata and page labels of a PDF, as PDFium returns them.

    ``rules`` has the ruling lines of each page whose lines have gaps. ``captions`` are those of figures and tables with
    a box. ``left_out`` names the pages that have pictures
    and no text, and the pages that cannot be read.
    """

    pages: Pages
    annotations: Sequence[Sequence[Annotation]]
    rules: Sequence[Sequence[Rule]]
    entries: list[OutlineEntry]
    properties: Mapping[str, str]
    labels: Sequence[str]
    captions: Sequence[str]
    left_out: Mapping[str, Sequence[str]]


def read_pdf(
    file: io.BufferedReader | bytes, on_page: OnPage = lambda *_: None, settings: ReadSettings | None = None
) -> Content:
    """Return the content of a PDF, with a location for each page.

    PDFium must not run in two threads at once.

    Values of form fields, typed texts and notes stand at their places. Running headers and footers, tables of contents
    and indexes are removed. The title is the metadata title unless a program generated it, else the largest text on
    the first page, else the outline entry for the whole document. The text of scanned pages is recognised.

    Sections come from the outline (bookmarks), or from larger and bold type without an outline. A file that only
    restricts printing or copying is read.

    Args:
        file: The open file, of which one page at a time is loaded, or its bytes.
        on_page: Called after each page that was read.
        settings: Settings of OCR; None for the default.

    Raises:
        ReadError: The file needs a password, is damaged, contains no text, or contains more text than its size allows.
    """
    opened = io.BytesIO(file) if isinstance(file, bytes) else file
    digest = hashlib.file_digest(opened, "sha256").hexdigest()
    ocr = PageOcr(settings or ReadSettings(), digest)
    try:
        raw_document = _read_raw(opened, on_page, ocr)
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise ReadError("encrypted; save it without a password") from error
        raise ReadError(f"not a PDF, or damaged: {error}") from error
    if not any(raw_document.pages) and not any(raw_document.annotations):
        if damaged := raw_document.left_out[PAGES]:
            raise ReadError(f"no text in it, and {len(damaged)} pages that cannot be read, such as {damaged[0]}")
        if raw_document.left_out[UNREAD_SCANS]:
            raise ReadError(f"no text in it; to read scanned pages, {INSTALL}")
        raise ReadError("no text in it")
    page_lines, removals = remove_furniture(put_title_first(raw_document.pages))
    placed = map(place_annotations, page_lines, raw_document.annotations)
    pages = list(map(format_tables, indent_code(placed), raw_document.rules))
    joined_text = join_lines(pages)
    title = (
        clean_stated_title(raw_document.properties.get("Title", ""))
        or find_largest_lines(raw_document.pages)
        or find_root_entry(raw_document.entries)
    )
    headings = locate_outline_entries(raw_document.entries, pages, joined_text)
    if len(headings) < 2:
        headings = find_headings_by_type(pages, joined_text, has_title=bool(title))
    sections = build_sections(headings, joined_text.text)
    metadata = _build_metadata(raw_document) | {CONTENT_HASH: digest}
    removals = merge_removals([removals, raw_document.left_out])
    return Content(title, joined_text.text, sections, joined_text.locations, metadata, removals=removals)


def recognize_pages(path: Path, part: tuple[int, int], settings: ReadSettings, on_page: OnPage) -> None:
    """Recognise scanned pages, the last one first, and store their text for the process that reads the PDF forwards.

    Args:
        path: The file.
        part: Number of this process, from 0, and the number of such processes: each recognises every n-th page.
        settings: Settings of OCR.
        on_page: Called after each page.
    """
    first, step = part
    with path.open("rb") as file:
        ocr = PageOcr(settings, hashlib.file_digest(file, "sha256").hexdigest())
        with pypdfium2.PdfDocument(file) as document:
            pages = range(len(document) - 1 - first, -1, -step)
            for _ in _read_pages(document, sys.maxsize, on_page, defaultdict(list), ocr, pages, []):
                pass


def _read_raw(file: io.BufferedReader | io.BytesIO, on_page: OnPage, ocr: PageOcr) -> _RawDocument:
    """Return the pages, outline entries (bookmarks), metadata and page labels of a PDF."""
    document = pypdfium2.PdfDocument(file)
    try:
        left_out: dict[str, list[str]] = {kind: [] for kind in (PICTURES, PAGES, SCANS, UNREAD_SCANS, UNCERTAIN)}
        max_characters = _BASE_CHARACTERS + _CHARACTERS_PER_BYTE * file.seek(0, io.SEEK_END)
        captions: list[str] = []
        indices = range(len(document))
        contents = list(_read_pages(document, max_characters, on_page, left_out, ocr, indices, captions))
        pages, annotations, rules = [list(column) for column in zip(*contents, strict=True)] or ([], [], [])
        entries = list(_read_outline(document))
        labels = [_read_label(document, index) for index in range(len(document))]
        return _RawDocument(pages, annotations, rules, entries, _read_properties(document), labels, captions, left_out)
    finally:
        document.close()


def _read_pages(
    document: pypdfium2.PdfDocument,
    max_characters: int,
    on_page: OnPage,
    left_out: Mapping[str, list[str]],
    ocr: PageOcr,
    indices: Iterable[int],
    captions: list[str],
) -> Iterator[tuple[list[Line], list[Annotation], list[Rule]]]:
    """Yield the lines, annotations and ruling lines of each page of a PDF; a damaged page has none.

    Args:
        document: The open PDF.
        max_characters: Characters that all pages together may contain.
        on_page: Called after each page that was read.
        left_out: Receives the pages that have pictures and no text, those that cannot be read, and scans.
        ocr: Recognises scanned pages.
        indices: The pages to read, from 0.
        captions: Receives the captions of figures and tables.
    """
    characters = 0
    for index in indices:
        try:
            page = document[index]
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError:
            left_out[PAGES].append(f"p. {index + 1}")
            yield [], [], []
            continue
        try:
            annotations = read_annotations(document, page, text_page)
            characters += text_page.count_chars() + sum(len(annotation.text) for annotation in annotations)
            if characters > max_characters:
                raise ReadError(f"more than {max_characters:,} characters of text, the limit for a file of this size")
            garbled: list[str] = []
            lines = list(islice(extract_lines(text_page, garbled), _MAX_LINES + 1))
            lines, rules = split_lines(text_page, page, lines)
            captions += [figure.caption for figure in find_figures(page, lines)]
            is_garbled = sum(map(len, garbled)) >= _MIN_GARBLED
            length = sum(len(line.text) for line in lines)
            scanned = None
            if is_scan(page, length) if length < _SPARSE else sum(map(len, garbled)) > length:
                scanned = read_scan(page, index + 1, ocr, left_out)
                if scanned and sum(len(line.text) for line in scanned) > length:
                    lines, rules, is_garbled = scanned, [], False
            if is_garbled:
                left_out[PAGES].append(f"p. {index + 1}")
            if annotations and len(lines) <= _MAX_LINES:
                lines = divide_lines(lines, annotations, text_page)
            if not (lines or garbled or f"p. {index + 1}" in left_out[UNREAD_SCANS]) and next(
                page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=_MAX_PICTURE_DEPTH), None
            ):
                left_out[PICTURES].append(f"p. {index + 1}")
        finally:
            text_page.close()
            page.close()
        if len(lines) > _MAX_LINES:
            raise ReadError(f"page {index + 1} has more than {_MAX_LINES:,} lines")
        yield lines, annotations, rules
        on_page(index + 1, len(document), get_scan_kind(scanned, ocr))


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
            PICTURE_LIST: tuple(map(build_label, document.captions[:MAX_LISTED])),
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
