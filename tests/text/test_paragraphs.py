from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.text.sentences import find_labels, find_paragraphs, split_sentences

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


def test_a_long_line_that_was_joined_at_hyphens_does_not_make_the_others_short() -> None:
    joined = "This option applies to the shell environment and each subshell environment, and may cause them to exit."
    text = (
        WRAPPED.replace("flood", "great flood of May")
        + "He let them know of it, as\nIsmail Bey know by the letter that he gave to the miller in\nMarch, and "
        + joined * 2
    )
    assert split(text) == [text.strip()]


def test_a_line_break_inside_a_bracket_ends_no_paragraph() -> None:
    text = (
        "See the list (see 3.2\n[Lists], page 10).\nThe exit status is that of the last command, unless it is inverted."
    )
    assert split(text)[0].startswith("See the list (see 3.2\n[Lists], page 10).")


def find_label_lines(text: str) -> list[str]:
    sentences = split_sentences(text, "en")
    return [span.of(text) for span, is_label in zip(sentences, find_labels(text, sentences), strict=True) if is_label]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("--prune=<date>\nDelete objects. Keep others.\n\n--quiet\nReport nothing.", ["--prune=<date>", "--quiet"]),
        ("-a\n--all\nInclude hidden files.", ["-a", "--all"]),
        ("add FILE ...\n    Add the files.", ["add FILE ..."]),
        ("Voltage\n230 V\n\nCurrent\n2 A", ["Voltage", "Current"]),
        ("  --keep\n\n      Keep the pack.\n", ["--keep"]),
        ("The pump is old.\nThe valve is new.", []),
        ("apples\npears\nplums\n\nThe fruit is ripe.", []),
        ("• apples\n• pears\nThe fruit is ripe.", []),
        ("Part\tCost\nPump\t3 EUR", []),
    ],
)
def test_a_label_is_a_short_line_above_a_text_of_its_own(text: str, labels: list[str]) -> None:
    assert find_label_lines(text) == labels
