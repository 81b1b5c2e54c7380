"""The commands that move an index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyad.cli import app

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bell.md").write_text("# Bell\nThe bell of Tarn was cast by Ines Moreau in the USA.\n", encoding="utf-8")
    Path("town.md").write_text("# Aldby\nAldby is a town of the United States of America.\n", encoding="utf-8")
    run("index", "bell.md", "town.md", "--embedder", "hashing:32", "--store", "kb")


def run(*arguments: str, code: int = 0) -> Any:
    """Run a command with --json and return what it prints."""
    result = RUNNER.invoke(app, [*arguments, "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_an_index_is_moved_with_its_corrections() -> None:
    run("retract", "--hyperedge", "bell.md#0000/000", "--reason", "it was Ada", "--store", "kb")
    report = run("export", "--out", "out/kb.jsonl", "--store", "kb")
    assert (report["documents"], report["files"]) == (2, ["out/kb.jsonl"])
    report = run("import", "out/kb.jsonl", "--store", "copy")
    assert (report["added"], report["statements"], report["failures"]) == (2, 1, [])
    for command in ("documents", "hyperedges", "entities", "retractions"):
        assert run("list", command, "--store", "copy") == run("list", command, "--store", "kb")
    result = run("index", "bell.md", "town.md", "--store", "copy")
    assert (result["unchanged"], result["added"]) == (2, 0)


def test_an_export_replaces_a_file_only_with_force() -> None:
    Path("kb.jsonl").write_text("notes", encoding="utf-8")
    assert "--force" in run("export", "--out", "kb.jsonl", "--store", "kb", code=2)["error"]["message"]
    assert Path("kb.jsonl").read_text(encoding="utf-8") == "notes"
    run("export", "--out", "kb.jsonl", "--force", "--store", "kb")
    assert run("import", "kb.jsonl", "--store", "copy")["added"] == 2


def test_a_line_that_cannot_be_read_is_reported_and_the_exit_code_is_1() -> None:
    run("export", "--out", "kb.jsonl", "--no-vectors", "--store", "kb")
    lines = Path("kb.jsonl").read_text(encoding="utf-8").splitlines()
    Path("kb.jsonl").write_text("\n".join([lines[0], lines[1][:50], lines[2]]), encoding="utf-8")
    result = RUNNER.invoke(app, ["import", "kb.jsonl", "--store", "copy", "--embedder", "hashing:16"])
    assert result.exit_code == 1
    assert "1 added, 0 updated, 0 unchanged, 1 failed" in result.stdout
    assert "the texts of 1 document were embedded again" in result.stdout
    assert "polyad: failed: kb.jsonl:2:" in result.stderr
    assert run("stats", "--store", "copy")["settings"]["embedder"] == "hashing:16"


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "--store", "kb"),
        ("export", "--store", "kb", "--out", "kb.csv", "--format", "csv"),
        ("export", "--store", "missing", "--out", "kb.jsonl"),
        ("import", "bell.md", "--store", "copy"),
        ("import", "missing.jsonl", "--store", "copy"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments, code=2)["error"]
    assert not Path("copy").exists()
