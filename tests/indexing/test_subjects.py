"""What a passage is about."""

from __future__ import annotations

import pytest

from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.indexing.split import SentenceSplitter
from polyad.indexing.subjects import Subjects, find_subjects
from polyad.model import Passage, Section, Span
from polyad.text.keys import build_entity_key


def subjects_of(title: str, text: str, *sections: Section, start: int = 0, begins_paragraph: bool = True) -> Subjects:
    mentions = [(build_entity_key(mention.name), mention) for mention in RuleMentionExtractor().extract([text])[0]]
    passage = Passage(
        "d#0000", "d", title, text, start, start + len(text), begins_paragraph=begins_paragraph, sections=sections
    )
    return find_subjects(passage, SentenceSplitter().sentences(text), [item for item in mentions if item[0]])


def names_at(subjects: Subjects, span: Span) -> list[tuple[str, str]]:
    """Key and name of the subjects at a span."""
    return [(key, section.name) for key, section in subjects.get_sections(span)]


def strength_of(subjects: Subjects) -> float:
    """How sure the only subject of a text of one sentence is; what the sentence defines is no less sure."""
    ((_, section),) = subjects.sections
    assert {strength for *_, strength in subjects.definitions} <= {section.strength}
    return section.strength


def subject_of(text: str) -> str:
    """The key of the only subject of all of a text without title, empty where there is none."""
    keys = [key for key, _ in subjects_of("", text).get_sections(Span(0, len(text)))]
    assert len(keys) <= 1
    return "".join(keys)


def test_a_title_is_the_subject_whatever_the_text_defines() -> None:
    subjects = subjects_of("Rivers (book)", "The Isk is a river. Aldby is a village.")
    assert names_at(subjects, Span(0, 1)) == names_at(subjects, Span(20, 40)) == [("rivers", "Rivers (book)")]
    assert [key for key, *_ in subjects.definitions] == ["isk", "aldby"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Isk (born 12 May 1930) is a singer.", "isk"),
        ("The Lord of the Isles was the title of a ruler.", "lord of the isles"),
        ('"Rain on the Isk" is a song by Varga.', "rain on the isk"),
        ("Tomas Ferrand, a brewer, was one of the founders.", "tomas ferrand"),
        ("Ljubljana lies on a river.", "ljubljana"),
        ('Thomas Edward "Tom" Ferrand Jr. (born 1961), a brewer, is an actor.', "thomas edward tom ferrand jr"),
        ("Piet Adler (Dutch: [pit (adler)]; born 12 May 1930), was a diver.", "piet adler"),
        ("Jan Varga, 2nd Earl of Isk, was an officer.", "jan varga 2nd earl of isk"),
    ],
)
def test_without_a_title_it_is_what_the_first_sentence_defines_or_begins_with(text: str, key: str) -> None:
    assert subject_of(text) == key


def test_text_below_a_heading_has_that_heading_as_subject() -> None:
    text = "## Isk\n\nIt is long.\n\n## Aldby\n\nIt is old."
    isk, aldby = Section("Isk", 0, text.index("## Aldby")), Section("Aldby", text.index("## Aldby"), len(text))
    subjects = subjects_of("Places", text, Section("Places", 0, len(text)), isk, aldby)
    assert names_at(subjects, Span(8, 19)) == [("places", "Places"), ("isk", "Isk")]
    assert names_at(subjects, Span(30, len(text))) == [("places", "Places"), ("aldby", "Aldby")]


@pytest.mark.parametrize(
    "text",
    ["It was a river.", "This is the end.", "In 1902 there was a flood.", "He is a singer.", "water is a liquid", ""],
)
def test_pronouns_and_phrases_are_no_subject(text: str) -> None:
    assert subject_of(text) == ""


def test_definitions_have_their_position_in_the_text() -> None:
    text = "They met. The Isk is a river."
    ((key, mention, _),) = subjects_of("", text).definitions
    assert (key, text[mention.start : mention.end]) == ("isk", "The Isk")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Jin-ri Choi (born 1994), better known by her stage name Sulli, is a singer.", ["jin ri choi", "sulli"]),
        ("Karel Gilg (born Anna Svoboda; 5 May 1917) was an actress.", ["karel gilg", "anna svoboda"]),
        ("Lida Varga (née Isk) was an actress.", ["lida varga", "isk"]),
        ("The Oregon Nursery Company (ONC) was a nursery.", ["oregon nursery company", "onc"]),
        ("The Mercy Man (also known as Bad Man) is a film.", ["mercy man", "bad man"]),
        ("Damerjog or Damerdjog () is a village.", ["damerjog or damerdjog", "damerjog", "damerdjog"]),
        ("Jan Varga, 2nd Earl of Isk, was an officer.", ["jan varga 2nd earl of isk", "jan varga"]),
        ("Piet Adler (born 12 May 1930 in Lima) is a diver, known as a friend of Anna Reed.", ["piet adler"]),
    ],
)
def test_without_a_title_what_is_defined_has_every_name_that_its_sentence_gives_it(text: str, names: list[str]) -> None:
    assert [key for key, *_ in subjects_of("", text).definitions] == names


def test_with_a_title_what_is_defined_has_one_name() -> None:
    subjects = subjects_of("Sulli", "Jin-ri Choi, better known as Sulli, is a singer.")
    assert [key for key, *_ in subjects.definitions] == ["jin ri choi"]


def test_every_name_keeps_its_place_in_the_text() -> None:
    text = "They met. The Isk or Iska (also called Old River) is a river."
    results = subjects_of("", text).definitions
    assert [text[mention.start : mention.end] for _, mention, _ in results] == [
        "The Isk or Iska",
        "The Isk",
        "Iska",
        "Old River",
    ]


def test_a_title_is_as_sure_a_subject_as_there_is() -> None:
    ((_, section),) = subjects_of("Isk", "It is long.").sections
    assert section.strength == 1


def test_a_section_is_as_sure_a_subject_as_it_says_and_one_of_no_strength_is_none() -> None:
    text = "It is long."
    subjects = subjects_of("", text, Section("isk.txt", 0, len(text), 0.0), Section("Isk", 0, len(text), 0.5))
    assert [(key, section.strength) for key, section in subjects.sections] == [("isk", 0.5)]


@pytest.mark.parametrize(
    ("text", "start", "inside"),
    [
        ("The Isk is a river.", 1.0, 0.5),
        ("Tarn was the capital of the north.", 1.0, 0.5),
        ("Water is a liquid.", 0.5, 0.25),
        ("Piet Adler dived for it.", 0.5, 0.25),
    ],
)
def test_subjects_are_stronger_at_the_beginning_of_a_paragraph(text: str, start: float, inside: float) -> None:
    assert strength_of(subjects_of("", text)) == start
    assert strength_of(subjects_of("", text, start=900, begins_paragraph=False)) == inside


def test_a_definition_within_a_passage_is_surer_at_the_beginning_of_a_paragraph() -> None:
    text = "They met. The Isk is a river.\n\nThe Lode is a brook. The Marr is a brook."
    for title in ("", "Waters"):
        assert [(key, strength) for key, _, strength in subjects_of(title, text).definitions] == [
            ("isk", 0.5),
            ("lode", 1.0),
            ("marr", 0.5),
        ]


def test_every_name_of_what_is_defined_is_as_sure_as_the_first() -> None:
    results = subjects_of("", "The Mercy Man (also known as Bad Man) is a film.").definitions
    assert [(key, strength) for key, _, strength in results] == [("mercy man", 1.0), ("bad man", 1.0)]


def test_the_author_before_a_text_is_a_weaker_subject_than_what_the_text_defines() -> None:
    author = "Author: Ines Moreau"
    text = f"{author}\n\nThe Isk is a river."
    subjects = subjects_of("", text)
    assert names_at(subjects, Span(0, len(text))) == [("isk", "The Isk")]
    assert [(key, strength) for key, _, strength in subjects.definitions] == [("isk", 1.0), ("ines moreau", 0.5)]
    assert [key for key, *_ in subjects_of("Rivers", text).definitions] == ["isk", "ines moreau"]
    assert subjects_of("Rivers", text, start=100).definitions[1:] == ()
