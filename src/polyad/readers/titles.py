"""What a document is called: by itself, or else by its file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

_ANY_WORD = """
about abstract api appendix changelog changes conclusion contents default description docs document documentation faq
foreword general guide help home index info information introduction intro license licence main manual menu name
navigation notes overview page preface preliminaries quickstart readme reference start summary synopsis title toc
tutorial untitled usage welcome
"""
_ANY_NAME = ("getting started", "table of contents", "quick start", "read me", "home page", "untitled document")
_GENERIC = frozenset((*_ANY_WORD.split(), *_ANY_NAME))
_NUMBERED = re.compile(r"[\s\d.:()-]*|(?:chapter|part|section|appendix|page)\s+[\divxlc.:]+", re.IGNORECASE)
_NUMBER = re.compile(r"(?:(?:chapter|part|section|appendix)\s+)?(?:\d+(?:\.\d+)*|[ivxlc]+)[.:)]?\s+", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_-]+")


def names_nothing(name: str) -> bool:
    """Whether a heading or a file's name could be that of any document.

    >>> [names_nothing(name) for name in ("1. Introduction", "README", "Chapter 1", "The pump", "Intro to pumps")]
    [True, True, True, False, False]
    """
    name = " ".join(name.split()).rstrip(".:!")
    rest = name[number.end() :] if (number := _NUMBER.match(name)) else name
    return rest.casefold() in _GENERIC or bool(_NUMBERED.fullmatch(name))


def title_among(names: Iterable[str]) -> str:
    """The first of some names, the best first, that names something; else the first at all; empty if there is none."""
    given = [name for name in names if name]
    return next((name for name in given if not names_nothing(name)), given[0] if given else "")


def name_of_file(path: PurePath) -> str:
    """A file's name, made readable; below its folder's where it could be that of any.

    >>> name_of_file(PurePath("docs/the-old_pump.txt")), name_of_file(PurePath("docs/old-pumps/index.html"))
    ('the old pump', 'old pumps / index')
    """
    name, folder = _readable(path.stem), _readable(path.parent.name)
    return f"{folder} / {name}" if names_nothing(name) and folder and not names_nothing(folder) else name


def _readable(name: str) -> str:
    return _SEPARATORS.sub(" ", name).strip() or name
