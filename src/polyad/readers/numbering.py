"""Formats the automatic numbers of headings and list items: 1, a, iv, 三."""

from __future__ import annotations

BULLET = "•"

_MAX_ROMAN = 4000
_MAX_LETTERS = 26 * 10
"""Largest number that is written in letters: after z follow aa, bb and so on."""

_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)
_CHINESE = "〇一二三四五六七八九"


def format_number(number: int, number_format: str) -> str:
    """Return a number in a format that Word knows by name; unknown formats give decimal digits.

    >>> [format_number(14, name) for name in ("decimal", "lowerLetter", "upperRoman", "decimalZero", "ordinal")]
    ['14', 'n', 'XIV', '14', '14th']
    >>> [format_number(number, "chineseCounting") for number in (3, 10, 14, 27)]
    ['三', '十', '十四', '二十七']
    """
    if number_format == "none":
        return ""
    if number_format == "decimalZero":
        return f"{number:02}"
    if number_format == "ordinal":
        suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
        return f"{number}{suffix}"
    text = ""
    if number_format in ("lowerLetter", "upperLetter") and 0 < number <= _MAX_LETTERS:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif number_format in ("lowerRoman", "upperRoman") and 0 < number < _MAX_ROMAN:
        text = _format_roman(number)
    elif number_format.startswith(("chinese", "japaneseCounting", "taiwanese", "ideograph")) and 0 < number < 100:
        tens, ones = divmod(number, 10)
        text = (_CHINESE[tens] if tens > 1 else "") + ("十" if tens else "") + (_CHINESE[ones] if ones else "")
    return (text.upper() if number_format.startswith("upper") else text) or str(number)


def _format_roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        text += letters * count
    return text
