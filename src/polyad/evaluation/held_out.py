"""Retrievers on the questions that training did not see, the trained one among them."""

from __future__ import annotations

from collections.abc import Sequence

from polyad.config import HyperRetrieverSettings
from polyad.engine import Engine
from polyad.evaluation import experiment
from polyad.evaluation.datasets import Query
from polyad.evaluation.experiment import RetrieverResult
from polyad.protocols import Progress, silent
from polyad.retrieval.hyperretriever.retriever import HyperRetriever
from polyad.retrieval.hyperretriever.scorer import Plausibility

BESIDE = ("standard", "hypersu", "default")
"""Retrievers that are shown beside the trained one."""


def held_out(
    engine: Engine,
    scorer: Plausibility,
    settings: HyperRetrieverSettings,
    queries: Sequence[Query],
    k: int,
    progress: Progress = silent,
) -> list[RetrieverResult]:
    """HyperRetriever with ``scorer``, the same search with an untrained one, and the retrievers of :data:`BESIDE`.

    Args:
        engine: On the index.
        scorer: As trained.
        settings: Of the search.
        queries: That were not trained on; at least one.
        k: Depth of the ranking.
        progress: Told after each question.
    """
    snapshot, embedder, linker = engine.training_parts()
    trained = HyperRetriever(snapshot, embedder, linker, settings, scorer)
    untrained = HyperRetriever(snapshot, embedder, linker, settings, Plausibility.untrained(scorer.recipe))
    searches: dict[str, experiment.Search] = {
        "hyperretriever": trained.retrieve,
        "hyperretriever, untrained": untrained.retrieve,
        **{name: engine.retriever(name).retrieve for name in BESIDE},
    }
    return [experiment.run(name, search, queries, k, progress) for name, search in searches.items()]
