"""The commands that measure variants of settings: ``polyad bench experiment``, ``sweep`` and ``ablate``."""

from __future__ import annotations

import hashlib
import json as json_
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import options
from polyad.cli.progress import progress_bar
from polyad.cli.settings import Configuration, require_one_of
from polyad.cli.streams import say, say_json
from polyad.engine.changes import change_settings
from polyad.engine.registry import get_settings_by_section, methods, retrievers
from polyad.errors import ConfigurationError
from polyad.protocols.components import Progress
from polyad.text.files import make_file_name
from polyad.text.words import format_count
from polyad_bench.answers.records import JUDGEMENTS
from polyad_bench.commands import steps
from polyad_bench.datasets.beir import Dataset
from polyad_bench.datasets.selection import load_datasets, load_training_questions, select_questions
from polyad_bench.reports.report import TABLES, write_report
from polyad_bench.runs import plans, run_folder
from polyad_bench.runs.manifest import settings_to_json
from polyad_bench.runs.plans import Plan, Variant

_INDEX_SECTIONS = ("read", "split", "embedding", "segmentation", "facts")
"""Sections of settings that determine the content of an index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentFlags:
    """Options of the commands that measure several variants of the settings, such as ``polyad bench sweep``."""

    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the runs and their report.")] = None
    preset: options.Preset = None
    store: options.KeepStore = None
    model: options.Model = None
    plots: options.Plots = None
    json: options.Json = False
    quiet: options.Quiet = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantFlags(ExperimentFlags):
    """Options of ``polyad bench sweep`` and ``ablate``; for ``polyad bench experiment``, a TOML file sets them."""

    k: options.Depth = None
    limit: options.Limit = None
    embedder: options.Embedder = None
    mention_extractor: options.MentionExtractor = None
    answers: steps.Answers = False
    judged: steps.Judged = None
    judge_model: steps.JudgeModel = None


def experiment(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file; paths in it are relative to its folder.")],
    *,
    flags: ExperimentFlags,
) -> None:
    """Measure several variants of the settings, which a TOML file lists.

    Keys: benchmarks, retrievers, methods, presets, k, limit, split, seed, embedder, mention_extractor, out.
    [variants.NAME] contains settings as "section.key" = value; [sweep] contains lists of values, of which each
    combination is a variant. Each variant on each benchmark is a run like that of `polyad eval --out`, and one report
    covers all runs. The same command continues an experiment that was stopped. With answers = true, or with a list
    `answering` of modes (concise, think-answer, sections, entity, entities), questions are answered too; judges and
    judge_model stand for --judge and --judge-model.

    Example: polyad bench experiment decay.toml --out runs/
    """
    _run_plan(plans.read_plan(file), flags)


def sweep(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="BEIR_DIR... NAME=A,B,...", help="Folders of benchmarks, and settings with their values."
        ),
    ],
    retriever: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Retrievers to measure. [those of the settings]"),
    ] = None,
    *,
    flags: VariantFlags,
) -> None:
    """Measure retrievers with each combination of several values of settings.

    Names are section.key as in polyad.toml; or method, preset, embedder, model, judge_model or seed, which is sent to
    the language model; or system, whose values are retrievers, each on the construction of its own paper (hipporag2) or
    of another one (hipporag2@hypersu). Variants with the same index share it, and those that differ in the judge have
    the same answers. The report plots one setting as lines and two settings as a heat map. --answers and --judge work
    as in `polyad eval`.

    Example: polyad bench sweep musique/ hypersu.decay=0.3,0.5,0.7 --out runs/decay
    """
    folders = [Path(item) for item in what if "=" not in item or Path(item).is_dir()]
    grid = dict(plans.parse_sweep(item) for item in what if Path(item) not in folders)
    if not folders or not grid:
        raise ConfigurationError("expected benchmarks and settings: polyad bench sweep BEIR_DIR hypersu.decay=0.3,0.5")
    varied = [section for section in dict.fromkeys(name.partition(".")[0] for name in grid) if section in retrievers]
    if retriever and plans.SYSTEM in grid:
        raise ConfigurationError(
            f"--retriever is {retriever!r}, and system names retrievers too; leave out one of both"
        )
    names = options.split_names(retriever) or tuple(varied) or ("default",)
    _run_variants(folders, plans.build_grid(grid), names, flags)


def ablate(
    folders: Annotated[
        list[Path], typer.Argument(metavar="BEIR_DIR...", help="Folders of benchmarks in the BEIR format.")
    ],
    retriever: Annotated[
        str, typer.Option(metavar="NAME", help=f"Retriever: {', '.join(plans.ABLATIONS)}.")
    ] = "hypersu",
    *,
    flags: VariantFlags,
) -> None:
    """Measure a retriever several times, each time without one part of its method.

    The parts are those of the ablations in the retriever's paper. --answers and --judge work as in `polyad eval`.

    Example: polyad bench ablate musique/ --retriever hypergraphrag --out runs/ablation
    """
    require_one_of("retriever", retriever, tuple(plans.ABLATIONS))
    variants = [variant for variant in plans.ABLATIONS[retriever] if flags.answers or not variant.changes_only_answers]
    _run_variants(folders, variants, [retriever], flags)


def _run_variants(
    benchmarks: Sequence[Path], variants: Sequence[Variant], retrievers: Sequence[str], flags: VariantFlags
) -> None:
    plan = Plan(
        benchmarks=tuple(benchmarks),
        variants=tuple(variants),
        retrievers=tuple(retrievers),
        k=flags.k,
        limit=flags.limit,
        embedder=flags.embedder or "",
        mention_extractor=flags.mention_extractor or "",
        answers=flags.answers,
        judges=steps.parse_judges(flags.judged),
        judge_model=flags.judge_model or "",
    )
    _run_plan(plan, flags)


def _run_plan(plan: Plan, flags: ExperimentFlags) -> None:
    """Measure each variant of an experiment on each benchmark, and write one report on all runs."""
    out = flags.out or plan.out
    if out is None:
        raise ConfigurationError("expected a folder for the runs: --out DIR")
    variants = []
    for variant in plan.variants:
        settings = _build_variant_settings(plan, variant, flags)
        judge_model = str(variant.models.get("judge_model", plan.judge_model))
        judging = steps.replace_language_model(settings, judge_model)
        names = variant.retrievers or plan.retrievers
        steps.require_models(names, plan.judges, judging, settings, plan.answers)
        variants.append((replace(variant, retrievers=names), settings, judging))
    benchmarks = load_datasets(plan.benchmarks)
    runs: list[Path] = []
    failed = False
    with options.directory_for(flags.store) as directory, progress_bar(flags.quiet or flags.json) as progress:
        measurer = _VariantMeasurer(plan, directory, progress)
        for dataset in benchmarks.values():
            answered: dict[str, Path] = {}
            for name, (variant, settings, judging) in zip(plans.get_run_names(plan), variants, strict=True):
                runs.append(out / dataset.name / name)
                source = answered.setdefault(repr((settings, variant.retrievers)), runs[-1])
                if "judge_model" in variant.models and source != runs[-1] and not runs[-1].exists():
                    shutil.copytree(source, runs[-1], ignore=shutil.ignore_patterns(JUDGEMENTS))
                failed |= measurer.measure(runs[-1], dataset, settings, judging, variant.retrievers)
    files = write_report(runs, out / "report", plan.seed, options.split_names(flags.plots))
    if flags.json:
        shapes = [{"folder": str(folder), **run_folder.load_run(folder).to_json()} for folder in runs]
        say_json({"runs": shapes, "report": [str(file) for file in files]})
    else:
        say((out / "report" / TABLES).read_text(encoding="utf-8").rstrip())
        say(f"\n{format_count(len(runs), 'run')}; report: {files[-1]}")
    if failed:
        raise typer.Exit(1)


def _build_variant_settings(plan: Plan, variant: Variant, flags: ExperimentFlags) -> Configuration:
    settings = options.load_settings(
        k=plan.k,
        preset=variant.preset or flags.preset,
        method=variant.method or None,
        embedder=variant.models.get("embedder", plan.embedder) or None,
        mention_extractor=plan.mention_extractor or None,
        model=variant.models.get("model", flags.model),
        seed=variant.models.get("seed"),
    )
    return replace(settings, stages=change_settings(settings.stages, variant.settings))


class _VariantMeasurer:
    """Measures variants of the settings on benchmarks; variants with the same indexing settings share an index.

    Args:
        plan: The plan of the experiment.
        stores: Folder of the indexes.
        progress: Called with the progress.
    """

    def __init__(self, plan: Plan, stores: Path, progress: Progress) -> None:
        self._plan, self._stores, self._progress = plan, stores, progress
        self._index_costs: dict[Path, dict[str, object]] = {}

    def measure(
        self,
        folder: Path,
        dataset: Dataset,
        settings: Configuration,
        judging: Configuration,
        retrievers: Sequence[str],
    ) -> bool:
        """Store the results of one variant in the run folder ``folder``; return whether a document or question failed.

        Questions with a stored result are skipped. Variants that share an index report the cost of the first variant.
        """
        plan = self._plan
        trained = load_training_questions(retrievers, settings.stages)
        dataset = replace(dataset, queries=select_questions(dataset, plan.split, plan.limit, trained))
        measuring = steps.Measuring(
            settings=settings, dataset=dataset, retrievers=retrievers, answers=plan.answers, judges=plan.judges
        )
        with measuring.open_writer(folder, seed=plan.seed, split=plan.split) as writer:
            if not measuring.is_complete(writer):
                store = self._stores / make_file_name(f"{dataset.name}-{_compute_index_digest(settings)}")
                if store in self._index_costs:
                    writer.write_index_cost(self._index_costs[store])
                self._index_costs.setdefault(store, measuring.measure(store, writer, self._progress))
        return not measuring.is_successful(measuring.finish(writer, judging, self._progress), writer)


def _compute_index_digest(settings: Configuration) -> str:
    """Return a hash of the settings that affect indexing; variants with equal hashes share an index."""
    settings_by_section = get_settings_by_section(settings.stages)
    sections = [settings_to_json(settings_by_section[name]) for name in _INDEX_SECTIONS]
    command = settings.command
    content = [command.method, command.embedder, command.mention_extractor, sections]
    is_built_by_model = bool(command.method) and methods[command.method].needs_language_model
    if settings.language_model and (is_built_by_model or command.mention_extractor == "llm"):
        content.append([settings.language_model.model, settings.language_model.seed])
    return hashlib.sha256(json_.dumps(content).encode()).hexdigest()[:12]
