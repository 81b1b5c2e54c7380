"""Renders the pages of PDF files, and recognises the text of those that are scans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from polyad.errors import MissingExtraError, ReadError
from polyad.readers.format import NEW_SCAN, STORED_SCAN, TEXT_PAGE
from polyad.text.removals import PAGES, SCANS, UNCERTAIN, UNREAD_SCANS
from polyad_readers.lines.lines import Line
from polyad_readers.pictures.ocr import PageOcr, Picture, is_ocr_installed, list_uncertain_words
from polyad_readers.pictures.scans import order_lines

try:
    from pypdfium2 import raw  # type: ignore[import-untyped]  # has no stubs
except ImportError as error:
    raise MissingExtraError("pypdfium2", "documents") from error

_SCALE = 300 / 72
"""Pixels per point of a rendered page; that of most scanners."""

_MAX_SIDE = 4000
"""Most pixels of a side of a rendered page; A4 has 3,508."""

_MIN_SHARE = 0.6
"""Least share of a page that the picture of a scan covers, or the strips of such a picture together."""

_MAX_OBJECTS = 1000
"""Objects of a page among which its pictures are looked for."""


def is_scan(page: Any, text_length: int) -> bool:
    """Return whether a page with little text is a scan: without any text but not empty, or covered by pictures.

    Args:
        page: A ``pypdfium2.PdfPage``.
        text_length: Characters of its text.
    """
    if not text_length:
        return bool(raw.FPDFPage_CountObjects(page) > 0)
    width, height = page.get_size()
    area = 0.0
    for picture in islice(page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=2), _MAX_OBJECTS):
        left, bottom, right, top = picture.get_bounds()
        area += (right - left) * (top - bottom)
    return bool(area > _MIN_SHARE * width * height)


def render_page(page: Any, scale: float = _SCALE) -> tuple[Picture, float]:
    """Return the picture of a page (a ``pypdfium2.PdfPage``) and its pixels per point."""
    scale = min(scale, _MAX_SIDE / max(*page.get_size(), 1.0))
    bitmap = page.render(scale=scale, no_smoothtext=False)
    try:
        picture = np.array(bitmap.to_numpy()[:, :, :3])
    finally:
        bitmap.close()
    return np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture, scale


class Scan(NamedTuple):
    """The text of a scanned page.

    Attributes:
        lines: Lines in reading order; None if OCR is not installed or cannot read the page.
        left_out: The page and its uncertain words, by kind (see :mod:`polyad.text.removals`).
    """

    lines: list[Line] | None
    left_out: Mapping[str, Sequence[str]]


def read_scan(page: Any, number: int, ocr: PageOcr) -> Scan:
    """Return the text of a scanned page.

    Args:
        page: A ``pypdfium2.PdfPage``.
        number: Its number, from 1.
        ocr: Recognises the page.
    """
    if not is_ocr_installed():
        return Scan(None, {UNREAD_SCANS: [f"p. {number}"]})
    return recognize_page(number, ocr, lambda: render_page(page), page.get_height)


def recognize_page(
    number: int, ocr: PageOcr, render: Callable[[], tuple[Picture, float]], get_height: Callable[[], float]
) -> Scan:
    """Return the text that OCR recognises on a page.

    Args:
        number: Number of the page, from 1.
        ocr: Recognises the page.
        render: Returns the picture of the page, and its pixels per point.
        get_height: Returns the height of the page in points.
    """
    name = f"p. {number}"
    try:
        lines = ocr.read_page(number, render)
    except ReadError as error:
        return Scan(None, {PAGES: [f"{name} ({error})"]})
    left_out = {SCANS: [name], UNCERTAIN: list_uncertain_words(lines)} if lines else {}
    return Scan(order_lines(lines, get_height()), left_out)


def get_scan_kind(lines: Sequence[Line] | None, ocr: PageOcr) -> str:
    """Return the kind of a page for the limit on time, which begins again after each scan with text.

    Pages without text share one limit: a small file may have thousands of blank ones.
    """
    return TEXT_PAGE if not lines else STORED_SCAN if ocr.is_stored else NEW_SCAN
