"""Printed page labels of a document, such as "xii" and "10", as the runs in which they count up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from polyad.model import MetadataValue

PAGE_LABELS = "page_labels"
"""Metadata key of a document's labels: ``2: i`` states that the second page is page i, and the following count up."""

_MAX_CHARACTERS, _MAX_LABEL = 900, 30
"""Characters of all runs, which metadata hold unshortened, and of one label; later and longer ones are left out."""

_NUMERALS = {"m": 1000, "cm": 900, "d": 500, "cd": 400, "c": 100, "xc": 90, "l": 50, "xl": 40, "x": 10, "ix": 9} | {
    "v": 5,
    "iv": 4,
    "i": 1,
}
_VALUES = {letter: value for letter, value in _NUMERALS.items() if len(letter) == 1}
_LABEL = re.compile(r"(.*?)(\d{1,9}|(?<![^\W_])(?:[ivxlcdm]{1,15}|[IVXLCDM]{1,15}))", re.DOTALL)
_RUN = re.compile(r"(\d{1,9}): ?(.*)", re.DOTALL)


def format_runs(page_labels: Sequence[str]) -> tuple[str, ...]:
    """Return one string for each run of consecutive page labels: the run's first page number and label.

    >>> format_runs(["Cover", "i", "ii", "iii", "1", "2"])
    ('1: Cover', '2: i', '5: 1')
    """
    short_labels = [label if len(label) <= _MAX_LABEL else "" for label in map(str.strip, page_labels)]
    runs: list[str] = []
    if not any(short_labels):
        return ()
    for page, (previous, label) in enumerate(pairwise(["", *short_labels]), 1):
        if page == 1 or label != add_to_label(previous, 1):
            runs.append(f"{page}: {label}")
            if sum(map(len, runs)) + len(runs) > _MAX_CHARACTERS:
                return (*runs[:-1], f"{page}: ")
    return tuple(runs)


def find_page_label(metadata: Mapping[str, MetadataValue], page: int | None) -> str | None:
    """Return the label of a page (numbered from 1) in a document's metadata; None if the page has no label.

    >>> find_page_label({"page_labels": ("1: Cover", "2: i", "5: 1")}, 4)
    'iii'
    """
    runs = metadata.get(PAGE_LABELS)
    if page is None or not isinstance(runs, tuple):
        return None
    starts = {int(match[1]): match[2] for run in runs if (match := _RUN.fullmatch(run))}
    start = max((start for start in starts if start <= page), default=0)
    return add_to_label(starts.get(start, ""), page - start) or None


def add_to_label(label: str, page_count: int) -> str:
    """Return the page label ``page_count`` pages after ``label``: two pages after "iv" is "vi".

    >>> add_to_label("A-9", 1), add_to_label("xii", 2), add_to_label("Cover", 0), add_to_label("Cover", 1)
    ('A-10', 'xiv', 'Cover', '')
    """
    match = _LABEL.fullmatch(label)
    if not page_count or not match:
        return "" if page_count else label
    prefix, number = match.groups()
    if number.isdecimal():
        return f"{prefix}{int(number) + page_count:0{len(number) if number.startswith('0') else 1}}"
    following = _format_roman(parse_roman(number.lower()) + page_count)
    return prefix + (following.upper() if number.isupper() else following)


def parse_page_number(number: str) -> int:
    """Return the value of a decimal or Roman number."""
    return int(number) if number.isdigit() else parse_roman(number.lower())


def parse_roman(numeral: str) -> int:
    """Return the integer value of a lower-case Roman numeral, such as 4 for "iv"."""
    values = [_VALUES[letter] for letter in numeral]
    return sum(-value if value < after else value for value, after in pairwise([*values, 0]))


def _format_roman(value: int) -> str:
    """Return a positive integer as a lower-case Roman numeral, such as "iv" for 4."""
    numeral = ""
    for letters, unit in _NUMERALS.items():
        count, value = divmod(value, unit)
        numeral += letters * count
    return numeral
