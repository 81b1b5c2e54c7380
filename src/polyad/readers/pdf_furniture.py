"""Removes page furniture from a PDF: running headers and footers, tables of contents, indexes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from polyad.readers.pdf_lines import Line

Pages = list[list[Line]]

_MIN_GAP = 1.5
"""Least gap between a running header and the text, as a multiple of the type size."""

_HEIGHT_TOLERANCE = 2.0
"""Points by which the height of a running header may vary between pages."""

_LEAST_PAGES, _LEAST_SAME = 3, 4
"""Least pages with the same running header: with a number that grows by page, and without one. A shorter document must
have the latter on all pages."""

_LEAST_SHARE = 0.6
"""Least share of pages with the row between its first and last page; of every second page if only these have it."""

_LEAST_BAND = 0.9
"""Share of running headers among the rows at one height from which all rows at this height are running headers."""

_NUMBER = re.compile(r"\d{1,9}|(?<!\w)[ivxlcIVXLC]{1,8}(?!\w)")
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_FIRST_NUMBER = re.compile(r"\W*(\d{1,5}|[ivxlcIVXLC]{1,8})(?!\w)")
_LAST_NUMBER = re.compile(r"(?:^|\s)(\d{1,5}|[ivxlcIVXLC]{1,8})\W*$")

_TAIL = 60
"""Characters at the end of a line in which a page number is looked for."""

_LEADER_ENTRY = re.compile(r"(?:[.…·_] ?){4} *(?:\w{1,2}[-.])?(\d{1,5}|[ivxlcIVXLC]{1,8})(?:, *\d{1,5})*\W*$")
"""An entry of a table of contents or an index with leaders (dots) before the page number."""

_PLAIN_ENTRY = re.compile(
    r"[^\d\s.,\u2013-]\W*[\s,] *(\d{1,5})(?:[-\u2013]\d{1,5})?(?:, *\d{1,5}(?:[-\u2013]\d{1,5})?)*[,;]?$"
)
"""An entry without leaders."""

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


class _Row(NamedTuple):
    """The text fragments of a page that stand on one baseline."""

    baseline: float
    size: float
    places: tuple[int, ...]
    text: str


class _Edge(NamedTuple):
    """The first or last row of text on a page, which may be a running header or footer."""

    page: int
    row: _Row


def remove_furniture(pages: Pages) -> Pages:
    """Return the pages without running headers and footers, page numbers, tables of contents and indexes.

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
    """Return running headers and footers as pairs of page and line position."""
    positions: set[tuple[int, int]] = set()
    from_top = [_group_rows(page) for page in pages]
    for rows_of_pages in (from_top, [rows[::-1] for rows in from_top]):
        edges = [_Edge(page, rows[0]) for page, rows in enumerate(rows_of_pages) if _is_margin_separate(rows)]
        running = _find_repeated_rows(edges, len(pages)) | _find_numbered_rows(edges)
        running |= _find_rows_in_bands(edges, running)
        positions.update((edge.page, place) for edge in running for place in edge.row.places)
    return positions


def _is_margin_separate(rows: Sequence[_Row]) -> bool:
    """Return whether the outermost row of a page is its only row, or a gap separates it from the next row.

    Args:
        rows: All rows of the page, from the outermost.
    """
    if len(rows) < 2:
        return bool(rows)
    return abs(rows[0].baseline - rows[1].baseline) >= _MIN_GAP * rows[0].size


def _group_rows(page: Sequence[Line]) -> list[_Row]:
    """Return the rows of a page from top to bottom, without lines that are rotated differently than most."""
    turns = [line.turn for line in page]
    usual = max(set(turns), key=turns.count, default=0)
    upright = sorted(
        (place for place, line in enumerate(page) if line.turn == usual), key=lambda at: -page[at].baseline
    )
    rows: list[list[int]] = []
    for place in upright:
        if rows and page[rows[-1][0]].baseline - page[place].baseline < _HEIGHT_TOLERANCE:
            rows[-1].append(place)
        else:
            rows.append([place])
    return [
        _Row(page[row[0]].baseline, page[row[0]].size, tuple(row), " ".join(page[place].text for place in row))
        for row in (sorted(row, key=lambda place: page[place].left) for row in rows)
    ]


def _find_repeated_rows(edges: Sequence[_Edge], count: int) -> set[_Edge]:
    """Return rows that repeat on several pages at one height, with numbers that are equal or grow with the page.

    Args:
        edges: The rows near the top, or near the bottom, of all pages.
        count: Number of pages.
    """
    groups: defaultdict[str, list[_Edge]] = defaultdict(list)
    for edge in edges:
        groups[_NUMBER.sub("\0", edge.row.text)].append(edge)
    repeated: set[_Edge] = set()
    for group in groups.values():
        if len(group) >= _LEAST_PAGES:
            for rows in _group_by_numbers(group):
                is_constant = len({edge.row.text for edge in rows}) == 1
                repeated.update(_select_frequent_height(rows, min(_LEAST_SAME, count) if is_constant else _LEAST_PAGES))
    return repeated


def _group_by_numbers(group: Sequence[_Edge]) -> Iterable[list[_Edge]]:
    """Group rows of equal words by numbers that are equal or grow with the page."""
    numbers = [[_parse_page_number(number) for number in _NUMBER.findall(edge.row.text)] for edge in group]
    keys: list[list[int]] = [[] for _ in group]
    for column in zip(*numbers, strict=True):
        offsets = [value - edge.page for value, edge in zip(column, group, strict=True)]
        values_or_offsets = max(column, offsets, key=lambda values: Counter(values).most_common(1)[0][1])
        for key, value in zip(keys, values_or_offsets, strict=True):
            key.append(value)
    rows_by_key: defaultdict[tuple[int, ...], list[_Edge]] = defaultdict(list)
    for key, edge in zip(keys, group, strict=True):
        rows_by_key[tuple(key)].append(edge)
    return rows_by_key.values()


def _find_numbered_rows(edges: Sequence[_Edge]) -> set[_Edge]:
    """Return outermost rows that begin or end with a number that grows by one per page."""
    groups: defaultdict[tuple[bool, int], list[_Edge]] = defaultdict(list)
    for edge in edges:
        for pattern, text in ((_FIRST_NUMBER.match, edge.row.text), (_LAST_NUMBER.search, edge.row.text[-_TAIL:])):
            if number := pattern(text):
                groups[number[1].isdigit(), _parse_page_number(number[1]) - edge.page].append(edge)
    return {
        edge for group in groups.values() for edge in _select_frequent_height(list(dict.fromkeys(group)), _LEAST_SAME)
    }


def _parse_page_number(number: str) -> int:
    """Return the value of a decimal or Roman number."""
    if number.isdigit():
        return int(number)
    values = [_ROMAN_DIGITS[digit] for digit in number.lower()]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))


def _select_frequent_height(group: Sequence[_Edge], least: int) -> list[_Edge]:
    """Return the rows at the median height if most pages between the first and the last have one, else no rows.

    Args:
        group: The rows.
        least: Least number of pages with a row.
    """
    if len(group) < max(least, _LEAST_PAGES):
        return []
    height = median(edge.row.baseline for edge in group)
    level = [edge for edge in group if abs(edge.row.baseline - height) <= _HEIGHT_TOLERANCE]
    pages = sorted({edge.page for edge in level})
    step = 2 if len({page % 2 for page in pages}) == 1 else 1
    is_usual = len(pages) >= max(least, _LEAST_PAGES) and len(pages) >= _LEAST_SHARE * (
        (pages[-1] - pages[0]) / step + 1
    )
    return level if is_usual else []


def _find_rows_in_bands(edges: Sequence[_Edge], running: set[_Edge]) -> set[_Edge]:
    """Return the outermost rows at heights where nearly all rows are running headers, which may change by chapter."""
    bands: defaultdict[int, list[_Edge]] = defaultdict(list)
    for edge in edges:
        bands[round(edge.row.baseline)].append(edge)
    rows: set[_Edge] = set()
    for band in bands.values():
        running_count = sum(edge in running for edge in band)
        if running_count >= 2 * _LEAST_PAGES and running_count >= _LEAST_BAND * len(band):
            rows.update(band)
    return rows


class _Entry(NamedTuple):
    """A line that may be an entry of a table of contents or an index."""

    place: int
    line: Line
    number: int


def _remove_listings(pages: Pages) -> Pages:
    """Return the pages without the lines of tables of contents and indexes."""
    remaining = []
    follows_listing = False
    for number, page in enumerate(pages):
        entries = _find_listing_entries(page, number, len(pages), follows_listing)
        follows_listing = bool(entries)
        remaining.append(list(_remove_entries(page, entries)) if entries else page)
    return remaining


def _remove_entries(page: Sequence[Line], entries: Sequence[_Entry]) -> Iterator[Line]:
    """Yield the lines of a page outside its entries, without titles of listings and single letters."""
    first, last = entries[0].place, entries[-1].place
    title = next((place for place in range(first) if _LISTING_TITLE.fullmatch(page[place].text[:_TAIL])), first)
    if all(_PLAIN_ENTRY.search(line.text[-_TAIL:]) for line in page[title + 1 : first]):
        first = title  # entries of chapters often have no leaders
    for place, line in enumerate(page):
        is_title = len(line.text) <= _MAX_LETTER or _LISTING_TITLE.fullmatch(line.text[:_TAIL])
        if not (first <= place <= last or is_title):
            yield line


def _find_listing_entries(page: Sequence[Line], number: int, count: int, follows_listing: bool) -> list[_Entry]:
    """Return the entries of a page that is a table of contents or an index; an empty list for other pages.

    Args:
        page: The lines of the page.
        number: Page number, from 0.
        count: Number of pages.
        follows_listing: Whether the previous page is a table of contents or an index.
    """
    leader_entries = list(_match_lines(page, _LEADER_ENTRY.search))
    least = 1 if follows_listing else _LED_LEAST
    are_dense = len(leader_entries) >= least and len(leader_entries) >= _LED_SHARE * (
        leader_entries[-1].place - leader_entries[0].place + 1
    )
    are_ordered = _have_growing_numbers(leader_entries) or _are_alphabetical(leader_entries)
    if are_dense and are_ordered and _have_page_numbers(leader_entries, count):
        return leader_entries
    numbered = sorted(
        [
            *leader_entries,
            *_match_lines(page, lambda text: None if _LEADER_ENTRY.search(text) else _PLAIN_ENTRY.search(text)),
        ]
    )
    least = _LED_LEAST if follows_listing else _NUMBERED_LEAST
    if len(numbered) < max(least, _NUMBERED_SHARE * len(page)):
        return []
    if not _have_page_numbers(numbered, count):
        return []
    is_contents = number < max(_NUMBERED_LEAST, count // 5) and _have_growing_numbers(numbered)
    is_index = number > count // 2 and (
        follows_listing or (_are_alphabetical(numbered) and not _have_growing_numbers(numbered))
    )
    return numbered if is_contents or is_index else []


def _match_lines(page: Sequence[Line], find: Callable[[str], re.Match[str] | None]) -> Iterator[_Entry]:
    """Yield an entry for each line of a page whose end looks like a page number."""
    for place, line in enumerate(page):
        if match := find(line.text[-_TAIL:]):
            yield _Entry(place, line, _parse_page_number(match[1]))


def _have_page_numbers(entries: Sequence[_Entry], count: int) -> bool:
    """Return whether the numbers of the entries can be page numbers; data sheets have leaders too."""
    return sum(entry.number <= count for entry in entries) >= _LEAST_BAND * len(entries)


def _have_growing_numbers(entries: Sequence[_Entry]) -> bool:
    """Return whether the numbers of the entries grow, as in a table of contents."""
    pairs = [(entry.number, after.number) for entry, after in pairwise(entries)]
    return sum(number <= after for number, after in pairs) >= _MIN_ORDERED * len(pairs)


def _are_alphabetical(entries: Sequence[_Entry]) -> bool:
    """Return whether the names of the entries are in alphabetical order, as in an index."""
    by_margin = sorted(entries, key=lambda entry: round(entry.line.left))
    pairs = [
        pair
        for _, level in groupby(by_margin, key=lambda entry: round(entry.line.left))
        for pair in pairwise(_get_initial(entry.line.text) for entry in level)
    ]
    return sum(initial <= after for initial, after in pairs) >= _MIN_ORDERED * len(pairs)


def _get_initial(text: str) -> str:
    """Return the first letter of a text, case-folded; an empty string if it has no letter."""
    return next((character for character in text.casefold() if character.isalpha()), "")
