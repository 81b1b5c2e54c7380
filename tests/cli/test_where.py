"""``--where`` of the commands that read an index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad import Document, Engine
from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.model import Argument

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
    result = RUNNER.invoke(app, [*arguments, "--min-relevance", "0"])
    assert result.exit_code == 0, result.output
    shape = json.loads(result.stdout)
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
    result = RUNNER.invoke(app, ["search", "pump", "--store", store, "--where", where])
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_filter_that_selects_nothing_is_named(store: str) -> None:
    result = RUNNER.invoke(app, ["search", "pump", "--store", store, "--where", "year > 2030"])
    assert result.exit_code == 0
    assert "no document satisfies --where" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["list", "documents"], ["pump.md"]),
        (["list", "passages"], ["pump.md#0000"]),
        (["list", "entities", "--like", "moreau"], ["ines moreau"]),
        (["list", "entities", "--like", "valve"], []),
        (["list", "hyperedges"], ["pump.md#0000/000"]),
        (["facts", "Ines Moreau"], ["pump.md#0000/000"]),
    ],
)
def test_lookups_show_only_selected_documents(
    store: str, arguments: list[str], ids: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(app, [*arguments, "--store", store, "--where", "year >= 2020", "--json"])
    assert result.exit_code == 0, result.output
    [items] = [value for value in json.loads(result.stdout).values() if isinstance(value, list)]
    assert [str(item.get("key") or item["id"]).removeprefix(f"{tmp_path / 'docs'}/") for item in items] == ids


@pytest.mark.parametrize("arguments", [["list", "documents"], ["list", "hyperedges"], ["facts", "Ines Moreau"]])
def test_a_misspelt_field_of_a_lookup_is_an_error_of_usage(store: str, arguments: list[str]) -> None:
    result = RUNNER.invoke(app, [*arguments, "--store", store, "--where", "yaer > 2020"])
    assert result.exit_code == 2
    assert "the filter compares 'yaer', a field that no document of this index has" in " ".join(result.stderr.split())


def test_facts_given_as_data_are_limited_after_the_filter(tmp_path: Path) -> None:
    gifts = [
        Document(
            f"gift{year}",
            "",
            f"give: giver Alice, gift bell {year}",
            arguments=(Argument("giver", "Alice"), Argument("gift", f"bell {year}", "string")),
            relation="give",
            metadata={"year": year},
        )
        for year in range(2015, 2025)
    ]
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32)) as engine:
        engine.index_documents(gifts)
    arguments = ["--role", "giver=Alice", "--want", "gift", "--limit", "1", "--where", "year > 2022"]
    listed = RUNNER.invoke(app, ["facts", *arguments, "--store", str(tmp_path / "kb"), "--json"])
    assert listed.exit_code == 0, listed.output
    assert [fact["roles"] for fact in json.loads(listed.stdout)["facts"]] == [{"gift": ["bell 2023"]}]


@pytest.fixture
def mixed_store(store: str) -> str:
    """The documents of ``store`` and a fact given as data."""
    arguments = (Argument("mender", "Ines Moreau"), Argument("thing", "pump"))
    with Engine.open(store) as engine:
        engine.index_documents([Document("mended", "", "Ines Moreau mended a pump.", arguments=arguments)])
    return store


@pytest.mark.parametrize(
    ("where", "documents", "facts"),
    [
        ("hyperedge.kind = tuple", ["mended"], ["mended#0000/000"]),
        ("hyperedge.role in (mender, giver)", ["mended"], ["mended#0000/000"]),
        ("hyperedge.role = subject and year > 2020", ["pump.md"], ["pump.md#0000/000"]),
        ("not hyperedge.role = mender and year < 2020", ["drafts/valve.md"], ["drafts/valve.md#0000/000"]),
        ("hyperedge.kind = fact", [], []),
    ],
)
def test_kinds_and_roles_select_facts_and_the_documents_that_state_them(
    mixed_store: str, where: str, documents: list[str], facts: list[str]
) -> None:
    def list_ids(*arguments: str) -> list[str]:
        result = RUNNER.invoke(app, [*arguments, "--store", mixed_store, "--where", where, "--json"])
        assert result.exit_code == 0, result.output
        [items] = [value for value in json.loads(result.stdout).values() if isinstance(value, list)]
        return [item["id"].rpartition("docs/")[2] for item in items]

    assert list_ids("list", "documents") == documents
    assert list_ids("list", "hyperedges") == list_ids("facts", "Ines Moreau") == facts


def test_a_retraction_selects_documents_not_facts(mixed_store: str) -> None:
    where = ["--where", "hyperedge.kind = tuple", "--reason", "wrong"]
    refused = RUNNER.invoke(app, ["retract", "--store", mixed_store, *where])
    assert refused.exit_code == 2
    assert "'hyperedge.kind'; expected fields of documents" in " ".join(refused.stderr.split())


def test_excluded_documents_connect_others_if_the_flag_or_the_setting_says_so(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_reasons(*arguments: str) -> bool:
        question = ["search", "Who repaired the pump?", "--store", store, "--where", "year > 2020", "--json"]
        result = RUNNER.invoke(app, [*question, *arguments])
        assert result.exit_code == 0, result.output
        [hit] = json.loads(result.stdout)["hits"]
        assert hit["title"] == "Pump"
        return bool(hit["reason"])

    assert has_reasons()
    assert not has_reasons("--bridge-outside")
    monkeypatch.setenv("POLYAD_QUESTION_BRIDGE_OUTSIDE", "1")
    assert not has_reasons()
    assert has_reasons("--no-bridge-outside")
