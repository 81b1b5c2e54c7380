"""Values of facts that were supplied as data: their types, and how they compare with conditions.

A literal is a number with its unit, a date with its precision, a boolean or a text. Equal literals do not identify
anything: "42" as someone's age and "42" as someone's dose have nothing in common. So literals join no facts; they are
compared.
"""

# ruff: noqa: SIM905  a word list reads best as words

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import get_args

from polyad.errors import ConfigurationError
from polyad.model import Argument, ArgumentType, Condition, Operator
from polyad.text.dates import convert_foreign_date, fold_digits
from polyad.text.words import normalize_value

_NUMBER = re.compile(
    r"([+\-\u2212]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d{1,4})?(?:\s*((?:[^\W\d_]|[%\u2030\u00b0$\u20ac\u00a3\u00a5/]).*))?",
    re.DOTALL,
)
"""A sign, digits, a fraction, an exponent, and a unit; no unit after a hyphen, as in "50-60" or a date."""

_CODE = re.compile(r"0\d|\d+[eE]\d")
"""The beginning of a value that looks like a number but is more likely a code: "007", "12E4"."""

_UNITS = frozenset(
    """
    % \u2030 \u00b0 \u00b0C \u00b0F \u20ac $ \u00a3 \u00a5 EUR USD GBP CHF JPY
    pg ng \u00b5g \u03bcg mcg ug mg g kg lb oz IU IE mIU mmol \u00b5mol \u03bcmol nmol mol
    nl \u00b5l \u03bcl ul ml mL cl dl dL l L nm \u00b5m \u03bcm mm cm m km mi ft m\u00b2 km\u00b2 ha m\u00b3 cm\u00b3
    ns ms sec min h hr hrs day days week weeks month months year years yr yrs hour hours minute minutes second
    seconds Hz kHz MHz GHz mV V kV mA mW W kW MW GW J kJ kcal cal Pa hPa kPa MPa bar mbar mmHg
    kB MB GB TB bit byte bytes
    \u043a\u0433 \u0433 \u043a\u043c \u043c \u0441\u043c \u043c\u043c \u516c\u65a4 \u5343\u514b \u514b
    \u516c\u91cc \u5343\u7c73 \u7c73 \u5398\u7c73 \u6beb\u7c73 \u0643\u063a \u0643\u0645
    """.split()
)
"""Units that are recognised without a declaration: "12 Monkeys" is no number, nor is "1980s"."""

_PREFIXES = {
    prefix: power
    for power, prefixes in {-12: "p", -9: "n", -6: "\u00b5 \u03bc mc u", -3: "m", -2: "c", -1: "d", 2: "h"}.items()
    for prefix in prefixes.split()
} | {"": 0, "k": 3, "M": 6, "G": 9}
_BASES = ("g", "m", "s", "l", "L", "mol", "IU", "Hz", "V", "A", "W", "J", "cal", "Pa", "bar")
_SCALES = {
    unit: (base.lower(), _PREFIXES[prefix])
    for unit in sorted(_UNITS)
    for base in _BASES
    if unit.endswith(base) and (prefix := unit.removesuffix(base)) in _PREFIXES
}
"""Base unit and power of ten of each unit that is a decimal multiple of another."""

_UNIT_PART = re.compile(r"[/\u00b7*]")
_POWER = re.compile(r"\^?-?[23]?$")

_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(\.\d{1,6})?)?\s*(Z|[+-]\d\d:?\d\d)?)?)?)?"
)
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}
_SPELT_BOOLEANS = frozenset({"true", "false", "True", "False", "TRUE", "FALSE", "yes", "no", "Yes", "No"})
"""Spellings of booleans, without "NO", which is Norway in a column of countries."""

_LONGEST_NAME = 12
"""Most words of a name; a longer value is a text."""

_CONDITION = re.compile(r"(.*?[^<>!=\s])\s*(>=|<=|!=|=|<|>)(.*)", re.DOTALL)

TYPES = get_args(ArgumentType)
"""The types that a value can be declared to have."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The range of numbers, or of seconds, that a number, date or boolean in a fact stands for.

    Attributes:
        low: The beginning of the range.
        end: The beginning of the next range; equal to ``low`` for a number.
        unit: The unit of a number; empty for none.
    """

    low: Decimal
    end: Decimal
    unit: str = ""


def infer_type(value: str) -> ArgumentType:
    """Return the likely type of an argument's text: number, date, boolean, string, or entity for a possible name.

    >>> [infer_type(value) for value in ("-250", "5 mg", "12 Monkeys", "2015-03", "Yes", "AB-", "007", "Us", "")]
    ['number', 'number', 'entity', 'date', 'boolean', 'entity', 'entity', 'entity', 'string']
    """
    text = normalize_value(value)
    if not text or len(text.split()) > _LONGEST_NAME:
        return "string"
    if text in _SPELT_BOOLEANS:
        return "boolean"
    if len(text) > len("1990") and parse_date(text):
        return "date"
    number = None if _CODE.match(text) else parse_number(text)
    return "number" if number and (not number.unit or _is_unit(number.unit)) else "entity"


def parse_number(value: str, unit: str = "") -> Extent | None:
    """Parse a number with a unit, such as "3.5 mg"; ``unit`` is the default unit. None if it is no number.

    >>> parse_number("1,200.50 mg/dl")
    Extent(low=Decimal('1200.50'), end=Decimal('1200.50'), unit='mg/dl')
    """
    match = _NUMBER.fullmatch(fold_digits(value.strip()))
    if not match:
        return None
    sign, whole, fraction, exponent, value_unit = match.groups(default="")
    exact = Decimal(f"{'' if sign in '+' else '-'}{whole.replace(',', '')}{fraction}{exponent}")
    return Extent(exact, exact, normalize_value(value_unit) or unit)


def parse_date(value: str) -> Extent | None:
    """Parse an ISO 8601 year, month, day, minute or second as a range of seconds; None if it is no date.

    Days, months and years may be in the form of another language, such as "5. März 2021" or
    "2021年3月5日". A time without a zone is in UTC. Years are those of the common era, with four digits.
    """
    match = _DATE.fullmatch(fold_digits(convert_foreign_date(value.strip())))
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        start = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
    except ValueError:
        return None
    low = _seconds(start) + Decimal(fraction or 0) - _offset(zone)
    if fraction:
        return Extent(low, low + Decimal(1).scaleb(1 - len(fraction)))
    if hour:
        return Extent(low, low + (1 if second else 60))
    if day:
        return Extent(low, low + 24 * 3600)
    year_after, month_after = (start.year, start.month + 1) if month and month != "12" else (start.year + 1, 1)
    if year_after > 9999:
        return Extent(low, low + (31 if month else 365) * 24 * 3600)
    return Extent(low, _seconds(datetime(year_after, month_after, 1, tzinfo=UTC)))


def get_extent(argument: Argument) -> Extent | None:
    """Return the numeric range of an argument's value; None for a text or an invalid number or date."""
    match argument.type:
        case "number":
            return parse_number(argument.value, argument.unit)
        case "date":
            return parse_date(argument.value)
        case "boolean":
            truth = _BOOLEANS.get(normalize_value(argument.value).lower())
            return None if truth is None else Extent(Decimal(truth), Decimal(truth))
        case _:
            return None


def parse_condition(text: str) -> Condition:
    """Parse a condition on an argument of a fact, such as ``role=value`` or ``year >= 1990``.

    >>> parse_condition("winner=Ines Moreau"), parse_condition("year >= 1990")
    (Condition(role='winner', operator='=', value='Ines Moreau'), Condition(role='year', operator='>=', value='1990'))

    Raises:
        ConfigurationError: ``text`` is no condition, or compares the order of values other than numbers and dates.
    """
    match = _CONDITION.fullmatch(text.strip())
    operators = ", ".join(get_args(Operator))
    if not match or not match[3].strip():
        raise ConfigurationError(f"{text!r} is no condition on a role; expected ROLE, one of {operators}, and a value")
    operator: Operator = next(one for one in get_args(Operator) if one == match[2])
    condition = Condition(match[1].strip(), operator, match[3].strip())
    if operator not in ("=", "!=") and not (parse_number(condition.value) or parse_date(condition.value)):
        raise ConfigurationError(
            f"{text!r} compares {condition.value!r}; expected a number, or a date such as 1990-05-31"
        )
    return condition


def convert_unit(extent: Extent, unit: str) -> Extent | None:
    """Convert a numeric range to another unit, exactly; None if impossible. A range without unit is unchanged.

    Only units are converted that differ by a decimal prefix: a minute or a pound is in none but its own.

    >>> convert_unit(Extent(Decimal("1.5"), Decimal("1.5"), "g"), "mg")
    Extent(low=Decimal('1.5E+3'), end=Decimal('1.5E+3'), unit='mg')
    """
    if not extent.unit or extent.unit == unit:
        return extent
    if extent.unit not in _SCALES or unit not in _SCALES or _SCALES[extent.unit][0] != _SCALES[unit][0]:
        return None
    power = _SCALES[extent.unit][1] - _SCALES[unit][1]
    return Extent(_shift(extent.low, power), _shift(extent.end, power), unit)


def list_convertible_units(unit: str) -> list[str]:
    """Return all units to which ``unit`` can be converted, including ``unit``."""
    if unit not in _SCALES:
        return [unit]
    return [other for other, (base, _) in _SCALES.items() if base == _SCALES[unit][0]]


def parse_condition_extent(condition: Condition, type: ArgumentType) -> Extent | None:
    """Return the numeric range of a condition's value, read as ``type``; None if it is no such value."""
    return get_extent(Argument(condition.role, condition.value, type))


def parse_condition_year(condition: Condition) -> int | None:
    """Return the year in a condition on dates, such as ``born > 1990-05-01``; None for other conditions.

    Numbers of four digits are compared with this year.
    """
    value = fold_digits(convert_foreign_date(condition.value.strip()))
    if condition.operator in ("=", "!=") or parse_number(value) or not parse_date(value):
        return None
    return int(value[:4])


def is_satisfied(condition: Condition, argument: Argument) -> bool:
    """Return whether the argument of a fact satisfies a condition such as ``year >= 1990``.

    Texts are compared exactly, but for white space; an entity known by an id is also found by its names. Numbers are
    compared as numbers; where the condition names a unit, only those of which it can be told how many of it they are
    (:func:`convert_unit`). Booleans are compared by their truth. A date is before
    another if all of it is; it is equal to one of the same precision: 1990-05-31 is in 1990 (``>=1990``, ``<=1990``),
    and not equal to it. A number of four digits is a year where it is compared with a date.

    >>> is_satisfied(Condition("reading", "=", "250"), Argument("reading", "-250", "number"))
    False
    >>> is_satisfied(Condition("born", "<=", "1990"), Argument("born", "1990-05-31", "date"))
    True
    """
    if condition.role != argument.role:
        return False
    if condition.operator in ("=", "!="):
        return _is_equal(condition, argument) == (condition.operator == "=")
    type = argument.type
    if type == "number" and parse_condition_year(condition) is not None:  # a year among dates, where nobody declared it
        type = "date"
    mine, other = _convert_to_common_unit(
        get_extent(replace(argument, type=type)), parse_condition_extent(condition, type)
    )
    if mine is None or other is None or type == "boolean":
        return False
    is_point = type == "number"
    match condition.operator:
        case ">=":
            return mine.low >= other.low
        case ">":
            return mine.low > other.low if is_point else mine.low >= other.end
        case "<=":
            return mine.end <= other.end
        case _:
            return mine.end < other.low if is_point else mine.end <= other.low


def is_match(conditions: Iterable[Condition], arguments: Sequence[Argument]) -> bool:
    """Return whether a fact with these arguments satisfies all conditions, such as ``year >= 1990``.

    If a role has several arguments, some argument must satisfy each condition of equality, a single argument must
    satisfy all conditions of order, and no argument may have a value that a condition excludes.
    """
    ranges: defaultdict[str, list[Condition]] = defaultdict(list)
    for condition in conditions:
        values = [argument for argument in arguments if argument.role == condition.role]
        if condition.operator == "=":
            if not any(is_satisfied(condition, argument) for argument in values):
                return False
        elif condition.operator == "!=":
            if not values or not all(is_satisfied(condition, argument) for argument in values):
                return False
        else:
            ranges[condition.role].append(condition)
    return all(
        any(all(is_satisfied(condition, one) for condition in asks) for one in arguments) for asks in ranges.values()
    )


def _is_equal(condition: Condition, argument: Argument) -> bool:
    text = normalize_value(condition.value)
    if text in map(normalize_value, (argument.value, *argument.names)):
        return True
    mine, other = _convert_to_common_unit(get_extent(argument), parse_condition_extent(condition, argument.type))
    return mine is not None and other is not None and mine.low == other.low and mine.end == other.end


def _convert_to_common_unit(first: Extent | None, second: Extent | None) -> tuple[Extent | None, Extent | None]:
    """Return two numeric ranges, both in the unit of ``first``; ``second`` becomes None if it cannot be converted."""
    return first, None if first is None or second is None else convert_unit(second, first.unit)


def _shift(value: Decimal, power: int) -> Decimal:
    """Return a decimal number times ten to the ``power``, without rounding."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "a literal is finite"
    return Decimal((sign, digits, exponent + power))


def _is_unit(text: str) -> bool:
    return all(_POWER.sub("", part.strip()) in _UNITS or part.strip() in _UNITS for part in _UNIT_PART.split(text))


def _seconds(transaction: datetime) -> Decimal:
    return Decimal((transaction - datetime(1, 1, 1, tzinfo=UTC)) // timedelta(seconds=1))


def _offset(zone: str | None) -> int:
    if zone in (None, "Z"):
        return 0
    assert zone is not None
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return (60 if zone[0] == "+" else -60) * minutes
