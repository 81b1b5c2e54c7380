"""How the scripts keep what they measured: rows, with what they were measured with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyad.evaluation.runs.manifest import describe_machine, get_commit, get_versions


def keep(file: Path, rows: Sequence[object]) -> None:
    """Write rows to a file of JSON, which is replaced; in ``results/scripts`` the README's tables are made of them."""
    value = {"commit": get_commit(), "versions": get_versions(), "machine": describe_machine(), "rows": rows}
    file.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def kept(file: Path) -> list[dict[str, Any]]:
    """The rows in a file; none where there is no such file."""
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
    return rows
