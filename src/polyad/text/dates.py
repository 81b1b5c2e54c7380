"""Dates as other languages than English write them: 2021年3月5日, 5. März 2021, 5 de marzo de 2021, ۵ مارس ۲۰۲۱.

A date has a year with four digits in any script. Years are those of the common era.
"""

# ruff: noqa: RUF001, RUF002  digits and letters of other scripts are what is read

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from polyad.text.files import read_package_file
from polyad.text.folding import build_letter_table

_CHARACTER_DATE = re.compile(
    r"(?<!\d)(?P<year>\d{4})\s?[年년](?:\s?(?P<month>1[0-2]|0?[1-9])\s?[月월](?:\s?(?P<day>3[01]|[12]\d|0?[1-9])\s?[日号號일])?)?"
)
_ENGLISH_MONTHS = {
    "april",
    "august",
    "september",
    "november",
    "december",
    "january",
    "february",
    "march",
    "may",
    "june",
    "july",
}


def find_foreign_dates(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of dates in the manner of other languages than English, and of years in other digits."""
    for pattern in (_CHARACTER_DATE, _compile_month_date()):
        yield from (match.span() for match in pattern.finditer(text) if _format_iso(match))


def convert_foreign_date(value: str) -> str:
    """Return a date of another language than English in the form of ISO 8601; any other text unchanged.

    >>> [convert_foreign_date(value) for value in ("2021年3月5日", "5. März 2021", "mars 2021", "۵ مارس ۲۰۲۱", "5 mg")]
    ['2021-03-05', '2021-03-05', '2021-03', '2021-03-05', '5 mg']
    """
    match = _CHARACTER_DATE.fullmatch(value) or _compile_month_date().fullmatch(value)
    return (_format_iso(match) if match else "") or value


def fold_digits(value: str) -> str:
    """Return ``value`` with the digits and decimal separators of all scripts replaced by ASCII.

    >>> fold_digits("۳٫۵ kg")
    '3.5 kg'
    """
    if value.isascii():
        return value
    return "".join(_SEPARATORS.get(letter) or _fold_digit(letter) for letter in value)


_SEPARATORS = {"٫": ".", "٬": ","}


def _fold_digit(letter: str) -> str:
    return (build_letter_table().get(ord(letter)) or letter) if letter.isdecimal() else letter


def _format_iso(match: re.Match[str]) -> str:
    """Return the ISO form of a matched date; empty for a month and year as English spells them too."""
    month, day = match["month"] or "", match["day"] or ""
    if month and not month.isdecimal():
        if month.lower() in _ENGLISH_MONTHS and f"{day}." not in match[0]:
            return ""
        month = str(read_months()[month.lower()])
    parts = (fold_digits(match["year"]), *(fold_digits(part).zfill(2) for part in (month, day) if part))
    return "-".join(parts)


@cache
def read_months() -> Mapping[str, int]:
    """Return the number of each month by its names in all languages, in lower case."""
    lines = read_package_file("polyad.text", "months.txt").splitlines()
    lists = (line.partition(": ")[2].split() for line in lines if not line.startswith("#"))
    return {name: number for months in lists for number, names in enumerate(months, 1) for name in names.split("/")}


@cache
def _compile_month_date() -> re.Pattern[str]:
    """Return a regex for a date with the name of a month: 5. März 2021, 5 de marzo de 2021, mars 2021."""
    names = "|".join(sorted(read_months(), key=lambda name: (-len(name), name)))
    return re.compile(
        r"(?<!\w)(?:(?P<day>3[01]|[12]\d|0?[1-9]|[٠-٩۰-۹०-९๐-๙]{1,2})(?:\.|er|º|ª|°)?\s?(?:de\s|d')?)?"
        rf"(?P<month>{names})\.?,?\s?(?:de\s|del\s|lui\s|عام\s|سنة\s|พ\.ศ\.\s|ค\.ศ\.\s)?(?P<year>[1-9]\d{{3}}|[٠-٩۰-۹०-९๐-๙]{{4}})(?!\w)",
        re.IGNORECASE,
    )
