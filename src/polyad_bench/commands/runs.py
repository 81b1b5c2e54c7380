"""The commands on stored runs: ``polyad bench compare``, ``report`` and ``import-run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from polyad.cli import output
from polyad.cli.options import Json, Limit, Model, Plots, load_settings, split_names
from polyad.cli.progress import progress_bar
from polyad.cli.streams import say, say_json, say_result, warn
from polyad.engine.loaders import load_language_model
from polyad.errors import ConfigurationError, NoLanguageModelError
from polyad.text.prompts import Prompts
from polyad_bench.answers.pairwise import PairwiseResult, Subject, compare_answers
from polyad_bench.datasets.selection import load_dataset
from polyad_bench.files import require_no_links
from polyad_bench.measures.ranking import parse_measure
from polyad_bench.reports import report as reports
from polyad_bench.reports.tables import format_result_row
from polyad_bench.runs import comparison, imported_runs, run_folder
from polyad_bench.runs.comparison import Difference, RunComparison, System
from polyad_bench.runs.records import QuestionRecord

T = TypeVar("T")

Seed = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Random seed of intervals and tests. [that of the first run]")
]

_MAX_DOCUMENTS = 4
"""Maximum number of documents that are listed per system and question."""


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="One or two: FOLDER or FOLDER:RETRIEVER.")],
    measures: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            show_default=False,
            help="For example recall@5, ndcg@10, recall@500w or evidence_recall@500w. [all that the runs allow]",
        ),
    ] = None,
    fail_below: Annotated[
        list[str] | None,
        typer.Option(metavar="M=X", help="Exit with 1 if measure M falls by more than X points: recall@5=-0.5."),
    ] = None,
    questions: Annotated[
        int, typer.Option(metavar="N", min=0, help="Maximum number of differing questions to print.")
    ] = 10,
    seed: Seed = None,
    pairwise: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Let a language model compare the answers; verdicts are stored here."),
    ] = None,
    pairwise_of: Annotated[Subject, typer.Option(help="What --pairwise compares.")] = "answers",
    model: Model = None,
    json: Json = False,
) -> None:
    """Compare the retrievers of one or two runs of `polyad eval --out`.

    The first run is the baseline; in a single run, the first retriever is. Differences are means over the questions in
    percentage points, with 95 per cent confidence intervals (10,000 bootstrap samples of the questions). p is the
    probability of so large a difference by chance (randomisation test), with Holm's correction for all rows. Below are
    the questions that differ most by the first measure, with the documents of both sides.

    With --pairwise a language model compares the answers of two runs, twice for each question and in both orders. A
    verdict counts only if both orders agree; the table shows how often they do not. With --pairwise-of hyperedges it
    compares what two constructions built from the same passages, in runs of `polyad eval --judge hyperedges`.

    Example: polyad bench compare before/ after/ --fail-below recall@5=-0.5

    With an imported run: polyad bench compare runs/kgp:KGP runs/polyad:default
    """
    if len(runs) > 2:
        raise ConfigurationError(f"{len(runs)} runs were given; expected one or two")
    bounds = comparison.parse_min_differences(fail_below or [])
    explicit = [parse_measure(name.strip()).name for name in measures.split(",")] if measures else []
    pairs = comparison.pair_systems(comparison.load_systems(runs))
    names = list(dict.fromkeys([*(explicit or comparison.choose_measures(pairs)), *bounds]))
    if not names and not pairwise:
        raise ConfigurationError(
            "the data set of these runs has neither judged documents nor stated evidence; expected --pairwise DIR, "
            "which compares answers"
        )
    outcomes = _compare_answers(pairs, pairwise, pairwise_of, model, json=json) if pairwise else []
    comparisons = comparison.compare_systems(pairs, names, pairs[0][0].run.seed if seed is None else seed)
    if json:
        extra = {"pairwise": [outcome.to_json() for outcome in outcomes]} if pairwise else {}
        say_json(comparison.comparisons_to_json(comparisons) | extra)
    else:
        for each in comparisons if names else ():
            _show_comparison(each, questions)
        for outcome in outcomes:
            say(f"whose {pairwise_of} are better, in per cent of the questions judged:")
            say(f"  first:  {outcome.first}\n  second: {outcome.second}")
            output.show_table([outcome.format_row()])
    failures = comparison.find_failures(comparisons, bounds)
    for line in failures:
        warn("failed", line)
    if failures:
        raise typer.Exit(1)


def _compare_answers(
    pairs: Sequence[tuple[System, System]], folder: Path, subject: Subject, model: str | None, *, json: bool
) -> list[PairwiseResult]:
    settings = load_settings(model=model)
    if settings.language_model is None:
        raise NoLanguageModelError("--pairwise")
    with progress_bar(json) as progress:
        prompts = Prompts(settings.command.prompts)
        return compare_answers(pairs, load_language_model(settings.language_model), folder, progress, prompts, subject)


def import_run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rankings in TREC's run format or as JSON.")],
    folder: Annotated[Path, typer.Argument(metavar="BEIR_DIR", help="The data set that the rankings are of.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the run.")],
    source: Annotated[str, typer.Option(metavar="TEXT", help="Origin of the rankings, printed in reports.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the system. [that in the file]")] = "",
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Depth of the rankings, in documents.")] = 5,
    limit: Limit = None,
    json: Json = False,
) -> None:
    """Import rankings of a system that polyad does not implement.

    Reports and comparisons then show them, with their source. A line of TREC's format is `query Q0 document rank score
    tag`; JSON is {question: {document: score}}, {question: [document, ...]}, or one of these for each {system: ...}.
    Give -k and --limit as for the runs to compare with.

    Example: polyad bench import-run kgp.trec musique/ --name KGP --source "its public code" --out runs/kgp
    """
    dataset = load_dataset(folder)
    dataset = replace(dataset, queries=dataset.queries[:limit])
    run = imported_runs.import_run(imported_runs.read_rankings(file, name), dataset, out, k, source)
    if json:
        say_json(run.to_json())
    else:
        output.show_table([format_result_row(result) for result in run.compute_results()])


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or of several runs.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the report. [report/ in the first folder]")
    ] = None,
    plots: Plots = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Write tables, plots and a web page on runs of `polyad eval --out`.

    Writes tables.md, plots as PNG and SVG (with matplotlib: pip install "polyad[plots]"), and report.html, which
    contains all of them in one file. Also rewrites run.trec and results.json of each run. The report depends on the
    files of the runs alone, so it is the same each time.

    Example: polyad bench report runs/ --out results/
    """
    if out is None:
        out = runs[0] / "report"
        require_no_links([out])
    folders = reports.find_run_folders(runs)
    for folder in folders:
        run_folder.write_derived_files(run_folder.load_run(folder))
    files = reports.write_report(folders, out, seed, split_names(plots))
    say_result(json, {"files": [str(file) for file in files]}, say, "\n".join(map(str, files)))


def _show_comparison(comparison: RunComparison, max_questions: int) -> None:
    first, second = comparison.first, comparison.second
    say(f"{second.name} against {first.name}: {len(first.records)} questions; in percentage points")
    output.show_table([_format_difference(difference) for difference in comparison.differences])
    measure = parse_measure(comparison.differences[0].measure)
    differing = comparison.rank_questions(measure)
    worse = sum(by < 0 for by, *_ in differing)
    say(f"{measure.name} is worse on {worse} questions and better on {len(differing) - worse}")
    titles = first.run.read_titles() | second.run.read_titles() if max_questions else {}
    for by, *records in _select_ends(differing, max_questions):
        query = records[0].query
        say(f"\n{100 * by:+.0f}  {query.text}  ({query.id})")
        for record in records:
            say(f"   {record.retriever}: {_describe_documents(record, titles)}")
    say()


def _select_ends(items: Sequence[T], limit: int) -> Sequence[T]:
    """Return the first and the last items of a sequence; together at most ``limit`` items."""
    head, tail = limit - limit // 2, len(items) - limit // 2
    return items if len(items) <= limit else [*items[:head], *items[tail:]]


def _format_difference(difference: Difference) -> Mapping[str, str]:
    return {
        "measure": difference.measure,
        "first": f"{100 * difference.first:.1f}",
        "second": f"{100 * difference.second:.1f}",
        "by": f"{100 * difference.difference:+.1f}",
        "from": f"{100 * difference.low:+.1f}",
        "to": f"{100 * difference.high:+.1f}",
        "p": f"{difference.p:.4f}",
        "p (Holm)": f"{difference.p_holm:.4f}",
    }


def _describe_documents(record: QuestionRecord, titles: Mapping[str, str]) -> str:
    """Return one line with the titles of the top-ranked documents and of all gold documents, marked with ``*``."""
    ranked, gold, limit = record.documents, record.query.gold, _MAX_DOCUMENTS
    first = [f"{'*' if id in gold else ''}{titles.get(id, id)}" for id in ranked[:limit]]
    behind = [f"*{titles.get(id, id)} at {rank}" for rank, id in enumerate(ranked, 1) if rank > limit and id in gold]
    missing = [f"not found: {titles.get(id, id)}" for id in sorted(gold - set(ranked))]
    return "; ".join([*first, *behind, *missing])
