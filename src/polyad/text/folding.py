"""Letters and digits that are spelt in several ways, and the form in which names and search terms compare them."""

# ruff: noqa: RUF001  look-alike letters are what is being unified

from __future__ import annotations

import unicodedata
from functools import cache

from polyad.text.scripts import WITHOUT_CAPITALS, compile_letters

_ARABIC_LETTERS = {
    **dict.fromkeys(map(ord, "أإآٱ"), "ا"),
    **dict.fromkeys(map(ord, "ىیې"), "ي"),
    **dict.fromkeys(map(ord, "ةہۀە"), "ه"),
    **dict.fromkeys(map(ord, "کڪ"), "ك"),
    **dict.fromkeys((*range(0x610, 0x61B), 0x640, *range(0x64B, 0x660), 0x670, *range(0x6D6, 0x6EE))),
    **dict.fromkeys((*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7)),
}
"""Arabic letters with several forms; vowel marks and stretching (tatweel) of Arabic and Hebrew, which are omitted."""

ARABIC_ARTICLE = r"\b(?:[وف]?[بك]?ال|[وف]?لل)(?=[\u0621-\u06d3]{3})"
"""The Arabic article, which is written as part of the word, with the prepositions and conjunctions before it."""


@cache
def build_letter_table() -> dict[int, str | None]:
    """Return a table for ``str.translate`` that unifies Arabic letters and replaces the digits of all scripts."""
    digits = {code: str(unicodedata.decimal(chr(code))) for code in range(0x660, 0x1FBFA) if chr(code).isdecimal()}
    return _ARABIC_LETTERS | digits


def fold_uncased_letters(text: str) -> str:
    """Return a name with unified Arabic letters and digits, and without vowel marks.

    >>> fold_uncased_letters("القاهِرة ٢٠٢١")
    'القاهره 2021'
    """
    is_uncased = compile_letters(f"[{WITHOUT_CAPITALS}]").search(text)
    return text.translate(build_letter_table()) if is_uncased else text
