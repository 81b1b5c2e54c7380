"""Averages of the measures of answers over the questions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from polyad_bench.answers.judges import (
    DIMENSIONS,
    HYPEREDGE_QUALITY,
    HYPEREDGES,
    generation_evaluation,
    graphrag_bench_accuracy,
)
from polyad_bench.answers.judging import A_REL, ANSWER_SIMILARITY, C_REC, RETRIEVAL_SIMILARITY
from polyad_bench.answers.records import AnswerRecord, JudgementKey, JudgementLog
from polyad_bench.datasets.beir import Question
from polyad_bench.measures import answers as measures

MIN_JUDGED_SHARE = 0.95
"""Share of the answers that must have a score; an average over fewer answers is marked with a star."""

Values = Mapping[JudgementKey, float]


def _get_first_answer(answer: AnswerRecord) -> str:
    return answer.names[0] if answer.names else answer.measured_text


ANSWER_MEASURES: Mapping[str, Callable[[Question, AnswerRecord], float | None]] = {
    "em": lambda query, answer: measures.exact_match(_get_first_answer(answer), query.answers),
    "hyperrag_em": lambda query, answer: measures.hyperrag_exact_match(_get_first_answer(answer), query.answers),
    "f1": lambda query, answer: measures.token_f1(answer.measured_text, query.answers),
    "hotpotqa_f1": lambda query, answer: measures.hotpotqa_f1(answer.measured_text, query.answers),
    "contain_acc": lambda query, answer: measures.contain_accuracy(answer.measured_text, query.answers),
    "rouge_l": lambda query, answer: measures.rouge_l(answer.measured_text, query.answers),
    "c_rec_words": lambda query, answer: measures.context_recall(answer.measured_text, query.answers),
    "c_erec": lambda query, answer: measures.entity_recall(answer.measured_text, query.answers),
    "a_rel_words": lambda query, answer: measures.answer_relevance(query.text, answer.measured_text),
    "mrr": lambda query, answer: (
        measures.name_reciprocal_rank(answer.names, query.answers) if answer.names is not None else None
    ),
    "hits@10": lambda query, answer: (
        measures.name_hits(answer.names, query.answers) if answer.names is not None else None
    ),
}
"""Functions by measure that compare an answer with the accepted answers, without a language model.

A function returns None if the measure does not apply to the answer."""

_MEASURES_BY_DIFFICULTY = ("em", "hyperrag_em", "mrr", "hits@10")
"""Measures that are also averaged over easy and over hard answers, if a data set has both (HyperRAG, WikiTopics)."""


@dataclass(frozen=True, slots=True)
class Average:
    """The mean of one measure over the questions of an evaluation run, with the number of questions that have a value.

    ``value`` is None if no question has a value.

    Attributes:
        value: The mean.
        counted: Number of values in the mean.
        total: Number of questions that the measure applies to.
    """

    value: float | None
    counted: int
    total: int

    @property
    def is_sufficient(self) -> bool:
        """Whether at least 95 per cent of the questions have a value of the measure."""
        return self.total > 0 and self.counted >= MIN_JUDGED_SHARE * self.total

    @classmethod
    def from_values(cls, values: Collection[float | None], total: int) -> Average:
        """Return the average of the values that are not None; ``total`` is the number of applicable questions."""
        numbers = [value for value in values if value is not None]
        return cls(statistics.fmean(numbers) if numbers else None, len(numbers), total)

    def to_json(self) -> dict[str, object]:
        """Return the average as a dictionary, which is a part of the JSON that ``polyad eval --json`` prints."""
        value = None if self.value is None else round(self.value, 4)
        return {"value": value, "counted": self.counted, "asked": self.total, "enough": self.is_sufficient}

    def format(self) -> str:
        """Return the mean in per cent as text, marked with a star and the counts if too few questions have a value."""
        value = "-" if self.value is None else f"{100 * self.value:.1f}"
        return value if self.is_sufficient else f"{value}* ({self.counted} / {self.total})"


@dataclass(frozen=True, slots=True)
class _JudgedMeasure:
    """A measure of answers that is computed from the scores of a language model (LLM as a judge).

    Attributes:
        judges: Names of the judges whose values the measure needs.
        compute: Computes the measure; None if a value is missing.
        applies_to: Whether the measure applies to a question with this answer, or without an answer.
    """

    judges: frozenset[str]
    compute: Callable[[Question, AnswerRecord, Values], float | None]
    applies_to: Callable[[Question, AnswerRecord | None], bool] = lambda query, _: bool(query.answers)


def average_answers(
    retriever: str, queries: Iterable[Question], answers: Mapping[tuple[str, str], AnswerRecord], log: JudgementLog
) -> dict[str, Average]:
    """Return the mean of each answer measure over all questions for one retriever, keyed by the name of the measure.

    The result is empty if there are neither answers nor judgements.

    A measure is averaged over the questions that have the reference for this measure. A question without an answer
    counts as missing, because the language model may have been unreachable. An empty answer, given without evidence, is
    wrong.

    Args:
        retriever: Name of the retriever.
        queries: All questions to answer.
        answers: Answers by retriever and question id.
        log: Judgements.
    """
    questions = list(queries)
    by_id = {query.id: answers[retriever, query.id] for query in questions if (retriever, query.id) in answers}
    judges = {judge for name, _, judge in log.attempts if name == retriever}
    judges |= {name.partition(".")[0] for name in judges}  # also judges whose first step, listing statements, failed
    averages = _average_measures(questions, by_id) if by_id else {}
    for name, measure in _JUDGED_MEASURES.items():
        if not measure.judges.isdisjoint(judges):
            applicable = [query for query in questions if measure.applies_to(query, by_id.get(query.id))]
            pairs = [(query, by_id[query.id]) for query in applicable if query.id in by_id]
            values = [measure.compute(query, answer, log.values) if answer.text else 0.0 for query, answer in pairs]
            averages[name] = Average.from_values(values, len(applicable))
    for name, applies_to in _TEXT_MEASURES.items():
        if name in judges:
            applicable = [query for query in questions if applies_to(query)]
            values = [log.values.get((retriever, query.id, name)) for query in applicable]
            averages[name] = Average.from_values(values, len(applicable))
    return averages | _average_hyperedge_quality(questions, log)


def _average_hyperedge_quality(queries: Sequence[Question], judgements: JudgementLog) -> dict[str, Average]:
    """Return the mean of each quality score that an LLM judge gave to extracted hyperedges, keyed by score name.

    These averages do not depend on a retriever.
    """
    keys = [[("", query.id, judge.name) for judge in HYPEREDGE_QUALITY] for query in queries]
    keys = [group for group in keys if any(key in judgements.attempts for key in group)]
    scores = [[judgements.values.get(key) for key in group] for group in keys]
    if not keys:
        return {}
    means = [statistics.fmean(filter(None, group)) if all(group) else None for group in scores]  # no score is 0
    names = [judge.name for judge in HYPEREDGE_QUALITY]
    columns = dict(zip(names, zip(*scores, strict=True), strict=True)) | {HYPEREDGES: tuple(means)}
    return {name: Average.from_values(values, len(keys)) for name, values in columns.items()}


def _average_measures(queries: Sequence[Question], answers: Mapping[str, AnswerRecord]) -> dict[str, Average]:
    averages = {name: _average_measure(name, queries, answers) for name in ANSWER_MEASURES}
    for name in _MEASURES_BY_DIFFICULTY:
        for difficulty in ("easy", "hard"):
            group = [replace(query, answers=getattr(query, difficulty)) for query in queries]
            averages[f"{name}, {difficulty}"] = _average_measure(name, group, answers)
    return {name: average for name, average in averages.items() if average.total and average.value is not None}


def _average_measure(name: str, queries: Sequence[Question], answers: Mapping[str, AnswerRecord]) -> Average:
    """Return the average of the answer measure ``name`` over all questions that have accepted answers.

    ``answers`` has the answer of each question by question id. Questions without a value are left out.
    """
    applicable = [query for query in queries if query.answers]
    values = [ANSWER_MEASURES[name](query, answers[query.id]) for query in applicable if query.id in answers]
    return Average.from_values(values, len(applicable) - values.count(None))


def _compute_graphrag_bench(_: Question, answer: AnswerRecord, values: Values) -> float | None:
    f1, cosine = values.get((*answer.key, "statement_f1")), values.get((*answer.key, ANSWER_SIMILARITY))
    return None if f1 is None or cosine is None else graphrag_bench_accuracy(f1, cosine)


def _compute_generation_evaluation(query: Question, answer: AnswerRecord, values: Values) -> float | None:
    scores = [values[key] for judge in DIMENSIONS if (key := (*answer.key, judge.name)) in values]
    complete = len(scores) == len(DIMENSIONS)
    return generation_evaluation(scores, measures.token_f1(answer.measured_text, query.answers)) if complete else None


def _get_value(judge: str) -> Callable[[Question, AnswerRecord, Values], float | None]:
    return lambda _, answer, values: values.get((*answer.key, judge))


_JUDGED_MEASURES: Mapping[str, _JudgedMeasure] = {
    "gpt_acc": _JudgedMeasure(frozenset({"gpt_acc"}), _get_value("gpt_acc")),
    "graphrag_bench": _JudgedMeasure(frozenset({"statement_f1"}), _compute_graphrag_bench),
    "g_e": _JudgedMeasure(frozenset(judge.name for judge in DIMENSIONS), _compute_generation_evaluation),
    **{judge.name: _JudgedMeasure(frozenset({judge.name}), _get_value(judge.name)) for judge in DIMENSIONS},
    C_REC: _JudgedMeasure(frozenset({C_REC}), _get_value(C_REC)),
    A_REL: _JudgedMeasure(frozenset({A_REL}), _get_value(A_REL), lambda *_: True),
    "coverage": _JudgedMeasure(frozenset({"coverage"}), _get_value("coverage")),
    "faithfulness": _JudgedMeasure(
        frozenset({"faithfulness"}),
        _get_value("faithfulness"),
        lambda _, answer: answer is None or bool(answer.measured_text),
    ),
}
"""Judged measures of answers."""

_TEXT_MEASURES: Mapping[str, Callable[[Question], bool]] = {
    "context_recall": lambda query: bool(query.answers),
    "context_relevance": lambda _: True,
    "evidence_recall": lambda query: bool(query.evidence),
    RETRIEVAL_SIMILARITY: lambda _: True,
}
"""Judged measures of the returned text, and whether each applies to a question."""
