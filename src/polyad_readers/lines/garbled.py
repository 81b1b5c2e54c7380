"""Finds text of a PDF whose characters are numbers of glyphs, because the file does not map its fonts to Unicode."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any

from polyad.errors import MissingExtraError

try:
    from pypdfium2 import raw  # type: ignore[import-untyped]  # has no stubs
except ImportError as error:
    raise MissingExtraError("pypdfium2", "documents") from error

_CONTROL = re.compile("[\x00\x01\x03-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
"""Characters that no text has; U+0002 is PDFium's hyphen."""

SUSPECT = re.compile(f"{_CONTROL.pattern[:-1]}\ue000-\uf8ff]")
"""Characters of which garbled lines have some."""

_PRIVATE = re.compile("[\ue000-\uf8ff]")
_LEAST, _LEAST_SHARE = 2, 0.08
"""Least number of such characters in a garbled line, and their least share; a bullet may be one."""

_MIN_LENGTH = 6
"""Characters of the shortest garbled line; a shorter one may be the brackets of a formula."""

_SAMPLE = 32
"""Characters of a page that are looked at first."""

_MIN_SHARE = 0.3
"""Least share of unmapped characters on a garbled page or line, and of rare letters on a page."""

_LEAST_SCRIPTS, _LEAST_OF_SCRIPT = 4, 0.03
"""Scripts of a garbled page, and the least share of a script that counts."""

_MAX_LETTERS = 2_000
_RARE = re.compile("[\u0180-\u02ff]")
"""Letters of African languages and phonetic letters, whose numbers are those of many glyphs."""

_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "HALFWIDTH", "FULLWIDTH", "BOPOMOFO", "IDEOGRAPHIC")


def is_garbled_page(text_page: Any, text: str) -> bool:
    """Return whether most characters of a page are numbers of glyphs, which make words of many scripts at once.

    That PDFium finds no mapping is no evidence: it often guesses the letters of such fonts correctly.

    Args:
        text_page: A ``pypdfium2.PdfTextPage``.
        text: The text of the page as PDFium returns it.
    """
    sample = range(0, len(text), max(1, len(text) // _SAMPLE))
    if not sample or _count_unmapped(text_page, sample) < _MIN_SHARE * len(sample):
        return False
    letters = [letter for letter in text if letter.isalpha() or unicodedata.category(letter) == "Cn"][:_MAX_LETTERS]
    names = (unicodedata.name(letter, "UNASSIGNED").split()[0].split("-")[0] for letter in letters)
    scripts = Counter("EAST ASIAN" if name in _EAST_ASIAN else name for name in names)
    frequent = [script for script, count in scripts.items() if count >= _LEAST_OF_SCRIPT * len(letters)]
    return len(frequent) >= _LEAST_SCRIPTS or len(_RARE.findall("".join(letters))) > _MIN_SHARE * len(letters)


def is_garbled_line(text_page: Any, text: str, characters: Iterable[int]) -> bool:
    """Return whether a line has characters that no text has, such as control characters, and many unmapped ones.

    A formula may have some of them: TeX's brackets are unmapped.

    Args:
        text_page: A ``pypdfium2.PdfTextPage``.
        text: The text of the line as PDFium returns it.
        characters: Indices of its characters.
    """
    length = len(text) - text.count(" ")
    controls, private = len(_CONTROL.findall(text)), len(_PRIVATE.findall(text))
    if length < _MIN_LENGTH or controls + private < max(_LEAST, _LEAST_SHARE * length):
        return False
    least = _MIN_SHARE * length
    return controls > 2 * least or _count_unmapped(text_page, characters) > least


def _count_unmapped(text_page: Any, characters: Iterable[int]) -> int:
    return sum(raw.FPDFText_HasUnicodeMapError(text_page, index) == 1 for index in characters)
