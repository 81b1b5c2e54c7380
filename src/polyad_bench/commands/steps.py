"""Steps that the measuring commands share: index a benchmark, ask its questions, answer them and judge the answers."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import open_engine, split_names
from polyad.cli.settings import Configuration, require_one_of
from polyad.cli.streams import warn
from polyad.config import LanguageModelSettings
from polyad.engine import Engine, loaders, registry
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError, LanguageModelError, NoLanguageModelError, NoMoreRepliesError
from polyad.indexing.run import IndexReport
from polyad.indexing.split import SentenceSplitter
from polyad.model import Evidence
from polyad.protocols.components import Progress
from polyad.text.prompts import Prompts
from polyad.text.words import format_count
from polyad_bench.answers import judging as answer_judging
from polyad_bench.answers.judges import HYPEREDGES, JUDGES, TEXT, Judge, JudgeInput, get_judges
from polyad_bench.answers.judging import (
    ANSWER_SIMILARITY,
    RETRIEVAL_SIMILARITY,
    JudgingTask,
    add_cosine_scores,
    add_token_shares,
    build_judging_tasks,
)
from polyad_bench.answers.records import (
    ANSWERS,
    JUDGEMENTS,
    AnswerRecord,
    open_judgements,
    read_answers,
    read_hyperedge_sets,
    write_hyperedge_sets,
)
from polyad_bench.commands.json_shapes import eval_index_json
from polyad_bench.datasets.beir import Dataset, Question, get_document_texts
from polyad_bench.datasets.selection import load_training_questions
from polyad_bench.files import RecordFile
from polyad_bench.measures.answers import load_tokenizer
from polyad_bench.measures.evidence import StatementCoverage, StatementRecall
from polyad_bench.runs import retriever_evaluation as retriever_evaluation
from polyad_bench.runs.manifest import build_manifest
from polyad_bench.runs.records import QuestionRecord, compute_statistics, find_missing_questions
from polyad_bench.runs.retriever_evaluation import (
    WITHOUT_GOLD,
    WORD_BUDGETS,
    MeasureCoverage,
    read_records_without_gold,
)
from polyad_bench.runs.run_folder import Run, RunWriter, load_run, write_derived_files

JUDGED = (*JUDGES, RETRIEVAL_SIMILARITY)
"""Measures of answers and of evidence that need a language model or the embedder."""

Answers = Annotated[
    bool, typer.Option("--answers", help="Also answer each question with the language model; needs --out.")
]
Judged = Annotated[
    str | None,
    typer.Option("--judge", metavar="A,B,...", help=f"Judge the answers by: {', '.join(JUDGED)}; needs --out."),
]
JudgeModel = Annotated[
    str | None, typer.Option("--judge-model", metavar="NAME", help="Language model of the judge. [--model]")
]

_MAX_LISTED = 5
"""Maximum number of failures that are listed."""

_MAX_THREADS = 8
"""Maximum number of questions answered at once: the language model takes seconds, but searches share the processor."""


def parse_judges(judged: str | None) -> tuple[str, ...]:
    """Return the measures in the option ``--judge A,B``, which a language model judges, without duplicates.

    Raises:
        SettingError: A name is no such measure.
    """
    names = split_names(judged)
    for name in names:
        require_one_of("judge", name, JUDGED)
    return names


def replace_language_model(settings: Configuration, model_name: str | None) -> Configuration:
    """Return the settings with the language model ``model_name``; unchanged if the name is empty."""
    if not model_name:
        return settings
    model = settings.language_model
    return replace(
        settings, language_model=replace(model, model=model_name) if model else LanguageModelSettings(model=model_name)
    )


def require_models(
    retrievers: Sequence[str], judges: Sequence[str], judging: Configuration, settings: Configuration, answers: bool
) -> None:
    """Raise an error for an unknown retriever, or if a language model is needed and none is set.

    Raises:
        SettingError: There is no such retriever.
        NoLanguageModelError: No language model is configured.
    """
    for name in retrievers:
        require_one_of("retriever", name, registry.retrievers)
        if registry.retrievers[name].needs_language_model and settings.language_model is None:
            raise NoLanguageModelError(f"the retriever {name!r}")
    if answers and settings.language_model is None:
        raise NoLanguageModelError("--answers")
    if set(judges) - {RETRIEVAL_SIMILARITY} and judging.language_model is None:
        raise NoLanguageModelError("--judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """Measures retrievers on the questions of a benchmark; questions with a stored result are skipped.

    Attributes:
        settings: Settings of the command.
        dataset: Benchmark with the questions to ask.
        retrievers: Names of retrievers.
        where: Filter of the documents to search; gold documents that it excludes do not count. None for all.
        answers: Whether to answer the questions too; needs the folder of a run.
        judges: Judged measures; for ``hyperedges`` their source passages are stored.
        refusal: Whether to ask the questions also without their gold documents; needs the folder of a run.
        max_cost: Maximum cost of language model calls during indexing in US dollars; 0 for no limit.
        max_tokens: Maximum number of tokens of these calls; 0 for no limit.
    """

    settings: Configuration
    dataset: Dataset
    retrievers: Sequence[str]
    where: str | None = None
    answers: bool = False
    judges: Sequence[str] = ()
    refusal: bool = False
    max_cost: float = 0.0
    max_tokens: int = 0

    def open_writer(self, out: Path, **choices: object) -> RunWriter:
        """Return a writer for the run folder ``out``, which is new or contains a run with equal settings."""
        command, stages = self.settings.command, registry.get_settings_by_section(self.settings.stages)
        choices |= {
            name: getattr(command, name)
            for name in ("preset", "prompts", "method", "embedder", "mention_extractor", "rerank")
        }
        if version := Prompts(command.prompts).version:
            choices["prompts"] = f"{command.prompts} {version}"  # a run depends on the prompts, not on their folder
        settings = {"stages": stages, "language_model": self.settings.language_model}
        return RunWriter(out, build_manifest(self.dataset, self.retrievers, command.depth, settings, **choices))

    def measure(self, directory: Path, writer: RunWriter, progress: Progress) -> dict[str, object]:
        """Index the benchmark in ``directory``, store search results with ``writer``, and return the cost of indexing.

        Questions with a result in the run folder are skipped.
        """
        max_characters = self.settings.stages.question.max_characters
        for query in self.dataset.queries:
            if len(query.text) > max_characters:
                raise ConfigurationError(
                    f"question {query.id!r} in {str(self.dataset.corpus.parent)!r} has {len(query.text):,} characters; "
                    f"expected at most {max_characters:,} (max_characters in the section [question])"
                )
        with open_engine(self.settings, create=True, reranks=True, directory=directory) as engine:
            start, before = _measure_cpu_seconds(), engine.components.usage_uncached
            report = self._index_documents(engine, progress)
            cpu_seconds = _measure_cpu_seconds() - start
            statistics = engine.catalogue.statistics()
            sizes = eval_index_json(report, statistics) | {
                "cpu_seconds": round(cpu_seconds, 3),
                "embedder": statistics.settings["embedder"],
                "llm_uncached": asdict(engine.components.usage_uncached - before),
            }
            writer.write_index_cost(sizes)
            writer.write_statistics(partial(compute_statistics, engine.catalogue))
            writer.write_titles(self.dataset)
            if HYPEREDGES in self.judges:
                write_hyperedge_sets(engine, self.dataset.queries, writer.folder)
            queries: Sequence[Question] = self.dataset.queries
            if self.where is not None:
                queries = _select_gold(queries, engine.catalogue.sources(self.where))
            measure_coverage = _build_coverage_measure(engine, queries, self.settings.stages)
            for name in self.retrievers:
                before = engine.components.usage_uncached
                engine.prepare(name, progress)  # reports and summaries are construction, not part of a question
                writer.add_preparation_cost(name, asdict(engine.components.usage_uncached - before))
                missing = find_missing_questions(writer.by_key, name, queries)
                for record, evidence in self._search_questions(engine, name, missing, progress, measure_coverage):
                    writer.add_record(record, evidence)
            if self.answers:
                self._answer_questions(engine, queries, writer.folder, progress)
            sources = engine.catalogue.sources()
        if self.refusal:
            self._measure_refusal(directory, writer.folder, progress)
        output.warn_of_failures(report)
        output.warn_of_others(report, statistics.documents)
        warn_of_judgements(self.dataset, sources)
        self._warn_of_weights()
        return sizes

    def _index_documents(self, engine: Engine, progress: Progress) -> IndexReport:
        """Index the documents of the benchmark with the engine, and return the indexing report."""
        documents, method = self.dataset.documents, self.settings.method
        index: Callable[..., IndexReport] = engine.index if documents is None else engine.index_documents
        corpus = [self.dataset.corpus] if documents is None else documents
        engine.writer.expect_questions(query.text for query in self.dataset.queries)
        return index(corpus, method=method, max_cost=self.max_cost, max_tokens=self.max_tokens, progress=progress)

    def _search_questions(
        self,
        engine: Engine,
        retriever: str,
        queries: Sequence[Question],
        progress: Progress,
        measure_coverage: MeasureCoverage | None = None,
    ) -> Iterator[tuple[QuestionRecord, Evidence]]:
        """Search for each question with a retriever, and yield a record of the result with its evidence."""
        if not queries:
            return iter(())
        components = engine.components
        return retriever_evaluation.ask_questions(
            retriever,
            lambda question, k: engine.search(question, k, retriever=retriever, where=self.where, merge=False),
            queries,
            self.settings.command.depth,
            progress,
            lambda: (components.usage.tokens, components.usage_uncached.tokens),
            partial(engine.prepare, retriever, progress),
            len(self.dataset.queries) - len(queries),
            measure_coverage,
        )

    def _measure_refusal(self, directory: Path, folder: Path, progress: Progress) -> None:
        """Search for the questions in a copy of the index without gold (relevant) documents, and store the results."""
        queries = [query for query in self.dataset.queries if query.gold]
        gold = {id for query in queries for id in query.gold}
        file = RecordFile(folder / WITHOUT_GOLD, QuestionRecord)
        with file, tempfile.TemporaryDirectory(prefix="polyad-") as temporary:
            missing = {name: find_missing_questions(file.by_key, name, queries) for name in self.retrievers}
            if not any(missing.values()):
                return
            copy = Path(shutil.copytree(directory, Path(temporary) / "index"))
            with open_engine(self.settings, reranks=True, directory=copy) as engine:
                engine.remove(sorted(gold & engine.catalogue.sources().keys()))
                for name, questions in missing.items():
                    for record, _ in self._search_questions(engine, name, questions, progress):
                        file.append(record)

    def is_complete(self, writer: RunWriter) -> bool:
        """Return whether the run folder has each search result, answer and refusal that the options request."""
        queries = self.dataset.queries
        required: list[tuple[Container[tuple[str, str]], Sequence[Question]]] = [(writer.by_key, queries)]
        if self.refusal:
            required.append((read_records_without_gold(writer.folder), [query for query in queries if query.gold]))
        if self.answers:
            required.append((read_answers(writer.folder)[0], queries))
        return not any(
            find_missing_questions(stored, name, group) for stored, group in required for name in self.retrievers
        )

    def _answer_questions(self, engine: Engine, queries: Sequence[Question], folder: Path, progress: Progress) -> None:
        """Answer, in parallel, the questions without a stored answer in the run folder ``folder``.

        Questions on which the language model fails are left to the next run, with a warning.
        """
        threads = min(_MAX_THREADS, _require_language_model(self.settings, "--answers").concurrency)
        failures: dict[str, str] = {}
        with RecordFile(folder / ANSWERS, AnswerRecord) as file, ThreadPoolExecutor(threads) as pool:

            def ask_and_store(name: str, query: Question) -> None:
                file.append(self._answer_question(engine, name, query))  # before this thread answers the next question

            for name in self.retrievers:
                missing = find_missing_questions(file.by_key, name, queries)
                waiting = {pool.submit(ask_and_store, name, query): query.id for query in missing}
                try:
                    for done, answer in enumerate(as_completed(waiting), len(queries) - len(missing) + 1):
                        try:
                            answer.result()
                        except NoMoreRepliesError:
                            raise
                        except LanguageModelError as error:
                            failures[waiting[answer]] = str(error)
                        progress(done, len(queries), f"answers, {name}")
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)  # do not wait for other questions
                    raise
        for id, reason in list(failures.items())[:_MAX_LISTED]:
            warn("failed", f"no answer to {id}: {reason}")
        if len(failures) > _MAX_LISTED:
            warn("failed", f"no answer to {len(failures) - _MAX_LISTED:,} more questions")

    def _answer_question(self, engine: Engine, retriever: str, query: Question) -> AnswerRecord:
        start, before = time.perf_counter(), engine.components.usage_uncached  # usage is counted by thread
        k = self.settings.command.depth
        answer = engine.ask(query.text, k, retriever=retriever, min_relevance=0.0, where=self.where)
        usage, milliseconds = engine.components.usage_uncached - before, 1000 * (time.perf_counter() - start)
        settings = engine.components.settings.answer
        return AnswerRecord(
            retriever,
            query.id,
            answer.text,
            cited=tuple(dict.fromkeys(citation.passage_id for citation in answer.citations)),
            tokens=usage.tokens,
            milliseconds=milliseconds,
            note=answer.note,
            names=None if settings.form == "text" else answer.entities,
            cost=usage.cost,
            context=answer.context.text,
            reasoning=answer.thoughts if settings.prompt == "think-answer" else "",
        )

    def finish(self, writer: RunWriter, settings: Configuration, progress: Progress) -> Run:
        """Judge a run's answers with the language model in ``settings``, write report files, and return the run."""
        writer.close()
        if self.judges or settings.command.tokenizer:
            judge(writer.folder, self.judges, self.dataset, settings, progress)
        run = load_run(writer.folder)
        write_derived_files(run)
        return run

    def is_successful(self, run: Run, writer: RunWriter) -> bool:
        """Return whether every document of a run was indexed, and no requested result is missing."""
        every = replace(self, retrievers=list(run.records), refusal=False)
        return not run.index.get("failed") and every.is_complete(writer)

    def _warn_of_weights(self) -> None:
        """Print a warning if a retriever's weights were, or may have been, trained on questions of this benchmark."""
        queries = self.dataset.queries
        for training in load_training_questions(self.retrievers, self.settings.stages):
            seen, total = len(training.find_trained(queries)), format_count(len(queries), "question")
            if seen:
                warn(
                    "warning",
                    f"the weights of {training.retriever} were trained on {seen:,} of {total}, so its results may be "
                    "too good; --split unseen leaves these questions out",
                )
            elif training.is_unknown:
                warn(
                    "warning",
                    f"the weights of {training.retriever} do not say which questions of "
                    f"{', '.join(training.data_sets)} they were trained on, so these {total} may be among them; train "
                    "again",
                )


def warn_of_judgements(dataset: Dataset, documents: Container[str]) -> None:
    """Print a warning if relevance judgements of a benchmark name missing questions or documents.

    Args:
        dataset: The benchmark.
        documents: Ids of the indexed documents.
    """
    if dataset.unknown:
        questions = f"{format_count(len(dataset.unknown), 'question')}, {output.join_first(dataset.unknown)}"
        warn("warning", f"judged in {dataset.name}'s qrels, but not in queries.jsonl: {questions}")
    if missing := dataset.find_missing_gold(documents):
        gold = f"{format_count(len(missing), 'gold document')}, {output.join_first(missing)}"
        warn(
            "warning",
            f"named in {dataset.name}'s qrels, but not indexed from corpus.jsonl: {gold}; they lower the recall",
        )


def _select_gold(queries: Sequence[Question], document_ids: Container[str]) -> list[Question]:
    """Return copies of the questions whose gold (relevant) documents are limited to ``document_ids``.

    Raises:
        ConfigurationError: The questions have gold documents, and the filter selects none of them.
    """
    selected = [replace(query, gold=frozenset(filter(document_ids.__contains__, query.gold))) for query in queries]
    if any(query.gold for query in queries) and not any(query.gold for query in selected):
        raise ConfigurationError("--where selects no gold document of a question; expected a filter that selects some")
    return selected


def _measure_cpu_seconds() -> float:
    """Return the CPU time that this process and its child processes have used so far, in seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _build_coverage_measure(engine: Engine, queries: Sequence[Question], settings: Settings) -> MeasureCoverage | None:
    """Return a function that counts the evidence statements in a search result; None if no question has any."""
    if not any(query.evidence for query in queries):
        return None
    splitter = SentenceSplitter(settings.split)
    recall = StatementRecall(engine.snapshot("bm25"), splitter.sentences, WORD_BUDGETS)

    def measure_coverage(query: Question, evidence: Evidence) -> StatementCoverage | None:
        texts = [hit.passage.text for hit in evidence.passages]
        return recall.measure_coverage(query.evidence, texts) if query.evidence else None

    return measure_coverage


def judge(folder: Path, measures: Sequence[str], dataset: Dataset, settings: Configuration, progress: Progress) -> None:
    """Let a language model judge the answers in a run folder; answers with a stored judgement are skipped.

    Args:
        folder: Folder of the run.
        measures: Names of measures in :data:`JUDGED`.
        dataset: Benchmark of the run.
        settings: Settings of the judging language model and of the embedder.
        progress: Called with the progress.
    """
    prompts = Prompts(settings.command.prompts)
    run, judges = (
        load_run(folder),
        get_judges([name for name in measures if name in JUDGES], prompts, settings.command.judge_requests),
    )
    queries = {query.id: query for query in dataset.queries}
    answers = read_answers(folder)[0]
    with open_judgements(folder / JUDGEMENTS) as log:
        if judges:
            model = loaders.load_language_model(_require_language_model(settings, "a judge"))
            texts = _join_texts(run, answers) if any(TEXT in judging.sections for judging in judges) else {}
            answered = {key: answer for key, answer in answers.items() if answer.query_id in queries}
            tasks = build_judging_tasks(judges, queries, answered, texts)
            tasks += _build_hyperedge_tasks(judges, queries, folder) if HYPEREDGES in measures else []
            answer_judging.judge_answers(tasks, model, log, progress)
        if settings.command.tokenizer:
            name, split = load_tokenizer(Path(settings.command.tokenizer))
            add_token_shares(answers.values(), queries, split, name, log)
        if not {"graphrag_bench", RETRIEVAL_SIMILARITY} & {*measures}:
            return
        embedder = loaders.load_embedder(run.index.get("embedder", loaders.DEFAULT_EMBEDDER), settings.stages.encoder)
        if "graphrag_bench" in measures:
            pairs = {key: (answer.measured_text, queries[answer.query_id].answers) for key, answer in answers.items()}
            add_cosine_scores(pairs, ANSWER_SIMILARITY, embedder, log)
        if RETRIEVAL_SIMILARITY in measures:
            add_cosine_scores(_pair_with_gold(run, answers, dataset), RETRIEVAL_SIMILARITY, embedder, log)


def _build_hyperedge_tasks(judges: Sequence[Judge], queries: Mapping[str, Question], folder: Path) -> list[JudgingTask]:
    """Return a judging task for each question and each LLM judge that rates extracted hyperedges."""
    return [
        JudgingTask("", id, judge, JudgeInput(queries[id].text, text=each.passage, hyperedges=each.format()))
        for id, each in read_hyperedge_sets(folder).items()
        for judge in judges
        if HYPEREDGES in judge.sections and id in queries and each.hyperedges
    ]


def _require_language_model(settings: Configuration, purpose: str) -> LanguageModelSettings:
    if settings.language_model is None:
        raise NoLanguageModelError(purpose)
    return settings.language_model


def _pair_with_gold(
    run: Run, answers: Mapping[tuple[str, str], AnswerRecord], dataset: Dataset
) -> dict[tuple[str, str], tuple[str, Sequence[str]]]:
    """Return the retrieved text and the gold texts of each question, keyed by retriever and question id.

    The gold text is the evidence that the data set states; if it states none, the gold documents.
    """
    gold = get_document_texts(dataset, {id for query in dataset.queries for id in query.gold})
    queries = {query.id: query for query in dataset.queries}
    pairs: dict[tuple[str, str], tuple[str, Sequence[str]]] = {}
    for (name, id), text in _join_texts(run, answers).items():
        documents = [gold[document_id] for document_id in sorted(queries[id].gold) if document_id in gold]
        gold_texts = list(queries[id].evidence) or documents
        pairs[name, id] = text, ["\n\n".join(gold_texts)] if gold_texts else []
    return pairs


def _join_texts(run: Run, answers: Mapping[tuple[str, str], AnswerRecord]) -> dict[tuple[str, str], str]:
    """Return the passages in the prompt of each answer as one text, keyed by retriever and question id.

    Without an answer, these are the first k passages.
    """
    passages = run.read_passages()
    joined = {}
    for name, records in run.records.items():
        for record in records:
            texts = [
                f"{text.title}\n{text.text}" for text in map(passages.get, record.get_top_passage_ids(run.k)) if text
            ]
            answer = answers.get((name, record.query.id))
            context = answer.context if answer else ""
            joined[name, record.query.id] = context or "\n\n".join(text.strip() for text in texts)
    return joined
