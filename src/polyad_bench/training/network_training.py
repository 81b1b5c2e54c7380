"""Training of the networks of the second and the last ranking stage of the default retriever, with PyTorch.

The loss is listwise, as in the first stage (:mod:`polyad_bench.training.linear_scorer`): each gold candidate
competes with the candidates of its question that are not gold. The network ranks twice, the second time by features of
what it ranked best the first time. So it is trained on the features of both rounds; those of the second follow a
network that did not see the question, since the ranking of training questions would be too good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyad.engine import Engine
from polyad.errors import MissingExtraError
from polyad.model import BoolArray, FloatArray
from polyad.retrieval.default.last_stage import LAST_FEATURES
from polyad.retrieval.default.ranking_network import RankingNetwork
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.second_stage import (
    FEATURES,
    MAX_CANDIDATES,
    PassageComparison,
    compute_second_stage_weight,
)
from polyad.retrieval.default.signals import SignalExtractor
from polyad.retrieval.question import QuestionLinker
from polyad.text.digests import hash_question
from polyad_bench.training.linear_scorer import TrainingExample

if TYPE_CHECKING:
    import torch

MIN_QUESTIONS = 500
"""Fewest questions to train on: trained on 321 of one data set, a second stage lost recall on another."""

_EPOCHS, _RATE, _DECAY, _BATCH = 20, 0.006, 0.05, 128
_MIN_SHARE = 0.01
"""Share of candidates in which a feature must not be 0; a rarer one would be weighed by chance."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the training of a ranking stage reads from its examples.

    Attributes:
        features: Names of the features.
        score: Name of the feature that is the score of the stages before, with which the network's score is mixed.
        min_linkability: Linkability below which a question is left out.
        units: Hidden units of a member.
        dropout: Share of hidden units that are left out in a step of training.
        members: Networks of different seeds, which are averaged.
    """

    features: Sequence[str]
    score: str
    min_linkability: float
    units: int
    dropout: float
    members: int


SECOND_STAGE = Stage(FEATURES, "score of the first stage", min_linkability=0.9, units=16, dropout=0.2, members=4)
"""With less linkability the second stage hardly counts. With 32 units, recall is the same within .3 points; with none,
it is 2 points lower."""

LAST_STAGE = Stage(LAST_FEATURES, "score so far", min_linkability=0.0, units=24, dropout=0.3, members=8)
"""With 16 units and a dropout of .2 first hits of a corpus that training did not see are 1 to 2 points fewer. The more
members, the less recall depends on the seed: with four, musique varies by 1.6 points."""

SelectNetwork = Callable[[TrainingExample], RankingNetwork]
"""Returns the network that ranked the candidates of a question in the round before."""


def compare_examples(
    engine: Engine, examples: Sequence[TrainingExample], scorer: LinearScorer, select: SelectNetwork | None = None
) -> list[TrainingExample]:
    """Return examples of the best candidates of the first stage, with the features of the second stage as signals.

    Args:
        engine: Engine of the index.
        examples: Examples with texts, from :func:`polyad_bench.training.linear_scorer.extract_signals`.
        scorer: The first stage.
        select: Selects the network by which the candidates are ranked; None for the ranking of the first stage.
    """
    snapshot, components = engine.snapshot(), engine.components
    extractor = SignalExtractor(snapshot, components.embedder, QuestionLinker(components.extractor))
    compared = []
    for example in examples:
        inputs = extractor.compute_inputs(example.text)
        comparison = PassageComparison(inputs, example.signals, example.compute_scores(scorer), snapshot)
        features = comparison.compute_features(comparison.first)
        if select:
            weight = np.float32(compute_second_stage_weight(example.linkability, len(features)))
            ranked = (1 - weight) * comparison.first + weight * select(example).score(features)
            features = comparison.compute_features(ranked)
        compared.append(example.select(comparison.best, features))
    return compared


def train_second_stage(
    compare: Callable[[SelectNetwork | None], Sequence[Sequence[TrainingExample]]], seed: int = 0
) -> RankingNetwork | None:
    """Return the trained network of the second stage; None below :data:`MIN_QUESTIONS`.

    Args:
        compare: Returns the examples of each data set, compared by :func:`compare_examples` with its argument.
        seed: Random seed.

    Raises:
        MissingExtraError: torch is not installed.
    """
    first = compare(None)
    if sum(map(len, first)) < MIN_QUESTIONS:
        return None
    others = [
        fit_network([[each for each in examples if get_half(each) != half] for examples in first], seed)
        for half in (0, 1)
    ]
    second = compare(lambda example: others[get_half(example)])
    return fit_network([[*one, *two] for one, two in zip(first, second, strict=True)], seed)


def get_half(example: TrainingExample) -> int:
    """Return which half of the questions an example belongs to, 0 or 1; this depends only on the question's text."""
    return int(hash_question(example.text), 16) % 2


@dataclass(frozen=True, slots=True)
class _Batch:
    """Questions as padded arrays.

    Attributes:
        features: Standardised, ``[questions, candidates, features]``.
        first: Scores of the stages before, ``[questions, candidates]``.
        is_gold: ``[questions, candidates]``.
        is_other: Whether there is a candidate that is not gold, ``[questions, candidates]``.
        importance: Weight of each question in the loss; the mean is 1, ``[questions]``.
    """

    features: torch.Tensor
    first: torch.Tensor
    is_gold: torch.Tensor
    is_other: torch.Tensor
    importance: torch.Tensor

    def __getitem__(self, rows: torch.Tensor) -> _Batch:
        return _Batch(*(getattr(self, name)[rows] for name in self.__slots__))


def fit_network(
    datasets: Sequence[Sequence[TrainingExample]],
    seed: int = 0,
    stage: Stage = SECOND_STAGE,
    weights: Sequence[float] | None = None,
) -> RankingNetwork:
    """Return a network fitted to examples of a stage; a question counts 1 / sqrt(questions of its data set).

    Args:
        datasets: Examples of each data set.
        seed: Random seed.
        stage: The stage.
        weights: Factor of the questions of each data set; by default 1.

    Raises:
        MissingExtraError: torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "local") from error
    features = np.concatenate([example.signals for examples in datasets for example in examples])
    # A feature that is hardly ever there in training must say nothing in an index where it is.
    is_frequent = (((features != 0).mean(axis=0) > _MIN_SHARE) & (np.ptp(features, axis=0) > 0)).astype(np.float32)
    mean, deviation = features.mean(axis=0), np.where(is_frequent, features.std(axis=0), np.float32(1))
    empty = np.zeros((len(stage.features), 0), dtype=np.float32)
    standard = RankingNetwork(mean, deviation, empty.sum(axis=1), empty, empty[0], empty[0])
    data = _pad(datasets, weights or [1.0] * len(datasets), standard, stage)
    with torch.random.fork_rng(devices=[]):
        members = [_fit_member(data, standard, seed + member, stage) for member in range(stage.members)]
    return RankingNetwork(
        mean,
        deviation,
        np.mean([member.linear for member in members], axis=0, dtype=np.float32) * is_frequent,
        np.concatenate([member.hidden for member in members], axis=1) * is_frequent[:, np.newaxis],
        np.concatenate([member.bias for member in members]),
        np.concatenate([member.output / np.float32(stage.members) for member in members]),
    )


def _pad(
    datasets: Sequence[Sequence[TrainingExample]], weights: Sequence[float], standard: RankingNetwork, stage: Stage
) -> _Batch:
    """Return the questions that have gold and other candidates as padded arrays, with standardised features."""
    import torch

    questions = [
        (example, weight * len(examples) ** -0.5)
        for examples, weight in zip(datasets, weights, strict=True)
        for example in examples
        if example.is_gold.any() and not example.is_gold.all() and example.linkability >= stage.min_linkability
    ]
    shape = len(questions), MAX_CANDIDATES
    features: FloatArray = np.zeros((*shape, len(stage.features)), dtype=np.float32)
    score = stage.features.index(stage.score)
    first: FloatArray = np.zeros(shape, dtype=np.float32)
    is_gold: BoolArray = np.zeros(shape, dtype=bool)
    is_other: BoolArray = np.zeros(shape, dtype=bool)
    for row, (example, _) in enumerate(questions):
        count = len(example.signals)
        features[row, :count] = standard.standardise(example.signals)
        first[row, :count] = example.signals[:, score]
        is_gold[row, :count] = example.is_gold
        is_other[row, :count] = ~example.is_gold
    importance = np.array([each for _, each in questions], dtype=np.float32)
    return _Batch(*map(torch.from_numpy, (features, first, is_gold, is_other, importance / importance.mean())))


def _fit_member(data: _Batch, standard: RankingNetwork, seed: int, stage: Stage) -> RankingNetwork:
    """Return one trained network; ``standard`` has the mean and the deviation of the features."""
    import torch

    torch.manual_seed(seed)
    count = len(stage.features)
    linear = torch.nn.Linear(count, 1, bias=False)
    torch.nn.init.zeros_(linear.weight)
    hidden, output = torch.nn.Linear(count, stage.units), torch.nn.Linear(stage.units, 1, bias=False)
    parameters = [*linear.parameters(), *hidden.parameters(), *output.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=_RATE, weight_decay=_DECAY)
    steps = _EPOCHS * math.ceil(len(data.features) / _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=steps)
    for _ in range(_EPOCHS):
        for rows in torch.split(torch.randperm(len(data.features)), _BATCH):
            batch = data[rows]
            units = torch.nn.functional.dropout(torch.relu(hidden(batch.features)), stage.dropout)
            # Mixed with the stages before by any share, so that a mixture ranks well too.
            share = torch.rand(len(rows), 1).sqrt()
            ranked = (linear(batch.features) + output(units)).squeeze(-1)
            scores = (1 - share) * batch.first + share * ranked
            loss = (_compute_listwise_loss(scores, batch) * batch.importance).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
            optimiser.step()
            schedule.step()
    weights = (linear.weight[0], hidden.weight.T, hidden.bias, output.weight[0])
    arrays: list[FloatArray] = [np.ascontiguousarray(weight.detach().numpy()) for weight in weights]
    return RankingNetwork(standard.mean, standard.deviation, *arrays)


def _compute_listwise_loss(scores: torch.Tensor, batch: _Batch) -> torch.Tensor:
    """Return the mean over the gold candidates g of a question of -log(e^s_g / (e^s_g + sum of e^s of the others))."""
    import torch

    others = torch.logsumexp(scores.masked_fill(~batch.is_other, -math.inf), dim=1, keepdim=True)
    losses = torch.nn.functional.softplus(others - scores) * batch.is_gold
    return losses.sum(dim=1) / batch.is_gold.sum(dim=1)
