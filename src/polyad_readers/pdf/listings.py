"""Finds the tables of contents and alphabetical indexes of a PDF."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from polyad.text.page_labels import parse_page_number
from polyad_readers.lines.lines import Line

_TAIL = 60
"""Characters at the end of a line in which a page number is looked for."""

_LEADER_ENTRY = re.compile(r"(?:[.…·_] ?){4} *(?:\w{1,2}[-.])?(\d{1,5}|[ivxlcIVXLC]{1,8})(?:, *\d{1,5})*\W*$")
"""An entry of a table of contents or an index with leaders (dots) before the page number."""

_PLAIN_ENTRY = re.compile(
    r"[^\d\s.,\u2013-]\W*[\s,] *(\d{1,5})(?:[-\u2013]\d{1,5})?(?:, *\d{1,5}(?:[-\u2013]\d{1,5})?)*[,;]?$"
)
"""An entry of a table of contents or an index without leaders."""

_ROMAN_DIGITS = frozenset("ivxlcIVXLC")
"""Last characters of entries, beside digits; other lines are not searched, which saves half of the time."""

_CONTENTS = r"""
(?:short |brief |detailed )?(?:table of )?contents
list of (?:figures|tables|examples|illustrations|listings|equations)|inhalt|inhaltsverzeichnis|inhaltsübersicht
(?:abbildungs|tabellen|beispiel)verzeichnis|liste der (?:abbildungen|tabellen|beispiele)|sommaire|table des matières
table des figures|liste des (?:figures|tableaux)|índice(?: general| de (?:figuras|tablas|tabelas|cuadros))?
contenidos?|tabla de contenidos?|sumario|(?:indice|lista|elenco) delle (?:figure|tabelle)|indice(?: generale)?
sommario|sumário|conteúdo|lista de (?:figuras|tablas|tabelas|cuadros)|índex|taula de continguts|sumari|inhoud
inhoudsopgave|innehåll|innehållsförteckning|indhold|indholdsfortegnelse|innhold|innholdsfortegnelse|efnisyfirlit
sisällys|sisällysluettelo|sisukord|saturs|turinys|spis (?:treści|rysunków|tabel)|obsah|tartalom|tartalomjegyzék
cuprins|sadržaj|vsebina|kazalo|содержание|оглавление|зміст|съдържание|садржај|περιεχόμενα|πίνακας περιεχομένων
i\u0307?çindekiler|المحتويات|(?:جدول|قائمة) المحتويات|فهرس(?:ت مطالب)?|תוכן(?: ה?עניינים)?|विषय[- ]?सूची|สารบัญ
mục lục|daftar isi|차\s*례|목\s*차|[图圖図表]?\s*目\s*[录錄次]|[図表]の?一覧|(?:插图|表格)清单
список (?:таблиц|иллюстраций)
"""
_INDEX = r"""
(?:[\w,-]+ ){0,5}index|index of (?:[\w,-]+ ?){1,5}|(?:\w+ )?register|stichwortverzeichnis|sachverzeichnis
sachregister|personenregister|namensverzeichnis|index des \w+|índice (?:alfabético|analítico|remissivo|onomástico)
indice analitico|trefwoordenregister|sakregister|stikordsregister|stikkordregister|hakemisto|indeks|skorowidz|rejstřík
(?:név- és )?tárgymutató|(?:предметный |алфавитный )?указатель|покажчик|ευρετήριο|dizin|索\s*引|찾아보기|색인|ดัชนี
chỉ mục|الكشاف|מפתח
"""
_NUMBERING = r"(?:(?:[A-Z]|\d{1,3})(?:\.\d{1,3})*\.? +)?"
_LISTING_TITLE, _INDEX_TITLE = (
    re.compile(rf"{_NUMBERING}(?:{'|'.join(titles.split(chr(10))[1:-1])})\W{{0,3}}", re.IGNORECASE)
    for titles in (_CONTENTS + _INDEX[1:], _INDEX)
)
"""Titles of tables of contents and indexes in forty languages, and those of indexes alone."""

_LED_SHARE, _LED_LEAST = 0.4, 4
_NUMBERED_SHARE, _NUMBERED_LEAST = 0.6, 8
"""Least share and number of entries of a listing: among the lines from the first to the last entry if entries have
leaders, among all lines of the page otherwise."""

_MAX_GAP = 4
"""Most lines without a page number between two entries of a listing: wrapped entries and titles of parts."""

_MAX_TITLE_DISTANCE = 8
"""Lines from the title of a listing to its first entry with a page number: entries of chapters may have none."""

_MAX_TITLE = 60
"""Characters of the longest title of a listing."""

_MAX_LETTER = 2
"""Characters of a line with the initial letter of the following index entries."""

_MIN_ORDERED = 0.8
"""Least share of neighbouring entries in order; columns break the order in places."""

_MIN_PAGE_NUMBERS = 0.9
"""Least share of entries whose number can be a page number; data sheets have leaders too."""

_MIN_HEADING_SHARE, _MIN_PAGES = 0.5, 3
"""Least share of entries that are lines of the pages that they name, in a listing without a title, and least number of
these pages."""

_MIN_HEADING_LETTERS = 3
"""Letters and digits of the shortest heading that is compared with entries."""

_MAX_HEADING_LINE = 150
"""Characters of the longest line that can be the heading of an entry."""

_LEADING_NUMBER = re.compile(r"(?:\w+ )?\d[\d.]*\W*|\W+")
"""The number of a heading or a caption: "2.1" or "Table 3:"."""


class _Entry(NamedTuple):
    """A line of a page that may be an entry of a table of contents or an index."""

    place: int
    text: str
    number: int
    is_led: bool


def find_listings(pages: Sequence[Sequence[Line]]) -> set[tuple[int, int]]:
    """Return the lines of tables of contents and indexes, as pairs (page index, line index).

    A list with page numbers is one if its title says so, if it continues one on the page before, or if its entries are
    lines on the pages that they name. Price lists, statistics and worksheets look the same otherwise.
    """
    return set(_ListingFinder(pages).find())


class _ListingFinder:
    """Finds the listings of a PDF, from the first to the last page."""

    def __init__(self, pages: Sequence[Sequence[Line]]) -> None:
        self._pages = pages
        self._previous: tuple[int, _Entry] | None = None  # page index and last entry of the listing before

    def find(self) -> Iterator[tuple[int, int]]:
        """Yield the (page index, line index) of each line of a listing."""
        for index, page in enumerate(self._pages):
            for title, entries in self._find_candidates(page, index):
                if self._is_listing(index, entries, page[title].text if title is not None else ""):
                    self._previous = index, entries[-1]
                    yield from ((index, place) for place in _list_places(page, title, entries))

    def _find_candidates(self, page: Sequence[Line], page_index: int) -> Iterator[tuple[int | None, list[_Entry]]]:
        """Yield the lists of a page whose lines end in page numbers, each with the index of the line of its title."""
        follows = self._previous is not None and self._previous[0] >= page_index - 1
        for title, entries in _split_page(page):
            led = [entry for entry in entries if entry.is_led]
            led_lines = led[-1].place - led[0].place + 1 if led else 0
            lines = entries[-1].place - entries[0].place + 1
            least = _LED_LEAST if follows or title is not None else _NUMBERED_LEAST
            are_dense = len(entries) >= max(least, _NUMBERED_SHARE * lines)
            if (are_dense or len(led) >= max(1 if follows else _LED_LEAST, _LED_SHARE * led_lines)) and (
                sum(entry.number <= len(self._pages) for entry in entries) >= _MIN_PAGE_NUMBERS * len(entries)
            ):
                yield title, entries

    def _is_listing(self, page_index: int, entries: Sequence[_Entry], title: str) -> bool:
        """Return whether a list with page numbers is a table of contents or an index, for one of three reasons."""
        are_growing = _are_ordered([entry.number for entry in entries])
        is_late = page_index > len(self._pages) // 2
        if title and (are_growing or (is_late and (_INDEX_TITLE.fullmatch(title) or _have_ordered_initials(entries)))):
            return True
        if self._previous and self._previous[0] >= page_index - 1:
            continues = entries[0].number >= self._previous[1].number
            if (are_growing and continues) or (is_late and (not are_growing or _have_ordered_initials(entries))):
                return True
        return self._are_headings(page_index, entries)

    def _are_headings(self, page_index: int, entries: Sequence[_Entry]) -> bool:
        """Return whether most entries begin lines of the pages that they name, all shifted by one number of pages."""
        pages_by_shift: defaultdict[int, list[int]] = defaultdict(list)
        for words, number in {(_normalize(entry.text), entry.number) for entry in entries}:
            for page in self._pages_by_line.get(words, set()) - {page_index}:
                pages_by_shift[page - number].append(page)
        most_pages = max(pages_by_shift.values(), key=len, default=[])
        return len(most_pages) >= _MIN_HEADING_SHARE * len(entries) and len(set(most_pages)) >= _MIN_PAGES

    @cached_property
    def _pages_by_line(self) -> dict[str, set[int]]:
        """Return the page indexes of each line that can be a heading, by its words and by its first word."""
        pages: defaultdict[str, set[int]] = defaultdict(set)
        for index, page in enumerate(self._pages):
            for line in page:
                if len(line.text) <= _MAX_HEADING_LINE:
                    for words in {_normalize(line.text), _normalize(line.text.partition(" ")[0])}:
                        if len(words) >= _MIN_HEADING_LETTERS:
                            pages[words].add(index)
        return pages


def _list_places(page: Sequence[Line], title: int | None, entries: Sequence[_Entry]) -> Iterator[int]:
    """Yield the line indices of a listing on a page: title, initial letters and entries."""
    first, last = entries[0].place, entries[-1].place
    if title is not None:
        yield title
    while first > 0 and len(page[first - 1].text) <= _MAX_LETTER:
        first -= 1
    yield from range(first, last + 1)


def _split_page(page: Sequence[Line]) -> Iterator[tuple[int | None, list[_Entry]]]:
    """Yield the runs of entries of a page, each with the index of the line before that is a listing's title, or None.

    Runs are apart by titles or by more than some lines without page numbers.
    """
    all_entries = {place: entry for place, line in enumerate(page) if (entry := _parse_entry(place, line.text))}
    title: int | None = None
    run: list[_Entry] = []
    for place, line in enumerate(page) if all_entries else ():
        is_title = len(line.text) <= _MAX_TITLE and _LISTING_TITLE.fullmatch(line.text) is not None
        is_far = place - (run[-1].place if run else place) > _MAX_GAP + 1
        if run and (is_title or is_far):
            yield title, run
            title, run = None, []
        if is_title:
            title = place
        elif entry := all_entries.get(place):
            if not run and title is not None and place - title > _MAX_TITLE_DISTANCE:
                title = None
            run.append(entry)
    if run:
        yield title, run


def _parse_entry(place: int, text: str) -> _Entry | None:
    """Return the entry in a line that looks like "Chapter 2 .... 17" (ends in a page number); None for others."""
    last = next(filter(str.isalnum, reversed(text)), "-")
    if not last.isdigit() and last not in _ROMAN_DIGITS:
        return None
    tail = text[-_TAIL:]
    led = _LEADER_ENTRY.search(tail)
    match = led or _PLAIN_ENTRY.search(tail)
    if match is None:
        return None
    words = text[: len(text) - len(tail) + match.start() + 1]
    return _Entry(place, words, parse_page_number(match[1]), led is not None)


def _have_ordered_initials(entries: Sequence[_Entry]) -> bool:
    """Return whether most entries are in alphabetical order."""
    return _are_ordered([ord(next(filter(str.isalpha, entry.text.casefold()), "\0")) for entry in entries])


def _are_ordered(values: Sequence[int]) -> bool:
    """Return whether most values in a list are greater than or equal to the preceding value."""
    pairs = list(pairwise(values))
    return sum(value <= after for value, after in pairs) >= _MIN_ORDERED * len(pairs)


def _normalize(text: str) -> str:
    """Return the letters and digits of a text after its leading number, case-folded, for comparing lines."""
    number = _LEADING_NUMBER.match(text)
    return "".join(filter(str.isalnum, text[number.end() if number else 0 :].casefold()))
