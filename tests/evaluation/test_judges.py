from __future__ import annotations

import json

import pytest

from polyad.evaluation.judges import (
    CORRECT,
    DIMENSIONS,
    STATEMENTS,
    Shown,
    generation_evaluation,
    graphrag_bench_accuracy,
    requests_for,
)

QUESTION = Shown("Who cast the bell?", ["Ines Moreau", "Moreau"], "It was Ines Moreau.")


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"correct": true}', 1.0),
        ('{"correct": false}', 0.0),
        ('<think>{"correct": false}?</think>\n```json\n{"correct": true}\n```', 1.0),
        ('{"correct": "yes"}', None),
        ('{"correct": 1}', None),
        ('{"correct": true, "why": "it says so"}', None),
        ('It is right: {"correct": true}', None),
        ("true", None),
        ("[]", None),
        ("", None),
        ("[" * 100_000, None),
    ],
)
def test_only_what_was_asked_for_is_a_judgement(reply: str, value: float | None) -> None:
    assert CORRECT.read(reply) == value


@pytest.mark.parametrize(
    ("both", "answer_only", "reference_only", "value"),
    [(2, 0, 0, 1.0), (1, 1, 1, 0.5), (0, 2, 1, 0.0), (2, 1, 0, 0.8), (0, 0, 0, None)],
)
def test_statements_are_weighed_as_their_f1(
    both: int, answer_only: int, reference_only: int, value: float | None
) -> None:
    said = {"both": ["x"] * both, "answer_only": ["y"] * answer_only, "reference_only": ["z"] * reference_only}
    assert STATEMENTS.read(json.dumps(said)) == value


def test_statements_that_are_no_texts_are_no_judgement() -> None:
    assert STATEMENTS.read('{"both": [1], "answer_only": [], "reference_only": []}') is None
    assert STATEMENTS.read('{"both": 2, "answer_only": 0, "reference_only": 0}') is None


@pytest.mark.parametrize(
    ("score", "value"),
    [("10", 1.0), ("0", 0.0), ("7", 0.7), ("11", None), ("7.5", None), ("true", None), ('"7"', None)],
)
def test_a_score_is_a_whole_number_up_to_ten(score: str, value: float | None) -> None:
    assert DIMENSIONS[0].read(f'{{"score": {score}}}') == value


def test_a_prompt_shows_question_answer_and_all_that_is_accepted() -> None:
    prompt = CORRECT.prompt(QUESTION)
    for text in (QUESTION.text, QUESTION.answer, *QUESTION.accepted):
        assert text in prompt.user
    assert CORRECT.prompt(QUESTION, attempt=1).user != prompt.user, "else a kept reply would come back"
    assert len({judge.prompt(QUESTION).user for judge in DIMENSIONS}) == 7


def test_measures_are_put_together_from_judges() -> None:
    assert [judge.name for judge in requests_for(["gpt_acc", "graphrag_bench"])] == ["gpt_acc", "statement_f1"]
    assert len(requests_for(["g_e"])) == 7
    assert graphrag_bench_accuracy(0.5, -1.0) == 0.375
    assert generation_evaluation([0.5] * 7, 1.0) == 0.75
