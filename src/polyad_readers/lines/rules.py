"""Finds the ruling lines of a PDF page, and the rows of text between them."""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from polyad.errors import MissingExtraError
from polyad_readers.lines.lines import Line

try:
    from pypdfium2 import raw  # type: ignore[import-untyped]  # has no stubs
except ImportError as error:
    raise MissingExtraError("pypdfium2", "documents") from error

_MAX_OBJECTS, _MAX_SEGMENTS = 3000, 2000
"""Most objects of a page, and segments of all its paths, among which ruling lines are looked for."""

_LEAST_WIDTH, _FLAT, _SAME_HEIGHT = 15.0, 0.5, 3.0
"""Least length of a ruling line, largest slope, and largest distance of two edges of one line, all in points."""

_LEAST_TABLE, _EVEN = 100.0, 0.8
"""Least width of a table in points, and least share of its width above which two rules stand above each other."""

_MIN_RULES = 3
"""Horizontal ruling lines of the smallest table."""

_MAX_HEIGHT = 400.0
"""Greatest height of a row, in points."""


class Rule(NamedTuple):
    """A horizontal ruling line: its height on the page and its ends, in points."""

    height: float
    left: float
    right: float


def read_rules(page: Any) -> list[Rule]:
    """Return the horizontal ruling lines of a page (a ``pypdfium2.PdfPage``), from top to bottom."""
    rules: list[Rule] = []
    for rule in sorted(_list_edges(page), reverse=True):
        if rules and rules[-1].height - rule.height <= _SAME_HEIGHT:
            above = rules[-1]
            rules[-1] = Rule(above.height, min(above.left, rule.left), max(above.right, rule.right))
        else:
            rules.append(rule)
    return rules


def _list_edges(page: Any) -> Iterator[Rule]:
    """Yield the horizontal segments of all paths of a page."""
    x, y, matrix, segments = ctypes.c_float(), ctypes.c_float(), raw.FS_MATRIX(), 0
    left_end, bottom, right_end, top = (ctypes.c_float() for _ in range(4))
    for index in range(min(raw.FPDFPage_CountObjects(page), _MAX_OBJECTS)):
        item = raw.FPDFPage_GetObject(page, index)
        if raw.FPDFPageObj_GetType(item) != raw.FPDF_PAGEOBJ_PATH:
            continue
        raw.FPDFPageObj_GetBounds(item, left_end, bottom, right_end, top)
        if right_end.value - left_end.value < _LEAST_WIDTH:
            continue
        count = raw.FPDFPath_CountSegments(item)
        segments += count
        if segments > _MAX_SEGMENTS:
            return
        raw.FPDFPageObj_GetMatrix(item, matrix)
        points = []
        for place in range(count):
            segment = raw.FPDFPath_GetPathSegment(item, place)
            raw.FPDFPathSegment_GetPoint(segment, x, y)
            is_line = raw.FPDFPathSegment_GetType(segment) == raw.FPDF_SEGMENT_LINETO
            across = matrix.a * x.value + matrix.c * y.value + matrix.e
            points.append((across, matrix.b * x.value + matrix.d * y.value + matrix.f, is_line))
        for (left, height, _), (right, end, is_line) in pairwise(points):
            if is_line and abs(end - height) <= _FLAT and abs(right - left) >= _LEAST_WIDTH:
                yield Rule(height, min(left, right), max(left, right))


def find_grids(lines: Sequence[Line], rules: Sequence[Rule]) -> Iterator[list[range]]:
    """Yield the ranges of the lines in each row of a table that ruling lines separate.

    The lines of a table, and of each of its rows, follow each other.
    """
    if len(rules) < _MIN_RULES:
        return
    places: list[tuple[int, int]] = []  # the row of each line that stands between two rules
    depths = [-rule.height for rule in rules]
    for place, line in enumerate(lines):
        middle = line.baseline + line.size / 4
        row = bisect_left(depths, -middle) - 1  # the row below the last rule above the line
        if line.turn == 0 and 0 <= row < len(rules) - 1 and _is_between(line, *rules[row : row + 2]):
            places.append((place, row))
    rows: list[range] = []
    previous = -2
    for place, row in places:
        if rows and place == rows[-1].stop and row == previous:
            rows[-1] = range(rows[-1].start, place + 1)
        elif rows and place == rows[-1].stop and row > previous:
            rows.append(range(place, place + 1))
        else:
            if rows:
                yield rows
            rows = [range(place, place + 1)]
        previous = row
    if rows:
        yield rows


def _is_between(line: Line, above: Rule, below: Rule) -> bool:
    """Return whether a line stands between two neighbouring rules, and within their ends."""
    left, right = max(above.left, below.left), min(above.right, below.right)
    is_low = above.height <= below.height + _MAX_HEIGHT
    is_even = right - left >= max(_LEAST_TABLE, _EVEN * (max(above.right, below.right) - min(above.left, below.left)))
    return is_low and is_even and left - line.size <= line.left and line.right <= right + line.size
