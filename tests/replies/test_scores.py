from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.replies.scores import ENTITY_SCORES, FACT_SCORES, is_score


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (8, 8.0),
        (7.5, 7.5),
        ("8", 8.0),
        (" 8.5 ", 8.5),
        ("8,5", 8.5),
        ('"8"', 8.0),
        ("Score: 8", 8.0),
        ("9).", 9.0),
        ("9 because it stands alone", 9.0),
        ("~8", 8.0),
        ("≈ 8", 8.0),
        ("about 8", 8.0),
        ("approx. 8.5", 8.5),
        (">8", 8.0),
        ("8+", 8.0),
        (0, 0.0),
        (0.0, 0.0),
        (10, 10.0),
    ],
)
def test_a_score_in_range_is_read_without_a_note(value: object, score: float) -> None:
    notes: Counter[str] = Counter()
    assert FACT_SCORES.parse(value, notes) == score
    assert not +notes


@pytest.mark.parametrize(
    ("value", "score", "note"),
    [
        (None, None, "score missing"),
        ("", None, "score missing"),
        ("great", None, "score that is not a number"),
        (True, None, "score that is not a number"),
        (False, None, "score that is not a number"),
        (math.nan, None, "score that is not a number"),
        ([9], None, "score that is not a number"),
        ({"value": 9}, None, "score that is not a number"),
        (85, 10.0, "score out of range"),
        (math.inf, 10.0, "score out of range"),
        pytest.param(10**400, 10.0, "score out of range", id="huge"),
        pytest.param(-(10**400), 0.5, "score out of range", id="huge below 0"),
        (-3, 0.5, "score out of range"),
        ("-3", 0.5, "score out of range"),
        ("8/10", 8.0, "score given as a share"),
        ("4 out of 5", 8.0, "score given as a share"),
        ("~90 %", 9.0, "score given as a share"),
        ("low", 2.5, "score given in words"),
        ("Medium.", 5.0, "score given in words"),
        ('"HIGH"', 7.5, "score given in words"),
        ("very  high", 9.0, "score given in words"),
        ("中", 5.0, "score given in words"),
    ],
)
def test_a_score_that_is_missing_or_repaired_is_noted(value: object, score: float | None, note: str) -> None:
    notes: Counter[str] = Counter()
    source = FACT_SCORES.clip(FACT_SCORES.parse(value, notes))
    assert source == (score if score is None else pytest.approx(score))
    assert +notes == {note: 1}


def test_a_share_of_nothing_is_no_share() -> None:
    assert FACT_SCORES.parse("8/0", Counter()) == 8.0


def test_a_score_of_zero_is_low_and_in_range() -> None:
    assert FACT_SCORES.clip(0.0) == 0.5
    assert ENTITY_SCORES.clip(0.0) == 1.0
    notes: Counter[str] = Counter()
    assert ENTITY_SCORES.parse("8/10", notes) == 80.0
    assert +notes == {"score given as a share": 1}


def test_a_missing_score_is_the_median_or_the_default() -> None:
    assert ENTITY_SCORES.compute_default([90.0, None, 20.0, 30.0]) == 30.0
    assert (ENTITY_SCORES.compute_default([None]), FACT_SCORES.compute_default([])) == (50.0, 5.0)


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.from_regex(r"-?\d+[/%,.]\d*")))
def test_any_value_becomes_a_score_in_range_or_none(value: object) -> None:
    for scale in (FACT_SCORES, ENTITY_SCORES):
        score = scale.clip(scale.parse(value, Counter()))
        assert score is None or 0 < score <= scale.highest


@pytest.mark.parametrize(
    ("text", "holds"), [("90", True), ("9/10", True), ("90)", True), ("~90", True), ("born 1815", False), ("", False)]
)
def test_a_field_with_more_than_a_score_is_no_score(text: str, holds: bool) -> None:
    assert is_score(text) is holds
