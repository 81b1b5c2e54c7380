"""Puts the recognised lines of a page upright and in reading order, and joins those that stand beside each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median
from typing import NamedTuple

from polyad_readers.lines.lines import Line, Piece
from polyad_readers.pictures.ocr import OcrLine, get_page_angle

_SIZE = 0.72
"""Type size as a share of the height of a recognised line, which has a margin."""

_EQUAL = 0.3
"""Relative difference of height below which a line has the usual type size of its page: capitals and descenders."""

_GAP = 1.0
"""Least gap between two cells of a row, in type sizes."""

_LEVEL = 0.5
"""Largest distance of the centres of two lines in one row, in type sizes."""

_COLUMN_GAP, _MIN_LINES = 0.7, 3
"""Least gap between two columns in type sizes, and least lines of a column."""

_FILLED, _PROSE_SHARE = 0.7, 0.5
"""Share of a column's width that a line of prose fills, and the share of such lines in prose."""

_MAX_CROSSING = 0.3
"""Largest share of the lines of a page that cross the gap between two columns, such as headings."""


class _Box(NamedTuple):
    """A line in upright coordinates, in points from the upper left corner."""

    line: OcrLine
    left: float
    right: float
    middle: float
    size: float
    turn: int

    @property
    def text(self) -> str:
        """The text of the line."""
        return self.line.text.strip()


def order_lines(lines: Sequence[OcrLine], height: float) -> list[Line]:
    """Return the lines of a scanned page in reading order, as lines of a PDF page.

    A page that was scanned sideways, upside down or skewed is put upright; a single line that runs in another direction
    has a ``turn``. Cells of a table stand in one line, as its pieces. Columns of prose follow each other.

    Args:
        lines: The recognised lines.
        height: Height of the page in points.
    """
    return [_join_row(row, height) for row in _order_rows(lines)]


def get_reading_order(lines: Sequence[OcrLine]) -> list[OcrLine]:
    """Return the recognised lines of a page in the order of :func:`order_lines`."""
    return [box.line for row in _order_rows(lines) for box in row]


def _order_rows(lines: Sequence[OcrLine]) -> list[list[_Box]]:
    """Return the lines of a page by rows in reading order; lines of another direction follow."""
    boxes = _put_upright(lines) if lines else []
    upright = [box for box in boxes if not box.turn]
    return [*_order_columns(upright), *([box] for box in boxes if box.turn)]


def _put_upright(lines: Sequence[OcrLine]) -> list[_Box]:
    """Return the lines of a page with coordinates in its reading direction, and with equal sizes of similar lines."""
    angle = math.radians(get_page_angle(lines))
    cosine, sine = math.cos(angle), math.sin(angle)
    usual = median(line.height for line in lines for _ in line.text)
    boxes = []
    for line in lines:
        points = [(x * cosine + y * sine, y * cosine - x * sine) for x, y in line.corners]
        turn = round((math.degrees(angle) - line.angle) / 90) * 90 % 360
        ratio = line.height / usual
        size = usual if abs(ratio - 1) < _EQUAL else usual * round(4 * ratio) / 4
        left, right = min(x for x, _ in points), max(x for x, _ in points)
        boxes.append(_Box(line, left, right, sum(y for _, y in points) / 4, _SIZE * size, turn))
    shift_x, shift_y = min(box.left for box in boxes), min(box.middle - box.size for box in boxes)
    return [
        box._replace(left=box.left - shift_x, right=box.right - shift_x, middle=box.middle - shift_y) for box in boxes
    ]


def _order_columns(boxes: Sequence[_Box]) -> Iterator[list[_Box]]:
    """Yield the rows of a page; where two columns of prose stand beside each other, first those of the left column.

    Lines across both columns, such as headings, divide the page into parts from top to bottom.
    """
    gap = _find_column_gap(boxes)
    if gap is None:
        yield from _group_rows(boxes)
        return
    by_height = sorted(boxes, key=lambda box: (box.middle, box.left))
    for is_across, group in groupby(by_height, key=lambda box: box.left < gap < box.right):
        part = list(group)
        left, right = ([box for box in part if (box.left >= gap) == is_right] for is_right in (False, True))
        if is_across or not (left and right):
            yield from _group_rows(part)
        else:
            yield from _order_columns(left)
            yield from _order_columns(right)


def _find_column_gap(boxes: Sequence[_Box]) -> float | None:
    """Return the position of the gap between two columns of prose that the fewest lines cross; None without columns."""
    if len(boxes) < 2 * _MIN_LINES:
        return None
    size = median(box.size for box in boxes)
    best: tuple[int, float] | None = None
    for gap in sorted({box.left for box in boxes})[1:]:
        place = gap - _COLUMN_GAP * size / 2
        crossing = sum(box.left < place < box.right for box in boxes)
        left = [box for box in boxes if box.right <= place]
        right = [box for box in boxes if box.left >= place]
        if (
            crossing <= _MAX_CROSSING * len(boxes)
            and (best is None or crossing < best[0])
            and all(len(side) >= _MIN_LINES and _is_prose(side) for side in (left, right))
            and min(box.left for box in right) - sorted(box.right for box in left)[-1] >= _COLUMN_GAP * size
        ):
            best = crossing, place
    return best[1] if best else None


def _is_prose(boxes: Sequence[_Box]) -> bool:
    """Return whether most lines are about as wide as the column, or as one of several columns in it."""
    widths = sorted((box.right - box.left for box in boxes), reverse=True)
    usual = widths[len(widths) // 10]
    return sum(width >= _FILLED * usual for width in widths) >= _PROSE_SHARE * len(widths) and usual > 8 * boxes[0].size


def _group_rows(boxes: Sequence[_Box]) -> Iterator[list[_Box]]:
    """Yield the lines of a column by rows, from top to bottom; the lines of a row from left to right."""
    row: list[_Box] = []
    for box in sorted(boxes, key=lambda box: (box.middle, box.left)):
        if row and box.middle - row[0].middle > _LEVEL * min(box.size, row[0].size):
            yield sorted(row, key=lambda each: each.left)
            row = []
        row.append(box)
    if row:
        yield sorted(row, key=lambda each: each.left)


def _join_row(row: Sequence[_Box], height: float) -> Line:
    """Return the line of a row, with a piece for each cell if there are wide gaps."""
    pieces = [Piece(row[0].text, row[0].left, row[0].right)]
    for box in row[1:]:
        last = pieces[-1]
        if box.left - last.right > _GAP * box.size:
            pieces.append(Piece(box.text, box.left, box.right))
        else:
            pieces[-1] = Piece(f"{last.text} {box.text}", last.left, max(last.right, box.right))
    size = max(row, key=lambda box: len(box.text)).size
    return Line(
        " ".join(piece.text for piece in pieces),
        pieces[0].left,
        pieces[-1].right,
        height - row[0].middle - _LEVEL * size,
        size,
        row[0].turn,
        is_bold=False,
        is_fixed=False,
        pieces=tuple(pieces) if len(pieces) > 1 else (),
    )
