from __future__ import annotations

import json
import runpy
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from polyad.model import Document
from polyad.readers.folder.files import FileReader
from polyad.readers.folder.tuples import TupleReader
from polyad.text.keys import build_entity_key
from polyad_bench.datasets.beir import load_beir

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "synthetic_tuples.py"
SIZES = ["--tuples", "1200", "--questions", "90"]

Record = dict[str, Any]
Relations = dict[str, list[dict[str, str]]]


@pytest.fixture(scope="module")
def generate() -> Callable[[Path, str], None]:
    main = runpy.run_path(str(SCRIPT))["main"]
    return lambda folder, seed: main([str(folder), *SIZES, "--seed", seed])


@pytest.fixture(scope="module")
def folder(generate: Callable[[Path, str], None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synthetic") / "kb"
    generate(folder, "7")
    return folder


@pytest.fixture(scope="module")
def facts(folder: Path) -> dict[str, Record]:
    return {line["_id"]: line for line in lines(folder / "facts.jsonl")}


@pytest.fixture(scope="module")
def relations(facts: dict[str, Record]) -> Relations:
    results: Relations = {}
    for fact in facts.values():
        results.setdefault(fact["relation"], []).append(roles_of(fact))
    return results


@pytest.fixture(scope="module")
def queries(folder: Path) -> list[Record]:
    return lines(folder / "queries.jsonl")


def lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def roles_of(fact: Record) -> dict[str, str]:
    return {argument["role"]: argument["entity"] for argument in fact["arguments"]}


def joint_answers(facts: list[dict[str, str]], bound: dict[str, str], expected: str) -> set[str]:
    return {fact[expected] for fact in facts if bound.items() <= fact.items()}


def pairwise_answers(facts: list[dict[str, str]], bound: dict[str, str], expected: str) -> set[str]:
    """As a graph of pairs has it: together with each bound entity somewhere."""
    return set.intersection(*(joint_answers(facts, {role: entity}, expected) for role, entity in bound.items()))


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_the_same_seed_writes_the_same_files_and_another_seed_others(
    generate: Callable[[Path, str], None], folder: Path, tmp_path: Path
) -> None:
    generate(tmp_path / "again", "7")
    generate(tmp_path / "other", "8")
    assert content(tmp_path / "again") == content(folder)
    assert set(content(folder)) == {"corpus.jsonl", "facts.jsonl", "qrels/test.tsv", "queries.jsonl"}
    assert content(tmp_path / "other") != content(folder)


def test_there_are_as_many_facts_and_questions_as_asked_for(facts: dict[str, Record], queries: list[Record]) -> None:
    assert len(facts) == 1200
    assert len({query["text"] for query in queries}) == 90
    assert Counter(query["metadata"]["hops"] for query in queries) == {1: 30, 2: 30, 3: 30}


def test_facts_have_three_to_five_roles_of_different_entities(facts: dict[str, Record]) -> None:
    assert {len(fact["arguments"]) for fact in facts.values()} == {3, 4, 5}
    assert all(len(set(roles_of(fact).values())) == len(fact["arguments"]) for fact in facts.values())


def test_no_two_entities_share_a_key(relations: Relations) -> None:
    names = {name for facts in relations.values() for fact in facts for name in fact.values()}
    keys = {build_entity_key(name) for name in names}
    assert "" not in keys
    assert len(keys) == len(names)


def test_entities_are_shared_between_relations(relations: Relations) -> None:
    results: Counter[str] = Counter()
    for facts in relations.values():
        results.update({name for fact in facts for name in fact.values() if not name.isdigit()})
    assert sum(count > 1 for count in results.values()) > len(results) / 2


def test_both_readers_take_the_folder_and_agree_on_the_text(folder: Path, facts: dict[str, Record]) -> None:
    tuples = list(TupleReader().read([folder / "facts.jsonl"]))
    prose = list(FileReader().read([folder / "corpus.jsonl"]))
    assert [item.id for item in tuples] == list(facts)
    assert [(item.id, item.text) for item in tuples if isinstance(item, Document)] == [
        (item.id, item.text) for item in prose if isinstance(item, Document)
    ]


def test_the_gold_facts_are_those_of_the_steps(folder: Path, queries: list[Record]) -> None:
    dataset = load_beir(folder)
    assert [(query.id, query.gold, query.answers) for query in dataset.queries] == [
        (
            query["_id"],
            frozenset(step["fact"] for step in query["metadata"]["steps"]),
            tuple(query["metadata"]["answers"]),
        )
        for query in queries
    ]


def test_every_hop_takes_a_fact_of_its_own(queries: list[Record]) -> None:
    for query in queries:
        assert len({step["fact"] for step in query["metadata"]["steps"]}) == query["metadata"]["hops"]


def test_the_answer_is_read_off_the_last_fact_and_each_step_has_one_answer(
    facts: dict[str, Record], relations: Relations, queries: list[Record]
) -> None:
    for query in queries:
        steps = query["metadata"]["steps"]
        answers = [roles_of(facts[step["fact"]])[step["wanted"]] for step in steps]
        assert query["metadata"]["answers"] == answers[-1:]
        for step, answer in zip(steps, answers, strict=True):
            assert joint_answers(relations[step["relation"]], step["bound"], step["wanted"]) == {answer}


def test_a_step_needs_the_answer_of_the_step_before_it(
    facts: dict[str, Record], relations: Relations, queries: list[Record]
) -> None:
    for query in queries:
        steps = query["metadata"]["steps"]
        for before, step in pairwise(steps):
            link = roles_of(facts[before["fact"]])[before["wanted"]]
            named = {role: name for role, name in step["bound"].items() if name != link}
            assert len(named) == len(step["bound"]) - 1
            assert len(joint_answers(relations[step["relation"]], named, step["wanted"])) > 1


def test_a_question_names_what_it_binds_and_neither_its_answer_nor_what_it_describes(
    facts: dict[str, Record], queries: list[Record]
) -> None:
    for query in queries:
        steps = query["metadata"]["steps"]
        hidden = [roles_of(facts[step["fact"]])[step["wanted"]] for step in steps]
        bound = {name for step in steps for name in step["bound"].values()}
        assert all(name in query["text"] for name in bound - set(hidden))
        assert not any(name in query["text"] for name in hidden)


def test_a_step_that_pairs_leave_open_is_marked(relations: Relations, queries: list[Record]) -> None:
    for query in queries:
        open_steps = [
            step
            for step in query["metadata"]["steps"]
            if len(pairwise_answers(relations[step["relation"]], step["bound"], step["wanted"])) > 1
        ]
        assert query["metadata"]["ambiguous"] == bool(open_steps)
        assert all(len(step["bound"]) >= 2 for step in open_steps)


def test_most_questions_are_ambiguous_for_pairs_and_some_bind_three_roles(queries: list[Record]) -> None:
    ambiguous = [query for query in queries if query["metadata"]["ambiguous"]]
    assert len(ambiguous) > len(queries) / 2
    assert {query["metadata"]["hops"] for query in ambiguous} == {1, 2, 3}
    assert any(len(step["bound"]) == 3 for query in ambiguous for step in query["metadata"]["steps"])


@pytest.mark.parametrize("arguments", [["--tuples", "10"], ["--questions", "0"]])
def test_impossible_sizes_are_refused(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        runpy.run_path(str(SCRIPT))["main"]([str(tmp_path / "kb"), *arguments])
    assert f"{arguments[0]} is {arguments[1]}; expected" in capsys.readouterr().err
    assert not (tmp_path / "kb").exists()


def test_the_fewest_tuples_give_questions_of_every_length(tmp_path: Path) -> None:
    runpy.run_path(str(SCRIPT))["main"]([str(tmp_path), "--tuples", "300", "--questions", "30"])
    assert {query["metadata"]["hops"] for query in lines(tmp_path / "queries.jsonl")} == {1, 2, 3}
