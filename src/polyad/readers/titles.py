"""Chooses the title of a document from its headings or its file name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

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


def is_generic_name(name: str) -> bool:
    """Return whether a heading or file name is generic, such as "Introduction".

    >>> [is_generic_name(name) for name in ("1. Introduction", "README", "Chapter 1", "The pump", "Intro to pumps")]
    [True, True, True, False, False]
    """
    name = " ".join(name.split()).rstrip(".:!")
    unnumbered_name = name[number.end() :] if (number := _NUMBER.match(name)) else name
    return unnumbered_name.casefold() in _GENERIC or bool(_NUMBERED.fullmatch(name))


def choose_title(names: Iterable[str]) -> str:
    """Return the first specific name, else the first name; an empty string if there are no names."""
    nonempty_names = [name for name in names if name]
    return next(
        (name for name in nonempty_names if not is_generic_name(name)), nonempty_names[0] if nonempty_names else ""
    )


def get_readable_file_name(path: PurePath) -> str:
    """Return a readable file name, preceded by the folder's name if the file name is generic.

    >>> [get_readable_file_name(PurePath(path)) for path in ("docs/the-old_pump.txt", "docs/old-pumps/index.html")]
    ['the old pump', 'old pumps / index']
    """
    name, folder = _clean_name(path.stem), _clean_name(path.parent.name)
    return f"{folder} / {name}" if is_generic_name(name) and folder and not is_generic_name(folder) else name


def _clean_name(name: str) -> str:
    return _SEPARATORS.sub(" ", name).strip() or name
