"""Language models as judges of answers and of what was retrieved: what each is asked, and what its reply is worth.

The prompts are polyad's own, so numbers are comparable with each other and not, to the digit, with those of the papers.
Files of the user's directory of prompts may replace their tasks; what a judge is shown, and how, stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from polyad.evaluation.answers.judge import ACCEPTED, ANSWER, QUESTION, STATED, TEXT, Judge, JudgeInput
from polyad.replies.schema import BOOLEAN, INTEGER, STRING, build_array_schema, build_object_schema
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts

_DIMENSIONS = {
    "correctness": (
        "whether it agrees with the reference answers",
        "all it says agrees with them, and nothing of theirs is missing.",
        "it says something else, or nothing.",
    ),
    "relevance": (
        "whether it keeps to what was asked",
        "every sentence serves the question.",
        "none of it does.",
    ),
    "factuality": (
        "whether its single facts are true and can be checked",
        "each fact is precise and true.",
        "its facts are wrong or made up.",
    ),
    "comprehensiveness": (
        "whether it treats all sides of the question that matter",
        "no side that matters is missing.",
        "it treats none of them.",
    ),
    "knowledgeability": (
        "whether it shows knowledge of the field beyond the obvious",
        "it explains with well chosen knowledge of the field.",
        "it shows none.",
    ),
    "coherence": (
        "whether each step follows from those before it",
        "it is well ordered, and everything follows.",
        "it contradicts itself or has no order.",
    ),
    "diversity": (
        "whether it brings in different points of snapshot, kinds of evidence or wordings where that helps",
        "it is varied where that helps, without padding.",
        "it repeats one thing.",
    ),
}
"""HyperGraphRAG v2, appendix E: what each respect is, when it is there in full, and when not at all."""

_G_E = "g_e."


def _task(name: str, prompts: Prompts = DEFAULT_PROMPTS) -> str:
    """What the judge of a name is asked to do."""
    if name.startswith(_G_E):
        respect = name.removeprefix(_G_E)
        goal, best, worst = _DIMENSIONS[respect]
        return prompts.text("judge_g_e", name=respect, goal=goal, best=best, worst=worst)
    return prompts.text(f"judge_{name}")


def _correct(said: Mapping[str, Any], _: JudgeInput) -> float:
    if not isinstance(said["correct"], bool):
        raise ValueError(said["correct"])
    return float(said["correct"])


def _require_texts(said: Mapping[str, Any]) -> None:
    for listed in said.values():
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise ValueError(listed)


def _statement_f1(said: Mapping[str, Any], _: JudgeInput) -> float:
    """F1 of the statements, as RAGAS counts the correctness of an answer."""
    _require_texts(said)
    both, others = len(said["both"]), len(said["answer_only"]) + len(said["reference_only"])
    if not both + others:
        raise ValueError("no statements")
    return both / (both + others / 2)


def _score(said: Mapping[str, Any], _: JudgeInput) -> float:
    score = said["score"]
    if type(score) is not int or not 0 <= score <= 10:
        raise ValueError(score)
    return score / 10


def _part(said: Mapping[str, Any], _: JudgeInput) -> float:
    """Part of the statements that are in the first of two lists."""
    _require_texts(said)
    first, second = map(len, said.values())
    if not first + second:
        raise ValueError("no statements")
    return first / (first + second)


def _grade(said: Mapping[str, Any], _: JudgeInput) -> float:
    grade = said["grade"]
    if type(grade) is not int or not 0 <= grade <= 2:
        raise ValueError(grade)
    return grade / 2


def _attributed(said: Mapping[str, Any], shown: JudgeInput) -> float:
    """Part of the numbered statements that are named, each once."""
    numbers = said["supported"]
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise ValueError(numbers)
    if len(set(numbers)) < len(numbers) or not set(numbers) <= set(range(1, len(shown.statements) + 1)):
        raise ValueError(numbers)
    return len(numbers) / len(shown.statements)


CORRECT = Judge("gpt_acc", _task("gpt_acc"), build_object_schema(correct=BOOLEAN), _correct)
"""GPT-Acc: the share of answers judged to be right (HyperSU, section 5.1)."""

STATEMENTS = Judge(
    "statement_f1",
    _task("statement_f1"),
    build_object_schema(
        both=build_array_schema(STRING),
        answer_only=build_array_schema(STRING),
        reference_only=build_array_schema(STRING),
    ),
    _statement_f1,
)
"""The greater part of GraphRAG-Bench's accuracy (Xiang et al., 2026); see :func:`graphrag_bench_accuracy`."""

DIMENSIONS = tuple(
    Judge(
        f"{_G_E}{name}",
        _task(f"{_G_E}{name}"),
        build_object_schema(score=INTEGER),
        _score,
    )
    for name in _DIMENSIONS
)
"""HyperGraphRAG's seven; see :func:`generation_evaluation`."""

_TEXTS = build_array_schema(STRING)

COVERAGE = Judge("coverage", _task("coverage"), build_object_schema(covered=_TEXTS, missing=_TEXTS), _part)
"""Coverage: part of the facts of the accepted answer that are in the given one (GraphRAG-Bench, for summaries and
creative answers). The authors' code lists the facts in one call and sorts them in another; here it is one."""

FAITHFULNESS = Judge(
    "faithfulness",
    _task("faithfulness"),
    build_object_schema(supported=_TEXTS, unsupported=_TEXTS),
    _part,
    (QUESTION, TEXT, ANSWER),
)
"""Faithfulness: part of the statements of the given answer that follow from what was retrieved (RAGAS; GraphRAG-Bench,
for creative answers)."""

CONTEXT_RECALL = Judge(
    "context_recall",
    _task("context_recall"),
    build_object_schema(supported=_TEXTS, unsupported=_TEXTS),
    _part,
    (QUESTION, TEXT, ACCEPTED),
)
"""Context recall: part of the statements of the accepted answer that follow from what was retrieved (RAGAS)."""

CONTEXT_RELEVANCE = Judge(
    "context_relevance", _task("context_relevance"), build_object_schema(grade=INTEGER), _grade, (QUESTION, TEXT)
)
"""Context relevance: whether what was retrieved holds what the question needs: 0, 1 or 2, halved (GraphRAG-Bench). The
authors' code asks twice and takes the mean; at temperature 0 both are the same."""

EVIDENCE_RECALL = Judge(
    "evidence_recall",
    _task("evidence_recall"),
    build_object_schema(supported=build_array_schema(INTEGER)),
    _attributed,
    (QUESTION, TEXT, STATED),
)
"""Evidence recall: part of the data set's statements of evidence that follow from what was retrieved (GraphRAG-Bench).
Without a model: :mod:`polyad.evaluation.measures.statement_recall`."""

JUDGES: Mapping[str, Sequence[Judge]] = {
    "gpt_acc": (CORRECT,),
    "graphrag_bench": (STATEMENTS,),
    "g_e": DIMENSIONS,
    "coverage": (COVERAGE,),
    "faithfulness": (FAITHFULNESS,),
    "context_recall": (CONTEXT_RECALL,),
    "context_relevance": (CONTEXT_RELEVANCE,),
    "evidence_recall": (EVIDENCE_RECALL,),
}
"""What each judged measure needs, by the measure's name."""


def graphrag_bench_accuracy(statement_f1: float, cosine: float) -> float:
    """GraphRAG-Bench's accuracy of an answer: 0.75 of the statements' F1, 0.25 of the cosine brought to [0, 1].

    >>> graphrag_bench_accuracy(1.0, 0.5)
    0.9375
    """
    return 0.75 * statement_f1 + 0.25 * (cosine + 1) / 2


def generation_evaluation(dimensions: Sequence[float], token_f1: float) -> float:
    """G-E of an answer: the mean of its token F1 and of the mean of the seven scores (HyperGraphRAG v2, appendix E).

    >>> generation_evaluation([1.0] * 7, 0.5)
    0.75
    """
    return (sum(dimensions) / len(dimensions) + token_f1) / 2


def get_judges(measures: Sequence[str], prompts: Prompts = DEFAULT_PROMPTS) -> list[Judge]:
    """The judges that some measures need, each with the task that it has in ``prompts``."""
    return [replace(judge, task=_task(judge.name, prompts)) for measure in measures for judge in JUDGES[measure]]
