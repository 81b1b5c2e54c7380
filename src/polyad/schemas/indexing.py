"""JSON of indexing reports."""

from __future__ import annotations

from typing_extensions import TypedDict

from polyad.curation.history import HistoryEntry
from polyad.indexing.run import IndexReport
from polyad.schemas.evidence import UsageShape, usage_json


class FailureShape(TypedDict):
    """A document or file that was not indexed, with the reason."""

    id: str
    reason: str


class DuplicateShape(TypedDict):
    """A document with the same content as an older document."""

    id: str
    of: str


class IndexShape(TypedDict):
    """Output of ``polyad index --json``; ``added`` to ``left`` count documents, ``skipped`` counts files."""

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
    failures: list[FailureShape]
    skipped_files: list[str]
    skipped_kinds: dict[str, int]
    stopped: str
    usage: UsageShape
    notes: dict[str, int]
    missing: list[str]
    protected: list[str]
    pruned: bool
    method: str
    other_methods: dict[str, int]
    duplicates: list[DuplicateShape]


class EstimateShape(TypedDict):
    """Output of ``polyad index --dry-run --json``."""

    estimate: UsageShape


class RemovalShape(TypedDict):
    """Output of ``polyad remove --json``: the removed ids, and the number of remaining documents."""

    removed: list[str]
    documents: int


class HistoryShape(TypedDict):
    """Output of ``polyad log --json``, newest first."""

    changes: list[HistoryEntry]


def index_json(report: IndexReport) -> IndexShape:
    """Return the output of ``polyad index --json``."""
    counts = report.counts
    return {
        "added": counts.added,
        "updated": counts.updated,
        "unchanged": counts.unchanged,
        "failed": len(report.failures),
        "left": counts.unprocessed,
        "skipped": len(report.skipped),
        "passages": counts.passages,
        "hyperedges": counts.hyperedges,
        "seconds": round(report.seconds, 3),
        "encode_seconds": round(report.encode_seconds, 3),
        "failures": [{"id": failure.id, "reason": failure.reason} for failure in report.failures],
        "skipped_files": list(report.skipped),
        "skipped_kinds": dict(report.skipped_kinds),
        "stopped": counts.stop_reason,
        "usage": usage_json(report.usage),
        "notes": dict(report.notes),
        "missing": list(report.missing),
        "protected": list(report.protected),
        "pruned": report.is_pruned,
        "method": report.method,
        "other_methods": dict(report.other_methods),
        "duplicates": [{"id": id, "of": earlier} for id, earlier in report.duplicates],
    }
