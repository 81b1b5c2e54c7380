"""Training HyperRetriever's scorer (HyperRAG, section 3.1.4 and appendix B.1).

Binary cross-entropy over labelled triples (:mod:`polyad.evaluation.training.triple_examples`), until the loss on other
questions has not fallen for some epochs; the weights of the best epoch are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.evaluation.figures import can_plot, create_figure, save_figure
from polyad.evaluation.training.triple_examples import TripleExamples, merge_examples
from polyad.protocols.components import Progress, silent
from polyad.retrieval.hyperretriever.triple_scorer import HIDDEN, TripleScorer, get_weights_file_name
from polyad.text.digests import question_digests
from polyad.text.files import write_atomically

if TYPE_CHECKING:
    import torch

_BLOCK = 8192
"""Triples whose x is made at once: 50 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TripleTrainingSettings:
    """How the scorer is fitted.

    Attributes:
        epochs: At most (appendix B.1: 50).
        patience: Epochs without a lower loss on validation after which it stops (10).
        batch: Triples a step (32).
        rate: Learning rate of Adam (1e-4).
        dropout: Share of the numbers of x left out at random, in [0, 1). 0, as in the paper, for its rate and batch;
            with 1e-3 and 128, which take half the time and cost 3 points of Recall@5, 0.2 gives back 2 of them.
        units: Width of the hidden layer (256).
        device: Where it is fitted, as torch names it.
        seed: Of the first weights, the order of the triples and what is left out.
    """

    epochs: int = 50
    patience: int = 10
    batch: int = 32
    rate: float = 1e-4
    dropout: float = 0.0
    units: int = HIDDEN
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "batch", "units"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} is {getattr(self, name)}; expected 1 or more")
        if not self.rate > 0:
            raise ConfigurationError(f"rate is {self.rate}; expected a learning rate above 0")
        if not 0 <= self.dropout < 1:
            raise ConfigurationError(f"dropout is {self.dropout}; expected 0 or more, below 1")


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one pass over the training triples reached.

    Attributes:
        train_loss: Mean cross-entropy while training, with numbers left out.
        validation_loss: The same of the validation triples after it, with none left out.
        precision: Share of right triples among those with plausibility 0.5 or more, on validation; 0 if there are none.
        recall: Share of right triples that have it.
    """

    train_loss: float
    validation_loss: float
    precision: float
    recall: float


@dataclass(frozen=True, slots=True)
class TripleTrainingReport:
    """What training saw and reached.

    Attributes:
        datasets: What it was trained on.
        train_triples: How many, and of these how many right ones; so the next.
        train_positives: See there.
        validation_triples: See there.
        validation_positives: See there.
        epochs: One after the other; the file of weights is that of the best.
        best: Position of the epoch with the lowest loss on validation.
    """

    datasets: tuple[str, ...]
    train_triples: int
    train_positives: int
    validation_triples: int
    validation_positives: int
    epochs: tuple[Epoch, ...]
    best: int

    @property
    def reached(self) -> Epoch:
        """The best epoch."""
        return self.epochs[self.best]


def train_triple_scorer(
    datasets: Mapping[str, tuple[TripleExamples, TripleExamples]],
    settings: TripleTrainingSettings | None = None,
    progress: Progress = silent,
) -> tuple[TripleScorer, TripleTrainingReport]:
    """Fit a scorer.

    Args:
        datasets: Triples to train on and others for validation, by the name of their data set; all of one recipe.
        settings: How.
        progress: Told of each epoch.

    Returns:
        The scorer of the best epoch, and what it took.

    Raises:
        ConfigurationError: there are no right triples, or no wrong ones, to train on or for validation.
        MissingExtraError: torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "local") from error
    settings = settings or TripleTrainingSettings()
    training = _usable([training for training, _ in datasets.values()], "training")
    validation = _usable([validation for _, validation in datasets.values()], "validation")
    recipe = replace(
        training.recipe, trained_on=tuple(datasets), questions=question_digests([*training.texts, *validation.texts])
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        fit = _Fit(TripleScorer.create_untrained(recipe, settings.seed, settings.units), settings)
        epochs, best, scorer = _until_it_stops(fit, training, validation, settings, progress)
    return scorer, TripleTrainingReport(
        tuple(datasets),
        len(training),
        int(training.labels.sum()),
        len(validation),
        int(validation.labels.sum()),
        tuple(epochs),
        best,
    )


def _usable(sets: Sequence[TripleExamples], purpose: str) -> TripleExamples:
    """All of them as one set.

    Raises:
        ConfigurationError: they are all right, or all wrong.
    """
    examples = merge_examples(sets)
    if examples.labels.all() or not examples.labels.any():
        raise ConfigurationError(
            f"of {len(examples)} triples for {purpose} {int(examples.labels.sum())} are "
            "right; expected right and wrong ones; give a benchmark of more questions, or another one"
        )
    return examples


def _until_it_stops(
    fit: _Fit,
    training: TripleExamples,
    validation: TripleExamples,
    settings: TripleTrainingSettings,
    progress: Progress,
) -> tuple[list[Epoch], int, TripleScorer]:
    epochs: list[Epoch] = []
    best, scorer = 0, fit.scorer()
    for number in range(settings.epochs):
        train_loss = fit.epoch(training, np.random.default_rng([settings.seed, number]))
        epochs.append(_validated(train_loss, fit.scorer(), validation))
        if number == 0 or epochs[-1].validation_loss < epochs[best].validation_loss:
            best, scorer = number, fit.scorer()
        progress(number + 1, settings.epochs, f"epochs, loss {epochs[-1].validation_loss:.4f} on validation")
        if number - best >= settings.patience:
            break
    return epochs, best, scorer


class _Fit:
    """The weights while they are being fitted."""

    def __init__(self, start: TripleScorer, settings: TripleTrainingSettings) -> None:
        import torch

        self._recipe = start.recipe
        self._settings = settings
        self._device = _device(settings.device)
        self._weights = [
            torch.tensor(array, requires_grad=True, device=self._device)
            for array in (start.hidden, start.hidden_bias, start.output, start.output_bias)
        ]
        self._optimiser = torch.optim.Adam(self._weights, lr=settings.rate)

    def scorer(self) -> TripleScorer:
        """A copy of the weights as they are now."""
        return TripleScorer(self._recipe, *(weight.detach().cpu().numpy().copy() for weight in self._weights))

    def epoch(self, examples: TripleExamples, random: np.random.Generator) -> float:
        """One pass in random order; the mean loss (HyperRAG, eq. 10)."""
        import torch

        order = random.permutation(len(examples))
        total = 0.0
        for start in range(0, len(order), _BLOCK):
            rows = order[start : start + _BLOCK]
            features = torch.from_numpy(examples.features(rows)).to(self._device)
            labels = torch.from_numpy(examples.labels[rows].astype(np.float32)).to(self._device)
            for first in range(0, len(rows), self._settings.batch):
                batch = slice(first, first + self._settings.batch)
                total += self._step(features[batch], labels[batch]) * len(labels[batch])
        return total / len(order)

    def _step(self, features: torch.Tensor, labels: torch.Tensor) -> float:
        from torch.nn import functional

        hidden, hidden_bias, output, output_bias = self._weights
        dropped = functional.dropout(features, self._settings.dropout)
        logits = functional.relu(dropped @ hidden.T + hidden_bias) @ output + output_bias
        loss = functional.binary_cross_entropy_with_logits(logits, labels)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        return loss.item()


def _device(name: str) -> torch.device:
    """The device of that name.

    Raises:
        ConfigurationError: there is none.
    """
    import torch

    try:
        return torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError) as error:  # unknown, or torch was built without it
        raise ConfigurationError(f"device is {name!r}, which torch cannot use: {str(error).splitlines()[0]}") from error


def _validated(train_loss: float, scorer: TripleScorer, examples: TripleExamples) -> Epoch:
    blocks = [
        scorer.scores(examples.features(np.arange(start, min(start + _BLOCK, len(examples)))))
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
    """Write the weights, the report as JSON and the curve of the loss as a picture into ``directory``.

    Returns:
        The file of weights.

    Raises:
        ConfigurationError: the directory cannot be written.
    """
    path = directory / get_weights_file_name(signals=bool(scorer.recipe.signals))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        scorer.save(path)
        write_atomically(path.with_suffix(".json"), json.dumps(triple_report_to_json(report), indent=2) + "\n")
        if can_plot(path.stem):
            _draw(report, path.with_suffix(".png"))
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(directory)!r}: {error.strerror}") from error
    return path


def triple_report_to_json(report: TripleTrainingReport) -> dict[str, object]:
    """The report as it is written and printed."""
    return asdict(report)


def _draw(report: TripleTrainingReport, path: Path) -> None:
    figure = create_figure(6, 4)
    axes = figure.subplots()
    numbers = range(1, len(report.epochs) + 1)
    axes.plot(numbers, [epoch.train_loss for epoch in report.epochs], label="training")
    axes.plot(numbers, [epoch.validation_loss for epoch in report.epochs], label="validation")
    axes.axvline(report.best + 1, color="#999999", linestyle=":", label="kept")
    axes.set_xlabel("epoch")
    axes.set_ylabel("binary cross-entropy")
    axes.legend()
    save_figure(figure, path)
