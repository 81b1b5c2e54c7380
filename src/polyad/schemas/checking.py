"""JSON of checks of an index."""

from __future__ import annotations

from typing_extensions import TypedDict

from polyad.engine.maintenance import CheckReport
from polyad.protocols.store import Damage


class DamageShape(TypedDict):
    """A violation of an invariant; ``source`` is that of the document to index again, empty if there is none."""

    invariant: str
    table: str
    id: str
    problem: str
    document_id: str
    source: str
    remedy: str


class CheckShape(TypedDict):
    """Output of ``polyad check --json``; ``remaining`` is the part of ``damage`` that is not repaired."""

    damage: list[DamageShape]
    remaining: list[DamageShape]
    seconds: float


def check_json(report: CheckReport) -> CheckShape:
    """Return the output of ``polyad check --json``."""
    return {
        "damage": [_damage_json(one, report) for one in report.damage],
        "remaining": [_damage_json(one, report) for one in report.remaining],
        "seconds": round(report.seconds, 3),
    }


def _damage_json(one: Damage, report: CheckReport) -> DamageShape:
    return {
        "invariant": one.invariant,
        "table": one.table,
        "id": one.id,
        "problem": one.problem,
        "document_id": one.document_id,
        "source": report.sources.get(one.document_id, ""),
        "remedy": one.remedy,
    }
