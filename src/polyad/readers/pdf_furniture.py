"""Removes page furniture from a PDF: running headers and footers, tables of contents, indexes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median, mode
from typing import NamedTuple

from polyad.readers.pdf_lines import Line
from polyad.text.page_labels import parse_roman

Pages = list[list[Line]]

_MIN_GAP = 1.5
"""Least gap between a running header and the text, as a multiple of the type size."""

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
_FIRST_NUMBER = re.compile(r"\W*(\d{1,5}|[ivxlcIVXLC]{1,8})(?!\w)")
_LAST_NUMBER = re.compile(r"(?:^|\s)(\d{1,5}|[ivxlcIVXLC]{1,8})\W*$")

_TAIL = 60
"""Characters at the end of a line in which a page number is looked for."""

_LEADER_ENTRY = re.compile(r"(?:[.…·_] ?){4} *(?:\w{1,2}[-.])?(\d{1,5}|[ivxlcIVXLC]{1,8})(?:, *\d{1,5})*\W*$")
"""An entry of a table of contents or an index with leaders (dots) before the page number."""

_PLAIN_ENTRY = re.compile(
    r"[^\d\s.,\u2013-]\W*[\s,] *(\d{1,5})(?:[-\u2013]\d{1,5})?(?:, *\d{1,5}(?:[-\u2013]\d{1,5})?)*[,;]?$"
)
"""An entry of a table of contents or an index without leaders."""

_LISTING_TITLE = re.compile(
    r"(?:(?:short |brief |detailed )?(?:table of )?contents|(?:\w+ ){0,3}index|list of (?:figures|tables))\W*",
    re.IGNORECASE,
)

_LED_SHARE, _LED_LEAST = 0.4, 4
_NUMBERED_SHARE, _NUMBERED_LEAST = 0.6, 8
"""Least share and number of entries of a listing: among the lines from the first to the last entry if entries have
leaders, among all lines of the page otherwise."""

_MAX_LETTER = 2
"""Characters of a line with the initial letter of the following index entries."""

_MIN_ORDERED = 0.8
"""Least share of neighbouring entries in order; columns break the order in places."""

_MIN_PAGE_NUMBERS = 0.9
"""Least share of entries whose number can be a page number; data sheets have leaders too."""


class _Row(NamedTuple):
    """The pieces of text at one height of a PDF page: indices of the lines, and their joined text."""

    page: int
    baseline: float
    size: float
    places: tuple[int, ...]
    text: str


def remove_furniture(pages: Pages) -> Pages:
    """Return PDF pages without running headers, footers, page numbers, tables of contents and indexes.

    If nothing would remain, the pages are returned unchanged.
    """
    running = _find_running_rows(pages)
    text = _remove_listings(
        [
            [line for place, line in enumerate(page) if (number, place) not in running]
            for number, page in enumerate(pages)
        ]
    )
    return text if any(text) else pages


def _find_running_rows(pages: Pages) -> set[tuple[int, int]]:
    """Return the lines of running headers and footers, as pairs (page index, line index).

    They are the first or last rows of many pages, separate from the text and at one height, that repeat except for
    their numbers, or begin or end with a number that grows by one per page. If nearly all rows at one height are such
    rows, all rows at this height are.
    """
    rows_of_pages = [_group_rows(number, page) for number, page in enumerate(pages)]
    running: set[_Row] = set()
    for outermost, next_row in ((0, 1), (-1, -2)):
        groups: defaultdict[str | tuple[bool, int], list[_Row]] = defaultdict(list)
        bands: defaultdict[int, list[_Row]] = defaultdict(list)
        for rows in filter(None, rows_of_pages):
            row = rows[outermost]
            if len(rows) == 1 or abs(row.baseline - rows[next_row].baseline) >= _MIN_GAP * row.size:
                bands[round(row.baseline)].append(row)
                groups[_NUMBER.sub("\0", row.text)].append(row)
                for offset in set(_list_page_offsets(row)):
                    groups[offset].append(row)
        for words_or_offset, group in groups.items():
            has_changing_number = isinstance(words_or_offset, str) and len({row.text for row in group}) > 1
            least = _LEAST_PAGES if has_changing_number else max(_LEAST_PAGES, min(_LEAST_SAME, len(pages)))
            running.update(_select_frequent_height(group, least))
        for band in bands.values():  # headers at this height may change by chapter
            if sum(row in running for row in band) >= max(2 * _LEAST_PAGES, _LEAST_BAND * len(band)):
                running.update(band)
    return {(row.page, place) for row in running for place in row.places}


def _group_rows(page_index: int, page: Sequence[Line]) -> list[_Row]:
    """Return the lines of a PDF page grouped by height, from top to bottom, without rotated lines."""
    usual_turn = mode(line.turn for line in page) if page else 0
    upright = [place for place, line in enumerate(page) if line.turn == usual_turn]
    rows: list[list[int]] = []
    for place in sorted(upright, key=lambda place: -page[place].baseline):
        if rows and page[rows[-1][0]].baseline - page[place].baseline < _HEIGHT_TOLERANCE:
            rows[-1].append(place)
        else:
            rows.append([place])
    return [
        _Row(
            page_index,
            page[row[0]].baseline,
            page[row[0]].size,
            tuple(row),
            " ".join(page[place].text for place in row),
        )
        for row in (sorted(row, key=lambda place: page[place].left) for row in rows)
    ]


def _list_page_offsets(row: _Row) -> Iterator[tuple[bool, int]]:
    """Yield (whether it is decimal, value minus page index) for the first and last number in a row of a page.

    Printed page numbers have the same difference on all pages. Page indexes start at 0.
    """
    for match in (_FIRST_NUMBER.match(row.text), _LAST_NUMBER.search(row.text[-_TAIL:])):
        if match:
            yield match[1].isdigit(), _parse_page_number(match[1]) - row.page


def _parse_page_number(number: str) -> int:
    """Return the value of a decimal or Roman number."""
    return int(number) if number.isdigit() else parse_roman(number.lower())


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


class _Entry(NamedTuple):
    """A line of a page that may be an entry of a table of contents or an index."""

    place: int
    line: Line
    number: int


def _remove_listings(pages: Pages) -> Pages:
    """Return PDF pages without the lines of tables of contents and indexes."""
    remaining = []
    follows_listing = False
    for number, page in enumerate(pages):
        entries = _find_listing_entries(page, number, len(pages), follows_listing)
        follows_listing = bool(entries)
        remaining.append(list(_remove_entries(page, entries)) if entries else page)
    return remaining


def _remove_entries(page: Sequence[Line], entries: Sequence[_Entry]) -> Iterator[Line]:
    """Yield the lines of a PDF page without its table of contents or index: title and ``entries``."""
    first, last = entries[0].place, entries[-1].place
    title = next((place for place in range(first) if _LISTING_TITLE.fullmatch(page[place].text[:_TAIL])), first)
    if all(_PLAIN_ENTRY.search(line.text[-_TAIL:]) for line in page[title + 1 : first]):
        first = title  # entries of chapters often have no leaders
    for place, line in enumerate(page):
        is_title = len(line.text) <= _MAX_LETTER or _LISTING_TITLE.fullmatch(line.text[:_TAIL])
        if not (first <= place <= last or is_title):
            yield line


def _find_listing_entries(
    page: Sequence[Line], page_index: int, page_count: int, follows_listing: bool
) -> list[_Entry]:
    """Return the entries of a page that lists contents or an index; an empty list for other pages.

    Args:
        page: The lines of the page.
        page_index: Page number, from 0.
        page_count: Number of pages.
        follows_listing: Whether the previous page is a table of contents or an index.
    """
    leader_entries = _match_lines(page, _LEADER_ENTRY)
    least = 1 if follows_listing else _LED_LEAST
    if len(leader_entries) >= least and _have_page_numbers(leader_entries, page_count):
        lines = leader_entries[-1].place - leader_entries[0].place + 1
        if len(leader_entries) >= _LED_SHARE * lines:
            return leader_entries
    entries = _match_lines(page, _LEADER_ENTRY, _PLAIN_ENTRY)
    least = _LED_LEAST if follows_listing else _NUMBERED_LEAST
    if len(entries) < max(least, _NUMBERED_SHARE * len(page)) or not _have_page_numbers(entries, page_count):
        return []
    are_growing = _are_ordered([entry.number for entry in entries])
    is_contents = are_growing and page_index < max(_NUMBERED_LEAST, page_count // 5)
    initials = [ord(next(filter(str.isalpha, entry.line.text.casefold()), "\0")) for entry in entries]
    is_index = page_index > page_count // 2 and (follows_listing or (_are_ordered(initials) and not are_growing))
    return entries if is_contents or is_index else []


def _match_lines(page: Sequence[Line], *patterns: re.Pattern[str]) -> list[_Entry]:
    """Return an entry for each line of a page that looks like "Chapter 2 .... 17" (ends in a page number)."""
    matches = (
        (place, line, next(filter(None, (pattern.search(line.text[-_TAIL:]) for pattern in patterns)), None))
        for place, line in enumerate(page)
    )
    return [_Entry(place, line, _parse_page_number(match[1])) for place, line, match in matches if match]


def _have_page_numbers(entries: Sequence[_Entry], page_count: int) -> bool:
    """Return whether nearly all numbers of the entries are possible page numbers of a PDF with ``page_count`` pages."""
    return sum(entry.number <= page_count for entry in entries) >= _MIN_PAGE_NUMBERS * len(entries)


def _are_ordered(values: Sequence[int]) -> bool:
    """Return whether most values in a list are greater than or equal to the preceding value."""
    pairs = list(pairwise(values))
    return sum(value <= after for value, after in pairs) >= _MIN_ORDERED * len(pairs)
