from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.text.sentences import find_paragraphs

LINES = st.sampled_from(
    ["", " ", "> ", ">", "• a", "- b", "1. c", "(1) d", "A line.", "a\tb", "  indented.", "# H", "\u3000"]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(LINES | st.text(max_size=6)).map("\n".join))
WRAPPED = "The keeper of the dam, who had been told of the flood by the miller in\nthe valley, opened the gates. "


def split(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in pairwise([*find_paragraphs(text), len(text)])]


@given(TEXTS)
def test_paragraphs_begin_at_lines_that_hold_something_in_order(text: str) -> None:
    starts = find_paragraphs(text)
    assert all(before < after for before, after in pairwise(starts))
    assert all(text[start:].strip() for start in starts)
    assert not text[: starts[0] if starts else len(text)].replace(">", "").strip()


def test_a_line_that_is_full_goes_on_in_the_next() -> None:
    text = WRAPPED + "He went home when the water had gone, and was\n12. then thanked by all who lived there."
    assert split(text) == [text]


@pytest.mark.parametrize(
    "items",
    [
        ["• One.", "• Two", "•Three"],
        ["\uf0b7 One", "▪ two"],
        ["- one", "- two"],
        ["§ 3 Duties", "(1) The keeper keeps it.", "(a) the name;", "1.2 Scope."],
        ["Ann Lee", "Bob Jones", "Carla Diaz"],
        ["name\tage", "pump\t3", "valve\t5"],
        ["Preface ........ 1", "Use ........... 12"],
        ["ALICE: I went there and then", "BOB: no"],
        ["# Title", "text of it"],
        ["On Monday, Ann wrote:", "> It leaks."],
        ["INTRODUCTION", "The purpose of this text is to say how the pump of the mill is to be used."],
        ["    It ends with a full stop after a line that is as long as this one.", "        The next is indented."],
    ],
)
def test_a_line_that_its_writer_ended_ends_a_paragraph(items: list[str]) -> None:
    assert split("\n".join(items)) == [item.strip() for item in items]


def test_a_bare_quotation_sign_is_a_blank_line() -> None:
    assert find_paragraphs("> One\n>\n> Two") == [0, 8]
