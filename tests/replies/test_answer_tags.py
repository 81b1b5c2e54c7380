"""The final answer is found inside its tags, however the reply is cut and however badly it keeps to the form."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.replies.answer_tags import AnswerFilter, extract_tagged_answer


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<think>Who?</think>\n<answer>\nOdoacer [2].\n</answer>", "Odoacer [2]."),
        ("<THINK>Who?</THINK><Answer>Odoacer</ANSWER> Done.", "Odoacer"),
        ("So: <answer>Odoacer</answer>", "Odoacer"),
        ("<think>Who?</think> Odoacer [2].", "Odoacer [2]."),
        ("Odoacer.", "Odoacer."),
        ("<think>Who?</think><answer>Odoacer took", "Odoacer took"),
        ("<think>Who?</think><answer>Odoacer took</ans", "Odoacer took</ans"),
        ("<think>Who? <answer>Nero</answer> no</think><answer>Odoacer</answer>", "Odoacer"),
        ("<think>I write <answer> later, then", ""),
        ("Who? I write it.</think> Odoacer.", "Odoacer."),
        ("Who?</think><answer>Odoacer</answer>", "Odoacer"),
        ("<answer>One. </answer> and <answer> Two.</answer>", "One.\nTwo."),
        ("<answer> </answer><answer>Two.</answer>", "Two."),
        ("<answer><answer>One.</answer></answer>", "One."),
        ("<answer>One <think>or two</think>man.</answer>", "One man."),
        ("<answer>One <thinking>or two", "One"),
        ("Odoacer.</answer>", "Odoacer."),
        ("<answer>1 < 2 <b>bold</b></answer>", "1 < 2 <b>bold</b>"),
        ("<answer></answer>", ""),
        ("", ""),
    ],
)
def test_the_answer_is_what_is_inside_its_tags(reply: str, answer: str) -> None:
    assert extract_tagged_answer(reply) == answer


def test_an_answer_is_given_back_while_it_is_written() -> None:
    reply = AnswerFilter()
    pieces = ["<think>Who?</thi", "nk><answer>Odo", "acer ", "took it.</ans", "wer>"]
    assert [reply.feed(piece) for piece in pieces] == ["", "Odo", "acer", " took it.", ""]
    assert reply.finish() == ""


PARTS = ["<think>", "</think>", "<thinking>", "<answer>", "</answer>", "<", "</", "ans", "th", "A ", "\n", ">", "b"]


@given(parts=st.lists(st.sampled_from(PARTS)), cuts=st.lists(st.integers(0, 100)))
def test_cutting_the_reply_into_pieces_changes_nothing(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    reply = AnswerFilter()
    output = "".join(reply.feed(text[start:end]) for start, end in pairwise(places)) + reply.finish()
    assert output == extract_tagged_answer(text) == output.strip()


@given(before=st.sampled_from(["", "<answer>A", "<answer>A</answer>", "a "]), thought=st.text("ab<>/ ", max_size=20))
def test_a_thought_is_never_given_back(before: str, thought: str) -> None:
    marked = f"{before}<think>Z{thought}Z</think>end"
    assert "Z" not in extract_tagged_answer(marked)
    assert "Z" not in extract_tagged_answer(marked.removesuffix("</think>end"))
