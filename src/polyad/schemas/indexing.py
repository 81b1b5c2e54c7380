"""Reports of indexing, as JSON."""

from __future__ import annotations

from typing_extensions import TypedDict

from polyad.indexing.run import IndexReport
from polyad.schemas.evidence import UsageShape, usage_json


class FailureShape(TypedDict):
    """What could not be indexed, and why."""

    id: str
    reason: str


class DuplicateShape(TypedDict):
    """A document that says the same as an earlier one."""

    id: str
    of: str


class IndexShape(TypedDict):
    """What ``polyad index --json`` prints; counts of documents, but for passages and hyperedges."""

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
    gone: list[str]
    spared: list[str]
    pruned: bool
    method: str
    kept_methods: dict[str, int]
    duplicates: list[DuplicateShape]


class EstimateShape(TypedDict):
    """What ``polyad index --dry-run --json`` prints."""

    estimate: UsageShape


class RemovalShape(TypedDict):
    """What ``polyad remove --json`` prints: what was removed, and how many documents are left."""

    removed: list[str]
    documents: int


def index_json(report: IndexReport) -> IndexShape:
    """The shape that ``polyad index --json`` prints."""
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
        "gone": list(report.missing),
        "spared": list(report.protected),
        "pruned": report.is_pruned,
        "method": report.method,
        "kept_methods": dict(report.other_methods),
        "duplicates": [{"id": id, "of": earlier} for id, earlier in report.duplicates],
    }
