"""The JSON Schema of what the commands print; run as a module, it writes ``docs/output.schema.json``.

Needs pydantic, which the extra ``dev`` has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from polyad.schemas import SCHEMA
from polyad.schemas.catalogue import (
    DocumentShape,
    EntityShape,
    FactsShape,
    HyperedgeShape,
    PluginsShape,
    SettingsShape,
    StatisticsShape,
)
from polyad.schemas.evidence import AnswerShape, EvidenceShape, PassageShape
from polyad.schemas.indexing import EstimateShape, IndexShape, RemovalShape

COMMANDS: dict[str, Any] = {
    "search": EvidenceShape,
    "ask": AnswerShape,
    "index": IndexShape,
    "index --dry-run": EstimateShape,
    "remove": RemovalShape,
    "stats": StatisticsShape,
    "show document": DocumentShape,
    "show passage": PassageShape,
    "show hyperedge": HyperedgeShape,
    "show entity": EntityShape,
    "facts": FactsShape,
    "plugins": PluginsShape,
    "config": SettingsShape,
}
"""What each command prints with ``--json``."""


def schema() -> dict[str, Any]:
    """The schemas of all commands, by command; objects may have more keys in later releases."""
    from pydantic import TypeAdapter

    found, shared = TypeAdapter.json_schemas(
        [(command, "serialization", TypeAdapter(shape)) for command, shape in COMMANDS.items()]
    )
    version = {"properties": {"schema": {"const": SCHEMA}}, "required": ["schema"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What polyad prints with --json, by command",
        "description": "A later release may add keys, and changes none.",
        "properties": {command: {"allOf": [found[command, "serialization"], version]} for command in COMMANDS},
        **shared,
    }


def written() -> str:
    """The file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path("docs/output.schema.json").write_text(written(), encoding="utf-8")
