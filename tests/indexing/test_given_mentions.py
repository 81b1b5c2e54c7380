from __future__ import annotations

import json
from pathlib import Path

import pytest

from polyad.errors import ConfigurationError
from polyad.indexing.mentions.from_file import FileMentionExtractor
from polyad.protocols.components import MentionExtractor


def extractor(folder: Path, *records: object) -> FileMentionExtractor:
    path = folder / "names.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n", encoding="utf-8")
    return FileMentionExtractor(path)


def names(mention_extractor: MentionExtractor, text: str) -> list[tuple[str, int]]:
    mentions = mention_extractor.extract([text])[0]
    assert all(text[mention.start : mention.end] == mention.name for mention in mentions)
    return [(mention.name, mention.start) for mention in mentions]


def test_names_without_a_text_are_a_vocabulary_where_the_longest_wins(tmp_path: Path) -> None:
    other_extractor = extractor(
        tmp_path, {"_id": "1", "entities": ["Rome", "New Rome"]}, {"_id": "2", "entities": ["Ada"]}
    )
    assert names(other_extractor, "Ada left Rome for New Rome.") == [("Ada", 0), ("Rome", 9), ("New Rome", 18)]


def test_control_characters_in_a_mention_file_are_removed(tmp_path: Path) -> None:
    entity = {"name": "Ada", "type": "per\x1bson", "description": "Wrote\u202e notes \ud800."}
    (mention,) = extractor(tmp_path, {"entities": [entity]}).extract(["Ada wrote."])[0]
    assert (mention.type, mention.description) == ("per son", "Wrote notes \ufffd.")


def test_names_of_a_text_are_found_in_it_alone_and_may_overlap(tmp_path: Path) -> None:
    text = "New Rome is not Rome."
    other_extractor = extractor(tmp_path, {"text": text, "entities": ["Rome", "New Rome"]}, {"entities": ["not"]})
    assert names(other_extractor, text) == [("New Rome", 0), ("Rome", 4), ("Rome", 16)]
    assert names(other_extractor, "Rome is not New Rome.") == [("not", 8)]


def test_case_and_the_bounds_of_words_matter(tmp_path: Path) -> None:
    other_extractor = extractor(tmp_path, {"entities": ["Rome", "C++", "St. Louis"]})
    assert names(other_extractor, "Romeo, rome, Jerome; C++ in St. Louis, Rome's") == [
        ("C++", 21),
        ("St. Louis", 28),
        ("Rome", 39),
    ]


def test_an_entity_may_have_a_type_and_a_description(tmp_path: Path) -> None:
    other_extractor = extractor(
        tmp_path, {"entities": [{"name": "Ada", "type": "person", "description": "a poet's daughter"}]}
    )
    mention = other_extractor.extract(["Ada"])[0][0]
    assert (mention.type, mention.description) == ("person", "a poet's daughter")


def test_blank_names_are_ignored(tmp_path: Path) -> None:
    assert names(extractor(tmp_path, {"entities": ["", " ", "Ada"]}), "a b Ada") == [("Ada", 4)]


def test_its_name_is_as_on_the_command_line(tmp_path: Path) -> None:
    assert extractor(tmp_path).name == f"given:{tmp_path / 'names.jsonl'}"


@pytest.mark.parametrize(
    "record", ["Ada", {"names": ["Ada"]}, {"entities": [1]}, {"entities": ["Ada"], "text": 3}, {"entities": None}]
)
def test_a_bad_line_is_named(tmp_path: Path, record: object) -> None:
    with pytest.raises(ConfigurationError, match="line 2"):
        extractor(tmp_path, {"entities": ["Ada"]}, record)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        FileMentionExtractor(tmp_path / "nowhere.jsonl")
