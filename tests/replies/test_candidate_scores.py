from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.replies.candidate_scores import Repair, normalize_shares, parse_candidate_scores, parse_verdict

PUBLISHED_EDGES = """1. {{2. "In 1702 Moreau cast the bell (later called: 7) of Tarn." (Score: 0.70)}}: It names
who cast the bell in 1702.
2. {{1. "Moreau founded bronze." (Score: 0.20)}}: Says what she did (see: 12).
3. {{4. "Corven Tower is of granite." (Score: 0.10)}}: Context only.
"""


def scored(*pairs: tuple[object, object]) -> str:
    return json.dumps({"scores": [{"number": number, "score": score} for number, score in pairs]})


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        (scored((2, 0.7), (1, 0.3), (3, 0.0)), (0.3, 0.7, 0.0)),
        ("Here:\n```json\n" + scored((1, 0.5), (2, 0.25), (3, 0.25)) + "\n```", (0.5, 0.25, 0.25)),
        (json.dumps(json.loads(scored((1, 0.5), (2, 0.25), (3, 0.25)))["scores"], indent=2), (0.5, 0.25, 0.25)),
        (scored(("2", "0.7"), ("1.", "0.3"), (3, "0")), (0.3, 0.7, 0.0)),
        (scored((1, 0.5), (2, 0.5), (3, 0)).replace("number", "Number").replace("score", "Score"), (0.5, 0.5, 0)),
        ('{"scores": [0.5, 0.25, 0.25]}', (0.5, 0.25, 0.25)),
        ('{"scores": {"3": 0.5, "1": 0.5, "2": 0}}', (0.5, 0.0, 0.5)),
        ('{"1": 0.5, "2": 0.5, "3": 0}', (0.5, 0.5, 0.0)),
        (
            "{'scores': [{'number': 1, 'score': 0.5}, {'number': 2, 'score': .5}, {'number': 3, 'score': 0}]}",
            (0.5, 0.5, 0),
        ),
        ("[0.5, 0.5, 0]", (0.5, 0.5, 0)),
        ("Score: 0.3, 0.6, 0.1\n2 of them matter (1998, 1999).", (0.3, 0.6, 0.1)),
        ("SCORES:0.3;0.6;0.1", (0.3, 0.6, 0.1)),
        ("\u5206\u6570\uff1a0.3\u30010.6\u30010.1", (0.3, 0.6, 0.1)),
        ("0.3\n0.6\n0.1", (0.3, 0.6, 0.1)),
        ("- 1: 0.3\n- 2: 0.6\n- 3: 0.1", (0.3, 0.6, 0.1)),
        ("[1] Moreau (0.3)\n[2] bell (born: 1702) (Score: 0.6): reason (see: 3)\n[3] tower (0,1)", (0.3, 0.6, 0.1)),
        ("1. Moreau - 0.3\n2. bell - 0.6\n3. tower - 0.1", (0.3, 0.6, 0.1)),
        ("1. In 1905 Einstein published: 0.3\n2. In 1915 he presented: 0.6\n3. War: 0.1", (0.3, 0.6, 0.1)),
        ("1. Titanic: 0.05\n2. 1998: 0.9\n3. Academy Award: 0.05", (0.05, 0.9, 0.05)),
        ("1. In 1905 (Bern): 0.3\n2. Apollo 11 - 0.6.\n3. 1998-2001 \u2014 0.1", (0.3, 0.6, 0.1)),
        ("1. war (1914): 0.3\n2. peace (1918): **0.6**\n3. 2001: A Space Odyssey = 0.1", (0.3, 0.6, 0.1)),
        ("1. a (Score: 0.3) - of 1702 - 1705\n2. b (Score: 0.6): step 1\n3. c (Score: 0.1): see: 1", (0.3, 0.6, 0.1)),
        ("1. war (1914): 3/10\n2. peace: 0.6\n3. Apollo 11: 1/10", (0.3, 0.6, 0.1)),
        ("1: 3/10\n2: 6/10\n3: 1 / 10", (0.3, 0.6, 0.1)),
        ("1. war (Score: 3/10)\n2. peace (6/10)\n3. Apollo 11 - 1/10", (0.3, 0.6, 0.1)),
        ("Score: 3/10, 6/10, 1/10", (0.3, 0.6, 0.1)),
        ("0.3/0.6/0.1", (0.3, 0.6, 0.1)),
        (scored((1, "3/10"), (2, "6/10"), (3, "1/10")), (0.3, 0.6, 0.1)),
        (
            '{"number": 1, "score": 3/10}, {"number": 2, "score": 6/10}, {"number": 3, "score": 1/10}',
            (0.3, 0.6, 0.1),
        ),
        ("As [1] says: " + scored((1, 0.5), (2, 0.5), (3, 0)), (0.5, 0.5, 0)),
    ],
)
def test_scores_are_read_in_whatever_form_they_come(reply: str, scores: tuple[float, ...]) -> None:
    reading = parse_candidate_scores(reply, 3)
    assert reading.scores == pytest.approx(scores)
    assert reading.repairs == frozenset()


def test_the_published_form_names_the_chosen_by_the_number_in_braces() -> None:
    reading = parse_candidate_scores(PUBLISHED_EDGES, 4, is_selection=True)
    assert reading.scores == pytest.approx((0.2, 0.7, 0.0, 0.1))
    assert reading.repairs == frozenset()


@pytest.mark.parametrize("separator", ["\n", ", ", " "])
def test_texts_in_braces_may_hold_braces(separator: str) -> None:
    reply = separator.join(
        [
            '{{2. "f maps {x} to {y}." (Score: 0.70)}}: it is {the} map.',
            '{{1. "x_{1} (see {3}) is {y" (Score: 20%)}}',
            '{{3. "plain (Score: 0.10)}}',
        ]
    )
    assert parse_candidate_scores(reply, 4, is_selection=True).scores == pytest.approx((0.2, 0.7, 0.1, 0.0))


@pytest.mark.parametrize(
    "reply",
    [
        '{"number":0,"score":0.7},{"number":1,"score":0.2},{"number":2,"score":0.1}',
        scored((2, 0.1), (0, 0.7), (1, 0.2)),
        '{"0": 0.7, "1": 0.2, "2": 0.1}',
        "0. Moreau: 0.7\n1. bell: 0.2\n2. tower: 0.1",
    ],
)
def test_candidates_that_were_counted_from_zero_are_counted_from_one(reply: str) -> None:
    reading = parse_candidate_scores(reply, 3)
    assert reading.scores == pytest.approx((0.7, 0.2, 0.1))
    assert Repair.FROM_ZERO in reading.repairs
    assert Repair.NOT_OFFERED not in reading.repairs


def test_a_zero_among_other_numbers_is_no_count_from_zero() -> None:
    reading = parse_candidate_scores(scored((0, 0.5), (2, 0.5)), 3, is_selection=True)
    assert reading.scores == (0, 1, 0)
    assert Repair.NOT_OFFERED in reading.repairs


@pytest.mark.parametrize(
    ("reply", "scores", "repair"),
    [
        ("1: 9/0\n2: 1/2\n3: 1/2", (0, 0.5, 0.5), Repair.UNREADABLE),
        ("1. a: 70\n2. In 1905: 20\n3. c: 10", (0.7, 0.2, 0.1), Repair.PERCENTAGES),
        (scored((1, -0.5), (2, 0.5), (3, 0.5)), (0, 0.5, 0.5), Repair.NEGATIVE),
        ("1. a (Score: -0.5)\n2. b (Score: 0.5)\n3. c (Score: 0.5)", (0, 0.5, 0.5), Repair.NEGATIVE),
        (scored((1, 8), (2, 2), (3, 0)), (0.8, 0.2, 0), Repair.ABOVE_ONE),
        (scored((1, 10**400), (2, 0.5), (3, 0.5)), (0, 0.5, 0.5), Repair.UNREADABLE),
        (scored((1, 1e308), (2, 1e308), (3, 0)), (0.5, 0.5, 0), Repair.ABOVE_ONE),
        (
            '{"scores": [{"number": 1, "score": NaN}, {"number": 2, "score": 1}, {"number": 3, "score": 0}]}',
            (0, 1, 0),
            Repair.UNREADABLE,
        ),
        (scored((1, "70%"), (2, "20 %"), (3, "10%")), (0.7, 0.2, 0.1), Repair.PERCENTAGES),
        ("Score: 70%, 20%, 10%", (0.7, 0.2, 0.1), Repair.PERCENTAGES),
        (scored((1, 70), (2, 20), (3, 10)), (0.7, 0.2, 0.1), Repair.PERCENTAGES),
        (scored((1, 0.9), (2, 0.9), (3, 0)), (0.5, 0.5, 0), Repair.WRONG_SUM),
        (scored((1, 0), (2, 0), (3, 0)), (1 / 3, 1 / 3, 1 / 3), Repair.WRONG_SUM),
        (scored((1, 0.5), (3, 0.5)), (0.5, 0, 0.5), Repair.MISSING),
        (scored((1, 0.5), (3, 0.5))[:-12], (1, 0, 0), Repair.MISSING),
        (scored((1, 0.5), (2, "high"), (3, 0.5)), (0.5, 0, 0.5), Repair.UNREADABLE),
        (scored((1, 0.5), (2, True), (3, 0.5)), (0.5, 0, 0.5), Repair.UNREADABLE),
        (scored((1, 0.5), (2, 0.25), (3, 0.25), (9, 0.3)), (0.5, 0.25, 0.25), Repair.NOT_OFFERED),
        (scored((1, 0.5), (2, 0.25), (3, 0.25), ("Moreau", 0.3)), (0.5, 0.25, 0.25), Repair.NOT_OFFERED),
        ("Score: 0.4, 0.4, 0.2, 0.1", (0.4, 0.4, 0.2), Repair.NOT_OFFERED),
        (scored((1, 0.5), (1, 0.9), (2, 0.25), (3, 0.25)), (0.5, 0.25, 0.25), Repair.REPEATED),
        ("I cannot help with that.", (1 / 3, 1 / 3, 1 / 3), Repair.UNREADABLE),
        ("1998", (1 / 3, 1 / 3, 1 / 3), Repair.UNREADABLE),
        ("", (1 / 3, 1 / 3, 1 / 3), Repair.UNREADABLE),
    ],
)
def test_bad_scores_are_repaired_and_the_repair_has_a_kind(
    reply: str, scores: tuple[float, ...], repair: Repair
) -> None:
    reading = parse_candidate_scores(reply, 3)
    assert reading.scores == pytest.approx(scores)
    assert repair in reading.repairs


def test_rounded_scores_are_no_error() -> None:
    assert parse_candidate_scores("Score: 0.33, 0.33, 0.33", 3).repairs == frozenset()


def test_candidates_that_were_not_selected_are_not_missing() -> None:
    assert parse_candidate_scores(scored((2, 1.0)), 3, is_selection=True).repairs == frozenset()


def test_json_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    whole = scored((1, 0.5), (2, 0.3), (3, 0.2))
    assert parse_candidate_scores(whole[: whole.index('{"number": 3')], 3).scores == pytest.approx((0.625, 0.375, 0))


PIECES = st.lists(
    st.one_of(
        st.text(max_size=6),
        st.floats().map(str),
        st.integers().map(str),
        st.sampled_from(
            [
                "{",
                "}",
                "{{",
                "}}",
                "[",
                "]",
                "(",
                ")",
                ":",
                ",",
                "\n",
                "%",
                "Score: ",
                '"scores"',
                '"number"',
                '"score"',
            ]
        ),
    ),
    max_size=30,
).map("".join)


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["scores", "number", "score", "1", "2", "sufficient"]), inner, max_size=4)
    ),
    max_leaves=12,
).map(json.dumps)


@given(reply=st.one_of(st.text(), PIECES, JSON_VALUES), offered=st.integers(1, 40), selective=st.booleans())
def test_any_text_gives_shares_of_one_whole(reply: str, offered: int, selective: bool) -> None:
    scores = parse_candidate_scores(reply, offered, is_selection=selective).scores
    assert len(scores) == offered
    assert min(scores) >= 0
    assert math.fsum(scores) == pytest.approx(1)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_shares_sum_to_one(values: list[float]) -> None:
    assert min(normalize_shares(values)) >= 0
    assert math.fsum(normalize_shares(values)) == pytest.approx(1)


@pytest.mark.parametrize(
    "reply",
    [
        '{"reason": "Text 1 says it.", "sufficient": true}',
        '```json\n{"sufficient": "Yes"}\n```',
        "{{Yes}}. Everything is there.",
        "A: {{YES}}, because no step is missing.",
        "**Answer:** yes",
        "Let me see.\nYes, text 2 says so.",
        '{"reason": "the "bell" is named", "sufficient": true}',
        "\u662f\u7684\uff0c\u8db3\u591f\u3002",
        "Ja.",
    ],
)
def test_a_yes_is_read_in_whatever_form_it_comes(reply: str) -> None:
    assert parse_verdict(reply) is True


@pytest.mark.parametrize(
    "reply",
    [
        '{"reason": "Yes and no.", "sufficient": false}',
        "A: {{No}}. The provided texts name the founder, yes, but not her village.",
        "no",
        "Verdict - see below\nAnswer: NO.",
        "\u4e0d\u8db3\u4ee5\u56de\u7b54\u3002",
        "Nein, es fehlt der Fluss.",
    ],
)
def test_a_no_is_read_in_whatever_form_it_comes(reply: str) -> None:
    assert parse_verdict(reply) is False


@pytest.mark.parametrize("reply", ["", "Perhaps.", '{"reason": "?"}', "[]", "The river is yet unknown."])
def test_a_reply_without_yes_or_no_has_no_verdict(reply: str) -> None:
    assert parse_verdict(reply) is None


@given(st.one_of(st.text(), PIECES, JSON_VALUES))
def test_any_text_gives_a_verdict_or_none(reply: str) -> None:
    assert parse_verdict(reply) in (True, False, None)


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        ('{"scores": [{"number": 1, "score": 0.3}]}', (0.3, 0.0)),
        ('{"scores": [{"number": 1, "score": 0.2}, {"number": 7, "score": 0.8}]}', (0.2, 0.0)),
        ('{"scores": [{"number": 1, "score": 0.9}, {"number": 2, "score": 0.9}]}', (0.9, 0.9)),
        ('{"scores": [{"number": 1, "score": 8}, {"number": 2, "score": 4}]}', (0.8, 0.4)),
        ('{"scores": [{"number": 1, "score": 80}, {"number": 2, "score": -4}]}', (0.8, 0.0)),
        ('{"scores": []}', (0.0, 0.0)),
        ('{"scores": [{"name": "Ines Moreau", "score": 0.7}]}', (0.0, 0.7)),
        ('{"Aldby": 0.4, "ines moreau": 0.7}', (0.4, 0.7)),
        ('{"scores": {"Aldby": 0.4}}', (0.4, 0.0)),
    ],
)
def test_absolute_scores_stay_as_they_were_given_by_number_or_by_name(reply: str, scores: tuple[float, float]) -> None:
    reading = parse_candidate_scores(reply, 2, is_selection=True, is_absolute=True, names=["Aldby", "Ines Moreau"])
    assert reading.scores == pytest.approx(scores)
    assert not reading.is_empty


def test_an_absolute_reply_without_a_score_is_empty() -> None:
    assert parse_candidate_scores("I like them.", 2, is_absolute=True).is_empty
