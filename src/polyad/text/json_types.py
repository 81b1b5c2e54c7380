"""Checks JSON values against types, so that code behind the check can rely on them."""

from __future__ import annotations

import math
import re
import reprlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NewType, TypeGuard, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import numpy.typing as npt

from polyad.model import MetadataValue

Name = NewType("Name", str)
"""A string that is shown in tables and plots: printable, of at most 255 characters."""

_MAX_NUMBER = 1e15
"""Largest absolute number. No measurement is larger, and sums and powers of larger numbers overflow."""

_MAX_COMPONENT = 1000
"""Largest absolute component of a vector; sums and products of larger ones overflow. Embedders return unit vectors."""

_SIZE = re.compile("[0-9]{1,15}")

_JSON_TYPES = frozenset({str, int, float, bool, NoneType})


class FieldError(ValueError):
    """An error for a field of a JSON file whose value has the wrong type.

    Attributes:
        expected: Expected type or values.
        key: Last key on the way to the value; empty for the whole value.
    """

    def __init__(self, place: str, value: object, expected: str) -> None:
        super().__init__(f"{place or 'it'} is {reprlib.repr(value)}; expected {expected}")
        self.expected = expected
        self.key = place.rpartition(".")[2].partition("[")[0]


def parse_value(value: Any, type_: Any, place: str = "") -> Any:
    """Convert the JSON ``value`` to the Python type ``type_``, such as a dataclass, and check all field types.

    A dataclass and a typed dictionary are read from an object without other keys, a tuple and a frozenset from an
    array, a mapping from an object, a vector from base64 of little-endian float32.

    A document that was formatted by :func:`format_value` is parsed without loss, with its vectors.

    Args:
        value: The JSON value.
        type_: One of these, a value of metadata, a string, string enumeration, number, boolean, literal or optional
            type; a whole number may stand for a float.
        place: Where the value is, such as ``dataset.questions[3]``, for messages.

    Raises:
        FieldError: The value is of another type.
    """
    kind, arguments = get_origin(type_) or type_, get_args(type_)
    if kind is np.ndarray:
        return _parse_vector(value, place)
    if type_ == MetadataValue:
        return _parse_metadata_value(value, place)
    if kind in (Union, UnionType):
        return None if value is None else _parse_alternatives(value, arguments, place)
    if kind in _SCALARS:
        is_valid, expected = _SCALARS[kind]
        if not is_valid(value):
            raise FieldError(place, value, expected)
        return value
    if kind is Literal or issubclass(kind, StrEnum):
        return _parse_choice(value, kind, arguments or tuple(kind), place)
    if kind is Mapping or is_dataclass(kind) or is_typeddict(kind):
        if not isinstance(value, dict):
            raise FieldError(place, value, "an object")
        return _parse_mapping(value, arguments, place) if arguments else _parse_object(value, kind, place)
    if not isinstance(value, list | tuple):
        raise FieldError(place, value, "an array")
    return (kind if kind in (tuple, frozenset) else list)(
        parse_value(item, arguments[0], f"{place}[{position}]") for position, item in enumerate(value)
    )


def format_value(value: Any) -> Any:
    """Convert a Python value to JSON; :func:`parse_value` converts the JSON back to an equal value.

    >>> format_value(np.ones(2, dtype=np.float32))
    'AACAPwAAgD8='
    """
    kind = type(value)
    if kind in _JSON_TYPES:
        return value
    if is_dataclass(kind):
        return {
            name: format_value(item)
            for name, is_optional in _list_keys(kind)
            if (item := getattr(value, name)) is not None or not is_optional
        }
    if isinstance(value, tuple | list):
        return list(map(format_value, value))
    if isinstance(value, Mapping):
        return {key: format_value(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return b64encode(value.astype("<f4", copy=False).tobytes()).decode()
    return sorted(value) if isinstance(value, frozenset) else value


@cache
def _list_keys(kind: Any) -> list[tuple[str, bool]]:
    """Return the field names of a dataclass, and whether each is left out if its value is None.

    A class names such fields as a TypedDict does; see :class:`polyad.schemas.objects.JsonObject`.
    """
    optional_keys = getattr(kind, "__optional_keys__", ())
    return [(each.name, each.name in optional_keys) for each in fields(kind)]


def _parse_alternatives(value: object, types: Sequence[Any], place: str) -> Any:
    first, *others = (each for each in types if each is not NoneType)
    try:
        return parse_value(value, first, place)
    except FieldError as error:
        if not others:
            raise
        try:
            return _parse_alternatives(value, others, place)
        except FieldError as other:
            raise FieldError(place, value, f"{error.expected} or {other.expected}") from other


def _parse_choice(value: object, kind: Any, choices: Sequence[object], place: str) -> object:
    if value not in choices:
        raise FieldError(place, value, f"one of {', '.join(repr(str(choice)) for choice in choices)}")
    return value if kind is Literal else kind(value)


def _parse_metadata_value(value: object, place: str) -> MetadataValue:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(value, str) or is_metadata_number(value):
        return value
    raise FieldError(place, value, "a text, number of 64 bits, boolean or list of texts")


def _parse_vector(value: object, place: str) -> npt.NDArray[np.float32]:
    try:
        vector = np.frombuffer(b64decode(str(value), validate=True), dtype="<f4").astype(np.float32)
    except ValueError:
        raise FieldError(place, value, "base64 of float32 numbers") from None
    if not isinstance(value, str) or not (np.abs(vector) <= _MAX_COMPONENT).all():
        raise FieldError(place, value, f"base64 of float32 numbers of at most {_MAX_COMPONENT:,}")
    return vector


def _parse_object(value: Mapping[str, Any], kind: Any, place: str) -> Any:
    types, required = _get_fields(kind)
    for key in sorted((required - value.keys()) | (value.keys() - types.keys())):
        raise FieldError(place, value, f"an object {'with' if key in required else 'without'} {key!r}")
    return kind(**{key: parse_value(item, types[key], f"{place}.{key}".lstrip(".")) for key, item in value.items()})


def _parse_mapping(value: Mapping[str, Any], types: Sequence[Any], place: str) -> dict[Any, Any]:
    parsed = {}
    for key, item in value.items():
        if types[0] is int and not _SIZE.fullmatch(str(key)):
            raise FieldError(place, value, f"whole numbers as keys, not {key[:80]!r}")
        # Metadata may have keys that no table shows.
        key_type = str if types[1] == MetadataValue else Name
        name = int(key) if types[0] is int else parse_value(key, key_type, f"a key of {place}")
        parsed[name] = parse_value(item, types[1], f"{place}.{key}")
    return parsed


@cache
def _get_fields(kind: Any) -> tuple[Mapping[str, Any], frozenset[str]]:
    """Return the field types of a dataclass or TypedDict by name, and the set of required field names."""
    if not is_dataclass(kind):
        return get_type_hints(kind), kind.__required_keys__
    has_default = {each.name: (each.default, each.default_factory) != (MISSING, MISSING) for each in fields(kind)}
    return get_type_hints(kind), frozenset(name for name, optional in has_default.items() if not optional)


def is_metadata_number(value: object) -> TypeGuard[bool | int | float]:
    """Return whether metadata may contain a value: a boolean, a whole number of 64 bits or a finite number."""
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, float) and math.isfinite(value)


def is_number(value: object, number_type: Any = int | float) -> bool:
    """Return whether a JSON value is a finite number of ``number_type``, not larger than 1e15."""
    return isinstance(value, number_type) and not isinstance(value, bool) and abs(value) <= _MAX_NUMBER


_SCALARS: Mapping[Any, tuple[Callable[[Any], bool], str]] = {
    Any: (lambda _: True, "any value"),
    str: (lambda value: isinstance(value, str), "a text"),
    Name: (lambda value: isinstance(value, str) and value.isprintable() and len(value) <= 255, "a printable text"),
    bool: (lambda value: isinstance(value, bool), "true or false"),
    int: (lambda value: is_number(value, int), "a whole number"),
    float: (lambda value: is_number(value), "a number"),
}
"""Checks of strings, numbers and booleans, and what each expects."""
