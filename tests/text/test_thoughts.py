"""Thoughts stay inside, however the reply is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.text.thoughts import ThoughtFilter, without_thoughts


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("<think>no</think>yes", "yes"),
        ("a <think>no</think>b", "a b"),
        ("<think>a</think><think>b</think>yes", "yes"),
        ("<think>never closed", ""),
        ("never opened</think> yes", "yes"),
        ("1 < 2 <thin", "1 < 2 <thin"),
        ("<thinking>no</thinking>yes", "yes"),
        ("  yes\n", "yes"),
        ("", ""),
    ],
)
def test_only_what_is_not_thought_is_shown(said: str, shown: str) -> None:
    assert without_thoughts(said) == shown


@given(
    parts=st.lists(st.sampled_from(["<think>", "</think>", "<thinking>", "<", "th", "a ", "\n", ">", "b"])),
    cuts=st.lists(st.integers(0, 80)),
)
def test_cutting_the_reply_into_pieces_changes_nothing(parts: list[str], cuts: list[int]) -> None:
    said = "".join(parts)
    places = [0, *sorted(cut for cut in cuts if cut < len(said)), len(said)]
    whole, cut = ThoughtFilter(), ThoughtFilter()
    pieces = [cut.feed(said[start:end]) for start, end in pairwise(places)]
    assert "".join(pieces) + cut.finish() == whole.feed(said) + whole.finish()
