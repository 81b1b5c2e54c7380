"""The commands that read runs which are kept: ``polyad bench compare`` and ``report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from polyad.cli import output
from polyad.cli.options import Json, Model, settings_from
from polyad.cli.places import shorten
from polyad.engine.loaders import load_language_model
from polyad.errors import ConfigurationError, NoLanguageModelError
from polyad.evaluation.answers.pairwise import PairwiseResult, compare_answers
from polyad.evaluation.measures.named import parse_measure
from polyad.evaluation.reports import report as reports
from polyad.evaluation.runs import comparison, run_folder
from polyad.evaluation.runs.comparison import Comparison, Difference, System
from polyad.evaluation.runs.records import PassageText, QuestionRecord
from polyad.text.prompts import Prompts

T = TypeVar("T")

Seed = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Of intervals and tests; by default that of the first run.")
]

_SHOWN = 4
"""Passages of each side, where there are more."""


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="One or two: FOLDER or FOLDER:RETRIEVER.")],
    measures: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            show_default=False,
            help="Such as recall@5, ndcg@10; in words of text recall@500w or evidence_recall@500w. [what can be told]",
        ),
    ] = None,
    fail_below: Annotated[
        list[str] | None,
        typer.Option(metavar="M=X", help="Exit with 1 where measure M falls by more than X points: recall@5=-0.5."),
    ] = None,
    questions: Annotated[
        int, typer.Option(metavar="N", min=0, help="Show at most so many questions that differ.")
    ] = 10,
    seed: Seed = None,
    pairwise: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Have a language model say whose answers are better; verdicts are kept here."),
    ] = None,
    model: Model = None,
    json: Json = False,
) -> None:
    """Compare what retrievers found in runs of `polyad eval --out`.

    The first is the baseline. Of one run its retrievers are compared with its first. Differences are means over the
    questions, in percentage points, with the interval in which they lie with 95 per cent confidence (10,000 bootstrap
    samples of the questions); p says how likely so large a difference is by chance (randomisation test), corrected by
    Holm for all differences shown. Below are the questions that differ by the first measure, with what each found.

    With --pairwise a language model reads the answers of runs that have some, two at a time and in both orders. A
    verdict counts where both orders lead to it; how often they do not is told beside it.

    Example: polyad bench compare before/ after/ --fail-below recall@5=-0.5
    """
    if len(runs) > 2:
        raise ConfigurationError(f"{len(runs)} runs are named; expected one or two")
    bounds = comparison.parse_min_differences(fail_below or [])
    named = [parse_measure(name.strip()).name for name in measures.split(",")] if measures else []
    pairs = comparison.pair_systems(comparison.load_systems(runs))
    names = list(dict.fromkeys([*(named or comparison.choose_measures(pairs)), *bounds]))
    if not names and not pairwise:
        raise ConfigurationError(
            "nobody has judged documents of these runs, and no evidence is stated; expected --pairwise DIR, which "
            "compares answers"
        )
    outcomes = _fought(pairs, pairwise, model, json=json) if pairwise else []
    found = comparison.compare_systems(pairs, names, pairs[0][0].run.seed if seed is None else seed)
    if json:
        told = {"pairwise": [outcome.to_json() for outcome in outcomes]} if pairwise else {}
        output.say_json(comparison.comparisons_to_json(found) | told)
    else:
        for one in found if names else ():
            _show(one, questions)
        if outcomes:
            output.say("whose answers are better, in per cent of the questions judged:")
            output.show_table([outcome.format_row() for outcome in outcomes])
    failed = comparison.find_failures(found, bounds)
    for line in failed:
        output.warn("failed", line)
    if failed:
        raise typer.Exit(1)


def _fought(
    pairs: Sequence[tuple[System, System]], folder: Path, model: str | None, *, json: bool
) -> list[PairwiseResult]:
    settings = settings_from(model=model)
    if settings.language_model is None:
        raise NoLanguageModelError("--pairwise")
    with output.progress_bar(json) as progress:
        prompts = Prompts(settings.command.prompts)
        return compare_answers(pairs, load_language_model(settings.language_model), folder, progress, prompts)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or folders that hold some.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the report goes; by default into the first, as report/.")
    ] = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Write the report of runs that `polyad eval --out` has kept.

    That is tables.md, pictures as PNG and SVG (with matplotlib: pip install "polyad[plots]"), and report.html, one page
    with all of it that needs no other file. What each run derives from its records (run.trec, results.json) is written
    anew too. All of it is made of the runs' files, and the same each time.

    Example: polyad bench report runs/ --out results/
    """
    folders = reports.find_run_folders(runs)
    for folder in folders:
        run_folder.write_derived_files(run_folder.load_run(folder))
    files = reports.write_report(folders, out or runs[0] / "report", seed)
    if json:
        output.say_json({"files": [str(file) for file in files]})
    else:
        output.say("\n".join(map(str, files)))


def _show(found: Comparison, most: int) -> None:
    asked = len(found.first.records)
    output.say(f"{found.second.name} against {found.first.name}: {asked} questions; in percentage points")
    output.show_table([_row(difference) for difference in found.differences])
    measure = parse_measure(found.differences[0].measure)
    differing = found.rank_questions(measure)
    worse = sum(by < 0 for by, *_ in differing)
    output.say(f"{measure.name} is worse on {worse} questions and better on {len(differing) - worse}")
    titles = {**found.first.run.read_passages(), **found.second.run.read_passages()} if most else {}
    shown = (
        differing
        if len(differing) <= most
        else [*differing[: most - most // 2], *differing[len(differing) - most // 2 :]]
    )
    for by, one, other in shown:
        output.say(f"\n{100 * by:+.0f}  {one.query.text}  ({one.query.id})")
        for record in (one, other):
            output.say(f"   {record.retriever}: {_evidence(record, titles)}")
    output.say()


def _ends(items: Sequence[T], most: int) -> Sequence[T]:
    """All of the items, or as many from both ends as may be shown."""
    head, tail = most - most // 2, len(items) - most // 2
    return items if len(items) <= most else [*items[:head], *items[tail:]]


def _row(difference: Difference) -> Mapping[str, str]:
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


def _evidence(record: QuestionRecord, texts: Mapping[str, PassageText]) -> str:
    """The first documents with a star where they are gold, and what of the gold came at which rank or not at all."""
    titles: dict[str, str] = {}
    for found in record.passages:
        passage = texts.get(found.passage_id)
        label = passage.title or shorten(passage.text, 40) if passage else ""
        titles.setdefault(found.document_id, label or found.document_id)
    ranked = record.documents
    first = [f"{'*' if id in record.query.gold else ''}{titles[id]}" for id in ranked[:_SHOWN]]
    behind = [f"*{titles[id]} at {ranked.index(id) + 1}" for id in ranked[_SHOWN:] if id in record.query.gold]
    missing = [f"not found: {id}" for id in sorted(record.query.gold - set(ranked))]
    return "; ".join([*first, *behind, *missing])
