from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from polyad.text.words import replace_surrogates, sanitize, sanitize_line


def test_control_and_direction_characters_are_removed() -> None:
    assert sanitize("a\x1b[2Jb\x9bc\td\r\n\x7f") == "a [2Jb c\td\n "
    assert sanitize("pay \u202eeno\u2066 now\u2069") == "pay eno now"


def test_a_harmless_line_keeps_words_apart_that_any_line_ending_parted() -> None:
    assert sanitize_line(" a\rb\x85c\x1c\x1b \u202e d\n") == "a b c d"


def test_texts_of_any_script_stay_as_they_are() -> None:
    text = "\u05e9\u05dc\u05d5\u05dd, \u200fna\u00efve \u7f57\u9a6c \U0001f469\u200d\U0001f52c\n"
    assert sanitize(text) == text


@given(st.lists(st.integers(0, 0x10FFFF).map(chr)))
def test_anything_can_be_encoded_afterwards_and_stays_as_it_is_then(characters: list[str]) -> None:
    text = "".join(characters)
    assert sanitize(text).encode("utf-8") == sanitize(replace_surrogates(text)).encode("utf-8")
    assert sanitize(sanitize(text)) == sanitize(text)
