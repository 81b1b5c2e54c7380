"""Answers of a run and judgements of them: written as they come, asked for once, read back for every table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyad.errors import ConfigurationError, LanguageModelError, NoMoreRepliesError
from polyad.evaluation.answers.judge import TEXT, Judge, JudgeInput
from polyad.evaluation.datasets.beir import Question
from polyad.model import Answer
from polyad.protocols.components import Embedder, LanguageModel, Progress, Prompt, Reply, silent

MAX_ATTEMPTS = 3
"""At a judgement that can be read."""

ANSWER_SIMILARITY, RETRIEVAL_SIMILARITY = "cosine", "r_s"
"""Comparisons by vectors: of an answer with the accepted ones, and of what was retrieved with the gold documents, which
is HyperGraphRAG's R-S (v2, appendix E)."""


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The answer to a question from what one retriever found.

    Attributes:
        retriever, query_id: Which question to whom.
        text: The answer; empty where no evidence was found.
        cited: Ids of the passages it cites.
        tokens: Of the language model.
        milliseconds: Finding and answering, beside others that were answered at the same time.
        note: Why there is no answer, or it was cut.
        names: Of an answer that was asked for as names, best first; None of one that is a text.
    """

    retriever: str
    query_id: str
    text: str
    cited: tuple[str, ...] = ()
    tokens: int = 0
    milliseconds: float = 0.0
    note: str = ""
    names: tuple[str, ...] | None = None

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
            **({} if self.names is None else {"names": list(self.names)}),
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> AnswerRecord:
        """What :meth:`to_json` wrote. Raises KeyError or TypeError where it did not."""
        return cls(
            str(line["retriever"]),
            str(line["query_id"]),
            str(line["answer"]),
            tuple(line["cited"]),
            int(line["llm_tokens"]),
            float(line["milliseconds"]),
            str(line["note"]),
            tuple(map(str, line["names"])) if "names" in line else None,
        )


def build_answer_record(
    retriever: str, query: Question, answer: Answer, tokens: int, milliseconds: float, *, in_names: bool = False
) -> AnswerRecord:
    """The record of an answer; ``in_names`` says whether it was asked for in names."""
    cited = tuple(dict.fromkeys(citation.passage_id for citation in answer.citations))
    names = answer.entities if in_names else None
    return AnswerRecord(retriever, query.id, answer.text, cited, tokens, milliseconds, answer.note, names)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge replied, and what that was worth; or what the embedder found, without prompt and reply.

    Attributes:
        retriever, query_id: Of the answer.
        judge: Its name.
        prompt: As asked.
        reply: As it came; empty where none did.
        value: In [0, 1], or a cosine; None where the reply could not be read.
        model: Who was asked; empty where nobody was.
    """

    retriever: str
    query_id: str
    judge: str
    prompt: str
    reply: str
    value: float | None
    model: str = ""

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
            "model": self.model,
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
            str(line.get("model", "")),
        )


@dataclass(slots=True)
class JudgementLog:
    """What has been judged so far: values, how often each was asked for, and by whom each judge is played."""

    values: dict[tuple[str, str, str], float] = field(default_factory=dict)
    attempts: dict[tuple[str, str, str], int] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)

    def add(self, judgement: Judgement) -> None:
        """Count an attempt, and keep its value where it has one."""
        self.attempts[judgement.key] = self.attempts.get(judgement.key, 0) + 1
        if judgement.model:
            self.models.setdefault(judgement.judge, judgement.model)
        if judgement.value is not None:
            self.values[judgement.key] = judgement.value

    def is_open(self, key: tuple[str, str, str]) -> bool:
        """Whether to ask for a judgement, once more or for the first time."""
        return key not in self.values and self.attempts.get(key, 0) < MAX_ATTEMPTS


@dataclass(frozen=True, slots=True)
class JudgingTask:
    """What is to be judged by whom.

    Attributes:
        retriever, query_id: Whose answer, or what it found, to which question.
        judge: To be asked.
        shown: To the judge.
    """

    retriever: str
    query_id: str
    judge: Judge
    shown: JudgeInput

    @property
    def key(self) -> tuple[str, str, str]:
        """Of its judgement."""
        return self.retriever, self.query_id, self.judge.name


def build_judging_tasks(
    judges: Sequence[Judge],
    queries: Mapping[str, Question],
    answers: Mapping[tuple[str, str], AnswerRecord],
    found: Mapping[tuple[str, str], str],
) -> list[JudgingTask]:
    """What some judges can be asked about: where there is something in each section that they are shown.

    What was found may be nothing: then there is no need to ask.

    Args:
        judges: Each is asked about each question.
        queries: By id.
        answers: By retriever and question.
        found: The text of what was found, likewise; empty where no judge reads it.
    """
    made = []
    for retriever, id in dict.fromkeys([*answers, *found]):
        query, given = queries[id], answers.get((retriever, id))
        shown = JudgeInput(
            query.text, query.answers, given.text if given else "", found.get((retriever, id), ""), query.evidence
        )
        sections = shown.sections()
        made += [
            JudgingTask(retriever, id, judging, shown)
            for judging in judges
            if all(sections[name].strip() for name in judging.shows if name != TEXT)
        ]
    return made


def judge_answers(
    wanted: Sequence[JudgingTask],
    model: LanguageModel,
    known: JudgementLog,
    keep: Callable[[Judgement], None],
    progress: Progress = silent,
) -> None:
    """Have cases judged, as far as that has not been done; a text that was to be found and is empty is worth 0.

    Args:
        wanted: The cases.
        model: Who the judges are.
        known: What has been judged; is kept up to date.
        keep: Called with each reply as it comes.
        progress: Told after each.

    Raises:
        NoMoreRepliesError: asking further is of no use; what came is kept.
        ConfigurationError: another model has been one of these judges: their judgements are no average.
    """
    for name in dict.fromkeys(case.judge.name for case in wanted):
        if known.models.get(name, model.name) != model.name:
            raise ConfigurationError(
                f"{name} was judged by {known.models[name]!r}, not {model.name!r}; name the same model, or measure "
                "into another --out"
            )
    for case in wanted:
        if TEXT in case.judge.shows and not case.shown.text.strip() and known.is_open(case.key):
            nothing = Judgement(*case.key, "", "", 0.0)
            keep(nothing)
            known.add(nothing)
    while pending := [case for case in wanted if known.is_open(case.key)]:
        prompts = [case.judge.prompt(case.shown, known.attempts.get(case.key, 0)) for case in pending]
        _ask(pending, prompts, model, known, keep, progress)


def _ask(
    pending: Sequence[JudgingTask],
    prompts: Sequence[Prompt],
    model: LanguageModel,
    known: JudgementLog,
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
        case = pending[position]
        reply = outcome.text if isinstance(outcome, Reply) else ""
        made = Judgement(*case.key, prompts[position].user, reply, case.judge.read(reply, case.shown), model.name)
        if isinstance(outcome, Reply):  # a failure counts for this run: the next one asks again
            keep(made)
        known.add(made)

    for outcome in model.complete(prompts, take):
        if isinstance(outcome, NoMoreRepliesError):
            raise outcome


def compare_vectors(
    pairs: Mapping[tuple[str, str], tuple[str, Sequence[str]]],
    name: str,
    embedder: Embedder,
    known: JudgementLog,
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
