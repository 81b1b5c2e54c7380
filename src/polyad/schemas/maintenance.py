"""JSON of the commands that maintain an index."""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

from typing_extensions import TypedDict

from polyad.engine.checking import CheckReport


class DamageShape(TypedDict):
    """An invariant that an index violates at one place."""

    invariant: str
    place: str
    message: str


class CheckShape(TypedDict):
    """Output of ``polyad check --json``; ``remaining`` was not repaired."""

    damage: list[DamageShape]
    remaining: list[DamageShape]


def check_json(report: CheckReport) -> CheckShape:
    """Return the output of ``polyad check --json``."""
    damage, remaining = ([cast(DamageShape, asdict(one)) for one in part] for part in (report.damage, report.remaining))
    return {"damage": damage, "remaining": remaining}
