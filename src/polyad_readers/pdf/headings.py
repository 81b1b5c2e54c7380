"""Finds the headings and the title of a PDF in its outline or by larger or bold type."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from polyad.readers.text.headings import MAX_HEADING, Heading
from polyad.readers.text.plain_text import to_single_line
from polyad.text.words import collapse_whitespace
from polyad_readers.lines.lines import Line, Style, get_body_style
from polyad_readers.lines.paragraphs import JoinedText

_NUMBER = re.compile(r"[^\w]*(?:(?-i:\d+(?:\.\d+)*[.)]?|[IVXLC]+[.)]|[A-Z][.)])\s+)?")
"""Number of a heading, which the outline may omit."""

_MAX_LINES = 3
"""Lines of the longest heading."""

_HEADING_SIZE_RATIO = 1.12
"""Least size of a heading as a multiple of the body size."""

_TITLE_SIZE_RATIO = 1.2
_SIZE_TOLERANCE = 0.04
"""Relative difference up to which two type sizes are equal."""

_MAX_TYPED_HEADING = 120
"""Characters of the longest heading that is found by its type alone."""

_MIN_TEXT = 150
"""Least characters of the document per heading of one style; a more frequent style does not mark headings."""

_MAX_REPEATED = 0.5
"""Largest share of headings of one style that repeat the text of others."""

_FIRST_PAGES = 3
"""The first of these pages with text has the title."""

_HEADING = re.compile(r"[^\W_].*[^\W\d_]{2}")
_NOTE_MARK = re.compile(r"[*\u2020\u2021\u2217]+(?=\s|$)")
_ORDINAL = re.compile(r"\d+|\b(?:[IVXLC]{1,6}|[A-Z])\b")
_END_PUNCTUATION = re.compile(r"[.,;:!?…]$")
_GENERIC = re.compile(
    r"(?:table of )?contents|(?:title|cover)(?: page)?|front matter|preface|foreword|introduction|abstract|overview|"
    r"start|top|user[\u2019']?s?[\u2019']? (?:guide|manual)|(?:chapter|part|page|section)\W*\w{1,5}|[\W\d]*",
    re.IGNORECASE,
)
"""Texts that are not titles of a document, however large."""


class OutlineEntry(NamedTuple):
    """An entry of a PDF outline (a bookmark).

    Attributes:
        level: Depth in the outline; 0 for the highest level.
        name: Text of the entry on one line.
        page: Page number, from 0.
        top: Height on the page that the entry points to, in points from the bottom; None if it states no height.
    """

    level: int
    name: str
    page: int
    top: float | None


def locate_outline_entries(
    entries: Iterable[OutlineEntry], pages: Sequence[Sequence[Line]], joined_text: JoinedText
) -> list[Heading]:
    """Return one heading per PDF bookmark, at the line with the words of the bookmark, or at the bookmark's target."""
    entries_by_page: defaultdict[int, list[OutlineEntry]] = defaultdict(list)
    for entry in entries:
        if 0 < len(entry.name) <= MAX_HEADING and 0 <= entry.page < len(pages):
            entries_by_page[entry.page].append(entry)
    headings = (
        _locate_entry(entry, lines, pages[page], joined_text.starts[page], joined_text.locations[page].start)
        for page, page_entries in sorted(entries_by_page.items())
        for lines in [_LineIndex(pages[page])]
        for entry in page_entries
    )
    return sorted(headings, key=lambda heading: heading.start)


def _locate_entry(
    entry: OutlineEntry, lines: _LineIndex, page: Sequence[Line], starts: Sequence[int], page_start: int
) -> Heading:
    if span := lines.find_heading(entry.name):
        first, last = span
        return Heading(entry.level + 1, entry.name, starts[first], starts[last] + len(page[last].text))
    line_below = lines.find_below(entry.top) if entry.top is not None else None
    start = page_start if line_below is None else starts[line_below]
    return Heading(entry.level + 1, entry.name, start, start)


class _LineIndex:
    """An index of the lines of one PDF page by their words, to locate the text of bookmarks."""

    def __init__(self, page: Sequence[Line]) -> None:
        self._by_text: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        texts = [_normalize(line.text) for line in page]
        for first in range(len(texts) - 1, -1, -1):
            for last in range(first, min(first + _MAX_LINES, len(texts))):
                joined = " ".join(texts[first : last + 1])
                for key in {joined, _NUMBER.sub("", joined, count=1)}:
                    self._by_text[key].append((first, last))
        self._depths = list(accumulate((-line.baseline for line in page), max))  # depth of the lowest line so far
        bare = ((_NUMBER.sub("", text, count=1), place) for place, text in enumerate(texts))
        self._beginnings = sorted({*bare, *((text, place) for place, text in enumerate(texts))})

    def find_heading(self, heading: str) -> tuple[int, int] | None:
        """Return the first and last line index of a heading, or of a line that starts with the heading; None without.

        The name may omit the heading's number. Equal lines are returned in order, one at each call.
        """
        key = _normalize(heading)
        if lines := self._by_text.get(key):
            return lines.pop() if len(lines) > 1 else lines[0]
        at = bisect_left(self._beginnings, (key, 0))
        if at < len(self._beginnings):
            text, place = self._beginnings[at]
            if text.startswith(key) and not text[len(key) : len(key) + 1].isalnum():
                return place, place
        return None

    def find_below(self, top: float) -> int | None:
        """Return the index of the first line of the page at or below the height ``top`` (in points); None without."""
        place = bisect_left(self._depths, -top)
        return place if place < len(self._depths) else None


def _normalize(text: str) -> str:
    """Return the beginning of a text, case-folded and with single spaces, for comparing lines with headings."""
    return collapse_whitespace(text[: 2 * MAX_HEADING]).casefold()


def find_headings_by_type(
    pages: Sequence[Sequence[Line]], joined_text: JoinedText, *, has_title: bool
) -> list[Heading]:
    """Return the headings of a PDF without outline: separate lines in larger or bold type, if they are plausible.

    Args:
        pages: The lines of each page.
        joined_text: The text of the document.
        has_title: Whether the title was found. Then lines above the body text of the first page are not headings: they
            are the title, the author or a date.
    """
    body = get_body_style(pages)
    first = next((number for number, page in enumerate(pages) if page), 0)
    headings_by_style: defaultdict[Style, list[Heading]] = defaultdict(list)
    for number, (page, starts) in enumerate(zip(pages, joined_text.starts, strict=True)):
        first_body_line = _find_first_body_line(page, body) if has_title and number == first else 0
        for top, last in _find_marked_paragraphs(
            page, body, [_starts_paragraph(joined_text.text, start) for start in starts]
        ):
            name = to_single_line(" ".join(line.text for line in page[top : last + 1]))
            if top >= first_body_line and _is_heading(name):
                end = starts[last] + len(page[last].text)
                headings_by_style[_simplify_style(page[top], body)].append(Heading(1, name, starts[top], end))
    usable = [style for style, headings in headings_by_style.items() if _are_plausible(headings, len(joined_text.text))]
    ranks = {style: rank for rank, style in enumerate(sorted(usable, reverse=True), 1)}
    headings = [heading._replace(rank=min(ranks[style], 6)) for style in usable for heading in headings_by_style[style]]
    return sorted(headings, key=lambda heading: heading.start)


def _simplify_style(line: Line, body_style: Style) -> Style:
    """Return the style of a line; for a line larger than the body text, only the size is kept."""
    if line.size >= _HEADING_SIZE_RATIO * body_style.size:
        return Style(round(2 * line.size) / 2, False)
    return Style(body_style.size, line.is_bold)


def _find_first_body_line(page: Sequence[Line], body_style: Style) -> int:
    """Return the index of the first line in the style of body text; the number of lines if there is none."""
    return next(
        (place for place, line in enumerate(page) if _simplify_style(line, body_style) == body_style), len(page)
    )


def _starts_paragraph(text: str, start: int) -> bool:
    """Return whether a paragraph of ``text`` starts at the offset ``start``."""
    return start == 0 or text[start - 2 : start] == "\n\n"


def _find_marked_paragraphs(
    page: Sequence[Line], body_style: Style, paragraph_starts: Sequence[bool]
) -> Iterator[tuple[int, int]]:
    """Yield the first and last line index of each short paragraph in larger or bold type (a likely heading).

    Args:
        page: The lines of the page.
        body_style: The most frequent style of the document.
        paragraph_starts: Whether each line starts a paragraph.
    """
    starts = [place for place, is_first in enumerate(paragraph_starts) if is_first]
    for first, end in pairwise([*starts, len(page)]):
        style = _simplify_style(page[first], body_style)
        is_marked = style.size > body_style.size or (style.is_bold and not body_style.is_bold)
        is_short = end - first <= _MAX_LINES and page[first].size >= (1 - _SIZE_TOLERANCE) * body_style.size
        if (
            is_marked
            and is_short
            and all(_simplify_style(line, body_style) == style and not line.is_fixed for line in page[first:end])
        ):
            yield first, end - 1


def _is_heading(name: str) -> bool:
    """Return whether a text has the form of a heading: short, capitalised and without final punctuation."""
    is_short = len(name) <= _MAX_TYPED_HEADING
    return is_short and not name[0].islower() and bool(_HEADING.match(name)) and not _END_PUNCTUATION.search(name)


def _are_plausible(headings: Sequence[Heading], text_length: int) -> bool:
    """Return whether candidate headings are mostly distinct, and rare enough for a text of this length."""
    names = {heading.name.casefold() for heading in headings}
    is_sparse = len(headings) * _MIN_TEXT <= text_length
    return is_sparse and len(names) >= (1 - _MAX_REPEATED) * len(headings)


def find_largest_lines(pages: Sequence[Sequence[Line]]) -> str:
    """Return the largest text on the first page if it can be the title; otherwise an empty string.

    A text that other pages repeat with another number, such as "Day 1", is the heading of a part.
    """
    page = next((page for page in pages[:_FIRST_PAGES] if page), [])
    lettered = [line for line in page if sum(map(str.isalpha, line.text)) > 1 and line.turn == 0]
    largest = max((line.size for line in lettered), default=0.0)
    if largest < _TITLE_SIZE_RATIO * get_body_style(pages).size:
        return ""
    title_lines: list[str] = []
    for line in lettered:
        if line.size >= (1 - _SIZE_TOLERANCE) * largest and len(title_lines) < _MAX_LINES:
            title_lines.append(line.text)
        elif title_lines:
            break
    title = to_single_line(_NOTE_MARK.sub("", " ".join(title_lines)))
    is_part = title[:1].islower() or not title[:1].isalnum()  # the initial is a picture, or it is a list item
    words = _ORDINAL.sub("\0", title)
    is_numbered = words != title and any(
        line.text != title and _ORDINAL.sub("\0", line.text) == words for page in pages for line in page
    )
    return "" if is_part or is_numbered or len(title) > MAX_HEADING or _GENERIC.fullmatch(title) else title


def put_title_first(pages: list[list[Line]]) -> list[list[Line]]:
    """Return the lines of the pages with the title before the text below it, where a program drew the title last.

    The title is the largest text of the first page, and stands over all lines that it is put before. A headline over
    the second of two columns does not.
    """
    number = next((number for number, page in enumerate(pages[:_FIRST_PAGES]) if page), 0)
    page = pages[number] if pages else []
    largest = max((line.size for line in page if line.turn == 0), default=0.0)
    places = [place for place, line in enumerate(page) if line.size >= (1 - _SIZE_TOLERANCE) * largest]
    lowest = min((page[place].baseline for place in places), default=0.0)
    first, end = (places[0], places[-1] + 1) if places else (0, 0)
    start = next((place for place, line in enumerate(page[:first]) if line.baseline < lowest), first)
    is_over_text = all(line.baseline + line.size < lowest for line in page[start:first])
    is_title = start < first and end - first <= min(len(places), _MAX_LINES) and is_over_text
    if not is_title or not find_largest_lines(pages):
        return pages
    page = [*page[:start], *page[first:end], *page[start:first], *page[end:]]
    return [*pages[:number], page, *pages[number + 1 :]]


def find_root_entry(entries: Sequence[OutlineEntry]) -> str:
    """Return the title of the PDF bookmark that stands for the whole document; empty if missing or generic.

    That is the only entry of the highest level, or the first if it alone points to the first page.
    """
    top = [entry for entry in entries if entry.level == 0]
    is_whole = len(top) == 1 or (len(top) > 1 and top[0].page == 0 and top[1].page > 0)
    return top[0].name if is_whole and not _GENERIC.fullmatch(top[0].name) else ""
