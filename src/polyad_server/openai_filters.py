"""Filters of the OpenAI-compatible API and of Dify, as filters of polyad."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from polyad_server.openai_models import DifyComparison, DifyCondition
from polyad_server.problems import RequestError

_OPERATORS = {"eq": "=", "ne": "!=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "in": "in"}
_DIFY_EQUALITY = {"is": "=", "=": "=", "is not": "!=", "≠": "!="}
_DIFY_ORDER = {">": ">", "<": "<", "≥": ">=", "≤": "<="}
_DIFY_TIMES = {"after": ">", "before": "<"}
_DIFY_MEMBERSHIP = ("in", "not in")
_DIFY_PATTERNS = {"contains": "*{}*", "start with": "{}*", "end with": "*{}"}
_MAX_DEPTH = 20

_MIN_TIME, _MIN_MILLISECONDS = 1e8, 1e11
"""Least number that is a time in Unix seconds (1973) or milliseconds, and not a year or a quantity."""

HasValues = Callable[[dict[str, Any]], bool]
"""Returns whether a document has a value that satisfies a filter."""


def parse_openai_filter(filter: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Convert a filter of OpenAI's vector stores, such as ``{"type": "eq", "key": "year", "value": 2020}``.

    The result is a filter of polyad as JSON.

    Raises:
        RequestError: The value is no filter of OpenAI, or uses an unknown operator.
    """
    kind = filter.get("type")
    parts = filter.get("filters")
    has_parts = isinstance(parts, list) and parts and all(isinstance(part, Mapping) for part in parts)
    if kind in ("and", "or") and has_parts and depth < _MAX_DEPTH:
        return {kind: [parse_openai_filter(part, depth + 1) for part in parts or ()]}
    key, value = filter.get("key"), filter.get("value")
    if not isinstance(key, str) or value is None or not isinstance(kind, str) or kind not in {*_OPERATORS, "nin"}:
        raise RequestError(
            422, "invalid_filter", f"the filter is {str(filter)[:100]}; expected type, key and value, or and/or"
        )
    values = value if isinstance(value, list) else [value]
    if kind == "nin":
        return {"not": _compare(key, "in", values)}
    return _compare(key, _OPERATORS[kind], values)


def parse_dify_condition(condition: DifyCondition, has_values: HasValues) -> dict[str, Any] | None:
    """Convert a metadata condition of Dify to a filter of polyad as JSON; None without comparisons.

    A number that is compared with a date is a time in Unix seconds, as Dify sends it.

    Args:
        condition: The condition.
        has_values: Tells whether the field of a comparison has values that can be less or greater.

    Raises:
        RequestError: An operator is not supported, or cannot hold for its value or its field.
    """
    parts = [_parse_dify_comparison(each, has_values) for each in condition.conditions or []]
    if not parts:
        return None
    joint = "or" if condition.logical_operator == "or" else "and"
    return parts[0] if len(parts) == 1 else {joint: parts}


def _parse_dify_comparison(comparison: DifyComparison, has_values: HasValues) -> dict[str, Any]:
    keys = [comparison.name] if isinstance(comparison.name, str) else comparison.name
    each = [_parse_dify_operator(key, comparison.comparison_operator, comparison.value, has_values) for key in keys]
    return each[0] if len(each) == 1 else {"or": each}


def _parse_dify_operator(key: str, operator: str, value: object, has_values: HasValues) -> dict[str, Any]:
    if operator in ("empty", "not empty"):
        exists = _compare(key, "exists", [])
        return exists if operator == "not empty" else {"not": exists}
    if operator in _DIFY_MEMBERSHIP:
        texts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
        values = [each.strip() if isinstance(each, str) else each for each in texts if each not in (None, "")]
        if not values:
            raise _build_value_error(operator, value, "a list, or texts separated by commas")
        is_in = _compare(key, "in", values)
        return is_in if operator == "in" else {"not": is_in}
    if value is None or isinstance(value, list):
        raise _build_value_error(operator, value, "a text or a number")
    if operator in _DIFY_EQUALITY:
        equal = _compare_time(key, "=", value, is_time=False)
        return equal if _DIFY_EQUALITY[operator] == "=" else {"not": equal}
    if operator in _DIFY_PATTERNS:
        return _compare(key, "like", [_DIFY_PATTERNS[operator].format(value)])
    if operator == "not contains":
        return {"not": _compare(key, "like", [f"*{value}*"])}
    if not (symbol := _DIFY_ORDER.get(operator) or _DIFY_TIMES.get(operator)):
        names = *_DIFY_EQUALITY, *_DIFY_ORDER, *_DIFY_TIMES, *_DIFY_PATTERNS, "not contains", *_DIFY_MEMBERSHIP
        operators = ", ".join([*names, "empty", "not empty"])
        raise RequestError(422, "invalid_filter", f"the operator is {operator[:50]!r}; expected one of {operators}")
    is_time = operator in _DIFY_TIMES
    if not has_values({"or": [_compare_time(key, each, value, is_time=is_time) for each in ("<", ">=")]}):
        raise _build_value_error(operator, value, f"a number or a date, as the field {key[:50]!r} has")
    return _compare_time(key, symbol, value, is_time=is_time)


def _compare_time(key: str, operator: str, value: object, *, is_time: bool) -> dict[str, Any]:
    """Return a comparison with a number or text; a large number is also compared with dates as a Unix time.

    Args:
        key: Name of the field.
        operator: Operator of polyad's filters.
        value: The value.
        is_time: Whether the field has times: then a small number in it is a year, and no Unix time.
    """
    try:
        number = float(str(value))
        seconds = number / 1000 if abs(number) >= _MIN_MILLISECONDS else number
        date = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return _compare(key, operator, [value])
    if abs(number) < _MIN_TIME:
        return _compare(key, operator, [value])
    as_number = _compare(key, operator, [value])
    if is_time:
        as_number = {"and": [_compare(key, ">=", [_MIN_TIME]), as_number]}
    as_date = _compare(key, operator, [date.isoformat()])
    if operator == "=":  # any time of the day
        as_date = {"and": [_compare(key, each, [date.date().isoformat()]) for each in (">=", "<=")]}
    return {"or": [as_number, as_date]}


def _build_value_error(operator: str, value: object, expected: str) -> RequestError:
    return RequestError(422, "invalid_filter", f"the value of {operator!r} is {str(value)[:50]!r}; expected {expected}")


def _compare(key: str, operator: str, values: Sequence[object]) -> dict[str, Any]:
    return {"field": key, "operator": operator, "values": list(values)}
