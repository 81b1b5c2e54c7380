"""Filters: conditions on the fields of documents, such as ``year >= 2020 and author in ("Ada", "Bo")``.

The fields ``hyperedge.kind`` and ``hyperedge.role`` are those of hyperedges; a filter that compares one of them selects
hyperedges, each with the fields of its document.

A filter is written as text (:func:`parse_filter`), as JSON (:func:`filter_from_json`) or as the objects of this module.
A comparison with a field that a document does not have is false, so ``not year < 2020`` also selects documents without
a year. A list satisfies a comparison if one of its items does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import translate
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar, cast, get_args

from polyad.errors import ConfigurationError
from polyad.model import Document, MetadataValue, Origin
from polyad.text.literals import Extent, parse_date, parse_number
from polyad.text.validity import Time, parse_period
from polyad.text.words import normalize_value

T = TypeVar("T")

FilterValue = str | int | float | bool
"""A value that a field is compared with."""

FilterOperator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "like", "exists"]
"""``in`` compares with several values, ``like`` with a pattern of ``*`` and ``?``, ``exists`` with none."""

RECORDED: Final = "recorded"
"""Field with the time when the index learnt a document."""

HYPEREDGE_FIELDS: Final = frozenset({"hyperedge.kind", "hyperedge.role"})
"""Fields of hyperedges; all others are fields of documents."""

_MAX_LENGTH: Final = 10_000
_MAX_JSON_LENGTH: Final = 1_000_000
_MAX_DEPTH: Final = 50
_MAX_COMPARISONS: Final = 1000
"""Comparisons in a filter; each is evaluated for every distinct value of its field."""

_YEAR: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")

_EXAMPLE: Final = 'year >= 2020 and author in ("Ada", "Bo") and not path like "drafts/*"'


@dataclass(frozen=True, slots=True)
class Comparison:
    """A filter that compares one field of a document or hyperedge with values, such as ``year >= 2020``."""

    field: str
    operator: FilterOperator
    values: tuple[FilterValue, ...] = ()


@dataclass(frozen=True, slots=True)
class AllOf:
    """A filter that selects a document if all filters in ``parts`` select it (``and``)."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A filter that selects a document if at least one filter in ``parts`` selects it (``or``)."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A filter that selects a document if the filter ``part`` does not select it (``not``)."""

    part: Filter


Filter = Comparison | AllOf | AnyOf | Not

Where = str | Filter | Mapping[str, Any] | None
"""A filter as text, as an object or as JSON; None selects everything."""


class FilterError(ConfigurationError):
    """Raised if a metadata filter cannot be parsed; the message shows the position of the error."""


@lru_cache(maxsize=64)  # the options of a search check the filter that the search applies
def parse_filter(text: str) -> Filter:
    """Parse a filter on metadata, such as ``year >= 2020 and not author = Ada``.

    >>> parse_filter("year >= 2020 and not author = Ada")
    AllOf(parts=(Comparison(field='year', operator='>=', values=(2020,)), \
Not(part=Comparison(field='author', operator='=', values=('Ada',)))))

    Raises:
        FilterError: The text is not a filter.
    """
    if len(text) > _MAX_LENGTH:
        raise FilterError(f"the filter has {len(text):,} characters; expected at most {_MAX_LENGTH:,}")
    return _check_size(_Parser(text).parse())


def to_filter(where: Where, known_at: Time = None) -> Filter | None:
    """Return a metadata filter from an expression such as ``"year >= 2020"``, from JSON or from a filter object.

    Args:
        where: A filter, its text or its JSON; None for none.
        known_at: A time, or a date: the result also excludes documents that were indexed later. What the index learnt
            on that day, or in that month or year, was known. None for no limit.

    Raises:
        FilterError: ``where`` is not a filter.
        SettingError: ``known_at`` is no date.
    """
    if isinstance(where, str):
        where = parse_filter(where)
    elif isinstance(where, Mapping):
        where = filter_from_json(where)
    if known_at is None:
        return where
    parse_period("known_at", known_at)
    text = known_at.isoformat() if isinstance(known_at, datetime) else known_at
    not_later = Not(Comparison(RECORDED, ">", (text,)))
    return not_later if where is None else AllOf((where, not_later))


def format_filter(filter: Filter) -> str:
    """Return a metadata filter as text, such as ``year >= 2020``, which :func:`parse_filter` can parse."""
    match filter:
        case Comparison(field, "in", values):
            return f"{_format_field(field)} in ({', '.join(map(_format_value, values))})"
        case Comparison(field, operator, values):
            return " ".join([_format_field(field), operator, *map(_format_value, values)])
        case Not(part):
            return f"not {_format_part(part)}"
        case AllOf(parts):
            return " and ".join(map(_format_part, parts))
        case AnyOf(parts):
            return " or ".join(map(_format_part, parts))


def filter_to_json(filter: Filter) -> dict[str, Any]:
    """Return a filter as JSON: ``{"field", "operator", "values"}``, ``{"and": []}``, ``{"or": []}`` or ``{"not": {}}``.

    >>> filter_to_json(parse_filter("not year < 2020"))
    {'not': {'field': 'year', 'operator': '<', 'values': [2020]}}
    """
    match filter:
        case Comparison(field, operator, values):
            return {"field": field, "operator": operator, "values": list(values)}
        case Not(part):
            return {"not": filter_to_json(part)}
        case AllOf(parts):
            return {"and": list(map(filter_to_json, parts))}
        case AnyOf(parts):
            return {"or": list(map(filter_to_json, parts))}


def filter_from_json(value: object) -> Filter:
    """Build a metadata filter from the JSON of :func:`filter_to_json`.

    Raises:
        FilterError: The JSON is not a filter.
    """
    if (length := len(json.dumps(value, default=str))) > _MAX_JSON_LENGTH:
        raise FilterError(f"the filter has {length:,} characters of JSON; expected at most {_MAX_JSON_LENGTH:,}")
    return _check_size(_build_from_json(value, 0))


def _build_from_json(value: object, depth: int) -> Filter:
    if depth > _MAX_DEPTH:
        raise FilterError(f"the filter is nested more than {_MAX_DEPTH} levels deep")
    match value:
        case {"field": str(field), "operator": str(operator), "values": list(values)} if _is_comparison(
            operator, values
        ):
            return Comparison(field, cast(FilterOperator, operator), tuple(values))
        case {"not": part}:
            return Not(_build_from_json(part, depth + 1))
        case {"and": [_, *_] as parts}:
            return AllOf(tuple(_build_from_json(part, depth + 1) for part in parts))
        case {"or": [_, *_] as parts}:
            return AnyOf(tuple(_build_from_json(part, depth + 1) for part in parts))
    raise FilterError(
        f'a filter is {json.dumps(value, default=str)[:80]}; expected {{"field", "operator", "values"}}, '
        '{"and": [...]}, {"or": [...]} or {"not": {...}}'
    )


def _check_size(filter: Filter) -> Filter:
    """Return the filter; raise FilterError if it has too many comparisons."""
    if (count := _count_comparisons(filter)) > _MAX_COMPARISONS:
        raise FilterError(
            f"the filter has {count:,} comparisons; expected at most {_MAX_COMPARISONS:,}. "
            "Compare a field with many values by in, as in year in (2020, 2021)"
        )
    return filter


def _count_comparisons(filter: Filter) -> int:
    match filter:
        case Comparison():
            return 1
        case Not(part):
            return _count_comparisons(part)
        case AllOf(parts) | AnyOf(parts):
            return sum(map(_count_comparisons, parts))


def collect_fields(filter: Filter) -> set[str]:
    """Return the names of all metadata fields in a filter."""
    match filter:
        case Comparison(field):
            return {field}
        case Not(part):
            return collect_fields(part)
        case AllOf(parts) | AnyOf(parts):
            return set().union(*map(collect_fields, parts))


def list_document_fields(id: str, document: Document | Origin) -> dict[str, MetadataValue]:
    """Return the fields of a document that a filter can compare: metadata, and ``id``, title, source and URL.

    A stored document has the time when the index learnt it, too. The field ``year`` of a document that states
    none is the year of its ``date``.
    """
    fixed = {"id": id, "title": document.title, "source": document.source, "url": document.url}
    if isinstance(document, Origin):
        fixed[RECORDED] = document.recorded
    fields = {**document.metadata, **{name: value for name, value in fixed.items() if value}}
    if "date" in fields and "year" not in fields and (year := _find_year(str(fields["date"]))):
        fields["year"] = year
    return fields


def _find_year(date: str) -> int | None:
    """Return the year of a date, such as 2023 of "2023-06-01" and of "1 June 2023"; None if it is no date."""
    match = _YEAR.search(date)
    return int(match[0]) if match and parse_date(date) else None


def list_hyperedge_fields(kind: str, roles: Sequence[str]) -> dict[str, MetadataValue]:
    """Return the fields of a hyperedge that a filter can compare: ``hyperedge.kind`` and ``hyperedge.role``."""
    fields: dict[str, MetadataValue] = {"hyperedge.kind": kind}
    return fields | ({"hyperedge.role": tuple(roles)} if roles else {})


def is_selected(filter: Filter, fields: Mapping[str, MetadataValue]) -> bool:
    """Return whether a document with these metadata ``fields`` satisfies a filter.

    >>> is_selected(parse_filter("modified <= 2024"), {"modified": "2024-05-31T10:00:00+00:00"})
    True
    """
    match filter:
        case Comparison():
            return compare_field(filter, fields.get(filter.field))
        case Not(part):
            return not is_selected(part, fields)
        case AllOf(parts):
            return all(is_selected(part, fields) for part in parts)
        case AnyOf(parts):
            return any(is_selected(part, fields) for part in parts)


def compare_field(comparison: Comparison, field: MetadataValue | None) -> bool:
    """Return whether the metadata value ``field`` satisfies a comparison; None (no value) satisfies only ``!=``."""
    return build_predicate(comparison)(field)


def build_predicate(comparison: Comparison) -> Callable[[MetadataValue | None], bool]:
    """Return a function that compares metadata values as :func:`compare_field` does, faster for many of them.

    The time of a call does not grow with the number of values of the comparison.
    """
    match comparison.operator:
        case "exists":
            return lambda field: field is not None
        case "!=":
            is_equal = build_predicate(Comparison(comparison.field, "=", comparison.values))
            return lambda field: not is_equal(field)
        case "=" | "in":
            compare = _build_equality(comparison.values)
        case "like":
            compare = _build_match(str(comparison.values[0]))
        case operator:
            compare = _build_order(comparison.values[0], _IS_ORDERED[operator])
    return lambda field: field is not None and any(map(compare, field if isinstance(field, tuple) else (field,)))


# Comparison of single values


def _build_match(wildcards: str) -> Callable[[Any], bool]:
    """Return a function that tells whether a value matches the pattern ``wildcards`` of the operator ``like``."""
    pattern = _compile_pattern(wildcards)
    return lambda item: pattern.match(_format_scalar(item)) is not None


def _build_equality(values: Sequence[FilterValue]) -> Callable[[FilterValue], bool]:
    """Return a function that tells whether a value equals one of ``values``.

    Texts are compared with texts as texts, and with numbers as numbers or dates. A boolean equals its name.
    """
    names = {_format_scalar(value) for value in values}
    names_of_booleans = {_format_scalar(value) for value in values if isinstance(value, bool)}
    texts = {normalize_value(value) for value in values if isinstance(value, str)}
    is_number_equal = _build_extent_equality([value for value in values if not isinstance(value, bool | str)])
    is_extent_equal = _build_extent_equality([value for value in values if not isinstance(value, bool)])

    def is_equal(item: FilterValue) -> bool:
        if isinstance(item, bool):
            return _format_scalar(item) in names
        if isinstance(item, str):
            return normalize_value(item) in texts or item in names_of_booleans or is_number_equal(item)
        return is_extent_equal(item)

    return is_equal


def _build_extent_equality(values: Sequence[FilterValue]) -> Callable[[FilterValue], bool]:
    """Return a function that tells whether a value is the same number as one of ``values``, or else the same date."""
    extents = [(_parse_plain_number(str(value)), parse_date(str(value))) for value in values]
    numbers = {number.low for number, _ in extents if number}
    dates = {date.low for _, date in extents if date}
    dates_only = {date.low for number, date in extents if date and not number}

    def is_equal(item: FilterValue) -> bool:
        number = _parse_plain_number(str(item)) if extents else None
        date = parse_date(str(item)) if dates else None
        if number and number.low in numbers:
            return True
        return date is not None and date.low in (dates_only if number else dates)

    return is_equal


def _build_order(value: FilterValue, is_satisfied: Callable[[Extent, Extent], bool]) -> Callable[[FilterValue], bool]:
    """Return a function that compares a value with ``value`` as numbers or else dates; False for other values."""
    parsers = (_parse_plain_number, parse_date)
    others = [(parse, other) for parse in parsers if not isinstance(value, bool) and (other := parse(str(value)))]

    def compare(item: FilterValue) -> bool:
        extents = ((parse(str(item)), other) for parse, other in others if not isinstance(item, bool))
        return next((is_satisfied(extent, other) for extent, other in extents if extent), False)

    return compare


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(re.sub(r"\[", "[[]", pattern)))


@lru_cache(maxsize=20_000)  # a filter may compare a field with many numbers
def _parse_plain_number(text: str) -> Extent | None:
    extent = parse_number(text)
    return extent if extent is None or not extent.unit else None


_IS_ORDERED: dict[str, Callable[[Extent, Extent], bool]] = {
    "<": lambda mine, other: mine.low < other.low,
    "<=": lambda mine, other: mine.low < other.end or mine.low == other.low,
    ">": lambda mine, other: mine.low >= other.end and mine.low > other.low,
    ">=": lambda mine, other: mine.low >= other.low,
}


# Text of filters

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
    | (?P<date>\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?)?(?![\w-]))
    | (?P<number>-?\d{1,300}(?:\.\d+)?(?![\w.]))
    | (?P<operator><=|>=|!=|==|[=<>(),])
    | \[(?P<field>[^\[\]]+)\]
    | (?P<word>[^\W\d][\w.-]*)
    )""",
    re.VERBOSE,
)
_KEYWORDS = frozenset({"and", "or", "not", "in", "like", "exists", "true", "false"})
_BARE_FIELD = re.compile(r"[^\W\d][\w.-]*")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


class _Parser:
    """A recursive-descent parser of a metadata filter in text form, such as ``year >= 2020``."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0

    def parse(self) -> Filter:
        filter = self._parse_any(0)
        if self._token.kind != "end":
            raise self._fail("`and`, `or` or the end of the filter")
        return filter

    def _split(self) -> Iterator[_Token]:
        position = 0
        while match := _TOKEN.match(self._text, position):
            kind = match.lastgroup or ""
            word = match[kind].casefold()
            if kind == "word" and word in _KEYWORDS:
                yield _Token("keyword", word, match.start(kind))
            else:
                yield _Token(kind, match[kind], match.start(kind))
            position = match.end()
        position += len(self._text[position:]) - len(self._text[position:].lstrip())
        yield _Token("end" if position == len(self._text) else "unreadable", "", position)

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _accept(self, *tokens: str) -> str:
        """Consume and return the next token of the filter if it is one of ``tokens``; otherwise return ""."""
        token = self._token
        if token.kind not in ("operator", "keyword") or token.text not in tokens:
            return ""
        self._next += 1
        return token.text

    def _parse_any(self, depth: int) -> Filter:
        parts = self._parse_parts("or", lambda: self._parse_all(depth))
        return parts[0] if len(parts) == 1 else AnyOf(parts)

    def _parse_all(self, depth: int) -> Filter:
        parts = self._parse_parts("and", lambda: self._parse_one(depth))
        return parts[0] if len(parts) == 1 else AllOf(parts)

    def _parse_parts(self, separator: str, parse: Callable[[], T]) -> tuple[T, ...]:
        parts = [parse()]
        while self._accept(separator):
            parts.append(parse())
        return tuple(parts)

    def _parse_one(self, depth: int) -> Filter:
        if depth > _MAX_DEPTH:
            raise self._fail(f"at most {_MAX_DEPTH} levels of parentheses")
        if self._accept("not"):
            return Not(self._parse_one(depth + 1))
        if self._accept("("):
            filter = self._parse_any(depth + 1)
            self._require(")")
            return filter
        return self._parse_comparison()

    def _parse_comparison(self) -> Filter:
        if self._token.kind not in ("word", "field"):
            raise self._fail("the name of a field")
        field = self._token.text
        self._next += 1
        if self._accept("not"):
            if self._token.text not in ("in", "like"):
                raise self._fail("`in` or `like`")
            return Not(self._parse_rest(field))
        return self._parse_rest(field)

    def _parse_rest(self, field: str) -> Comparison:
        operator = self._accept("=", "==", "!=", "<", "<=", ">", ">=", "in", "like", "exists")
        if not operator:
            raise self._fail("an operator: = != < <= > >= in, like or exists")
        if operator == "exists":
            return Comparison(field, "exists")
        if operator != "in":
            return Comparison(field, cast(FilterOperator, operator.replace("==", "=")), (self._parse_value(),))
        self._require("(")
        values = self._parse_parts(",", self._parse_value)
        self._require(")")
        return Comparison(field, "in", values)

    def _parse_value(self) -> FilterValue:
        token = self._token
        if word := self._accept("true", "false"):
            return word == "true"
        if token.kind not in ("string", "date", "number", "word"):
            raise self._fail('a value: "text", a number, a date, true or false')
        self._next += 1
        if token.kind == "number":
            return float(token.text) if "." in token.text else int(token.text)
        return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL) if token.kind == "string" else token.text

    def _require(self, text: str) -> None:
        if not self._accept(text):
            raise self._fail(f"`{text}`")

    def _fail(self, expected: str) -> FilterError:
        position = self._token.position
        actual = repr(self._text[position : position + 20]) if position < len(self._text) else "the end"
        return FilterError(
            f"the filter cannot be parsed at character {position + 1}: {actual}; expected {expected}, as in {_EXAMPLE}"
        )


def _is_comparison(operator: str, values: Sequence[object]) -> bool:
    """Return whether JSON values form a valid comparison: a supported operator, with the right number of values."""
    count_fits = {"exists": not values, "in": bool(values)}.get(operator, len(values) == 1)
    return (
        operator in get_args(FilterOperator) and count_fits and all(isinstance(value, FilterValue) for value in values)
    )


def _format_part(filter: Filter) -> str:
    text = format_filter(filter)
    return text if isinstance(filter, Comparison) else f"({text})"


def _format_field(field: str) -> str:
    return field if _BARE_FIELD.fullmatch(field) and field.casefold() not in _KEYWORDS else f"[{field}]"


def _format_value(value: FilterValue) -> str:
    if isinstance(value, str):
        return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
    return _format_scalar(value)


def _format_scalar(value: FilterValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
