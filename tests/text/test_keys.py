# ruff: noqa: RUF001  look-alike punctuation is what is being unified
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.text.keys import build_entity_key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Dancing in the Rain (film)", "dancing in the rain"),
        ("Dancing In The Rain (Film)", "dancing in the rain"),
        ("Wherever I Lay My Hat( That's My Home)", "wherever i lay my hat"),
        ("Monster Truck (band) (2009)", "monster truck"),
        ("(500) Days of Summer", "500 days of summer"),
        ("The Beatles'", "beatles"),
        ("Hladnik’s", "hladnik"),
        ("God's Gift to Women", "gods gift to women"),
        ("God'S Gift To Women", "gods gift to women"),
        ("“Jean–Luc”", "jean luc"),
        ("J.R.R. Tolkien", "jrr tolkien"),
        ("J. R. R. Tolkien", "jrr tolkien"),
        ("Thomas Gascoigne, 1st Baron", "thomas gascoigne 1st baron"),
        ("Blood, Sweat & Tears 3", "blood sweat and tears 3"),
        ("Boštjan", "boštjan"),
        ("ＷＨＯ", "WHO"),
        ("1,000 km", "1000 km"),
        ("3.5 mg", "3.5 mg"),
        ("C++", "c++"),
        ("နရပတိ မယ်တော်", "နရပတိ မယ်တော်"),
    ],
)
def test_spellings_of_a_name_share_a_key(name: str, key: str) -> None:
    assert build_entity_key(name) == key


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert build_entity_key("Bos\u030ctjan") == build_entity_key("Boštjan")


def test_invisible_characters_do_not_matter() -> None:
    assert build_entity_key("\u200fAda\u00ad Love\u200blace\x00") == "ada lovelace"


@pytest.mark.parametrize(
    "name", ["", " ", "the", "The", "which", "He", "us", "x", "x's", "7", "42", "…", "😀", "$", "§ 1"]
)
def test_text_without_a_name_has_no_key(name: str) -> None:
    assert build_entity_key(name) == ""


@pytest.mark.parametrize(
    ("name", "key"),
    [("1961", "1961"), ("300", "300"), ("道", "道"), ("WHO", "WHO"), ("U.S.", "US"), ("U. S.", "US"), ("US", "US")],
)
def test_years_ideographs_and_acronyms_name_something(name: str, key: str) -> None:
    assert build_entity_key(name) == key


@pytest.mark.parametrize(
    ("name", "key"), [("The Who", "the who"), ("The A-Team", "a team"), ("A Separation", "a separation")]
)
def test_an_article_stays_where_too_little_is_left_without_it(name: str, key: str) -> None:
    assert build_entity_key(name) == key


_PIECES = st.lists(
    st.sampled_from([*"aAthesiI'’. ,()&-5é\u0301ßİıﬁΣς\u200d\u00ad\ue000道$%`", "the ", "WHO", "'s", ". "])
)


@given(st.text() | _PIECES.map("".join))
def test_a_key_is_its_own_key(name: str) -> None:
    key = build_entity_key(name)
    assert build_entity_key(key) == key


@given(_PIECES.map("".join))
def test_a_key_has_no_white_space_to_spare(name: str) -> None:
    key = build_entity_key(name)
    assert key == " ".join(key.split())
