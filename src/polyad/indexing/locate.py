"""Where a name occurs in a text."""

from __future__ import annotations

import re


def occurrences(name: str, text: str, *, ignore_case: bool = False) -> list[tuple[int, int]]:
    """Spans of ``name`` in ``text`` that begin and end at the bounds of words, in order, without overlap.

    >>> occurrences("Rome", "Rome, Romeo and Rome")
    [(0, 4), (16, 20)]
    """
    if not name.strip():
        return []
    before = r"(?<!\w)" if _is_word(name[0]) else ""
    after = r"(?!\w)" if _is_word(name[-1]) else ""
    pattern = before + re.escape(name) + after
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE if ignore_case else 0)]


def _is_word(character: str) -> bool:
    """Whether the character needs a bound beside it; scripts without spaces between words have none."""
    return bool(re.match(r"\w", character)) and not "\u2e80" <= character <= "\uffdc"
