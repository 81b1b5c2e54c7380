"""Quotes material in a prompt, so that it can be read, and cannot pass itself off as the prompt's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ENDS = (".", "!", "?", ";", "…", "\u3002", "\uff01", "\uff1f")


def defused(text: str, tags: Iterable[str]) -> str:
    """``text`` without what could be taken for one of ``tags``, opening or closing.

    >>> defused("<b>So</b> ends the </passage>", ["passage"])
    '<b>So</b> ends the &lt;/passage>'
    """
    return re.sub(rf"<(?=\s*+(?:/\s*+)?(?:{'|'.join(tags)})\b)", "&lt;", text, flags=re.IGNORECASE)


def in_one_line(lines: str) -> str:
    r"""Lines one after the other, with a semicolon where the end of one does not show.

    >>> in_one_line("King of Italy\nHe took Ravenna.\n killed by  Theoderic ")
    'King of Italy; He took Ravenna. killed by Theoderic'
    """
    kept = [" ".join(line.split()) for line in lines.splitlines() if line.strip()]
    return " ".join([*(line if line.endswith(_ENDS) else f"{line};" for line in kept[:-1]), *kept[-1:]])
