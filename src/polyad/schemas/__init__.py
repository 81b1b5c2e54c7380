"""JSON that polyad prints and serves.

Programs rely on these shapes: releases may add keys, but never change or remove one. Each shape is a type;
:func:`polyad.schemas.shapes.build_shape` fills it from objects with attributes of the same names.
``docs/output.schema.json`` is generated from the types.
"""

from collections.abc import Mapping

SCHEMA = 1
"""Version of all shapes; it changes if a key is changed or removed."""


def versioned(shape: Mapping[str, object]) -> dict[str, object]:
    """Return a JSON object with the additional key ``schema``: the version of the output format."""
    return {"schema": SCHEMA, **shape}
