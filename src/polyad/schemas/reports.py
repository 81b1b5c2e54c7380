"""JSON of reports by commands: indexing, corrections, checks, exports, imports and API keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired

from typing_extensions import TypedDict

from polyad.curation.curator import CorrectionReport, HistoryEntry
from polyad.engine.maintenance import CheckReport
from polyad.engine.transfer import ExportReport, ImportReport
from polyad.indexing.run import IndexReport
from polyad.model import Failure, Usage
from polyad.protocols.store import Damage
from polyad.schemas.evidence import UsageSchema
from polyad.schemas.filling import fields_of, fill_schema


@fields_of(Failure)
class FailureSchema(TypedDict):
    """A document or file that could not be indexed, with the reason."""


class DuplicateSchema(TypedDict):
    """Ids of a document, and of an older document with the same content."""

    id: str
    of: str


class MoveSchema(TypedDict):
    """A document whose file has another name now: its old and its new id."""

    old: str
    new: str


class IndexSchema(TypedDict):
    """Output of ``polyad index --json``; ``added`` to ``left`` count documents, ``skipped`` counts files.

    ``ignored`` are the files and folders that .gitignore files name or tools generate.
    """

    added: int
    updated: int
    unchanged: int
    failed: int
    left: int
    skipped: int
    passages: int
    hyperedges: int
    seconds: float
    encode_seconds: float
    failures: list[FailureSchema]
    skipped_files: list[str]
    ignored: list[str]
    skipped_kinds: dict[str, int]
    stopped: str
    usage: UsageSchema
    notes: dict[str, int]
    missing: list[str]
    protected: list[str]
    moved: list[MoveSchema]
    pruned: bool
    method: str
    other_methods: dict[str, int]
    duplicates: list[DuplicateSchema]


class EstimateSchema(TypedDict):
    """Output of ``polyad index --dry-run --json``: the estimated tokens and cost of a language model."""

    estimate: UsageSchema


class RemovalSchema(TypedDict):
    """Output of ``polyad remove --json``: the removed ids, and the number of remaining documents.

    With ``--dry-run``, ``is_trial`` is true and nothing was removed.
    """

    removed: list[str]
    documents: int
    is_trial: NotRequired[bool]


class HistorySchema(TypedDict):
    """Output of ``polyad log --json``: the changes of an index, newest first."""

    changes: list[HistoryEntry]


class WithdrawalSchema(TypedDict):
    """A fact that a user retracted or restored; ``entities`` is empty if the whole fact is meant."""

    document_id: str
    passage_id: str
    hyperedge_id: str
    text: str
    entities: list[str]
    reason: str


class CorrectionSchema(TypedDict):
    """Output of ``polyad retract``, ``restore``, ``disable``, ``enable`` and ``alias`` with ``--json``.

    ``documents`` are the documents whose facts changed, and ``passages`` the passages whose text still states a
    withdrawn fact.
    """

    withdrawn: list[WithdrawalSchema]
    restored: list[WithdrawalSchema]
    documents: list[str]
    passages: list[str]
    is_trial: bool


class DamageSchema(TypedDict):
    """An inconsistency of an index that ``polyad check`` detected; ``source`` is the file to index again, or empty."""

    invariant: str
    table: str
    id: str
    problem: str
    document_id: str
    source: str
    remedy: str


class CheckSchema(TypedDict):
    """Output of ``polyad check --json``: all damage, and the damage that remains after the repair."""

    damage: list[DamageSchema]
    remaining: list[DamageSchema]
    seconds: float


@fields_of(ExportReport)
class ExportSchema(TypedDict):
    """Output of ``polyad export --json``: the written files, their contents, and ``size`` in bytes."""

    files: list[str]


@fields_of(ImportReport)
class ImportSchema(TypedDict):
    """Output of ``polyad import --json``: numbers of imported documents and corrections, and invalid lines."""

    failures: list[FailureSchema]


class KeySchema(TypedDict):
    """An API key of the server without its secret; ``last_used`` and ``expires`` are empty for never."""

    id: str
    name: str
    scope: str
    created: str
    last_used: str
    expires: str


def usage_json(usage: Usage) -> UsageSchema:
    """Return calls, tokens and cost of a language model as a JSON object."""
    return fill_schema(UsageSchema, usage)


def index_json(report: IndexReport) -> IndexSchema:
    """Return the report of an indexing run as the JSON object that ``polyad index --json`` prints."""
    return fill_schema(
        IndexSchema,
        report,
        report.counts,
        failed=len(report.failures),
        left=report.counts.unprocessed,
        skipped=len(report.skipped),
        seconds=round(report.seconds, 3),
        encode_seconds=round(report.encode_seconds, 3),
        skipped_files=report.skipped,
        stopped=report.counts.stop_reason,
        moved=[{"old": old, "new": new} for old, new in report.moved],
        pruned=report.is_pruned,
        duplicates=[{"id": id, "of": earlier} for id, earlier in report.duplicates],
    )


def correction_json(report: CorrectionReport, *, is_trial: bool = False) -> CorrectionSchema:
    """Return the effect of a user's correction, such as a retraction, as a JSON object.

    ``is_trial`` states that nothing was changed (``--dry-run``).
    """
    return fill_schema(CorrectionSchema, report, is_trial=is_trial)


def check_json(report: CheckReport) -> CheckSchema:
    """Return the result of a check of an index as the JSON object that ``polyad check --json`` prints."""

    def describe(damage: Sequence[Damage]) -> list[DamageSchema]:
        return [fill_schema(DamageSchema, one, source=report.sources.get(one.document_id, "")) for one in damage]

    seconds = round(report.seconds, 3)
    return fill_schema(
        CheckSchema, damage=describe(report.damage), remaining=describe(report.remaining), seconds=seconds
    )


def export_json(report: ExportReport) -> ExportSchema:
    """Return the report of an export as the JSON object that ``polyad export --json`` prints."""
    files = [str(file) for file in report.files]
    return fill_schema(ExportSchema, report, files=files, seconds=round(report.seconds, 3))


def import_json(report: ImportReport) -> ImportSchema:
    """Return the report of an import as the JSON object that ``polyad import --json`` prints."""
    return fill_schema(ImportSchema, report, seconds=round(report.seconds, 3))
