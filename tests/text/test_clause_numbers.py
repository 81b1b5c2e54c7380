"""Numbers of clauses, sections, steps, figures and tables in texts and questions."""

from __future__ import annotations

import pytest

from polyad.text.clause_numbers import begins_next_clause, find_clause_numbers, find_clause_references


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What does clause 2.2 say?", ["§ 2.2", "§cla 2.2"]),
        ("What is in section 4.1.3.", ["§ 4.1.3", "§sec 4.1.3"]),
        ("§12", ["§ 12"]),
        ("Was steht in Abschnitt 2.2?", ["§ 2.2", "§abs 2.2"]),
        ("Articles I and IV", ["§ i", "§art i", "§ iv", "§art iv"]),
        ("What does Figure 7 show?", ["§fig 7"]),
        ("sections 4.1, 4.2 and 5", ["§ 4.1", "§sec 4.1", "§ 4.2", "§sec 4.2", "§ 5", "§sec 5"]),
        ("What is in Appendix B?", ["§ b", "§app b"]),
        ("Что говорит статья 5?", ["§ 5", "§ста 5"]),
        ("第5条は何ですか", ["§ 5", "§第 5"]),
        ("Which part I need in step with Python 3.11 on page 4?", []),
        ("Who was born in 1901, and sold 12 pumps?", []),
    ],
)
def test_a_question_names_clauses(question: str, terms: list[str]) -> None:
    assert list(find_clause_references(question)) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("2.2 Late payment bears interest.", ["§ 2.2"]),
        ("  2. Payment\n    2.1 Invoices", ["§ 2", "§ 2.1"]),
        ("## § 12 Fees\n\n**Article 5.** All are equal.", ["§ 12", "§ 5", "§art 5"]),
        ("4 Maintenance\n\nThe pump is old.", ["§ 4"]),
        ("ARTICLE III\n\nScope", ["§ iii", "§art iii"]),
        ("Figure 7: The pump", ["§fig 7"]),
        ("Clause 2.2 does not apply.\nSee clause 3.1.", []),
        ("Title\nThis line is full, so that the sentence ends as in clause\n2.2 of the contract.", []),
        ("I went home.\n\n1901 was a year.", []),
        ("2.5.2024 was a Thursday.", []),
    ],
)
def test_a_line_begins_with_the_number_of_a_clause(text: str, terms: list[str]) -> None:
    assert list(find_clause_numbers(text)) == terms


def test_a_clause_ends_before_the_next_clause_and_not_before_its_parts() -> None:
    texts = ("2.3 Audit", "3. Liability", "2.2.1 Interest", "1. First,", "(a) except for fees", "12 pumps are old.")
    assert [begins_next_clause(text, "§ 2.2") for text in texts] == [True, True, False, False, False, False]
