"""JSON of exports and imports of an index."""

from __future__ import annotations

from typing_extensions import TypedDict

from polyad.engine.transfer import ExportReport, ImportReport
from polyad.schemas.indexing import FailureShape


class ExportShape(TypedDict):
    """Output of ``polyad export --json``; ``size`` is in bytes."""

    format: str
    files: list[str]
    documents: int
    entities: int
    hyperedges: int
    size: int
    seconds: float


class ImportShape(TypedDict):
    """Output of ``polyad import --json``: numbers of documents and corrections, and lines that failed."""

    added: int
    updated: int
    unchanged: int
    embedded: int
    statements: int
    failures: list[FailureShape]
    seconds: float


def export_json(report: ExportReport) -> ExportShape:
    """Return the JSON of an export."""
    return {
        "format": report.format,
        "files": [str(file) for file in report.files],
        "documents": report.documents,
        "entities": report.entities,
        "hyperedges": report.hyperedges,
        "size": report.size,
        "seconds": round(report.seconds, 3),
    }


def import_json(report: ImportReport) -> ImportShape:
    """Return the JSON of an import."""
    return {
        "added": report.added,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "embedded": report.embedded,
        "statements": report.statements,
        "failures": [{"id": failure.id, "reason": failure.reason} for failure in report.failures],
        "seconds": round(report.seconds, 3),
    }
