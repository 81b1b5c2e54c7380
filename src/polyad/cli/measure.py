"""The command that measures: ``polyad eval``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from polyad.cli import measurements, output
from polyad.cli.evaluate_measuring import (
    Answers,
    Judged,
    JudgeModel,
    is_complete,
    judge,
    judged_by,
    judges_from,
    measure,
    measure_refusal,
    require_model,
    require_models,
    warn_of_weights,
    writer_for,
)
from polyad.cli.options import (
    Depth,
    Embedder,
    Form,
    Json,
    MaxCost,
    MaxTokens,
    Mentions,
    Method,
    Model,
    Preset,
    Quiet,
    Replies,
    ReplyCache,
    Rerank,
    Rewrite,
    directory_for,
    require_use_of_rewriting,
    settings_from,
)
from polyad.cli.settings import Configuration, require_one_of
from polyad.engine import RETRIEVERS
from polyad.errors import ConfigurationError
from polyad.evaluation.datasets import layouts
from polyad.evaluation.datasets.beir import Dataset
from polyad.evaluation.datasets.splits import select_questions
from polyad.evaluation.datasets.training_questions import load_training_questions
from polyad.evaluation.runs import run_folder
from polyad.evaluation.runs.refusal import require_gold_documents
from polyad.evaluation.runs.run_folder import RunWriter
from polyad.presets import PRESETS
from polyad.schemas.measuring import eval_json

PLACE = "Holds corpus.jsonl, queries.jsonl, qrels/; or GraphRAG-Bench's *_questions.json, or WikiTopics's files."


def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="BEIR_DIR", help=PLACE)],
    retriever: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...", help=f"Some of {', '.join(RETRIEVERS)}; `dense` and the preset's, else `default`."
        ),
    ] = None,
    preset: Preset = None,
    store: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the index here for the next run.")] = None,
    k: Depth = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the first N questions, of those that --split names.")
    ] = None,
    split: Annotated[
        Literal["all", "train", "validation", "test", "unseen"],
        typer.Option(
            help="Which of the questions: `test` is the fifth that training keeps its hands off, `unseen` those that "
            "the weights of these retrievers were not trained on."
        ),
    ] = "all",
    method: Method = None,
    rewrite: Rewrite = None,
    rerank: Rerank = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    replies: Replies = None,
    reply_cache: ReplyCache = None,
    max_cost: MaxCost = 0.0,
    max_tokens: MaxTokens = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the run here: settings, rankings, times, texts found.")
    ] = None,
    answers: Answers = False,
    form: Form = None,
    judged: Judged = None,
    judge_model: JudgeModel = None,
    refusal: Annotated[
        bool,
        typer.Option("--refusal", help="Also ask with the gold documents taken out of the index; needs --out."),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(metavar="N", min=0, show_default=False, help="Of the intervals in the reports of a run. [0]"),
    ] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure retrievers on a benchmark.

    Indexes its corpus and asks its questions. Recall is the share of the gold passages among the first k, all recall
    the share of questions with all of them there, MRR the mean of 1 / rank of the first. Times are per question, one
    at a time.

    With --out the run is kept in a folder. The same command takes up one that was stopped, and asks only what is
    missing. `polyad bench report` and `polyad bench compare` read such folders. With --answers its questions are
    answered too, by the language model from the evidence of each retriever, and compared with the accepted answers;
    --judge has a language model say how good they are. An average of fewer than 95 per cent of the answers has a star.
    With --refusal they are asked again with all gold documents taken out of the index: the share that would be refused
    where a limit refuses 5 per cent of those that can be answered.

    Example: polyad eval musique/ --retriever bm25,dense,default --limit 200 --store musique-kb
    """
    settings = settings_from(
        preset=preset,
        store=store,
        k=k,
        method=method,
        rewrite=rewrite,
        rerank=rerank,
        form=form,
        embedder=embedder,
        mentions=mentions,
        model=model,
        replies=replies,
        reply_cache=reply_cache,
    )
    names = list(dict.fromkeys(name.strip() for name in (retriever or _usual(settings)).split(",")))
    for name in names:
        require_one_of("retriever", name, RETRIEVERS)
    require_use_of_rewriting(rewrite, names)
    require_model(names, settings)
    judging = judged_by(judge_model, settings)
    _require_kept(out, answers=answers, judged=bool(judged), refusal=refusal)
    judges = judges_from(judged)
    require_models(judges, judging, settings, answers=answers)
    whole, depth = layouts.load_dataset(folder), settings.command.depth
    dataset = replace(
        whole, queries=select_questions(whole, split, limit, load_training_questions(names, settings.stages))
    )
    if refusal:
        require_gold_documents(dataset)
    writer = writer_for(out, dataset, names, settings, seed=seed, split=split) if out else None
    if writer and is_complete(writer, names, dataset.queries, answers=answers, refusal=refusal):
        _finish(writer, dataset, judging, judges, answers=answers, json=json, quiet=quiet)
        return
    with (
        writer or nullcontext(),
        directory_for(store) as directory,
        output.progress_bar(quiet or json) as progress,
    ):
        found = measure(
            settings,
            dataset,
            names,
            directory,
            writer,
            progress,
            answers=answers,
            max_cost=max_cost,
            max_tokens=max_tokens,
        )
        if writer and refusal:
            measure_refusal(settings, dataset, names, directory, writer.folder, progress)
    output.warn_of_failures(found.report)
    output.warn_of_others(found.report, found.statistics.documents)
    measurements.warn_of_judgements(dataset, found.sources)
    warn_of_weights(names, dataset, settings.stages)
    if writer:
        _finish(writer, dataset, judging, judges, answers=answers, json=json, quiet=quiet)
        return
    if json:
        output.say_json(eval_json(dataset, depth, found.sizes, found.results))
    else:
        measurements.show_eval(dataset, depth, found.sizes, found.results)
    if not found.report.is_complete:
        raise typer.Exit(1)


def _usual(settings: Configuration) -> str:
    """What is measured where nothing is named: the baseline, and the retriever of the preset or polyad's own."""
    preset = settings.command.preset
    return f"dense,{PRESETS[preset].retriever if preset else 'default'}"


def _require_kept(out: Path | None, *, answers: bool, judged: bool, refusal: bool) -> None:
    """Refuse what has to be kept where nothing is."""
    if (answers or judged or refusal) and out is None:
        raise ConfigurationError(
            "--answers, --judge and --refusal write into the folder of a run; give one with --out DIR"
        )


def _finish(
    writer: RunWriter,
    dataset: Dataset,
    settings: Configuration,
    judges: Sequence[str],
    *,
    answers: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Have a run that is kept judged where that is wanted, and print it from its files."""
    writer.close()
    if judges:
        with output.progress_bar(quiet or json) as progress:
            judge(writer.folder, judges, dataset, settings, progress)
    run = run_folder.load_run(writer.folder)
    run_folder.write_derived_files(run)
    if json:
        output.say_json(run.to_json())
    else:
        measurements.show_eval(dataset, run.k, run.index, run.compute_results())
        measurements.show_refusals(run.measure_refusals())
        measurements.show_answers(run.average_answers())
    if run.index["failed"] or not is_complete(writer, list(run.records), dataset.queries, answers=answers):
        raise typer.Exit(1)
