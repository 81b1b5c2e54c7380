from __future__ import annotations

import re
import sys
import threading
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.text.file_names import FILE_MARK
from polyad.text.words import (
    extract_codes,
    extract_query_terms,
    extract_references,
    extract_search_terms,
    extract_terms,
    split_ideographs,
)
from tests.cost import measure_cost


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Who saw P-17?", ["saw", "p", "17", "p 17"]),
        ("either and/or both", ["either", "both"]),
        ("by Smith-Jones(1999)", ["smith", "jone", "1999", "smith jones"]),
        ("P 17 and P-17 and p-17", ["p", "17", "p 17"]),
        ("-- ?", []),
        ("", []),
    ],
)
def test_any_word_is_looked_for_and_the_parts_of_a_code_together(question: str, words: list[str]) -> None:
    terms = [term for term in extract_search_terms(question) if not term.startswith(FILE_MARK)]
    assert terms == words


@given(st.text("ab1-./: ,(é", max_size=14))
def test_codes_are_words_joined_by_marks_in_what_has_a_digit_ahead(text: str) -> None:
    plain = "".join(mark for mark in unicodedata.normalize("NFKD", text) if not unicodedata.combining(mark))
    said_plainly = re.findall(r"(?=[^\s\d]*\d)\w+(?:[-./:]\w+)+", plain)  # and in quadratic time
    assert extract_codes(text) == [" ".join(re.findall(r"\w+", code)) for code in said_plainly]


@pytest.mark.parametrize("unit", ["a", "a,", "a-", "a-,", "1", "a1-"])
@pytest.mark.parametrize("read", [extract_terms, extract_codes, extract_search_terms])
def test_a_text_without_blanks_takes_no_more_time_than_its_length_says(
    read: Callable[[str], object], unit: str
) -> None:
    assert measure_cost(lambda: read(unit * 50_000 + "9")) < 300, "in quadratic time it is minutes"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("closing", "closes"),
        ("village", "VILLAGES"),
        ("café", "cafés"),
        ("cafe\u0301", "cafe"),
        ("\u212bngstr\u00f6m", "angstrom"),
        ("\uff21\uff22\uff23", "abc"),
        ("Hafenstra\u00dfe", "Hafenstrasse"),
        ("STRA\u1e9eE", "strasse"),
        ("\u0141\u00f3d\u017a", "Lodz"),
        ("\u00d8resund", "oresund"),
        ("\u0110\u1eb7ng", "dang"),
        ("\u01fdon", "aeon"),
        ("\u0153uvre", "oeuvre"),
        ("D\u0131yarbak\u0131r", "Diyarbakir"),
    ],
)
def test_forms_of_a_word_are_one(one: str, other: str) -> None:
    assert extract_terms(one) == extract_terms(other)
    assert len(extract_terms(one)) == 1


def test_words_of_a_text_are_all_there_in_order_and_those_of_a_question_once() -> None:
    assert extract_terms("The bell of the bells") == ["the", "bell", "of", "the", "bell"]
    assert extract_query_terms("The bell of the bells") == ["bell"]
    assert extract_query_terms("To be or not to be") == ["not"]
    assert extract_query_terms("to be") == ["to", "be"], "all words where none is telling"


def test_marks_and_underscores_divide_words() -> None:
    assert extract_terms("don't stop_here\x00now\u2014or") == ["don", "t", "stop", "here", "now", "or"]
    assert extract_terms("a\ud800b") == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\u4e1c\u4eac\u5854 bell", ["\u4e1c\u4eac", "\u4eac\u5854", "bell"]),
        ("\u4e1c", ["\u4e1c"]),
        ("in\u6771\u4eac7", ["in", "\u6771\u4eac", "7"]),
        ("\ud55c\uad6d\uc5b4", ["\ud55c\uad6d", "\uad6d\uc5b4"]),
    ],
)
def test_runs_without_blanks_are_pairs_of_characters(text: str, words: list[str]) -> None:
    assert extract_terms(text) == words


def test_every_combining_mark_is_removed() -> None:
    marks = [chr(code) for code in range(sys.maxunicode) if unicodedata.combining(chr(code))]
    remaining = [mark for mark in marks if extract_terms(f"x{mark}y") != ["xy"]]
    assert set(remaining) == {"\u3099", "\u309a"}  # the voicing marks of kana


def test_kana_keep_their_voicing_marks() -> None:
    assert extract_terms("\u304c\u304d") == ["\u304c\u304d"]
    assert extract_terms("\u304c\u304d") != extract_terms("\u304b\u304d")


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_characters_of_scripts_with_spaces_are_unchanged(text: str) -> None:
    thai_and_neighbours = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"
    if not re.search(f"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af{thai_and_neighbours}]", text):
        assert split_ideographs(text) == text


@given(st.text(max_size=40))
def test_a_question_looks_for_nothing_that_a_passage_of_its_words_does_not_hold(text: str) -> None:
    references = extract_references(text)
    assert set(extract_search_terms(text)) <= {*extract_terms(text), *extract_codes(text), *references}


def test_threads_share_no_stemmer() -> None:
    together = threading.Barrier(4)
    texts = [" ".join(f"{stem}{ending}" for ending in ("ing", "ed", "s")) for stem in ("walk", "talk", "jump", "look")]

    def read(text: str) -> list[list[str]]:
        together.wait(timeout=60)
        return [extract_terms(text) for _ in range(300)]

    with ThreadPoolExecutor(4) as pool:
        for text, results in zip(texts, pool.map(read, texts), strict=True):
            assert results == [[text[:4]] * 3] * 300


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (
            "\u0e04\u0e38\u0e13\u0e2a\u0e21\u0e0a\u0e32\u0e22\u0e40\u0e1b\u0e47\u0e19\u0e04\u0e23\u0e39",
            "\u0e2a\u0e21\u0e0a\u0e32\u0e22",
        ),  # Thai
        ("\u0e02\u0e49\u0e2d\u0e22\u0e22\u0e39\u0e48\u0e1a\u0e49\u0e32\u0e19", "\u0e1a\u0e49\u0e32\u0e19"),
        (
            "\u0e82\u0ec9\u0ead\u0e8d\u0ea2\u0eb9\u0ec8\u0ec0\u0eae\u0eb7\u0ead\u0e99",
            "\u0ec0\u0eae\u0eb7\u0ead\u0e99",
        ),  # Lao
        (
            "\u1000\u103b\u103d\u1014\u103a\u1010\u1031\u102c\u103a\u1019\u103c\u1014\u103a\u1019\u102c",
            "\u1019\u103c\u1014\u103a\u1019\u102c",
        ),  # Burmese
        ("\u1781\u17d2\u1789\u17bb\u17c6\u1793\u17c5\u1795\u17d2\u1791\u17c7", "\u1795\u17d2\u1791\u17c7"),  # Khmer
    ],
)
def test_a_word_of_a_script_without_spaces_is_found_in_a_sentence(text: str, word: str) -> None:
    assert len(extract_terms(word)) > 0
    assert set(extract_terms(word)) <= set(extract_terms(text))
    assert len(set(extract_terms(text))) > len(set(extract_terms(word)))


def test_vowel_signs_belong_to_words() -> None:
    assert len(extract_terms("\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e\u0964")) == 2
