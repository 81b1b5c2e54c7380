from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.adapters.sqlite.full_text import match_expression


@pytest.mark.parametrize(
    ("question", "expression"),
    [
        ("Who saw P-17?", '"saw" OR "p" OR "17" OR "p 17"'),
        ("either and/or both", '"either" OR "both"'),
        ("by Smith-Jones(1999)", '"smith" OR "jones" OR "1999" OR "smith jones"'),
        ("-- ?", ""),
    ],
)
def test_any_word_is_looked_for_and_the_parts_of_a_code_together(question: str, expression: str) -> None:
    assert match_expression(question) == expression


@given(st.text("ab1-./: ,(é", max_size=14))
def test_codes_are_words_joined_by_marks_in_what_has_a_digit_ahead(text: str) -> None:
    said_plainly = re.findall(r"(?=[^\s\d]*\d)\w+(?:[-./:]\w+)+", text)  # and in quadratic time
    parts = dict.fromkeys(" ".join(re.findall(r"\w+", code)) for code in said_plainly)
    terms = match_expression(text).split(" OR ")
    assert [term for term in terms if " " in term] == [f'"{code}"' for code in parts]


@pytest.mark.parametrize("unit", ["a", "a,", "a-", "a-,", "1", "a1-"])
def test_a_question_without_blanks_takes_no_more_time_than_its_length_says(unit: str) -> None:
    started = time.process_time()
    match_expression(unit * 50_000 + "9")
    assert time.process_time() - started < 10, "in quadratic time it is minutes"
