"""Writing systems: scripts without spaces between words, and scripts without capital letters, as ranges for a regex."""

from __future__ import annotations

import re
from functools import cache

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
HIRAGANA = "\u3041-\u3096"
KATAKANA = "\u30a1-\u30fa\u30fc"
HANGUL = "\u1100-\u11ff\uac00-\ud7af"
SOUTH_EAST_ASIAN = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109d\u1780-\u17d3"
)
"""Thai, Lao, Burmese and Khmer letters and vowel signs."""

UNSPACED = f"{HAN}{HIRAGANA}{KATAKANA}{SOUTH_EAST_ASIAN}"
"""The letters, as ranges of a pattern, of scripts that put no spaces between words, such as Chinese and Thai."""

WITHOUT_CAPITALS = "\u0590-\u08ff\u0900-\u0e00\u0f00-\u0fff\u1200-\u137f"
"""Scripts with spaces and without capitals, such as Hebrew, Arabic and those of India."""

_MIN_UNCASED_SHARE = 0.2

UNCASED = f"[{UNSPACED}{HANGUL}{WITHOUT_CAPITALS}]"
"""Pattern of a letter of a script without capitals."""


@cache
def compile_letters(pattern: str) -> re.Pattern[str]:
    """Return a compiled regex, cached by ``pattern``, because compiling at import would take milliseconds."""
    return re.compile(pattern)


def has_uncased_letters(text: str) -> bool:
    """Return whether a text has a letter of a script without capitals, such as Chinese, Arabic or Hindi."""
    return not text.isascii() and compile_letters(UNCASED).search(text) is not None


def is_mostly_uncased(text: str) -> bool:
    """Return whether at least a fifth of a text's letters belong to scripts without capitals.

    A foreign name in parentheses does not make a text one of another language.
    """
    if text.isascii():
        return False
    return _MIN_UNCASED_SHARE * sum(map(str.isalpha, text)) < sum(
        map(str.isalpha, compile_letters(UNCASED).findall(text))
    )
