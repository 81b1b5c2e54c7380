"""What the commands that measure share: an index of a benchmark, and retrievers asked on it, be the run kept or not."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import open_engine
from polyad.cli.settings import Configuration, require_one_of
from polyad.config import AnswerSettings, EncoderSettings, LanguageModelSettings, Settings, SplitSettings
from polyad.engine import Engine, loaders, registry
from polyad.errors import LanguageModelError, NoLanguageModelError, NoMoreRepliesError
from polyad.evaluation.answers import judging as answer_judging
from polyad.evaluation.answers.files import AnswerRecord, AnswerWriter, read_answers
from polyad.evaluation.answers.judge import TEXT
from polyad.evaluation.answers.judges import JUDGES, get_judges
from polyad.evaluation.answers.judging import (
    ANSWER_SIMILARITY,
    RETRIEVAL_SIMILARITY,
    build_judging_tasks,
    compare_vectors,
)
from polyad.evaluation.datasets.beir import Dataset, Question, get_document_texts
from polyad.evaluation.datasets.training_questions import load_training_questions
from polyad.evaluation.measures.statement_recall import StatementCoverage, StatementRecall
from polyad.evaluation.runs import retriever_evaluation as retriever_evaluation
from polyad.evaluation.runs.hypergraph_statistics import compute_statistics
from polyad.evaluation.runs.manifest import build_manifest
from polyad.evaluation.runs.refusal import RefusalWriter, read_records_without_gold
from polyad.evaluation.runs.retriever_evaluation import WORD_BUDGETS, MeasureCoverage, RetrieverResult
from polyad.evaluation.runs.run_folder import Run, RunWriter, load_run
from polyad.indexing.run import IndexReport
from polyad.indexing.split import SentenceSplitter
from polyad.model import Evidence, Statistics
from polyad.protocols.components import Embedder, Progress
from polyad.schemas.measuring import eval_index_json
from polyad.text.counting import format_count
from polyad.text.prompts import FILES, Prompts

JUDGED = (*JUDGES, RETRIEVAL_SIMILARITY)
"""Measures of answers, and of what was retrieved, that a language model or the embedder has to be asked for."""

Answers = Annotated[
    bool, typer.Option("--answers", help="Also answer each question with the language model; needs --out.")
]
Judged = Annotated[
    str | None,
    typer.Option("--judge", metavar="A,B,...", help=f"Have answers judged: {', '.join(JUDGED)}; needs --out."),
]
JudgeModel = Annotated[
    str | None, typer.Option("--judge-model", metavar="NAME", help="Who judges, where it is not --model.")
]

_NAMED = 5
"""Of many failures."""

_AT_ONCE = 8
"""Questions answered side by side at most: a language model takes seconds, and searching shares the processor."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of indexing a benchmark and asking its questions.

    Attributes:
        report: Of indexing.
        statistics: Of the index.
        sources: Of its documents, by id.
        sizes: The part of the printed shape on indexing.
        results: Of each retriever.
    """

    report: IndexReport
    statistics: Statistics
    sources: Mapping[str, str]
    sizes: dict[str, object]
    results: Sequence[RetrieverResult]


def require_model(names: Sequence[str], settings: Configuration) -> None:
    """Refuse retrievers that need a language model where none is set, before others are measured for nothing."""
    for name in names:
        if registry.retrievers[name].needs_language_model and settings.language_model is None:
            raise NoLanguageModelError(f"the retriever {name!r}")


def judges_from(judged: str | None) -> tuple[str, ...]:
    """The judged measures that ``--judge`` names, each once."""
    names = tuple(dict.fromkeys(name.strip() for name in judged.split(","))) if judged else ()
    for name in names:
        require_one_of("judge", name, JUDGED)
    return names


def judged_by(name: str | None, settings: Configuration) -> Configuration:
    """The settings with the language model that judges: one of that name where there is one, else the same."""
    if not name:
        return settings
    model = settings.language_model
    return replace(settings, language_model=replace(model, model=name) if model else LanguageModelSettings(model=name))


def require_models(judges: Sequence[str], judging: Configuration, settings: Configuration, *, answers: bool) -> None:
    """Refuse answers and judges that lack their language model, before anything is measured for nothing."""
    if answers and settings.language_model is None:
        raise NoLanguageModelError("--answers")
    if set(judges) - {RETRIEVAL_SIMILARITY} and judging.language_model is None:
        raise NoLanguageModelError("--judge")


def writer_for(
    out: Path, dataset: Dataset, names: Sequence[str], settings: Configuration, **choices: object
) -> RunWriter:
    """Opens the folder of a run that is kept, be it new or of the same."""
    command = settings.command
    choices |= {
        name: getattr(command, name) for name in ("preset", "prompts", "method", "embedder", "mentions", "rerank")
    }
    if version := Prompts(command.prompts).fingerprint(*FILES):
        choices["prompts"] = f"{command.prompts} {version}"  # what is in the files counts, wherever they are
    stages = {"stages": registry.get_settings_by_section(settings.stages), "language_model": settings.language_model}
    return RunWriter(out, build_manifest(dataset, names, command.depth, stages, **choices))


def measure(
    settings: Configuration,
    dataset: Dataset,
    names: Sequence[str],
    directory: Path,
    writer: RunWriter | None,
    progress: Progress,
    *,
    answers: bool = False,
    max_cost: float = 0.0,
    max_tokens: int = 0,
) -> Measured:
    """Index a benchmark and ask its questions; of a run that is kept, those that it lacks.

    Args:
        settings: Of everything.
        dataset: With the questions to ask.
        names: Of retrievers.
        directory: Of the index.
        writer: Of a run that is kept.
        progress: Told how far it is.
        answers: Whether the questions of a run that is kept are answered, too.
        max_cost: US dollars that indexing may spend on a language model; 0 for no limit.
        max_tokens: Tokens likewise.
    """
    with open_engine(settings, create=True, reranks=True, directory=directory) as engine:
        spent = _processor_seconds()
        report = _index(engine, dataset, settings.method, max_cost, max_tokens, progress)
        spent = _processor_seconds() - spent
        statistics = engine.catalogue.statistics()
        sizes = eval_index_json(report, statistics) | {
            "cpu_seconds": round(spent, 3),
            "embedder": statistics.settings["embedder"],
        }
        if writer:
            writer.write_index_cost(sizes)
            writer.write_statistics(partial(compute_statistics, engine.catalogue))
        depth, cover = settings.command.depth, _cover(engine, dataset, settings.stages)
        results = [_asked(engine, name, dataset.queries, depth, writer, progress, cover) for name in names]
        if writer and answers:
            _answer(engine, names, dataset.queries, writer.folder, settings, progress)
        return Measured(report, statistics, engine.catalogue.sources(), sizes, results)


def _processor_seconds() -> float:
    """What this process and those it started have had of the processor."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _index(
    engine: Engine, dataset: Dataset, method: str, max_cost: float, max_tokens: int, progress: Progress
) -> IndexReport:
    """Index the corpus, be it a file or in memory."""
    index: Callable[..., IndexReport] = engine.index if dataset.documents is None else engine.index_documents
    corpus = [dataset.corpus] if dataset.documents is None else dataset.documents
    return index(corpus, method=method, max_cost=max_cost, max_tokens=max_tokens, progress=progress)


def _cover(engine: Engine, dataset: Dataset, settings: Settings) -> MeasureCoverage | None:
    """Tells how much of the evidence that a data set states was found."""
    if not any(query.evidence for query in dataset.queries):
        return None
    splitter = SentenceSplitter(settings.of(SplitSettings))
    recall = StatementRecall(engine.snapshot("bm25"), splitter.sentences, WORD_BUDGETS)

    def cover(query: Question, evidence: Evidence) -> StatementCoverage | None:
        texts = [hit.passage.text for hit in evidence.passages]
        return recall.measure(query.evidence, texts) if query.evidence else None

    return cover


def measure_refusal(
    settings: Configuration, dataset: Dataset, names: Sequence[str], directory: Path, folder: Path, progress: Progress
) -> None:
    """Ask a run's questions once more, in a copy of its index that has no gold document of any of them.

    Args:
        settings: Of everything.
        dataset: With the questions.
        names: Of retrievers.
        directory: Of the index, which nobody has open.
        folder: Of the run.
        progress: Told how far it is.
    """
    gold = {id for query in dataset.queries for id in query.gold}
    with RefusalWriter(folder) as writer, tempfile.TemporaryDirectory(prefix="polyad-") as place:
        missing = {name: found for name in names if (found := writer.find_missing_questions(name, dataset.queries))}
        if not missing:
            return
        copy = Path(shutil.copytree(directory, Path(place) / "index"))
        with open_engine(settings, reranks=True, directory=copy) as engine:
            known = engine.catalogue.sources()
            engine.remove(sorted(gold & known.keys()))
            for name, queries in missing.items():
                search, prepare = partial(_search, engine, name), partial(engine.prepare, name, progress)
                tokens = partial(_tokens, engine)
                told = len(dataset.queries) - len(queries)
                deque(
                    retriever_evaluation.ask_questions(
                        name,
                        search,
                        queries,
                        settings.command.depth,
                        progress,
                        tokens,
                        prepare,
                        writer.add_record,
                        told,
                    ),
                    maxlen=0,
                )


def is_complete(
    writer: RunWriter, names: Sequence[str], queries: Sequence[Question], *, answers: bool, refusal: bool = False
) -> bool:
    """Whether a run lacks nothing of what is asked for."""
    if any(writer.find_missing_questions(name, queries) for name in names):
        return False
    without = read_records_without_gold(writer.folder) if refusal else {}
    if refusal and any((name, query.id) not in without for name in names for query in queries if query.gold):
        return False
    known = read_answers(writer.folder)[0] if answers else {}
    return not answers or all((name, query.id) in known for name in names for query in queries)


def _asked(
    engine: Engine,
    name: str,
    queries: Sequence[Question],
    depth: int,
    writer: RunWriter | None,
    progress: Progress,
    cover: MeasureCoverage | None,
) -> RetrieverResult:
    missing = writer.find_missing_questions(name, queries) if writer else queries
    records = writer.get_records(name) if writer else []
    if missing:
        records += retriever_evaluation.ask_questions(
            name,
            partial(_search, engine, name),
            missing,
            depth,
            progress,
            partial(_tokens, engine),
            partial(engine.prepare, name, progress),
            writer.add_record if writer else retriever_evaluation.ignore_record,
            len(queries) - len(missing),
            cover,
        )
    return retriever_evaluation.summarise_records(name, records, depth)


def _tokens(engine: Engine) -> tuple[int, int]:
    """Spent on language models so far, and what they would be had no reply been recalled."""
    return engine.components.usage.tokens, engine.components.usage_uncached.tokens


def _search(engine: Engine, retriever: str, question: str, k: int) -> Evidence:
    return engine.search(question, k, retriever=retriever, merge=False)


def _answer(
    engine: Engine,
    names: Sequence[str],
    queries: Sequence[Question],
    folder: Path,
    settings: Configuration,
    progress: Progress,
) -> None:
    """Answer what has no answer yet, some at a time; what the language model fails on is left for the next run."""
    threads = min(_AT_ONCE, _language_model(settings, "--answers").concurrency)
    failures: dict[str, str] = {}
    with AnswerWriter(folder) as writer, ThreadPoolExecutor(threads) as pool:
        for name in names:
            missing = writer.find_missing_questions(name, queries)
            ask = partial(_answered, engine, name, settings.command.depth)

            def keep(query: Question, ask: Callable[[Question], AnswerRecord] = ask) -> None:
                writer.add_answer(ask(query))  # before this thread asks for another one

            waiting = {pool.submit(keep, query): query.id for query in missing}
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
                pool.shutdown(wait=False, cancel_futures=True)  # nobody waits for the rest
                raise
    for id, reason in list(failures.items())[:_NAMED]:
        output.warn("failed", f"no answer to {id}: {reason}")
    if len(failures) > _NAMED:
        output.warn("failed", f"no answer to {len(failures) - _NAMED:,} more questions")


def _answered(engine: Engine, retriever: str, k: int, query: Question) -> AnswerRecord:
    started, spent = time.perf_counter(), engine.components.usage.tokens  # of this thread
    answer = engine.ask(query.text, k, retriever=retriever)
    in_names = engine.components.settings.of(AnswerSettings).form != "text"
    tokens, milliseconds = engine.components.usage.tokens - spent, 1000 * (time.perf_counter() - started)
    return AnswerRecord.from_answer(retriever, query, answer, tokens, milliseconds, in_names=in_names)


def judge(folder: Path, measures: Sequence[str], dataset: Dataset, settings: Configuration, progress: Progress) -> None:
    """Have the answers of a run judged, as far as that has not been done.

    Args:
        folder: Of the run.
        measures: Some of :data:`JUDGED`.
        dataset: That the run is of.
        settings: Of the language model, and of the embedder.
        progress: Told how far it is.
    """
    prompts = Prompts(settings.command.prompts)
    run, judges = load_run(folder), get_judges([name for name in measures if name in JUDGES], prompts)
    queries = {query.id: query for query in dataset.queries}
    with AnswerWriter(folder) as writer:
        if judges:
            model = loaders.load_language_model(_language_model(settings, "a judge"))
            found = _found(run) if any(TEXT in judging.sections for judging in judges) else {}
            wanted = build_judging_tasks(judges, queries, writer.answers, found)
            answer_judging.judge_answers(wanted, model, writer.judgements, writer.add_judgement, progress)
        if not {"graphrag_bench", RETRIEVAL_SIMILARITY} & {*measures}:
            return
        embedder = _embedder(run, settings)
        by_vectors = partial(
            compare_vectors, embedder=embedder, log=writer.judgements, on_judgement=writer.add_judgement
        )
        if "graphrag_bench" in measures:
            answers = writer.answers.items()
            by_vectors({key: (one.text, queries[one.query_id].answers) for key, one in answers}, ANSWER_SIMILARITY)
        if RETRIEVAL_SIMILARITY in measures:
            by_vectors(_retrieved(run, dataset), RETRIEVAL_SIMILARITY)


def _language_model(settings: Configuration, what: str) -> LanguageModelSettings:
    if settings.language_model is None:
        raise NoLanguageModelError(what)
    return settings.language_model


def _embedder(run: Run, settings: Configuration) -> Embedder:
    """The embedder of the run's index."""
    name = str(run.index["embedder"])
    return loaders.load_embedder(name, settings.stages.of(EncoderSettings))


def _retrieved(run: Run, dataset: Dataset) -> dict[tuple[str, str], tuple[str, Sequence[str]]]:
    """What each retriever found for each question, as one text, and the gold documents as another.

    Where documents are not judged, the evidence that the data set states stands for them.
    """
    gold = get_document_texts(dataset, {id for query in dataset.queries for id in query.gold})
    queries = {query.id: query for query in dataset.queries}
    pairs: dict[tuple[str, str], tuple[str, Sequence[str]]] = {}
    for (name, id), text in _found(run).items():
        wanted = [gold[one] for one in sorted(queries[id].gold) if one in gold] or list(queries[id].evidence)
        pairs[name, id] = text, ["\n\n".join(wanted)] if wanted else []
    return pairs


def _found(run: Run) -> dict[tuple[str, str], str]:
    """The first passages that each retriever found for each question, k of them, as one text."""
    passages = run.read_passages()
    found = {}
    for name, records in run.records.items():
        for record in records:
            texts = [
                f"{text.title}\n{text.text}" for text in map(passages.get, record.get_top_passage_ids(run.k)) if text
            ]
            found[name, record.query.id] = "\n\n".join(text.strip() for text in texts)
    return found


def warn_of_weights(retrievers: Sequence[str], dataset: Dataset, settings: Settings) -> None:
    """Say so when weights are from training on questions that were just asked, or do not tell.

    Args:
        retrievers: Those asked.
        dataset: With the questions that were asked.
        settings: Of the retrievers.
    """
    for known in load_training_questions(retrievers, settings):
        seen, asked = len(known.find_trained(dataset.queries)), format_count(len(dataset.queries), "question")
        if seen:
            output.warn(
                "warning",
                f"{seen:,} of {asked} were trained on: the weights of {known.retriever} saw them, so it may do better "
                "on them than on others; --split unseen leaves them out",
            )
        elif known.is_unknown:
            output.warn(
                "warning",
                f"the weights of {known.retriever} are from an earlier version and cannot tell which questions of "
                f"{', '.join(known.data_sets)} they were trained on, so these {asked} may be among them; train again",
            )
