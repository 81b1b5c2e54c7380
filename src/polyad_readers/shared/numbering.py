"""Formats the automatic numbers of headings and list items: 1, a, iv, 三."""

from __future__ import annotations

BULLET = "•"

_MAX_ROMAN = 4000
_MAX_LETTERS = 26 * 10
"""Largest number that is written in letters: after z follow aa, bb and so on."""

_ROMAN = "m:1000 cm:900 d:500 cd:400 c:100 xc:90 l:50 xl:40 x:10 ix:9 v:5 iv:4 i:1"
_CHINESE = "〇一二三四五六七八九"


def format_number(number: int, number_format: str) -> str:
    """Return a number in a format that Word knows by name; unknown formats give decimal digits.

    >>> [format_number(14, name) for name in ("decimal", "lowerLetter", "upperRoman", "decimalZero", "ordinal")]
    ['14', 'n', 'XIV', '14', '14th']
    >>> [format_number(number, "chineseCounting") for number in (3, 10, 14, 27)]
    ['三', '十', '十四', '二十七']
    """
    text = str(number)
    if number_format == "none":
        return ""
    if number_format == "decimalZero":
        return text.zfill(2)
    if number_format == "ordinal":
        return text + ("th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th"))
    if number_format.endswith("Letter") and 0 < number <= _MAX_LETTERS:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif number_format.endswith("Roman") and 0 < number < _MAX_ROMAN:
        text = _format_roman(number)
    elif number_format.startswith(("chinese", "japaneseCounting", "taiwanese", "ideograph")) and 0 < number < 100:
        tens, ones = divmod(number, 10)
        text = (_CHINESE[tens] if tens > 1 else "") + ("十" if tens else "") + (_CHINESE[ones] if ones else "")
    return text.upper() if number_format.startswith("upper") else text


def _format_roman(number: int) -> str:
    text = ""
    for item in _ROMAN.split():
        letters, _, value = item.partition(":")
        count, number = divmod(number, int(value))
        text += letters * count
    return text
