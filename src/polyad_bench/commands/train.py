"""The command ``polyad bench train``."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from polyad.cli import options, output
from polyad.cli.progress import progress_bar
from polyad.cli.settings import Configuration, require_one_of
from polyad.cli.streams import say, say_result
from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.indexing.run import IndexReport
from polyad.protocols.components import Progress
from polyad.retrieval.default.scorer import WEIGHTS_FILE, LinearScorer
from polyad.retrieval.default.signals import SIGNAL_NAMES
from polyad.retrieval.hyperretriever.settings import CODE_VARIANT, HyperRetrieverTraining
from polyad.text.words import format_count
from polyad_bench.commands import json_shapes as schemas
from polyad_bench.commands.steps import warn_of_judgements
from polyad_bench.datasets import beir
from polyad_bench.datasets.beir import Dataset, Question
from polyad_bench.datasets.selection import Splits, load_datasets, split_dataset
from polyad_bench.reports.tables import format_result_row
from polyad_bench.runs.retriever_evaluation import RetrieverResult, track_questions
from polyad_bench.training import linear_scorer, network_training, triple_scorer
from polyad_bench.training.last_stage_training import train_last_stage
from polyad_bench.training.linear_scorer import TrainingExample, extract_signals, get_training_components
from polyad_bench.training.network_training import SelectNetwork, compare_examples
from polyad_bench.training.triple_examples import collect_triples
from polyad_bench.training.triple_scorer import evaluate_held_out

SCORERS = ("default", "hyperretriever")


def train(
    scorer: Annotated[str, typer.Argument(metavar="SCORER", help=f"Retriever to train: {' or '.join(SCORERS)}.")],
    folders: Annotated[list[Path], typer.Argument(metavar="BEIR_DIR...", help="Benchmarks to train on.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Folder for the weights and the report.")] = Path(),
    store: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="Directory that keeps the index of a benchmark, as in `polyad eval`; one for each, in their order.",
        ),
    ] = None,
    limit: options.Limit = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed.")] = 0,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="For `hyperretriever`: maximum number of epochs. [50]")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="For `hyperretriever`: triples per step. [32]")
    ] = None,
    rate: Annotated[float | None, typer.Option(metavar="X", help="For `hyperretriever`: learning rate. [1e-4]")] = None,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="For `hyperretriever`: torch device such as cpu or cuda. [cpu]")
    ] = None,
    variant: Annotated[
        Literal["paper", "code"] | None,
        typer.Option(help="For `hyperretriever`: features and negatives as in the paper, or as in its public code."),
    ] = None,
    preset: options.Preset = None,
    method: options.Method = None,
    embedder: options.Embedder = None,
    mention_extractor: options.MentionExtractor = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a retriever on questions with gold documents.

    `default` writes weights.tsv and reports the recall on each benchmark,
    with weights trained on the other benchmarks and with the weights of the file. `hyperretriever` trains on about 64
    per cent of each benchmark's questions, validates on 16 per cent, and tests on the rest, beside a default scorer
    trained on the same questions; it writes hyperretriever.safetensors. The part of a question depends on its text
    alone. Both write a plot and a report. To use the weights, set `weights = "FILE"` in the section [default] or
    [hyperretriever] of polyad.toml.

    Example: polyad bench train default 2wiki/ hotpotqa/ musique/ --to weights/
    """
    require_one_of("scorer", scorer, SCORERS)
    values: dict[str, Any] = {"variant": variant, "epochs": epochs, "batch": batch, "rate": rate, "device": device}
    explicit = {name: value for name, value in values.items() if value is not None}
    if scorer != "hyperretriever" and explicit:
        raise ConfigurationError(f"--{next(iter(explicit))} is for the training of hyperretriever; leave it out")
    explicit |= CODE_VARIANT if explicit.pop("variant", "paper") == "code" else {}
    settings = options.load_settings(
        embedder=embedder, mention_extractor=mention_extractor, method=method, preset=preset
    )
    benchmarks = load_datasets(folders, beir.load_beir)
    splits = {name: split_dataset(dataset, limit) for name, dataset in benchmarks.items()}
    if scorer == "hyperretriever":
        for name, split in splits.items():
            split.require_nonempty(name)
    if store and len(set(store)) != len(benchmarks):
        raise ConfigurationError(
            f"--store names {format_count(len(set(store)), 'directory')} for "
            f"{format_count(len(benchmarks), 'benchmark')}; expected one for each of {', '.join(benchmarks)}, in this "
            "order: --store A --store B"
        )
    _require_writable(to)
    linear_scorer.import_minimize()
    with ExitStack() as stack:
        engines: dict[str, Engine] = {}
        reports = []
        places: Sequence[str | None] = store or [None] * len(benchmarks)
        for place, (name, dataset) in zip(places, benchmarks.items(), strict=True):
            directory = stack.enter_context(options.directory_for(place))
            engines[name] = stack.enter_context(options.open_engine(settings, create=True, directory=directory))
            reports.append(_index(engines[name], dataset, settings.method, quiet or json))
        with progress_bar(quiet or json) as progress:
            if scorer == "default":
                questions = {name: dataset.queries[:limit] for name, dataset in benchmarks.items()}
                _train_default(engines, questions, to, seed, json, progress)
            else:
                learning = replace(settings.stages.hyperretriever_training, seed=seed, **explicit)
                _train_hyperretriever(engines, splits, settings, to, learning, json, progress)
    if not all(report.is_complete for report in reports):
        raise typer.Exit(1)


def _require_writable(directory: Path) -> None:
    """Create a directory if it is missing, and check that files can be written into it.

    Raises:
        ConfigurationError: The directory cannot be created or written to.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(directory)!r}: {error.strerror}") from error


def _index(engine: Engine, dataset: Dataset, method: str, quiet: bool) -> IndexReport:
    """Index the documents of a benchmark before training, and print a warning for each failed document."""
    with progress_bar(quiet) as progress:
        report = engine.index([dataset.corpus], method=method, progress=progress)
    output.warn_of_failures(report)
    output.warn_of_others(report, engine.catalogue.statistics().documents, f"the index of {dataset.name}")
    warn_of_judgements(dataset, engine.catalogue.sources())
    return report


def _train_default(
    engines: Mapping[str, Engine],
    questions: Mapping[str, Sequence[Question]],
    to: Path,
    seed: int,
    json: bool,
    progress: Progress,
) -> None:
    examples = _build_linear_examples(engines, questions, progress)

    def train_later_stages(scorer: LinearScorer) -> LinearScorer:
        def compare(select: SelectNetwork | None) -> list[list[TrainingExample]]:
            return [compare_examples(engine, examples[name], scorer, select) for name, engine in engines.items()]

        network = network_training.train_second_stage(compare, seed)
        if network is None:
            return scorer
        scorer = replace(scorer, network=network)
        return replace(scorer, last_network=train_last_stage(engines, examples, scorer, seed))

    report = linear_scorer.train_and_save(examples, to, train_later_stages)
    say_result(json, schemas.training_json(report), _show_training, report, to)


def _build_linear_examples(
    engines: Mapping[str, Engine], questions: Mapping[str, Sequence[Question]], progress: Progress
) -> dict[str, list[linear_scorer.TrainingExample]]:
    """Return the labelled training examples of the linear scorer in lists, keyed by benchmark."""
    examples = {}
    for name, engine in engines.items():
        texts = track_questions([query.text for query in questions[name]], progress, name)
        examples[name] = linear_scorer.build_examples(extract_signals(engine, texts), questions[name])
    return examples


def _train_hyperretriever(
    engines: Mapping[str, Engine],
    splits: Mapping[str, Splits],
    settings: Configuration,
    to: Path,
    learning: HyperRetrieverTraining,
    json: bool,
    progress: Progress,
) -> None:
    retriever_settings, k = settings.stages.hyperretriever, settings.command.depth
    examples = {}
    for name, engine in engines.items():
        collect = partial(
            collect_triples,
            *get_training_components(engine, progress),
            settings=retriever_settings,
            training_settings=learning,
            names=settings.stages.question.names,
            progress=progress,
        )
        examples[name] = collect(splits[name].train), collect(splits[name].validation)
    linear_examples = _build_linear_examples(engines, {name: each.train for name, each in splits.items()}, progress)
    linear = linear_scorer.train_linear_scorer(list(linear_examples.values()), SIGNAL_NAMES)
    scorer, report = triple_scorer.train_triple_scorer(examples, learning, progress)
    file = triple_scorer.save_triple_scorer(scorer, report, to)
    results = {
        name: evaluate_held_out(engine, scorer, linear, retriever_settings, splits[name].test, k, progress)
        for name, engine in engines.items()
    }
    say_result(
        json,
        schemas.triple_training_json(report, results, k),
        _show_triple_training,
        report,
        results,
        file,
        k,
    )


def _show_training(report: linear_scorer.TrainingReport, directory: Path) -> None:
    """Print the recall of a trained linear scorer on each benchmark, and the path of its weights."""
    say(f"{directory / WEIGHTS_FILE}, recall@{linear_scorer.K} in per cent:")
    output.show_table(
        [
            {
                "benchmark": name,
                "trained on the others": f"{100 * report.unseen[name]:.1f}" if name in report.unseen else "-",
                "with these weights": f"{100 * report.seen[name]:.1f}",
                "among the candidates": f"{100 * report.candidates[name]:.1f}",
            }
            for name in report.seen
        ]
    )


def _show_triple_training(
    report: triple_scorer.TripleTrainingReport,
    results: Mapping[str, Sequence[RetrieverResult]],
    file: Path,
    k: int,
) -> None:
    """Print the scores of a trained HyperRetriever on held-out questions, and the path of its weights."""
    reached = report.best_epoch
    say(f"{file}: epoch {report.best + 1} of {len(report.epochs)}, {format_count(report.train_triples, 'triple')}")
    say(f"of them {report.train_positives:,} right; on validation precision {100 * reached.precision:.1f}, ")
    say(f"recall {100 * reached.recall:.1f} per cent. Questions kept aside, k = {k}:")
    for name, rows in results.items():
        say(f"\n{name}")
        output.show_table([format_result_row(row) for row in rows])
