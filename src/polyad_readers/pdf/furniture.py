"""Removes page furniture from a PDF: running headers and footers, page numbers, tables of contents, indexes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from statistics import median, mode
from typing import NamedTuple, TypeVar

from polyad.text.page_labels import parse_page_number
from polyad.text.removals import CONTENTS, HEADERS, Removals
from polyad_readers.lines.lines import Line, Style, get_body_style
from polyad_readers.pdf.listings import find_listings

Pages = list[list[Line]]
_Value = TypeVar("_Value")

_MIN_GAP = 1.5
"""Least gap between a running header and the text, as a multiple of the type size."""

_OUTER_ROWS = 4
"""Rows of a page that are looked at: a running header and the next row, at each end."""

_HEIGHT_TOLERANCE = 2.0
"""Points by which the height of a running header may vary between pages."""

_LEAST_PAGES, _LEAST_SAME = 3, 4
"""Least pages with the same running header: with a number that changes, and without one. A shorter document must have
the latter on all pages."""

_LEAST_SHARE = 0.6
"""Least share of pages with a running header between its first and last page; every second page counts if the header is
on left pages or on right pages only."""

_LEAST_BAND = 0.9
"""If at least this share of the rows at one height are running headers, all rows at this height are running headers."""

_NUMBER = re.compile(r"\d{1,9}|(?<!\w)[ivxlcIVXLC]{1,8}(?!\w)")
_MAX_NUMBERS = 20
"""Numbers of a row that are compared with the page."""

_PAGE_WORD = re.compile(
    r"(?:p|pp|pg|page|pagina|página|pàgina|pág|pag|seite|s|blz|sida|sidan|side|sivu|strona|str|strana|stránka|oldal|lk|lpp"
    r"|puslapis|страница|стр|сторінка|\u0441|σελίδα|σελ|sayfa|trang|halaman|صفحة|الصفحة|صفحه|עמוד|पृष्ठ|หน้า|ページ|頁|页|쪽|페이지)"
    r"[.:#]? ?[-\u2013]?\Z",
    re.IGNORECASE,
)
_PAGE_UNIT = re.compile(r" ?(?:[頁页쪽]|ページ|페이지|\. ?(?:oldal|sayfa|lk)\b)")
"""What stands before and after a page number, in the languages of most manuals."""

_OF = re.compile(r"\b(?:of|von|de|di|van|av|af|sur|из|ze?|共)\b")
"""Words between a page number and the number of pages."""

_HEADING_SIZE, _SMALL_SIZE = 1.12, 0.92
"""Least size of a heading, and greatest size of small print, as multiples of the body size."""

_MIN_SPREAD = 1.4
"""Least width of a row whose number stands apart from its words, as a multiple of the width of words alone."""

_FIRST_WIDE = "\u2e80"
"""First character of the scripts whose characters are squares."""

_MANY_PAGES = 16
"""Pages from which a number in a header that counts the pages from 1 is the page number though it is beside words."""

_MAX_OFFSET = 1000
"""Highest page number of the first page of an extract."""


class _Row(NamedTuple):
    """The pieces of text at one height of a PDF page: indices of the lines, and their joined text.

    Attributes:
        page: Page number, from 0.
        baseline: Height of the baseline.
        style: Style of the first piece.
        is_spread: Whether the row has a wide gap.
        places: Indices of the lines.
        text: Text of the pieces.
    """

    page: int
    baseline: float
    style: Style
    is_spread: bool
    places: tuple[int, ...]
    text: str


class _Number(NamedTuple):
    """A number in a row: its match in the text, and its value minus the page index."""

    row: _Row
    match: re.Match[str]
    offset: int

    @property
    def key(self) -> tuple[bool, int]:
        """Return whether the number is decimal, and the offset: equal for the page numbers of a document."""
        return self.match[0].isdigit(), self.offset


def remove_furniture(pages: Pages) -> tuple[Pages, Removals]:
    """Return PDF pages without running headers, footers, page numbers, tables of contents and indexes, and their lines.

    If nothing would remain, the pages are returned unchanged.
    """
    running = _find_running_rows(pages)
    text = _remove_lines(pages, running)
    listings = find_listings(text)
    removals = {HEADERS: _list_lines(pages, running), CONTENTS: _list_lines(text, listings)}
    text = _remove_lines(text, listings)
    return (text, removals) if any(text) else (pages, {})


def _list_lines(pages: Pages, lines: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return the lines with the given pairs (page index, line index), each with its page number."""
    return tuple(f"p. {page + 1}: {pages[page][place].text}" for page, place in sorted(lines))


def _remove_lines(pages: Pages, lines: set[tuple[int, int]]) -> Pages:
    """Return PDF pages without the lines with the given pairs (page index, line index)."""
    return [
        [line for place, line in enumerate(page) if (number, place) not in lines] for number, page in enumerate(pages)
    ]


def _find_running_rows(pages: Pages) -> set[tuple[int, int]]:
    """Return the lines of running headers and footers, as pairs (page index, line index).

    They are the first or last rows of many pages, separate from the text and at one height, that are equal or have a
    page number. If nearly all rows at one height are such rows, all rows at this height are.
    """
    rows_of_pages = [_find_outer_rows(number, page) for number, page in enumerate(pages)]
    body_style = get_body_style(pages)
    least_same = max(_LEAST_PAGES, min(_LEAST_SAME, len(pages)))
    running: set[_Row] = set()
    page_numbers: set[tuple[bool, int]] = set()
    both_rows = [list(_select_separate_rows(rows_of_pages, *places)) for places in ((0, 1), (-1, -2))]
    for is_footer, rows in enumerate(both_rows):
        for group in _group_by((row.text, row) for row in rows):
            running.update(_select_frequent_height(group, least_same))
        for numbers in _group_by(pair for row in rows for pair in _list_numbers(row)):
            have_same_words = len({_NUMBER.sub("\0", number.row.text) for number in numbers}) == 1
            least = _LEAST_PAGES if have_same_words else least_same
            level = set(_select_frequent_height([number.row for number in numbers], least))
            level_numbers = [number for number in numbers if number.row in level]
            if level and _are_page_numbers(level_numbers, body_style, is_footer=is_footer == 1):
                running.update(level)
                page_numbers.update(number.key for number in level_numbers)
        for band in _group_by((round(row.baseline), row) for row in rows):  # headers here may change by chapter
            if sum(row in running for row in band) >= max(2 * _LEAST_PAGES, _LEAST_BAND * len(band)):
                running.update(band)
    for row in chain(*both_rows):  # such as the page number below the first page of a chapter
        if _is_alone(row) and any(number.key in page_numbers for _, number in _list_numbers(row)):
            running.add(row)
    return {(row.page, place) for row in running for place in row.places}


def _select_separate_rows(rows_of_pages: Iterable[Sequence[_Row]], outermost: int, next_row: int) -> Iterator[_Row]:
    """Yield the first or last row of each page (index ``outermost``) if a gap is between it and the next row."""
    for rows in filter(None, rows_of_pages):
        row = rows[outermost]
        if len(rows) == 1 or abs(row.baseline - rows[next_row].baseline) >= _MIN_GAP * row.style.size:
            yield row


def _group_by(pairs: Iterable[tuple[object, _Value]]) -> Iterable[list[_Value]]:
    """Return the values of (key, value) pairs with the same key, for each key."""
    groups: defaultdict[object, list[_Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups.values()


def _list_numbers(row: _Row) -> Iterator[tuple[object, _Number]]:
    """Yield the numbers of a row, each with the keys of the groups of numbers in which it may be the page number.

    A group has the same words and place among the numbers or, for the first or last word of a row, the same offset.
    """
    words = _NUMBER.sub("\0", row.text)
    for position, match in enumerate(islice(_NUMBER.finditer(row.text), _MAX_NUMBERS)):
        number = _Number(row, match, parse_page_number(match[0]) - row.page)
        yield (words, position), number
        if not (any(map(str.isalnum, row.text[: match.start()])) and any(map(str.isalnum, row.text[match.end() :]))):
            yield number.key, number


def _are_page_numbers(numbers: Sequence[_Number], body_style: Style, *, is_footer: bool) -> bool:
    """Return whether numbers in rows of several pages are the page numbers, not those of invoices, days or chapters.

    Page numbers grow with the pages. They stand alone, beside the word "page", apart from other words, on alternating
    sides, or in small print. In footers and on many pages they may also stand beside words and begin at 1. Numbers in
    headings, and numbers beside words that begin high, are others.
    """
    steps = [after.offset == number.offset for number, after in pairwise(numbers)]
    if 2 * sum(steps) < len(steps):
        return False
    rows = [number.row for number in numbers]
    offset = median(number.offset for number in numbers)
    is_from_start = offset <= 1
    size = median(row.style.size for row in rows)
    is_large = size >= _HEADING_SIZE * body_style.size
    is_small = size <= _SMALL_SIZE * body_style.size
    is_spread = _are_most(row.is_spread for row in rows)
    if _are_most(map(_is_marked_as_page, numbers)):
        return True
    if _are_most(map(_is_alone, rows)):
        return is_from_start or not is_large
    if is_large or (all(row.style.is_bold for row in rows) and not (body_style.is_bold or is_spread)):
        return False
    if is_from_start:
        return is_footer or is_small or is_spread or any(map(_is_alone, rows)) or len(rows) >= _MANY_PAGES
    sides = {2 * number.match.start() < len(number.row.text) for number in numbers}
    return len(sides) == 2 or (is_small and is_spread and offset <= _MAX_OFFSET)


def _are_most(conditions: Iterable[bool]) -> bool:
    """Return whether at least half of some conditions hold."""
    values = list(conditions)
    return 2 * sum(values) >= len(values)


def _is_alone(row: _Row) -> bool:
    """Return whether a row has numbers alone, such as "- 3 -" and "3 of 20"."""
    return sum(map(str.isalpha, _OF.sub("", _NUMBER.sub("", row.text)))) <= 1


def _is_marked_as_page(number: _Number) -> bool:
    """Return whether a number in a row stands beside a word such as "page"."""
    before = number.row.text[: number.match.start()]
    word = _PAGE_WORD.search(before)
    is_word = word is not None and not before[: word.start()][-1:].isalpha()
    return is_word or _PAGE_UNIT.match(number.row.text, number.match.end()) is not None


def _find_outer_rows(page_index: int, page: Sequence[Line]) -> list[_Row]:
    """Return the first two and last two rows of a PDF page, from top to bottom: its lines at one height."""
    usual_turn = mode(line.turn for line in page) if page else 0
    upright = [place for place, line in enumerate(page) if line.turn == usual_turn]
    rows: list[list[int]] = []
    for place in sorted(upright, key=lambda place: -page[place].baseline):
        if rows and page[rows[-1][0]].baseline - page[place].baseline < _HEIGHT_TOLERANCE:
            rows[-1].append(place)
        else:
            rows.append([place])
    outer_rows = rows if len(rows) <= _OUTER_ROWS else rows[: _OUTER_ROWS // 2] + rows[-_OUTER_ROWS // 2 :]
    return [_build_row(page_index, [page[place] for place in row], tuple(row)) for row in outer_rows]


def _build_row(page_index: int, lines: Sequence[Line], places: tuple[int, ...]) -> _Row:
    """Return the row of some lines at one height."""
    lines = sorted(lines, key=lambda line: line.left)
    text = " ".join(line.text for line in lines)
    first = lines[0]
    width = max(line.right for line in lines) - min(line.left for line in lines)
    letters = sum(1 if character >= _FIRST_WIDE else 0.5 for character in text)
    style = Style(first.size, all(line.is_bold for line in lines))
    return _Row(page_index, first.baseline, style, width >= _MIN_SPREAD * letters * first.size, places, text)


def _select_frequent_height(rows: Sequence[_Row], min_pages: int) -> list[_Row]:
    """Return the rows at the median height if most pages have such a row (a likely page header); otherwise none.

    Args:
        rows: Rows of several pages.
        min_pages: Least number of pages with a row.
    """
    height = median(row.baseline for row in rows)
    level = [row for row in rows if abs(row.baseline - height) <= _HEIGHT_TOLERANCE]
    pages = sorted({row.page for row in level})
    if len(pages) < min_pages:
        return []
    step = 2 if len({page % 2 for page in pages}) == 1 else 1
    return level if len(pages) >= _LEAST_SHARE * ((pages[-1] - pages[0]) / step + 1) else []
