from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.changes import change_settings
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.model import Document, Mention
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.question import LinkedQuestion, QuestionLinker, replace_aliases
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.sqlite import SqliteStore

Link = Callable[[str], LinkedQuestion]

KEYS = ["alba", "carla diaz", "diaz", "lima", "new york", "film", "东京塔"]


class FixedExtractor:
    """Finds what it is told."""

    name = "fixed"

    def __init__(self, *mentions: Mention) -> None:
        self._mentions = list(mentions)

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        return [self._mentions for _ in texts]


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    extractor = FixedExtractor(*(Mention(key, 0, 1) for key in KEYS))
    with Engine.open(tmp_path, embedder=HashingEmbedder(8), mention_extractor=extractor) as engine:
        engine.index_documents([Document("a", "", "Some text.")])
    return SnapshotProvider(SqliteStore.open(tmp_path), 8).get_current()


@pytest.fixture
def link(snapshot: Snapshot) -> Link:
    return lambda question: QuestionLinker(RuleMentionExtractor()).link(question, snapshot)


def linked(snapshot: Snapshot, question: LinkedQuestion) -> dict[str, str]:
    return {snapshot.ids("entity", [row])[0]: mention.name for row, mention in question.entities.items()}


def test_names_are_linked_in_the_order_they_appear_and_taken_out(link: Link, snapshot: Snapshot) -> None:
    linked_question = link("Who met Carla Diaz in Lima before Alba?")
    assert list(linked(snapshot, linked_question)) == ["carla diaz", "lima", "alba"]
    assert linked_question.remainder == "Who met in before ?"
    assert linked_question.text == "Who met Carla Diaz in Lima before Alba?"


def test_the_longest_name_is_linked_and_not_a_part_of_it(link: Link, snapshot: Snapshot) -> None:
    assert list(linked(snapshot, link("Where is Carla Diaz?"))) == ["carla diaz"]
    assert list(linked(snapshot, link("Where is Diaz?"))) == ["diaz"]


def test_names_without_capitals_are_linked(link: Link, snapshot: Snapshot) -> None:
    assert list(linked(snapshot, link("is carla diaz from new york?"))) == ["carla diaz", "new york"]


def test_a_single_word_without_a_capital_is_a_name_only_where_there_is_no_other(link: Link, snapshot: Snapshot) -> None:
    assert list(linked(snapshot, link("where is lima?"))) == ["lima"]
    linked_question = link("Who met Carla Diaz in lima?")
    assert list(linked(snapshot, linked_question)) == ["carla diaz"]
    assert linked_question.remainder == "Who met in lima?"


@pytest.mark.parametrize(
    ("question", "lacks_proper_names"),
    [
        ("How does a film start?", True),
        ("How do I add a row?", True),
        ("Who directed the first film in Lima?", False),
        ("Who directed Zorbax?", False),
        ("who directed the first film in lima?", False),
        ("東京塔はどこですか", False),
    ],
)
def test_proper_names_have_capitals_if_the_question_has_any(
    link: Link, question: str, lacks_proper_names: bool
) -> None:
    assert link(question).lacks_proper_names is lacks_proper_names


def test_a_word_of_everyday_english_is_no_name(link: Link, snapshot: Snapshot) -> None:
    assert linked(snapshot, link("which film is older?")) == {}


def test_an_entity_named_twice_is_one_and_taken_out_both_times(link: Link, snapshot: Snapshot) -> None:
    linked_question = link("Is Lima larger than the old town of Lima?")
    assert linked(snapshot, linked_question) == {"lima": "Lima"}
    assert linked_question.remainder == "Is larger than the old town of ?"


def test_a_question_of_names_alone_is_its_own_remainder(link: Link) -> None:
    assert link("Carla Diaz, Lima?").remainder == "Carla Diaz, Lima?"


def test_a_name_short_for_a_subject_is_linked_to_it(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(8)) as engine:
        engine.index_documents([Document("a", "", "Frank Jeffrey Edson Smart was a painter.")])
    snapshot = SnapshotProvider(SqliteStore.open(tmp_path), 8).get_current()
    linked_question = QuestionLinker(RuleMentionExtractor()).link("Where did Jeffrey Smart live?", snapshot)
    assert linked(snapshot, linked_question) == {"frank jeffrey edson smart": "Jeffrey Smart"}
    assert linked_question.remainder == "Where did live?"


def test_with_extracted_names_only_no_other_words_are_linked(snapshot: Snapshot, tmp_path: Path) -> None:
    linked_question = QuestionLinker(RuleMentionExtractor(), names="found").link("is carla diaz from Lima?", snapshot)
    assert linked(snapshot, linked_question) == {"lima": "Lima"}
    with Engine.open(tmp_path / "lent", embedder=HashingEmbedder(8)) as engine:
        engine.index_documents([Document("a", "", "Frank Jeffrey Edson Smart was a painter.")])
    lent = SnapshotProvider(SqliteStore.open(tmp_path / "lent"), 8).get_current()
    linked_question = QuestionLinker(RuleMentionExtractor(), names="found").link("Where did Jeffrey Smart live?", lent)
    assert (linked_question.entities, [mention.name for mention in linked_question.unlinked]) == ({}, ["Jeffrey Smart"])


def test_of_one_name_the_entity_with_the_label_of_the_mention_is_linked(tmp_path: Path) -> None:
    person = Mention("Washington", 0, 10, type="person")
    washingtons = FixedExtractor(person, Mention("Washington", 14, 24, type="Location"))
    by_label: dict[str, str | int | float | bool] = {
        "segmentation.one_entity": "name-and-label",
        "segmentation.join_subject": False,
    }
    selection = change_settings(Settings(), by_label)
    with Engine.open(
        tmp_path, embedder=HashingEmbedder(8), mention_extractor=washingtons, settings=selection
    ) as engine:
        engine.index_documents([Document("a", "", "Washington in Washington.")])
        assert {entity.key for entity in engine.catalogue.entities()} == {
            "washington (person)",
            "washington (location)",
        }
        assert engine.catalogue.entity("washington (person)")[0].name == "Washington"
    with pytest.raises(ConfigurationError):
        change_settings(Settings(), {"segmentation.one_entity": "name-and-label"})
    snapshot = SnapshotProvider(SqliteStore.open(tmp_path), 8).get_current()
    for label in ("person", "location"):
        linker = QuestionLinker(FixedExtractor(Mention("Washington", 4, 14, type=label)), names="found")
        assert list(linked(snapshot, linker.link("Who Washington?", snapshot))) == [f"washington ({label})"]


def test_names_the_index_does_not_know_are_kept_apart(link: Link, snapshot: Snapshot) -> None:
    linked_question = link("Did Zacharias Quux visit Lima?")
    assert linked(snapshot, linked_question) == {"lima": "Lima"}
    assert [mention.name for mention in linked_question.unlinked] == ["Zacharias Quux"]
    assert "Zacharias Quux" in linked_question.remainder


def test_extracted_names_are_linked_by_their_key(snapshot: Snapshot) -> None:
    question = "Who is Carla's C. Diaz of LIMA?"
    extractor = FixedExtractor(Mention("The LIMA", question.index("LIMA"), question.index("LIMA") + 4))
    linked_question = QuestionLinker(extractor).link(question, snapshot)
    assert "lima" in linked(snapshot, linked_question)


def test_a_mention_that_stands_nowhere_in_the_question_is_linked_and_takes_nothing_out(snapshot: Snapshot) -> None:
    linked_question = QuestionLinker(FixedExtractor(Mention("Alba", -1, -1))).link("Who directed it?", snapshot)
    assert list(linked(snapshot, linked_question)) == ["alba"]
    assert linked_question.remainder == "Who directed it?"


def test_blank_and_strange_questions_link_nothing(link: Link, snapshot: Snapshot) -> None:
    for question in ("", " ", "?", "\x00", "\ud800", "\u200b"):
        linked_question = link(question)
        assert (linked_question.entities, linked_question.remainder) == ({}, question)


def test_an_alias_is_embedded_as_the_name_of_its_entity(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(32)) as engine:
        engine.index_documents([Document("ada", "Ada Lovelace", "Ada Lovelace wrote to Douglas Adams in London.")])
        engine.corrections.add_aliases([("Q42", "Ada Lovelace")])
        snapshot = engine.snapshot()
        linker = QuestionLinker(RuleMentionExtractor())
        for question, text in {
            "Did Q42 live in Q421?": "Did ada lovelace live in Q421?",
            "Did Ada Lovelace write?": "Did Ada Lovelace write?",
            "": "",
        }.items():
            assert replace_aliases([question], linker.link(question, snapshot), snapshot) == [text]
