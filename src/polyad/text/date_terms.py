"""Search terms of dates: 22 June 2026, June 22, 2026, 22.06.26, 06/22/2026 and 2026-06-22 are one date.

A text has a term for the day, the month and the quarter of each date in it, so that "minutes of June 2026" finds a text
with "2026-06-09". A date without a year, as in a log book, has a term of its own. Names of months are those of all
languages of ``months.txt``, and of English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from typing import NamedTuple

from polyad.text.dates import read_months
from polyad.text.folding import build_letter_table
from polyad.text.validity import Interval, parse_period

DATE_MARK = "@"
"""The first character of these search terms, which no term of a word has."""

_ENGLISH = (
    "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sep/sept october/oct "
    "november/nov december/dec"
)
_DAY = r"(3[01]|[12]\d|0?[1-9])"
_MONTH = r"(1[0-2]|0?[1-9])"
_YEAR = r"([12]\d{3})"
_LETTERS = r"[^\s\d.,;:()/_@-]{3,}"
_WORD = r"([^\s\d.,;:()/_@-](?<![^\s\d.,;:()/_@-].)[^\s\d.,;:()/_@-]{2,13}+)"
_OF = r"(?:of\s|del?\s|d'|d\u2019)?"
_GAP = r"[\s.,_-]{1,3}"
_QUARTER_WORD = r"(?:quarter|quartal\w*|trimest\w+|kwartaa?l\w*|kvartal\w*|квартал\w*)"
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "erste": 1, "zweite": 2, "dritte": 3, "vierte": 4}

# Patterns begin with a class of characters, because the regex engine skips to these; a lookbehind follows them.
_YEAR_FIRST = (
    r"([12](?<![\d.]\d)\d{3})(?:([-/._]?)(1[0-2]|0[1-9])\2(3[01]|[12]\d|0[1-9])(?!\d)|-(1[0-2]|0[1-9])(?![\d-]))"
)
_YEAR_LAST = rf"(\d(?<![\d./-]\d)\d?)(?:([./-])(\d\d?)\2{_YEAR}|([./])(\d\d?)\5(\d\d))(?![\d/]|[.-]\d)"
_CHARACTERS = rf"{_YEAR}\s?[年년]\s?{_MONTH}\s?[月월](?:\s?{_DAY}\s?[日号號일])?"
_DAY_WORD = rf"(\d(?<![\d.,]\d)\d?)(?:st|nd|rd|th|er|º|ª|°)?[\s._-]{{0,2}}{_OF}{_WORD}(?:{_GAP}{_OF}{_YEAR}(?!\d))?"
_WORD_FIRST = (
    rf"{_WORD}\.?{_GAP}(?:{_OF}{_YEAR}(?!\d)|(?:the\s)?{_DAY}(?:st|nd|rd|th)?(?![\d.:%]\d|\w)(?:,?\s{_YEAR}(?!\d))?)"
)
_QUARTERS = (
    rf"(?<!\w)q([1-4])[\s/_-]{{0,3}}{_OF}{_YEAR}(?!\d)|(?<!\d){_YEAR}[\s/_-]{{0,3}}q([1-4])(?!\w)"
    rf"|(?<!\w)([1-4]|{'|'.join(_ORDINALS)})(?:st|nd|rd|th|r|s|er|e|º|\.)?[\s-]{_QUARTER_WORD}\s{_OF}{_YEAR}(?!\d)"
)
_ONLY_YEAR = (  # no part of a code such as C-2023-006
    r"(?<!\d)(?<!\d[-_/.,])(?<![\s/_-][^\W\d_][-_])((?:19|20)\d\d)(?:[-_/](?:(?:19|20)\d\d|\d\d))?(?:年?版)?"
    r"(?!\d|[-_/.,]\d|[^\W\d_](?<![\u2e80-\uffff]))"
)
_QUARTER_HINTS = ("q1", "q2", "q3", "q4", "quart", "trimest", "kwarta", "kvarta", "кварта")
_CENTURY = 2000
"""The century of a year of two digits."""


class _Date(NamedTuple):
    """A date, of which the year, or the day, or the year and the day may be unknown (0)."""

    year: int
    month: int
    day: int = 0

    @property
    def is_valid(self) -> bool:
        """Whether the calendar has this date; a day without a year may be 29 February."""
        try:
            date(self.year or 2000, self.month, self.day or 1)
        except ValueError:
            return False
        return True


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Return a compiled regex, cached by ``pattern``, because compiling at import would take milliseconds."""
    return re.compile(pattern)


def find_date_terms(text: str) -> Iterator[str]:
    """Yield the search terms of each date in a text: of its day, month and quarter.

    >>> list(find_date_terms("Released on 22 June 2026, Q3 2026."))
    ['@2026-06', '@2026-q2', '@-06', '@2026-06-22', '@-06-22', '@2026-q3']
    """
    folded = _fold(text)
    for _, _, (year, month, day) in _find_dates(folded):
        if year:
            yield from (f"@{year}-{month:02}", f"@{year}-q{(month + 2) // 3}", f"@-{month:02}")
            if day:
                yield from (f"@{year}-{month:02}-{day:02}", f"@-{month:02}-{day:02}")
        else:
            yield f"@?-{month:02}-{day:02}"
    yield from (f"@{year}-q{quarter}" for _, _, year, quarter in _find_quarters(folded))


def find_date_references(question: str) -> Iterator[str]:
    """Yield the search terms for each date, month or quarter in a question.

    >>> list(find_date_references("the minutes of May and 06/22/2026, in Q2 2026"))
    ['@2026-06-22', '@?-06-22', '@2026-q2', '@-05']
    """
    folded = _fold(question)
    dates = [interval for _, _, interval in _find_dates(folded)]
    for year, month, day in dates:
        if day:
            yield from (f"@{year or ''}-{month:02}-{day:02}", f"@?-{month:02}-{day:02}")
        else:
            yield f"@{year}-{month:02}"
    yield from (f"@{year}-q{quarter}" for _, _, year, quarter in _find_quarters(folded))
    months = {month for _, month, _ in dates}
    for match in _compile(rf"(?<!\w)(?:of|in|for|since|from|until|by|im|vom|en|de|du|w|v|в|за)\s{_WORD}").finditer(
        folded
    ):
        month = _list_months().get(match[1], 0)
        if month and month not in months:
            yield f"@-{month:02}"


def resolve_relative_dates(question: str, today: date) -> dict[str, str]:
    """Return each relative date of a question, such as "last March", with the date that it means on the day ``today``.

    >>> resolve_relative_dates("mails of yesterday and last March", date(2026, 6, 1))
    {'yesterday': '2026-05-31', 'last March': '2026-03'}
    """
    resolved = {}
    for match in _compile(
        r"(?i)(?<!\w)(?:(?:(last|this|next)\s([^\W\d_]{3,9}))|yesterday|today|tomorrow)(?!\w)"
    ).finditer(question):
        if value := _resolve(match[0].lower(), (match[1] or "").lower(), (match[2] or "").lower(), today):
            resolved[match[0]] = value
    return resolved


def _resolve(phrase: str, which: str, unit: str, today: date) -> str:
    """Return the day, month, quarter or year of a relative date; empty if ``unit`` is no period of time."""
    if not which:
        day = today + timedelta(days={"yesterday": -1, "today": 0, "tomorrow": 1}[phrase])
        return day.isoformat()
    step = {"last": -1, "this": 0, "next": 1}[which]
    if unit == "year":
        return str(today.year + step)
    if unit == "month":
        year, month = divmod(12 * today.year + today.month - 1 + step, 12)
        return f"{year}-{month + 1:02}"
    if unit == "quarter":
        year, quarter = divmod(4 * today.year + (today.month - 1) // 3 + step, 4)
        return f"Q{quarter + 1} {year}"
    month = _parse_english_months().get(unit, 0)
    if not month:
        return ""
    years = {
        "last": today.year - (month >= today.month),
        "this": today.year,
        "next": today.year + (month <= today.month),
    }
    return f"{years[which]}-{month:02}"


def find_periods(text: str) -> Iterator[tuple[int, int, Interval]]:
    """Yield the span and the period of each date with a year, and of each month, quarter and year, in text order.

    >>> [text[start:end] for text in ["fees 2024, q3 2025, 1 May 2026"] for start, end, _ in find_periods(text)]
    ['2024', 'q3 2025', '1 May 2026']
    """
    folded = _fold(text)
    if not _compile(r"\d{4}").search(folded):
        return
    periods = [
        (start, end, [f"{year}-{month:02}" + (f"-{day:02}" if day else "")])
        for start, end, (year, month, day) in _find_dates(folded)
        if year
    ]
    for start, end, year, quarter in _find_quarters(folded):
        periods.append((start, end, [f"{year}-{3 * int(quarter) - 2:02}", f"{year}-{3 * int(quarter):02}"]))
    periods += ((*match.span(), [match[1]]) for match in _compile(_ONLY_YEAR).finditer(folded))
    last = 0
    for start, end, bounds in sorted(periods, key=lambda each: (each[0], -each[1])):
        if start >= last:
            yield start, end, Interval(*(parse_period("date", bounds[place])[place] for place in (0, -1)))
            last = end


def _fold(text: str) -> str:
    lower = text.lower()
    return lower if lower.isascii() else lower.translate(build_letter_table())


def _find_dates(folded: str) -> Iterator[tuple[int, int, _Date]]:
    """Yield the span of each date in a folded text, and the date; of a date such as 06/09/2026, both readings."""
    if not _compile(r"\d").search(folded):
        return
    for match in _compile(_YEAR_FIRST).finditer(folded):
        yield from _list_valid(match, (match[1], match[3] or match[5], match[4]))
    for match in _compile(_YEAR_LAST).finditer(folded):
        first, separator, second, year, short, other, short_year = match.groups()
        readings = [(year or _CENTURY + int(short_year), second or other, first)]
        if "/" in (separator, short):
            readings.append((readings[0][0], first, second or other))
        yield from dict.fromkeys(_list_valid(match, *readings))
    if not folded.isascii():
        yield from (
            each for match in _compile(_CHARACTERS).finditer(folded) for each in _list_valid(match, match.groups())
        )
    if not _list_months().keys().isdisjoint(_compile(_LETTERS).findall(folded)):  # the patterns take longer
        yield from _find_named_months(folded)


def _find_named_months(folded: str) -> Iterator[tuple[int, int, _Date]]:
    """Yield the span of each date in a folded text whose month is a word, and the date."""
    months, spans = _list_months(), set[int]()
    for match in _compile(_DAY_WORD).finditer(folded):
        if match[2] in months:
            spans.update(range(match.start(2), match.end()))
            yield from _list_valid(match, (match[3], months[match[2]], match[1]))
    for match in _compile(_WORD_FIRST).finditer(folded):
        if match[1] in months and match.start() not in spans:
            yield from _list_valid(match, (match[2] or match[4], months[match[1]], match[3]))


def _list_valid(match: re.Match[str], *dates: tuple[str | int | None, ...]) -> list[tuple[int, int, _Date]]:
    """Return those (year, month, day) that the calendar has, with the span of the match."""
    parsed = (_Date(*(int(part or 0) for part in parts)) for parts in dates)
    return [(*match.span(), each) for each in parsed if each.is_valid]


def _find_quarters(folded: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield the span, the year and the number of each quarter in a folded text."""
    if not any(hint in folded for hint in _QUARTER_HINTS):
        return
    for match in _compile(_QUARTERS).finditer(folded):
        quarter, year, year_before, quarter_after, ordinal, year_of_ordinal = match.groups()
        number = quarter or quarter_after or _ORDINALS.get(ordinal, ordinal)
        yield *match.span(), year or year_before or year_of_ordinal, str(number)


@cache
def _list_months() -> Mapping[str, int]:
    """Return the number of each month by its folded names in all languages."""
    return {_fold(name): number for name, number in (*read_months().items(), *_parse_english_months().items())}


@cache
def _parse_english_months() -> Mapping[str, int]:
    return {name: number for number, names in enumerate(_ENGLISH.split(), 1) for name in names.split("/")}
