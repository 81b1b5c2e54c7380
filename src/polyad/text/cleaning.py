"""Texts from outside, made fit to be encoded, stored and shown."""

from __future__ import annotations

_CONTROL = [code for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"]
_DIRECTION = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_HARMLESS = {**dict.fromkeys(_CONTROL, " "), **dict.fromkeys((ord("\r"), *_DIRECTION))}


def sanitize(text: str) -> str:
    r"""``text``, writable, without what drives a terminal or makes letters stand in another order than they are read.

    Character by character, so that a text may be treated in pieces.

    >>> sanitize("red \x1b[31m alert"), sanitize("pay \u202eeno\u202c")
    ('red  [31m alert', 'pay eno')
    """
    return writable(text).translate(_HARMLESS)


def harmless_line(text: str) -> str:
    r"""``text``, harmless, on one line with single blanks between words.

    >>> harmless_line("Ada\r\n \x1b[1mLovelace\u202e ")
    'Ada [1mLovelace'
    """
    return " ".join(sanitize(" ".join(text.split())).split())


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
