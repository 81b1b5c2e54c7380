"""Commands on an index in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad.cli.commands import app
from tests.postgres_server import get_url

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("POLYAD_STORE", get_url(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("tarn.md").write_text("Ines Moreau cast the bell of Tarn in 1702. The bell hangs in Corven Tower.")
    Path("aldby.md").write_text("Aldby is a village. Bo Ray was born there.")

    def run_command(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == code, result.output
        return result.stdout

    return run_command


def test_files_are_indexed_and_found(run: Run) -> None:
    assert "2 added" in run("index", "tarn.md", "aldby.md", "--embedder", "hashing:64")
    hits = json.loads(run("search", "Who cast the bell of Tarn?", "-k", "1", "--json"))["hits"]
    assert [hit["document_id"] for hit in hits] == ["tarn.md"]
    assert "2 unchanged" in run("index", "tarn.md", "aldby.md")
    run("remove", "tarn.md")
    assert json.loads(run("stats", "--json"))["documents"] == 1


def test_a_missing_index_is_named_without_the_user_of_the_database(run: Run) -> None:
    output = run("search", "anything", "--json", code=2)
    assert "no index in postgresql://" in output
    assert "polyad@" not in output
