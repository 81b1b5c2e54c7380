"""Tests of the intervals in which facts hold."""

from __future__ import annotations

import calendar
import math
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.errors import SettingError
from polyad.text.validity import Interval, format_time, parse_interval, parse_period

_DATES = st.dates(date(1, 1, 1), date(9998, 12, 31))
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def _seconds(day: date) -> float:
    return 86400.0 * (day.toordinal() - _EPOCH_DAY)


@given(_DATES)
def test_a_partial_date_stands_for_its_whole_period(day: date) -> None:
    year = f"{day.year:04}"
    month_days = calendar.monthrange(day.year, day.month)[1]
    month = _seconds(day.replace(day=1))
    assert parse_period("x", day.isoformat()) == (_seconds(day), _seconds(day) + 86400)
    assert parse_period("x", f"{year}-{day.month:02}") == (month, month + 86400 * month_days)
    assert parse_period("x", year) == (_seconds(date(day.year, 1, 1)), _seconds(date(day.year + 1, 1, 1)))


@given(st.datetimes(timezones=st.timezones() | st.just(UTC), allow_imaginary=False))
def test_an_instant_has_the_same_seconds_in_every_time_zone(time: datetime) -> None:
    in_utc = time.utctimetuple()
    expected = calendar.timegm(in_utc) + time.microsecond / 1e6
    if not (time.utcoffset() or timedelta()) % timedelta(minutes=1):  # the offset of a text is in minutes
        assert parse_period("x", time.isoformat()).start == pytest.approx(expected, abs=1e-4)
    assert parse_period("x", time).start == pytest.approx(expected, abs=1e-4)


@given(st.datetimes())
def test_a_formatted_time_is_read_as_the_same_time(time: datetime) -> None:
    seconds = parse_period("x", time).start
    assert parse_period("x", format_time(seconds)) == Interval(seconds, seconds)
    assert parse_period("x", time.isoformat()).start == seconds, "without an offset a time is in UTC"


@given(_DATES, st.timedeltas(timedelta(), timedelta(days=4000)))
def test_an_interval_contains_its_start_and_not_its_end(day: date, length: timedelta) -> None:
    last = min(day + timedelta(days=length.days), date(9998, 12, 31)) if day.year < 9000 else day
    interval = parse_interval({"valid_from": day.isoformat(), "valid_to": last.isoformat()})
    assert interval.contains(_seconds(day))
    assert interval.contains(_seconds(last) + 86399)
    assert not interval.contains(_seconds(last) + 86400)
    assert not interval.contains(_seconds(day) - 1)


def test_missing_bounds_are_unbounded() -> None:
    assert parse_interval({}) == parse_interval({"valid_from": "", "valid_to": None}) == Interval(-math.inf, math.inf)
    assert parse_interval({"valid_to": "9999-12-31"}).end == math.inf, "the last date that can be written"
    assert parse_interval({"valid_from": 1970}).start == 0, "front matter has years as numbers"
    assert format_time(math.inf) == format_time(-math.inf) == ""


@pytest.mark.parametrize(
    "value",
    ["soon", "24", "2024-13", "2024-02-30", "2024-05-17T25:00", "0000", "20240517", "2024-W05", True, 3.5, "٢٠٢٤"],
)
@pytest.mark.parametrize("field", ["valid_from", "valid_to"])
def test_an_unreadable_date_is_an_error_with_field_and_value(field: str, value: object) -> None:
    with pytest.raises(SettingError) as raised:
        parse_interval({field: value})
    assert raised.value.setting == field
    assert repr(value) in str(raised.value)


def test_an_empty_interval_is_an_error() -> None:
    assert parse_interval({"valid_from": "2024", "valid_to": "2024"}).end == _seconds(date(2025, 1, 1))
    with pytest.raises(SettingError) as raised:
        parse_interval({"valid_from": "2024", "valid_to": "2023"})
    assert raised.value.setting == "valid_to"
    with pytest.raises(SettingError):
        parse_interval({"valid_from": "2024-05-17T12:00Z", "valid_to": "2024-05-17T12:00:00Z"})
