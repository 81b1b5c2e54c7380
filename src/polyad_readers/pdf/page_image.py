"""Renders a page of a PDF file or picture, or a picture inside a document, and marks a passage or sentence on it.

Places are not stored: the text is looked for among the characters of the page, which PDFium or OCR locates.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import io
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from io import BufferedIOBase
from statistics import median
from typing import Any, NamedTuple, TypeVar

import numpy as np

from polyad.errors import MissingExtraError, ReadError
from polyad.readers.format import Context, Source, load_function
from polyad_readers.pictures.embedded import PictureReader, open_pictures
from polyad_readers.pictures.ocr import OcrLine, PageOcr, Picture, is_ocr_installed
from polyad_readers.pictures.scans import get_reading_order

_COLOUR = np.array([120, 225, 255], dtype=np.uint16)
"""Colour (blue, green, red) by which marked pixels are multiplied: text stays black, paper becomes yellow."""

_FRAME = np.array([0, 120, 200], dtype=np.uint8)

_CHUNK = 12
"""Letters of the parts of a text that are looked for if the whole text, which may continue elsewhere, is not there."""

_CAPTION, _SPACE = 30, 12
"""Letters of a caption that lead to its figure, and pixels around a figure that is cut out."""

_MARGIN = 0.15
"""Margin around a marked line, as a share of its height."""

_READABLE = 20
"""Characters of a page of a PDF file from which its own text is used, and not that of OCR."""

_LAST: dict[str, tuple[tuple[object, ...], Any]] = {}
"""Arguments and result of the last call of each step that reads a whole file or page."""

T = TypeVar("T")

Box = tuple[float, float, float, float]
"""Left, upper, right and lower end of a rectangle, in points or as shares of the page."""


class _Page(NamedTuple):
    """A rendered page, with its characters in reading order.

    Attributes:
        picture: The page.
        characters: The characters.
        boxes: The box of each character, in pixels.
        figures: Caption and box, in pixels, of each figure and table.
    """

    picture: Picture
    characters: Sequence[str]
    boxes: Sequence[Box]
    figures: Sequence[tuple[str, Box]] = ()


def render_marked_page(source: Source, context: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the picture of a page as PNG, in base64, with the marked boxes as shares of its width and height.

    Args:
        source: The file.
        context: Limits of reading, and the folder of recognised lines.
        request: SHA-256 of the file (``digest``), number of the page from 1 (``page``), ``width`` of the picture in
            pixels, text of the ``passage`` and of its ``sentence``; both may be empty. ``crop`` reduces the page to the
            figure whose caption is in the text. Of a document with pictures inside, the function that reads it
            (``read``), else empty; its pages are the pictures of the passage, or all its pictures without a passage.

    Raises:
        ReadError: The file was changed, cannot be read, or does not have this page, picture or figure.
    """
    with source.open() as file:
        status = os.fstat(file.fileno())
        identity = (status.st_ino, status.st_size, status.st_mtime_ns)
        # Reading a scan of 500 MB takes longer than rendering one of its pages.
        if _recall("digest", identity, lambda: _compute_digest(file)) != request["digest"]:
            raise ReadError("the file was changed after it was indexed; index it again to see its pages")
        if request["read"]:
            page, count = _render_embedded(source, context, request)
        else:
            file.seek(0)
            render = _render_pdf_page if b"%PDF-" in file.read(1024) else _render_frame
            key = (request["digest"], request["page"], request["width"])
            ocr = PageOcr(context.settings, request["digest"])
            page, count = _recall("page", key, lambda: render(file, request, ocr))
            page = page._replace(picture=page.picture.copy())  # on which marks are drawn
    figures: list[Box] = []
    for text in (request["sentence"], request["passage"]):
        figures = figures or [box for caption, box in page.figures if _is_named(caption, text)]
    if request["crop"]:
        if not figures:
            raise ReadError("no caption of a figure or table with a box is in this text")
        page = _crop(page, figures[0])
    height, width = page.picture.shape[:2]
    marks = find_marks(page.characters, request["passage"], request["sentence"])
    clipped = (_clip(box, width, height) for box in join_boxes(page.boxes[index] for index in marks))
    boxes = [box for box in clipped if box[0] < box[2] and box[1] < box[3]]
    for box in boxes:
        _mark(page.picture, box)
    for box in figures if not request["crop"] else ():
        _draw_frame(page.picture, _clip(box, width, height))
    shares = [(left / width, top / height, right / width, bottom / height) for left, top, right, bottom in boxes]
    return {
        "png": base64.b64encode(_encode_png(page.picture)).decode(),
        "pages": count,
        "width": width,
        "height": height,
        "figures": len(figures),
        "boxes": [[round(share, 4) for share in box] for box in shares],
    }


def _compute_digest(file: BufferedIOBase) -> str:
    """Return the SHA-256 of a file."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def _recall(step: str, key: tuple[object, ...], compute: Callable[[], T]) -> T:
    """Return the last result of a step if its ``key`` is equal, so that other widths and marks do not repeat it."""
    if _LAST.get(step, ((), None))[0] != key:
        _LAST.pop(step, None)
        _LAST[step] = key, compute()
    result: T = _LAST[step][1]
    return result


def _render_pdf_page(file: BufferedIOBase, request: Mapping[str, Any], ocr: PageOcr) -> tuple[_Page, int]:
    """Return a page of a PDF file and the number of pages."""
    import pypdfium2  # type: ignore[import-untyped]  # has no stubs

    from polyad_readers.pictures.scanned_pages import render_page

    try:
        with pypdfium2.PdfDocument(file) as document:
            count = len(document)
            page = document[_require_page(request["page"], count) - 1]
            picture, scale = render_page(page, request["width"] / max(page.get_width(), 1.0))
            characters, boxes = _read_characters(page, picture)
            figures = _locate_figures(page, picture)
            lines = ocr.find_page(request["page"])
            if lines is None and len(characters) < _READABLE and is_ocr_installed():
                lines = ocr.read_page(request["page"], lambda: render_page(page))
            if lines := [line for line in lines or () if line.text]:
                characters, boxes = _locate_characters(lines, scale)
    except pypdfium2.PdfiumError as error:
        raise ReadError(f"the page cannot be rendered: {error}") from error
    return _Page(picture, characters, boxes, figures), count


def _locate_figures(page: Any, picture: Picture) -> list[tuple[str, Box]]:
    """Return the captions and boxes, in pixels, of the figures and tables of a page of a PDF file."""
    from polyad_readers.lines.gaps import split_lines
    from polyad_readers.lines.lines import extract_lines
    from polyad_readers.pdf.figures import find_figures

    text_page = page.get_textpage()
    try:
        lines, _ = split_lines(text_page, page, extract_lines(text_page)[0])
    finally:
        text_page.close()
    return [(figure.caption, _to_pixels(page, picture, figure.box)) for figure in find_figures(page, lines)]


def _is_named(caption: str, text: str) -> bool:
    """Return whether a text has the beginning of a caption; only letters and digits are compared."""
    start = _fold(caption)[0][:_CAPTION]
    return bool(start) and start in _fold(text)[0]


def _crop(page: _Page, box: Box) -> _Page:
    """Return the part of a page in a box, with a margin."""
    height, width = page.picture.shape[:2]
    wider = box[0] - _SPACE, box[1] - _SPACE, box[2] + _SPACE, box[3] + _SPACE
    left, top, right, bottom = map(int, _clip(wider, width, height))
    if left >= right or top >= bottom:
        raise ReadError("the figure is outside the visible page")
    part = np.ascontiguousarray(page.picture[top:bottom, left:right])
    moved = [(x1 - left, y1 - top, x2 - left, y2 - top) for x1, y1, x2, y2 in page.boxes]
    return _Page(part, page.characters, moved)


def _draw_frame(picture: Picture, box: Box) -> None:
    """Draw a line around a box."""
    left, top, right, bottom = map(int, box)
    part = picture[top:bottom, left:right]
    inside = part[3:-3, 3:-3].copy()
    part[:] = _FRAME
    part[3:-3, 3:-3] = inside


def _render_embedded(source: Source, context: Context, request: Mapping[str, Any]) -> tuple[_Page, int]:
    """Return a picture inside a document, and the number of pictures of the passage, or of the document."""

    def read() -> PictureReader:
        pictures = open_pictures(source, context)
        load_function(request["read"])(source, replace(context, pictures=pictures))
        return pictures

    pictures = _recall("pictures", (request["digest"], request["read"], str(source.path)), read)
    candidates = pictures.list_pictures()
    if request["passage"]:
        candidates = [picture for picture in candidates if picture.is_in(request["passage"])]
        candidates = [picture for picture in candidates if picture.is_in(request["sentence"])] or candidates
    if not candidates:
        raise ReadError("no picture of the document is in this passage")
    picture = candidates[_require_page(request["page"], len(candidates)) - 1]
    content = picture.load()
    ocr = PageOcr(context.settings, hashlib.sha256(content).hexdigest(), request["digest"]) if picture.text else None
    page, _ = _render_frame(io.BytesIO(content), {"page": 1, "width": request["width"]}, ocr)
    return page, len(candidates)


def _render_frame(file: BufferedIOBase, request: Mapping[str, Any], ocr: PageOcr | None) -> tuple[_Page, int]:
    """Return a page of a picture and the number of pages; without ``ocr``, no text is located on it."""
    from polyad_readers.pictures.reader import count_frames, open_frame, resize

    file.seek(0)
    data = file.read()
    count = count_frames(data)
    number = _require_page(request["page"], count)
    picture, scale = open_frame(data, number)
    lines = ocr.read_page(number, lambda: (picture, scale)) if ocr and is_ocr_installed() else []
    small = resize(picture, request["width"])
    return _Page(small, *_locate_characters(lines, scale * small.shape[1] / picture.shape[1])), count


def _require_page(number: int, count: int) -> int:
    """Return the number of a page. Raise ReadError if the file does not have this page."""
    if not 1 <= number <= count:
        raise ReadError(f"the page is {number}; expected 1 to {count}")
    return number


def _read_characters(page: Any, picture: Picture) -> tuple[list[str], list[Box]]:
    """Return the letters and digits of a page of a PDF file, with their boxes in pixels of its picture."""
    from pypdfium2 import raw

    text_page = page.get_textpage()
    ends = tuple(ctypes.c_double() for _ in range(4))
    characters: list[str] = []
    boxes: list[Box] = []
    try:
        for index in range(text_page.count_chars()):
            character = chr(raw.FPDFText_GetUnicode(text_page, index))
            if not character.isalnum():
                continue
            raw.FPDFText_GetCharBox(text_page, index, *map(ctypes.byref, ends))
            left, right, bottom, top = (end.value for end in ends)
            characters.append(character)
            boxes.append(_to_pixels(page, picture, (left, bottom, right, top)))
    finally:
        text_page.close()
    return characters, boxes


def _to_pixels(page: Any, picture: Picture, box: Box) -> Box:
    """Return a box of a page, in points from its lower left corner, in pixels of its picture."""
    from pypdfium2 import raw

    pixels = ctypes.c_int(), ctypes.c_int()
    height, width = picture.shape[:2]
    left, bottom, right, top = box
    corners = []
    for x, y in ((left, top), (right, bottom)):
        raw.FPDF_PageToDevice(page, 0, 0, width, height, 0, x, y, *map(ctypes.byref, pixels))
        corners.append((pixels[0].value, pixels[1].value))
    (first_x, first_y), (second_x, second_y) = corners
    return min(first_x, second_x), min(first_y, second_y), max(first_x, second_x), max(first_y, second_y)


def _locate_characters(lines: Sequence[OcrLine], scale: float) -> tuple[list[str], list[Box]]:
    """Return the characters of recognised lines in reading order, with their boxes in pixels.

    Args:
        lines: The lines.
        scale: Pixels per point.
    """
    characters, boxes = [], []
    for line in get_reading_order(lines):
        (x, y), (end_x, end_y), _, (low_x, low_y) = line.corners
        middles = [(first + second) / 2 for first, second in zip(line.places, line.places[1:], strict=False)]
        ends = [0.0, *middles, 1.0]
        for place, character in enumerate(line.text):
            xs = [x + share * (end_x - x) + low * (low_x - x) for share in ends[place : place + 2] for low in (0, 1)]
            ys = [y + share * (end_y - y) + low * (low_y - y) for share in ends[place : place + 2] for low in (0, 1)]
            characters.append(character)
            boxes.append((scale * min(xs), scale * min(ys), scale * max(xs), scale * max(ys)))
    return characters, boxes


def find_marks(characters: Sequence[str], passage: str, sentence: str) -> range:
    """Return the indices of the characters of a page that belong to a sentence of a passage.

    Without a sentence, or if the sentence is not on the page, those of the passage. A sentence that occurs several
    times is that of the passage or, if it stands around the passage in a longer hit, the next one. Only letters and
    digits are compared, so that line endings, hyphens and spaces do not matter.

    >>> find_marks("It is a pump. It runs.", "pump. It", "It")
    range(14, 16)
    """
    letters, places = _fold(characters)
    whole = _locate(letters, _fold(passage)[0])
    marked = _locate(letters, _fold(sentence)[0], whole) or whole
    return range(places[marked[0]], places[marked[1] - 1] + 1) if marked else range(0)


def _fold(characters: Iterable[str]) -> tuple[str, list[int]]:
    """Return the letters and digits of a text in their simplest form, and for each the index of its character."""
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(characters):
        for letter in unicodedata.normalize("NFKC", character).casefold():
            if letter.isalnum():
                letters.append(letter)
                places.append(place)
    return "".join(letters), places


def _locate(letters: str, text: str, around: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Return the start and end of a text, or of the part of the text that is among ``letters``.

    Args:
        letters: The letters of a page.
        text: The letters of the text.
        around: A part of the page; of several equal texts, that in it or next to it is the right one.
    """
    if not text:
        return None
    first, last = around or (0, 0)
    starts = [match.start() for match in re.finditer(f"(?={re.escape(text)})", letters)]
    if starts:
        start = min(starts, key=lambda start: max(first - start, start + len(text) - last, 0))
        return start, start + len(text)
    size = min(_CHUNK, len(text))
    parts = [(letters.find(text[at : at + size]), at) for at in range(0, len(text) - size + 1, size)]
    offsets = [place - at for place, at in parts if place >= 0]
    if not offsets:
        return None
    usual = median(offsets)
    near = [(place, at) for place, at in parts if place >= 0 and abs(place - at - usual) <= len(text) / 4 + size]
    if not near:
        return None
    (first, first_at), (last, last_at) = min(near), max(near)
    return max(0, first - first_at), min(len(letters), last + len(text) - last_at)


def join_boxes(boxes: Iterable[Box]) -> list[Box]:
    """Return a box for each line of characters, which may run upwards or downwards, with a margin."""
    lines: list[Box] = []
    direction = ""  # of the last line, once it has two characters; a word is no line that runs down to the next one
    for left, top, right, bottom in boxes:
        if right <= left or bottom <= top:
            continue
        if lines:
            last = lines[-1]
            width, height = max(last[2] - last[0], right - left), max(last[3] - last[1], bottom - top)
            size = right - left + bottom - top
            is_level = abs((last[1] + last[3]) - (top + bottom)) < height and -height < left - last[2] < 4 * height
            is_upright = abs((last[0] + last[2]) - (left + right)) < width and (
                min(abs(top - last[3]), abs(last[1] - bottom)) < width
            )
            is_level = is_level and height < 2 * size and direction != "upright"
            is_upright = is_upright and width < 2 * size and direction != "level"
            if is_level or is_upright:
                direction = "level" if is_level else "upright"
                lines[-1] = min(last[0], left), min(last[1], top), max(last[2], right), max(last[3], bottom)
                continue
        lines.append((left, top, right, bottom))
        direction = ""
    margins = [_MARGIN * min(right - left, bottom - top) for left, top, right, bottom in lines]
    return [
        (left - margin, top - margin, right + margin, bottom + margin)
        for (left, top, right, bottom), margin in zip(lines, margins, strict=True)
    ]


def _clip(box: Box, width: int, height: int) -> Box:
    left, top, right, bottom = box
    return (
        max(0, math.floor(left)),
        max(0, math.floor(top)),
        min(width, math.ceil(right)),
        min(height, math.ceil(bottom)),
    )


def _mark(picture: Picture, box: Box) -> None:
    """Colour the pixels of a box, and draw a line below it, which is visible without colours too."""
    left, top, right, bottom = map(int, box)
    part = picture[top:bottom, left:right]
    part[:] = (part * _COLOUR // 255).astype(np.uint8)
    picture[max(top, bottom - 2) : bottom, left:right] = _FRAME


def _encode_png(picture: Picture) -> bytes:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("pillow", "documents") from error
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture[:, :, ::-1])).save(file, "PNG", compress_level=1)
    return file.getvalue()
