"""Shows a language model what it is asked about, told apart from what it is asked."""

from __future__ import annotations

from polyad.text.quoting import defused

_PASSAGE, _REPLIES = "passage", "replies"


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
