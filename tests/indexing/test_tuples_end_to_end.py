"""Facts given as data are kept as they were given: nothing is lost, and everything is found exactly."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.errors import NotFoundError
from polyad.model import Argument
from polyad.protocols.components import Embedder
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_scorer import Recipe, TripleScorer
from polyad.retrieval.question import QuestionLinker
from polyad.schemas.evidence import evidence_json
from polyad.text.json_types import format_value
from tests.indexing.tuple_trials import Trial, Value, make_trials

COUNT, QUERIES = 600, 100
ROLES = 20


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    return make_trials(COUNT, seed=7)


@pytest.fixture(scope="module")
def folder(trials: list[Trial], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the file and of its index."""
    made = tmp_path_factory.mktemp("trials")
    (made / "trials.jsonl").write_text("\n".join(trial.line() for trial in trials), encoding="utf-8")
    with Engine.open(made / "kb", embedder=HashingEmbedder(16)) as engine:
        report = engine.index([made / "trials.jsonl"], method="tuples")
    assert (report.counts.added, report.failures) == (COUNT, ())
    return made


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    with Engine.open(folder / "kb", embedder=HashingEmbedder(16), create=False) as opened:
        yield opened


def written(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def find_facts(engine: Engine, questions: list[str], relation: str = "", limit: int = COUNT) -> list[str]:
    return [binding.hyperedge_id[:5] for binding in engine.catalogue.roles(questions, relation=relation, limit=limit)]


def test_no_argument_is_lost_and_each_is_kept_word_for_word(trials: list[Trial], engine: Engine) -> None:
    counter = Counter((trial.id, role, written(value)) for trial in trials for role, value in trial.arguments)
    remaining = Counter(
        (edge.id[:5], one.role, one.value) for edge in engine.catalogue.hyperedges() for one in edge.arguments
    )
    assert len({role for _, role, _ in counter}) == ROLES
    assert counter.total() > ROLES * COUNT
    assert (counter - remaining, remaining - counter) == (Counter(), Counter())
    relations = {edge.id[:5]: edge.relation for edge in engine.catalogue.hyperedges()}
    assert relations == {trial.id: trial.relation for trial in trials}


def test_role_queries_return_exactly_the_matching_facts(trials: list[Trial], engine: Engine) -> None:
    chance = Random(11)
    questions = [(trial, chance.choice(trial.arguments)) for trial in chance.choices(trials, k=QUERIES)]
    assert len({role for _, (role, _) in questions}) == ROLES
    for place, (trial, (role, value)) in enumerate(questions):
        relation = trial.relation if place % 3 == 0 else ""
        expected = [
            other.id
            for other in trials
            if (not relation or other.relation == relation)
            and any(key == role and same(one, value) for key, one in other.arguments)
        ]
        limit = 25 if place % 10 else COUNT
        assert find_facts(engine, [f"{role}={written(value)}"], relation, limit) == expected[:limit], (role, value)


def milligrams(dose: str) -> float:
    number, unit = dose.split()
    return float(number) * {"mg": 1, "g": 1000}.get(unit, float("nan"))


def same(one: Value, other: Value) -> bool:
    """Whether two values of a role are equal: of one type, and but for white space alike."""
    if isinstance(one, str) and isinstance(other, str):
        return one.split() == other.split()
    return type(one) is type(other) and one == other


@pytest.mark.parametrize(
    ("questions", "holds"),
    [
        (["patients>=100"], lambda of: of["patients"] >= 100),
        (["patients>20", "patients<=25"], lambda of: 20 < of["patients"] <= 25),
        (["reading<0"], lambda of: of["reading"] < 0),
        (["reading>=-2.5", "reading<0.001"], lambda of: -2.5 <= of["reading"] < 0.001),
        (["score<-8.5"], lambda of: of["score"] < -8.5),
        (["birth year>=1990", "randomised=true"], lambda of: of["birth year"] >= 1990 and of["randomised"] is True),
        (["start>=2020"], lambda of: of["start"] >= "2020"),
        (["start<1990-07"], lambda of: of["start"] < "1990-07"),
        (["start>=1998-12", "start<=1998-12"], lambda of: of["start"].startswith("1998-12")),
        (["dose>=50 mg"], lambda of: milligrams(of["dose"]) >= 50),
        (["dose>=3 g"], lambda of: milligrams(of["dose"]) >= 3000),
        (["dose=2.50 g"], lambda of: of["dose"] in ("2.5 g", "2500 mg")),
        (["withdrawn!=true"], lambda of: of["withdrawn"] is not True),
    ],
)
def test_numbers_and_dates_are_found_by_their_order(
    trials: list[Trial], engine: Engine, questions: list[str], holds: Callable[[dict[str, Value]], bool]
) -> None:
    expected = [trial.id for trial in trials if holds(dict(trial.arguments))]
    assert 0 < len(expected) < COUNT
    assert find_facts(engine, questions) == expected


def test_no_literal_joins_facts(trials: list[Trial], engine: Engine) -> None:
    literals = {"dose", "patients", "reading", "randomised", "responder", "start", "birth year", "score", "withdrawn"}
    roles = {part.role for trial in trials[:50] for part in engine.catalogue.hyperedge(f"{trial.id}#0000/000")[1]}
    assert roles.isdisjoint(literals)
    assert {"sponsor", "blood group", "phase"} <= roles


def test_entities_that_differ_in_a_sign_or_in_parentheses_are_different(trials: list[Trial], engine: Engine) -> None:
    for role, name in (("blood group", "AB-"), ("country", "Georgia (country)"), ("sponsor", "Us"), ("sponsor", "US")):
        expected = [trial.id for trial in trials if (role, name) in trial.arguments]
        assert [id[:5] for id in engine.catalogue.entity(name)[1]] == expected


def test_the_text_of_a_fact_says_its_relation_and_every_role(trials: list[Trial], engine: Engine) -> None:
    trial = trials[0]
    text = engine.catalogue.passage(f"{trial.id}#0000").text
    assert text.startswith(trial.relation.replace("_", " "))
    for role, value in trial.arguments:
        reply = "unknown" if value is None else " ".join(written(value).split())
        assert f"{role} {reply}" in text


def test_the_command_asks_by_relation_role_and_range(trials: list[Trial], folder: Path) -> None:
    command = ["facts", "--relation", "treats", "--role", "blood group=AB-", "--role", "birth year>=1990"]
    options = ["--want", "drug", "--want", "dose", "--limit", "5", "--store", str(folder / "kb"), "--json"]
    facts = json.loads(CliRunner().invoke(app, [*command, *options]).stdout)["facts"]
    expected = [trial for trial in trials if trial.relation == "treats" and ("blood group", "AB-") in trial.arguments]
    expected = [trial for trial in expected if int(str(dict(trial.arguments)["birth year"])) >= 1990][:5]
    assert [fact["id"][:5] for fact in facts] == [trial.id for trial in expected]
    assert {fact["relation"] for fact in facts} == {"treats"}
    for fact, trial in zip(facts, expected, strict=True):
        assert sorted(fact["roles"]) == ["dose", "drug"]
        assert fact["roles"]["drug"] == [value for role, value in trial.arguments if role == "drug"]
        (dose,) = [one for one in fact["arguments"] if one["role"] == "dose"]
        assert (dose["type"], f"{dose['value']}") == ("number", dict(trial.arguments)["dose"])


def test_the_command_says_which_roles_there_are_where_it_knows_none_of_that_name(
    trials: list[Trial], folder: Path
) -> None:
    ran = CliRunner().invoke(app, ["facts", "--role", "nope=1", "--want", "neither", "--store", str(folder / "kb")])
    assert ran.exit_code == 0
    names = sorted({role for trial in trials for role, _ in trial.arguments})
    for name in ("nope", "neither"):
        assert f"no fact of this index has the role {name!r}; existing roles: {', '.join(names[:10])}" in ran.stderr


def test_the_command_says_which_numbers_have_a_unit_that_it_cannot_compare(tmp_path: Path) -> None:
    rows = "drug,dose:number[mg]\nTarnol,50\nCorvenin,2 g\nIskol,100 IU\n"
    (tmp_path / "trials.csv").write_text(rows, encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        engine.index(tmp_path / "trials.csv", method="tuples")

    def ask(*roles: str) -> tuple[list[str], str]:
        options = [word for role in roles for word in ("--role", role)]
        ran = CliRunner().invoke(app, ["facts", *options, "--json", "--store", str(tmp_path / "kb")])
        assert ran.exit_code == 0
        return sorted(fact["roles"]["drug"][0] for fact in json.loads(ran.stdout)["facts"]), ran.stderr

    assert ask("dose>=1 g") == (
        ["Corvenin"],
        "polyad: note: dose: numbers that cannot be converted to 'g' are left out (1 in 'IU')\n",
    )
    assert ask("dose>=1 g", "dose<=1 g")[1].count("note") == 1
    results, note = ask("dose>=60")
    assert results == ["Iskol"]
    assert "without regard to units; add a unit, as in 'dose>=60 mg' (1 in 'IU', 1 in 'g', 1 in 'mg')" in note
    assert ask("drug=Tarnol") == (["Tarnol"], "")
    assert ask("drug=12 g") == ([], "polyad: note: '12 g' has no role in this index\n")
    (tmp_path / "more.csv").write_text("drug,dose\nOsk,9 g\n", encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        engine.index(tmp_path / "more.csv", method="tuples")
    assert "add a unit, as in 'dose>=60 g' (1 in 'IU', 2 in 'g', 1 in 'mg')" in ask("dose>=60")[1], "the usual one"
    results, note = ask("dose>=1 furlong")
    assert (results, "(1 in 'IU', 2 in 'g', 1 in 'mg')" in note) == ([], True)


def test_a_question_that_names_an_entity_by_words_reaches_its_facts(tmp_path: Path) -> None:
    lines = [
        {"_id": "tarn", "relation": "cast", "arguments": {"founder": "Jean-Marie O'Hare (founder)", "bell": "Tarn"}},
        {"_id": "isk", "relation": "cast", "arguments": {"founder": "Bob Stone", "bell": "Isk", "weight": 1200}},
    ]
    (tmp_path / "bells.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        engine.index([tmp_path / "bells.jsonl"], method="tuples")
        assert engine.catalogue.entity("Jean-Marie O'Hare (founder)")[1] == ["tarn#0000/000"]
        (hit,) = engine.search("What did Jean-Marie O'Hare cast?", 1, retriever="hypersu").passages
        assert hit.passage.document_id == "tarn"
        assert engine.snapshot().find_rows("entity", ["jean marie ohare"]).keys() == {"jean marie ohare"}
        (fact,) = engine.catalogue.roles(["weight>1000"], ["weight"])
        assert fact.arguments == (Argument("weight", "1200", "number"),)


# Files that change


def write(file: Path, trials: list[Trial]) -> None:
    file.write_text("\n".join(trial.line() for trial in trials), encoding="utf-8")


def test_a_line_inserted_before_others_rewrites_none_of_them(trials: list[Trial], tmp_path: Path) -> None:
    file = tmp_path / "trials.jsonl"
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        write(file, trials[1:60])
        engine.index([file], method="tuples")
        write(file, trials[:60])
        counts = engine.index([file], method="tuples").counts
        assert (counts.added, counts.updated, counts.unchanged) == (1, 0, 59)


def test_a_line_without_an_id_inserted_before_others_rewrites_none_of_them(tmp_path: Path) -> None:
    file = tmp_path / "trials.csv"
    rows = [f"Ines {number},{number}" for number in range(20)]
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        file.write_text("\n".join(["name,age", *rows]), encoding="utf-8")
        engine.index([file], method="tuples")
        file.write_text("\n".join(["name,age", "Bob,42", *rows]), encoding="utf-8")
        counts = engine.index([file], method="tuples").counts
        assert (counts.added, counts.updated, counts.unchanged) == (1, 0, 20)


def test_a_fact_that_changed_is_replaced_by_its_id_and_one_retracted_is_pruned(
    trials: list[Trial], tmp_path: Path
) -> None:
    file, first = tmp_path / "trials.jsonl", trials[0]
    changed = Trial(first.id, "retracts", (*first.arguments, ("editor", "Zed")))
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        write(file, trials[:10])
        engine.index([file], method="tuples")
        write(file, [changed, *trials[1:9]])
        counts = engine.index([file], method="tuples", prune=True).counts
        assert (counts.updated, counts.unchanged) == (1, 8)
        assert find_facts(engine, ["editor=Zed"]) == [first.id]
        assert engine.catalogue.relations()["retracts"] == 1
        assert trials[9].id not in engine.catalogue.sources()
        assert sum(engine.catalogue.relations().values()) == 9


# Together with other documents


AUTHORS = {"relation": "wrote", "arguments": {"who": {"entity": "Q42", "label": "Douglas Adams"}, "weight": 5}}


def test_an_index_of_facts_and_texts_keeps_both_when_no_method_is_named(trials: list[Trial], tmp_path: Path) -> None:
    write(tmp_path / "trials.jsonl", trials[:5])
    rows = ["name,age:number[years]", "Ines Moreau,42", "Bob,7"]
    (tmp_path / "people.csv").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "notes.md").write_text("Ines Moreau cast the Bell of Tarn in Oslo.", encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        engine.index([tmp_path / "trials.jsonl", tmp_path / "people.csv"], method="tuples")
        engine.index([tmp_path / "notes.md"], method="semantic-units")
        write(tmp_path / "trials.jsonl", trials[:6])
        (tmp_path / "people.csv").write_text("\n".join([*rows, "Zed,9"]), encoding="utf-8")
        counts = engine.index([tmp_path]).counts
        assert (counts.added, counts.updated, counts.unchanged, counts.failures) == (2, 0, 8, ())
        assert {kind.value: count for kind, count in engine.catalogue.statistics().kinds.items()} == {
            "semantic-unit": 1,
            "tuple": 9,
        }
        assert len(engine.catalogue.roles(["age>=9"])) == 2
        joined = {id.partition("#")[0].partition(":")[0][-9:] for id in engine.catalogue.entity("Ines Moreau")[1]}
        assert joined == {"eople.csv", "/notes.md"}


def test_a_hit_says_the_relation_and_the_arguments_of_its_facts_and_the_command_the_label(tmp_path: Path) -> None:
    (tmp_path / "authors.jsonl").write_text(json.dumps(AUTHORS), encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        engine.index([tmp_path / "authors.jsonl"], method="tuples")
        assert [engine.catalogue.entity(name)[0].key for name in ("Q42", "Douglas Adams")] == ["q42", "q42"]
        with pytest.raises(NotFoundError):
            engine.catalogue.entity("Douglas")
        (hit,) = format_value(evidence_json(engine.search("Who wrote?", 1), explain=False))["hits"]
    (fact,) = hit["hyperedges"]
    assert fact["relation"] == "wrote"
    assert fact["arguments"] == [
        {"role": "who", "value": "Q42", "type": "entity", "names": ["Douglas Adams"]},
        {"role": "weight", "value": "5", "type": "number"},
    ]
    reply = CliRunner().invoke(app, ["facts", "--role", "who=Q42", "--store", str(tmp_path / "kb")]).stdout
    assert "wrote" in reply
    assert "    who: Douglas Adams (Q42)\n" in reply


# Names beside an id


def called(id: str, *names: str) -> dict[str, object]:
    label, *aliases = names
    return {"entity": id, "label": label, "aliases": aliases}


WRITERS: list[dict[str, object]] = [
    {"_id": "hhg", "relation": "wrote", "arguments": {"who": called("Q42", "Douglas Adams", "Bop Ad"), "work": "HHG"}},
    {"_id": "ada", "relation": "wrote", "arguments": {"who": called("Q7259", "Ada Lovelace", "A. King"), "work": "N"}},
    {"_id": "king", "relation": "led", "arguments": {"who": called("Q8027", "Martin King", "A. King"), "what": "SCLC"}},
]


def write_lines(file: Path, lines: list[dict[str, object]]) -> None:
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


def linked(engine: Engine, question: str, **options: Any) -> set[str]:
    snapshot = engine.snapshot()
    entities = QuestionLinker(engine.components.extractor, **options).link(question, snapshot).entities
    return set(snapshot.ids("entity", list(entities)))


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Engine]:
    write_lines(tmp_path / "writers.jsonl", WRITERS)
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        engine.index([tmp_path / "writers.jsonl"], method="tuples")
        yield engine


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        ("What did Douglas Adams write?", {"q42"}),
        ("what did douglas adams write?", {"q42"}),
        ("Which books are by Bop Ad?", {"q42"}),
        ("What did Q42 write?", {"q42"}),
        ("Did Ada Lovelace know Douglas Adams's work?", {"q42", "q7259"}),
        ("What did A. King lead?", {"q7259", "q8027"}),
        ("What did Douglas write?", set()),
    ],
)
def test_a_question_reaches_entities_by_the_names_they_were_given_beside_their_id(
    writers: Engine, question: str, keys: set[str]
) -> None:
    assert linked(writers, question) == keys


def test_a_name_that_the_extractor_finds_is_enough(writers: Engine) -> None:
    assert linked(writers, "What did Douglas Adams write?", names="found") == {"q42"}


BORN: list[dict[str, object]] = [
    {"_id": id, "relation": "born in", "arguments": {"who": {"entity": id}, "where": f"Town {id}"}}
    for id in ("Q1", "Q2", "Q3", "Q42", "Q5", "Q6")
]
"""Facts on six people, one of whom other facts call "Bop Ad"."""


@pytest.fixture
def born(tmp_path: Path) -> Iterator[Engine]:
    write_lines(tmp_path / "facts.jsonl", [*WRITERS, *BORN])
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(384), settings=weights_for(tmp_path)) as engine:
        engine.index([tmp_path / "facts.jsonl"], method="tuples")
        yield engine


def test_hyperretriever_ranks_facts_on_an_entity_that_an_alias_names_first(born: Engine) -> None:
    evidence = born.search("Where was Bop Ad born?", 9, retriever="hyperretriever")
    ids = [hit.passage.document_id for hit in evidence.passages]
    assert next(id for id in ids if id.startswith("Q")) == "Q42"


def test_default_follows_links_from_an_entity_that_an_alias_names(born: Engine) -> None:
    evidence = born.search("Where was Bop Ad born?", 9, retriever="default")
    linked_facts = [hit.passage.document_id for hit in evidence.passages if "'Douglas Adams'" in hit.reason]
    assert sorted(linked_facts) == ["Q42", "hhg"]


def test_default_ranks_a_fact_on_an_entity_that_an_alias_of_another_fact_names_first(
    tmp_path: Path, embedder: Embedder
) -> None:
    write_lines(tmp_path / "facts.jsonl", [*WRITERS, *BORN])
    with Engine.open(tmp_path / "kb", embedder=embedder) as engine:
        engine.index([tmp_path / "facts.jsonl"], method="tuples")
        best = engine.search("Where was Bop Ad born?", 1).passages[0]
    assert best.passage.document_id == "Q42"


BIRTHPLACES = {
    "Ada Lovelace": "London",
    "Martin King": "Atlanta",
    "Douglas Adams": "Cambridge",
    "Adam Smith": "Kirkcaldy",
    "Alan Turing": "Maida Vale",
    "Adah Menken": "Memphis",
}


@pytest.mark.parametrize("alias", ["Adamsky", "Bop Ad", "Q42", "The King of Puns"])
def test_default_ranks_a_fact_on_an_entity_that_the_question_names_by_an_alias_before_similar_facts(
    tmp_path: Path, embedder: Embedder, alias: str
) -> None:
    facts: list[dict[str, object]] = [
        {"_id": name, "relation": "born in", "arguments": {"who": name, "where": place}}
        for name, place in BIRTHPLACES.items()
    ]
    write_lines(tmp_path / "facts.jsonl", facts)
    with Engine.open(tmp_path / "kb", embedder=embedder) as engine:
        engine.index([tmp_path / "facts.jsonl"], method="tuples")
        question = f"Where was {alias} born?"
        before = engine.search(question, 1).passages[0]
        engine.corrections.add_aliases([(alias, "Douglas Adams")])
        after = engine.search(question, 1).passages[0]
    assert after.passage.document_id == "Douglas Adams"
    assert (before.relevance or 0) < 0.5 < (after.relevance or 0)


def weights_for(folder: Path) -> Settings:
    recipe = Recipe(embedder=HashingEmbedder(384).name, dimension=384)
    TripleScorer.create_untrained(recipe).save(folder / "weights.safetensors")
    return Settings(hyperretriever=HyperRetrieverSettings(weights=str(folder / "weights.safetensors")))


def test_names_are_those_of_the_facts_that_are_there_now(tmp_path: Path, writers: Engine) -> None:
    assert linked(writers, "Did Zaphod know Bop Ad?") == {"q42"}
    zaphod: dict[str, object] = {
        "_id": "zaphod",
        "relation": "stole",
        "arguments": {"who": called("Q77", "Zaphod", "Zed B"), "what": "H"},
    }
    write_lines(tmp_path / "writers.jsonl", [*WRITERS, zaphod])
    writers.index([tmp_path / "writers.jsonl"])
    assert linked(writers, "Did Zed B know Bop Ad?") == {"q42", "q77"}
    renamed: dict[str, object] = {
        **WRITERS[0],
        "arguments": {"who": called("Q42", "Douglas Adams", "DNA"), "work": "HHG"},
    }
    write_lines(tmp_path / "writers.jsonl", [renamed, *WRITERS[1:]])
    writers.index([tmp_path / "writers.jsonl"], prune=True)
    assert linked(writers, "Did Zed B know Bop Ad?") == set()
    assert linked(writers, "Did Zed B know DNA?") == {"q42"}
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16), create=False) as again:
        assert linked(again, "Did Zed B know DNA?") == {"q42"}


def test_a_name_reaches_both_who_is_known_by_an_id_and_what_texts_call_so(tmp_path: Path, writers: Engine) -> None:
    (tmp_path / "notes.md").write_text("He met Douglas Adams in Oslo.", encoding="utf-8")
    writers.index([tmp_path / "notes.md"], method="semantic-units")
    assert linked(writers, "What did Douglas Adams write?") == {"q42", "douglas adams"}
