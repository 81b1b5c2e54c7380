# ruff: noqa: RUF001  look-alike punctuation is part of what is compared
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.text.keys import EntityNameMatcher, build_entity_key


def find_names(text: str, *entities: str) -> list[str]:
    mentions = EntityNameMatcher({build_entity_key(entity) for entity in entities}.intersection).find(text)
    assert all(text[mention.start : mention.end] == mention.name for mention in mentions)
    return [mention.name for mention in mentions]


@pytest.mark.parametrize(
    ("text", "entity", "name"),
    [
        ("Did Dancing In The Rain (Film) fail?", "Dancing in the Rain (film)", "Dancing In The Rain"),
        ("Who is older, God'S Gift To Women?", "God's Gift to Women", "God'S Gift To Women"),
        ("Who is Lothair Ii's mother?", "Lothair II", "Lothair Ii"),
        ("Who is Lothair II’s mother?", "Lothair II", "Lothair II"),
        ("the father of William Ii, Prince Of Nassau-Dillenburg?", "William II, Prince of Nassau-Dillenburg",
         "William Ii, Prince Of Nassau-Dillenburg"),
        ("books by J. R. R. Tolkien sold", "J.R.R. Tolkien", "J. R. R. Tolkien"),
        ("in the U.S. today", "US", "U.S"),
        ("is dancing in the rain old", "Dancing in the Rain", "dancing in the rain"),
        ("about 3.5 mg a day", "3.5 mg", "3.5 mg"),
        ("the The Who concert", "The Who", "The Who"),
        ("A Jester'S Tale or", "A Jester's Tale", "Jester'S Tale"),
        ("who sang Blood, Sweat & Tears?", "Blood, Sweat and Tears", "Blood, Sweat & Tears"),
        ("《红楼梦》的作者", "红楼梦", "红楼梦"),
        ("铸造塔恩之钟的人出生在哪里?", "塔恩之钟", "塔恩之钟"),
        ("オッターミア水位計を設計した人は誰か", "オッターミア水位計", "オッターミア水位計"),
        ("伊尔泽·瓦尔加出生在哪里", "伊尔泽·瓦尔加", "伊尔泽·瓦尔加"),
        ("HyperGraphRAG如何表示知識", "HyperGraphRAG", "HyperGraphRAG"),
        ("２０２１年のタルン市", "2021年のタルン", "２０２１年のタルン"),
        ("คนที่หล่อระฆังแห่งทาร์นเกิดที่ไหน", "ระฆังแห่งทาร์น", "ระฆังแห่งทาร์น"),
        ("토마스 페랑은 무엇을 수집했습니까?", "토마스 페랑", "토마스 페랑"),
        ("من أين جاء الذي صب جرس تارن؟", "جَرَس تارن", "جرس تارن"),
        ("ومتى زار القاهرة؟", "القاهره", "القاهرة"),
        ("ما الذي حدث بتارن؟", "تارن", "تارن"),
        ("מי בנה את הגשר בירושלים?", "ירושלים", "ירושלים"),
        ("इल्ज़े वर्गा का जन्म कहाँ हुआ था?", "इल्ज़े वर्गा", "इल्ज़े वर्गा"),
    ],
)  # fmt: skip
def test_a_known_name_is_found_in_any_spelling(text: str, entity: str, name: str) -> None:
    assert find_names(text, entity) == [name]


def test_the_longest_name_wins_and_the_next_begins_after_it() -> None:
    text = "Was Lord of the Rings shot in New York or York?"
    assert find_names(text, "Lord of the Rings", "Lord", "Rings", "York", "New York") == [
        "Lord of the Rings",
        "New York",
        "York",
    ]


@pytest.mark.parametrize(
    ("text", "entity"),
    [("タルンドンの塔", "タルン"), ("山上有什么", "山"), ("他们在哪里?", "哪里"), ("ที่ทาร์นี", "ทาร์น")],
)
def test_part_of_a_word_in_a_script_without_spaces_is_no_name(text: str, entity: str) -> None:
    assert find_names(text, entity) == []


def test_a_longer_name_that_begins_within_another_wins() -> None:
    assert find_names("铸造塔恩之钟的人", "铸造塔恩", "塔恩", "塔恩之钟") == ["塔恩之钟"]


def test_an_article_before_a_shorter_name_does_not_hide_a_longer_one() -> None:
    assert find_names(
        "before the Israeli presidential election, 2000", "Israeli", "Israeli presidential election, 2000"
    ) == ["Israeli presidential election, 2000"]


@pytest.mark.parametrize(
    "text",
    ["which film is older", "Film is an art", "Was he? Film him.", "Atomised (Film) was shot", "the film's plot"],
)
def test_an_everyday_word_is_not_linked(text: str) -> None:
    assert find_names(text, "Film") == []


def test_an_everyday_word_with_a_capital_of_its_own_is_linked() -> None:
    assert find_names("Who directed Heat in 1995?", "Heat") == ["Heat"]


def test_a_rare_word_is_linked_in_lower_case() -> None:
    assert find_names("what raises creatinine most", "creatinine") == ["creatinine"]


def test_several_lower_case_words_are_linked_when_they_are_a_term() -> None:
    entities = "kidney disease", "statute of limitations", "came out"
    assert find_names("kidney disease and the statute of limitations came out", *entities) == list(entities[:2])


def test_two_clauses_that_meet_are_not_a_name() -> None:
    assert find_names("Which came first, Run The Race or not?", "First Run", "Run the Race") == ["Run The Race"]


def test_a_name_of_two_clauses_is() -> None:
    assert find_names("Who sang Red Roses, Red Lips?", "Red Roses, Red Lips") == ["Red Roses, Red Lips"]


def test_an_empty_vocabulary_finds_nothing() -> None:
    assert find_names("Ada met Bo") == []
    assert find_names("", "Ada") == []


_WORDS = st.sampled_from(
    ["the", "The", "A.", "Ada", "Ada's", "film", "Film", "of", "Heat,", "5.5", "&", "(Heat)", "Ada-Bo", "é", "道"]
)


@given(st.lists(_WORDS).map(" ".join) | st.text(), st.sets(st.lists(_WORDS, max_size=3).map(" ".join)))
def test_matched_names_are_known_and_disjoint(text: str, entities: set[str]) -> None:
    keys = {key for entity in entities if (key := build_entity_key(entity))}
    mentions = EntityNameMatcher(keys.intersection).find(text)
    assert all(text[mention.start : mention.end] == mention.name for mention in mentions)
    assert all(build_entity_key(mention.name) in keys for mention in mentions)
    ends = [0, *(mention.end for mention in mentions)]
    assert all(mention.start >= end for mention, end in zip(mentions, ends, strict=False))


@given(
    st.lists(
        st.sampled_from(["Ada", "Zuse's", "J.", "Lord", "of", "the", "5.5", "O'Brien", "Jean-Luc", "É"]), min_size=1
    )
)
def test_a_capitalised_name_is_found_by_its_own_spelling(words: list[str]) -> None:
    name = " ".join(["Zanzibar", *words[:3], "Quux"])
    assert find_names(f"and {name} came", name) == [name]
