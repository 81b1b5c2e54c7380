"""Values of facts that were given as data: what they are, and how they compare.

A literal (a number with its unit, a date with its precision, a boolean, a text) tells nothing apart by being equal:
"42" as someone's age and "42" as someone's dose have nothing in common. So literals join no facts; they are compared.
"""

# ruff: noqa: SIM905  a word list reads best as words

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import get_args

from polyad.errors import ConfigurationError
from polyad.model import Argument, ArgumentType, Condition, Operator

_NUMBER = re.compile(
    r"([+\-\u2212]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d{1,4})?(?:\s*((?:[^\W\d_]|[%\u2030\u00b0$\u20ac\u00a3\u00a5/]).*))?",
    re.DOTALL,
)
"""A sign, digits, a fraction, an exponent, and a unit: not what stands behind a hyphen, as in "50-60" or a date."""

_CODE = re.compile(r"0\d|\d+[eE]\d")
"""What begins like a number and is more likely a code: "007", "12E4"."""

_UNITS = frozenset(
    """
    % \u2030 \u00b0 \u00b0C \u00b0F \u20ac $ \u00a3 \u00a5 EUR USD GBP CHF JPY
    pg ng \u00b5g \u03bcg mcg ug mg g kg lb oz IU IE mIU mmol \u00b5mol \u03bcmol nmol mol
    nl \u00b5l \u03bcl ul ml mL cl dl dL l L nm \u00b5m \u03bcm mm cm m km mi ft m\u00b2 km\u00b2 ha m\u00b3 cm\u00b3
    ns ms sec min h hr hrs day days week weeks month months year years yr yrs hour hours minute minutes second
    seconds Hz kHz MHz GHz mV V kV mA mW W kW MW GW J kJ kcal cal Pa hPa kPa MPa bar mbar mmHg
    kB MB GB TB bit byte bytes
    """.split()
)
"""What is taken for the unit of a number that nobody declared one: "12 Monkeys" is no number, nor "1980s"."""

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
"""Of units that a decimal prefix makes of another: that one, and the power of ten of which they are the multiple."""

_UNIT_PART = re.compile(r"[/\u00b7*]")
_POWER = re.compile(r"\^?-?[23]?$")

_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(\.\d{1,6})?)?\s*(Z|[+-]\d\d:?\d\d)?)?)?)?"
)
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}
_SPELT_BOOLEANS = frozenset({"true", "false", "True", "False", "TRUE", "FALSE", "yes", "no", "Yes", "No"})
"""Without "NO", which is Norway in a column of countries."""

_LONGEST_NAME = 12
"""Words; longer ones are texts."""

_CONDITION = re.compile(r"(.*?[^<>!=\s])\s*(>=|<=|!=|=|<|>)(.*)", re.DOTALL)

TYPES = get_args(ArgumentType)
"""What a value can be declared to be."""


@dataclass(frozen=True, slots=True)
class Extent:
    """A literal as a part of a scale: a number is one point of it, a date all of its year, month, day or second.

    Attributes:
        low: Where it begins.
        end: Where the next begins; of a number, itself.
        unit: Of a number; empty for none.
    """

    low: Decimal
    end: Decimal
    unit: str = ""


def normalize_value(value: str) -> str:
    r"""A value with single blanks between its words, its letters composed (NFC): what it is found by.

    >>> normalize_value(" Port\n Lisle "), normalize_value("e\u0301") == "\u00e9"
    ('Port Lisle', True)
    """
    return unicodedata.normalize("NFC", " ".join(value.split()))


def infer_type(value: str) -> ArgumentType:
    """What a value is that nobody declared; whatever could be a name is an entity.

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
    """A number and what stands behind it as its unit, or else ``unit``; None for what is no number.

    >>> parse_number("1,200.50 mg/dl"), parse_number("-3e2", "K")
    (Extent(low=Decimal('1200.50'), end=Decimal('1200.50'), unit='mg/dl'), Extent(low=Decimal('-3E+2'), \
end=Decimal('-3E+2'), unit='K'))
    """
    found = _NUMBER.fullmatch(value.strip())
    if not found:
        return None
    sign, whole, fraction, exponent, own = found.groups(default="")
    exact = Decimal(f"{'' if sign in '+' else '-'}{whole.replace(',', '')}{fraction}{exponent}")
    return Extent(exact, exact, normalize_value(own) or unit)


def parse_date(value: str) -> Extent | None:
    """A date (ISO 8601) of a year, a month, a day, a minute or a second, in seconds; None for what is none.

    A time without a zone is in UTC. Years are those of the common era, with four digits.
    """
    found = _DATE.fullmatch(value.strip())
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
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
    """Where a literal lies on its scale; None for what lies on none, such as a text, or a date that is not one."""
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
    """What ``role=value``, ``role>=value`` and the like ask.

    >>> parse_condition("winner=Ines Moreau"), parse_condition("year >= 1990")
    (Condition(role='winner', operator='=', value='Ines Moreau'), Condition(role='year', operator='>=', value='1990'))

    Raises:
        ConfigurationError: It is none, or compares the order of what has none.
    """
    found = _CONDITION.fullmatch(text.strip())
    operators = ", ".join(get_args(Operator))
    if not found or not found[3].strip():
        raise ConfigurationError(f"{text!r} asks nothing of a role; expected ROLE, one of {operators} and a value")
    operator: Operator = next(one for one in get_args(Operator) if one == found[2])
    asked = Condition(found[1].strip(), operator, found[3].strip())
    if operator not in ("=", "!=") and not (parse_number(asked.value) or parse_date(asked.value)):
        raise ConfigurationError(f"{text!r} compares {asked.value!r}; expected a number, or a date such as 1990-05-31")
    return asked


def convert_unit(extent: Extent, unit: str) -> Extent | None:
    """The same amount in another unit, exactly; None where it cannot be told. What has no unit is in any.

    Only units are converted that differ by a decimal prefix: a minute or a pound is in none but its own.

    >>> convert_unit(Extent(Decimal("1.5"), Decimal("1.5"), "g"), "mg")
    Extent(low=Decimal('1.5E+3'), end=Decimal('1.5E+3'), unit='mg')
    """
    if not extent.unit or extent.unit == unit:
        return extent
    if extent.unit not in _SCALES or unit not in _SCALES or _SCALES[extent.unit][0] != _SCALES[unit][0]:
        return None
    power = _SCALES[extent.unit][1] - _SCALES[unit][1]
    return Extent(_shifted(extent.low, power), _shifted(extent.end, power), unit)


def list_convertible_units(unit: str) -> list[str]:
    """The units in which an amount in ``unit`` can be told, itself included."""
    if unit not in _SCALES:
        return [unit]
    return [other for other, (base, _) in _SCALES.items() if base == _SCALES[unit][0]]


def parse_condition_extent(asked: Condition, type: ArgumentType) -> Extent | None:
    """The value of a condition as a literal of some type; None where it is none."""
    return get_extent(Argument(asked.role, asked.value, type))


def parse_condition_year(asked: Condition) -> int | None:
    """The year of a date that is more than a year, by which numbers that are years can be told; None for others."""
    if asked.operator in ("=", "!=") or parse_number(asked.value) or not parse_date(asked.value):
        return None
    return int(asked.value.strip()[:4])


def is_satisfied(asked: Condition, argument: Argument) -> bool:
    """Whether an argument is as a condition asks.

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
    if asked.role != argument.role:
        return False
    if asked.operator in ("=", "!="):
        return _equal(asked, argument) == (asked.operator == "=")
    type = argument.type
    if type == "number" and parse_condition_year(asked) is not None:  # a year among dates, where nobody declared it
        type = "date"
    mine, other = _on_one_scale(get_extent(replace(argument, type=type)), parse_condition_extent(asked, type))
    if mine is None or other is None or type == "boolean":
        return False
    is_point = type == "number"
    match asked.operator:
        case ">=":
            return mine.low >= other.low
        case ">":
            return mine.low > other.low if is_point else mine.low >= other.end
        case "<=":
            return mine.end <= other.end
        case _:
            return mine.end < other.low if is_point else mine.end <= other.low


def is_match(conditions: Iterable[Condition], arguments: Sequence[Argument]) -> bool:
    """Whether a fact's arguments meet all conditions.

    Where a role is taken several times, some argument in it has to meet each that asks for equality, one and the same
    all that ask for an order, and none may be what another says it is not.
    """
    ranges: defaultdict[str, list[Condition]] = defaultdict(list)
    for asked in conditions:
        own = [argument for argument in arguments if argument.role == asked.role]
        if asked.operator == "=":
            if not any(is_satisfied(asked, argument) for argument in own):
                return False
        elif asked.operator == "!=":
            if not own or not all(is_satisfied(asked, argument) for argument in own):
                return False
        else:
            ranges[asked.role].append(asked)
    return all(any(all(is_satisfied(asked, one) for asked in asks) for one in arguments) for asks in ranges.values())


def _equal(asked: Condition, argument: Argument) -> bool:
    text = normalize_value(asked.value)
    if text in map(normalize_value, (argument.value, *argument.names)):
        return True
    mine, other = _on_one_scale(get_extent(argument), parse_condition_extent(asked, argument.type))
    return mine is not None and other is not None and mine.low == other.low and mine.end == other.end


def _on_one_scale(mine: Extent | None, asked: Extent | None) -> tuple[Extent | None, Extent | None]:
    """The two in the unit of the first; None for the second where it cannot be told in that."""
    return mine, None if mine is None or asked is None else convert_unit(asked, mine.unit)


def _shifted(value: Decimal, power: int) -> Decimal:
    """The value times a power of ten, with all its digits."""
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
