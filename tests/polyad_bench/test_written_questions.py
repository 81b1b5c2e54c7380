from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from polyad.engine import Engine
from polyad.errors import ConfigurationError, LanguageModelError, NoMoreRepliesError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Document
from polyad.protocols.components import Prompt
from polyad_bench.written_questions import REPLIES_FILE, load_facts, write_questions

PLACES = ("Tarn", "Aldby", "Corven", "Saltby", "Isk", "Moreau")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    texts = [f"{one} lies near {other}." for one in PLACES for other in PLACES if one < other]
    texts += [f"{one}, {other} and Brae share a bridge." for one, other in pairwise(PLACES)]
    with Engine.open(tmp_path / "kb", embedder="hashing:16") as made:
        made.index_documents([Document(f"d{number:02}", "", text) for number, text in enumerate(texts)])
        yield made


def asking(prompt: Prompt) -> str:
    """A question of its own for all the facts that are shown."""
    facts = re.findall(r"^\d+\. (.+)$", prompt.user, re.MULTILINE)
    return json.dumps({"question": f"Which is it of {' and '.join(facts)}?", "answer": "the otter"})


def made(engine: Engine, folder: Path, reply: Callable[[Prompt], str] = asking, seed: int = 0) -> list[tuple[str, ...]]:
    question_set = write_questions(engine, ScriptedLanguageModel(reply), folder, (3, 2, 1), seed)
    return [(one.kind, one.text, *one.gold) for one in question_set.questions]


def test_questions_are_of_one_to_three_hops_of_each_source(engine: Engine, tmp_path: Path) -> None:
    by_text = {fact.text: fact for fact in load_facts(engine)}
    assert Counter(fact.arity_class for fact in by_text.values()) == {"binary": 15, "n-ary": 5}
    question_set = write_questions(engine, ScriptedLanguageModel(asking), tmp_path / "out", (3, 2, 1))
    assert Counter(one.kind for one in question_set.questions) == {
        "binary-1-hop": 3,
        "binary-2-hop": 2,
        "binary-3-hop": 1,
        "n-ary-1-hop": 3,
        "n-ary-2-hop": 2,
        "n-ary-3-hop": 1,
    }
    for one in question_set.questions:
        source, hops = re.fullmatch(r"(.+)-(\d)-hop", one.kind).groups()  # type: ignore[union-attr]
        facts = [by_text[text] for text in one.evidence]
        assert {fact.arity_class for fact in facts} == {source}
        assert len(facts) == len({fact.id for fact in facts}) == int(hops)
        assert all(set(before.entities) & set(after.entities) for before, after in pairwise(facts))
        assert one.gold == tuple(fact.passage_id for fact in facts)
        assert one.answers == ("the otter",)
    assert len(question_set.passages) == 20


def test_facts_of_the_first_version_are_at_random_of_one_entity_or_of_several(engine: Engine, tmp_path: Path) -> None:
    by_text = {fact.text: set(fact.entities) for fact in load_facts(engine)}
    model = ScriptedLanguageModel(asking)
    sources = ("random", "single-entity", "multi-entity")
    questions = write_questions(engine, model, tmp_path / "out", (3, 0, 8), sources=sources).questions
    assert Counter(one.kind for one in questions) == {
        f"{name}-{n}-hop": 3 if n == 1 else 8 for name in sources for n in (1, 3)
    }
    linked: dict[str, list[bool]] = {}
    for one in questions:
        entities = [by_text[text] for text in one.evidence]
        linked.setdefault(one.kind, []).append(all(before & after for before, after in pairwise(entities)))
        if one.kind == "single-entity-3-hop":
            assert set.intersection(*entities), "of one entity"
    assert not all(linked["random-3-hop"]), "facts at random share no entity"
    assert all(linked["multi-entity-3-hop"])
    needed = [" ".join(prompt.user.split()) for prompt in model.prompts]
    assert sum("All 3 facts are needed for the answer, one after the other." in text for text in needed) == 8


def test_the_same_seed_leads_to_the_same_questions_and_another_to_others(engine: Engine, tmp_path: Path) -> None:
    first = made(engine, tmp_path / "one")
    assert made(engine, tmp_path / "two") == first
    assert made(engine, tmp_path / "three", seed=1) != first


@pytest.mark.parametrize("stopped_after", [1, 4, 9])
def test_interrupted_question_writing_repeats_no_request(engine: Engine, tmp_path: Path, stopped_after: int) -> None:
    model = ScriptedLanguageModel(asking)
    whole = write_questions(engine, model, tmp_path / "whole", (3, 2, 1))
    replies: list[str | LanguageModelError] = [asking(prompt) for prompt in model.prompts[:stopped_after]]
    with pytest.raises(NoMoreRepliesError):
        write_questions(
            engine, ScriptedLanguageModel([*replies, NoMoreRepliesError("no key")]), tmp_path / "out", (3, 2, 1)
        )
    with (tmp_path / "out" / REPLIES_FILE).open("a") as file:
        file.write('{"kind": "binary-1')  # what was being written
    again = ScriptedLanguageModel(asking)
    assert write_questions(engine, again, tmp_path / "out", (3, 2, 1)).questions == whole.questions
    assert len(again.prompts) == len(model.prompts) - stopped_after
    assert write_questions(engine, ScriptedLanguageModel([]), tmp_path / "out", (3, 2, 1)).questions == whole.questions


def test_invalid_and_repeated_and_revealing_questions_are_dropped(engine: Engine, tmp_path: Path) -> None:
    first = iter(
        [
            "Which?",
            '{"question": "Which?"}',
            '{"question": " ", "answer": "x"}',
            '{"question": "Is it the otter?", "answer": "Otter"}',
            '<think>hm</think>```json\n{"question": "Who, then?", "answer": "x"}\n```',
            '{"question": "who then", "answer": "y"}',
            LanguageModelError("busy"),
        ]
    )
    model = ScriptedLanguageModel(lambda prompt: next(first, asking(prompt)))  # type: ignore[arg-type,return-value]
    question_set = write_questions(engine, model, tmp_path / "out", (9, 0, 0))
    binary = [one.text for one in question_set.questions if one.kind == "binary-1-hop"]
    assert (len(binary), binary[0]) == (9, "Who, then?")
    assert len(model.prompts) == 15 + 5, "all of the facts: six replies were of no use"


def test_a_folder_of_something_else_is_left_alone(engine: Engine, tmp_path: Path) -> None:
    made(engine, tmp_path / "out")
    with pytest.raises(ConfigurationError, match="give another --out for this one"):
        made(engine, tmp_path / "out", seed=1)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(ConfigurationError):
        made(engine, tmp_path / "other")
    with (tmp_path / "out" / REPLIES_FILE).open("a") as file:
        file.write('{"kind": 3}\n')
    with pytest.raises(ConfigurationError, match=r"written.jsonl', line \d+: .*is no QuestionReply"):
        made(engine, tmp_path / "out")


def test_facts_that_join_nothing_are_asked_about_by_nobody(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder="hashing:16") as engine:
        engine.index_documents([Document("a", "", "It rains.")])
        with pytest.raises(ConfigurationError):
            made(engine, tmp_path / "out")


def test_the_prompt_of_question_writing_can_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "question.md").write_text("Make a riddle. {needed}", encoding="utf-8")
    model = ScriptedLanguageModel(asking)
    with Engine.open(tmp_path / "kb", embedder="hashing:16", prompts=tmp_path / "mine") as engine:
        engine.index_documents([Document("d", "", "Tarn lies near Aldby.")])
        write_questions(engine, model, tmp_path / "out", (1, 0, 0))
    assert [prompt.user.split("</facts>\n\n")[1] for prompt in model.prompts] == [
        "Make a riddle. The fact is needed for the answer."
    ]
    with Engine.open(tmp_path / "kb") as engine, pytest.raises(ConfigurationError, match="give another --out"):
        write_questions(engine, model, tmp_path / "out", (1, 0, 0))
