"""Finds the headings and the title of a PDF, in its outline or by larger or bold type."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from polyad.readers.headings import LONGEST, Heading
from polyad.readers.pdf_lines import Line, Style, get_body_style
from polyad.readers.pdf_paragraphs import Laid
from polyad.readers.plain_text import single_line
from polyad.text.cleaning import collapse_whitespace

_NUMBER = re.compile(r"[^\w]*(?:(?-i:\d+(?:\.\d+)*[.)]?|[IVXLC]+[.)]|[A-Z][.)])\s+)?")
"""What may stand before a heading in its line where the outline leaves it out."""

_MOST_LINES = 3
"""Lines that a heading goes over."""

_LARGER = 1.12
"""Times the size of the body: type that is larger than it by design."""

_TITLE_LARGER = 1.2
_SAME_SIZE = 0.04
"""Share by which two sizes differ and are one."""

_LONGEST_HEADING = 120
"""Characters of a heading that is known by its type alone."""

_LEAST_TEXT = 150
"""Characters of text for each heading of one type, on average; with less it is no type for headings."""

_MOST_ALIKE = 0.5
"""Share of the headings of one type that have the same names as others."""

_FIRST_PAGES = 3
"""Pages at the beginning among which the first with text has the title."""

_HEADING = re.compile(r"[^\W_].*[^\W\d_]{2}")
_NOTE_MARK = re.compile(r"[*\u2020\u2021\u2217]+(?=\s|$)")
_UNFINISHED = re.compile(r"[.,;:!?…]$")
_GENERIC = re.compile(
    r"(?:table of )?contents|(?:title|cover)(?: page)?|front matter|preface|foreword|introduction|abstract|overview|"
    r"start|top|user[\u2019']?s?[\u2019']? (?:guide|manual)|(?:chapter|part|page|section)\W*\w{1,5}|[\W\d]*",
    re.IGNORECASE,
)
"""What is no title of a document, however large."""


class Entry(NamedTuple):
    """An entry of a PDF outline (a bookmark).

    Attributes:
        level: 0 for the highest.
        name: On one line.
        page: From 0.
        top: How high on the page it points, in points; None for no height.
    """

    level: int
    name: str
    page: int
    top: float | None


def outlined(entries: Iterable[Entry], pages: Sequence[Sequence[Line]], laid: Laid) -> list[Heading]:
    """Locate each outline entry: at the line of its page with the same words, else at its destination."""
    by_page: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        if 0 < len(entry.name) <= LONGEST and 0 <= entry.page < len(pages):
            by_page[entry.page].append(entry)
    found = (
        _heading(entry, lines, pages[page], laid.starts[page], laid.places[page].start)
        for page, named in sorted(by_page.items())
        for lines in [_Lines(pages[page])]
        for entry in named
    )
    return sorted(found, key=lambda heading: heading.start)


def _heading(entry: Entry, lines: _Lines, page: Sequence[Line], starts: Sequence[int], page_start: int) -> Heading:
    if found := lines.find(entry.name):
        first, last = found
        return Heading(entry.level + 1, entry.name, starts[first], starts[last] + len(page[last].text))
    pointed = lines.at(entry.top) if entry.top is not None else None
    start = page_start if pointed is None else starts[pointed]
    return Heading(entry.level + 1, entry.name, start, start)


class _Lines:
    """The lines of a page, found by their words in time that grows with their number, not with that of the names."""

    def __init__(self, page: Sequence[Line]) -> None:
        self._whole: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        texts = [_key(line.text) for line in page]
        for first in range(len(texts) - 1, -1, -1):
            for last in range(first, min(first + _MOST_LINES, len(texts))):
                joined = " ".join(texts[first : last + 1])
                for key in {joined, _NUMBER.sub("", joined, count=1)}:
                    self._whole[key].append((first, last))
        self._depths = list(accumulate((-line.baseline for line in page), max))  # the lowest line so far
        bare = ((_NUMBER.sub("", text, count=1), place) for place, text in enumerate(texts))
        self._beginnings = sorted({*bare, *((text, place) for place, text in enumerate(texts))})

    def find(self, name: str) -> tuple[int, int] | None:
        """Return first and last line of a heading; else the line that begins with it, twice; else None.

        Its number may be left out in the name. Of lines that are the same each is found once, in their order.
        """
        key = _key(name)
        if lines := self._whole.get(key):
            return lines.pop() if len(lines) > 1 else lines[0]
        at = bisect_left(self._beginnings, (key, 0))
        if at < len(self._beginnings):
            text, place = self._beginnings[at]
            if text.startswith(key) and not text[len(key) : len(key) + 1].isalnum():
                return place, place
        return None

    def at(self, top: float) -> int | None:
        """Return the first line at or below the height ``top``; None if there is none."""
        place = bisect_left(self._depths, -top)
        return place if place < len(self._depths) else None


def _key(text: str) -> str:
    """Return the words by which a line is compared with a heading."""
    return collapse_whitespace(text[: 2 * LONGEST]).casefold()


def by_type(pages: Sequence[Sequence[Line]], laid: Laid, *, has_title: bool) -> list[Heading]:
    """Return headings by type: separate lines in larger or bold type, if these are plausible for the document.

    Args:
        pages: Their lines.
        laid: Where they are in the text.
        has_title: Whether the document has one. Then what stands above all text on the first page is no heading, but
            that title, the author or a date.
    """
    body = get_body_style(pages)
    first = next((number for number, page in enumerate(pages) if page), 0)
    found: defaultdict[Style, list[Heading]] = defaultdict(list)
    for number, (page, starts) in enumerate(zip(pages, laid.starts, strict=True)):
        above = _first_of_body(page, body) if has_title and number == first else 0
        for top, last in _blocks(page, body, [_begins(laid.text, start) for start in starts]):
            name = single_line(" ".join(line.text for line in page[top : last + 1]))
            if top >= above and _is_heading(name):
                end = starts[last] + len(page[last].text)
                found[_style(page[top], body)].append(Heading(1, name, starts[top], end))
    usable = [style for style, headings in found.items() if _make_sense(headings, len(laid.text))]
    ranks = {style: rank for rank, style in enumerate(sorted(usable, reverse=True), 1)}
    headings = [heading._replace(rank=min(ranks[style], 6)) for style in usable for heading in found[style]]
    return sorted(headings, key=lambda heading: heading.start)


def _style(line: Line, body: Style) -> Style:
    """Return the style of a line; larger lines differ only by size, in steps of half a point."""
    if line.size >= _LARGER * body.size:
        return Style(round(2 * line.size) / 2, False)
    return Style(body.size, line.is_bold)


def _first_of_body(page: Sequence[Line], body: Style) -> int:
    """Return the position of the first line in body type on a page; the number of lines if there is none."""
    return next((place for place, line in enumerate(page) if _style(line, body) == body), len(page))


def _begins(text: str, start: int) -> bool:
    return start == 0 or text[start - 2 : start] == "\n\n"


def _blocks(page: Sequence[Line], body: Style, begins: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield first and last line of each short paragraph that is set in one larger or bold type.

    Args:
        page: Its lines.
        body: How most of the text is set.
        begins: Whether each line begins a paragraph.
    """
    starts = [place for place, is_first in enumerate(begins) if is_first]
    for first, after in pairwise([*starts, len(page)]):
        style = _style(page[first], body)
        is_marked = style.size > body.size or (style.is_bold and not body.is_bold)
        is_short = after - first <= _MOST_LINES and page[first].size >= (1 - _SAME_SIZE) * body.size
        if (
            is_marked
            and is_short
            and all(_style(line, body) == style and not line.is_fixed for line in page[first:after])
        ):
            yield first, after - 1


def _is_heading(name: str) -> bool:
    is_short = len(name) <= _LONGEST_HEADING
    return is_short and not name[0].islower() and bool(_HEADING.match(name)) and not _UNFINISHED.search(name)


def _make_sense(headings: Sequence[Heading], length: int) -> bool:
    """Return whether headings of one type are few enough for the text and differ from one another."""
    names = {heading.name.casefold() for heading in headings}
    is_sparse = len(headings) * _LEAST_TEXT <= length
    return is_sparse and len(names) >= (1 - _MOST_ALIKE) * len(headings)


def find_largest_lines(pages: Sequence[Sequence[Line]]) -> str:
    """Return the text in the largest type on the first page with text, if it can be a title; else an empty string."""
    page = next((page for page in pages[:_FIRST_PAGES] if page), [])
    lettered = [line for line in page if sum(map(str.isalpha, line.text)) > 1 and line.turn == 0]
    largest = max((line.size for line in lettered), default=0.0)
    if largest < _TITLE_LARGER * get_body_style(pages).size:
        return ""
    name: list[str] = []
    for line in lettered:
        if line.size >= (1 - _SAME_SIZE) * largest and len(name) < _MOST_LINES:
            name.append(line.text)
        elif name:
            break
    title = single_line(_NOTE_MARK.sub("", " ".join(name)))
    is_part = title[:1].islower() or not title[:1].isalnum()  # its first letter is a picture, or it is of a list
    return "" if is_part or len(title) > LONGEST or _GENERIC.fullmatch(title) else title


def find_root_entry(entries: Sequence[Entry]) -> str:
    """Return the outline entry that contains all others; an empty string if there is none."""
    top = [entry for entry in entries if entry.level == 0]
    is_whole = len(top) == 1 or (len(top) > 1 and top[0].page == 0 and top[1].page > 0)
    return top[0].name if is_whole and not _GENERIC.fullmatch(top[0].name) else ""
