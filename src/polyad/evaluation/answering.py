"""Answers of a run and judgements of them: written as they come, asked for once, read back for every table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.evaluation.answer_measures import contains, contains_letters, exact_match, rouge_l, token_f1
from polyad.evaluation.datasets import Question
from polyad.evaluation.judges import DIMENSIONS, Judge, Shown, generation_evaluation, graphrag_bench_accuracy
from polyad.model import Answer
from polyad.protocols import Embedder, LanguageModel, Progress, Prompt, Reply, silent

ATTEMPTS = 3
"""At a judgement that can be read."""

NEAREST, RETRIEVED = "cosine", "r_s"
"""Comparisons by vectors: of an answer with the accepted ones, and of what was retrieved with the gold documents, which
is HyperGraphRAG's R-S (v2, appendix E)."""

ENOUGH = 0.95
"""Share of the answers that must be judged for an average to be shown without a mark."""

WRITTEN: Mapping[str, Callable[[str, Sequence[str]], float]] = {
    "em": exact_match,
    "f1": token_f1,
    "contain_acc": contains,
    "contain_letters": contains_letters,
    "rouge_l": rouge_l,
}
"""Measures of an answer against the accepted ones, without a model."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question from what one retriever found.

    Attributes:
        retriever, query_id: Which question to whom.
        text: The answer; empty where no evidence was found.
        cited: Ids of the passages it cites.
        tokens: Of the language model.
        milliseconds: Finding and answering, beside others that were answered at the same time.
        note: Why there is no answer, or it was cut.
    """

    retriever: str
    query_id: str
    text: str
    cited: tuple[str, ...] = ()
    tokens: int = 0
    milliseconds: float = 0.0
    note: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """There is one of each."""
        return self.retriever, self.query_id

    def to_json(self) -> dict[str, object]:
        """A line of ``answers.jsonl``."""
        return {
            "query_id": self.query_id,
            "retriever": self.retriever,
            "answer": self.text,
            "cited": list(self.cited),
            "llm_tokens": self.tokens,
            "milliseconds": self.milliseconds,
            "note": self.note,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Answered:
        """What :meth:`to_json` wrote. Raises KeyError or TypeError where it did not."""
        return cls(
            str(line["retriever"]),
            str(line["query_id"]),
            str(line["answer"]),
            tuple(line["cited"]),
            int(line["llm_tokens"]),
            float(line["milliseconds"]),
            str(line["note"]),
        )


def answered(retriever: str, query: Question, answer: Answer, tokens: int, milliseconds: float) -> Answered:
    """The record of an answer."""
    cited = tuple(dict.fromkeys(citation.passage_id for citation in answer.citations))
    return Answered(retriever, query.id, answer.text, cited, tokens, milliseconds, answer.note)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge replied, and what that was worth; or what the embedder found, without prompt and reply.

    Attributes:
        retriever, query_id: Of the answer.
        judge: Its name.
        prompt: As asked.
        reply: As it came; empty where none did.
        value: In [0, 1], or a cosine; None where the reply could not be read.
    """

    retriever: str
    query_id: str
    judge: str
    prompt: str
    reply: str
    value: float | None

    @property
    def key(self) -> tuple[str, str, str]:
        """What was to be judged."""
        return self.retriever, self.query_id, self.judge

    def to_json(self) -> dict[str, object]:
        """A line of ``judgements.jsonl``."""
        return {
            "query_id": self.query_id,
            "retriever": self.retriever,
            "judge": self.judge,
            "prompt": self.prompt,
            "reply": self.reply,
            "value": self.value,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Judgement:
        """What :meth:`to_json` wrote. Raises KeyError or TypeError where it did not."""
        return cls(
            str(line["retriever"]),
            str(line["query_id"]),
            str(line["judge"]),
            str(line["prompt"]),
            str(line["reply"]),
            None if line["value"] is None else float(line["value"]),
        )


@dataclass(slots=True)
class Judgements:
    """What has been judged so far: values, and how often each was asked for."""

    values: dict[tuple[str, str, str], float] = field(default_factory=dict)
    attempts: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def add(self, judgement: Judgement) -> None:
        """Count an attempt, and keep its value where it has one."""
        self.attempts[judgement.key] = self.attempts.get(judgement.key, 0) + 1
        if judgement.value is not None:
            self.values[judgement.key] = judgement.value

    def is_open(self, key: tuple[str, str, str]) -> bool:
        """Whether to ask for a judgement, once more or for the first time."""
        return key not in self.values and self.attempts.get(key, 0) < ATTEMPTS


def judge(
    answers: Iterable[Answered],
    queries: Mapping[str, Question],
    judges: Sequence[Judge],
    model: LanguageModel,
    known: Judgements,
    keep: Callable[[Judgement], None],
    progress: Progress = silent,
) -> None:
    """Have answers judged, each by each judge, as far as that has not been done.

    Args:
        answers: With a text; to questions with accepted answers.
        queries: By id.
        judges: To be asked.
        model: Who they are.
        known: What has been judged; is kept up to date.
        keep: Called with each reply as it comes.
        progress: Told after each.

    Raises:
        NoMoreRepliesError: asking further is of no use; what came is kept.
    """
    wanted = [
        (one, judging, Shown(query.text, query.answers, one.text))
        for one in answers
        for query in [queries[one.query_id]]
        if one.text and query.answers
        for judging in judges
    ]
    while pending := [item for item in wanted if known.is_open((*item[0].key, item[1].name))]:
        attempts = [known.attempts.get((*one.key, judging.name), 0) for one, judging, _ in pending]
        prompts = [item[1].prompt(item[2], attempt) for item, attempt in zip(pending, attempts, strict=True)]
        _ask(pending, prompts, model, known, keep, progress)


def _ask(
    pending: Sequence[tuple[Answered, Judge, Shown]],
    prompts: Sequence[Prompt],
    model: LanguageModel,
    known: Judgements,
    keep: Callable[[Judgement], None],
    progress: Progress,
) -> None:
    done = 0

    def take(position: int, outcome: Reply | LanguageModelError) -> None:
        nonlocal done
        done += 1
        progress(done, len(pending), "judgements")
        if isinstance(outcome, NoMoreRepliesError):
            return
        one, judging, _ = pending[position]
        reply = outcome.text if isinstance(outcome, Reply) else ""
        made = Judgement(*one.key, judging.name, prompts[position].user, reply, judging.read(reply))
        keep(made)
        known.add(made)

    for outcome in model.complete(prompts, take):
        if isinstance(outcome, NoMoreRepliesError):
            raise outcome


def compare(
    pairs: Mapping[tuple[str, str], tuple[str, Sequence[str]]],
    name: str,
    embedder: Embedder,
    known: Judgements,
    keep: Callable[[Judgement], None],
) -> None:
    """Have texts compared by their vectors, as far as that has not been done: the cosine to the nearest other text.

    Args:
        pairs: A text and those it is compared with, by retriever and question.
        name: Of the comparison, in the place of a judge's.
        embedder: Of the index.
        known: What has been judged; is kept up to date.
        keep: Called with each cosine.
    """
    for (retriever, query_id), (text, others) in pairs.items():
        if (retriever, query_id, name) not in known.values and text.strip() and others:
            first, *vectors = embedder.encode([text, *others], "passage")
            cosine = max(float(first @ vector) for vector in vectors)
            made = Judgement(retriever, query_id, name, "", "", cosine)
            keep(made)
            known.add(made)


@dataclass(frozen=True, slots=True)
class Average:
    """A mean, and of how many of those that it should be of; ``value`` is None where there is none."""

    value: float | None
    counted: int
    asked: int

    @property
    def is_enough(self) -> bool:
        """Whether so few are missing that the mean may stand for all."""
        return self.asked > 0 and self.counted >= ENOUGH * self.asked

    def to_json(self) -> dict[str, object]:
        """As ``polyad eval --json`` prints it."""
        value = None if self.value is None else round(self.value, 4)
        return {"value": value, "counted": self.counted, "asked": self.asked, "enough": self.is_enough}

    def shown(self) -> str:
        """In per cent; with a star and the counts where too few were counted."""
        value = "-" if self.value is None else f"{100 * self.value:.1f}"
        return value if self.is_enough else f"{value}* ({self.counted} / {self.asked})"


def averages(
    retriever: str, queries: Iterable[Question], answers: Mapping[tuple[str, str], Answered], judgements: Judgements
) -> dict[str, Average]:
    """Every measure of what one retriever's answers are worth; empty where it has none, and nothing was judged.

    Of the questions that have accepted answers; R-S of all. A question without an answer counts as missing, not as
    wrong: a model that could not be reached has said nothing. An empty answer, for want of evidence, is wrong.

    Args:
        retriever: Its name.
        queries: All that were to be answered.
        answers: By retriever and question.
        judgements: Of them.
    """
    asked = list(queries)
    wanted = [query for query in asked if query.answers]
    given = [(query, answers[retriever, query.id]) for query in wanted if (retriever, query.id) in answers]
    found = {}
    if given:
        found = {
            name: _average([measure(one.text, query.answers) for query, one in given], len(wanted))
            for name, measure in WRITTEN.items()
        }
    judged_by = {key[2] for key in judgements.attempts if key[0] == retriever}
    for name, (judges, value_of) in _JUDGED.items():
        if judged_by & judges:
            values = [value_of(query, one, judgements.values) if one.text else 0.0 for query, one in given]
            found[name] = _average([value for value in values if value is not None], len(wanted))
    if RETRIEVED in judged_by:
        cosines = [judgements.values.get((retriever, query.id, RETRIEVED)) for query in asked]
        found[RETRIEVED] = _average([value for value in cosines if value is not None], len(asked))
    return found


def _average(values: Sequence[float], asked: int) -> Average:
    return Average(statistics.fmean(values) if values else None, len(values), asked)


_Values = Mapping[tuple[str, str, str], float]


def _gpt_acc(_: Question, one: Answered, values: _Values) -> float | None:
    return values.get((*one.key, "gpt_acc"))


def _graphrag_bench(_: Question, one: Answered, values: _Values) -> float | None:
    f1, cosine = values.get((*one.key, "statement_f1")), values.get((*one.key, NEAREST))
    return None if f1 is None or cosine is None else graphrag_bench_accuracy(f1, cosine)


def _g_e(query: Question, one: Answered, values: _Values) -> float | None:
    scores = [values.get((*one.key, dimension.name)) for dimension in DIMENSIONS]
    given = [score for score in scores if score is not None]
    return generation_evaluation(given, token_f1(one.text, query.answers)) if len(given) == len(scores) else None


_JUDGED = {
    "gpt_acc": ({"gpt_acc"}, _gpt_acc),
    "graphrag_bench": ({"statement_f1"}, _graphrag_bench),
    "g_e": ({dimension.name for dimension in DIMENSIONS}, _g_e),
}
"""The judges that each judged measure is made of, and its value where all of them have given one."""
