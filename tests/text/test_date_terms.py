"""Search terms of dates: every way to write a date gives the same terms, in texts and in questions."""

from __future__ import annotations

from datetime import date

import pytest

from polyad.text.date_terms import find_date_references, find_date_terms, resolve_relative_dates


@pytest.mark.parametrize(
    "text",
    [
        *("22 June 2026", "June 22, 2026", "22.06.26", "06/22/2026", "2026-06-22", "20260622", "the 22nd of June 2026"),
        *(
            "22. Juni 2026",
            "22 de junio de 2026",
            "22 июня 2026",
            "2026年6月22日",
            "minutes-2026-06-22.md",
            "2026_06_22",
        ),
    ],
)
def test_a_date_has_the_same_terms_however_it_is_written(text: str) -> None:
    assert set(find_date_terms(text)) == {"@2026-06-22", "@2026-06", "@2026-q2", "@-06", "@-06-22"}
    assert "@2026-06-22" in find_date_references(text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("minutes of June 2026", "Minutes of 2026-06-09"),
        ("What happened in Q2 2026?", "On 9 June 2026, the pump ran dry."),
        ("What was sold in the second quarter of 2026?", "Report Q2 2026"),
        ("the minutes of May", "Minutes, 12.05.2026"),
        ("What did he write on 9.10.2026?", "9 October: a fox."),
        ("mail of 9 October", "Sent on 2026-10-09"),
        ("invoice of 06/09/2026", "9 June 2026"),
        ("invoice of 06/09/2026", "6 September 2026"),
    ],
)
def test_a_question_meets_a_date_of_a_text(question: str, text: str) -> None:
    assert set(find_date_references(question)) & set(find_date_terms(text))


@pytest.mark.parametrize(
    "text",
    ["version 4.3.2", "10.1.12.7", "1.500.26", "2024-2025", "32 March", "0123456789012", "May we go?", "30 February"],
)
def test_other_numbers_are_no_dates(text: str) -> None:
    assert not list(find_date_terms(text))


def test_relative_dates_follow_the_day_of_the_question() -> None:
    today = date(2026, 1, 20)
    assert resolve_relative_dates("last March, last quarter, Last month or this year", today) == {
        "last March": "2025-03",
        "last quarter": "Q4 2025",
        "Last month": "2025-12",
        "this year": "2026",
    }
    assert resolve_relative_dates("the last meeting, next to it", today) == {}
