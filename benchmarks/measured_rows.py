"""Storage of measured rows, with the versions and the machine of the measurement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyad_bench.runs.manifest import describe_machine, get_commit, get_versions


def write_rows(file: Path, rows: Sequence[object]) -> None:
    """Write rows to a JSON file; README tables are built from those in ``results/scripts``."""
    value = {"commit": get_commit(), "versions": get_versions(), "machine": describe_machine(), "rows": rows}
    file.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON file; empty if the file is missing."""
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
    return rows
