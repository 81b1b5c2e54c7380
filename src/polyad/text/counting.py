"""Numbers of things, in words."""

from __future__ import annotations

import re


def counted(number: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "hyperedge"), counted(2000, "hyperedge"), counted(0, "entity")
    ('1 hyperedge', '2,000 hyperedges', '0 entities')
    """
    return f"{number:,} {what if number == 1 else _plural(what)}"


def _plural(what: str) -> str:
    return f"{what[:-1]}ies" if re.search("[^aeiou]y$", what) else f"{what}s"
