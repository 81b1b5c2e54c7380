"""What answers are worth, as averages over the questions: of measures without a model, and of judgements."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from polyad.evaluation.answers.judges import DIMENSIONS, generation_evaluation, graphrag_bench_accuracy
from polyad.evaluation.answers.judging import ANSWER_SIMILARITY, RETRIEVAL_SIMILARITY, AnswerRecord, JudgementLog
from polyad.evaluation.datasets.beir import Question
from polyad.evaluation.measures.answers import (
    answer_relevance_in_words,
    contain_accuracy,
    context_recall_in_words,
    entity_recall,
    exact_match,
    hyperrag_exact_match,
    name_hits,
    name_reciprocal_rank,
    rouge_l,
    token_f1,
)

MIN_JUDGED_SHARE = 0.95
"""Share of the answers that must be judged for an average to be shown without a mark."""

_Measure = Callable[[Question, AnswerRecord, Sequence[str]], float | None]
"""Of an answer to a question, against some accepted answers; None where it says nothing about it."""


def _said(one: AnswerRecord) -> str:
    """The answer as one: of names, the first."""
    return one.text if not one.names else one.names[0]


ANSWER_MEASURES: Mapping[str, _Measure] = {
    "em": lambda _, one, accepted: exact_match(_said(one), accepted),
    "hyperrag_em": lambda _, one, accepted: hyperrag_exact_match(_said(one), accepted),
    "f1": lambda _, one, accepted: token_f1(one.text, accepted),
    "contain_acc": lambda _, one, accepted: contain_accuracy(one.text, accepted),
    "rouge_l": lambda _, one, accepted: rouge_l(one.text, accepted),
    "c_rec_words": lambda _, one, accepted: context_recall_in_words(one.text, accepted),
    "c_erec": lambda _, one, accepted: entity_recall(one.text, accepted),
    "a_rel_words": lambda query, one, _: answer_relevance_in_words(query.text, one.text),
    "mrr": lambda _, one, accepted: None if one.names is None else name_reciprocal_rank(one.names, accepted),
    "hits@10": lambda _, one, accepted: None if one.names is None else name_hits(one.names, accepted),
}
"""Measures of an answer against the accepted ones, without a model; of names, ``em`` and ``hyperrag_em`` are those of
the first."""

_BY_DIFFICULTY = ("em", "hyperrag_em", "mrr", "hits@10")
"""Also over easy and over hard answers, where a data set tells them apart (HyperRAG, WikiTopics)."""


@dataclass(frozen=True, slots=True)
class Average:
    """A mean, and of how many of those that it should be of; ``value`` is None where there is none."""

    value: float | None
    counted: int
    asked: int

    @property
    def is_enough(self) -> bool:
        """Whether so few are missing that the mean may stand for all."""
        return self.asked > 0 and self.counted >= MIN_JUDGED_SHARE * self.asked

    def to_json(self) -> dict[str, object]:
        """As ``polyad eval --json`` prints it."""
        value = None if self.value is None else round(self.value, 4)
        return {"value": value, "counted": self.counted, "asked": self.asked, "enough": self.is_enough}

    def shown(self) -> str:
        """In per cent; with a star and the counts where too few were counted."""
        value = "-" if self.value is None else f"{100 * self.value:.1f}"
        return value if self.is_enough else f"{value}* ({self.counted} / {self.asked})"


def average_answers(
    retriever: str,
    queries: Iterable[Question],
    answers: Mapping[tuple[str, str], AnswerRecord],
    judgements: JudgementLog,
) -> dict[str, Average]:
    """Every measure of what one retriever's answers are worth; empty where it has none, and nothing was judged.

    Of the questions that have what a measure compares with. A question without an answer counts as missing, not as
    wrong: a model that could not be reached has said nothing. An empty answer, for want of evidence, is wrong.

    Args:
        retriever: Its name.
        queries: All that were to be answered.
        answers: By retriever and question.
        judgements: Of them.
    """
    asked = list(queries)
    given = {query.id: answers[retriever, query.id] for query in asked if (retriever, query.id) in answers}
    judged_by = {key[2] for key in judgements.attempts if key[0] == retriever}
    return {
        **(_written(asked, given) if given else {}),
        **_judged(retriever, asked, given, judgements.values, judged_by),
    }


def _written(asked: Sequence[Question], given: Mapping[str, AnswerRecord]) -> dict[str, Average]:
    found = {
        name: _over(measure, asked, given, lambda query: query.answers) for name, measure in ANSWER_MEASURES.items()
    }
    for name in _BY_DIFFICULTY:
        found[f"{name}, easy"] = _over(ANSWER_MEASURES[name], asked, given, lambda query: query.easy)
        found[f"{name}, hard"] = _over(ANSWER_MEASURES[name], asked, given, lambda query: query.hard)
    return {name: average for name, average in found.items() if average.asked and average.value is not None}


def _over(
    measure: _Measure,
    asked: Sequence[Question],
    given: Mapping[str, AnswerRecord],
    accepted: Callable[[Question], Sequence[str]],
) -> Average:
    """The mean over the questions with accepted answers, but for those that the measure says nothing about."""
    wanted = [query for query in asked if accepted(query)]
    values = [measure(query, given[query.id], accepted(query)) for query in wanted if query.id in given]
    counted = [value for value in values if value is not None]
    return _average(counted, len(wanted) - (len(values) - len(counted)))


def _judged(
    retriever: str,
    asked: Sequence[Question],
    given: Mapping[str, AnswerRecord],
    values: _Values,
    judged_by: Collection[str],
) -> dict[str, Average]:
    found = {}
    for name, (judges, is_asked, value_of) in _OF_ANSWERS.items():
        if not judges.isdisjoint(judged_by):
            wanted = [query for query in asked if is_asked(query, given.get(query.id))]
            each = [
                value_of(query, given[query.id], values) if given[query.id].text else 0.0
                for query in wanted
                if query.id in given
            ]
            found[name] = _average([value for value in each if value is not None], len(wanted))
    for name, is_of in _OF_TEXTS.items():
        if name in judged_by:
            wanted = [query for query in asked if is_of(query)]
            told = [values.get((retriever, query.id, name)) for query in wanted]
            found[name] = _average([value for value in told if value is not None], len(wanted))
    return found


def _average(values: Sequence[float], asked: int) -> Average:
    return Average(statistics.fmean(values) if values else None, len(values), asked)


_Values = Mapping[tuple[str, str, str], float]


def _graphrag_bench(_: Question, one: AnswerRecord, values: _Values) -> float | None:
    f1, cosine = values.get((*one.key, "statement_f1")), values.get((*one.key, ANSWER_SIMILARITY))
    return None if f1 is None or cosine is None else graphrag_bench_accuracy(f1, cosine)


def _g_e(query: Question, one: AnswerRecord, values: _Values) -> float | None:
    scores = [values.get((*one.key, dimension.name)) for dimension in DIMENSIONS]
    given = [score for score in scores if score is not None]
    return generation_evaluation(given, token_f1(one.text, query.answers)) if len(given) == len(scores) else None


def _has_answers(query: Question, _: AnswerRecord | None = None) -> bool:
    return bool(query.answers)


def _says_something(_: Question, one: AnswerRecord | None) -> bool:
    return one is None or bool(one.text)


_OfAnswer = Callable[[Question, AnswerRecord, _Values], float | None]

_OF_ANSWERS: Mapping[str, tuple[frozenset[str], Callable[[Question, AnswerRecord | None], bool], _OfAnswer]] = {
    "gpt_acc": (frozenset({"gpt_acc"}), _has_answers, lambda _, one, values: values.get((*one.key, "gpt_acc"))),
    "graphrag_bench": (frozenset({"statement_f1"}), _has_answers, _graphrag_bench),
    "g_e": (frozenset(dimension.name for dimension in DIMENSIONS), _has_answers, _g_e),
    "coverage": (frozenset({"coverage"}), _has_answers, lambda _, one, values: values.get((*one.key, "coverage"))),
    "faithfulness": (
        frozenset({"faithfulness"}),
        _says_something,
        lambda _, one, values: values.get((*one.key, "faithfulness")),
    ),
}
"""Of each judged measure of an answer: the judges that it is made of, the questions that it is of, and its value where
all of them have given one."""

_OF_TEXTS: Mapping[str, Callable[[Question], bool]] = {
    "context_recall": _has_answers,
    "context_relevance": lambda _: True,
    "evidence_recall": lambda query: bool(query.evidence),
    RETRIEVAL_SIMILARITY: lambda _: True,
}
"""Of each judged measure of what was retrieved: the questions that it is of."""
