"""The commands that measure many variants: ``polyad bench experiment``, ``sweep`` and ``ablate``."""

from __future__ import annotations

import hashlib
import json as json_
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.evaluate_measuring import (
    Answers,
    Judged,
    JudgeModel,
    is_complete,
    judge,
    judged_by,
    judges_from,
    measure,
    require_model,
    require_models,
    warn_of_weights,
    writer_for,
)
from polyad.cli.options import Depth, Embedder, Json, Mentions, Model, Preset, Quiet, directory_for, settings_from
from polyad.cli.settings import Configuration, require_one_of
from polyad.engine.changes import with_settings
from polyad.engine.registry import get_settings_by_section, retrievers
from polyad.errors import ConfigurationError
from polyad.evaluation.datasets import layouts
from polyad.evaluation.datasets.beir import Dataset
from polyad.evaluation.datasets.splits import select_questions
from polyad.evaluation.datasets.training_questions import load_training_questions
from polyad.evaluation.reports.report import TABLES, write_report
from polyad.evaluation.runs import plans, run_folder
from polyad.evaluation.runs.manifest import settings_to_json
from polyad.evaluation.runs.plans import Plan, Variant
from polyad.protocols.components import Progress
from polyad.text.counting import format_count

_OF_THE_INDEX = ("read", "split", "embedding", "segmentation", "facts")
"""Sections that decide what is in an index."""

Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Where the runs and their report go.")]
Kept = Annotated[str | None, typer.Option("--store", metavar="DIR", help="Keep the indexes here for the next run.")]
Limit = Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N questions.")]


def experiment(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file; its folders are relative to it.")],
    out: Out = None,
    preset: Preset = None,
    store: Kept = None,
    model: Model = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what a TOML file says: benchmarks, methods, retrievers, variants of settings.

    Keys: benchmarks, retrievers, methods, presets, k, limit, split, seed, embedder, mentions, out. Under
    [variants.NAME] are settings by "section.key", as in polyad.toml; under [sweep] lists of values by "section.key", of
    which each combination is a variant. Each variant on each benchmark is a run, as `polyad eval --out` keeps it; the
    report of all is written beside them. The same command takes up what was stopped. Questions are also answered with
    answers = true, or in each mode of a list answering (concise, think-answer, sections, entity, entities); judges and
    judge_model say by what and by whom that is judged, as --judge does.

    Example: polyad bench experiment decay.toml --out runs/
    """
    plan = plans.read_plan(file)
    _carry_out(_with_preset(plan, preset), out or plan.out, store, model, json=json, quiet=quiet)


def sweep(
    what: Annotated[list[str], typer.Argument(metavar="BEIR_DIR... NAME=A,B,...", help="Benchmarks and settings.")],
    out: Out = None,
    retriever: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="By default the one whose settings are swept, or `default`.")
    ] = None,
    preset: Preset = None,
    store: Kept = None,
    k: Depth = None,
    limit: Limit = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    answers: Answers = False,
    judged: Judged = None,
    judge_model: JudgeModel = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure retrievers over values of settings, in every combination.

    Names are section.key as in polyad.toml. Indexes are made once for all variants that share theirs. The report shows
    one setting as lines and two as a heat map. With --answers and --judge each run is answered and judged as well, as
    by `polyad eval`.

    Example: polyad bench sweep musique/ hypersu.decay=0.3,0.5,0.7 --out runs/decay
    """
    folders = [Path(item) for item in what if "=" not in item or Path(item).is_dir()]
    swept = dict(plans.parse_sweep(item) for item in what if Path(item) not in folders)
    if not folders or not swept:
        raise ConfigurationError("expected benchmarks and settings: polyad bench sweep BEIR_DIR hypersu.decay=0.3,0.5")
    named = [section for section in dict.fromkeys(name.partition(".")[0] for name in swept) if section in retrievers]
    plan = Plan(
        benchmarks=tuple(folders),
        variants=tuple(plans.build_grid(swept)),
        retrievers=_listed(retriever) or tuple(named) or ("default",),
        k=k,
        limit=limit,
        embedder=embedder or "",
        mentions=mentions or "",
        answers=answers,
        judges=judges_from(judged),
        judge_model=judge_model or "",
    )
    _carry_out(_with_preset(plan, preset), out, store, model, json=json, quiet=quiet)


def ablate(
    folders: Annotated[list[Path], typer.Argument(metavar="BEIR_DIR...", help="Benchmarks.")],
    retriever: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(plans.ABLATIONS)}.")] = "hypersu",
    out: Out = None,
    preset: Preset = None,
    store: Kept = None,
    k: Depth = None,
    limit: Limit = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    answers: Answers = False,
    judged: Judged = None,
    judge_model: JudgeModel = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what a retriever loses without each of its parts, as its paper does.

    With --answers and --judge each run is answered and judged as well, as by `polyad eval`.

    Example: polyad bench ablate musique/ --retriever hypergraphrag --out runs/ablation
    """
    require_one_of("retriever", retriever, tuple(plans.ABLATIONS))
    plan = Plan(
        benchmarks=tuple(folders),
        variants=tuple(plans.ABLATIONS[retriever]),
        retrievers=(retriever,),
        k=k,
        limit=limit,
        embedder=embedder or "",
        mentions=mentions or "",
        answers=answers,
        judges=judges_from(judged),
        judge_model=judge_model or "",
    )
    _carry_out(_with_preset(plan, preset), out, store, model, json=json, quiet=quiet)


def _with_preset(plan: Plan, preset: str | None) -> Plan:
    """The plan, each of whose variants that has no preset of its own is of that one."""
    if not preset:
        return plan
    return replace(plan, variants=tuple(replace(one, preset=one.preset or preset) for one in plan.variants))


def _listed(names: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names.split(","))) if names else ()


def _carry_out(plan: Plan, out: Path | None, store: str | None, model: str | None, *, json: bool, quiet: bool) -> None:
    """Measure each variant on each benchmark into a run of its own, then write the report of all."""
    if out is None:
        raise ConfigurationError("expected a folder for the runs: --out DIR")
    settings = _settings(plan, model)
    for name in plan.retrievers:
        require_one_of("retriever", name, retrievers)
    require_model(plan.retrievers, settings)
    require_models(plan.judges, judged_by(plan.judge_model, settings), settings, answers=plan.answers)
    variants = [_with(plan, variant, model) for variant in plan.variants]
    benchmarks = [layouts.load_dataset(folder) for folder in plan.benchmarks]
    _require_names([whole.name for whole in benchmarks])
    runs: list[Path] = []
    made: dict[Path, dict[str, object]] = {}
    failed = False
    with directory_for(store) as directory, output.progress_bar(quiet or json) as progress:
        for whole in benchmarks:
            for name, chosen in zip(plans.get_run_names(plan), variants, strict=True):
                runs.append(out / whole.name / name)
                failed |= _keep_run(runs[-1], whole, plan, chosen, directory, made, progress)
    files = write_report(runs, out / "report", plan.seed)
    if json:
        shapes = [{"folder": str(folder), **run_folder.load_run(folder).to_json()} for folder in runs]
        output.say_json({"runs": shapes, "report": [str(file) for file in files]})
    else:
        output.say((out / "report" / TABLES).read_text(encoding="utf-8").rstrip())
        output.say(f"\n{format_count(len(runs), 'run')}; report: {files[-1]}")
    if failed:
        raise typer.Exit(1)


def _require_names(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"two benchmarks are called {name!r}; expected folders of different names")


def _settings(plan: Plan, model: str | None, preset: str | None = None, method: str | None = None) -> Configuration:
    return settings_from(
        k=plan.k,
        preset=preset,
        method=method,
        embedder=plan.embedder or None,
        mentions=plan.mentions or None,
        model=model,
    )


def _with(plan: Plan, variant: Variant, model: str | None) -> Configuration:
    settings = _settings(plan, model, variant.preset or None, variant.method or None)
    return replace(settings, stages=with_settings(settings.stages, variant.settings))


def _keep_run(
    folder: Path,
    whole: Dataset,
    plan: Plan,
    settings: Configuration,
    stores: Path,
    made: dict[Path, dict[str, object]],
    progress: Progress,
) -> bool:
    """Measure one variant, or what an earlier run of it lacks; returns whether some document or answer failed.

    What making an index took is that of the first variant that uses it, kept in ``made``.
    """
    known = load_training_questions(plan.retrievers, settings.stages)
    dataset = replace(whole, queries=select_questions(whole, plan.split, plan.limit, known))
    with writer_for(folder, dataset, plan.retrievers, settings, seed=plan.seed, split=plan.split) as writer:
        if not is_complete(writer, plan.retrievers, dataset.queries, answers=plan.answers):
            store = stores / f"{dataset.name}-{_index_digest(settings)}"
            if store in made:
                writer.write_index_cost(made[store])
            found = measure(settings, dataset, plan.retrievers, store, writer, progress, answers=plan.answers)
            made.setdefault(store, found.sizes)
            output.warn_of_failures(found.report)
            warn_of_weights(plan.retrievers, dataset, settings.stages)
    if plan.judges:
        judge(folder, plan.judges, dataset, judged_by(plan.judge_model, settings), progress)
    run = run_folder.load_run(folder)
    run_folder.write_derived_files(run)
    is_whole = is_complete(writer, plan.retrievers, dataset.queries, answers=plan.answers)
    return bool(run.index["failed"]) or not is_whole


def _index_digest(settings: Configuration) -> str:
    """What tells indexes apart: variants that share it share their index."""
    given = get_settings_by_section(settings.stages)
    sections = [settings_to_json(given[name]) for name in _OF_THE_INDEX]
    command = settings.command
    chosen = [command.method, command.embedder, command.mentions, sections]
    return hashlib.sha256(json_.dumps(chosen).encode()).hexdigest()[:12]
