"""Reads pictures of text, such as photographs and faxes, by OCR."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from polyad.errors import MissingExtraError, ReadError
from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Source
from polyad.readers.text.metadata import build_metadata
from polyad.text.removals import INSTALL_OCR, PAGES, PICTURES, merge_removals
from polyad_readers.lines.paragraphs import join_lines
from polyad_readers.lines.tables import format_tables
from polyad_readers.pictures.ocr import OcrLine, PageOcr, Picture, is_ocr_installed
from polyad_readers.pictures.scanned_pages import Scan, get_scan_kind, recognize_page
from polyad_readers.pictures.scans import order_lines

_MAX_PIXELS = 64_000_000
"""Most pixels of a picture; A3 at 500 dots per inch has 49 million. More would take more than 1 GB of memory."""

_MAX_SIDE = 4000
"""Most pixels of a side in which text is recognised; larger pictures are reduced."""

_WIDTH = 595.0
"""Width in points that every picture is taken to have; that of an A4 page."""

_MAX_FRAMES = 10_000


def read_picture(source: Source, context: Context = DEFAULT_CONTEXT) -> Content:
    """Return the text of a picture, or of the pages of a TIFF file, with a location for each page; it may be empty.

    Raises:
        ReadError: OCR is not installed, or the picture is damaged, too large or in an unknown script.
    """
    data = source.read()
    ocr = PageOcr(context.settings, source.digest)
    if not is_ocr_installed():
        raise ReadError(f"a picture; to read its text, {INSTALL_OCR}")
    scans = []
    frames = count_frames(data)
    for number in range(1, frames + 1):
        scan = _read_frame(data, number, ocr)
        scans.append(scan)
        context.on_page(number, frames, get_scan_kind(scan.lines, ocr))
    unread = [page for scan in scans for page in scan.left_out.get(PAGES, ())]
    if len(unread) == frames:
        raise ReadError(f"cannot be read: {unread[0]}")
    joined = join_lines([format_tables(scan.lines or []) for scan in scans])
    metadata = build_metadata({"pages": frames}.items())
    blank = [f"p. {number}" for number, scan in enumerate(scans, 1) if scan.lines == []]
    removals = merge_removals([{PAGES: unread, PICTURES: blank}, *({**scan.left_out, PAGES: ()} for scan in scans)])
    return Content("", joined.text, (), joined.locations, metadata, removals=removals)


def _read_frame(data: bytes, number: int, ocr: PageOcr) -> Scan:
    """Return the text of a page of a picture."""
    picture, scale = open_frame(data, number)
    return recognize_page(number, ocr, lambda: (picture, scale), lambda: picture.shape[0] / scale)


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
