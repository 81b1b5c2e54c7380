"""JSON of corrections by users, and of the statements that they leave."""

from __future__ import annotations

from typing_extensions import TypedDict

from polyad.curation.corrections import Withdrawal
from polyad.curation.curator import CorrectionReport
from polyad.curation.statements import Statements


class WithdrawalShape(TypedDict):
    """A fact that is withdrawn or restored; ``entities`` is empty if it is the whole fact."""

    document_id: str
    passage_id: str
    hyperedge_id: str
    text: str
    entities: list[str]
    reason: str


class CorrectionShape(TypedDict):
    """Output of ``polyad retract``, ``restore``, ``disable``, ``enable`` and ``alias`` with ``--json``.

    ``documents`` are those whose facts changed, ``passages`` those whose text still states a withdrawn fact.
    """

    withdrawn: list[WithdrawalShape]
    restored: list[WithdrawalShape]
    documents: list[str]
    passages: list[str]
    is_trial: bool


def correction_json(report: CorrectionReport, *, is_trial: bool = False) -> CorrectionShape:
    """Return the JSON of a change of statements."""
    return {
        "withdrawn": [_withdrawal_json(one) for one in report.withdrawn],
        "restored": [_withdrawal_json(one) for one in report.restored],
        "documents": list(report.documents),
        "passages": list(report.passages),
        "is_trial": is_trial,
    }


def _withdrawal_json(one: Withdrawal) -> WithdrawalShape:
    return {
        "document_id": one.document_id,
        "passage_id": one.passage_id,
        "hyperedge_id": one.hyperedge_id,
        "text": one.text,
        "entities": list(one.entities),
        "reason": one.reason,
    }


def list_retractions(statements: Statements) -> list[dict[str, object]]:
    """Return the retractions as rows of ``polyad list retractions``."""
    return [
        {
            "id": one.document_id,
            "text": one.fact or one.where or "all facts",
            "entity": one.entity,
            "role": one.role,
            "reason": one.reason,
            "recorded": one.recorded,
        }
        for one in statements.retractions.values()
    ]


def list_aliases(statements: Statements) -> list[dict[str, object]]:
    """Return the aliases as rows of ``polyad list aliases``; an alias with several keys is listed once."""
    aliases = dict.fromkeys(statements.aliases.values())
    return [
        {"name": one.name, "entity": one.target_name, "key": one.target, "recorded": one.recorded} for one in aliases
    ]


def list_disabled(statements: Statements) -> list[dict[str, object]]:
    """Return the disabled documents as rows of ``polyad list disabled``."""
    return [{"id": id, "reason": reason} for id, reason in statements.disabled.items()]
