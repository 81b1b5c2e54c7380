"""JSON that polyad prints and serves.

Programs rely on these objects: releases may add keys, but never change or remove one. Each is a typed dictionary;
:func:`polyad.schemas.filling.fill_schema` fills it from objects with attributes of the same names.
``docs/output.schema.json`` is generated from the types.
"""

from collections.abc import Mapping

SCHEMA = 1
"""Version of the printed JSON; it changes if a key is changed or removed."""


def versioned(shape: Mapping[str, object]) -> dict[str, object]:
    """Return a JSON object with the additional key ``schema``: the version of the output format."""
    return {"schema": SCHEMA, **shape}
