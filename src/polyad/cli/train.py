"""The command that trains: ``polyad bench train``."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from polyad.cli import measurements, output
from polyad.cli.options import (
    Embedder,
    Json,
    Mentions,
    Method,
    Preset,
    Quiet,
    directory_for,
    open_engine,
    settings_from,
)
from polyad.cli.settings import Configuration, require_one_of
from polyad.config import QuestionSettings
from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.evaluation.datasets import beir
from polyad.evaluation.datasets.beir import Dataset, Question
from polyad.evaluation.datasets.splits import Splits, split_dataset
from polyad.evaluation.runs import retriever_evaluation as retriever_evaluation
from polyad.evaluation.training import linear_scorer, triple_scorer
from polyad.evaluation.training.held_out import evaluate_held_out
from polyad.evaluation.training.inputs import extract_signals, get_training_components
from polyad.evaluation.training.triple_examples import collect_triples
from polyad.indexing.run import IndexReport
from polyad.protocols.components import Progress
from polyad.retrieval.default.signals import list_signal_names
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings, HyperRetrieverTraining
from polyad.schemas import measuring as shapes

SCORERS = ("default", "hyperretriever")


def train(
    scorer: Annotated[str, typer.Argument(metavar="SCORER", help=f"What to train: {' or '.join(SCORERS)}.")],
    folders: Annotated[list[Path], typer.Argument(metavar="BEIR_DIR...", help="Benchmarks to train on.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Where the weights and the report go.")] = Path(),
    store: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the indexes here for the next run.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N questions of each.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of all that is random in training.")] = 0,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of `hyperretriever`: at most so many. [50]")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of `hyperretriever`: triples a step. [32]")
    ] = None,
    rate: Annotated[float | None, typer.Option(metavar="X", help="Of `hyperretriever`: learning rate. [1e-4]")] = None,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of `hyperretriever`: cpu, cuda, mps, as torch has them. [cpu]")
    ] = None,
    preset: Preset = None,
    method: Method = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a retriever on questions whose evidence is known.

    `default` writes weights.tsv (and weights_rewriting.tsv, for --rewrite) and reports the recall on each benchmark: by
    weights trained on the others, and by the weights written. `hyperretriever` trains on about 64 per cent of
    each benchmark's questions, stops by another 16, and reports on the rest, beside a default scorer trained on the
    same questions; it writes hyperretriever.safetensors. Which part a question is in depends on its text alone. Both
    write a picture and a report. Use what was written with `weights = "FILE"` in the section [default] or
    [hyperretriever] of polyad.toml.

    Example: polyad bench train default 2wiki/ hotpotqa/ musique/ --to weights/
    """
    require_one_of("scorer", scorer, SCORERS)
    how = _fitting(scorer, seed, epochs=epochs, batch=batch, rate=rate, device=device)
    settings = settings_from(embedder=embedder, mentions=mentions, method=method, preset=preset)
    benchmarks = _loaded(folders)
    splits = {name: split_dataset(dataset, limit) for name, dataset in benchmarks.items()}
    if scorer == "hyperretriever":
        for name, split in splits.items():
            split.require_all(name)
    _require_writable(to)
    linear_scorer.import_minimize()
    with directory_for(store) as directory, ExitStack() as stack:
        engines: dict[str, Engine] = {}
        reports = []
        for name, dataset in benchmarks.items():
            engines[name] = stack.enter_context(open_engine(settings, create=True, directory=directory / name))
            reports.append(_index(engines[name], dataset, settings.method, quiet or json))
        with output.progress_bar(quiet or json) as progress:
            if scorer == "default":
                asked = {name: dataset.queries[:limit] for name, dataset in benchmarks.items()}
                _train_default(engines, asked, to, json, progress)
            else:
                _train_hyperretriever(engines, splits, settings, to, how, json, progress)
    if not all(report.is_complete for report in reports):
        raise typer.Exit(1)


def _fitting(scorer: str, seed: int, **given: Any) -> triple_scorer.TripleTrainingSettings:
    """How a scorer is fitted; only that of HyperRetriever has a choice."""
    fitting = {name: value for name, value in given.items() if value is not None}
    if scorer != "hyperretriever" and fitting:
        raise ConfigurationError(f"--{next(iter(fitting))} is for the training of hyperretriever; leave it out")
    return triple_scorer.TripleTrainingSettings(seed=seed, **fitting)


def _require_writable(directory: Path) -> None:
    """Make the directory, so that what cannot be written is known before the training and not after it.

    Raises:
        ConfigurationError: it cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(directory)!r}: {error.strerror}") from error


def _loaded(folders: Sequence[Path]) -> dict[str, Dataset]:
    """The benchmarks by name.

    Raises:
        ConfigurationError: two have the same name, by which indexes and results are kept apart.
    """
    places: dict[str, Path] = {}
    for folder in folders:
        name = folder.resolve().name
        if name in places:
            raise ConfigurationError(
                f"{str(places[name])!r} and {str(folder)!r} are both called {name!r}; expected benchmarks of different "
                "names; rename one of the folders"
            )
        places[name] = folder
    return {name: beir.load_beir(folder) for name, folder in places.items()}


def _index(engine: Engine, dataset: Dataset, method: str, quiet: bool) -> IndexReport:
    """Index a benchmark, and say what went wrong before anything is trained on the rest."""
    with output.progress_bar(quiet) as progress:
        report = engine.index([dataset.corpus], method=method, progress=progress)
    output.warn_of_failures(report)
    output.warn_of_others(report, engine.catalogue.statistics().documents, f"the index of {dataset.name}")
    measurements.warn_of_judgements(dataset, engine.catalogue.sources())
    return report


def _train_default(
    engines: Mapping[str, Engine], asked: Mapping[str, Sequence[Question]], to: Path, json: bool, progress: Progress
) -> None:
    reports = linear_scorer.train_and_save(_signal_examples(engines, asked, progress), to)
    if json:
        output.say_json(shapes.training_json(reports))
    else:
        measurements.show_training(reports, to)


def _signal_examples(
    engines: Mapping[str, Engine], asked: Mapping[str, Sequence[Question]], progress: Progress
) -> dict[str, list[linear_scorer.TrainingExample]]:
    """What the default scorer is trained on, by the name of the benchmark."""
    examples = {}
    for name, engine in engines.items():
        questions = retriever_evaluation.track_questions([query.text for query in asked[name]], progress, name)
        examples[name] = linear_scorer.build_examples(extract_signals(engine, questions), asked[name])
    return examples


def _train_hyperretriever(
    engines: Mapping[str, Engine],
    splits: Mapping[str, Splits],
    settings: Configuration,
    to: Path,
    how: triple_scorer.TripleTrainingSettings,
    json: bool,
    progress: Progress,
) -> None:
    chosen, k = settings.stages.of(HyperRetrieverSettings), settings.command.depth
    learning = settings.stages.of(HyperRetrieverTraining)
    examples = {}
    for name, engine in engines.items():
        collected = partial(
            collect_triples,
            *get_training_components(engine, progress),
            settings=chosen,
            learning=learning,
            names=settings.stages.of(QuestionSettings).names,
            seed=how.seed,
            progress=progress,
        )
        examples[name] = collected(splits[name].train), collected(splits[name].validation)
    alike = _signal_examples(engines, {name: split.train for name, split in splits.items()}, progress)
    linear = linear_scorer.train_linear_scorer(list(alike.values()), list_signal_names(rewriting=False))
    scorer, report = triple_scorer.train_triple_scorer(examples, how, progress)
    file = triple_scorer.save_triple_scorer(scorer, report, to)
    results = {
        name: evaluate_held_out(engine, scorer, linear, chosen, splits[name].test, k, progress)
        for name, engine in engines.items()
    }
    if json:
        output.say_json(shapes.triple_training_json(report, results, k))
    else:
        measurements.show_triple_training(report, results, file, k)
