from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.language_models.scripted import ScriptedLanguageModel, ScriptedOutcome
from polyad.model import Mention
from polyad.retrieval.prompting import MAX_NAMES, QuestionNameExtractor

QUESTION = "Who directed Romeo in Rome, the Alba of Carla Diaz?"


class Fallback:
    """Finds the same name everywhere, and remembers where it was asked to."""

    name = "fallback"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        self.texts += texts
        return [[Mention("fallback", 0, 3)] for _ in texts]


def extract_names(reply: ScriptedOutcome, question: str = QUESTION) -> list[Mention]:
    """The mentions for a reply; fails when the other extractor is asked."""
    fallback = Fallback()
    (mentions,) = QuestionNameExtractor(ScriptedLanguageModel([reply]), fallback).extract([question])
    assert fallback.texts == []
    return mentions


def listed(*names: object) -> str:
    return json.dumps({"entities": names})


def spots(mentions: Sequence[Mention]) -> list[tuple[str, int]]:
    return [(mention.name, mention.start) for mention in mentions]


def test_names_are_found_where_they_stand_in_the_order_of_the_question() -> None:
    mentions = extract_names(listed("Carla Diaz", "Alba", "Rome"))
    assert spots(mentions) == [("Rome", 22), ("Alba", 32), ("Carla Diaz", 40)]
    assert all(QUESTION[mention.start : mention.end] == mention.name for mention in mentions)


def test_a_name_stands_at_the_bounds_of_words_if_it_can() -> None:
    assert spots(extract_names(listed("Rome"))) == [("Rome", 22)], "not in Romeo"
    assert spots(extract_names(listed("Rom"))) == [("Rom", 13)]
    assert spots(extract_names(listed("东京"), "东京的塔?")) == [("东京", 0)]


@pytest.mark.parametrize(
    ("name", "question", "written"),
    [
        ("carla DIAZ", QUESTION, "Carla Diaz"),
        ("STRASSE", "Where is the Strasse?", "Strasse"),
        ("ÉMILE", "Was it Émile İnan?", "Émile"),
        ("C++ (language)", "Who made C++ (language)?", "C++ (language)"),
    ],
)
def test_names_are_spelt_as_in_the_question(name: str, question: str, written: str) -> None:
    (mention,) = extract_names(listed(name), question)
    assert (mention.name, question[mention.start : mention.end]) == (written, written)


@pytest.mark.parametrize("name", ["Karla Diaz", "Straße"])
def test_a_name_that_is_not_in_the_question_has_no_place(name: str) -> None:
    assert extract_names(listed(name, "Alba"), "Where does Alba meet STRASSE?") == [
        Mention(name, -1, -1),
        Mention("Alba", 11, 15),
    ]


def test_names_count_once_and_not_too_many_of_them() -> None:
    assert spots(extract_names(listed("Alba", " Alba ", "Alba"))) == [("Alba", 32)]
    assert len(extract_names(listed(*(f"name {number}" for number in range(99))))) == MAX_NAMES


@pytest.mark.parametrize(
    "reply",
    [
        'Sure!\n```json\n{"entities": ["Alba"]}\n```',
        '["Alba"]',
        '{"entities": ["Alba", 7, null, "", " ", []]}',
        '{"entities": [{"name": "Alba", "type": "city"}]}',
    ],
)
def test_replies_may_be_untidy(reply: str) -> None:
    assert spots(extract_names(reply)) == [("Alba", 32)]


def test_a_question_that_names_nothing_has_no_names() -> None:
    assert extract_names(listed()) == []


@pytest.mark.parametrize(
    "reply",
    [
        LanguageModelError("busy"),
        NoMoreRepliesError("wrong key"),
        "I cannot help with that.",
        "{}",
        '{"entities": "Alba"}',
        '{"entities": null}',
        "[" * 5000,
    ],
    ids=lambda reply: str(reply)[:20],
)
def test_without_a_usable_reply_the_other_extractor_is_asked(reply: ScriptedOutcome) -> None:
    fallback = Fallback()
    (mentions,) = QuestionNameExtractor(ScriptedLanguageModel([reply]), fallback).extract([QUESTION])
    assert mentions == [Mention("fallback", 0, 3)]
    assert fallback.texts == [QUESTION]


def test_each_question_is_one_request_that_asks_for_names() -> None:
    model, fallback = ScriptedLanguageModel([listed("Alba"), "no", listed("Rome")]), Fallback()
    mentions = QuestionNameExtractor(model, fallback).extract(["Alba?", "Lima?", "Rome?"])
    assert [[mention.name for mention in other_mention] for other_mention in mentions] == [
        ["Alba"],
        ["fallback"],
        ["Rome"],
    ]
    assert [prompt.user for prompt in model.prompts] == ["Alba?", "Lima?", "Rome?"]
    assert fallback.texts == ["Lima?"]
    (instructions,) = {prompt.system for prompt in model.prompts}
    assert '{"entities": [' in instructions
    assert f"at most {MAX_NAMES}" in instructions
    schema = model.prompts[0].json_schema or {}
    assert schema["additionalProperties"] is False
    assert QuestionNameExtractor(model, fallback).extract([]) == []
