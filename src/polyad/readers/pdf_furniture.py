"""Removes page furniture from a PDF: running headers and footers, tables of contents, indexes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from polyad.readers.pdf_lines import Line, get_body_style

Pages = list[list[Line]]

_ROWS = 2
"""Rows at the top and at the bottom of a page that may be a running head or foot."""

_APART = 1.5
"""Times the size of the type: how far a running head is from the text; lines of a paragraph are nearer."""

_LARGEST = 1.15
"""Times the size of the body: what is larger is a heading, though slides one after another have the same."""

_SAME_HEIGHT = 2.0
"""Points by which the height of a running head varies from page to page."""

_LEAST_PAGES, _LEAST_SAME = 3, 4
"""Pages on which a line comes again before it is taken for a running head: with a number that grows as the pages do,
and without one, where it must be on all pages if they are fewer."""

_LEAST_SHARE = 0.6
"""Of the pages from its first to its last, or of every second if it is on such alone; some begin a chapter."""

_LEAST_BAND = 0.9
"""Of the pages with a line at some height, those on which it is a running head, for it to be one on all."""

_NUMBER = re.compile(r"\d{1,9}|(?<!\w)[ivxlcIVXLC]{1,8}(?!\w)")
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_FIRST_NUMBER = re.compile(r"\W*(\d{1,5}|[ivxlcIVXLC]{1,8})(?!\w)")
_LAST_NUMBER = re.compile(r"(?:^|\s)(\d{1,5}|[ivxlcIVXLC]{1,8})\W*$")

_LEAST_COUNTING = 0.1
"""Share of all pages whose number stands in a row with words, for it to be one; footnotes have numbers too."""

_TAIL = 60
"""Characters at the end of a line in which the number of a page is looked for."""

_LED = re.compile(r"(?:[.…·_] ?){4} *(?:\w{1,2}[-.])?(\d{1,5}|[ivxlcIVXLC]{1,8})(?:, *\d{1,5})*\W*$")
"""A line of a table of contents or an index whose number stands behind leaders."""

_NUMBERED = re.compile(
    r"[^\d\s.,\u2013-]\W*[\s,] *(\d{1,5})(?:[-\u2013]\d{1,5})?(?:, *\d{1,5}(?:[-\u2013]\d{1,5})?)*[,;]?$"
)
"""The same without leaders."""

_LISTING_TITLE = re.compile(
    r"(?:(?:short |brief |detailed )?(?:table of )?contents|(?:\w+ ){0,3}index|list of (?:figures|tables))\W*",
    re.IGNORECASE,
)

_LED_SHARE, _LED_LEAST = 0.4, 4
_NUMBERED_SHARE, _NUMBERED_LEAST = 0.6, 8
"""Share of the lines that are entries, and how many, from which on they are a list of pages: of the lines from the
first entry to the last where these have leaders, of all on the page where they have none."""

_FIRST_LINES = 2
"""Lines at the beginning of a page among which a list of pages that began before goes on."""

_MANY, _LEAST_SEVERAL = 10, 0.2
_SEVERAL = re.compile(r"\d, *\d+\W*$")
"""How an entry of an index ends that has several numbers."""

_LETTER = 2
"""Characters of the letter above the entries of an index that begin with it, and a little more."""

_IN_ORDER = 0.8
"""Share of neighbouring entries that are in the order of a table of contents or of an index; not all, for columns."""


class _Row(NamedTuple):
    """Lines of a page on one baseline, as positions in the page's list of lines."""

    baseline: float
    size: float
    places: tuple[int, ...]
    text: str


class _Edge(NamedTuple):
    """A row near the top or bottom of a page; the outermost row has ``depth`` 0."""

    page: int
    depth: int
    row: _Row


def remove_furniture(pages: Pages) -> Pages:
    """Return the pages without running headers and footers, page numbers, tables of contents and indexes.

    If nothing were left, all is kept.
    """
    running = _running(pages)
    text = _without_listings(
        [
            [line for place, line in enumerate(page) if (number, place) not in running]
            for number, page in enumerate(pages)
        ]
    )
    return text if any(text) else pages


def _running(pages: Pages) -> set[tuple[int, int]]:
    """Return running headers and footers as pairs of page and line position."""
    found: set[tuple[int, int]] = set()
    largest = _LARGEST * get_body_style(pages).size
    from_top = [_rows(page) for page in pages]
    for rows_of_pages in (from_top, [rows[::-1] for rows in from_top]):
        edges = [
            _Edge(page, depth, row)
            for page, rows in enumerate(rows_of_pages)
            for depth, row in enumerate(_margin(rows))
            if row.size <= largest
        ]
        chosen = _repeated(edges, len(pages)) | _counting(edges, len(pages))
        chosen |= _in_bands(edges, chosen)
        found.update((edge.page, place) for edge in chosen for place in edge.row.places)
    return found


def _margin(rows: Sequence[_Row]) -> Sequence[_Row]:
    """Return the outermost rows of a page that a gap separates from the other rows.

    Args:
        rows: All of the page, from the outermost.
    """
    for depth in range(min(_ROWS, len(rows) - 1), 0, -1):
        outer, inner = rows[depth - 1], rows[depth]
        if abs(outer.baseline - inner.baseline) >= _APART * outer.size:
            return rows[:depth]
    return rows if len(rows) == 1 else ()


def _rows(page: Sequence[Line]) -> list[_Row]:
    """Return the rows of a page from top to bottom, without lines that are rotated differently than most."""
    turns = [line.turn for line in page]
    usual = max(set(turns), key=turns.count, default=0)
    upright = sorted(
        (place for place, line in enumerate(page) if line.turn == usual), key=lambda at: -page[at].baseline
    )
    rows: list[list[int]] = []
    for place in upright:
        if rows and page[rows[-1][0]].baseline - page[place].baseline < _SAME_HEIGHT:
            rows[-1].append(place)
        else:
            rows.append([place])
    return [_row(page, sorted(row, key=lambda place: page[place].left)) for row in rows]


def _row(page: Sequence[Line], places: Sequence[int]) -> _Row:
    return _Row(
        page[places[0]].baseline, page[places[0]].size, tuple(places), " ".join(page[place].text for place in places)
    )


def _repeated(edges: Sequence[_Edge], count: int) -> set[_Edge]:
    """Return rows that repeat on several pages at one height, with numbers that are equal or grow with the page.

    Args:
        edges: The rows.
        count: Of all pages.
    """
    groups: defaultdict[str, list[_Edge]] = defaultdict(list)
    for edge in edges:
        groups[_NUMBER.sub("\0", edge.row.text)].append(edge)
    found: set[_Edge] = set()
    for group in groups.values():
        if len(group) >= _LEAST_PAGES:
            for same in _by_numbers(group):
                is_same = len({edge.row.text for edge in same}) == 1
                found.update(_on_most_pages(same, min(_LEAST_SAME, count) if is_same else _LEAST_PAGES))
    return found


def _by_numbers(group: Sequence[_Edge]) -> Iterable[list[_Edge]]:
    """Group rows of equal words by numbers that are equal or grow with the page."""
    numbers = [[_value(number) for number in _NUMBER.findall(edge.row.text)] for edge in group]
    keys: list[list[int]] = [[] for _ in group]
    for column in zip(*numbers, strict=True):
        grown = [value - edge.page for value, edge in zip(column, group, strict=True)]
        chosen = max(column, grown, key=lambda values: Counter(values).most_common(1)[0][1])
        for key, value in zip(keys, chosen, strict=True):
            key.append(value)
    same: defaultdict[tuple[int, ...], list[_Edge]] = defaultdict(list)
    for key, edge in zip(keys, group, strict=True):
        same[tuple(key)].append(edge)
    return same.values()


def _counting(edges: Sequence[_Edge], count: int) -> set[_Edge]:
    """Return outermost rows that begin or end with a number that grows by one per page."""
    groups: defaultdict[tuple[bool, int], list[_Edge]] = defaultdict(list)
    for edge in edges:
        for pattern, text in ((_FIRST_NUMBER.match, edge.row.text), (_LAST_NUMBER.search, edge.row.text[-_TAIL:])):
            if edge.depth == 0 and (number := pattern(text)):
                groups[number[1].isdigit(), _value(number[1]) - edge.page].append(edge)
    least = max(_LEAST_SAME, _LEAST_COUNTING * count)
    return {edge for group in groups.values() for edge in _on_most_pages(list(dict.fromkeys(group)), least)}


def _value(number: str) -> int:
    if number.isdigit():
        return int(number)
    values = [_ROMAN_DIGITS[digit] for digit in number.lower()]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))


def _on_most_pages(group: Sequence[_Edge], least: float) -> list[_Edge]:
    """Return the rows at the most frequent height, if most pages between the first and the last have one.

    Args:
        group: The rows.
        least: On how many pages there must be one.
    """
    if len(group) < max(least, _LEAST_PAGES):
        return []
    height = median(edge.row.baseline for edge in group)
    level = [edge for edge in group if abs(edge.row.baseline - height) <= _SAME_HEIGHT]
    pages = sorted({edge.page for edge in level})
    step = 2 if len({page % 2 for page in pages}) == 1 else 1
    is_usual = len(pages) >= max(least, _LEAST_PAGES) and len(pages) >= _LEAST_SHARE * (
        (pages[-1] - pages[0]) / step + 1
    )
    return level if is_usual else []


def _in_bands(edges: Sequence[_Edge], running: set[_Edge]) -> set[_Edge]:
    """Return outermost rows at a height where nearly all rows are running headers, such as those of short chapters."""
    bands: defaultdict[int, list[_Edge]] = defaultdict(list)
    for edge in edges:
        if edge.depth == 0:
            bands[round(edge.row.baseline)].append(edge)
    found: set[_Edge] = set()
    for band in bands.values():
        known = sum(edge in running for edge in band)
        if known >= 2 * _LEAST_PAGES and known >= _LEAST_BAND * len(band):
            found.update(band)
    return found


class _Entry(NamedTuple):
    """A line that may be an entry of a table of contents or an index."""

    place: int
    line: Line
    number: int


def _without_listings(pages: Pages) -> Pages:
    """Return the pages without the lines of tables of contents and indexes."""
    kept = []
    goes_on = False
    for number, page in enumerate(pages):
        entries = _entries(page, number, len(pages), goes_on)
        goes_on = bool(entries)
        kept.append(list(_unlisted(page, entries)) if entries else page)
    return kept


def _unlisted(page: Sequence[Line], entries: Sequence[_Entry]) -> Iterator[Line]:
    """Return the lines before the first and after the last entry, without titles and single letters."""
    first, last = entries[0].place, entries[-1].place
    title = next((place for place in range(first) if _LISTING_TITLE.fullmatch(page[place].text[:_TAIL])), first)
    if all(_NUMBERED.search(line.text[-_TAIL:]) for line in page[title + 1 : first]):
        first = title  # entries of chapters often have no leaders
    for place, line in enumerate(page):
        is_title = len(line.text) <= _LETTER or _LISTING_TITLE.fullmatch(line.text[:_TAIL])
        if not (first <= place <= last or is_title):
            yield line


def _entries(page: Sequence[Line], number: int, count: int, goes_on: bool) -> list[_Entry]:
    """Return the entries of a page that is a table of contents or an index, else nothing.

    Args:
        page: Its lines.
        number: The page's, from 0.
        count: Of all pages.
        goes_on: Whether the page before it is one.
    """
    led = list(_matching(page, _LED.search))
    least = 1 if goes_on and led and led[0].place <= _FIRST_LINES else _LED_LEAST
    if len(led) >= least and len(led) >= _LED_SHARE * (led[-1].place - led[0].place + 1):
        is_contents = _are_pages(led, count) and (_grow(led) or _are_sorted(led))
        if is_contents or (number > count // 2 and _are_listed(led)):
            return led
    numbered = sorted([*led, *_matching(page, lambda text: None if _LED.search(text) else _NUMBERED.search(text))])
    least = _LED_LEAST if goes_on else _NUMBERED_LEAST
    if len(numbered) < max(least, _NUMBERED_SHARE * len(page)):
        return []
    if not _are_pages(numbered, count):
        return []
    is_contents = number < max(_NUMBERED_LEAST, count // 5) and _grow(numbered)
    is_index = number > count // 2 and (goes_on or (_are_sorted(numbered) and not _grow(numbered)))
    return numbered if is_contents or is_index else []


def _matching(page: Sequence[Line], find: Callable[[str], re.Match[str] | None]) -> Iterator[_Entry]:
    for place, line in enumerate(page):
        if match := find(line.text[-_TAIL:]):
            yield _Entry(place, line, _value(match[1]))


def _are_pages(entries: Sequence[_Entry], count: int) -> bool:
    """Return whether the numbers of the entries can be page numbers; data sheets have leaders too."""
    return sum(entry.number <= count for entry in entries) >= _LEAST_BAND * len(entries)


def _are_listed(entries: Sequence[_Entry]) -> bool:
    """Return whether the entries are many, and sorted or with several numbers each, as in an index of code."""
    several = sum(_SEVERAL.search(entry.line.text[-_TAIL:]) is not None for entry in entries)
    return len(entries) >= _MANY and (several >= _LEAST_SEVERAL * len(entries) or _are_sorted(entries))


def _grow(entries: Sequence[_Entry]) -> bool:
    """Return whether the numbers of the entries grow, as in a table of contents."""
    pairs = [(entry.number, after.number) for entry, after in pairwise(entries)]
    return sum(number <= after for number, after in pairs) >= _IN_ORDER * len(pairs)


def _are_sorted(entries: Sequence[_Entry]) -> bool:
    """Return whether the names of the entries are in alphabetical order, as in an index."""
    by_margin = sorted(entries, key=lambda entry: round(entry.line.left))
    pairs = [
        pair
        for _, level in groupby(by_margin, key=lambda entry: round(entry.line.left))
        for pair in pairwise(_initial(entry.line.text) for entry in level)
    ]
    return sum(initial <= after for initial, after in pairs) >= _IN_ORDER * len(pairs)


def _initial(text: str) -> str:
    return next((character for character in text.casefold() if character.isalpha()), "")
