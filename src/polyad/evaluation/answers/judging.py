"""Judging of answers and returned texts by a language model, and their comparison by vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from polyad.errors import ConfigurationError, LanguageModelError
from polyad.evaluation.answers.files import AnswerRecord, Judgement, JudgementKey, JudgementLog
from polyad.evaluation.answers.judge import OPTIONAL, TEXT, Judge, JudgeInput
from polyad.evaluation.datasets.beir import Question
from polyad.evaluation.model_replies import request_replies
from polyad.protocols.components import Embedder, LanguageModel, Progress, Reply, silent

ANSWER_SIMILARITY, RETRIEVAL_SIMILARITY = "cosine", "r_s"
"""Names of the comparisons by vectors: of an answer with the accepted answers, and of the returned text with the gold
documents, which is HyperGraphRAG's R-S (v2, appendix E)."""


@dataclass(frozen=True, slots=True)
class JudgingTask:
    """One answer to be assessed by one judge.

    Attributes:
        retriever: Retriever of the answer or the returned text.
        query_id: Id of the question.
        judge: The judge.
        judge_input: Input of the prompt.
    """

    retriever: str
    query_id: str
    judge: Judge
    judge_input: JudgeInput

    @property
    def key(self) -> JudgementKey:
        """Return the retriever, question id and judge, which identify a judgement within a run."""
        return self.retriever, self.query_id, self.judge.name


def build_judging_tasks(
    judges: Sequence[Judge],
    queries: Mapping[str, Question],
    answers: Mapping[tuple[str, str], AnswerRecord],
    texts: Mapping[tuple[str, str], str],
) -> list[JudgingTask]:
    """Return a task for each judge and question for which every section of the prompt has content.

    The returned text may be empty; its judgement needs no request.

    Args:
        judges: Judges.
        queries: Questions by id.
        answers: Answers by retriever and question id.
        texts: Returned text by retriever and question id; empty if no judge reads it.
    """
    tasks = []
    for key in dict.fromkeys([*answers, *texts]):
        retriever, id = key
        query, answer = queries[id], answers.get(key) or AnswerRecord(retriever, id, "")
        judge_input = JudgeInput(
            query.text, query.answers, answer.text, texts.get(key, ""), query.evidence, reasoning=answer.reasoning
        )
        sections = judge_input.format_sections()
        tasks += [
            JudgingTask(retriever, id, judge, judge_input)
            for judge in judges
            if all(sections[name].strip() for name in judge.sections if name not in OPTIONAL)
        ]
    return tasks


def judge_answers(
    tasks: Sequence[JudgingTask],
    model: LanguageModel,
    log: JudgementLog,
    on_judgement: Callable[[Judgement], None],
    progress: Progress = silent,
) -> None:
    """Ask a language model to judge the answers that have no judgement yet; empty text is judged 0 without a request.

    Args:
        tasks: Tasks.
        model: Language model that plays the judges.
        log: Judgements so far; updated.
        on_judgement: Called with each reply as it arrives.
        progress: Called after each reply.

    Raises:
        NoMoreRepliesError: the model refuses further requests; earlier replies were passed on.
        ConfigurationError: another model has played one of these judges, so the judgements cannot be averaged.
    """
    for name in dict.fromkeys(task.judge.name for task in tasks):
        if log.models.get(name, model.name) != model.name:
            raise ConfigurationError(
                f"{name} was judged by {log.models[name]!r}, not {model.name!r}; name the same model, or measure "
                "into another --out"
            )
    for task in tasks:
        if TEXT in task.judge.sections and not task.judge_input.text.strip() and log.is_pending(task.key):
            _add(Judgement(*task.key, "", "", 0.0), log, on_judgement)
    while pending := [task for task in tasks if log.is_pending(task.key)]:
        prompts = [task.judge.build_prompt(task.judge_input, log.attempts.get(task.key, 0)) for task in pending]

        def handle(position: int, outcome: Reply | LanguageModelError) -> None:
            task = pending[position]  # called before the next iteration
            if not isinstance(outcome, Reply):
                log.count_attempt(task.key, None)  # not written, so that the next run requests it again
                return
            value = task.judge.read_score(outcome.text, task.judge_input)
            prompt = prompts[position].user  # noqa: B023
            _add(Judgement(*task.key, prompt, outcome.text, value, model.name), log, on_judgement)

        request_replies(model, prompts, handle, progress, "judgements")


def compare_vectors(
    pairs: Mapping[tuple[str, str], tuple[str, Sequence[str]]],
    name: str,
    embedder: Embedder,
    log: JudgementLog,
    on_judgement: Callable[[Judgement], None],
) -> None:
    """Compute the cosines of answers with their most similar reference answers, except those in the run folder.

    For :data:`RETRIEVAL_SIMILARITY` an empty text counts as 0: to retrieve nothing must not raise the mean.

    Args:
        pairs: A text and its references, by retriever and question id.
        name: Name of the comparison, in place of a judge.
        embedder: Embedder of the index.
        log: Judgements so far; updated.
        on_judgement: Called with each cosine.
    """
    for (retriever, query_id), (text, references) in pairs.items():
        is_counted = bool(text.strip()) or name == RETRIEVAL_SIMILARITY
        if (retriever, query_id, name) not in log.values and is_counted and references:
            cosine = 0.0
            if text.strip():
                first, *vectors = embedder.encode([text, *references], "passage")
                cosine = max(float(first @ vector) for vector in vectors)
            _add(Judgement(retriever, query_id, name, "", "", cosine), log, on_judgement)


def _add(judgement: Judgement, log: JudgementLog, on_judgement: Callable[[Judgement], None]) -> None:
    on_judgement(judgement)
    log.add(judgement)
