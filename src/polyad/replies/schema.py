"""JSON schemas for the replies of language models, in the strict form that endpoints accept."""

from __future__ import annotations

from collections.abc import Mapping

Schema = Mapping[str, object]

STRING: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}


def build_array_schema(items: Schema) -> Schema:
    """Return the JSON schema of an array of any length whose items have the schema ``items``."""
    return {"type": "array", "items": items}


def build_object_schema(**properties: Schema) -> Schema:
    """Return the JSON schema of an object with exactly these ``properties``, a schema for each key.

    >>> build_object_schema(clues=build_array_schema(STRING))["required"]
    ['clues']
    """
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
