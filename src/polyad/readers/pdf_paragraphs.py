"""Joins the lines of all pages to paragraphs, and words that are hyphenated at the end of a line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from polyad.model import Location
from polyad.readers.pdf_lines import Line

_GAP = 1.25
"""Times the usual distance of lines from which on they are two paragraphs."""

_DEFAULT_GAP = 1.2
"""Times the size of the type: the distance of lines where no other is known."""

_TELLING = 10
"""Distances of lines that tell the usual one; headings of one size have few, and those are wide."""

_FARTHEST = 2.5
"""Times the size of the type: lines further apart say nothing about the distance of lines."""

_RESIZED = 0.08
"""Share by which the type differs between two paragraphs, but not in one."""

_INDENT, _DEEPEST_INDENT = 0.6, 4.0
"""Times the size of the type: how far the first line of a paragraph is moved in, at least and at most."""

_RAISED = 0.5
"""Times the size of the type: how far a mark may stand above or below its line."""

_TOUCHING, _CELL = 0.15, 2.0
"""Times the size of the type: what lies between parts of a word at most, and between cells of a row at least."""

_ENDS = re.compile("[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\xbb)\\]]*$")
_ITEM = re.compile(r"(?:[*\u2022\xb7\u25aa\u25e6\u2023\u2043\u2013\u2014\u2217-]|\(?\w{1,3}[.)])\s")
_BROKEN = re.compile(r"([^\W\d_]+)[-\u2010\xad]$")
_TAIL = 60
"""Characters at the end of a line that are looked at for a broken word and for the end of a sentence."""

_REST = re.compile(r"\A[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


class Laid(NamedTuple):
    """A text with its page locations and the span of each line.

    Attributes:
        text: All of it.
        starts: Where each line begins in it, by page and place on the page.
        places: Where each page is in it.
    """

    text: str
    starts: list[list[int]]
    places: tuple[Location, ...]


class _Joint(NamedTuple):
    """How a line follows the one before: characters to cut off from that one's end, and what to put between."""

    cut: int
    between: str


def laid_out(pages: Sequence[Sequence[Line]]) -> Laid:
    """Join the lines of all pages to one text.

    Lines stay as they are wrapped, since nothing tells prose from verse, tables and code for sure.
    """
    lines = [line for page in pages for line in page]
    pieces: list[str] = []
    starts: list[int] = []
    length = 0
    for line, joint in zip(lines, _joints(pages), strict=True):
        if joint.cut:
            pieces[-1] = pieces[-1][: -joint.cut]
        length += len(joint.between) - joint.cut
        starts.append(length)
        pieces += [joint.between, line.text]
        length += len(line.text)
    ends = [*starts[1:], length]
    by_page = []
    places = []
    first = 0
    for number, page in enumerate(pages, 1):
        begins = starts[first : first + len(page)]
        by_page.append(begins)
        start = begins[0] if begins else (ends[first - 1] if first else 0)
        first += len(page)
        end = min(begins[-1] + len(page[-1].text), ends[first - 1]) if begins else start
        places.append(Location(start, end, page=number))
    return Laid("".join(pieces), by_page, tuple(places))


def _joints(pages: Sequence[Sequence[Line]]) -> Iterator[_Joint]:
    """Yield for each line how it is joined to the preceding line."""
    distances = _distances(pages)
    words = _words(pages)
    before: Line | None = None
    is_moved_in = False
    for page in pages:
        for place, line in enumerate(page):
            if before is None:
                yield _Joint(0, "")
            elif place and _goes_on(before, line):
                yield _Joint(0, _blank_between(before, line))
            else:
                after = page[place + 1] if place + 1 < len(page) else None
                is_new = _is_new(before, line, after, place == 0, is_moved_in, distances)
                is_moved_in = is_new and line.left > before.left
                yield _Joint(0, "\n\n") if is_new else _within(before.text, line.text, words)
            before = line


def _goes_on(before: Line, line: Line) -> bool:
    """Return whether a line continues the row before it, as after a footnote mark or in the next table cell."""
    size = max(before.size, line.size)
    is_level = line.turn == before.turn and abs(before.baseline - line.baseline) < _RAISED * size
    return is_level and line.left > before.right - _TOUCHING * size


def _blank_between(before: Line, line: Line) -> str:
    gap = (line.left - before.right) / (max(before.size, line.size) or 1)
    if gap >= _CELL:
        return "\t"
    return " " if gap >= _TOUCHING else ""


def _is_new(
    before: Line, line: Line, after: Line | None, is_first: bool, is_moved_in: bool, distances: Mapping[int, float]
) -> bool:
    """Return whether a line begins a paragraph.

    Args:
        before: The line before it.
        line: Which may.
        after: The line after it, on the same page.
        is_first: Whether it is the first of its page.
        is_moved_in: Whether the line before it begins a paragraph and stands to the right of others for it.
        distances: Of lines, by the size of the type.
    """
    if line.turn != before.turn or abs(line.size - before.size) > _RESIZED * max(line.size, before.size):
        return True
    distance = before.baseline - line.baseline
    if is_first or distance < -_INDENT * line.size:  # a new page, or a new column
        return _ENDS.search(before.text[-_TAIL:]) is not None and not line.text[:1].islower()
    if distance > _GAP * distances.get(round(line.size), _DEFAULT_GAP * line.size):
        return True
    if line.is_fixed or not _ENDS.search(before.text[-_TAIL:]):
        return False
    moved = (line.left - before.left) / (line.size or 1)
    if moved < -_INDENT:
        return not is_moved_in
    is_back = after is None or (line.left - after.left) / (line.size or 1) > _INDENT
    return _INDENT < moved < _DEEPEST_INDENT and is_back and not _ITEM.match(before.text)


def _distances(pages: Sequence[Sequence[Line]]) -> dict[int, float]:
    """Return the usual distance between two lines of a paragraph for each type size."""
    seen: defaultdict[int, list[float]] = defaultdict(list)
    for page in pages:
        for before, line in pairwise(page):
            distance = before.baseline - line.baseline
            if round(before.size) == round(line.size) and _INDENT < distance / (line.size or 1) < _FARTHEST:
                seen[round(line.size)].append(distance)
    return {
        size: median(distances) if len(distances) >= _TELLING else min(median(distances), _GAP * _DEFAULT_GAP * size)
        for size, distances in seen.items()
    }


def _words(pages: Sequence[Sequence[Line]]) -> set[str]:
    """Return the words of a document that are not hyphenated at the end of a line."""
    words: set[str] = set()
    is_rest = False
    for page in pages:
        for line in page:
            text = _REST.sub("", line.text, count=1) if is_rest else line.text
            broken = _BROKEN.search(text[-_TAIL:])
            is_rest = broken is not None
            whole = text[: -len(broken[0])] if broken else text
            words.update(_WORD.findall(whole.casefold()))
    return words


def _within(before: str, text: str, words: AbstractSet[str]) -> _Joint:
    """How a line follows another of its paragraph: a word that the end of a line breaks is made whole.

    A hyphen stays that is part of the word: the document has the word with it elsewhere, or has both parts as words and
    not the whole.
    """
    broken, rest = _BROKEN.search(before[-_TAIL:]), _REST.match(text)
    if not broken or not rest or not text[0].islower():
        return _Joint(0, "\n")
    first, second = broken[1].casefold(), rest[0].casefold()
    if first + second in words:
        return _Joint(1, "")
    is_compound = f"{first}-{second}" in words or {first, second} <= words
    return _Joint(0 if is_compound else 1, "")
