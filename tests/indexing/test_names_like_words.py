"""Names that are spelt like words: a title, a type, a capital inside a sentence or a model says that they are names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Document
from polyad.retrieval.question import QuestionLinker
from polyad.text.keys import build_name_key

FILMS = (
    Document("up", "Up (2009 film)", "Pete Docter directed the story of a house that flies."),
    Document("her", "Her", "Theodore falls in love with a voice."),
    Document("it", "It", "A clown haunts the town of Derry."),
    Document("24", "24", "Jack Bauer saves the day, an hour an episode."),
    Document("docter", "Pete Docter", "Pete Docter also made Soul. After the success of Up he was promoted."),
    Document("word", "Balloons", "It rose up. She gave it to her, and 24 of us saw it."),
)


def indexed(directory: Path, method: str = "", replies: str = "") -> Engine:
    model = ScriptedLanguageModel(lambda _: replies) if replies else None
    engine = Engine.open(directory, embedder=HashingEmbedder(64), language_model=model)
    assert not engine.index_documents(FILMS, method=method).failures
    return engine


@pytest.mark.parametrize("name", ["Up", "Up (2009 film)", "Her", "It", "24"])
def test_a_title_that_is_a_word_is_an_entity(tmp_path: Path, name: str) -> None:
    with indexed(tmp_path / "kb") as engine:
        _, hyperedges = engine.catalogue.entity(name)
    documents = {id.partition("#")[0] for id in hyperedges}
    assert documents == ({"up", "docter"} if name.startswith("Up") else {name.lower()})


def test_a_question_is_linked_to_a_title_that_is_a_word(tmp_path: Path) -> None:
    with indexed(tmp_path / "kb") as engine:
        snapshot = engine.snapshot()
        linker = QuestionLinker(engine.components.extractor)
        for question, key in (("Who directed Up?", "up"), ("Where is It set?", "it"), ("Is Her a comedy?", "her")):
            linked = linker.link(question, snapshot)
            assert key in snapshot.ids("entity", list(linked.entities)), question
        assert not linker.link("Who looked up to her?", snapshot).entities, "small letters are words"


def test_words_stay_words(tmp_path: Path) -> None:
    with indexed(tmp_path / "kb") as engine:
        for name in ("Up", "Her", "It", "24"):
            assert "word#0000/000" not in engine.catalogue.entity(name)[1]


def test_common_words_typed_as_works_are_names_but_not_as_numbers_or_persons(
    tmp_path: Path,
) -> None:
    table = ["Us | film | x | 80", "24 | number | x | 10", "Her | person | x | 50", "it | thing | x | 5"]
    table += ["Now | magazine | x | 60", "Balloons | thing | x | 90"]
    fact = {"text": "It is told in Us and Now.", "score": 8, "entities": ["Us", "24", "Her", "it", "Now", "Balloons"]}
    with indexed(tmp_path / "kb", "facts", json.dumps({"facts": [fact], "entities": table})) as engine:
        members = {part.entity_key for part in engine.catalogue.hyperedge("word#0000/000")[1]}
        assert members == {"us", "now", "balloons"}
        members = {part.entity_key for part in engine.catalogue.hyperedge("24#0000/000")[1]}
        assert "24" in members, "the title says so"


def test_a_capital_inside_a_sentence_makes_a_word_a_name_but_for_reverence_and_months(tmp_path: Path) -> None:
    text = "The sequel to Us came in May at No. 5, and they praised Him. He saw It twice; Then came the Third."
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as engine:
        engine.index_documents([Document("d", "", text)])
        keys = {entity.key for entity in engine.catalogue.entities()}
    assert {"us", "it"} <= keys
    assert keys.isdisjoint({"him", "he", "may", "then", "the", "no", "third"})


def test_a_key_of_a_word_is_its_own_key() -> None:
    for name in ("Up", "It", "24", "WHO", "The Who", "Ines Moreau"):
        assert build_name_key(build_name_key(name)) == build_name_key(name)
