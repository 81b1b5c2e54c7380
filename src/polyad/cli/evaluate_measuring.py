"""What the commands that measure share: an index of a benchmark, and retrievers asked on it, be the run kept or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from polyad.cli import shapes
from polyad.cli.options import open_engine
from polyad.cli.settings import Configuration
from polyad.engine import Engine, registry
from polyad.errors import NoLanguageModelError
from polyad.evaluation import experiment
from polyad.evaluation.datasets import Dataset, Query
from polyad.evaluation.experiment import RetrieverResult
from polyad.evaluation.manifest import manifest_of
from polyad.evaluation.run_folder import RunWriter
from polyad.indexing.report import IndexReport
from polyad.model import Evidence, Statistics
from polyad.protocols import Progress


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of indexing a benchmark and asking its questions.

    Attributes:
        report: Of indexing.
        statistics: Of the index.
        sources: Of its documents, by id.
        sizes: The part of the printed shape on indexing.
        results: Of each retriever.
    """

    report: IndexReport
    statistics: Statistics
    sources: Mapping[str, str]
    sizes: dict[str, object]
    results: Sequence[RetrieverResult]


def require_model(names: Sequence[str], settings: Configuration) -> None:
    """Refuse retrievers that need a language model where none is set, before others are measured for nothing."""
    for name in names:
        if registry.retrievers[name].needs_language_model and settings.language_model is None:
            raise NoLanguageModelError(f"the retriever {name!r}")


def writer_for(
    out: Path, dataset: Dataset, names: Sequence[str], settings: Configuration, **choices: object
) -> RunWriter:
    """Opens the folder of a run that is kept, be it new or of the same."""
    command = settings.command
    choices |= {name: getattr(command, name) for name in ("method", "embedder", "mentions", "rerank")}
    stages = {"stages": registry.by_section(settings.stages), "language_model": settings.language_model}
    return RunWriter(out, manifest_of(dataset, names, command.depth, stages, **choices))


def measure(
    settings: Configuration,
    dataset: Dataset,
    names: Sequence[str],
    directory: Path,
    writer: RunWriter | None,
    progress: Progress,
    *,
    max_cost: float = 0.0,
    max_tokens: int = 0,
) -> Measured:
    """Index a benchmark and ask its questions; of a run that is kept, those that it lacks.

    Args:
        settings: Of everything.
        dataset: With the questions to ask.
        names: Of retrievers.
        directory: Of the index.
        writer: Of a run that is kept.
        progress: Told how far it is.
        max_cost: US dollars that indexing may spend on a language model; 0 for no limit.
        max_tokens: Tokens likewise.
    """
    with open_engine(settings, create=True, reranks=True, directory=directory) as engine:
        report = engine.index(
            [dataset.corpus],
            method=settings.command.method,
            max_cost=max_cost,
            max_tokens=max_tokens,
            progress=progress,
        )
        statistics = engine.catalogue.statistics()
        sizes = shapes.eval_index_json(report, statistics)
        if writer:
            writer.keep_index(sizes)
        results = [_asked(engine, name, dataset.queries, settings.command.depth, writer, progress) for name in names]
        return Measured(report, statistics, engine.catalogue.sources(), sizes, results)


def _asked(
    engine: Engine, name: str, queries: Sequence[Query], depth: int, writer: RunWriter | None, progress: Progress
) -> RetrieverResult:
    missing = writer.lacks(name, queries) if writer else queries
    records = writer.records(name) if writer else []
    if missing:
        records += experiment.ask(
            name,
            partial(_search, engine, name),
            missing,
            depth,
            progress,
            lambda: engine.models.usage.tokens,
            partial(engine.prepare, name, progress),
            writer.keep if writer else experiment.keep_nothing,
            len(queries) - len(missing),
        )
    return experiment.summarise(name, records, depth)


def _search(engine: Engine, retriever: str, question: str, k: int) -> Evidence:
    return engine.search(question, k, retriever=retriever, merge=False)
