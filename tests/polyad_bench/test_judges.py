from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from polyad.text.prompts import Prompts
from polyad_bench.answers.judges import (
    DIMENSIONS,
    JUDGES,
    Judge,
    JudgeInput,
    generation_evaluation,
    get_judges,
    graphrag_bench_accuracy,
)

(CORRECT,), (STATEMENTS,), (COVERAGE,) = (JUDGES[name] for name in ("gpt_acc", "graphrag_bench", "coverage"))
(FAITHFULNESS,), (CONTEXT_RECALL,) = JUDGES["faithfulness"], JUDGES["context_recall"]
(CONTEXT_RELEVANCE,), (EVIDENCE_RECALL,) = JUDGES["context_relevance"], JUDGES["evidence_recall"]

QUESTION = JudgeInput("Who cast the bell?", ["Ines Moreau", "Moreau"], "It was Ines Moreau.")


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
    assert CORRECT.read_score(reply, QUESTION) == value


@pytest.mark.parametrize(
    ("both", "answer_only", "reference_only", "value"),
    [(2, 0, 0, 1.0), (1, 1, 1, 0.5), (0, 2, 1, 0.0), (2, 1, 0, 0.8), (0, 0, 0, None)],
)
def test_statements_are_weighed_as_their_f1(
    both: int, answer_only: int, reference_only: int, value: float | None
) -> None:
    replies = {"both": ["x"] * both, "answer_only": ["y"] * answer_only, "reference_only": ["z"] * reference_only}
    assert STATEMENTS.read_score(json.dumps(replies), QUESTION) == value


def test_statements_that_are_no_texts_are_no_judgement() -> None:
    assert STATEMENTS.read_score('{"both": [1], "answer_only": [], "reference_only": []}', QUESTION) is None
    assert STATEMENTS.read_score('{"both": 2, "answer_only": 0, "reference_only": 0}', QUESTION) is None


@pytest.mark.parametrize(
    ("score", "value"),
    [("10", 1.0), ("0", 0.0), ("7", 0.7), ("11", None), ("7.5", None), ("true", None), ('"7"', None)],
)
def test_a_score_is_a_whole_number_up_to_ten(score: str, value: float | None) -> None:
    assert DIMENSIONS[0].read_score(f'{{"score": {score}}}', QUESTION) == value


def test_a_prompt_shows_question_answer_and_all_that_is_accepted() -> None:
    prompt = CORRECT.build_prompt(QUESTION)
    for text in (QUESTION.question, QUESTION.answer, *QUESTION.accepted):
        assert text in prompt.user
    assert CORRECT.build_prompt(QUESTION, attempt=1).user != prompt.user, "else a kept reply would come back"
    assert len({judge.build_prompt(QUESTION).user for judge in DIMENSIONS}) == 7


JUDGE_INPUT = JudgeInput(
    "Who?", ["Ines"], "Ines.", "The bell was cast by Ines.", ["It is a bell.", "Ines cast it.", "In 1702."]
)


@pytest.mark.parametrize(
    ("judge", "reply", "value"),
    [
        (COVERAGE, '{"covered": ["a"], "missing": ["b", "c", "d"]}', 0.25),
        (COVERAGE, '{"covered": [], "missing": []}', None),
        (COVERAGE, '{"covered": 1, "missing": 3}', None),
        (FAITHFULNESS, '{"supported": ["a"], "unsupported": []}', 1.0),
        (CONTEXT_RECALL, '{"supported": [], "unsupported": ["a"]}', 0.0),
        (CONTEXT_RECALL, '{"unsupported": ["a"], "supported": ["b"]}', 0.5),
        (CONTEXT_RELEVANCE, '{"grade": 1}', 0.5),
        (CONTEXT_RELEVANCE, '{"grade": 3}', None),
        (CONTEXT_RELEVANCE, '{"grade": true}', None),
        (EVIDENCE_RECALL, '{"supported": [3, 1]}', 2 / 3),
        (EVIDENCE_RECALL, '{"supported": []}', 0.0),
        (EVIDENCE_RECALL, '{"supported": [4]}', None),
        (EVIDENCE_RECALL, '{"supported": [0]}', None),
        (EVIDENCE_RECALL, '{"supported": [1, 1]}', None),
        (EVIDENCE_RECALL, '{"supported": ["1"]}', None),
    ],
)
def test_the_judges_of_graphrag_bench_count_parts(judge: Judge, reply: str, value: float | None) -> None:
    assert judge.read_score(reply, JUDGE_INPUT) == (None if value is None else pytest.approx(value))


def test_a_judge_is_shown_what_it_judges_and_no_more() -> None:
    faithful, relevant = FAITHFULNESS.build_prompt(JUDGE_INPUT).user, CONTEXT_RELEVANCE.build_prompt(JUDGE_INPUT).user
    assert JUDGE_INPUT.text in faithful
    assert "<given_answer>\nInes.\n</given_answer>" in faithful
    assert "reference_answers" not in faithful
    assert JUDGE_INPUT.text in relevant
    assert "answer>" not in relevant
    assert "2. Ines cast it." in EVIDENCE_RECALL.build_prompt(JUDGE_INPUT).user


def test_measures_are_put_together_from_judges() -> None:
    assert [judge.name for judge in get_judges(["gpt_acc", "graphrag_bench"])] == ["gpt_acc", "statement_f1"]
    assert len(get_judges(["g_e"])) == 7
    assert graphrag_bench_accuracy(0.5, -1.0) == 0.375
    assert generation_evaluation([0.5] * 7, 1.0) == 0.75


def test_a_task_gives_way_to_a_file_and_what_is_shown_stays(tmp_path: Path) -> None:
    (tmp_path / "judge_gpt_acc.md").write_text('Is it right? {"correct": true}', encoding="utf-8")
    (tmp_path / "judge_g_e.md").write_text("Rate its {name}: {goal}.", encoding="utf-8")
    mine = get_judges(["gpt_acc", "g_e", "coverage"], Prompts(tmp_path))
    usual = get_judges(["gpt_acc", "g_e", "coverage"])
    assert [judge.name for judge in mine] == [judge.name for judge in usual]
    assert mine[0].build_prompt(QUESTION).user == usual[0].build_prompt(QUESTION).user.replace(
        usual[0].task, 'Is it right? {"correct": true}'
    )
    assert mine[2].task.startswith("Rate its relevance: whether reasoning and answer keep to the question")
    assert mine[-1] == usual[-1]


def test_the_rubric_of_one_dimension_is_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "judge_g_e_factuality.md").write_text("whether it is so\n10: yes. 0: no.\n", encoding="utf-8")
    mine, usual = get_judges(["g_e"], Prompts(tmp_path)), get_judges(["g_e"])
    (changed,) = [judge for judge, other in zip(mine, usual, strict=True) if judge != other]
    assert changed.name == "g_e.factuality"
    assert "its factuality: whether it is so?\n10: yes. 0: no.\nReply with" in changed.task
    for judge in usual:
        assert re.findall(r"^(\d+(?: (?:or|to) \d+)?):", judge.task, re.MULTILINE) == [
            "10", "8 or 9", "6 or 7", "4 or 5", "1 to 3", "0",
        ], "figure 12"  # fmt: skip


def test_the_seven_dimensions_judge_the_reasoning_too() -> None:
    thinking = replace(QUESTION, reasoning="She cast bells, so it is Ines.")
    for judge in DIMENSIONS:
        before, _, after = judge.build_prompt(thinking).user.partition("She cast bells, so it is Ines.")
        assert before.endswith("<reasoning>\n")
        assert after.startswith(f"\n</reasoning>\n<given_answer>\n{QUESTION.answer}")
        assert "<reasoning>" not in judge.build_prompt(QUESTION).user
    assert CORRECT.build_prompt(thinking) == CORRECT.build_prompt(QUESTION)
