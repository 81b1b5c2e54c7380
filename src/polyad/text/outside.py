"""Texts from outside, made fit to be encoded and stored."""

from __future__ import annotations


def writable(text: str) -> str:
    r"""``text`` with halves of a character put together where they meet; one alone becomes the sign for no character.

    JSON can spell halves ("\\ud83d"), which no file, database or terminal takes.

    >>> writable("\ud83d\ude00") == "\N{GRINNING FACE}", writable("a\ud83d") == "a\ufffd"
    (True, True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
