"""Looking facts up by what they join, in an index of facts given as data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import ConfigurationError, NotFoundError

FACTS = {
    "book": {"giver": "Alice", "recipient": "Bob", "gift": "Book"},
    "pen": {"giver": "Alice", "recipient": "Carol", "gift": "Pen"},
}


def line(id: str, arguments: dict[str, str]) -> str:
    pairs = [{"role": role, "entity": name} for role, name in arguments.items()]
    return json.dumps({"_id": id, "relation": "give", "arguments": pairs})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "facts.jsonl").write_text("\n".join(line(*fact) for fact in FACTS.items()), encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        report = engine.index([tmp_path / "facts.jsonl"], method="tuples")
    assert (report.counts.added, report.failures) == (2, ())
    return tmp_path / "kb"


@pytest.fixture
def engine(store: Path) -> Iterator[Engine]:
    with Engine.open(store, embedder=HashingEmbedder(16), create=False) as opened:
        yield opened


def test_hyperedges_that_join_all_of_some_entities(engine: Engine) -> None:
    assert [edge.id for edge in engine.catalogue.hyperedges_joining(["alice"])] == ["book#0000/000", "pen#0000/000"]
    assert [edge.id for edge in engine.catalogue.hyperedges_joining(["Alice", "Pen"])] == ["pen#0000/000"]
    assert engine.catalogue.hyperedges_joining(["Bob", "Carol"]) == []


def test_facts_given_as_data_stay_facts_when_they_are_indexed_again_without_naming_the_method(
    store: Path, engine: Engine
) -> None:
    facts = store.parent / "facts.jsonl"
    corrected = line("pen", FACTS["pen"] | {"recipient": "Dora"})
    facts.write_text(line("book", FACTS["book"]) + "\n" + corrected, encoding="utf-8")
    report = engine.index([facts])
    assert (report.counts.unchanged, report.counts.updated, report.failures) == (1, 1, ())
    assert [result.roles["gift"] for result in engine.catalogue.roles({"recipient": "Dora"})] == [("Pen",)]


def test_whether_two_entities_meet(engine: Engine) -> None:
    assert engine.catalogue.hyperedges_joining(["Alice", "Book"])
    assert not engine.catalogue.hyperedges_joining(["Bob", "Pen"])


def test_an_unknown_entity_and_none_at_all_are_errors(engine: Engine) -> None:
    with pytest.raises(NotFoundError, match="zoe"):
        engine.catalogue.hyperedges_joining(["Zoe"])
    with pytest.raises(ConfigurationError):
        engine.catalogue.hyperedges_joining([])


def test_bound_roles_give_the_others(engine: Engine) -> None:
    (role_binding,) = engine.catalogue.roles({"giver": "Alice", "gift": "Pen"}, ["recipient"])
    assert role_binding.roles == {"recipient": ("Carol",)}


def test_the_command_prints_facts_with_their_roles(store: Path) -> None:
    by_role = ["facts", "--role", "giver=Alice", "--role", "recipient=Bob", "--store", str(store)]
    (fact,) = json.loads(CliRunner().invoke(app, [*by_role, "--json"]).stdout)["facts"]
    assert fact["roles"]["gift"] == ["Book"]
    assert "recipient: Bob" in CliRunner().invoke(app, by_role).stdout
    by_entity = CliRunner().invoke(app, ["facts", "Bob", "Alice", "--store", str(store), "--json"])
    assert [result["id"] for result in json.loads(by_entity.stdout)["facts"]] == ["book#0000/000"]
    assert "nothing found" in CliRunner().invoke(app, ["facts", "Bob", "Carol", "--store", str(store)]).stdout


def test_the_command_takes_one_role_for_several_entities(store: Path) -> None:
    more = store.parent / "more.jsonl"
    pairs = [{"role": "giver", "entity": "Alice"}, {"role": "giver", "entity": "Bob"}]
    more.write_text(json.dumps({"_id": "both", "relation": "give", "arguments": pairs}), encoding="utf-8")
    with Engine.open(store, embedder=HashingEmbedder(16)) as engine:
        engine.index([more], method="tuples")
    command = ["facts", "--role", "giver=Alice", "--role", "giver=Bob", "--store", str(store), "--json"]
    (fact,) = json.loads(CliRunner().invoke(app, command).stdout)["facts"]
    assert fact["id"] == "both#0000/000"


def test_when_nothing_has_the_roles_the_command_says_which_ones_there_are(store: Path) -> None:
    result = CliRunner().invoke(app, ["facts", "--role", "Giver=Alice", "--role", "gift=Zoe", "--store", str(store)])
    assert result.exit_code == 0
    assert "nothing found" in result.stdout
    assert "'Alice' has the role giver in this index" in result.stderr
    assert "'Zoe' has no role in this index" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["Bob", "--role", "giver=Alice"], ["--role", "giver"]])
def test_a_question_that_makes_no_sense_is_refused(store: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["facts", *arguments, "--store", str(store)])
    assert result.exit_code == 2
    assert "expected" in result.output
