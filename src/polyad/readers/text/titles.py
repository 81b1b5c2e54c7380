"""Chooses the title of a document from its properties, its headings or its file name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from polyad.readers.text.headings import Heading
from polyad.readers.text.plain_text import to_single_line
from polyad.text.literals import infer_type, parse_number
from polyad.text.words import collapse_whitespace, shorten_at_word

_GENERIC_WORDS = """
about abstract api appendix changelog changes conclusion contents default description docs document documentation faq
foreword general guide help home index info information introduction intro license licence main manual menu name
navigation notes overview page preface preliminaries quickstart readme reference start summary synopsis title toc
tutorial untitled usage welcome
"""
_GENERIC_PHRASES = ("getting started", "table of contents", "quick start", "read me", "home page", "untitled document")
_GENERIC = frozenset((*_GENERIC_WORDS.split(), *_GENERIC_PHRASES))
_NUMBERED = re.compile(r"[\s\d.:()-]*|(?:chapter|part|section|appendix|page)\s+[\divxlc.:]+", re.IGNORECASE)
_NUMBER = re.compile(r"(?:(?:chapter|part|section|appendix)\s+)?(?:\d+(?:\.\d+)*|[ivxlc]+)[.:)]?\s+", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_-]+")

_LONGEST_TITLE = 300
"""Characters of the longest title; longer texts are descriptions."""

_GENERATED_TITLE = re.compile(
    r"microsoft (?:word|powerpoint|excel) -.*|(?:untitled|unknown|none|title|document|slide|presentation|layout|"
    r"powerpoint presentation|book|print|latex document|untitled document|new document)[ _-]?\d*|[\W\d_]*|"
    r".*\.(?:docx?|pdf|te?xi?|dvi|indd|qxd|rtf|od[tp]|pptx?|xlsx?|html?|md|xml|fm|p65|ps|eps)|\S*[\\_]\S*|/\S*|"
    r"[0-9a-f]{8}-?[0-9a-f-]{8,}",
    re.IGNORECASE,
)
"""Titles that programs generate: names of files, placeholders and identifiers."""


_LONGEST_RECORD_TITLE = 100
"""Characters of the longest title that is taken from a column."""

_ID_COLUMN = re.compile(r"(?:\b|_)(?:id|uuid|guid|url|uri|link)$")
_DATE = re.compile(
    r"(?=.*\d)(?:(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|(?:mon|tue|wed|thu|fri|sat|sun)(?:(?:s|nes|rs|ur)?day)?|[ap]m|utc|gmt|"
    r"\d+(?:st|nd|rd|th)?)(?:[\s.,:/+-]+|$))+",
    re.IGNORECASE,
)
"""A date with names of days and months, in any order."""


def clean_stated_title(title: str) -> str:
    """Return the title in a file's metadata on one line; empty if it is a program's default, like "Document1".

    >>> [clean_stated_title(title) for title in ("Pump  manual", "Microsoft Word - pump.doc", "Document1")]
    ['Pump manual', '', '']
    """
    title = to_single_line(title)
    return "" if len(title) > _LONGEST_TITLE or _GENERATED_TITLE.fullmatch(title) else title


def choose_record_title(cells: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the column and the value that serve as a record's title: the name, or the first text, shortened.

    Numbers, dates, booleans, addresses and identifiers are not texts. Both strings are empty if there is no text.

    Args:
        cells: Column name and value of each cell.

    >>> choose_record_title([("sku", "P-17"), ("made", "3 May 2021"), ("maker", "Aldo Pumps"), ("flow", "3 l/s")])
    ('maker', 'Aldo Pumps')
    """
    lines = [(column, line) for column, value in cells if (line := to_single_line(value[:_LONGEST_TITLE]))]
    names = [item for item in lines if is_name_column(item[0])]
    texts = (item for item in lines if not _ID_COLUMN.search(item[0].casefold()) and _is_text(item[1]))
    column, line = names[0] if names else next(texts, ("", ""))
    return column, shorten_at_word(line, _LONGEST_RECORD_TITLE)


def is_name_column(column: str) -> bool:
    """Return whether a column is called ``name``, so that its values are the names of records."""
    return column.casefold() == "name"


def _is_text(line: str) -> bool:
    """Return whether a table value is text: it has letters, and is no number, date, address or code ("P-17")."""
    has_letters = len(line) > 1 and any(map(str.isalpha, line))
    is_address = "://" in line or (" " not in line and ("@" in line or "/" in line))
    is_code = " " not in line and any(map(str.isdigit, line))
    return has_letters and not (is_address or is_code or _is_number(line) or _DATE.fullmatch(line))


def _is_number(line: str) -> bool:
    """Return whether a table value is a number with or without unit ("3 l/s"), a date or a boolean."""
    number = parse_number(line)
    is_unit = bool(number and " " not in number.unit and not number.unit[:1].isupper())
    return is_unit or infer_type(line) not in ("entity", "string")


def is_generic_name(name: str) -> bool:
    """Return whether a heading or file name is generic: "Introduction" and "README" say nothing about the subject.

    >>> [is_generic_name(name) for name in ("1. Introduction", "README", "Chapter 1", "The pump", "Intro to pumps")]
    [True, True, True, False, False]
    """
    name = collapse_whitespace(name).rstrip(".:!")
    unnumbered_name = name[number.end() :] if (number := _NUMBER.match(name)) else name
    return unnumbered_name.casefold() in _GENERIC or bool(_NUMBERED.fullmatch(name))


def choose_title(names: Iterable[str]) -> str:
    """Return the first name that is not generic ("Introduction"), else the first name; "" without names."""
    nonempty_names = [name for name in names if name]
    return next(
        (name for name in nonempty_names if not is_generic_name(name)), nonempty_names[0] if nonempty_names else ""
    )


def choose_document_title(headings: Sequence[Heading]) -> str:
    """Return the heading of the highest rank that stands above all others of this rank; "" if there is none.

    It stands above them if they are generic, or if the next of them follows without text between. Otherwise several
    headings of the highest rank are chapters, of which none names the document.
    """
    highest = min((heading.rank for heading in headings), default=0)
    top = [heading for heading in headings if heading.rank == highest]
    names = [heading.name for heading in top]
    is_above = headings[:1] == top[:1] and headings[1:2] == top[1:2] and top[1:2] and top[1].start <= top[0].end + 2
    is_title = len(top) == 1 or is_above or all(map(is_generic_name, names[1:]))
    return choose_title(names[:1] if is_above else names) if is_title else ""


def get_readable_file_name(path: PurePath) -> str:
    """Return a file name as readable words; a generic name such as "index" follows the name of its folder.

    >>> [get_readable_file_name(PurePath(path)) for path in ("docs/the-old_pump.txt", "docs/old-pumps/index.html")]
    ['the old pump', 'old pumps / index']
    """
    name, folder = _clean_name(path.stem), _clean_name(path.parent.name)
    return f"{folder} / {name}" if is_generic_name(name) and folder and not is_generic_name(folder) else name


def _clean_name(name: str) -> str:
    return _SEPARATORS.sub(" ", name).strip() or name
