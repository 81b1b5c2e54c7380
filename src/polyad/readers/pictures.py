"""Reads pictures of text, such as photographs and faxes, by OCR."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import numpy as np

from polyad.config import ReadSettings
from polyad.errors import MissingExtraError, ReadError
from polyad.readers.metadata import CONTENT_HASH, build_metadata
from polyad.readers.ocr import INSTALL, OcrLine, PageOcr, Picture, is_ocr_installed
from polyad.readers.one_file import OnPage
from polyad.readers.pdf_lines import Line
from polyad.readers.pdf_paragraphs import join_lines
from polyad.readers.pdf_scans import add_scan, get_scan_kind
from polyad.readers.pdf_tables import format_tables
from polyad.readers.plain_text import Content
from polyad.readers.scans import order_lines
from polyad.text.removals import PAGES, PICTURES, SCANS, UNCERTAIN, merge_removals

_MAX_PIXELS = 64_000_000
"""Most pixels of a picture; A3 at 500 dots per inch has 49 million. More would take more than 1 GB of memory."""

_MAX_SIDE = 4000
"""Most pixels of a side in which text is recognised; larger pictures are reduced."""

_WIDTH = 595.0
"""Width in points that every picture is taken to have; that of an A4 page."""

_MAX_FRAMES = 10_000


def read_picture(data: bytes, on_page: OnPage = lambda *_: None, settings: ReadSettings | None = None) -> Content:
    """Return the text of a picture, or of the pages of a TIFF file, with a location for each page; it may be empty.

    Args:
        data: The bytes of the file.
        on_page: Called after each page that was read.
        settings: Settings of OCR; None for the default.

    Raises:
        ReadError: OCR is not installed, or the picture is damaged, too large or in an unknown script.
    """
    digest = hashlib.sha256(data).hexdigest()
    ocr = PageOcr(settings or ReadSettings(), digest)
    if not is_ocr_installed():
        raise ReadError(f"a picture; to read its text, {INSTALL}")
    left_out: dict[str, list[str]] = {kind: [] for kind in (PAGES, PICTURES, SCANS, UNCERTAIN)}
    pages = []
    frames = count_frames(data)
    for number in range(1, frames + 1):
        lines = _read_frame(data, number, ocr, left_out)
        pages.append(lines)
        on_page(number, frames, get_scan_kind(lines, ocr))
    if len(left_out[PAGES]) == frames:
        raise ReadError(f"cannot be read: {left_out[PAGES][0]}")
    joined = join_lines(pages)
    metadata = build_metadata({"pages": frames}.items()) | {CONTENT_HASH: digest}
    return Content("", joined.text, (), joined.locations, metadata, removals=merge_removals([left_out]))


def _read_frame(data: bytes, number: int, ocr: PageOcr, left_out: dict[str, list[str]]) -> list[Line]:
    """Return the lines of a page of a picture in reading order; ``left_out`` receives what cannot be read."""
    name = f"p. {number}"
    frame = open_frame(data, number)
    try:
        lines = ocr.read_page(number, lambda: frame)
    except ReadError as error:
        left_out[PAGES].append(f"{name} ({error})")
        return []
    if not lines:
        left_out[PICTURES].append(name)
    return format_tables(add_scan(lines, name, frame[0].shape[0] / frame[1], left_out))


def join_picture_lines(lines: list[OcrLine]) -> str:
    """Return the recognised lines of a picture as text in reading order."""
    return join_lines([format_tables(order_lines(lines, _WIDTH))]).text.strip()


def measure(data: bytes) -> tuple[int, int]:
    """Return width and height of a picture in pixels, without decoding it.

    Raises:
        ReadError: The picture is damaged, or too large.
        MissingExtraError: Pillow is not installed.
    """
    with _open(data) as image:
        width, height = image.size
    return int(width), int(height)


def count_frames(data: bytes) -> int:
    """Return the number of pages of a picture.

    Raises:
        ReadError: The picture is damaged, or too large.
    """
    with _open(data) as image:
        return min(int(getattr(image, "n_frames", 1)), _MAX_FRAMES)


def open_frame(data: bytes, number: int) -> tuple[Picture, float]:
    """Return a page of a picture, upright as its camera says, and its pixels per point.

    Raises:
        ReadError: The picture is damaged, or too large.
    """
    from PIL import ImageOps

    with _open(data) as image:
        try:
            if number > 1:
                image.seek(number - 1)
            _require_size(image)
            image.draft("RGB", (_MAX_SIDE, _MAX_SIDE))  # a JPEG is decoded in a smaller size
            upright = ImageOps.exif_transpose(image)
            upright.thumbnail((_MAX_SIDE, _MAX_SIDE))
            if upright.mode in ("RGBA", "LA", "PA", "P"):
                upright = _put_on_white(upright)
            picture = np.array(upright.convert("RGB"))[:, :, ::-1]
        except (OSError, ValueError, EOFError, SyntaxError, TypeError) as error:
            raise ReadError(f"not a picture, or damaged: {error}") from error
    return np.ascontiguousarray(picture), picture.shape[1] / _WIDTH


def resize(picture: Picture, width: int) -> Picture:
    """Return a picture with at most ``width`` pixels from left to right."""
    from PIL import Image

    if picture.shape[1] <= width:
        return picture
    height = max(1, round(picture.shape[0] * width / picture.shape[1]))
    return np.array(Image.fromarray(picture).resize((width, height), Image.Resampling.BOX))


def _put_on_white(image: Any) -> Any:
    """Return a picture without transparency."""
    from PIL import Image

    image = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)


def _open(data: bytes) -> Any:
    """Return a picture whose pixels are not decoded yet.

    Raises:
        ReadError: The picture is damaged, or too large.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("pillow", "ocr") from error
    Image.MAX_IMAGE_PIXELS = None  # the limit is checked here, without a warning
    try:
        image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP"))
    except (OSError, ValueError, SyntaxError, TypeError) as error:
        raise ReadError("not a picture, or damaged") from error
    _require_size(image)
    return image


def _require_size(image: Any) -> None:
    """Raise ReadError if a picture has too many pixels."""
    width, height = image.size
    if width * height > _MAX_PIXELS:
        raise ReadError(f"{width:,} x {height:,} pixels; at most {_MAX_PIXELS:,} are read")
