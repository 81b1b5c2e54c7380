"""Splits the lines of a PDF page at wide gaps, on pages whose lines are wider than their letters."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from polyad.errors import MissingExtraError
from polyad_readers.lines.lines import Line, Piece, normalize_text
from polyad_readers.lines.rules import Rule, find_grids, read_rules

try:
    from pypdfium2 import raw  # type: ignore[import-untyped]  # has no stubs
except ImportError as error:
    raise MissingExtraError("pypdfium2", "documents") from error

_WIDE_GAP = 0.8
"""Least gap between two pieces of a line, as a multiple of the type size; spaces of justified text are narrower."""

_LEVEL, _TOUCHING = 0.5, 0.15
"""Largest difference of baselines in one row, and least gap of two cells, in type sizes."""

_STRETCHED, _EQUAL = 1.6, 1.15
"""Greatest width of the spaces of a stretched line, in type sizes, and greatest ratio of two of them."""

_WIDE_LETTERS, _WIDER_LETTERS = 0.57, 1.2
"""Width of a line by its letters that shows gaps: in type sizes, and as a multiple of the page's median."""

_FIRST_SQUARE = "\u2e80"
"""First character of the scripts whose characters are squares."""

_MIN_RULED = 3
"""Least lines with gaps on a page whose ruling lines are read."""

_NEAR = 3
"""Largest distance of two lines with gaps, and lines before and after them that are measured too."""

_SPACES = re.compile(" +")

_FIXED_GAP = 0.9
"""Least gap between two pieces of a monospaced line: more than one space."""


def split_lines(text_page: Any, page: Any, lines: Sequence[Line]) -> tuple[list[Line], list[Rule]]:
    """Return the lines of a page, those with wide gaps with their pieces, and the ruling lines of a page with gaps.

    Args:
        text_page: A ``pypdfium2.PdfTextPage``.
        page: Its ``pypdfium2.PdfPage``.
        lines: Its lines.
    """
    widths = [_measure_letters(line) for line in lines]
    limit = min(_WIDE_LETTERS, _WIDER_LETTERS * median(widths or [0.0]))
    wide = [
        place
        for place, width in enumerate(widths)
        if width > limit or (place and is_beside(*lines[place - 1 : place + 1]))
    ]
    near = {
        other
        for place, following in pairwise(wide)
        if following - place <= _NEAR
        for other in range(place - _NEAR, following + _NEAR + 1)
    }
    rules = read_rules(page) if len(near.intersection(wide)) >= _MIN_RULED else []
    near.update(place for grid in find_grids(lines, rules) for row in grid for place in row)
    return [
        line._replace(pieces=_split_line(text_page, line)) if place in near and " " in line.text else line
        for place, line in enumerate(lines)
    ], rules


def is_beside(line: Line, after: Line) -> bool:
    """Return whether a line stands right of the line before, and not below it: the next cell of a table."""
    return after.left > line.right + _TOUCHING * line.size and after.baseline > line.baseline - _LEVEL * line.size


def _measure_letters(line: Line) -> float:
    """Return the mean width of a line's characters in type sizes; the square ones count twice."""
    letters = len(line.text)
    if not line.text.isascii():
        letters += sum(character >= _FIRST_SQUARE for character in line.text)
    return (line.right - line.left) / (letters * line.size or 1)


def _split_line(text_page: Any, line: Line) -> tuple[Piece, ...]:
    """Return the pieces of a line between wide gaps; none if the line is turned or has no wide gap."""
    if line.turn or not line.characters:
        return ()
    text = line.text
    if len(text) != len(line.characters):  # ligatures are expanded
        text = "".join(chr(raw.FPDFText_GetUnicode(text_page, index) or 32) for index in line.characters)
    gap = _FIXED_GAP if line.is_fixed else _WIDE_GAP
    ends = [
        (0, line.left, line.left),
        *_find_gaps(text_page, text, line, gap * line.size),
        (len(text), line.right, 0.0),
    ]
    widths = [after - before for _, before, after in ends[1:-1]]
    is_stretched = len(widths) > 2 and max(widths) < _STRETCHED * line.size and max(widths) < _EQUAL * min(widths)
    if not widths or (is_stretched and not line.is_fixed):
        return ()
    pieces = (
        Piece(normalize_text(text[start:end]).strip(), left, right)
        for (start, _, left), (end, right, _) in pairwise(ends)
        if text[start:end].strip()
    )
    return tuple(piece for piece in pieces if piece.text)


def _find_gaps(text_page: Any, text: str, line: Line, least: float) -> Iterator[tuple[int, float, float]]:
    """Yield the offset, left end and right end of each gap of a line that is wider than ``least``."""
    x, left, right, bottom, top = (ctypes.c_double() for _ in range(5))
    origin, box = tuple(map(ctypes.byref, (x, bottom))), tuple(map(ctypes.byref, (left, right, bottom, top)))
    first = line.characters.start
    for space in _SPACES.finditer(text, 1, len(text) - 1):
        raw.FPDFText_GetCharOrigin(text_page, first + space.end(), *origin)
        raw.FPDFText_GetCharBox(text_page, first + space.start() - 1, *box)
        if x.value - right.value > least:
            yield space.start(), right.value, x.value
