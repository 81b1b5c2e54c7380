"""JSON of reports by commands: indexing, corrections, checks, exports, imports and API keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyad.curation.curator import CorrectionReport, HistoryEntry
from polyad.engine.maintenance import CheckReport
from polyad.engine.transfer import ExportReport
from polyad.indexing.run import IndexReport
from polyad.model import Failure, Usage
from polyad.protocols.store import Damage
from polyad.schemas.objects import JsonObject


class DuplicateSchema(JsonObject):
    """Ids of a document, and of an older document with the same content."""

    id: str
    of: str


class MoveSchema(JsonObject):
    """A document whose file has another name now: its old and its new id."""

    old: str
    new: str


class IndexSchema(JsonObject):
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
    failures: Sequence[Failure]
    skipped_files: Sequence[str]
    ignored: Sequence[str]
    skipped_kinds: Mapping[str, int]
    stopped: str
    usage: Usage
    notes: Mapping[str, int]
    missing: Sequence[str]
    protected: Sequence[str]
    moved: Sequence[MoveSchema]
    pruned: bool
    method: str
    other_methods: Mapping[str, int]
    duplicates: Sequence[DuplicateSchema]


class EstimateSchema(JsonObject):
    """Output of ``polyad index --dry-run --json``: the estimated tokens and cost of a language model."""

    estimate: Usage


class RemovalSchema(JsonObject):
    """Output of ``polyad remove --json``: the removed ids, and the number of remaining documents.

    With ``--dry-run``, ``is_trial`` is true and nothing was removed.
    """

    removed: Sequence[str]
    documents: int
    is_trial: bool | None = None


class HistorySchema(JsonObject):
    """Output of ``polyad log --json``: the changes of an index, newest first."""

    changes: Sequence[HistoryEntry]


class WithdrawalSchema(JsonObject):
    """A fact that a user retracted or restored; ``entities`` is empty if the whole fact is meant."""

    document_id: str
    passage_id: str
    hyperedge_id: str
    text: str
    entities: Sequence[str]
    reason: str


class CorrectionSchema(JsonObject):
    """Output of ``polyad retract``, ``restore``, ``disable``, ``enable`` and ``alias`` with ``--json``.

    ``documents`` are the documents whose facts changed, and ``passages`` the passages whose text still states a
    withdrawn fact.
    """

    withdrawn: Sequence[WithdrawalSchema]
    restored: Sequence[WithdrawalSchema]
    documents: Sequence[str]
    passages: Sequence[str]
    is_trial: bool


class DamageSchema(JsonObject):
    """An inconsistency of an index that ``polyad check`` detected; ``source`` is the file to index again, or empty."""

    invariant: str
    table: str
    id: str
    problem: str
    document_id: str
    source: str
    remedy: str


class CheckSchema(JsonObject):
    """Output of ``polyad check --json``: all damage, and the damage that remains after the repair."""

    damage: Sequence[DamageSchema]
    remaining: Sequence[DamageSchema]
    seconds: float


class ExportSchema(JsonObject):
    """Output of ``polyad export --json``: the written files, their contents, and ``size`` in bytes."""

    format: str
    files: Sequence[str]
    documents: int
    entities: int
    hyperedges: int
    size: int
    seconds: float


def index_json(report: IndexReport) -> IndexSchema:
    """Return the report of an indexing run as the JSON object that ``polyad index --json`` prints."""
    counts = report.counts
    return IndexSchema.from_object(
        report,
        added=counts.added,
        updated=counts.updated,
        unchanged=counts.unchanged,
        failed=len(counts.failures),
        left=counts.unprocessed,
        skipped=len(report.skipped),
        passages=counts.passages,
        hyperedges=counts.hyperedges,
        seconds=round(report.seconds, 3),
        encode_seconds=round(report.encode_seconds, 3),
        failures=counts.failures,
        skipped_files=report.skipped,
        stopped=counts.stop_reason,
        moved=[MoveSchema(old=old, new=new) for old, new in report.moved],
        pruned=report.is_pruned,
        duplicates=[DuplicateSchema(id=id, of=earlier) for id, earlier in counts.duplicates],
    )


def correction_json(report: CorrectionReport, *, is_trial: bool = False) -> CorrectionSchema:
    """Return the effect of a user's correction, such as a retraction, as a JSON object.

    ``is_trial`` states that nothing was changed (``--dry-run``).
    """
    return CorrectionSchema.from_object(
        report,
        withdrawn=list(map(WithdrawalSchema.from_object, report.withdrawn)),
        restored=list(map(WithdrawalSchema.from_object, report.restored)),
        is_trial=is_trial,
    )


def check_json(report: CheckReport) -> CheckSchema:
    """Return the result of a check of an index as the JSON object that ``polyad check --json`` prints."""

    def describe(damage: Sequence[Damage]) -> list[DamageSchema]:
        return [DamageSchema.from_object(one, source=report.sources.get(one.document_id, "")) for one in damage]

    seconds = round(report.seconds, 3)
    return CheckSchema(damage=describe(report.damage), remaining=describe(report.remaining), seconds=seconds)


def export_json(report: ExportReport) -> ExportSchema:
    """Return the report of an export as the JSON object that ``polyad export --json`` prints."""
    return ExportSchema.from_object(report, files=list(map(str, report.files)), seconds=round(report.seconds, 3))
