"""Finds the figures and tables of a PDF page by their captions, and the box of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from polyad.errors import MissingExtraError
from polyad_readers.lines.lines import Line

try:
    from pypdfium2 import raw  # type: ignore[import-untyped]  # has no stubs
except ImportError as error:
    raise MissingExtraError("pypdfium2", "documents") from error

_FIGURE = r"fig(?:ure|ura|\.)?|abb(?:ildung|\.)|illustration|рис(?:унок|\.)?|图|圖|図"
_TABLE = r"tab(?:le|elle|la|ela|leau|ella|\.)?|табл(?:ица|\.)?|表"
_CAPTION = re.compile(
    rf"(?:{_FIGURE}|(?P<table>{_TABLE}))\s*(?:[a-z]?\d+(?:[.-]\d+)*[a-z]?|[ivx]+)"
    r"(?:\s*[.:|\u2013\u2014\uff1a)-]|\s*$|\s+(?-i:[^\Wa-zß-ÿа-я\d_]))",
    re.IGNORECASE,
)
"""The beginning of a caption: a name, a number, and a sign or a capital letter ("Figure 3 shows" is prose)."""

_LINES = 6
"""Most lines of a caption."""

_LEADING = 1.7
"""Largest distance of two lines of a caption, in type sizes."""

_NEAR, _GAP = 72.0, 14.0
"""Largest distance of a caption from its figure, and of two parts of a figure, in points."""

_ROW_GAP = 3.5
"""Largest distance of two rows of a table, in type sizes."""

_MIN_SIDE = 24.0
"""Least width and height of a figure in points; smaller objects are rules and icons."""

_MAX_SHARE = 0.9
"""Largest share of a page that a figure takes; a larger object is the background or a scan."""

_MAX_OBJECTS, _MAX_CAPTIONS = 2000, 20

_TYPES = [raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING, raw.FPDF_PAGEOBJ_FORM]

Box = tuple[float, float, float, float]
"""Left, lower, right and upper end in points, from the lower left corner of a page."""


class Figure(NamedTuple):
    """A figure or table of a page.

    Attributes:
        caption: Its caption in one line.
        box: Its box, with the caption.
    """

    caption: str
    box: Box


def find_figures(page: Any, lines: Sequence[Line]) -> list[Figure]:
    """Return the figures and tables of a page whose captions have a picture, drawing or rows above or below them.

    The nearest caption gets a figure, since captions may stand above or below all figures of a document.

    Args:
        page: A ``pypdfium2.PdfPage``.
        lines: The lines of the page, in which the rows of tables have pieces.
    """
    captions = [line for line in lines if not line.turn and _CAPTION.match(line.text)][:_MAX_CAPTIONS]
    if not captions:
        return []
    objects = _list_objects(page)
    figures: list[Figure] = []
    claims: list[tuple[float, int, Box]] = []
    for number, first in enumerate(captions):
        caption = _continue_caption(first, lines)
        ends = _join([_get_box(line) for line in caption])
        figures.append(Figure(" ".join(line.text for line in caption), ends))
        match = _CAPTION.match(first.text)
        tables = _find_rows(ends, caption, lines) if match and match["table"] else []
        for box in tables or _find_objects(ends, objects):
            claims.append((max(box[1] - ends[3], ends[1] - box[3]), number, box))
    boxes: dict[int, Box] = {}
    for _, number, box in sorted(claims):
        if number not in boxes and box not in boxes.values():
            boxes[number] = box
    return [figures[number]._replace(box=_join([figures[number].box, boxes[number]])) for number in sorted(boxes)]


def _list_objects(page: Any) -> list[Box]:
    """Return the boxes of the pictures and drawings of a page, without its background."""
    width, height = page.get_size()
    objects = islice(page.get_objects(_TYPES, max_depth=1), _MAX_OBJECTS)
    boxes = [tuple(each.get_bounds()) for each in objects]
    return [
        (left, bottom, right, top)
        for left, bottom, right, top in boxes
        if (right - left) * (top - bottom) < _MAX_SHARE * width * height
    ]


def _get_box(line: Line) -> Box:
    return line.left, line.baseline - 0.3 * line.size, line.right, line.baseline + line.size


def _join(boxes: Sequence[Box]) -> Box:
    left, bottom, right, top = zip(*boxes, strict=True)
    return min(left), min(bottom), max(right), max(top)


def _continue_caption(first: Line, lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a caption from its first one: those directly below in the same column."""
    caption = [first]
    for line in sorted(lines, key=lambda line: -line.baseline):
        distance = caption[-1].baseline - line.baseline
        is_level = abs(line.size - first.size) < 0.5 and line.left < first.right and first.left < line.right
        if 0 < distance <= _LEADING * first.size and is_level and not line.pieces and len(caption) < _LINES:
            if _CAPTION.match(line.text):
                break
            caption.append(line)
    return caption


def _find_rows(caption: Box, caption_lines: Sequence[Line], lines: Sequence[Line]) -> list[Box]:
    """Return the boxes of the tables whose rows stand directly below or above a caption."""
    _, bottom, _, top = caption
    others = [line for line in lines if line not in caption_lines and not line.turn]
    below = sorted((line for line in others if line.baseline < bottom), key=lambda line: -line.baseline)
    above = sorted((line for line in others if line.baseline >= top), key=lambda line: line.baseline)
    tables = [list(_follow_rows(side, end)) for side, end in ((below, bottom), (above, top))]
    return [_join([_get_box(row) for row in rows]) for rows in tables if len(rows) > 1]


def _follow_rows(lines: Sequence[Line], end: float) -> Iterator[Line]:
    """Yield the rows of a table from its caption at the height ``end`` on; lines of single cells may stand between."""
    for line in lines:
        if abs(line.baseline - end) > _ROW_GAP * line.size:
            return
        if len(line.pieces) > 1:
            end = line.baseline
            yield line


def _find_objects(caption: Box, objects: Sequence[Box]) -> Iterator[Box]:
    """Yield the boxes of the figures directly above and below a caption."""
    left, bottom, right, top = caption
    above = [(box[1] - top, box) for box in objects if box[1] > top - _GAP and box[3] > top]
    below = [(bottom - box[3], box) for box in objects if box[3] < bottom + _GAP and box[1] < bottom]
    for side in (above, below):
        near = [(distance, box) for distance, box in side if distance <= _NEAR and box[0] < right and left < box[2]]
        if near:
            figure = _grow(min(near)[1], [box for _, box in side])
            if figure[2] - figure[0] >= _MIN_SIDE and figure[3] - figure[1] >= _MIN_SIDE:
                yield figure


def _grow(box: Box, objects: Sequence[Box]) -> Box:
    """Return the box of an object and of all others that touch it, or each other, within a small gap."""
    rest = list(objects)
    while True:
        left, bottom, right, top = box
        touching = [
            each
            for each in rest
            if each[0] < right + _GAP and left < each[2] + _GAP and each[1] < top + _GAP and bottom < each[3] + _GAP
        ]
        if not touching:
            return box
        box = _join([box, *touching])
        rest = [each for each in rest if each not in touching]
