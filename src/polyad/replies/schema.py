"""JSON schemas of the replies that language models are asked for, in the strict form that endpoints take."""

from __future__ import annotations

from collections.abc import Mapping

Schema = Mapping[str, object]

STRING: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}


def array_of(items: Schema) -> Schema:
    """A list of any length, all of one schema."""
    return {"type": "array", "items": items}


def object_of(**properties: Schema) -> Schema:
    """An object with all of these properties, in this order, and no others.

    >>> object_of(clues=array_of(STRING))["required"]
    ['clues']
    """
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
