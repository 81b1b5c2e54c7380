"""Cleans text from outside, so that it can be encoded, stored and shown safely."""

from __future__ import annotations

_CONTROL = [code for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"]
_DIRECTION = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_REPLACEMENTS = {**dict.fromkeys(_CONTROL, " "), **dict.fromkeys((ord("\r"), *_DIRECTION))}


def collapse_whitespace(text: str) -> str:
    r"""Return ``text`` on one line, with single spaces between words and none at the ends.

    In a prompt, no part of the result can imitate a line of the prompt.

    >>> collapse_whitespace(" Ada\n Lovelace ")
    'Ada Lovelace'
    """
    return " ".join(text.split())


def sanitize(text: str) -> str:
    r"""Return ``text`` without control characters, marks that change its direction, and unpaired surrogates.

    Such characters control a terminal or show letters in another order. Each character is treated alone, so a text may
    be cleaned in pieces.

    >>> sanitize("red \x1b[31m alert"), sanitize("pay \u202eeno\u202c")
    ('red  [31m alert', 'pay eno')
    """
    return replace_surrogates(text).translate(_REPLACEMENTS)


def sanitize_line(text: str) -> str:
    r"""Return the sanitized ``text`` on one line, with single spaces between words.

    >>> sanitize_line("Ada\r\n \x1b[1mLovelace\u202e ")
    'Ada [1mLovelace'
    """
    return collapse_whitespace(sanitize(collapse_whitespace(text)))


def replace_surrogates(text: str) -> str:
    r"""Return ``text`` with surrogate pairs combined, and each unpaired surrogate replaced by U+FFFD.

    JSON can contain surrogates ("\\ud83d"), which no file, database or terminal accepts.

    >>> replace_surrogates("\ud83d\ude00") == "\N{GRINNING FACE}", replace_surrogates("a\ud83d") == "a\ufffd"
    (True, True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def shorten_at_word(text: str, limit: int) -> str:
    """Shorten text to ``limit`` characters at the end of a word, and mark the cut with an ellipsis.

    >>> shorten_at_word("King of Italy from 476", 15)
    'King of Italy …'
    """
    if len(text) <= limit:
        return text
    end = text.rfind(" ", 0, limit + 1)
    return text[: end if end > limit // 2 else limit].rstrip() + " …"  # some scripts have no blanks to cut at
