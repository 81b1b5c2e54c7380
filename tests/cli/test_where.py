"""``--where`` of the commands that read an index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad.cli import app

RUNNER = CliRunner()


@pytest.fixture
def store(tmp_path: Path) -> str:
    docs = tmp_path / "docs"
    (docs / "drafts").mkdir(parents=True)
    (docs / "pump.md").write_text("---\nyear: 2021\nauthor: Ada\n---\n# Pump\nInes Moreau repaired the pump of Tarn.\n")
    (docs / "drafts" / "valve.md").write_text("---\nyear: 2018\n---\n# Valve\nInes Moreau broke the valve of Tarn.\n")
    folder = str(tmp_path / "kb")
    indexed = RUNNER.invoke(app, ["index", str(docs), "--store", folder, "--embedder", "hashing:32", "-q"])
    assert indexed.exit_code == 0, indexed.output
    return folder


@pytest.mark.parametrize(
    ("where", "titles"),
    [
        ("year >= 2020", ["Pump"]),
        ('path like "*drafts*"', ["Valve"]),
        ("author exists", ["Pump"]),
        ("year in (2018, 2021)", ["Pump", "Valve"]),
    ],
)
@pytest.mark.parametrize("command", ["search", "ask"])
def test_only_selected_documents_are_found(store: str, where: str, titles: list[str], command: str) -> None:
    arguments = [command, "Who repaired the pump?", "--store", store, "--where", where, "--json"]
    found = RUNNER.invoke(app, [*arguments, "--min-relevance", "0"])
    assert found.exit_code == 0, found.output
    shape = json.loads(found.stdout)
    hits = shape["hits"] if command == "search" else shape["evidence"]["hits"]
    assert sorted(hit["title"] for hit in hits) == titles


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("year >", "the filter cannot be parsed at character 7: the end; expected a value"),
        (
            "yaer > 2020",
            "the filter compares 'yaer', a field that no document of this index has; expected one of",
        ),
    ],
)
def test_an_invalid_filter_is_an_error_of_usage(store: str, where: str, message: str) -> None:
    found = RUNNER.invoke(app, ["search", "pump", "--store", store, "--where", where])
    assert found.exit_code == 2
    assert message in " ".join(found.stderr.split())


def test_a_filter_that_selects_nothing_is_named(store: str) -> None:
    found = RUNNER.invoke(app, ["search", "pump", "--store", store, "--where", "year > 2030"])
    assert found.exit_code == 0
    assert "no document satisfies --where" in found.stderr
