"""The command ``polyad eval``, which is also ``polyad bench run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from polyad.cli import options, output
from polyad.cli.progress import progress_bar
from polyad.cli.settings import Configuration
from polyad.cli.streams import say, say_json
from polyad.engine.registry import retrievers
from polyad.errors import ConfigurationError
from polyad.presets import PRESETS
from polyad.text.words import format_count
from polyad_bench.answers.averages import Average
from polyad_bench.commands import steps
from polyad_bench.datasets.selection import load_dataset, load_training_questions, select_questions
from polyad_bench.reports.tables import format_evidence_row, format_percent, format_result_row
from polyad_bench.runs.retriever_evaluation import (
    FALSE_REFUSALS,
    Refusal,
    RetrieverResult,
    require_gold_documents,
)
from polyad_bench.runs.run_folder import Run

PLACE = "Folder with corpus.jsonl, queries.jsonl and qrels/; or a folder of GraphRAG-Bench or WikiTopics."


def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="BEIR_DIR", help=PLACE)],
    retriever: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...", help=f"Any of {', '.join(retrievers)}. [dense and the preset's, else dense,default]"
        ),
    ] = None,
    store: options.KeepStore = None,
    k: options.Depth = None,
    limit: options.Limit = None,
    split: Annotated[
        Literal["all", "train", "validation", "test", "unseen"],
        typer.Option(
            help="Part of the questions: `test` is a fifth that no training reads; `unseen` leaves out the training "
            "questions of the weights of these retrievers."
        ),
    ] = "all",
    where: options.Filtered = None,
    bridge_outside: options.BridgeOutside = None,
    rerank: options.Rerank = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the run: settings, rankings, times and passages.")
    ] = None,
    answers: steps.Answers = False,
    form: options.Form = None,
    judged: steps.Judged = None,
    judge_model: steps.JudgeModel = None,
    refusal: Annotated[
        bool,
        typer.Option(
            "--refusal",
            help="Also search without the gold documents, to measure how often a search finds nothing; needs --out.",
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(metavar="N", min=0, show_default=False, help="Random seed of confidence intervals. [0]"),
    ] = 0,
    *,
    flags: options.IndexFlags,
) -> None:
    """Measure retrievers on a benchmark.

    Indexes the corpus and asks the questions one at a time. Recall is the share of gold documents among the first k
    passages, all recall the share of questions with all their gold documents there, and MRR the mean of 1 / rank of the
    first gold document.

    With --out the run is stored in a folder, which `polyad bench report` and `polyad bench compare` read. The same
    command continues a run that was stopped. With --answers the language model answers the questions from the evidence
    of each retriever, and the answers are compared with the accepted ones; with --judge a language model also grades
    them. A star marks an average over fewer than 95 per cent of the answers. With --refusal the questions are asked
    again without their gold documents: the result is the share refused at a threshold that refuses 5 per cent of the
    answerable questions. With --where, gold documents that the filter excludes do not count.

    Example: polyad eval musique/ --retriever bm25,dense,default --limit 200 --store musique-kb
    """
    settings = options.load_settings(flags, store=store, k=k, rerank=rerank, form=form, bridge_outside=bridge_outside)
    names = options.split_names(retriever or _get_default_retrievers(settings))
    judging = steps.replace_language_model(settings, judge_model)
    if (answers or judged or refusal) and out is None:
        raise ConfigurationError(
            "--answers, --judge and --refusal write into the folder of a run; expected one with --out DIR"
        )
    if refusal and where is not None:
        raise ConfigurationError(
            "--refusal searches without the gold documents; expected --refusal or --where, not both"
        )
    judges = steps.parse_judges(judged)
    steps.require_models(names, judges, judging, settings, answers)
    dataset = load_dataset(folder)
    trained = load_training_questions(names, settings.stages)
    dataset = replace(dataset, queries=select_questions(dataset, split, limit, trained))
    if refusal:
        require_gold_documents(dataset)
    measuring = steps.Measuring(
        settings=settings,
        dataset=dataset,
        retrievers=names,
        where=where,
        answers=answers,
        judges=judges,
        refusal=refusal,
        max_cost=flags.max_cost,
        max_tokens=flags.max_tokens,
    )
    with (
        nullcontext(out) if out else options.directory_for(None) as run_folder,
        measuring.open_writer(run_folder, seed=seed, split=split, where=where) as writer,
    ):
        with progress_bar(flags.quiet or flags.json) as progress:
            if not measuring.is_complete(writer):
                with options.directory_for(store) as directory:
                    measuring.measure(directory, writer, progress)
            run = measuring.finish(writer, judging, progress)
        _print_run(run, flags.json)
        is_successful = measuring.is_successful(run, writer)
    if not is_successful:
        raise typer.Exit(1)


def _get_default_retrievers(settings: Configuration) -> str:
    """Return the default retrievers as ``A,B``: ``dense``, and the preset's retriever (or ``default``)."""
    preset = settings.command.preset
    return f"dense,{PRESETS[preset].retriever if preset else 'default'}"


def _print_run(run: Run, as_json: bool) -> None:
    if as_json:
        say_json(run.to_json())
        return
    _show_eval(run.dataset, run.question_count, run.k, run.index, run.compute_results())
    _show_refusals(run.measure_refusals())
    _show_answers(run.average_answers())


def _show_eval(
    dataset: str, questions: int, k: int, index: Mapping[str, object], results: Sequence[RetrieverResult]
) -> None:
    """Print the scores that ``polyad eval`` measured, with one row for each retriever."""
    say(f"{dataset}: {format_count(questions, 'question')}, k = {k}; measures in per cent, times in milliseconds")
    say(f"indexed in {index.get('seconds', 0)} s, of it {index.get('encode_seconds', 0)} s in the embedder:")
    say(", ".join(f"{name}: {index.get(name, 0):,}" for name in ("passages", "hyperedges", "entities")))
    say(f"memory at its peak: {index.get('peak_rss_mb', 0)} MB")
    output.show_table([format_result_row(result) for result in results])
    if any(result.evidence for result in results):
        say("stated evidence that is covered within so many words of returned text, and by any passage, in per cent:")
        output.show_table([format_evidence_row(result) for result in results])


def _show_refusals(refusals: Mapping[str, Refusal]) -> None:
    """Print for each retriever how often it returns nothing to questions without evidence, in per cent."""
    if refusals:
        say(f"without gold documents; refused where {100 * FALSE_REFUSALS:.0f} % of the others are, in per cent:")
        rows = [
            {
                "retriever": name,
                "refused": format_percent(refusal.refused),
                "ROC AUC": format_percent(refusal.roc_auc),
                "criterion": refusal.criterion,
                "questions": str(len(refusal.flags)),
            }
            for name, refusal in refusals.items()
        ]
        output.show_table(rows)


def _show_answers(answers: Mapping[str, Mapping[str, Average]]) -> None:
    """Print the scores of each retriever's answers, in per cent; print nothing without answers."""
    names = list(dict.fromkeys(name for measures in answers.values() for name in measures))
    if names:
        say("answers; in per cent, with a star where too few were judged:")
        rows = [
            {"measure": name}
            | {
                retriever: averages[name].format() if name in averages else "-"
                for retriever, averages in answers.items()
            }
            for name in names
        ]
        output.show_table(rows)
