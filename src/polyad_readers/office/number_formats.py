"""Formats the numbers of spreadsheets: as displayed where that tells more than the number, such as a unit.

Dates are ISO dates. A format that only rounds a number or groups its digits is not applied: the number says more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from itertools import takewhile

BUILT_IN_FORMATS = {
    **dict(
        zip(
            (9, 10, 11, 48, 45, 46, 47),
            ("0%", "0.00%", "0.00E+00", "0.0E+0", "mm:ss", "[h]:mm:ss", "mm:ss"),
            strict=True,
        )
    ),
    **dict.fromkeys([*range(14, 18), 22, *range(27, 37), *range(50, 59)], "yyyy-mm-dd"),
    **dict.fromkeys(range(18, 22), "h:mm"),
}
"""Format codes that a workbook does not contain (ECMA-376 part 1, section 18.8.30); others show the number."""

_MAX_CODE = 255
"""Characters of the longest format code that Excel accepts."""

_TOKEN = re.compile(r'"[^"]*"?|\\.|_.|\*.|\[[^\]]*\]?|E[+-]|.', re.DOTALL)
_ELAPSED = re.compile(r"\[([hms])+\]", re.IGNORECASE)
_CURRENCY = re.compile(r"\[\$([^\]-]*)")
_PLAIN = frozenset(" -+()_*")
"""Literal characters that do not change the meaning of a number."""

_EPOCH, _EPOCH_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)
_FIRST_RELIABLE_DAY = 60
"""Excel's 29 February 1900, which did not exist; earlier days are one day later."""


def format_number(value: float, code: str, *, is_1904: bool = False) -> str:
    """Return a number with its unit, percent sign, currency, leading zeros or exponent, or as a date or duration.

    Args:
        value: The number in the cell.
        code: The number format of the cell.
        is_1904: Whether dates are days since 1904 instead of 1900.

    >>> [format_number(0.125, "0.0%"), format_number(1234.5, '#,##0.00 "€"'), format_number(1.5, "[h]:mm")]
    ['12.5%', '1,234.50 €', '36:00']
    >>> [format_number(7, "000"), format_number(45000, "dd/mm/yyyy"), format_number(1234.5, "#,##0.00")]
    ['007', '2023-03-15', '1234.5']
    """
    sections = _split_format(code if len(code) <= _MAX_CODE else "")
    section = sections[1] if value < 0 and len(sections) > 1 else sections[0]
    letters = {token.lower() for token in section if token.lower() in tuple("ymdhs")}
    elapsed = next((match[1].lower() for token in section if (match := _ELAPSED.fullmatch(token))), "")
    try:
        if elapsed:
            return _format_duration(value, elapsed, "s" in letters)
        if letters:
            return _format_date(value, letters, is_1904)
        if _is_meaningful(section):
            sign = "-" if value < 0 and (section is sections[0] or not {"-", "("} & set(section)) else ""
            return sign + _fill(section, Decimal(f"{abs(value):.15g}"))
    except (InvalidOperation, OverflowError):
        pass
    return str(int(value)) if abs(value) < 1e15 and int(value) == value else f"{value:.15g}"


@lru_cache(maxsize=1000)
def _split_format(code: str) -> list[list[str]]:
    """Return the tokens of each section of an Excel number format.

    The sections, separated by ``;``, are for positive numbers, negative numbers, zero and texts.
    """
    sections: list[list[str]] = [[]]
    for token in _TOKEN.findall(re.sub("general", "0.##########", code, flags=re.IGNORECASE)):
        if token == ";":
            sections.append([])
        else:
            sections[-1].append(token)
    return sections


def _format_duration(value: float, unit: str, has_seconds: bool) -> str:
    seconds = round(abs(value) * 86_400)
    sign = "-" if value < 0 else ""
    if unit == "s":
        return f"{sign}{seconds}"
    minutes, seconds = divmod(seconds, 60)
    text = f"{minutes}" if unit == "m" else f"{minutes // 60}:{minutes % 60:02}"
    return f"{sign}{text}:{seconds:02}" if has_seconds or unit == "m" else sign + text


def _format_date(value: float, letters: set[str], is_1904: bool) -> str:
    """Return an ISO date, without the time if it is midnight; only the time if the format has no date."""
    days = value + 1 if not is_1904 and 0 < value < _FIRST_RELIABLE_DAY else value
    moment = (_EPOCH_1904 if is_1904 else _EPOCH) + timedelta(milliseconds=round(days * 86_400_000))
    if letters.isdisjoint("yd") and not letters.isdisjoint("hs"):
        return moment.time().isoformat()
    return moment.date().isoformat() if moment.time() == time() else moment.isoformat()


def _is_meaningful(section: Sequence[str]) -> bool:
    """Return whether a format adds something to a number: a unit, a percent sign, an exponent or leading zeros."""
    if "/" in section:  # a fraction
        return False
    integer = section[: section.index(".")] if "." in section else section
    literals = (_get_literal(token).strip() for token in section)
    is_parted = re.search("[0#?]-[0#?]", "".join(integer)) is not None  # as a telephone number
    return integer.count("0") > 1 or is_parted or any(text and text not in _PLAIN for text in literals)


def _get_literal(token: str) -> str:
    """Return the text that a token of a format displays; an empty string for digits and other tokens."""
    if token in ("0", "#", "?", ".", ",", "@") or token[0] in "_*":
        return " " if token[0] == "_" else ""
    if token[0] == "[":
        match = _CURRENCY.match(token)
        return match[1] if match else ""
    return token[1:].removesuffix('"') if token[0] == '"' else token[-1:] if token[0] == "\\" else token


def _fill(section: Sequence[str], value: Decimal) -> str:
    """Return the text of a format with the digits of a number in its places."""
    exponent = next((place for place, token in enumerate(section) if token in ("E+", "E-")), len(section))
    places = [place for place, token in enumerate(section[:exponent]) if token in ("0", "#", "?")]
    if not places:
        return "".join(map(_get_literal, section)).strip()
    point = section.index(".") if "." in section[:exponent] else places[-1] + 1
    decimals = "".join(section[place] for place in places if place > point)
    value *= 100 ** section.count("%")
    if exponent < len(section):
        return f"{float(value):.{len(decimals)}E}"
    value /= 1000 ** len([*takewhile(lambda token: token == ",", section[places[-1] + 1 :])])
    rounded = value.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    whole, _, fraction = f"{rounded:f}".partition(".")
    fraction = fraction.rstrip("0").ljust(decimals.rfind("0") + 1, "0")
    integers = [place for place in places if place < point]
    is_grouped = "," in section[places[0] : point]
    optional = [*takewhile(lambda place: section[place] != "0", integers)]  # places before the first 0
    whole = whole.lstrip("0").rjust(len(integers) - len(optional), "0")
    whole = f"{int(whole or 0):,}" if is_grouped else whole.rjust(len(integers), "\0")
    digits = {place: "" if is_grouped else whole[rank - len(integers)] for rank, place in enumerate(integers)}
    if integers:
        digits[integers[0]] = whole if is_grouped else whole[: len(whole) - len(integers) + 1]
    if "." in section[:exponent]:
        digits[point] = ("" if integers else whole) + (f".{fraction}" if fraction else "")
    pieces = [digits.get(place, _get_literal(token)) for place, token in enumerate(section)]
    return "".join(pieces).replace("\0", "").strip()
