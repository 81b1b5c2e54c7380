# ruff: noqa: RUF001  look-alike punctuation is part of what is recognised
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.indexing.mentions.rules import SCORES, RuleMentionExtractor
from polyad.model import Mention
from polyad.protocols.components import MentionExtractor
from polyad.text.keys import build_entity_key

MEDICINE = (
    "Chronic kidney disease is defined by a reduced glomerular filtration rate or albuminuria for three months. Serum "
    "creatinine of 115-133 µmol/L suggests mild impairment, and metformin 500 mg is the first-line drug; mutations of "
    "p53 are rare. The statute of limitations for a negligence claim begins with the injury."
)


def find_mentions(text: str) -> list[Mention]:
    return RuleMentionExtractor().extract([text])[0]


def names(text: str) -> list[str]:
    return [mention.name for mention in find_mentions(text)]


def of_type(rule: str, text: str) -> list[str]:
    return [mention.name for mention in find_mentions(text) if mention.type == rule]


def test_the_rules_are_a_mention_extractor() -> None:
    extractor: MentionExtractor = RuleMentionExtractor()
    assert extractor.name == "rules"


@pytest.mark.parametrize(
    "name",
    [
        "Ludwig van Beethoven",
        "University of New South Wales",
        "Lord of the Rings",
        "Bill & Ted",
        "Nicholas the Small",
        "J. R. R. Tolkien",
        "J.R.R. Tolkien",
        "St. Louis",
        "O'Brien",
        "Jean-Luc Godard",
        "Kim Sung-kyun",
        "Catherine de' Medici",
        "al-Qaeda",
        "Škoda Auto",
        "Élodie Ångström",
        "McDonald",
        "AT&T",
        "iPhone",
        "Apollo 11",
        "2004 Summer Olympics",
        "20th Century Fox",
        "Wrong Turn 5: Bloodlines",
        "Thomas Gascoigne, 1st Baronet",
        "Frederick II, Duke of Saxony",
        "Prince Max Emanuel of Thurn and Taxis",
        "Thado Dhamma Yaza II of Prome",
        "Alzheimer's disease",
        "Qing dynasty",
        "Dunkin' Brands",
    ],
)
def test_a_name_is_found_whole(name: str) -> None:
    assert name in names(f"In those days they met {name} by chance.")


def test_a_form_of_address_may_be_part_of_the_name_or_not() -> None:
    assert {"King Bayin Htwe of Prome", "Bayin Htwe", "Prome"} <= set(names("the daughter of King Bayin Htwe of Prome"))


def test_a_place_within_a_place_is_found_with_it_and_without() -> None:
    assert names("It lies in Austin, Texas.") == ["Austin, Texas", "Austin", "Texas"]


def test_names_joined_by_and_are_two() -> None:
    assert names("a duo of Charlene Choi and Gillian Chung") == ["Charlene Choi", "Gillian Chung"]


def test_a_possessive_is_not_part_of_the_name() -> None:
    assert names("She read Hladnik's book and Dickens’s.") == ["Hladnik", "Dickens"]


def test_a_suffix_of_a_common_word_ends_a_name() -> None:
    assert names("an American-born rider and a Malayalam-language film") == ["American", "Malayalam"]


@pytest.mark.parametrize("text", ["The film was long.", "In the end it rained.", "However, he left.", "Filming began."])
def test_a_word_is_no_name_because_a_sentence_begins_with_it(text: str) -> None:
    assert names(text) == []


def test_a_name_may_begin_a_sentence() -> None:
    assert names("Hladnik died. After Germany fell, he left.") == ["Hladnik", "Germany"]


def test_the_rest_of_the_text_tells_whether_a_first_word_is_a_name() -> None:
    assert names("Drifters came. They were drifters.") == []
    assert names("Sterling died. They knew Sterling.") == ["Sterling", "Sterling"]


def test_a_full_stop_ends_a_name_after_a_numeral() -> None:
    assert "World War I" in names("He served in World War I. By then he was old.")


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ('the film "It Happened One Night".', "It Happened One Night"),
        ('directed" It Happened One Night", which', "It Happened One Night"),
        ("the film “It Happened One Night,” which", "It Happened One Night"),
        ("le film « Les Quatre Cents Coups » de", "Les Quatre Cents Coups"),
        ("the song ``Big Brother'' was", "Big Brother"),
        ("like 'Chori Chori' it", "Chori Chori"),
        ("鲁迅的《呐喊》", "呐喊"),
        ("小説「坊っちゃん」", "坊っちゃん"),
    ],
)
def test_a_work_is_what_stands_in_quotation_marks(text: str, work: str) -> None:
    assert of_type("work", text) == [work]


def test_speech_is_not_a_work() -> None:
    speech = "I never said that, " * 6
    assert of_type("work", f'He said "{speech}" and "left".') == []


@pytest.mark.parametrize(
    "date",
    ["30 January 1929", "January 30, 1929", "1st of May 1886", "March 2016", "1961", "1960s", "2016-03-11", "July 4"],
)
def test_dates_are_found_whole(date: str) -> None:
    assert of_type("date", f"They met Ada on {date}, in Rome.") == [date]


@pytest.mark.parametrize("text", ["about 1,961 people", "for $1961", "model 19615", "1961.5 km"])
def test_other_numbers_are_not_years(text: str) -> None:
    assert of_type("date", text) == []


def test_both_ends_of_a_range_of_years_are_dates() -> None:
    assert of_type("date", "the years (1551–1588)") == ["1551", "1588"]


def test_acronyms() -> None:
    assert of_type("acronym", "The WHO and the U.S. spoke of COVID-19 in D.C. with Ada Lovelace.") == [
        "WHO",
        "U.S.",
        "COVID-19",
        "D.C.",
    ]


def test_lower_case_text_gets_terms_codes_and_quantities() -> None:
    terms = of_type("phrase", MEDICINE)
    assert {"Serum creatinine", "glomerular filtration rate"} <= set(terms)
    assert of_type("quantity", MEDICINE) == ["115-133 µmol/L", "500 mg"]
    assert "p53" in of_type("acronym", MEDICINE)


def test_text_rich_in_names_gets_no_terms() -> None:
    text = "Ada Lovelace met Charles Babbage, Mary Somerville and Michael Faraday about serum creatinine, 5 mg, p53."
    assert {mention.type for mention in find_mentions(text)} == {"name"}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where did the director of film Dancing In The Rain (Film) die?", ["Dancing In The Rain"]),
        (
            "Which film has the director who is older, God'S Gift To Women or Aldri Annet Enn Bråk?",
            ["God'S Gift To Women", "Aldri Annet Enn Bråk"],
        ),
        ("Who is Lothair Ii's mother?", ["Lothair Ii"]),
        ("What nationality is the director of film To Walk With Lions?", ["To Walk With Lions"]),
    ],
)
def test_questions_yield_their_names_and_no_question_words(question: str, expected: list[str]) -> None:
    assert set(expected) <= set(names(question))
    assert not {name.split()[0] for name in names(question)} & {"Where", "Which", "Who", "What"}


def test_a_name_and_a_title_with_a_disambiguator_share_a_key() -> None:
    mention = find_mentions("Monster Truck are a band.")[0]
    assert build_entity_key(mention.name) == build_entity_key("Monster Truck (band)")


def test_one_list_for_each_text() -> None:
    both = RuleMentionExtractor().extract(["Ada met Bo.", "", "Cy ran to Di."])
    assert [[mention.name for mention in mentions] for mentions in both] == [["Ada", "Bo"], [], ["Cy", "Di"]]


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\x00\x01 Foo\x00 Bar\x7f", "😀 Ada 👩‍👩‍👧", "שלום «עולם» \u200fAda", "A" * 1000, '"' * 999]
)
def test_odd_texts_do_no_harm(text: str) -> None:
    assert all(text[mention.start : mention.end] == mention.name for mention in find_mentions(text))


@pytest.mark.parametrize("piece", ["Ab of ", "Ab, ", "A. ", '"Ab cd ', "Ab-", "Ab\n", "kidney disease of "])
def test_a_run_without_end_yields_names_of_bounded_length(piece: str) -> None:
    mentions = find_mentions(piece * 2000)
    assert all(len(mention.name) <= 200 for mention in mentions)
    assert len(mentions) < 10_000


_PIECES = [
    "Ada",
    "ada",
    "of",
    "and",
    "the",
    "de",
    "II",
    "5 mg",
    "1961",
    "May",
    '"Work',
    '"',
    "“x”",
    ".",
    ",",
    ":",
    "(Ada)",
]
_ODD_PIECES = ["-", "'", "’s", "&", "WHO", "p53", "é", "İ", "道", "\u200f", "\x00", "😀", "\n", " ", "``", "''"]


@given(st.lists(st.sampled_from(_PIECES + _ODD_PIECES)).map(" ".join) | st.text())
def test_mentions_are_what_they_say(text: str) -> None:
    mentions = find_mentions(text)
    assert all(mention.name and text[mention.start : mention.end] == mention.name for mention in mentions)
    assert all(mention.score == SCORES[mention.type] for mention in mentions)
    spans = [(mention.start, -mention.end) for mention in mentions]
    assert spans == sorted(set(spans))


def test_a_name_may_go_over_the_end_of_a_line_but_not_into_the_next_item_of_a_list() -> None:
    wrapped = "The gauge at the mouth of the river was built by Ilse\nVarga, who came from Aldby."
    (mentions,) = RuleMentionExtractor().extract([wrapped])
    assert "Ilse\nVarga" in [mention.name for mention in mentions]
    (mentions,) = RuleMentionExtractor().extract(["Ilse Varga\nTomas Ferrand\nInes Moreau"])
    assert {"Ilse Varga", "Tomas Ferrand"} <= {mention.name for mention in mentions}
