"""What a passage is about."""

from __future__ import annotations

import pytest

from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.indexing.split import SentenceSplitter
from polyad.indexing.subjects import Subjects, subjects
from polyad.text.keys import entity_key


def subjects_of(title: str, text: str) -> Subjects:
    mentions = [(entity_key(mention.name), mention) for mention in RuleMentionExtractor().extract([text])[0]]
    return subjects(title, text, SentenceSplitter().sentences(text), [item for item in mentions if item[0]])


def test_a_title_is_the_subject_whatever_the_text_defines() -> None:
    found = subjects_of("Rivers (book)", "The Isk is a river. Aldby is a village.")
    assert found.passage == ("rivers", "Rivers (book)")
    assert [key for key, _ in found.defined] == ["isk", "aldby"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Isk (born 12 May 1930) is a singer.", "isk"),
        ("The Lord of the Isles was the title of a ruler.", "lord of the isles"),
        ('"Rain on the Isk" is a song by Varga.', "rain on the isk"),
        ("Tomas Ferrand, a brewer, was one of the founders.", "tomas ferrand"),
        ("Ljubljana lies on a river.", "ljubljana"),
    ],
)
def test_without_a_title_it_is_what_the_first_sentence_defines_or_begins_with(text: str, key: str) -> None:
    assert subjects_of("", text).passage[0] == key


@pytest.mark.parametrize(
    "text",
    ["It was a river.", "This is the end.", "In 1902 there was a flood.", "He is a singer.", "water is a liquid", ""],
)
def test_pronouns_and_phrases_are_no_subject(text: str) -> None:
    assert subjects_of("", text).passage == ("", "")


def test_what_is_defined_keeps_its_place_in_the_text() -> None:
    text = "They met. The Isk is a river."
    ((key, mention),) = subjects_of("", text).defined
    assert (key, text[mention.start : mention.end]) == ("isk", "The Isk")
