"""The commands that measure and train: ``polyad eval`` and ``polyad train``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from polyad.cli import output, shapes
from polyad.cli.options import (
    Depth,
    Embedder,
    Json,
    MaxCost,
    MaxTokens,
    Mentions,
    Method,
    Model,
    Quiet,
    Rewrite,
    directory_for,
    open_engine,
    settings_from,
)
from polyad.cli.settings import require_one_of
from polyad.engine import RETRIEVERS, Engine
from polyad.errors import ConfigurationError
from polyad.evaluation import datasets, experiment
from polyad.evaluation.triple_examples import split as parts_of
from polyad.model import Evidence


def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="BEIR_DIR", help="Holds corpus.jsonl, queries.jsonl, qrels/.")],
    retriever: Annotated[
        str, typer.Option(metavar="A,B,...", help=f"Some of {', '.join(RETRIEVERS)}.")
    ] = "standard,default",
    store: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the index here for the next run.")] = None,
    k: Depth = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N questions.")] = None,
    split: Annotated[
        Literal["all", "train", "validation", "test"],
        typer.Option(help="Which of the questions: `test` are the 20 per cent that training keeps its hands off."),
    ] = "all",
    method: Method = None,
    rewrite: Rewrite = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    max_cost: MaxCost = 0.0,
    max_tokens: MaxTokens = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure retrievers on a benchmark.

    Indexes its corpus and asks its questions. Recall is the share of the gold passages among the first k, all recall
    the share of questions with all of them there, MRR the mean of 1 / rank of the first. Times are per question, one
    at a time.

    Example: polyad eval musique/ --retriever bm25,standard,default --limit 200 --store musique-kb
    """
    names = list(dict.fromkeys(name.strip() for name in retriever.split(",")))
    for name in names:
        require_one_of("retriever", name, RETRIEVERS)
    settings = settings_from(
        store=store, k=k, method=method, rewrite=rewrite, embedder=embedder, mentions=mentions, model=model
    )
    dataset, depth = _part(datasets.load(folder, limit), split), settings.command.k
    with (
        directory_for(store) as directory,
        open_engine(settings, create=True, directory=directory) as engine,
        output.progress_bar(quiet or json) as progress,
    ):
        report = engine.index(
            [dataset.corpus],
            method=settings.command.method,
            max_cost=max_cost,
            max_tokens=max_tokens,
            progress=progress,
        )
        statistics = engine.statistics()
        sizes, documents = shapes.eval_index_json(report, statistics), statistics.documents
        results = [
            experiment.run(
                name,
                partial(_search, engine, name),
                dataset.queries,
                depth,
                progress,
                lambda: engine.llm_tokens,
                partial(engine.prepare, name, progress),
            )
            for name in names
        ]
    output.warn_of_failures(report)
    others = documents - report.counts.added - report.counts.updated - report.counts.unchanged
    if others > 0:
        output.warn("warning", f"the index also holds {others:,} other documents, which were searched too")
    if json:
        output.say_json(shapes.eval_json(dataset, depth, sizes, results))
    else:
        output.show_eval(dataset, depth, sizes, results)
    if not report.is_complete:
        raise typer.Exit(1)


def _part(dataset: datasets.Dataset, name: str) -> datasets.Dataset:
    """The dataset with the questions of one part of it."""
    if name == "all":
        return dataset
    queries = dict(zip(("train", "validation", "test"), parts_of(dataset.queries), strict=True))[name]
    if not queries:
        raise ConfigurationError(f"{dataset.name} has {len(dataset.queries)} questions, and none of them in {name!r}")
    return replace(dataset, queries=tuple(queries))


def _search(engine: Engine, retriever: str, question: str, k: int) -> Evidence:
    return engine.search(question, k, retriever=retriever)
