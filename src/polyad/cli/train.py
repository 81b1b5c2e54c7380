"""The command that trains: ``polyad train``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output, shapes
from polyad.cli.options import Embedder, Json, Mentions, Method, Quiet, directory_for, open_engine, settings_from
from polyad.cli.settings import Configuration, require_one_of
from polyad.engine import Engine
from polyad.evaluation import datasets, experiment
from polyad.evaluation import signal_training as training
from polyad.evaluation import triple_training as path_training
from polyad.evaluation.held_out import held_out
from polyad.evaluation.triple_examples import collect, split
from polyad.protocols import Progress

SCORERS = ("default", "hyperretriever")


def train(
    scorer: Annotated[str, typer.Argument(metavar="SCORER", help=f"What to train: {' or '.join(SCORERS)}.")],
    folders: Annotated[list[Path], typer.Argument(metavar="BEIR_DIR...", help="Benchmarks to train on.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Where the weights and the report go.")] = Path(),
    store: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the indexes here for the next run.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N questions of each.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of all that is random in training.")] = 0,
    method: Method = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a retriever on questions whose evidence is known.

    `default` writes weights.tsv (and weights_rewriting.tsv, for --rewrite) and reports the recall on each benchmark: by
    weights trained on the others, and by the weights written. `hyperretriever` trains on 64 per cent of each
    benchmark's questions, stops by another 16, and reports on the rest; it writes hyperretriever.safetensors. Both
    write a picture and a report. Use what was written with `weights = "FILE"` in the section [default] or
    [hyperretriever] of polyad.toml.

    Example: polyad train default 2wiki/ hotpotqa/ musique/ --to weights/
    """
    require_one_of("scorer", scorer, SCORERS)
    settings = settings_from(embedder=embedder, mentions=mentions, method=method)
    with ExitStack() as stack:
        directory = stack.enter_context(directory_for(store))
        progress = stack.enter_context(output.progress_bar(quiet or json))
        engines = {}
        for dataset in [datasets.load(folder, limit) for folder in folders]:
            engine = stack.enter_context(open_engine(settings, create=True, directory=directory / dataset.name))
            engine.index([dataset.corpus], method=settings.command.method, progress=progress)
            engines[dataset.name] = (dataset, engine)
        if scorer == "default":
            _train_default(list(engines.values()), to, json, progress)
        else:
            _train_hyperretriever(list(engines.values()), settings, to, seed, json, progress)


def _train_default(
    engines: Sequence[tuple[datasets.Dataset, Engine]], to: Path, json: bool, progress: Progress
) -> None:
    examples = {}
    for dataset, engine in engines:
        questions = experiment.tracked([query.text for query in dataset.queries], progress, dataset.name)
        examples[dataset.name] = training.examples_of(engine.signals(questions), dataset.queries)
    reports = training.save(examples, to)
    if json:
        output.say_json(shapes.training_json(reports))
    else:
        output.show_training(reports, to)


def _train_hyperretriever(
    engines: Sequence[tuple[datasets.Dataset, Engine]],
    settings: Configuration,
    to: Path,
    seed: int,
    json: bool,
    progress: Progress,
) -> None:
    chosen, k = settings.stages.hyperretriever, settings.command.k
    examples = {}
    for dataset, engine in engines:
        parts, (first, second, _) = engine.training_parts(), split(dataset.queries)
        examples[dataset.name] = (
            collect(*parts, first, chosen, seed, progress),
            collect(*parts, second, chosen, seed, progress),
        )
    scorer, report = path_training.train(examples, path_training.PathTrainingSettings(seed=seed), progress)
    file = path_training.save(scorer, report, to)
    results = {
        dataset.name: held_out(engine, scorer, chosen, split(dataset.queries)[2], k, progress)
        for dataset, engine in engines
    }
    if json:
        output.say_json(shapes.path_training_json(report, results, k))
    else:
        output.show_path_training(report, results, file, k)
