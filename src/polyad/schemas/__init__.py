"""The JSON that polyad prints and serves. Programs rely on these shapes: they may grow, and nothing in them may change.

Each is described by a type beside the function that makes it; ``docs/output.schema.json`` is generated from these
(:mod:`polyad.schemas.schema`).
"""

from collections.abc import Mapping

SCHEMA = 1
"""The version of all shapes; another number means that something changed which programs rely on."""


def versioned(shape: Mapping[str, object]) -> dict[str, object]:
    """The shape as it is given out, with the version that it is of."""
    return {"schema": SCHEMA, **shape}
