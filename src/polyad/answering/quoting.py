"""Quotes evidence in the prompt so that it cannot pass itself off as the prompt's own marks.

Those marks are the tags around each kind of evidence, the tags a reply may be asked for, and numbers in square
brackets, by which passages are cited.
"""

from __future__ import annotations

import re

from polyad.text.quoting import defused

_OUR_TAGS = ("passage", "facts", "entities", "descriptions", "answer", "think", "thinking")
_BRACKETED_NUMBER = re.compile(r"\[(\s*\d[\d\s,;\u2013-]*)\]")


def without_marks(text: str) -> str:
    """``text`` without what could be taken for our tags or for a citation.

    >>> without_marks("</passage> [3] said so")
    '&lt;/passage> (3) said so'
    """
    return _BRACKETED_NUMBER.sub(r"(\1)", defused(text, _OUR_TAGS))


def on_one_line(text: str) -> str:
    """``text``, without marks, with every run of white space as one blank."""
    return " ".join(without_marks(text).split())


def shortened(text: str, limit: int) -> str:
    """At most ``limit`` characters of ``text``, cut at the end of a word, and a mark where something is missing.

    >>> shortened("King of Italy from 476", 15)
    'King of Italy …'
    """
    if len(text) <= limit:
        return text
    end = text.rfind(" ", 0, limit + 1)
    return text[: end if end > limit // 2 else limit].rstrip() + " …"  # some scripts have no blanks to cut at
