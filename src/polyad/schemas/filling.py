"""Construction of JSON objects from objects with attributes of the same names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from types import GenericAlias, UnionType
from typing import Any, NotRequired, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from typing_extensions import TypedDict, is_typeddict  # also recognises the types of typing_extensions

S = TypeVar("S")


def fill_schema(schema: type[S], *sources: object, **values: object) -> S:
    """Return a JSON object of the type ``schema``, filled from keyword arguments and from attributes of ``sources``.

    Tuples become lists; an object becomes a JSON object where the type of the key is a typed dictionary.

    Args:
        schema: A typed dictionary. An empty value of a key that is not required is left out.
        sources: Objects with attributes that are named like the keys; the first object with an attribute counts.
        values: Values by key, which take precedence over attributes.

    Raises:
        AttributeError: A required key has no value.
    """
    built: Any = {}
    for key, (convert, is_required) in _get_fields(cast(Any, schema)).items():
        source = next((source for source in sources if hasattr(source, key)), None)
        value = values[key] if key in values else getattr(source, key, None)
        if is_required and source is None and key not in values:
            raise AttributeError(f"no value for the key {key!r} of {schema.__name__}")
        if is_required or value:
            built[key] = convert(value)
    fields: S = built
    return fields


def fields_of(model: type) -> Callable[[Any], Any]:
    """Return a decorator that adds the fields of a dataclass to a typed dictionary, before its keys of other names.

    Tuples are lists, whose items may be any object if they are dataclasses. Type checkers do not see the added keys.
    """

    def derive(schema: Any) -> Any:
        keys = {key: _get_json_type(kind) for key, kind in get_type_hints(model).items()}
        build: Any = TypedDict
        derived = build(schema.__name__, keys | get_type_hints(schema, include_extras=True))
        derived.__doc__, derived.__module__ = schema.__doc__, schema.__module__
        return derived

    return derive


def _get_json_type(kind: Any) -> Any:
    if get_origin(kind) is not tuple:
        return str if isinstance(kind, type) and issubclass(kind, Enum) else kind
    item = get_args(kind)[0]
    return GenericAlias(list, object if is_dataclass(item) else item)


_Convert = Callable[[Any], Any]


@cache
def _get_fields(schema: Any) -> Mapping[str, tuple[_Convert, bool]]:
    """Return for each key of a JSON object type the function that converts values, and whether the key is required."""
    kinds = get_type_hints(schema, include_extras=True)
    return {key: (_get_conversion(kind), get_origin(kind) is not NotRequired) for key, kind in kinds.items()}


def _get_conversion(kind: Any) -> _Convert:
    if is_typeddict(kind):
        return lambda value: value if isinstance(value, dict) else fill_schema(kind, value)
    if (origin := get_origin(kind)) in (dict, Mapping):
        return dict
    if origin not in (NotRequired, list, Union, UnionType):
        return lambda value: value
    convert = _get_conversion(get_args(kind)[0])
    if origin is list:
        return lambda values: [convert(value) for value in values]
    return lambda value: None if value is None else convert(value)
