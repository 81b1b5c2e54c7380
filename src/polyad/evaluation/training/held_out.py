"""Retrievers on the questions that training did not see, the trained one among them."""

from __future__ import annotations

from collections.abc import Sequence

from polyad import model
from polyad.config import QuestionSettings
from polyad.engine import Engine, registry
from polyad.evaluation.datasets.beir import Question
from polyad.evaluation.runs import retriever_evaluation as retriever_evaluation
from polyad.evaluation.runs.retriever_evaluation import RetrieverResult
from polyad.evaluation.training.inputs import get_training_components
from polyad.protocols.components import Progress, Retriever, silent
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.retriever import DefaultRetriever, DefaultSettings
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.hyperretriever.retriever import HyperRetriever
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_scorer import TripleScorer

UNTRAINED_RETRIEVERS = ("dense", "hypersu")
"""Retrievers without training that are shown beside the trained ones."""


def evaluate_held_out(
    engine: Engine,
    scorer: TripleScorer,
    linear: LinearScorer,
    settings: HyperRetrieverSettings,
    queries: Sequence[Question],
    k: int,
    progress: Progress = silent,
) -> list[RetrieverResult]:
    """HyperRetriever with ``scorer``, the same search with an untrained one, and others beside it.

    These are the retrievers of :data:`UNTRAINED_RETRIEVERS`, and the default one with ``linear``: the weights that
    come with it were fitted to public benchmarks whole, so on a part of these they would be no measure.

    Args:
        engine: On the index.
        scorer: As trained.
        linear: Weights of the default retriever, without rewriting, trained on the same questions.
        settings: Of the search.
        queries: That were not trained on; at least one.
        k: Depth of the ranking.
        progress: Told after each question.
    """
    snapshot, embedder, extractor = get_training_components(engine, progress)
    names = engine.components.settings.of(QuestionSettings).names
    retrievers: dict[str, Retriever] = {
        "hyperretriever": HyperRetriever(embedder, extractor, settings, scorer, names),
        "hyperretriever, untrained": HyperRetriever(
            embedder, extractor, settings, TripleScorer.create_untrained(scorer.recipe), names
        ),
        **{name: registry.retrievers[name].make(engine.components) for name in UNTRAINED_RETRIEVERS},
        "default, trained alike": DefaultRetriever(embedder, extractor, DefaultSettings(), linear),
    }
    return [
        retriever_evaluation.evaluate_retriever(name, _search(made, snapshot), queries, k, progress)
        for name, made in retrievers.items()
    ]


def _search(retriever: Retriever, snapshot: Snapshot) -> retriever_evaluation.Search:
    return lambda question, k: retriever.retrieve(model.Query(question, k), snapshot)
