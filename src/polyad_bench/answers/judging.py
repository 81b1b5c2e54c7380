"""Judging of answers and returned texts by a language model, and their comparison by vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from polyad.errors import ConfigurationError, LanguageModelError
from polyad.protocols.components import Embedder, LanguageModel, Progress, Reply, silent
from polyad_bench.answers.judges import OPTIONAL, TEXT, Judge, JudgeInput, parse_reply, request_replies
from polyad_bench.answers.records import AnswerRecord, Judgement, JudgementKey, JudgementLog
from polyad_bench.datasets.beir import Question
from polyad_bench.measures.answers import Split, answer_relevance, context_recall

ANSWER_SIMILARITY, RETRIEVAL_SIMILARITY = "cosine", "r_s"
"""Names of the comparisons by vectors: of an answer with the accepted answers, and of the returned text with the gold
documents, which is HyperGraphRAG's R-S (v2, appendix E)."""

C_REC, A_REL = "c_rec", "a_rel"
"""Names of the measures that count the tokens of a tokenizer: C-Rec and A-Rel of HyperGraphRAG v1, appendix B."""


@dataclass(frozen=True, slots=True)
class JudgingTask:
    """A request to an LLM judge (one criterion) to score one answer, or the text retrieved for one question.

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
        """The key of a score within an evaluation run: retriever, question id and name of the judge."""
        return self.retriever, self.query_id, self.judge.name


def build_judging_tasks(
    judges: Sequence[Judge],
    queries: Mapping[str, Question],
    answers: Mapping[tuple[str, str], AnswerRecord],
    texts: Mapping[tuple[str, str], str],
) -> list[JudgingTask]:
    """Return a task for each pair of a judge and a question, unless a text that the judge needs is missing.

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
            query.text,
            query.answers,
            answer.measured_text,
            texts.get(key, ""),
            query.evidence,
            reasoning=answer.reasoning,
        )
        sections = judge_input.format_sections()
        tasks += [
            JudgingTask(retriever, id, judge, judge_input)
            for judge in judges
            if all(sections[name].strip() for name in judge.input_tags - OPTIONAL)
        ]
    return tasks


def judge_answers(
    tasks: Sequence[JudgingTask],
    model: LanguageModel,
    judgements: JudgementLog,
    progress: Progress = silent,
) -> None:
    """Request the score of each task that ``judgements`` lacks from a language model, and add it to ``judgements``.

    A judge of retrieved text scores an empty text as 0 without a request.

    Args:
        tasks: Tasks.
        model: Language model that plays the judges.
        judgements: Judgements so far; each reply is added as it arrives.
        progress: Called after each reply.

    Raises:
        NoMoreRepliesError: the model refuses further requests; earlier replies were passed on.
        ConfigurationError: another model has played one of these judges, so the judgements cannot be averaged.
    """
    for judge in {task.judge.name: task.judge for task in tasks}.values():
        _require_same_model(judge.name, model.name, judgements)
        _require_same_requests(judge, judgements)
    for task in tasks:
        if TEXT in task.judge.sections and not task.judge_input.text.strip() and judgements.is_pending(task.key):
            judgements.add(Judgement(*task.key, "", "", 0.0))
    if lists := [
        replace(task, judge=judge)
        for task in tasks
        if judgements.is_pending(task.key)
        for judge in task.judge.lists.values()
    ]:
        judge_answers(lists, model, judgements, progress)
        tasks = [listed for task in tasks if (listed := _insert_statements(task, judgements))]
    while pending := [task for task in tasks if judgements.is_pending(task.key)]:
        prompts = [task.judge.build_prompt(task.judge_input, judgements.attempts.get(task.key, 0)) for task in pending]

        def handle(position: int, outcome: Reply | LanguageModelError) -> None:
            task = pending[position]  # ``handle`` is called before the next iteration
            if not isinstance(outcome, Reply):
                judgements.count_attempt(task.key)  # not written to the file: the next run sends the request again
                return
            value = task.judge.read_score(outcome.text, task.judge_input)
            prompt = prompts[position].user  # noqa: B023
            judgements.add(Judgement(*task.key, prompt, outcome.text, value, model.name))

        request_replies(model, prompts, handle, progress, "judgements")


def _insert_statements(task: JudgingTask, judgements: JudgementLog) -> JudgingTask | None:
    """Return a copy of the task whose prompt contains the statements that a judge listed in earlier replies.

    Return None if the statements of a section are missing.
    """
    listed = {}
    for tag, judge in task.judge.lists.items():
        reply = parse_reply(judgements.replies.get((*task.key[:2], judge.name), ""), judge.schema)
        if reply is None:
            return None
        listed[tag] = reply["statements"]
    return replace(task, judge_input=replace(task.judge_input, listed=listed))


def add_cosine_scores(
    pairs: Mapping[tuple[str, str], tuple[str, Sequence[str]]],
    measure: str,
    embedder: Embedder,
    judgements: JudgementLog,
) -> None:
    """Add to ``judgements`` the highest cosine similarity of each text to its reference texts, as score ``measure``.

    For :data:`RETRIEVAL_SIMILARITY` an empty text counts as 0: to retrieve nothing must not raise the mean.

    Args:
        pairs: A text and its references, by retriever and question id.
        measure: Name of the comparison, in place of a judge.
        embedder: Embedder of the index.
        judgements: Judgements so far; updated.
    """
    for (retriever, query_id), (text, references) in pairs.items():
        is_counted = bool(text.strip()) or measure == RETRIEVAL_SIMILARITY
        if (retriever, query_id, measure) not in judgements.values and is_counted and references:
            cosine = 0.0
            if text.strip():
                first, *vectors = embedder.encode([text, *references], "passage")
                cosine = max(float(first @ vector) for vector in vectors)
            judgements.add(Judgement(retriever, query_id, measure, "", "", cosine))


def add_token_shares(
    answers: Iterable[AnswerRecord],
    queries: Mapping[str, Question],
    split: Split,
    tokenizer: str,
    log: JudgementLog,
) -> None:
    """Add to ``log`` two scores of each answer: the shares of the tokens of accepted answers and of the question in it.

    These are HyperGraphRAG's measures C-Rec and A-Rel. Answers whose values are in ``log`` are skipped.

    Args:
        answers: Answers.
        queries: Questions by id.
        split: Returns the tokens of a text.
        tokenizer: Name of the tokenizer, stored with the values.
        log: Judgements so far; updated.

    Raises:
        ConfigurationError: another tokenizer has counted earlier answers, so the values cannot be averaged.
    """
    for name in (C_REC, A_REL):
        _require_same_model(name, tokenizer, log)
    for answer in answers:
        query = queries[answer.query_id]
        values = {
            C_REC: context_recall(answer.measured_text, query.answers, split),
            A_REL: answer_relevance(query.text, answer.measured_text, split),
        }
        for name, value in values.items():
            if value is not None and (*answer.key, name) not in log.values:
                log.add(Judgement(*answer.key, name, "", "", value, tokenizer))


def _require_same_model(name: str, model: str, log: JudgementLog) -> None:
    if log.models.get(name, model) != model:
        raise ConfigurationError(
            f"{name} was judged by {log.models[name]!r}, not {model!r}; name the same model, or another folder"
        )


def _require_same_requests(judge: Judge, log: JudgementLog) -> None:
    lists = {name for name in log.models if name.startswith(f"{judge.name}.")}
    if judge.name in log.models and lists != {each.name for each in judge.lists.values()}:
        raise ConfigurationError(
            f"{judge.name} was judged in {1 + len(lists)} requests for each answer, not {1 + len(judge.lists)}; set "
            "judge_requests as before, or measure into another --out"
        )
