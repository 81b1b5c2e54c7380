"""Training of the second stage of the default retriever, on the candidates that the first stage ranks best.

The loss is that of the first stage. The score of the first stage is a column like the features of the comparison; its
weight only scales the others, since the second stage adds to this score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyad.engine import Engine
from polyad.evaluation.training.linear_scorer import TrainingExample, minimize_listwise_loss
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.second_stage import FEATURES, compare_best, compute_second_stage_weight
from polyad.retrieval.default.signals import SignalExtractor, list_signal_names, list_weight_names
from polyad.retrieval.question import QuestionLinker

L2 = 0.003
"""Weight of the squared weights, of standardised features, in the loss."""


MIN_QUESTIONS = 500
"""Fewest questions to train on: trained on 321 of one data set, the second stage lost recall on another."""


def compare_candidates(
    engine: Engine, examples: Sequence[TrainingExample], scorer: LinearScorer
) -> list[TrainingExample]:
    """Return the examples with only the best candidates, whose signals are their score and their weighted features.

    Args:
        engine: Engine of the index.
        examples: Examples with texts, from :func:`~.inputs.extract_signals` of the same index.
        scorer: The trained first stage, without rewriting.
    """
    snapshot, components = engine.snapshot(), engine.components
    linker = QuestionLinker(snapshot, components.extractor)
    extractor = SignalExtractor(snapshot, components.embedder, linker, rewriting=False)
    names = list_signal_names(rewriting=False)
    weights = scorer.get_weights(list_weight_names(names))
    compared = []
    for example in examples:
        scores = example.expand_by_linkability(len(names)) @ weights
        best, features = compare_best(extractor.compute_inputs(example.text), scores, snapshot)
        columns = np.column_stack(
            [scores[best], compute_second_stage_weight(example.linkability, len(best)) * features]
        )
        documents = [example.documents[row] for row in best.tolist()] if example.documents else ()
        compared.append(replace(example, signals=columns, holds=example.holds[best], documents=documents))
    return compared


def train_second_stage(datasets: Sequence[Sequence[TrainingExample]]) -> dict[str, float]:
    """Train the weights of :data:`FEATURES` on compared candidates, with equal weight for each data set.

    Args:
        datasets: Examples of :func:`compare_candidates`.

    Returns:
        The weights by name; empty below :data:`MIN_QUESTIONS`, or if the score of the first stage does not help.

    Raises:
        ConfigurationError: no question has both gold candidates and others.
        MissingExtraError: scipy is not installed.
    """
    if sum(map(len, datasets)) < MIN_QUESTIONS:
        return {}
    score_weight, *weights = minimize_listwise_loss(
        datasets, lambda example: example.signals, [(None, None)] * (1 + len(FEATURES)), L2
    ).tolist()
    return (
        {name: weight / score_weight for name, weight in zip(FEATURES, weights, strict=True)}
        if score_weight > 0
        else {}
    )
