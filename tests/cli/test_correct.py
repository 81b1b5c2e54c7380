"""The commands that correct an index."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from polyad.cli.output import show_check
from polyad.engine.maintenance import CheckReport
from polyad.protocols.store import Damage

RUNNER = CliRunner()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("bell.md").write_text("# Bell\nThe bell of Tarn was cast by Ines Moreau in the USA.\n", encoding="utf-8")
    Path("town.md").write_text("# Aldby\nAldby is a town of the United States of America.\n", encoding="utf-8")
    run("index", "bell.md", "town.md", "--embedder", "hashing:32")
    return "kb"


def run(*arguments: str, code: int = 0) -> Any:
    """Run a command on the index with --json and return what it prints."""
    result = RUNNER.invoke(app, [*arguments, "--store", "kb", "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def list_texts() -> list[str]:
    return [edge["text"] for edge in run("list", "hyperedges")["hyperedges"]]


@pytest.mark.usefixtures("store")
def test_a_fact_is_retracted_listed_marked_and_restored() -> None:
    trial = run("retract", "--hyperedge", "bell.md#0000/000", "--reason", "it was Ada", "--dry-run")
    assert (trial["is_trial"], len(list_texts())) == (True, 2)
    done = run("retract", "--hyperedge", "bell.md#0000/000", "--reason", "it was Ada")
    assert done == {**trial, "is_trial": False}
    assert (done["passages"], len(list_texts())) == (["bell.md#0000"], 1)
    [row] = run("list", "retractions")["retractions"]
    assert (row["id"], row["reason"]) == ("bell.md", "it was Ada")
    [hit, *_] = run("search", "Who cast the bell of Tarn?")["hits"]
    assert [fact["reason"] for fact in hit["retracted"]] == ["it was Ada"]
    result = RUNNER.invoke(app, ["search", "Who cast the bell of Tarn?", "--store", "kb"])
    assert "retracted (it was Ada): " in result.stdout
    assert run("restore", "--hyperedge", "bell.md#0000/000")["restored"] == done["withdrawn"]
    assert len(list_texts()) == 2


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    "selectors",
    [
        ["--hyperedge", "bell.md#0000/000"],
        ["--hyperedge", "bell.md#0000/000", "--entity", "Ines Moreau"],
        ["--entity", "United States of America"],
        ["--where", 'extension = ".md"'],
    ],
)
def test_the_list_of_retractions_prints_the_command_that_undoes_each(selectors: list[str]) -> None:
    before = run("show", "hyperedge", "bell.md#0000/000"), run("show", "hyperedge", "town.md#0000/000")
    done = run("retract", *selectors, "--reason", "it's $(touch wrong)")
    listed = RUNNER.invoke(app, ["list", "retractions", "--store", "kb"]).stdout
    [command] = [line for line in listed.splitlines() if line.strip().startswith("polyad restore")]
    result = RUNNER.invoke(app, [*run_in_shell(command), "--json"])
    assert json.loads(result.stdout)["restored"] == done["withdrawn"]
    assert run("list", "retractions")["retractions"] == []
    assert before == (run("show", "hyperedge", "bell.md#0000/000"), run("show", "hyperedge", "town.md#0000/000"))


@pytest.mark.usefixtures("store")
def test_a_retraction_whose_fact_is_gone_is_listed_without_a_command() -> None:
    run("retract", "--hyperedge", "bell.md#0000/000", "--reason", "it was Ada")
    run("remove", "bell.md")
    listed = RUNNER.invoke(app, ["list", "retractions", "--store", "kb"]).stdout
    assert "it was Ada" in listed
    assert "its document no longer has this fact" in listed


@pytest.mark.usefixtures("store")
def test_many_facts_are_retracted_only_when_that_is_confirmed() -> None:
    Path("rows.csv").write_text("name,town\n" + "".join(f"Person {n},Aldby\n" for n in range(150)), encoding="utf-8")
    run("index", "rows.csv")
    arguments = ["retract", "--entity", "Aldby", "--reason", "privacy"]
    error = run(*arguments, code=2)["error"]["message"]
    assert error.startswith("this withdraws 151 facts; confirm it with --yes")
    assert len(run(*arguments, "--yes")["withdrawn"]) == 151


@pytest.mark.usefixtures("store")
def test_aliases_are_added_from_a_file_suggested_and_removed() -> None:
    assert {"name": "USA", "entity": "United States of America", "reason": "initials", "score": 1.0} in run(
        "alias", "--suggest"
    )["suggestions"]
    Path("aliases.csv").write_text("USA,United States of America\n\n", encoding="utf-8")
    assert run("alias", "--file", "aliases.csv")["documents"] == ["bell.md"]
    assert run("show", "entity", "usa")["key"] == "united states of america"
    [row] = run("list", "aliases")["aliases"]
    assert (row["name"], row["entity"]) == ("USA", "United States of America")
    run("alias", "--remove", "U.S.A.")
    assert run("show", "entity", "usa")["key"] == "usa"


def run_in_shell(commands: str) -> list[str]:
    """Run lines in a shell in which `polyad` prints its arguments, each on a line."""
    polyad = "polyad() { printf '%s\\n' \"$@\"; }"
    result = subprocess.run(["sh", "-c", f"{polyad}\n{commands}"], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


@pytest.mark.usefixtures("store")
def test_suggested_commands_run_no_command_that_a_name_contains() -> None:
    names = ["X $(touch pwned) `touch pwned` Institute", "X $(touch pwned) `touch pwned` Institut"]
    Path("rows.csv").write_text("name,town\n" + "".join(f"{name},Aldby\n" for name in names), encoding="utf-8")
    run("index", "rows.csv")
    lines = RUNNER.invoke(app, ["alias", "--suggest", "--store", "kb"]).stdout.splitlines()
    [line] = [line for line in lines if "pwned" in line]
    arguments = run_in_shell(line)
    assert (arguments[0], sorted(arguments[1:])) == ("alias", sorted(names))
    run("alias", "it's $(touch pwned)", "Aldby")
    error = run("alias", "it's $(touch pwned)", "Tarn", code=2)["error"]["message"]
    assert run_in_shell(error.rpartition(": ")[2]) == ["alias", "--remove=it's $(touch pwned)"]
    assert not Path("pwned").exists()


def test_advice_on_damage_takes_no_id_for_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    damage = (Damage("references", "document", "", "is damaged", document_id="--force; touch pwned", remedy="index"),)
    show_check(CheckReport(damage, damage, {}, 0.0), "$(touch pwned)", repaired=False)
    command = capsys.readouterr().out.rpartition(": ")[2]
    assert run_in_shell(command) == ["remove", "--store", "$(touch pwned)", "--", "--force; touch pwned"]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["alias"], "expected NAME ENTITY, --remove NAME, --file FILE or --suggest"),
        (["alias", "USA"], "expected NAME ENTITY, --remove NAME, --file FILE or --suggest"),
        (["alias", "--file", "bell.md"], "bell.md, line 1: '# Bell'; expected name,entity"),
        (["alias", "--file", "none.csv"], "cannot read the aliases in 'none.csv'"),
        (["retract", "--entity", "USA"], "the reason is blank"),
        (["retract", "--where", "year >", "--reason", "x"], "the filter cannot be parsed at character 7"),
        (["disable", "nothing.md"], "no document 'nothing.md': it is neither an id nor a file, folder or pattern"),
        (["enable", "town.md"], "'town.md' is not disabled"),
    ],
)
def test_impossible_corrections_are_explained(arguments: list[str], message: str) -> None:
    assert message in run(*arguments, code=2)["error"]["message"]


@pytest.mark.usefixtures("store")
def test_disabled_documents_are_hidden_until_they_are_enabled() -> None:
    run("disable", "town.md", "--reason", "draft")
    assert run("list", "disabled")["disabled"] == [{"id": "town.md", "reason": "draft"}]
    assert {hit["document_id"] for hit in run("search", "Aldby")["hits"]} == {"bell.md"}
    run("enable", "town.md")
    assert len(list_texts()) == 2


@pytest.mark.usefixtures("store")
def test_folders_and_patterns_select_the_documents_to_disable_and_enable() -> None:
    Path("old").mkdir()
    for name in ("a.md", "b.md"):
        Path("old", name).write_text(f"The tower {name} stands in Velm.\n", encoding="utf-8")
    run("index", "old")
    assert run("disable", "old")["documents"] == ["old/a.md", "old/b.md"]
    assert run("enable", "*a.md")["documents"] == ["old/a.md"]
    assert [each["id"] for each in run("list", "disabled")["disabled"]] == ["old/b.md"]
    assert run("enable", "old")["documents"] == ["old/b.md"]


def test_conflicts_are_listed_with_their_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("doses.csv").write_text("drug,dose\nAbixa,5 mg\nAbixa,10 mg\nCorax,5 mg\n", encoding="utf-8")
    run("index", "doses.csv", "--method", "tuples", "--embedder", "hashing:32")
    [conflict] = run("conflicts")["conflicts"]
    assert (conflict["subject"], conflict["role"]) == ("Abixa", "dose")
    assert [(value["value"], len(value["facts"])) for value in conflict["values"]] == [("5 mg", 1), ("10 mg", 1)]
    [fact] = conflict["values"][0]["facts"]
    assert fact["document_id"].startswith("doses.csv:")
    result = RUNNER.invoke(app, ["conflicts", "--store", "kb"])
    assert f"5 mg  {fact['id']}" in result.stdout
    answer = run("ask", "What is the dose of Abixa?", "--min-relevance", "0")
    assert "The facts disagree: " in answer["note"]
