"""Intervals of time in which facts hold: ISO 8601 in UTC, as seconds since 1970.

An interval is half-open: it contains its start and not its end. A missing bound is unbounded. A partial date stands for
the whole period, so ``valid_from`` 2024 begins on 1 January 2024 and ``valid_to`` 2024 ends with the year.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from polyad.errors import SettingError

Time = str | datetime | None
"""A time, or a date in ISO 8601; None where it is not limited."""

VALID_FROM = "valid_from"
VALID_TO = "valid_to"
VALIDITY_KEYS = (VALID_FROM, VALID_TO)
"""Metadata keys, columns and fields of a reply with the bounds of an interval."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR = 9999
_EXPECTED = "a date such as 2024, 2024-05, 2024-05-17 or 2024-05-17T12:30:00Z"
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)


class Interval(NamedTuple):
    """A time interval in seconds since 1970, without its end; an infinite bound means no limit."""

    start: float = -math.inf
    end: float = math.inf

    def contains(self, time: float) -> bool:
        """Return whether a time, in seconds since 1970, is in the interval."""
        return self.start <= time < self.end

    def overlaps(self, other: Interval) -> bool:
        """Return whether two time intervals have a time in common."""
        return max(self.start, other.start) < min(self.end, other.end)

    def intersect(self, other: Interval) -> Interval:
        """Return the intersection of two time intervals."""
        return Interval(max(self.start, other.start), min(self.end, other.end))


UNBOUNDED = Interval()


def parse_interval(metadata: Mapping[str, object]) -> Interval:
    """Return the validity period in metadata with ``valid_from`` and ``valid_to``; a missing date means no limit.

    >>> parse_interval({"valid_from": "1970-01-02", "valid_to": "9999"})
    Interval(start=86400.0, end=inf)

    Raises:
        SettingError: A value is no date, or the interval is empty.
    """
    values = {key: metadata.get(key) for key in VALIDITY_KEYS}
    periods = {key: parse_period(key, value) for key, value in values.items() if value not in (None, "")}
    interval = Interval(
        periods[VALID_FROM].start if VALID_FROM in periods else -math.inf,
        periods[VALID_TO].end if VALID_TO in periods else math.inf,
    )
    if interval.start >= interval.end:
        raise SettingError(VALID_TO, values[VALID_TO], f"a date after valid_from, {values[VALID_FROM]!r}")
    return interval


def parse_bounds(valid_from: str, valid_to: str) -> Interval:
    """Return the validity period between two dates as an Interval; an empty date means no limit."""
    return parse_interval({VALID_FROM: valid_from, VALID_TO: valid_to}) if valid_from or valid_to else UNBOUNDED


def parse_period(name: str, value: object) -> Interval:
    """Return a date as a time interval: the whole year, month or day; length 0 for an exact time.

    Args:
        name: Name of the value, for the error message.
        value: A text, a year as a number, or a ``datetime``. Times without an offset are in UTC.

    Raises:
        SettingError: The value is no date.
    """
    if isinstance(value, datetime):
        time = _to_seconds(value)
        return Interval(time, time)
    text = str(value).strip() if isinstance(value, str | int) else ""
    try:
        if match := _DATE.fullmatch(text):
            return _build_period(*(int(part) for part in match.groups() if part))
        if _TIME.fullmatch(text):
            time = _to_seconds(datetime.fromisoformat(text))
            return Interval(time, time)
    except ValueError:  # a month 13
        pass
    raise SettingError(name, value, _EXPECTED)


def format_time(seconds: float) -> str:
    """Format seconds since 1970 as ISO 8601 date and time in UTC; an empty string for an infinite time.

    >>> format_time(86400.0), format_time(float("inf"))
    ('1970-01-02T00:00:00Z', '')
    """
    if math.isinf(seconds):
        return ""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def describe_validity(interval: Interval, now: float) -> str:
    """Return a phrase such as "held until 2020-01-01" for a validity period; empty if it contains ``now``.

    >>> describe_validity(parse_interval({"valid_from": "2012", "valid_to": "2019-06"}), now=2e9)
    'held from 2012-01-01 until 2019-07-01'
    """
    if interval.contains(now):
        return ""
    bounds = zip(("from", "until"), map(format_time, interval), strict=True)
    dates = (f"{name} {time.removesuffix('T00:00:00Z')}" for name, time in bounds if time)
    return f"{'held' if interval.end <= now else 'will hold'} {' '.join(dates)}"


def _build_period(year: int, month: int = 0, day: int = 0) -> Interval:
    start = datetime(year, month or 1, day or 1, tzinfo=UTC)
    if day:
        end = _to_seconds(start) + timedelta(days=1).total_seconds()
        return Interval(_to_seconds(start), math.inf if (year, month, day) == (_LAST_YEAR, 12, 31) else end)
    years, months = divmod(12 * year + month if month else 12 * (year + 1), 12)
    is_last = years > _LAST_YEAR
    return Interval(
        _to_seconds(start), math.inf if is_last else _to_seconds(datetime(years, months + 1, 1, tzinfo=UTC))
    )


def _to_seconds(time: datetime) -> float:
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH).total_seconds()
