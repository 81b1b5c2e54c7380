"""``--as-of`` and ``--known-at`` of the commands that read an index."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad import Document, Engine
from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.model import Argument

RUNNER = CliRunner()
MAYORS = {"Ines Moreau": {"valid_from": "2012", "valid_to": "2019-06"}, "Bo Ray": {"valid_from": "2019-07"}}


@pytest.fixture
def store(tmp_path: Path) -> str:
    facts = [
        Document(
            name,
            "",
            f"{name} was mayor of Tarn.",
            arguments=(Argument("mayor", name), Argument("town", "Tarn")),
            relation="mayors",
            metadata=dates,
        )
        for name, dates in MAYORS.items()
    ]
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        for year, fact in enumerate(facts, 2023):
            engine.index_documents([fact], now=datetime(year, 3, 1, tzinfo=UTC))
    return str(tmp_path / "kb")


def list_mayors(store: str, *arguments: str) -> list[str]:
    """Return the names in the JSON output of a command."""
    result = RUNNER.invoke(app, [*arguments, "--store", store, "--json"])
    assert result.exit_code == 0, result.output
    return [name for name in MAYORS if name in result.stdout]


COMMANDS: Sequence[Sequence[str]] = (
    ("search", "Who was mayor of Tarn?"),
    ("ask", "Who was mayor of Tarn?", "--min-relevance", "0"),
    ("facts", "--role", "town=Tarn"),
    ("facts", "Tarn"),
    ("list", "documents"),
    ("list", "entities"),
    ("list", "hyperedges"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reads_what_holds_at_a_time(store: str, command: Sequence[str]) -> None:
    assert list_mayors(store, *command) == ["Bo Ray"], "now"
    assert list_mayors(store, *command, "--as-of", "2019-06-30T23:59") == ["Ines Moreau"]
    assert list_mayors(store, *command, "--as-of", "2019-07") == ["Bo Ray"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reads_what_the_index_knew_at_a_time(store: str, command: Sequence[str]) -> None:
    for known_at, names in (("2023-02", []), ("2023-03-01", ["Ines Moreau"]), ("2024", ["Ines Moreau"])):
        assert list_mayors(store, *command, "--as-of", "2015", "--known-at", known_at) == names
    assert list_mayors(store, *command, "--known-at", "2024") == ["Bo Ray"]
    assert list_mayors(store, *command, "--known-at", "2023") == []


def test_conflicts_are_those_of_facts_that_hold_at_a_time(tmp_path: Path) -> None:
    store = str(tmp_path / "kb")
    (tmp_path / "towns.csv").write_text(
        "town,mayor,valid_from,valid_to\nTarn,Ines Moreau,2012,2019\nTarn,Bo Ray,2019,\nOrla,Ada King,,\n"
    )
    with Engine.open(store, embedder=HashingEmbedder(16)) as engine:
        engine.index([tmp_path / "towns.csv"], method="tuples")
    for time, count in (([], 0), (["--as-of", "2019-05"], 1), (["--as-of", "2018-12-31T23:59"], 0)):
        result = RUNNER.invoke(app, ["conflicts", *time, "--store", store, "--json"])
        assert len(json.loads(result.stdout)["conflicts"]) == count
    assert RUNNER.invoke(app, ["conflicts", "--as-of", "soon", "--store", store]).exit_code == 2


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--as-of", "--known-at"])
def test_an_unreadable_date_is_an_error_of_usage(store: str, command: Sequence[str], option: str) -> None:
    result = RUNNER.invoke(app, [*command, "--store", store, option, "soon"])
    assert result.exit_code == 2
    assert f"{option[2:].replace('-', '_')} is 'soon'; expected a date" in " ".join(result.stderr.split())


def test_an_entity_is_described_by_the_facts_that_hold(store: str) -> None:
    result = RUNNER.invoke(app, ["list", "entities", "--store", store, "--json"])
    assert sorted(item["key"] for item in json.loads(result.stdout)["entities"]) == ["bo ray", "tarn"]


def run_at(store: str, *arguments: str) -> tuple[str, str]:
    """Return standard output and error of a command as single lines."""
    result = RUNNER.invoke(app, [*arguments, "--store", store])
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split()), " ".join(result.stderr.split())


@pytest.mark.parametrize("command", [("search", "Who was mayor of Tarn?"), ("facts", "--role", "town=Tarn")])
def test_expired_facts_are_printed_with_their_dates(store: str, command: Sequence[str]) -> None:
    past, _ = run_at(store, *command, "--as-of", "2015")
    assert "held from 2012-01-01 until 2019-07-01" in past
    present, _ = run_at(store, *command)
    assert "Bo Ray" in present
    assert "held" not in present


def test_bounds_are_in_the_json_of_facts(store: str) -> None:
    [fact] = json.loads(RUNNER.invoke(app, ["facts", "Bo Ray", "--store", store, "--json"]).stdout)["facts"]
    assert fact["valid_from"] == "2019-07-01T00:00:00Z"
    assert "valid_to" not in fact


@pytest.mark.parametrize("retriever", ["default", "bm25"])
def test_a_search_without_hits_says_that_a_date_or_a_filter_left_passages_out(store: str, retriever: str) -> None:
    command = ("search", "Who was mayor of Tarn?", "--retriever", retriever)
    assert "2 passages that do not hold at this time were not searched" in run_at(store, *command, "--as-of", "2000")[1]
    both = run_at(store, *command, "--as-of", "2000", "--where", "id exists")[1]
    assert "2 passages that do not hold" in both
    assert "no document satisfies --where" in both
    filtered = run_at(store, "search", "otter", "--retriever", "bm25", "--where", 'id = "Bo Ray"')[1]
    assert "only 1 passage that --where and --known-at select were searched" in filtered
    assert "not searched" not in run_at(store, *command, "--as-of", "2015")[1]


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (["--as-of", "2000"], "facts match that do not hold at this time"),
        (["--where", 'id = "Ines Moreau"'], "facts match that do not hold at this time"),
        (["--known-at", "2020"], "facts match in documents that --where and --known-at exclude"),
    ],
)
@pytest.mark.parametrize("command", [("facts", "Tarn"), ("facts", "--role", "town=Tarn")])
def test_facts_without_results_say_what_left_them_out(
    store: str, command: Sequence[str], arguments: Sequence[str], note: str
) -> None:
    assert note in run_at(store, *command, *arguments)[1]
