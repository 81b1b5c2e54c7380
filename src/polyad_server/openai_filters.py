"""Filters of the OpenAI-compatible API and of Dify, as filters of polyad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyad_server.openai_models import DifyComparison, DifyCondition
from polyad_server.problems import RequestError

_OPERATORS = {"eq": "=", "ne": "!=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "in": "in"}
_DIFY_OPERATORS = {
    "is": "=",
    "=": "=",
    "is not": "!=",
    "≠": "!=",
    ">": ">",
    "after": ">",
    "<": "<",
    "before": "<",
    "≥": ">=",
    "≤": "<=",
}
_DIFY_PATTERNS = {"contains": "*{}*", "start with": "{}*", "end with": "*{}"}
_MAX_DEPTH = 20


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


def parse_dify_condition(condition: DifyCondition) -> dict[str, Any] | None:
    """Convert a metadata condition of Dify to a filter of polyad as JSON; None without comparisons.

    Raises:
        RequestError: An operator is not supported.
    """
    parts = [_parse_dify_comparison(each) for each in condition.conditions or []]
    if not parts:
        return None
    joint = "or" if condition.logical_operator == "or" else "and"
    return parts[0] if len(parts) == 1 else {joint: parts}


def _parse_dify_comparison(comparison: DifyComparison) -> dict[str, Any]:
    keys = [comparison.name] if isinstance(comparison.name, str) else comparison.name
    each = [_parse_dify_operator(key, comparison.comparison_operator, comparison.value) for key in keys]
    return each[0] if len(each) == 1 else {"or": each}


def _parse_dify_operator(key: str, operator: str, value: object) -> dict[str, Any]:
    if operator in _DIFY_OPERATORS:
        return _compare(key, _DIFY_OPERATORS[operator], [value])
    if operator in _DIFY_PATTERNS:
        return _compare(key, "like", [_DIFY_PATTERNS[operator].format(value)])
    if operator in ("empty", "not empty"):
        exists = _compare(key, "exists", [])
        return exists if operator == "not empty" else {"not": exists}
    if operator == "not contains":
        return {"not": _compare(key, "like", [f"*{value}*"])}
    operators = ", ".join([*_DIFY_OPERATORS, *_DIFY_PATTERNS, "not contains", "empty", "not empty"])
    raise RequestError(422, "invalid_filter", f"the operator is {operator[:50]!r}; expected one of {operators}")


def _compare(key: str, operator: str, values: Sequence[object]) -> dict[str, Any]:
    return {"field": key, "operator": operator, "values": list(values)}
