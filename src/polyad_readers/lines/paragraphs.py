"""Joins the lines of all pages to paragraphs, and joins words that are hyphenated at line ends."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from polyad.model import Location
from polyad_readers.lines.code import FIXED_ADVANCE, MAX_SPACES
from polyad_readers.lines.lines import Line
from polyad_readers.lines.wraps import find_wraps, is_unspaced

_GAP = 1.25
"""Multiple of the usual line spacing above which two lines are two paragraphs."""

_DEFAULT_GAP = 1.2
"""Line spacing as a multiple of the type size if the document has too few lines of this size."""

_MIN_SAMPLES = 10
"""Distances needed to measure the usual spacing; headings of one size have few and wide distances."""

_MAX_SPACING = 2.5
"""Multiple of the type size above which a distance is not the spacing of a paragraph."""

_SIZE_CHANGE = 0.08
"""Relative difference of type size that separates two paragraphs."""

_INDENT, _MAX_INDENT = 0.6, 4.0
"""Least and largest indent of a paragraph's first line, as multiples of the type size."""

_RAISED = 0.5
"""Largest offset of a superscript or subscript from its baseline, as a multiple of the type size."""

_TOUCHING, _CELL_GAP = 0.15, 2.0
"""Largest gap inside a word and least gap between table cells, as multiples of the type size."""

_SENTENCE_END = re.compile("[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\xbb)\\]]*$")
_ITEM = re.compile(r"(?:[*\u2022\xb7\u25aa\u25e6\u2023\u2043\u2013\u2014\u2217-]|\(?\w{1,3}[.)])\s")
_BROKEN = re.compile(r"([^\W\d_]+)[-\u2010\xad]$")
_HYPHENS = "-\u2010\xad"
_COMPOUND = re.compile(r"\w[-\u2010]$")
_TAIL = 60
"""Characters at the end of a line in which a hyphen and the end of a sentence are looked for."""

_FIRST_WORD = re.compile(r"\A[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


class JoinedText(NamedTuple):
    """The text of a PDF, with the start of each line and the location of each page.

    Attributes:
        text: The text.
        starts: Offset of each line's first character in the text, by page and by position of the line on the page.
        locations: The location of each page in the text.
    """

    text: str
    starts: list[list[int]]
    locations: tuple[Location, ...]


class _LineJoin(NamedTuple):
    """How two PDF lines are joined: the number of characters to cut (a hyphen) and the separator to insert."""

    cut: int
    separator: str


def join_lines(pages: Sequence[Sequence[Line]]) -> JoinedText:
    """Return the lines of all pages as one text, with the start of each line and the location of each page.

    The lines of a paragraph of prose become one line; those of verse, lists, tables and code stay.
    """
    lines = [line for page in pages for line in page]
    joins = list(_find_line_joins(pages))
    wraps = find_wraps(lines, [join.separator for join in joins])
    pieces: list[str] = []
    starts: list[int] = []
    length = 0
    for place, (line, join) in enumerate(zip(lines, joins, strict=True)):
        if place in wraps:
            join = _LineJoin(0, _choose_space(lines[place - 1].text, line.text))
        if join.cut:
            pieces[-1] = pieces[-1][: -join.cut]
        length += len(join.separator) - join.cut
        starts.append(length)
        pieces += [join.separator, line.text]
        length += len(line.text)
    ends = [*starts[1:], length]
    by_page = []
    locations = []
    first = 0
    for number, page in enumerate(pages, 1):
        page_starts = starts[first : first + len(page)]
        by_page.append(page_starts)
        start = page_starts[0] if page_starts else (ends[first - 1] if first else 0)
        first += len(page)
        end = min(page_starts[-1] + len(page[-1].text), ends[first - 1]) if page_starts else start
        locations.append(Location(start, end, page=number))
    return JoinedText("".join(pieces), by_page, tuple(locations))


def _find_line_joins(pages: Sequence[Sequence[Line]]) -> Iterator[_LineJoin]:
    """Yield for each line of a PDF the join to the preceding line: number of characters to cut, and separator."""
    spacing = _measure_line_spacing(pages)
    words = _collect_words(pages)
    previous: Line | None = None
    is_indented = False
    for page in pages:
        for place, line in enumerate(page):
            if previous is None:
                yield _LineJoin(0, "")
            elif previous.row or line.row:
                yield _LineJoin(0, "\n" if line.row > 1 else "\n\n")
            elif place and _is_same_row(previous, line):
                yield _LineJoin(0, _choose_separator(previous, line))
            else:
                following = page[place + 1] if place + 1 < len(page) else None
                is_new = _starts_paragraph(previous, line, following, place == 0, is_indented, spacing)
                is_indented = is_new and line.left > previous.left
                is_code = previous.is_fixed or line.is_fixed
                wrapped = _LineJoin(0, "\n") if is_code else _join_wrapped_line(previous.text, line.text, words)
                yield _LineJoin(0, "\n\n") if is_new else wrapped
            previous = line


def _choose_space(previous: str, text: str) -> str:
    """Return what separates two lines of a paragraph: nothing after a hyphen, or without spaces between words."""
    is_unbroken = _COMPOUND.search(previous[-_TAIL:]) or (is_unspaced(previous[-1:]) and is_unspaced(text[:1]))
    return "" if is_unbroken else " "


def _is_same_row(previous: Line, line: Line) -> bool:
    """Return whether a line is at the same height as the previous line, as in the next table cell."""
    size = max(previous.size, line.size)
    is_level = line.turn == previous.turn and abs(previous.baseline - line.baseline) < _RAISED * size
    return is_level and line.left > previous.right - _TOUCHING * size


def _choose_separator(previous: Line, line: Line) -> str:
    """Return the separator of two pieces of one row: a tab between table cells, spaces, or nothing in a word."""
    gap = (line.left - previous.right) / (max(previous.size, line.size) or 1)
    if line.is_fixed and previous.is_fixed:
        return " " * min(MAX_SPACES, round(gap / FIXED_ADVANCE))
    if gap >= _CELL_GAP:
        return "\t"
    return " " if gap >= _TOUCHING else ""


def _starts_paragraph(
    previous: Line, line: Line, following: Line | None, is_first: bool, is_indented: bool, spacing: Mapping[int, float]
) -> bool:
    """Return whether ``line`` starts a new paragraph.

    Args:
        previous: The preceding line.
        line: The line.
        following: The next line on the same page, or None.
        is_first: Whether the line is the first of its page.
        is_indented: Whether the preceding line starts an indented paragraph.
        spacing: Usual distance between lines of a paragraph, by type size.
    """
    if line.turn != previous.turn or abs(line.size - previous.size) > _SIZE_CHANGE * max(line.size, previous.size):
        return True
    distance = previous.baseline - line.baseline
    if is_first or distance < -_INDENT * line.size:  # a new page, or a new column
        return _SENTENCE_END.search(previous.text[-_TAIL:]) is not None and not line.text[:1].islower()
    if distance > _GAP * spacing.get(round(line.size), _DEFAULT_GAP * line.size):
        return True
    if line.is_fixed or not _SENTENCE_END.search(previous.text[-_TAIL:]):
        return False
    indent = (line.left - previous.left) / (line.size or 1)
    if indent < -_INDENT:
        return not is_indented
    is_outdented = following is None or (line.left - following.left) / (line.size or 1) > _INDENT
    return _INDENT < indent < _MAX_INDENT and is_outdented and not _ITEM.match(previous.text)


def _measure_line_spacing(pages: Sequence[Sequence[Line]]) -> dict[int, float]:
    """Return the median distance of consecutive lines, in points, by rounded type size."""
    distances_by_size: defaultdict[int, list[float]] = defaultdict(list)
    for page in pages:
        for previous, line in pairwise(page):
            distance = previous.baseline - line.baseline
            if round(previous.size) == round(line.size) and _INDENT < distance / (line.size or 1) < _MAX_SPACING:
                distances_by_size[round(line.size)].append(distance)
    return {
        size: median(distances)
        if len(distances) >= _MIN_SAMPLES
        else min(median(distances), _GAP * _DEFAULT_GAP * size)
        for size, distances in distances_by_size.items()
    }


def _collect_words(pages: Sequence[Sequence[Line]]) -> set[str]:
    """Return the set of case-folded words of a document, except words that are hyphenated at the end of a line."""
    words: set[str] = set()
    continues_word = False
    for page in pages:
        for line in page:
            text = _FIRST_WORD.sub("", line.text, count=1) if continues_word else line.text
            hyphenated = _find_broken_word(text)
            continues_word = hyphenated is not None
            complete_text = text[: -len(hyphenated[0])] if hyphenated else text
            words.update(_WORD.findall(complete_text.casefold()))
    return words


def _find_broken_word(text: str) -> re.Match[str] | None:
    """Return the match of a word with a hyphen at the end of a line."""
    return _BROKEN.search(text[-_TAIL:]) if text[-1:] in _HYPHENS else None


def _join_wrapped_line(previous: str, text: str, words: AbstractSet[str]) -> _LineJoin:
    """Return the join of two lines of a paragraph: a line break, or nothing if a word continues after a hyphen.

    ``words`` are the words of the document.

    The hyphen of a compound stays: the document has the compound elsewhere, or has both parts as words but not the
    joined word.
    """
    hyphenated, continuation = _find_broken_word(previous), _FIRST_WORD.match(text)
    if not hyphenated or not continuation or not text[0].islower():
        return _LineJoin(0, "\n")
    first, second = hyphenated[1].casefold(), continuation[0].casefold()
    if first + second in words:
        return _LineJoin(1, "")
    is_compound = f"{first}-{second}" in words or {first, second} <= words
    return _LineJoin(0 if is_compound else 1, "")
