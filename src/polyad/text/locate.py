"""Finds the occurrences of a name in a text, at the bounds of words."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"  # Hangul, to which particles are attached
    "\u2e80-\u9fff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff"  # kana, ideographs
)
"""Scripts in which a name may stand beside other words without a space, as a set for regular expressions."""

MAX_CHARACTERS = 1000
"""Most characters of a name that is searched for: in a repetitive text, the time is the product of both lengths."""

_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


def find_name_spans(name: str, text: str) -> list[tuple[int, int]]:
    """Return all spans of a name in ``text`` in its exact case or, if there are none, its spans in any case.

    A name in capitals, such as "US", may be an acronym, so it is only searched for in capitals.

    >>> find_name_spans("Polish", "polish Polish"), find_name_spans("Us", "told us"), find_name_spans("US", "told us")
    ([(7, 13)], [(5, 7)], [])
    """
    return find_occurrences(name, text) or ([] if name.isupper() else find_occurrences(name, text, ignore_case=True))


def find_occurrences(name: str, text: str, *, ignore_case: bool = False) -> list[tuple[int, int]]:
    """Return the spans of the whole-word occurrences of ``name`` in ``text``, in order and without overlap.

    Beside a character of a script without spaces, such as Chinese, a word may begin or end anywhere, but not between a
    letter and its marks. A name of more than 1,000 characters is not searched for, because in a repetitive text the
    time would grow with the product of both lengths.

    >>> find_occurrences("Rome", "Rome, Romeo and Rome")
    [(0, 4), (16, 20)]
    """
    spans: list[tuple[int, int]] = []
    if len(name) > MAX_CHARACTERS:
        return spans
    position = 0
    pattern = re.compile(re.escape(name), re.IGNORECASE if ignore_case else 0)
    while name.strip() and (match := pattern.search(text, position)):
        start, end = match.span()
        is_whole = _is_word_boundary(text, start) and _is_word_boundary(text, end)
        if is_whole:
            spans.append((start, end))
        position = end if is_whole else start + 1
    return spans


def is_word_character(character: str) -> bool:
    """Return whether a character can be part of a word: a letter, a digit, or a mark on a letter."""
    return character == "_" or character.isalnum() or _is_combining(character)


@lru_cache(maxsize=1 << 12)
def is_unspaced(character: str) -> bool:
    """Return whether a character belongs to a script without spaces between words, such as Chinese."""
    return _IS_UNSPACED.match(character) is not None


def _is_word_boundary(text: str, place: int) -> bool:
    before, after = text[place - 1 : place], text[place : place + 1]
    if not (before and after and is_word_character(before) and is_word_character(after)):
        return True
    return not _is_combining(after) and (is_unspaced(before) or is_unspaced(after))


def _is_combining(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
