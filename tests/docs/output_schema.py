"""JSON Schema of the commands' output; run as a module, it writes ``docs/output.schema.json``.

Needs pydantic, which the extra ``dev`` installs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from polyad.engine.maintenance import BackupReport
from polyad.engine.migration import MigrationReport
from polyad.engine.transfer import ImportReport
from polyad.indexing.replacement import ReplacementReport
from polyad.schemas import SCHEMA
from polyad.schemas.catalogue import (
    ConflictsSchema,
    DocumentSchema,
    EntitySchema,
    FactsSchema,
    HyperedgeSchema,
    PluginsSchema,
    SettingsSchema,
    StatisticsSchema,
)
from polyad.schemas.errors import FailedSchema
from polyad.schemas.evidence import AnswerSchema, EvidenceSchema, PassageSchema
from polyad.schemas.reports import (
    CheckSchema,
    CorrectionSchema,
    EstimateSchema,
    ExportSchema,
    HistorySchema,
    IndexSchema,
    RemovalSchema,
)
from polyad.schemas.text_matches import TextMatchesSchema

COMMANDS: dict[str, Any] = {
    "search": EvidenceSchema,
    "grep": TextMatchesSchema,
    "ask": AnswerSchema,
    "index": IndexSchema,
    "index --dry-run": EstimateSchema,
    "remove": RemovalSchema,
    "embed": ReplacementReport,
    "log": HistorySchema,
    "check": CheckSchema,
    "backup": BackupReport,
    **dict.fromkeys(("retract", "restore", "disable", "enable", "alias"), CorrectionSchema),
    "export": ExportSchema,
    "import": ImportReport,
    "migrate": MigrationReport,
    "stats": StatisticsSchema,
    "show document": DocumentSchema,
    "show passage": PassageSchema,
    "show hyperedge": HyperedgeSchema,
    "show entity": EntitySchema,
    "facts": FactsSchema,
    "conflicts": ConflictsSchema,
    "plugins": PluginsSchema,
    "config": SettingsSchema,
    "error": FailedSchema,
}
"""Type of the output of each command with ``--json``, and of an error that ends a command."""


def build_schema() -> dict[str, Any]:
    """Return the JSON Schema of the output of all commands."""
    from pydantic import TypeAdapter

    schemas, shared = TypeAdapter.json_schemas(
        [(command, "serialization", TypeAdapter(shape)) for command, shape in COMMANDS.items()]
    )
    for shape in shared["$defs"].values():
        for key, value in shape.get("properties", {}).items():
            if "default" in value:  # a key of a class of polyad.model, which is always printed
                del value["default"]
                shape["required"] = list(dict.fromkeys([*shape.get("required", ()), key]))
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
