"""JSON Schema of the commands' output; run as a module, it writes ``docs/output.schema.json``.

Needs pydantic, which the extra ``dev`` installs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from polyad.engine.maintenance import BackupReport
from polyad.engine.migration import MigrationReport
from polyad.indexing.replacement import ReplacementReport
from polyad.schemas import SCHEMA
from polyad.schemas.catalogue import (
    ConflictsShape,
    DocumentShape,
    EntityShape,
    FactsShape,
    HyperedgeShape,
    PluginsShape,
    SettingsShape,
    StatisticsShape,
)
from polyad.schemas.errors import FailedShape
from polyad.schemas.evidence import AnswerShape, EvidenceShape, PassageShape
from polyad.schemas.reports import (
    CheckShape,
    CorrectionShape,
    EstimateShape,
    ExportShape,
    HistoryShape,
    ImportShape,
    IndexShape,
    RemovalShape,
)

COMMANDS: dict[str, Any] = {
    "search": EvidenceShape,
    "ask": AnswerShape,
    "index": IndexShape,
    "index --dry-run": EstimateShape,
    "remove": RemovalShape,
    "embed": ReplacementReport,
    "log": HistoryShape,
    "check": CheckShape,
    "backup": BackupReport,
    **dict.fromkeys(("retract", "restore", "disable", "enable", "alias"), CorrectionShape),
    "export": ExportShape,
    "import": ImportShape,
    "migrate": MigrationReport,
    "stats": StatisticsShape,
    "show document": DocumentShape,
    "show passage": PassageShape,
    "show hyperedge": HyperedgeShape,
    "show entity": EntityShape,
    "facts": FactsShape,
    "conflicts": ConflictsShape,
    "plugins": PluginsShape,
    "config": SettingsShape,
    "error": FailedShape,
}
"""Type of the output of each command with ``--json``, and of an error that ends a command."""


def build_schema() -> dict[str, Any]:
    """Return the JSON Schema of the output of all commands."""
    from pydantic import TypeAdapter

    schemas, shared = TypeAdapter.json_schemas(
        [(command, "serialization", TypeAdapter(shape)) for command, shape in COMMANDS.items()]
    )
    version = {"properties": {"schema": {"const": SCHEMA}}, "required": ["schema"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Output of polyad with --json, by command",
        "description": "Later releases may add keys, but do not change or remove any.",
        "properties": {command: {"allOf": [schemas[command, "serialization"], version]} for command in COMMANDS},
        **shared,
    }


def format_schema() -> str:
    """Return the content of ``docs/output.schema.json``."""
    return json.dumps(build_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path("docs/output.schema.json").write_text(format_schema(), encoding="utf-8")
