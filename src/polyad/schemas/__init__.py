"""JSON that polyad prints and serves.

Programs rely on these objects: releases may add keys, but never change or remove one. Each is a frozen dataclass, a
:class:`polyad.schemas.objects.JsonObject` or a class of :mod:`polyad.model`, that
:func:`polyad.text.json_types.format_value` encodes. ``docs/output.schema.json`` is generated from the types.
"""

from typing import Any

SCHEMA = 1
"""Version of the printed JSON; it changes if a key is changed or removed."""


def versioned(value: object) -> dict[str, Any]:
    """Return an object as JSON with the additional key ``schema``: the version of the output format."""
    from polyad.text.json_types import format_value  # loads numpy, which help and errors do without

    return {"schema": SCHEMA, **format_value(value)}
