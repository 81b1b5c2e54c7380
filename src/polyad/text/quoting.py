"""Quotes material in a prompt, so that it can be read, and cannot pass itself off as the prompt's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PASSAGE, _REPLIES = "passage", "replies"
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


def quoted_passage(text: str, title: str = "") -> str:
    r"""A passage in tags of its own, with its title if it has one.

    >>> quoted_passage("She met him.", "Ada")
    '<passage title="Ada">\nShe met him.\n</passage>'
    """
    title = " ".join(_quoted(title).split())
    titled = f' title="{title}"' if title else ""
    return f"<{_PASSAGE}{titled}>\n{_quoted(text)}\n</{_PASSAGE}>"


def quoted_replies(text: str) -> str:
    """What a model said earlier, in tags of its own."""
    return f"<{_REPLIES}>\n{_quoted(text)}\n</{_REPLIES}>"


def _quoted(text: str) -> str:
    return defused(text, (_PASSAGE, _REPLIES))
