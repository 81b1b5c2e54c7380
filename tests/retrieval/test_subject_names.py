"""Which subject a name stands for."""

from __future__ import annotations

import numpy as np
import pytest

from polyad.retrieval.subject_names import SubjectNames

SUBJECTS = [
    "ann bradford davis",
    "edward vincent sullivan",
    "frank jeffrey edson smart",
    "john adam smith",
    "john bert smith",
    "lima",
    "piet adler",
]
OTHERS = ["jeffrey smart", "john smith", "old lima", "watchman piet adler"]


def names(subjects: list[str], others: list[str]) -> SubjectNames:
    keys = sorted([*subjects, *others])
    return SubjectNames(keys, np.array([key in subjects for key in keys], dtype=bool))


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("watchman piet adler", "piet adler"),
        ("jeffrey smart", "frank jeffrey edson smart"),
        ("frank smart", "frank jeffrey edson smart"),
        ("frank jeffrey", "frank jeffrey edson smart"),
        ("ann b davis", "ann bradford davis"),
        ("f j e smart", "frank jeffrey edson smart"),
        ("ed sullivan", "edward vincent sullivan"),
        ("john a smith", "john adam smith"),
    ],
)
def test_a_name_stands_for_the_subject_it_ends_in_or_is_short_for(name: str, subject: str) -> None:
    row = names(SUBJECTS, OTHERS).subject_of(name)
    assert row is not None
    assert sorted([*SUBJECTS, *OTHERS])[row] == subject


@pytest.mark.parametrize(
    "name",
    [
        "smart",  # a single word
        "old lima",  # ends in a single word
        "john smith",  # two are called so
        "j smith",
        "jeffrey edson",  # neither the first nor the last word
        "smart frank",  # another order
        "frank jeffrey junior smart",  # a word of its own
        "lin sullivan",
        "",
    ],
)
def test_a_name_that_does_not_tell_stands_for_none(name: str) -> None:
    assert names(SUBJECTS, OTHERS).subject_of(name) is None


def test_pairs_are_those_of_all_entities_that_are_no_subjects() -> None:
    keys = sorted([*SUBJECTS, *OTHERS])
    found = [(keys[name], keys[subject]) for name, subject in zip(*names(SUBJECTS, OTHERS).pairs(), strict=True)]
    assert found == [("jeffrey smart", "frank jeffrey edson smart"), ("watchman piet adler", "piet adler")]


def test_a_name_that_too_many_subjects_resemble_stands_for_none() -> None:
    many = [f"john {letter}{other} smith" for letter in "abcdefghijk" for other in "abcdefghijk"]
    assert names(["john adam smith"], []).subject_of("john adam") is not None
    assert names([*many, "john adam smith"], []).subject_of("j adam smith") is None


def test_without_entities_there_are_no_pairs() -> None:
    assert [len(rows) for rows in names([], []).pairs()] == [0, 0]
