"""Patterns of exact search: what they match, and the words that every match contains."""

from __future__ import annotations

import pytest

from polyad.errors import ConfigurationError
from polyad.text.patterns import TextPattern


def find(pattern: TextPattern, text: str) -> list[str]:
    data = text.encode()
    return [data[line.start : line.end].decode() for line in pattern.find_lines(data)]


def test_a_regular_expression_matches_within_a_line() -> None:
    text = "Bell of\nTarn\n\nrings é 1850"
    assert find(TextPattern("of[^x]Tarn|of.Tarn"), text) == []
    assert find(TextPattern("^$"), text) == [""]
    assert find(TextPattern("é [0-9]{4}$"), text) == ["rings é 1850"]
    assert find(TextPattern("BELL", ignore_case=True), text) == ["Bell of"]


def test_a_phrase_is_literal_and_crosses_lines() -> None:
    text = "Costs (in $)\nBell of\n Tarn\u00a0rings"
    assert find(TextPattern("(in $)", is_phrase=True), text) == ["Costs (in $)"]
    assert find(TextPattern("of Tarn rings", is_phrase=True), text) == ["Bell of\n Tarn\u00a0rings"]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("was (born|raised) in [A-Z]+ on the [0-9]+", ["in", "on", "the"]),
        ("the bell|the tower of Tarn", []),
        ("the bells? of (the )?Tarn rings", ["of"]),
        (r"a \p{Greek} b \Q|\E c", []),
        (r"a \p{Greek} b c \x41 d", ["b", "c"]),
        (r"[a b c] \[ x \] y", ["x"]),
        ("(?i)the Bell of", ["Bell"]),
        ("été bell naïve bell", ["bell"]),
        ("né bellé tower", []),
        ("x bell{2} y", []),
    ],
)
def test_words_of_every_match(pattern: str, words: list[str]) -> None:
    assert TextPattern(pattern).list_words() == words


@pytest.mark.parametrize("pattern", ["", " ", "(a", "(?=a)", r"(a)\1", "a{5000}", "x" * 1001])
def test_a_wrong_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(ConfigurationError):
        TextPattern(pattern)


def test_a_search_ends_at_its_deadline() -> None:
    with pytest.raises(TimeoutError):
        list(TextPattern("a").find_lines(b"a\n" * 10, deadline=0.0))


def test_the_error_of_a_wrong_pattern_shows_it_as_it_was_typed() -> None:
    with pytest.raises(ConfigurationError) as caught:
        TextPattern("kroner(")
    message = str(caught.value)
    assert message.startswith("'kroner(' is no regular expression: ")
    assert "(?m)" not in message
    assert "polyad grep -F" in message


@pytest.mark.parametrize("pattern", ["caf\\C", "[a]\\C+", "\\\\\\C", "\\Qa\\E\\C", "caf\udce9", "\ud83d"])
def test_a_part_of_a_character_is_no_pattern(pattern: str) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        TextPattern(pattern)


@pytest.mark.parametrize("pattern", ["\\\\C", "\\Q\\C\\E", "[C]", "a|C"])
def test_a_letter_that_looks_like_a_byte_is_a_pattern(pattern: str) -> None:
    assert [line.start for line in TextPattern(pattern).find_lines(b"\\C")] == [0]


def test_matches_begin_and_end_at_characters() -> None:
    text = "aé\nzé\U0001f600".encode()
    for pattern in ("\\B", "(?:)", "$", "[^a]*?", "\\b"):
        for line in TextPattern(pattern).find_lines(text):
            assert text[line.start : line.match_start].decode() + text[line.match_start : line.end].decode()
            text[line.match_start : line.match_end].decode()
