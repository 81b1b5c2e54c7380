"""The base class of JSON objects: a frozen dataclass whose fields are the keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(frozen_default=True, kw_only_default=True)
class JsonObject:
    """A JSON object; each subclass is a frozen dataclass, and :func:`polyad.text.json_types.format_value` encodes it.

    A field with the default value None is a key that is left out if its value is None. A value may be another
    dataclass, whose keys are its fields. A constructor may take the keys of a base class as ``**vars(base)``. Pydantic
    reads the types for ``output.schema.json`` and for the server's ``/openapi.json``.
    """

    __required_keys__: ClassVar[frozenset[str]]
    __optional_keys__: ClassVar[frozenset[str]]
    __pydantic_config__: ClassVar[Mapping[str, bool]] = {"json_schema_serialization_defaults_required": True}

    def __init_subclass__(cls) -> None:
        kind: Any = dataclass(frozen=True, kw_only=True)(cls)
        cls.__optional_keys__ = frozenset(each.name for each in fields(kind) if each.default is None)
        cls.__required_keys__ = frozenset(each.name for each in fields(kind) if each.default is MISSING)

    @classmethod
    def from_object(cls, source: object, /, **values: object) -> Self:
        """Return an object with the fields of ``source`` that have the names of its keys, and with ``values``."""
        return cls(**{key: getattr(source, key) for key in cls.__required_keys__ - values.keys()}, **values)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
        """Return the JSON Schema, in which an optional key may be missing but is never null."""
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        schema["required"] = [key for key in schema["required"] if key not in cls.__optional_keys__]
        for key in cls.__optional_keys__:
            values = schema["properties"][key]
            del values["default"]
            (alternative,) = (each for each in values.pop("anyOf") if each != {"type": "null"})
            values |= alternative
        return reference
