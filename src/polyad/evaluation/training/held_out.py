"""Evaluation of trained retrievers on questions that training did not see."""

from __future__ import annotations

from collections.abc import Sequence

from polyad import model
from polyad.engine import Engine, registry
from polyad.evaluation.datasets.beir import Question
from polyad.evaluation.runs.retriever_evaluation import RetrieverResult, Search, evaluate_retriever
from polyad.evaluation.training.inputs import get_training_components
from polyad.protocols.components import Progress, Retriever, silent
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.retriever import DefaultRetriever, DefaultSettings
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.hyperretriever.retriever import HyperRetriever
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_scorer import TripleScorer

UNTRAINED_RETRIEVERS = ("dense", "hypersu")
"""Untrained retrievers that are evaluated for comparison."""


def evaluate_held_out(
    engine: Engine,
    scorer: TripleScorer,
    linear: LinearScorer,
    settings: HyperRetrieverSettings,
    queries: Sequence[Question],
    k: int,
    progress: Progress = silent,
) -> list[RetrieverResult]:
    """Evaluate HyperRetriever with a trained and with an untrained scorer, and other retrievers for comparison.

    The others are :data:`UNTRAINED_RETRIEVERS`, and ``default`` with the weights ``linear``. The bundled weights of
    ``default`` were trained on all questions of public benchmarks, so they cannot be evaluated on these.

    Args:
        engine: Engine of the index.
        scorer: The trained scorer.
        linear: Weights of ``default``, without rewriting, trained on the same questions.
        settings: Settings of the search.
        queries: Questions that were not trained on; at least one.
        k: Depth of the ranking.
        progress: Called after each question.
    """
    snapshot, embedder, extractor = get_training_components(engine, progress)
    names = engine.components.settings.question.names
    retrievers: dict[str, Retriever] = {
        "hyperretriever": HyperRetriever(embedder, extractor, settings, scorer, names),
        "hyperretriever, untrained": HyperRetriever(
            embedder, extractor, settings, TripleScorer.create_untrained(scorer.recipe), names
        ),
        **{name: registry.retrievers[name].make(engine.components) for name in UNTRAINED_RETRIEVERS},
        "default, trained alike": DefaultRetriever(embedder, extractor, DefaultSettings(), linear),
    }
    return [
        evaluate_retriever(name, _build_search(retriever, snapshot), queries, k, progress)
        for name, retriever in retrievers.items()
    ]


def _build_search(retriever: Retriever, snapshot: Snapshot) -> Search:
    return lambda question, k: retriever.retrieve(model.Query(question, k), snapshot)
