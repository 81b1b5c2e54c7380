"""Training of HyperRetriever's scorer (HyperRAG, section 3.1.4 and appendix B.1), and its evaluation.

Binary cross-entropy over labelled triples (:mod:`polyad_bench.training.triple_examples`), until the loss on other
questions has not fallen for some epochs; the weights of the best epoch are saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from polyad import model
from polyad.engine import Engine, registry
from polyad.errors import ConfigurationError, MissingExtraError
from polyad.model_hub import choose_device
from polyad.protocols.components import Progress, Retriever, silent
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.retriever import DefaultRetriever, DefaultSettings
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.hyperretriever.retriever import HyperRetriever
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings, HyperRetrieverTraining
from polyad.retrieval.hyperretriever.triple_scorer import TripleScorer, get_weights_file_name
from polyad.retrieval.question import QuestionLinker
from polyad.text.digests import hash_questions
from polyad_bench.datasets.beir import Question
from polyad_bench.reports.plots import create_figure
from polyad_bench.runs.retriever_evaluation import RetrieverResult, Search, evaluate_retriever
from polyad_bench.training.linear_scorer import (
    create_training_folder,
    get_training_components,
    write_training_report,
)
from polyad_bench.training.triple_examples import DEFAULT_TRAINING, TripleExamples, merge_examples

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

_BLOCK = 8192
"""Triples whose features are computed at a time: 50 MB."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """The losses of one training epoch, with precision and recall on the validation triples after the epoch.

    Attributes:
        train_loss: Mean cross-entropy of the training triples, with dropout.
        validation_loss: Mean cross-entropy of the validation triples after the epoch, without dropout.
        precision: Share of positives among validation triples with plausibility of at least 0.5; 0 without such
            triples.
        recall: Share of the positive validation triples whose plausibility is at least 0.5.
    """

    train_loss: float
    validation_loss: float
    precision: float
    recall: float


@dataclass(frozen=True, slots=True)
class TripleTrainingReport:
    """The training report of a triple scorer: data sizes, and losses per epoch.

    Attributes:
        datasets: Names of the data sets.
        train_triples: Number of training triples.
        train_positives: Number of positive training triples.
        validation_triples: Number of validation triples.
        validation_positives: Number of positive validation triples.
        epochs: Measures of each epoch.
        best: Index of the epoch with the lowest validation loss, whose weights are saved.
    """

    datasets: tuple[str, ...]
    train_triples: int
    train_positives: int
    validation_triples: int
    validation_positives: int
    epochs: tuple[Epoch, ...]
    best: int

    @property
    def best_epoch(self) -> Epoch:
        """The training epoch with the lowest validation loss."""
        return self.epochs[self.best]


def train_triple_scorer(
    datasets: Mapping[str, tuple[TripleExamples, TripleExamples]],
    settings: HyperRetrieverTraining = DEFAULT_TRAINING,
    progress: Progress = silent,
) -> tuple[TripleScorer, TripleTrainingReport]:
    """Return HyperRetriever's triple scorer, trained until the validation loss stops falling, and a training report.

    Args:
        datasets: Training and validation triples by name of the data set; all with the same recipe.
        settings: Settings of the training.
        progress: Called after each epoch.

    Returns:
        The scorer of the best epoch, and the report.

    Raises:
        ConfigurationError: training or validation triples lack positives or negatives.
        MissingExtraError: torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "local") from error
    training = _join_examples([training for training, _ in datasets.values()], "training")
    validation = _join_examples([validation for _, validation in datasets.values()], "validation")
    recipe = replace(
        training.recipe, trained_on=tuple(datasets), questions=hash_questions([*training.texts, *validation.texts])
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        fit = _Trainer(TripleScorer.create_untrained(recipe, settings.seed, settings.units), settings)
        epochs, best, scorer = _train_until_converged(fit, training, validation, settings, progress)
    return scorer, TripleTrainingReport(
        tuple(datasets),
        len(training),
        int(training.labels.sum()),
        len(validation),
        int(validation.labels.sum()),
        tuple(epochs),
        best,
    )


def _join_examples(sets: Sequence[TripleExamples], purpose: str) -> TripleExamples:
    """Return the labelled triples of all data sets as one set; raise ConfigurationError if all have the same label.

    ``purpose`` names the set in the message: training or validation.
    """
    examples = merge_examples(sets)
    if examples.labels.all() or not examples.labels.any():
        raise ConfigurationError(
            f"of {len(examples)} triples for {purpose} {int(examples.labels.sum())} are "
            "right; expected right and wrong ones; give a benchmark of more questions, or another one"
        )
    return examples


def _train_until_converged(
    fit: _Trainer,
    training: TripleExamples,
    validation: TripleExamples,
    settings: HyperRetrieverTraining,
    progress: Progress,
) -> tuple[list[Epoch], int, TripleScorer]:
    epochs: list[Epoch] = []
    best, scorer = 0, fit.build_scorer()
    for number in range(settings.epochs):
        train_loss = fit.run_epoch(training, np.random.default_rng([settings.seed, number]))
        epochs.append(_validate(train_loss, fit.build_scorer(), validation))
        if number == 0 or epochs[-1].validation_loss < epochs[best].validation_loss:
            best, scorer = number, fit.build_scorer()
        progress(number + 1, settings.epochs, f"epochs, loss {epochs[-1].validation_loss:.4f} on validation")
        if number - best >= settings.patience:
            break
    return epochs, best, scorer


class _Trainer:
    """A triple scorer in training: its weights and optimiser."""

    def __init__(self, start: TripleScorer, settings: HyperRetrieverTraining) -> None:
        import torch

        self._recipe = start.recipe
        self._settings = settings
        self._device = choose_device(settings.device)
        self._weights = [
            torch.tensor(array, requires_grad=True, device=self._device)
            for array in (start.hidden, start.hidden_bias, start.output, start.output_bias)
        ]
        self._optimiser = torch.optim.Adam(self._weights, lr=settings.rate)

    def build_scorer(self) -> TripleScorer:
        """Return a triple scorer with a copy of the current weights."""
        return TripleScorer(self._recipe, *(weight.detach().cpu().numpy().copy() for weight in self._weights))

    def run_epoch(self, examples: TripleExamples, random: np.random.Generator) -> float:
        """Update the weights once for each batch of the triples, in random order, and return the mean loss.

        The loss is that of HyperRAG, equation 10.
        """
        import torch

        order = random.permutation(len(examples))
        total = 0.0
        for start in range(0, len(order), _BLOCK):
            rows = order[start : start + _BLOCK]
            features = torch.from_numpy(examples.get_features(rows)).to(self._device)
            labels = torch.from_numpy(examples.labels[rows].astype(np.float32)).to(self._device)
            for first in range(0, len(rows), self._settings.batch):
                batch = slice(first, first + self._settings.batch)
                total += self._update_weights(features[batch], labels[batch]) * len(labels[batch])
        return total / len(order)

    def _update_weights(self, features: torch.Tensor, labels: torch.Tensor) -> float:
        from torch.nn import functional

        hidden, hidden_bias, output, output_bias = self._weights
        dropped = functional.dropout(features, self._settings.dropout)
        logits = functional.relu(dropped @ hidden.T + hidden_bias) @ output + output_bias
        loss = functional.binary_cross_entropy_with_logits(logits, labels)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        return loss.item()


def _validate(train_loss: float, scorer: TripleScorer, examples: TripleExamples) -> Epoch:
    blocks = [
        scorer.predict(examples.get_features(np.arange(start, min(start + _BLOCK, len(examples)))))
        for start in range(0, len(examples), _BLOCK)
    ]
    scores, labels = np.concatenate(blocks).astype(np.float64), examples.labels
    likelihoods = np.where(labels, scores, 1 - scores)
    accepted = scores >= 0.5
    right = int((accepted & labels).sum())
    return Epoch(
        train_loss,
        float(-np.log(np.maximum(likelihoods, 1e-12)).mean()),
        right / max(1, int(accepted.sum())),
        right / int(labels.sum()),
    )


def save_triple_scorer(scorer: TripleScorer, report: TripleTrainingReport, directory: Path) -> Path:
    """Write the weights of a triple scorer, the training report and a plot of the losses into ``directory``.

    Returns:
        The file of weights.

    Raises:
        ConfigurationError: the directory cannot be written.
    """
    path = directory / get_weights_file_name(signals=bool(scorer.recipe.signals))
    with create_training_folder(directory):
        scorer.save(path)
        write_training_report(path, asdict(report), lambda: _plot_losses(report))
    return path


def _plot_losses(report: TripleTrainingReport) -> Figure:
    """Return a plot of training and validation loss over the epochs."""
    figure = create_figure(6, 4)
    axes = figure.subplots()
    numbers = range(1, len(report.epochs) + 1)
    axes.plot(numbers, [epoch.train_loss for epoch in report.epochs], label="training")
    axes.plot(numbers, [epoch.validation_loss for epoch in report.epochs], label="validation")
    axes.axvline(report.best + 1, color="#999999", linestyle=":", label="best")
    axes.set_xlabel("epoch")
    axes.set_ylabel("binary cross-entropy")
    axes.legend()
    return figure


UNTRAINED_RETRIEVERS = ("dense", "hypersu")
"""Untrained retrievers that are evaluated for comparison."""


def evaluate_held_out(
    engine: Engine,
    scorer: TripleScorer,
    default_weights: LinearScorer,
    settings: HyperRetrieverSettings,
    queries: Sequence[Question],
    k: int,
    progress: Progress = silent,
) -> list[RetrieverResult]:
    """Return mean measures of trained HyperRetriever and, for comparison, of other retrievers on held-out questions.

    The other retrievers are HyperRetriever with untrained weights, :data:`UNTRAINED_RETRIEVERS`, and ``default`` with
    ``default_weights``. The bundled weights of ``default`` were trained on questions of public benchmarks, so that they
    cannot be evaluated on these questions.

    Args:
        engine: Engine of the index.
        scorer: The trained scorer.
        default_weights: Weights of ``default``, trained on the same questions.
        settings: Settings of the search.
        queries: Questions that were not trained on; at least one.
        k: Depth of the ranking.
        progress: Called after each question.
    """
    snapshot, embedder, extractor = get_training_components(engine, progress)
    linker = QuestionLinker(extractor, engine.components.settings.question.names)
    retrievers: dict[str, Retriever] = {
        "hyperretriever": HyperRetriever(embedder, linker, settings, scorer),
        "hyperretriever, untrained": HyperRetriever(
            embedder, linker, settings, TripleScorer.create_untrained(scorer.recipe)
        ),
        **{name: registry.retrievers[name].make(engine.components) for name in UNTRAINED_RETRIEVERS},
        "default, trained alike": DefaultRetriever(embedder, extractor, DefaultSettings(), default_weights),
    }
    return [
        evaluate_retriever(name, _build_search(retriever, snapshot), queries, k, progress)
        for name, retriever in retrievers.items()
    ]


def _build_search(retriever: Retriever, snapshot: Snapshot) -> Search:
    return lambda question, k: retriever.retrieve(model.Query(question, k), snapshot)
