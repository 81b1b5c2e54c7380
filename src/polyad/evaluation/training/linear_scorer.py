"""Training the linear scorer of the default retriever on questions whose evidence is known.

Listwise: each gold passage competes with the candidates of its question that are not gold, and the scorer maximises
the logarithm of its share under a softmax. Weights are at least 0, because every signal speaks for a passage; that
keeps a scorer trained on a few hundred questions from exploiting how two of them happen to disagree, and it transfers
better to other corpora.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.evaluation.datasets.beir import Question
from polyad.evaluation.figures import can_plot, create_figure, save_figure
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.retrieval.default.scorer import (
    INTERCEPT,
    RELEVANCE_FEATURES,
    LinearScorer,
    RelevanceModel,
    get_weights_file_name,
)
from polyad.retrieval.default.signals import Candidates, expand_by_linkability, list_signal_names, list_weight_names
from polyad.text.digests import question_digests
from polyad.text.files import write_atomically

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

K = 5
"""Depth at which recall is reported."""

CALIBRATION_L2 = 1e-3
"""The same in the fit of relevance."""

L2 = 0.01
"""Weight of the squared weights, of standardised signals, in the loss."""


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """One question.

    Attributes:
        signals: Of its candidates, float32 ``[candidates, signals]``.
        holds: Which of them hold each piece of evidence, such as a gold document; ``[candidates, evidence]``.
        linkability: Of the index, in [0, 1]: how far the weights of linked texts count.
        measures: What relevance is told by, with scores of 0, ``[candidates, measures]``; None where it is not asked.
        documents: Of the candidates; recall then counts documents. Without, it counts passages.
        text: Of the question.
    """

    signals: FloatArray
    holds: BoolArray
    linkability: float = 1.0
    measures: FloatArray | None = None
    documents: Sequence[str] = ()
    text: str = ""

    @property
    def is_gold(self) -> BoolArray:
        """Which candidates hold any evidence, ``[candidates]``."""
        found: BoolArray = np.any(self.holds, axis=1)
        return found

    def expand_by_linkability(self, count: int) -> FloatArray:
        """The first ``count`` signals, each for linked and for unlinked texts; ``[candidates, 2 x count]``."""
        return expand_by_linkability(self.signals[:, :count], self.linkability)


def train_linear_scorer(datasets: Sequence[Sequence[TrainingExample]], names: Sequence[str]) -> LinearScorer:
    """Fit weights for the signals ``names`` on the questions of all datasets, each dataset counting the same.

    Each signal has a weight for linked and one for unlinked texts. Where the datasets are all of one kind, the other
    kind gets the same weights.

    Args:
        datasets: Examples of each; columns beyond ``names`` are not used.
        names: Of the first signals of every example.

    Raises:
        ConfigurationError: no question has both gold and other candidates.
        MissingExtraError: scipy is not installed.
    """
    minimize = import_minimize()
    examples, importance = _with_importance(datasets)
    signals = np.concatenate([example.expand_by_linkability(len(names)) for example in examples]).astype(np.float64)
    deviations = np.maximum(signals.std(axis=0), 1e-9)
    loss = _ListwiseLoss(signals / deviations, [example.is_gold for example in examples], importance)
    start = np.zeros(2 * len(names))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start))
    weights = found.x / deviations
    linked, unlinked = np.split(weights, 2)
    if not linked.any() or not unlinked.any():
        weights = np.tile(linked + unlinked, 2)
    questions = question_digests(example.text for examples in datasets for example in examples if example.text)
    return LinearScorer(dict(zip(list_weight_names(names), weights.tolist(), strict=True)), question_digests=questions)


def import_minimize() -> Callable[..., OptimizeResult]:
    """What minimises a loss; whoever trains asks for it before the hours of work that lead there.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    try:
        from scipy.optimize import minimize  # takes a third of a second to import
    except ImportError as error:
        raise MissingExtraError("scipy", "local") from error
    found: Callable[..., OptimizeResult] = minimize
    return found


class _ListwiseLoss:
    """The loss that training minimises, with its gradient.

    With s = w . signals of a candidate, G the gold candidates of a question and N its others:

        loss = L2 * w . w - mean over questions of [ importance / |G| * sum over g in G of log p_g ]
        p_g = e^s_g / (e^s_g + sum over n in N of e^s_n)

    Args:
        signals: Standardised, of the candidates of all questions one after the other, ``[candidates, signals]``.
        is_gold: Of the candidates of each question.
        importance: What each question counts, ``[questions]``.
    """

    def __init__(
        self, signals: npt.NDArray[np.float64], is_gold: Sequence[BoolArray], importance: npt.NDArray[np.float64]
    ) -> None:
        counts = np.array([len(own) for own in is_gold])
        self._signals = signals
        self._is_gold = np.concatenate(is_gold)
        self._starts = np.cumsum(counts) - counts
        self._owners = np.repeat(np.arange(len(counts)), counts)
        gold = np.add.reduceat(self._is_gold.astype(float), self._starts)
        self._part = (importance / gold)[self._owners]  # what a gold candidate counts

    def __call__(self, weights: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        """The loss and its gradient, ``[signals]``."""
        is_gold, part, questions = self._is_gold, self._part, len(self._starts)
        scores = self._signals @ weights
        scores -= np.maximum.reduceat(scores, self._starts)[self._owners]  # so that no exponential overflows
        exponentials = np.exp(scores)
        others = np.add.reduceat(exponentials * ~is_gold, self._starts)[self._owners]
        shares = exponentials / (exponentials + others)
        value = -(np.log(np.maximum(shares[is_gold], 1e-300)) * part[is_gold]).sum()
        # Of a gold passage: 1 - share. Of another: minus its share against each gold passage of its question.
        taken = np.add.reduceat(is_gold * part / (exponentials + others), self._starts)[self._owners]
        slopes = np.where(is_gold, part * (1 - shares), -exponentials * taken)
        return (
            float(value / questions + L2 * weights @ weights),
            -(self._signals.T @ slopes) / questions + 2 * L2 * weights,
        )


def fit_relevance_model(
    datasets: Sequence[Sequence[TrainingExample]], scorer: LinearScorer, names: Sequence[str]
) -> RelevanceModel:
    """Fit how likely one of the best :data:`K` passages is evidence, each dataset counting the same.

    Every question is also asked as if its evidence were not in the index, since a user's often is not.

    Args:
        datasets: Examples; without measures nothing is fitted.
        scorer: Whose scores are calibrated.
        names: Of the signals it weighs.
    """
    minimize = import_minimize()
    if any(example.measures is None for examples in datasets for example in examples):
        return RelevanceModel()
    weights = scorer.get_weights(list_weight_names(names))
    rows = [
        [select_top_features(example, weights, is_there) for example in examples for is_there in (True, False)]
        for examples in datasets
    ]
    measures = np.concatenate([own for examples in rows for own, _ in examples]).astype(np.float64)
    is_gold = np.concatenate([gold for examples in rows for _, gold in examples])
    sizes = [sum(len(own) for own, _ in examples) for examples in rows]
    importance = np.repeat([1 / (max(1, size) * len(sizes)) for size in sizes], sizes)
    deviations = np.maximum(measures.std(axis=0), 1e-9)
    columns = np.column_stack([measures / deviations, np.ones(len(measures))])

    def loss(slopes: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        logits = columns @ slopes
        losses = np.logaddexp(0, np.where(is_gold, -logits, logits))
        errors = importance * (1 / (1 + np.exp(-logits)) - is_gold)
        kept = np.append(slopes[:-1], 0)
        return float(importance @ losses + CALIBRATION_L2 * kept @ kept), columns.T @ errors + 2 * CALIBRATION_L2 * kept

    bounds = [(0, None)] * len(RELEVANCE_FEATURES) + [(None, None)]  # no measure speaks against a passage
    found = minimize(loss, np.zeros(columns.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes = [*(found[:-1] / deviations).tolist(), float(found[-1])]
    return RelevanceModel(dict(zip((*RELEVANCE_FEATURES, INTERCEPT), slopes, strict=True)))


def select_top_features(example: TrainingExample, weights: FloatArray, is_there: bool) -> tuple[FloatArray, BoolArray]:
    """What relevance is told by, of a question's best passages, and which of them are gold.

    Args:
        example: With its measures.
        weights: As :func:`train_linear_scorer` orders them.
        is_there: Whether the evidence is in the index; if not, the others compete alone.
    """
    kept = np.flatnonzero(~example.is_gold | is_there)
    scores = (example.expand_by_linkability(len(weights) // 2) @ weights)[kept]
    best = np.argsort(-scores, kind="stable")[:K]
    measures = (
        np.zeros((0, len(RELEVANCE_FEATURES)), dtype=np.float32) if example.measures is None else example.measures[kept]
    )
    found = measures[best[: len(measures)]].copy()
    found[:, 0] = scores[best[: len(measures)]]
    return found, example.is_gold[kept][best[: len(measures)]]


def compute_recall(examples: Sequence[TrainingExample], weights: FloatArray, k: int) -> float:
    """Share of the evidence in the best ``k`` candidates by the first signals, averaged over questions.

    Args:
        examples: Questions.
        weights: Of the first signals, for linked and for unlinked texts, as :func:`train_linear_scorer` orders them.
        k: Depth.
    """
    shares = []
    for example in examples:
        ranked = np.argsort(-(example.expand_by_linkability(len(weights) // 2) @ weights), kind="stable")
        shares.append(example.holds[_of_first_documents(ranked, example.documents, k)].any(axis=0).mean())
    return float(np.mean(shares))


def _of_first_documents(ranked: IntArray, documents: Sequence[str], k: int) -> IntArray:
    """The candidates of the first ``k`` documents; without documents each counts as one."""
    if not documents:
        return ranked[:k]
    first = set(list(dict.fromkeys(documents[row] for row in ranked.tolist()))[:k])
    return np.array([row for row in ranked.tolist() if documents[row] in first], dtype=np.int64)


def compute_candidate_recall(examples: Sequence[TrainingExample]) -> float:
    """Share of the evidence among all candidates: the most that any scorer can reach."""
    return float(np.mean([example.holds.any(axis=0).mean() for example in examples]))


def _with_importance(
    datasets: Sequence[Sequence[TrainingExample]],
) -> tuple[list[TrainingExample], npt.NDArray[np.float64]]:
    """The questions with a gold candidate, and what each counts, 1 on average."""
    examples = []
    importance = []
    for dataset in datasets:
        usable = [example for example in dataset if example.is_gold.any() and not example.is_gold.all()]
        examples += usable
        importance += [1 / max(1, len(usable))] * len(usable)
    if not examples:
        raise ConfigurationError(
            "no question can be trained on; expected some whose gold passages are found among others that are not gold"
        )
    weights = np.array(importance)
    return examples, weights / weights.mean()


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What training reached; recall at :data:`K`, in [0, 1].

    Attributes:
        scorer: Fitted on all datasets.
        unseen: Of each dataset, the recall of a scorer trained on the others; empty with fewer than two datasets.
        seen: Of each dataset, the recall of ``scorer`` itself.
        candidates: Of each dataset, the share of gold passages among the candidates, which bounds both.
    """

    scorer: LinearScorer
    unseen: dict[str, float]
    seen: dict[str, float]
    candidates: dict[str, float]


def build_examples(found: Iterable[Candidates], queries: Sequence[Question]) -> list[TrainingExample]:
    """Build training examples from the candidates of each question; see :func:`~.inputs.extract_signals`."""
    return [
        TrainingExample(
            candidates.signals,
            np.array(
                [[document == gold for gold in sorted(query.gold)] for document in candidates.documents], dtype=bool
            ),
            candidates.linkability,
            candidates.relevance_features,
            candidates.documents,
            query.text,
        )
        for query, candidates in zip(queries, found, strict=True)
    ]


def train_with_report(datasets: Mapping[str, Sequence[TrainingExample]], names: Sequence[str]) -> TrainingReport:
    """Train on all datasets, and leave each out in turn to see what a scorer reaches on data it was not trained on.

    Args:
        datasets: Examples by the name of their dataset; columns beyond ``names`` are not used.
        names: Of the first signals of every example.
    """
    scorer = train_linear_scorer(list(datasets.values()), names)
    unseen = {}
    for name in datasets if len(datasets) > 1 else ():
        others = train_linear_scorer([examples for other, examples in datasets.items() if other != name], names)
        unseen[name] = compute_recall(datasets[name], others.get_weights(list_weight_names(names)), K)
    weights = scorer.get_weights(list_weight_names(names))
    return TrainingReport(
        scorer,
        unseen,
        {name: compute_recall(examples, weights, K) for name, examples in datasets.items()},
        {name: compute_candidate_recall(examples) for name, examples in datasets.items()},
    )


def train_and_save(datasets: Mapping[str, Sequence[TrainingExample]], directory: Path) -> dict[str, TrainingReport]:
    """Train with the signals of rewriting and without, and write weights, picture and report into ``directory``.

    Returns:
        The reports by the name of their file of weights.

    Raises:
        ConfigurationError: the directory cannot be written.
    """
    reports = {
        get_weights_file_name(rewriting): train_with_report(datasets, list_signal_names(rewriting))
        for rewriting in (False, True)
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, trained in reports.items():
            rewriting = file == get_weights_file_name(rewriting=True)
            relevance_model = fit_relevance_model(list(datasets.values()), trained.scorer, list_signal_names(rewriting))
            scorer = replace(trained.scorer, trained_on=tuple(datasets), relevance_model=relevance_model)
            path = directory / file
            write_atomically(path, scorer.to_text())
            write_atomically(path.with_suffix(".json"), json.dumps(linear_report_to_json(trained), indent=2) + "\n")
            if can_plot(path.stem):
                _draw(trained.scorer, datasets, path.with_suffix(".png"))
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(directory)!r}: {error.strerror}") from error
    return reports


def linear_report_to_json(train_with_report: TrainingReport) -> dict[str, object]:
    """The report as it is written and printed."""
    return {
        f"recall@{K}": {
            name: {
                "trained_on_the_others": round(train_with_report.unseen[name], 4)
                if name in train_with_report.unseen
                else None,
                "with_these_weights": round(train_with_report.seen[name], 4),
                "among_the_candidates": round(train_with_report.candidates[name], 4),
            }
            for name in train_with_report.seen
        },
        "weights": train_with_report.scorer.weights,
    }


def _draw(scorer: LinearScorer, datasets: Mapping[str, Sequence[TrainingExample]], path: Path) -> None:
    """Save a picture of what each signal contributes: its weight times its standard deviation over all candidates."""
    count = len(scorer.weights) // 2
    signals = np.concatenate(
        [example.expand_by_linkability(count) for examples in datasets.values() for example in examples]
    )
    deviations = signals.std(axis=0).tolist()
    shares = sorted(
        (weight * deviation, name) for (name, weight), deviation in zip(scorer.weights.items(), deviations, strict=True)
    )
    figure = create_figure(8, 0.35 * len(shares) + 1)
    axes = figure.subplots()
    axes.barh([name for _, name in shares], [share for share, _ in shares], color="#4472a8")
    axes.set_xlabel("weight x standard deviation of the signal")
    save_figure(figure, path)
