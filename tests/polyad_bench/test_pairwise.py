from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from polyad.errors import ConfigurationError, LanguageModelError, NoMoreRepliesError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.protocols.components import Prompt
from polyad.text.prompts import Prompts
from polyad_bench.answers.judges import JudgeInput
from polyad_bench.answers.pairwise import VERDICTS, PairwiseResult, build_pairwise_judge, compare_answers
from polyad_bench.answers.records import ANSWERS, MAX_ATTEMPTS, AnswerRecord
from polyad_bench.datasets.beir import Question
from polyad_bench.files import RecordFile
from polyad_bench.runs.comparison import System
from polyad_bench.runs.records import QuestionRecord
from polyad_bench.runs.run_folder import Run

QUESTIONS = [Question(f"q{number}", f"Question {number}?", frozenset("g")) for number in range(5)]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[System, System]:
    run = Run(tmp_path, {}, {}, {})
    texts = {"good": ["right"] * 4 + [""], "bad": ["wrong"] * 2 + ["right", "", ""]}
    with RecordFile(tmp_path / ANSWERS, AnswerRecord) as file:
        for name, answers in texts.items():
            for question, text in zip(QUESTIONS, answers, strict=True):
                file.append(AnswerRecord(name, question.id, text))
    first, second = (
        System(name, run, [QuestionRecord(name, question, ()) for question in QUESTIONS]) for name in texts
    )
    return first, second


def by_merit(prompt: Prompt) -> str:
    first, second = (prompt.user.split(f"<{name}>\n")[1].split("\n")[0] for name in ("first", "second"))
    return f'{{"better": "{"neither" if first == second else "first" if first == "right" else "second"}"}}'


def judged(pair: tuple[System, System], folder: Path, reply: Callable[[Prompt], str]) -> tuple[PairwiseResult, int]:
    model = ScriptedLanguageModel(reply)
    (outcome,) = compare_answers([pair], model, folder)
    return outcome, len(model.prompts)


def test_a_verdict_counts_that_is_the_same_in_both_orders(pair: tuple[System, System], tmp_path: Path) -> None:
    outcome, request_count = judged(pair, tmp_path / "out", by_merit)
    assert outcome == PairwiseResult("good", "bad", 5, wins=3, losses=0, ties=2, disagreements=0)
    assert request_count == 5, "two each of what differs, one of what is the same, none of what is empty"
    again, asked_again = judged(pair, tmp_path / "out", by_merit)
    assert (again, asked_again) == (outcome, 0)
    (swapped,) = compare_answers([(pair[1], pair[0])], ScriptedLanguageModel([]), tmp_path / "out")
    assert (swapped.wins, swapped.losses, swapped.ties) == (0, 3, 2), "the same duels, the other way round"


def test_a_judge_that_prefers_the_first_answer_disagrees_with_itself(
    pair: tuple[System, System], tmp_path: Path
) -> None:
    outcome, _ = judged(pair, tmp_path / "out", lambda _: '{"better": "first"}')
    assert (outcome.wins, outcome.ties, outcome.disagreements) == (1, 1, 3)
    assert outcome.format_row()["by order"] == "60.0"


def test_verdicts_that_are_missing_are_told(pair: tuple[System, System], tmp_path: Path) -> None:
    def reply(prompt: Prompt) -> str:
        return by_merit(prompt) if "Question 0" not in prompt.user else "Both have their merits."

    outcome, request_count = judged(pair, tmp_path / "out", reply)
    assert (outcome.judged, outcome.total, outcome.is_sufficient) == (4, 5, False)
    assert request_count == 3 + 2 * MAX_ATTEMPTS
    assert outcome.format_row()["first"] == "50.0*"
    assert outcome.format_row()["judged"] == "4 / 5"


def test_an_interrupted_comparison_continues(pair: tuple[System, System], tmp_path: Path) -> None:
    replies: list[str | LanguageModelError] = ['{"better": "first"}', '{"better": "second"}']
    replies.append(NoMoreRepliesError("no key"))
    with pytest.raises(NoMoreRepliesError):
        compare_answers([pair], ScriptedLanguageModel(replies), tmp_path / "out")
    outcome, request_count = judged(pair, tmp_path / "out", by_merit)
    assert (outcome.wins, request_count) == (3, 3)
    model = ScriptedLanguageModel([], name="other")
    with pytest.raises(ConfigurationError, match="pairwise was judged by 'scripted', not 'other'"):
        compare_answers([pair], model, tmp_path / "out")
    (tmp_path / "out" / VERDICTS).write_text('{"prompt": "x"}\n')
    with pytest.raises(ConfigurationError, match=r"pairwise.jsonl', line 1: .*is no Judgement"):
        compare_answers([pair], model, tmp_path / "out")


def test_failed_requests_are_repeated_by_the_next_run(pair: tuple[System, System], tmp_path: Path) -> None:
    def failing(prompt: Prompt) -> str | LanguageModelError:
        return LanguageModelError("busy") if "Question 0" in prompt.user else by_merit(prompt)

    (outcome,) = compare_answers([pair], ScriptedLanguageModel(failing), tmp_path / "out")
    assert (outcome.judged, outcome.total) == (4, 5)
    outcome, request_count = judged(pair, tmp_path / "out", by_merit)
    assert (outcome.judged, request_count) == (5, 2)


def test_runs_without_answers_cannot_be_judged(pair: tuple[System, System], tmp_path: Path) -> None:
    nobody = System("none", pair[0].run, [QuestionRecord("none", question, ()) for question in QUESTIONS])
    with pytest.raises(ConfigurationError, match="no question that both 'good' and 'none' have answered"):
        compare_answers([(pair[0], nobody)], ScriptedLanguageModel([]), tmp_path / "out")


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"better": "first"}', 1),
        ('```json\n{"better": "neither"}\n```', 0),
        ('{"better": "tie"}', None),
        ('{"better": ["first"]}', None),
        ('{"better": "first", "why": "x"}', None),
        ("first", None),
    ],
)
def test_only_what_was_asked_for_is_a_verdict(reply: str, value: int | None) -> None:
    assert build_pairwise_judge().read_score(reply, JudgeInput("Who?")) == value


def test_a_replaced_prompt_of_the_pair_judge_is_asked_again(pair: tuple[System, System], tmp_path: Path) -> None:
    assert judged(pair, tmp_path / "out", by_merit)[1] == 5
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "judge_pairwise.md").write_text('Which sings? {"better": "first"}', encoding="utf-8")
    model = ScriptedLanguageModel(by_merit)
    compare_answers([pair], model, tmp_path / "out", prompts=Prompts(tmp_path / "mine"))
    assert len(model.prompts) == 5
    assert all(prompt.user.endswith('Which sings? {"better": "first"}\n') for prompt in model.prompts)
