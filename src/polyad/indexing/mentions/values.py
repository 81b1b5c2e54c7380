"""Dates and quantities in a text, and the works it names in quotation marks."""

# ruff: noqa: RUF001  the look-alike punctuation below is what is being told apart

from __future__ import annotations

import re
from collections.abc import Iterator

_LONGEST_WORK = 12
"""Words. What is longer between quotation marks is speech."""

_LONGEST_QUOTATION = 122
"""Characters, with the marks."""

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan\.?|Feb\.?|Mar\.?|Apr\.?|Jun\.?|Jul\.?|Aug\.?|Sept?\.?|Oct\.?|Nov\.?|Dec\.?)"
)
_DAY = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?:1\d{3}|20\d{2})"
_DATE = re.compile(
    rf"""(?=[\dJFMASOND])(?:(?<![\w.,$£€-])(?:
        {_DAY}(?:\ of)?\ {_MONTH}(?:,?\ {_YEAR})?
      | {_MONTH}\ (?:{_DAY},?\ )?{_YEAR}
      | {_MONTH}\ {_DAY}
      | {_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])
      | {_YEAR}s?
      )(?![\w%]|[.,]\d)
      | (?<=\d[-–]){_YEAR}(?![\w%]|[.,]\d))""",
    re.VERBOSE,
)
"""Its first sign is looked for before what may stand before it, which would be looked for at each letter. So it is in
the other patterns."""

_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_UNIT = r"""(?:
    %|°\s?[CF]|percent|per\ cent|million|billion|trillion
    |(?:[kcmnµμ]?m|[kmµμn]?g|[dcmµμ]?[lL]|[kMGT]?Hz|[kMGT]?W|[kMGT]?B|[kMGT]?bit|[kM]?J|[kM]?Pa|[mkM]?V|[mnµμkp]?mol|mEq|IU|U|
      ha|ft|lb|oz|mph|rpm|hp|kn|bar|mmHg|dB|eV|kcal|cal|K|s|ms|h|min)
     (?:[²³23]|(?:/|\ per\ )(?:[dcmµμ]?[lL]|[km]?g|min|h|s|day|kg|m[²³23]?))*
    |(?:square\ |cubic\ |nautical\ )?
     (?:met(?:re|er)|kilomet(?:re|er)|centimet(?:re|er)|mile|acre|hectare|inch|pound|gram|kilogram|ton|tonne|lit(?:re|er)
       |day|week|month|year|hour|minute|second|dollar|euro)(?:e?s)?
    |feet|foot
    )"""
_QUANTITY = re.compile(
    rf"(?=[\d$£€¥])(?<![\w.,])(?:[$£€¥]\s?{_NUMBER}(?:\s(?:million|billion|trillion))?"
    rf"|{_NUMBER}(?:\s?[-–]\s?{_NUMBER}|\s?±\s?{_NUMBER})?[\s-]?{_UNIT})(?!\w|[./-]\w)",
    re.VERBOSE,
)
_QUOTED = re.compile(
    r"""(?=[“„`«《「『‘'])(?:
        “([^“”\n]{1,120})”
      | „([^„“”\n]{1,120})[“”]
      | ``\s?([^`'\n]{1,120}?)\s?''
      | «\s?([^«»\n]{1,120}?)\s?»
      | 《([^《》\n]{1,60})》
      | 「([^「」\n]{1,60})」
      | 『([^『』\n]{1,60})』
      | (?<![\w'])[‘']([A-Z][^'‘’"\n]{1,60}?)['’](?!\w))""",
    re.VERBOSE,
)


def dates(text: str) -> Iterator[tuple[int, int]]:
    """Spans of days, months of a year, years and decades."""
    return (match.span() for match in _DATE.finditer(text))


def quantities(text: str) -> Iterator[tuple[int, int]]:
    """Spans of numbers with a unit or a currency."""
    return (match.span() for match in _QUANTITY.finditer(text))


def works(text: str) -> Iterator[tuple[int, int]]:
    """Spans between quotation marks that may be titles: short, and not a clause cut out of a sentence."""
    for start, end in _quoted(text):
        while end > start and text[end - 1] in " ,.;:":
            end -= 1
        while end > start and text[start] == " ":
            start += 1
        work = text[start:end]
        if work and not work[0].islower() and work.count(" ") < _LONGEST_WORK:
            yield start, end


def _quoted(text: str) -> Iterator[tuple[int, int]]:
    for match in _QUOTED.finditer(text):
        yield match.span(match.lastindex or 0)
    if '"' in text:
        yield from _between_straight_quotes(text)


def _between_straight_quotes(text: str) -> Iterator[tuple[int, int]]:
    """Pairs of marks in the order of a line; where their number is odd, the last has no partner."""
    offset = 0
    for line in text.splitlines(keepends=True):
        marks = [match.start() + offset for match in re.finditer('"', line)]
        offset += len(line)
        for opening, closing in zip(marks[::2], marks[1::2], strict=False):
            if closing - opening <= _LONGEST_QUOTATION:
                yield opening + 1, closing
