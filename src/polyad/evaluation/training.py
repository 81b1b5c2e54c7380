"""Training the linear scorer of the default retriever on questions whose evidence is known.

Listwise: each gold passage competes with the candidates of its question that are not gold, and the scorer maximises
the logarithm of its share under a softmax. Weights are at least 0, because every signal speaks for a passage; that
keeps a scorer trained on a few hundred questions from exploiting how two of them happen to disagree, and it transfers
better to other corpora.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from polyad.model import FloatArray
from polyad.retrieval.scorer import LinearScorer

L2 = 0.03
"""Weight of the squared weights, of standardised signals, in the loss."""


@dataclass(frozen=True, slots=True)
class Example:
    """One question: the signals of its candidates, which of them are gold, and how many gold passages there are."""

    signals: FloatArray
    is_gold: npt.NDArray[np.bool_]
    gold: int


def train(datasets: Sequence[Sequence[Example]], names: Sequence[str]) -> LinearScorer:
    """Fit weights for the signals ``names`` on the questions of all datasets, each dataset counting the same."""
    examples, importance = _with_importance(datasets)
    signals = np.concatenate([example.signals for example in examples]).astype(np.float64)
    deviations = np.maximum(signals.std(axis=0), 1e-9)
    signals /= deviations
    starts = np.cumsum([0, *(len(example.is_gold) for example in examples[:-1])])
    is_gold = np.concatenate([example.is_gold for example in examples])
    owners = np.repeat(np.arange(len(examples)), [len(example.is_gold) for example in examples])

    def loss(weights: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        scores = signals @ weights
        scores -= np.maximum.reduceat(scores, starts)[owners]
        exponentials = np.exp(scores)
        others = np.add.reduceat(exponentials * ~is_gold, starts)
        shares = exponentials / (exponentials + others[owners])
        part = (importance / np.add.reduceat(is_gold.astype(float), starts))[owners]
        value = -(np.log(np.maximum(shares[is_gold], 1e-300)) * part[is_gold]).sum()
        # Of a gold passage: 1 - share. Of another: minus its share against each gold passage of its question.
        taken = np.add.reduceat(is_gold * part / (exponentials + others[owners]), starts)
        slopes = np.where(is_gold, part * (1 - shares), -exponentials * taken[owners])
        return (
            float(value / len(examples) + L2 * weights @ weights),
            -(signals.T @ slopes) / len(examples) + 2 * L2 * weights,
        )

    found = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(names))
    return LinearScorer(dict(zip(names, (found.x / deviations).tolist(), strict=True)))


def recall_at(examples: Sequence[Example], weights: FloatArray, k: int) -> float:
    """Share of the gold passages among the best ``k`` candidates, averaged over questions, in [0, 1]."""
    shares = []
    for example in examples:
        best = np.argsort(-(example.signals @ weights), kind="stable")[:k]
        shares.append(example.is_gold[best].sum() / example.gold)
    return float(np.mean(shares))


def coverage(examples: Sequence[Example]) -> float:
    """Share of the gold passages among all candidates: the most that any scorer can reach."""
    return float(np.mean([example.is_gold.sum() / example.gold for example in examples]))


def _with_importance(
    datasets: Sequence[Sequence[Example]],
) -> tuple[list[Example], npt.NDArray[np.float64]]:
    """The questions with a gold candidate, and what each counts, 1 on average."""
    examples = []
    importance = []
    for dataset in datasets:
        usable = [example for example in dataset if example.is_gold.any() and not example.is_gold.all()]
        examples += usable
        importance += [1 / max(1, len(usable))] * len(usable)
    weights = np.array(importance)
    return examples, weights / weights.mean()
