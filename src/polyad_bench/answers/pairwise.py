"""Pairwise comparison of answers: a language model chooses the better of two answers, in both orders.

Judges prefer the first or the last answer that they read. A verdict counts only if both orders agree; otherwise it is
reported as disagreement (Zheng et al., 2023, "Judging LLM-as-a-judge", section 3.4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from polyad.errors import ConfigurationError
from polyad.protocols.components import LanguageModel, Progress, silent
from polyad.replies.schema import STRING, build_object_schema
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad_bench.answers.averages import MIN_JUDGED_SHARE
from polyad_bench.answers.judges import FIRST, QUESTION, SECOND, TEXT, Judge, JudgeInput
from polyad_bench.answers.judging import JudgingTask, judge_answers
from polyad_bench.answers.records import JudgementLog, open_judgements, read_answers, read_hyperedge_sets
from polyad_bench.files import make_folder
from polyad_bench.runs.comparison import System

VERDICTS = "pairwise.jsonl"

_VERDICT_VALUES = {"first": 1.0, "second": -1.0, "neither": 0.0}

Subject = Literal["answers", "hyperedges"]
"""What is compared: the answers of two systems, or what two constructions built from the source passages."""


@dataclass(frozen=True, slots=True)
class PairwiseResult:
    """The number of questions that each of two systems wins in a comparison by a language model.

    Attributes:
        first: Name of the first system.
        second: Name of the second system.
        total: Questions that both systems have answered.
        wins: Questions on which both orders prefer the first system.
        losses: Questions on which both orders prefer the second system.
        ties: Questions on which both orders prefer neither.
        disagreements: Questions on which the verdict depends on the order.
    """

    first: str
    second: str
    total: int
    wins: int
    losses: int
    ties: int
    disagreements: int

    @property
    def judged(self) -> int:
        """Number of questions with a valid verdict for both orders of the two answers."""
        return self.wins + self.losses + self.ties + self.disagreements

    @property
    def is_sufficient(self) -> bool:
        """Whether at least 95 per cent of the questions have a verdict."""
        return self.total > 0 and self.judged >= MIN_JUDGED_SHARE * self.total

    def to_json(self) -> dict[str, object]:
        """Return the counts as a dictionary, as part of the JSON that ``polyad bench compare --json`` prints."""
        return asdict(self) | {"judged": self.judged, "enough": self.is_sufficient}

    def format_row(self) -> Mapping[str, str]:
        """Return a table row, keyed by column title, with each count in per cent of the judged questions.

        A star marks too few judged questions. The names of the two sides, which may be long paths, are not part of it.
        """
        counts = {"first": self.wins, "second": self.losses, "neither": self.ties}
        counts["by order"] = self.disagreements
        mark = "" if self.is_sufficient else "*"
        shares = {name: f"{100 * n / self.judged:.1f}{mark}" if self.judged else "-*" for name, n in counts.items()}
        return {**shares, "judged": f"{self.judged} / {self.total}"}


def build_pairwise_judge(prompts: Prompts = DEFAULT_PROMPTS, subject: Subject = "answers") -> Judge:
    """Return an LLM judge that compares two answers or two sets of hyperedges; its score is 1 if the first is better.

    The score is -1 if the second is better, and 0 if neither is better.
    """
    task = prompts.get_text("judge_pairwise" if subject == "answers" else "judge_pairwise_hyperedges")
    sections = (QUESTION, FIRST, SECOND) if subject == "answers" else (QUESTION, TEXT, FIRST, SECOND)
    return Judge("pairwise", task, build_object_schema(better=STRING), _score_reply, sections)


def _score_reply(reply: Mapping[str, Any], _: JudgeInput) -> float:
    if reply["better"] not in _VERDICT_VALUES:
        raise ValueError(reply["better"])
    return _VERDICT_VALUES[reply["better"]]


def compare_answers(
    pairs: Sequence[tuple[System, System]],
    model: LanguageModel,
    folder: Path,
    progress: Progress = silent,
    prompts: Prompts = DEFAULT_PROMPTS,
    subject: Subject = "answers",
) -> list[PairwiseResult]:
    """Return the result of comparing the answers or hyperedges of each pair of systems by a language model.

    The model reads each pair of texts in both orders. Verdicts that the folder contains are not requested again.

    Args:
        pairs: Systems that were asked the same questions and have answered.
        model: Language model that judges.
        folder: Folder of the verdicts; created if it is missing.
        progress: Called after each reply.
        prompts: Prompts, with the task of the judge.
        subject: Whether to compare answers or hyperedges.

    Raises:
        ConfigurationError: two systems have no answered question in common, another model has given verdicts in the
            folder, or the folder cannot be written.
        NoMoreRepliesError: the model refuses further requests; earlier verdicts are stored.
    """
    judge = build_pairwise_judge(prompts, subject)
    groups = [_build_inputs(first, second, subject) for first, second in pairs]
    make_folder(folder)
    with open_judgements(folder / VERDICTS) as log:
        tasks = [
            task
            for group in groups
            for judge_input in group
            if all(map(str.strip, judge_input.pair))
            for task in _build_tasks_in_both_orders(judge, judge_input)
        ]
        judge_answers(list({task.key: task for task in tasks}.values()), model, log, progress)
        return [
            _count_verdicts(first.name, second.name, [_get_verdicts(judge, each, log) for each in group])
            for (first, second), group in zip(pairs, groups, strict=True)
        ]


def _build_inputs(first: System, second: System, subject: Subject) -> list[JudgeInput]:
    texts, others = _read_compared_texts(first, subject), _read_compared_texts(second, subject)
    inputs = [
        JudgeInput(record.query.text, text=passage, pair=(text, other))
        for record in first.records
        if record.query.id in texts and record.query.id in others
        for (passage, text), (other_passage, other) in [(texts[record.query.id], others[record.query.id])]
        if passage == other_passage
    ]
    if not inputs and subject == "answers":
        raise ConfigurationError(
            f"there is no question that both {first.name!r} and {second.name!r} have answered; expected runs of polyad "
            "eval --answers"
        )
    if not inputs:
        raise ConfigurationError(
            f"{first.name!r} and {second.name!r} have no source passage in common; expected the same settings [split]"
        )
    return inputs


def _read_compared_texts(system: System, subject: Subject) -> dict[str, tuple[str, str]]:
    """Return the text of a system that a judge compares with another system's text, by question id, with its passage.

    Each value is a pair: the source passage, and the text. The text is a list of the hyperedges of that passage, or an
    answer, which has no source passage ("").
    """
    if subject == "hyperedges":
        return {id: (each.passage, each.format()) for id, each in read_hyperedge_sets(system.run.folder).items()}
    answers = read_answers(system.run.folder)[0]
    return {id: ("", answer.text) for (retriever, id), answer in answers.items() if retriever == system.retriever}


def _build_tasks_in_both_orders(judge: Judge, judge_input: JudgeInput) -> list[JudgingTask]:
    """Return two tasks for an LLM judge of a pair of texts: in the original order, and in swapped order.

    The keys of the tasks are hashes of the prompts, so that equal comparisons share a verdict.
    """
    tasks = []
    for pair in (judge_input.pair, judge_input.pair[::-1]):
        ordered = replace(judge_input, pair=pair)
        prompt = judge.build_prompt(ordered).user
        digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
        tasks.append(JudgingTask("", digest, judge, ordered))
    return tasks


def _get_verdicts(judge: Judge, judge_input: JudgeInput, judgements: JudgementLog) -> tuple[float | None, float | None]:
    """Return the verdicts on two texts, asked in both orders: 1 if the first text is better, -1 if the second is.

    The verdict is 0 if neither text wins, and None if the verdict is missing. An empty text loses without a request.
    """
    first, second = (bool(text.strip()) for text in judge_input.pair)
    if not (first and second):
        return first - second, first - second
    straight, swapped = (judgements.values.get(task.key) for task in _build_tasks_in_both_orders(judge, judge_input))
    return straight, None if swapped is None else -swapped


def _count_verdicts(first: str, second: str, verdicts: Sequence[tuple[float | None, float | None]]) -> PairwiseResult:
    judged = [(straight, swapped) for straight, swapped in verdicts if straight is not None and swapped is not None]
    agreed = [straight for straight, swapped in judged if straight == swapped]
    counts = (agreed.count(1), agreed.count(-1), agreed.count(0))
    return PairwiseResult(first, second, len(verdicts), *counts, len(judged) - len(agreed))
