"""Thoughts stay inside, however the reply is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.replies.thoughts import ThoughtFilter, remove_leading_thoughts, remove_thoughts


@pytest.mark.parametrize(
    ("reply", "output"),
    [
        ("<think>no</think>yes", "yes"),
        ("a <think>no</think>b", "a b"),
        ("<think>a</think><think>b</think>yes", "yes"),
        ("<think>never closed", ""),
        ("never opened</think> yes", "yes"),
        ("1 < 2 <thin", "1 < 2 <thin"),
        ("<thinking>no</thinking>yes", "yes"),
        ("<reasoning>no</reasoning>yes", "yes"),
        ("[THINK]no [1]?[/THINK]yes [1]", "yes [1]"),
        ("<thought>no</thought>yes", "yes"),
        ("<Thought>\nno\n</Thought>\n\nyes", "yes"),
        ("<seed:think>no</seed:think>yes", "yes"),
        ("<|START_THINKING|>no<|END_THINKING|>yes", "yes"),
        ("<|START_THINKING|>no<|END_THINKING|><|START_RESPONSE|>yes<|END_RESPONSE|>", "yes"),
        ("<|begin_of_thought|>no<|end_of_thought|>\n\n<|begin_of_solution|>yes<|end_of_solution|>", "yes"),
        ("\u25c1think\u25b7no\u25c1/think\u25b7yes", "yes"),
        ("no\u25c1/think\u25b7yes", "yes"),
        ("[Thinking](docs/thinking.md) is a page.", "[Thinking](docs/thinking.md) is a page."),
        ("Give <thoughtful> or <thinker>", "Give <thoughtful> or <thinker>"),
        ("<|channel>thought\nno<channel|>yes", "yes"),
        ("<|channel|>analysis<|message|>no<|end|><|start|>assistant<|channel|>final<|message|>yes", "yes"),
        ("<|channel|>final <|constrain|>JSON<|message|>yes", "yes"),
        (
            "The tag <think> opens a thought and </think> closes it.",
            "The tag <think> opens a thought and </think> closes it.",
        ),
        ("It writes `<think>`, then \u201c</think>\u201d.", "It writes `<think>`, then \u201c</think>\u201d."),
        ("A thought ends with `</think>`.", "A thought ends with `</think>`."),
        ("Who? </think> Odoacer.", "Odoacer."),
        ("<think> Is </think> a tag?</think>The tag <think> is.", "The tag <think> is."),
        ("Yes.\n<think>no</think>\nNo.", "Yes.\n\nNo."),
        ("  yes\n", "yes"),
        ("", ""),
    ],
)
def test_only_what_is_not_thought_is_shown(reply: str, output: str) -> None:
    assert remove_thoughts(reply) == output


PIECES = ["<think>", "</think>", "<thinking>", "<", "th", "a ", "\n", ">", "b", "[THINK]", "[/th", "ink]", "[", "`"]
PIECES += ["<seed:", "<|START_", "thought", "<|END_RESPONSE|>", "\u25c1", "think", "\u25b7", "/", "(", "]"]
PIECES += ["<|channel|>", "<|channel>", "<channel|>", "analysis", "final", "<|message|>"]


@given(
    parts=st.lists(st.sampled_from(PIECES)),
    cuts=st.lists(st.integers(0, 80)),
)
def test_cutting_the_reply_into_pieces_changes_nothing(parts: list[str], cuts: list[int]) -> None:
    reply = "".join(parts)
    places = [0, *sorted(cut for cut in cuts if cut < len(reply)), len(reply)]
    whole, cut = ThoughtFilter(), ThoughtFilter()
    pieces = [cut.feed(reply[start:end]) for start, end in pairwise(places)]
    assert "".join(pieces) + cut.finish() == whole.feed(reply) + whole.finish()


DATA = ['{"text": "It writes <think>, then </think>."}', '[["</think>"]]', '("entity"<|><think><|>tag)', "```\n<think>"]


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    "before",
    [
        "",
        " \n",
        "<think>Hm.</think>",
        "\n<THINKING>\n{} or []?\n</THINKING>\n\n",
        "<think>a</think>\n<think>b</think>",
        "Never opened, {} or [],\n</think>\n\n",
        "never opened</think>",
        "[THINK]{} or []?[/THINK]",
        "<reasoning>{} or []?</reasoning>",
        "<|channel>thought\n{} or []?\n<channel|>",
        "<|channel|>analysis<|message|>{}?<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|channel|>final <|constrain|>JSON<|message|>",
        "<think>It tells of </think>, then.</think>",
        "<think>It tells of </think>: {}\n</think>\n",
    ],
)
def test_tags_within_data_are_kept_and_thoughts_in_front_of_it_are_not(before: str, data: str) -> None:
    assert remove_leading_thoughts(before + data + " ") == data


@pytest.mark.parametrize(
    "reply",
    [
        '{"a": "b"} <think>c',
        '{"a": "</think>{}"} []',
        "[1] <think>\n</think>\n[2]",
        '("a</think>\nb")',
    ],
)
def test_tags_that_may_be_data_are_never_removed(reply: str) -> None:
    assert remove_leading_thoughts(reply) == reply


RECORD = '("hyper-relation"<|>Ada met Bo.<|>9)'


@pytest.mark.parametrize("data", ['{"facts": []}', '[{"text": "</think>"}]', RECORD, "```json\n[]"])
@pytest.mark.parametrize("between", ["", " ", "\n", " So: ", "\nHere is what the passage says:\n\n"])
@pytest.mark.parametrize(
    "draft", ['{"facts": [{"text": "draft"}]}', f"Perhaps {RECORD}?", "[1, 2", '{"a": "</think>{}"}']
)
def test_a_draft_before_a_closing_tag_on_the_same_line_is_no_data(draft: str, between: str, data: str) -> None:
    assert remove_leading_thoughts(f"{draft}</think>{between}{data}") == data


@pytest.mark.parametrize(
    "reply", ["<think>{}", "a <think>b</think> c", "a</think>c", "a <think>b", " c ", "", "</think>"]
)
def test_a_reply_without_data_loses_all_its_thoughts(reply: str) -> None:
    assert remove_leading_thoughts(reply) == remove_thoughts(reply)


@given(st.lists(st.sampled_from(["<think>", "</think>", "</think>\n", "\n", "{", "[", "a ", '("'])).map("".join))
def test_taking_thoughts_away_twice_takes_no_more(reply: str) -> None:
    once = remove_leading_thoughts(reply)
    assert remove_leading_thoughts(once) == once
