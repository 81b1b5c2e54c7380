"""Search terms of file names: a question that contains the name of an indexed file finds the file.

The name is one term, with and without its extension, so that "pumpview-4.3.md" is not "pumpview-4.0.md". Its words, and
those of its folder, are terms too, so that "mails from Diego Ramos" finds a file in the folder ``mails``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

FILE_MARK = "/"
"""The first character of these search terms, which no term of a word has."""

_MAX_NAME_WORDS = 12
"""Words of the longest name that a question is searched for."""

_FIRST_RECORDS = 3
"""The first records of a file count more for its name than the others."""

_YEAR_DIGITS = 4

_EXTENSION = r"\.(?=[a-z0-9]{0,3}[a-z])[a-z0-9]{1,5}"


class FileLabel(NamedTuple):
    """The name of a document's file, as search terms.

    Attributes:
        path: The name and the folder as they are written.
        names: The name with and without its extension; a stem of one word, such as "faq", is left out.
        words: The words of the name and of the folder.
        weight: Frequency of the terms in ``names``: higher for the first records of a file.
    """

    path: str
    names: tuple[str, ...]
    words: str
    weight: int


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Return a compiled regex, cached by ``pattern``, because compiling at import would take milliseconds."""
    return re.compile(pattern)


def parse_file_label(document_id: str) -> FileLabel | None:
    """Return the search terms of a document's file name; None if its id is no path of a file.

    >>> parse_file_label("sales/prices-2026.csv#2")
    FileLabel(path='sales/prices-2026', names=('/prices 2026 csv', '/prices 2026'), words='sales prices 2026', weight=2)
    """
    path = _compile(rf"(?is)(?:(.*)[/\\])?([^/\\]+?)({_EXTENSION})(?:[:#!?](.*))?").fullmatch(document_id)
    if not path:
        return None
    folder, stem, extension, part = (_split_words(value) for value in path.groups(default=""))
    words = [word for word in [*folder[-1:], *stem] if not word.isdecimal() or len(word) == _YEAR_DIGITS]
    names = [_build_term([*stem, *extension])]
    if len(stem) > 1:
        names.append(_build_term(stem))
    number = int(part[-1]) if part and part[-1].isdecimal() else 1
    return FileLabel(
        f"{' '.join(folder[-1:])}/{path[2]}", tuple(names), " ".join(words), max(1, _FIRST_RECORDS + 1 - number)
    )


def find_file_references(question: str, *, sure: bool = False) -> Iterator[str]:
    """Yield the search terms of the names of files that a question may contain.

    These are its words with hyphens, dots or underscores, also with the words before if they have an extension, and
    the whole text unless it ends with a question mark. With ``sure``, words such as "follow-up", which have neither an
    extension nor a digit, are left out.

    >>> list(find_file_references("What is in price-list-2026?")), list(find_file_references("price list 2026"))
    (['/price list 2026'], ['/price list 2026'])
    """
    words: list[str] = []
    for token in question.split():
        parts = _split_words(token)
        if len(parts) > 1:
            has_extension = _compile(rf"(?i).*\w{_EXTENSION}\W*").fullmatch(token)
            if sure and not has_extension and not any(map(str.isdigit, token)):
                words += parts
                continue
            for start in range(
                len(words), max(-1, len(words) - _MAX_NAME_WORDS) if has_extension else len(words) - 1, -1
            ):
                yield _build_term([*words[start:], *parts])
        words += parts
    if 1 < len(words) <= _MAX_NAME_WORDS and not question.rstrip().endswith("?"):
        yield _build_term(words)


def _split_words(text: str) -> list[str]:
    return _compile(r"[^\W_]+").findall(unicodedata.normalize("NFC", text.casefold()))


def _build_term(words: list[str]) -> str:
    return FILE_MARK + " ".join(words)
