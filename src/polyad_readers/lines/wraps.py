"""Finds the lines of a PDF that continue in the next line of a paragraph, since the next word had no room."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from polyad_readers.lines.lines import Line
from polyad_readers.lines.right_to_left import RIGHT_TO_LEFT

_WINDOW = 12
"""Lines before and after a line among which the right edge of its column is looked for."""

_SIZE_CHANGE = 0.08
"""Relative difference of type size between lines of a column."""

_MAX_INDENT = 6.0
"""Largest distance of the left ends of two lines of a column, in type sizes."""

_SLACK, _SQUARES = 1.15, 2.1
"""Room for the next word that shows a wrapped line, as a multiple of the word's estimated width; in type sizes if the
script has no spaces between words."""

_EDGE = 0.8
"""Largest distance of a full line from the right edge, in type sizes."""

_MIN_LETTERS, _MIN_SQUARES = 20, 8
"""Characters of the shortest line that may be one of prose, and of a script whose characters are squares."""

_MIN_FULL, _MOST_FULL, _MOST_CAPITALS = 0.5, 0.8, 0.7
"""Share of wrapped lines in a paragraph with wrapped lines; in one whose lines begin like sentences; and share of lines
that begin like verses or entries of a list."""

_MIN_BREAKS = 3
"""Line breaks of a paragraph that show what it is."""

_MIN_NARROW, _NEARLY_ALL = 5, 0.9
"""Line breaks, and share of wrapped lines, of a paragraph that is narrower than its column."""

_WIDE_GAP = 1.5
"""Gap in a line of a table or list, in type sizes."""

_ITEM = re.compile(
    r"(?:[*\u2022\xb7\u25aa\u25ab\u25cf\u25cb\u25a0\u25a1\u25e6\u2023\u2043\u2013\u2014\u2217\u27a2\u2713\u2714-]"
    r"|\(?(?:\d{1,3}|[A-Za-z]|[ivxlc]{1,5})[.)]|\d+(?:\.\d+)+\.?|\[\d+\])\s"
)
_LEADERS = re.compile(r"(?:[.\u2026\xb7_] ?){4}")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31a0-\u9fff\uf900-\ufaff\uff00-\uffef]")
"""A character of a script without spaces between words; the Korean one has them."""


def is_unspaced(text: str) -> bool:
    """Return whether a character is of a script without spaces between words."""
    return _UNSPACED.match(text) is not None


def find_wraps(lines: Sequence[Line], separators: Sequence[str]) -> set[int]:
    """Return the indices of the lines that continue the line before.

    Args:
        lines: The lines of a document.
        separators: What stands before each line; a line break if the line may continue the line before.
    """
    wraps: set[int] = set()
    columns = _Columns(lines)
    starts = [place for place, separator in enumerate(separators) if separator == "\n\n" or not place]
    for first, end in pairwise([*starts, len(lines)]):
        breaks = [place for place in range(first + 1, end) if separators[place] == "\n"]
        candidates = [place for place in breaks if _may_continue(lines, separators, place)]
        wraps.update(_select_wraps(lines, columns, candidates))
    return wraps


def _may_continue(lines: Sequence[Line], separators: Sequence[str], place: int) -> bool:
    """Return whether two lines are of prose, rather than of code, a table, a list, a heading or contents."""
    line, after = lines[place - 1 : place + 1]
    if len(line.text) < _MIN_SQUARES:
        return False
    is_cell = "\t" in separators[max(0, place - 1) : place + 2] or _has_gap(line) or _has_gap(after)
    is_other_type = line.is_bold != after.is_bold and not after.text[:1].islower()
    least = _MIN_SQUARES if is_unspaced(line.text[:1]) else _MIN_LETTERS
    return not (
        is_cell
        or is_other_type
        or line.is_fixed
        or after.is_fixed
        or len(line.text) < least
        or _ITEM.match(after.text)
        or _LEADERS.search(line.text)
        or (line.text[:1].isdigit() and after.text[:1].isdigit())
    )


def _has_gap(line: Line) -> bool:
    return bool(line.pieces) and any(
        after.left - piece.right > _WIDE_GAP * line.size for piece, after in pairwise(line.pieces)
    )


def _select_wraps(lines: Sequence[Line], columns: _Columns, breaks: Sequence[int]) -> Iterator[int]:
    """Yield those of a paragraph's line breaks after which a line continues; none in verse and lists.

    Args:
        lines: The lines of the document.
        columns: The columns of the document.
        breaks: Indices of the lines after line breaks.
    """
    if not breaks:
        return
    ends = {place: columns.measure_ends(place - 1) for place in breaks}
    full = _select_full(lines, breaks, [ends[place][1] for place in breaks])
    capitals = sum(not _continues_sentence(lines[place].text) for place in breaks)
    if len(full) < _MIN_FULL * len(breaks) and len(breaks) >= _MIN_NARROW and 2 * capitals < len(breaks):
        widest = max(ends[place][0] for place in breaks)  # a paragraph beside a picture
        narrow = _select_full(lines, breaks, [widest] * len(breaks))
        full = narrow if len(narrow) >= _NEARLY_ALL * len(breaks) else full
    is_verse = len(breaks) >= _MIN_BREAKS and capitals > _MOST_CAPITALS * len(breaks)
    if is_verse or len(full) < _MIN_FULL * len(breaks):
        return
    are_most = len(breaks) >= _MIN_BREAKS and len(full) >= _MOST_FULL * len(breaks)
    for place in full:
        line, after = lines[place - 1 : place + 1]
        end, *farthest = ends[place]
        is_alone = end == farthest[0] and end - (farthest[1:] or [-math.inf])[0] > _estimate_width(line, after)
        is_justified = len(farthest) > 2 and farthest[0] - min(end, farthest[2]) <= _EDGE * line.size
        has_evidence = are_most or is_justified or _continues_sentence(after.text) or line.text.endswith("-")
        if has_evidence and not (is_alone and (len(full) < len(breaks) or len(farthest) == 1)):
            yield place


def _select_full(lines: Sequence[Line], breaks: Sequence[int], edges: Sequence[float]) -> list[int]:
    """Return those of some line breaks before which the next word has no room up to the edge of the column."""
    return [
        place
        for place, edge in zip(breaks, edges, strict=True)
        if edge - _get_end(lines[place - 1]) < _estimate_width(lines[place - 1], lines[place])
    ]


def _get_end(line: Line) -> float:
    """Return how far a line reaches in reading direction."""
    return -line.left if _is_right_to_left(line.text) else line.right


def _is_right_to_left(text: str) -> bool:
    return not text.isascii() and RIGHT_TO_LEFT.search(text) is not None


def _continues_sentence(text: str) -> bool:
    """Return whether a line begins like the rest of a sentence: not with a capital letter or a digit."""
    return not (text[:1].isupper() or text[:1].isdigit())


class _Columns:
    """The columns of a document: lines below each other, with how far they reach in reading direction."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._columns: list[tuple[list[float], int]] = []  # for each line: its column, and its place there
        column: list[float] = []
        for number, line in enumerate(lines):
            if not number or not _is_same_column(lines[number - 1], line):
                column = []
            self._columns.append((column, len(column)))
            column.append(_get_end(line))

    def measure_ends(self, place: int) -> tuple[float, ...]:
        """Return how far a line reaches, and then the farthest three of the lines around it, itself among them."""
        column, number = self._columns[place]
        window = sorted(column[max(0, number - _WINDOW) : number + _WINDOW + 1])
        return column[number], *window[:-4:-1]


def _is_same_column(line: Line, after: Line) -> bool:
    """Return whether a line follows another in a column of text."""
    is_right_to_left = _is_right_to_left(line.text)
    indent = after.right - line.right if is_right_to_left else after.left - line.left
    return (
        line.turn == after.turn
        and after.baseline < line.baseline
        and abs(after.size - line.size) <= _SIZE_CHANGE * line.size
        and abs(indent) <= _MAX_INDENT * line.size
        and not (line.row or after.row or line.is_fixed or after.is_fixed)
        and is_right_to_left == _is_right_to_left(after.text)
    )


def _estimate_width(line: Line, after: Line) -> float:
    """Return the greatest width of the next line's first word, with a space, in points."""
    if is_unspaced(after.text[:1]):
        return _SQUARES * line.size
    word = len(after.text.split(maxsplit=1)[0]) + 1
    return _SLACK * word * (line.right - line.left) / len(line.text)
