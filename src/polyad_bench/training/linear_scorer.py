"""Training of the first stage of the default retriever on questions with gold documents.

The loss is listwise: each gold passage competes with the candidates of its question that are not gold, and training
maximises the logarithm of its softmax share. Weights are at least 0, because every signal speaks for a passage. This
constraint keeps a scorer from fitting chance differences between two signals, and transfers better to other corpora.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from polyad.engine import Engine
from polyad.errors import ConfigurationError, MissingExtraError
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.components import Embedder, MentionExtractor, Progress, silent
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.encoder_trust import EncoderTrust
from polyad.retrieval.default.scorer import WEIGHTS_FILE, LinearScorer
from polyad.retrieval.default.signals import (
    SIGNAL_NAMES,
    Candidates,
    SignalExtractor,
    expand_by_linkability,
    list_weight_names,
)
from polyad.retrieval.question import QuestionLinker
from polyad.text.digests import hash_questions
from polyad.text.files import write_atomically
from polyad_bench.datasets.beir import Question
from polyad_bench.reports.plots import can_plot, create_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from scipy.optimize import OptimizeResult


@contextmanager
def create_training_folder(folder: Path) -> Iterator[None]:
    """Create a folder, and raise ConfigurationError if writing a file in the ``with`` block fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(folder)!r}: {error.strerror}") from error


def write_training_report(weights_path: Path, report: Mapping[str, object], plot: Callable[[], Figure]) -> None:
    """Write ``report`` as JSON beside the file of weights, and ``plot`` as PNG if matplotlib is installed."""
    write_atomically(weights_path.with_suffix(".json"), json.dumps(report, indent=2) + "\n")
    if can_plot(weights_path.stem):
        save_figure(plot(), weights_path.with_suffix(".png"))


def get_training_components(engine: Engine, progress: Progress = silent) -> tuple[Snapshot, Embedder, MentionExtractor]:
    """Return the snapshot (index as read-only arrays), embedder and mention extractor for training a scorer."""
    snapshot = engine.snapshot("hyperretriever", progress)
    return snapshot, engine.components.embedder, engine.components.extractor


def extract_signals(
    engine: Engine, questions: Iterable[str], trust: EncoderTrust | None = None
) -> Iterator[Candidates]:
    """Yield the candidate passages of each question with their signals, the features of a linear ranking model.

    Args:
        engine: Engine of the index.
        questions: The questions.
        trust: Trust in the encoder; by default full.
    """
    snapshot, models = engine.snapshot(), engine.components
    linker = QuestionLinker(models.extractor)
    extractor = SignalExtractor(snapshot, models.embedder, linker, trust or EncoderTrust())
    return map(extractor.extract_candidates, questions)


K = 5
"""Depth of the reported recall."""

L2 = 0.01
"""Weight of the squared weights, of standardised signals, in the loss."""


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """A training question with the features and labels of its candidate passages.

    Attributes:
        signals: Signals of the candidates, float32 ``[candidates, signals]``.
        holds: Whether each candidate holds each piece of evidence, such as a gold document; ``[candidates, evidence]``.
        linkability: Linkability of the index, in [0, 1]: the share of the weights of linked texts.
        documents: Document ids of the candidates, by which recall counts; empty to count passages.
        text: Text of the question.
    """

    signals: FloatArray
    holds: BoolArray
    linkability: float = 1.0
    documents: Sequence[str] = ()
    text: str = ""

    @property
    def is_gold(self) -> BoolArray:
        """Whether each candidate contains evidence for the question; bool ``[candidates]``."""
        is_gold: BoolArray = np.any(self.holds, axis=1)
        return is_gold

    def expand_by_linkability(self, count: int) -> FloatArray:
        """Return the first ``count`` features twice: times the linkability of the index, and times 1 - linkability.

        The shape is ``[candidates, 2 x count]``. Linkability, in [0, 1], states how reliably names in an index lead to
        the passage about them.
        """
        return expand_by_linkability(self.signals[:, :count], self.linkability)

    def compute_scores(self, scorer: LinearScorer) -> FloatArray:
        """Return the scores of the candidates in the first stage of ``scorer``, float32 ``[candidates]``."""
        return _score(self, scorer.get_weights(list_weight_names(SIGNAL_NAMES)))

    def select(self, candidates: IntArray, signals: FloatArray) -> TrainingExample:
        """Return an example of some of the candidates, by their indices, with other signals for them."""
        documents = [self.documents[row] for row in candidates.tolist()] if self.documents else ()
        return replace(self, signals=signals, holds=self.holds[candidates], documents=documents)


def train_linear_scorer(datasets: Sequence[Sequence[TrainingExample]], names: Sequence[str]) -> LinearScorer:
    """Return a linear ranking model, trained on the questions of several data sets with equal weight per data set.

    Each signal has a weight for linked and one for unlinked texts. If all data sets are of one kind, the other kind
    gets the same weights.

    Args:
        datasets: Examples of each data set; columns beyond ``names`` are ignored.
        names: Names of the first signals.

    Raises:
        ConfigurationError: no question has both gold and other candidates.
        MissingExtraError: scipy is not installed.
    """
    weights = minimize_listwise_loss(
        datasets, lambda example: example.expand_by_linkability(len(names)), [(0, None)] * (2 * len(names)), L2
    )
    linked, unlinked = np.split(weights, 2)
    if not linked.any() or not unlinked.any():
        weights = np.tile(linked + unlinked, 2)
    questions = hash_questions(example.text for examples in datasets for example in examples if example.text)
    return LinearScorer(dict(zip(list_weight_names(names), weights.tolist(), strict=True)), question_digests=questions)


def minimize_listwise_loss(
    datasets: Sequence[Sequence[TrainingExample]],
    get_features: Callable[[TrainingExample], FloatArray],
    weight_bounds: Sequence[tuple[float | None, float | None]],
    l2: float,
) -> npt.NDArray[np.float64]:
    """Return the feature weights that minimise a listwise ranking loss over the examples of several data sets.

    Args:
        datasets: Examples of each data set.
        get_features: Returns the features of an example, ``[candidates, features]``.
        weight_bounds: Lowest and highest weight of each feature.
        l2: Weight of the squared weights, of standardised features, in the loss.

    Returns:
        The weights, ``[features]``.

    Raises:
        ConfigurationError: no question has both gold and other candidates.
        MissingExtraError: scipy is not installed.
    """
    minimize = import_minimize()
    examples, importance = _weight_examples(datasets)
    features = np.concatenate([get_features(example) for example in examples]).astype(np.float64)
    deviations = np.maximum(features.std(axis=0), 1e-9)
    loss = _ListwiseLoss(features / deviations, [example.is_gold for example in examples], importance, l2)
    result = minimize(loss, np.zeros(len(weight_bounds)), jac=True, method="L-BFGS-B", bounds=weight_bounds)
    weights: npt.NDArray[np.float64] = result.x / deviations
    return weights


def import_minimize() -> Callable[..., OptimizeResult]:
    """Return the function ``scipy.optimize.minimize``; raise MissingExtraError if scipy is not installed.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    try:
        from scipy.optimize import minimize  # takes a third of a second to import
    except ImportError as error:
        raise MissingExtraError("scipy", "local") from error
    function: Callable[..., OptimizeResult] = minimize
    return function


class _ListwiseLoss:
    """The listwise ranking loss of a linear scorer and its gradient, as functions of the weights.

    With s = w . signals of a candidate, G the gold candidates of a question and N its other candidates:

        loss = l2 * w . w - mean over questions of [ importance / |G| * sum over g in G of log p_g ]
        p_g = e^s_g / (e^s_g + sum over n in N of e^s_n)

    Args:
        signals: Standardised signals of the candidates of all questions, ``[candidates, signals]``.
        is_gold: Whether each candidate is gold, for each question.
        importance: Weight of each question, ``[questions]``.
        l2: Weight of the squared weights.
    """

    def __init__(
        self,
        signals: npt.NDArray[np.float64],
        is_gold: Sequence[BoolArray],
        importance: npt.NDArray[np.float64],
        l2: float,
    ) -> None:
        self._l2 = l2
        counts = np.array([len(flags) for flags in is_gold])
        self._signals = signals
        self._is_gold = np.concatenate(is_gold)
        self._starts = np.cumsum(counts) - counts
        self._owners = np.repeat(np.arange(len(counts)), counts)
        gold = np.add.reduceat(self._is_gold.astype(float), self._starts)
        self._part = (importance / gold)[self._owners]  # weight of each candidate in the loss if it is gold

    def __call__(self, weights: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        """Return the loss and its gradient, ``[signals]``."""
        is_gold, part, questions = self._is_gold, self._part, len(self._starts)
        scores = self._signals @ weights
        scores -= np.maximum.reduceat(scores, self._starts)[self._owners]  # so that no exponential overflows
        exponentials = np.exp(scores)
        others = np.add.reduceat(exponentials * ~is_gold, self._starts)[self._owners]
        shares = exponentials / (exponentials + others)
        value = -(np.log(np.maximum(shares[is_gold], 1e-300)) * part[is_gold]).sum()
        # Slope of a gold passage: 1 - share. Slope of another passage: minus its share against each gold passage.
        losses = np.add.reduceat(is_gold * part / (exponentials + others), self._starts)[self._owners]
        slopes = np.where(is_gold, part * (1 - shares), -exponentials * losses)
        return (
            float(value / questions + self._l2 * weights @ weights),
            -(self._signals.T @ slopes) / questions + 2 * self._l2 * weights,
        )


def compute_recall(examples: Sequence[TrainingExample], weights: FloatArray, k: int) -> float:
    """Return the mean share of gold documents that a linear scorer ranks among the first ``k`` documents.

    Args:
        examples: Questions.
        weights: Weights of the first signals, in the order of :func:`train_linear_scorer`.
        k: Depth.
    """
    return float(np.mean([compute_document_recall(each, _score(each, weights), k) for each in examples]))


def _score(example: TrainingExample, weights: FloatArray) -> FloatArray:
    """Return the scores of the candidates of an example by a linear scorer."""
    scores: FloatArray = example.expand_by_linkability(len(weights) // 2) @ weights
    return scores


def compute_document_recall(example: TrainingExample, scores: FloatArray, k: int) -> float:
    """Return the share of the gold documents of a question among its first ``k`` documents.

    Args:
        example: The question.
        scores: Scores of its candidates.
        k: Depth.
    """
    ranked = np.argsort(-scores, kind="stable")
    return float(example.holds[_select_candidates(ranked, example.documents, k)].any(axis=0).mean())


def _select_candidates(ranked: IntArray, document_ids: Sequence[str], k: int) -> IntArray:
    """Return the ranked candidates (row numbers) that belong to the first ``k`` distinct documents of the ranking.

    ``document_ids`` has the document of each candidate. If it is empty, return the first ``k`` candidates.
    """
    if not document_ids:
        return ranked[:k]
    first = set(list(dict.fromkeys(document_ids[row] for row in ranked.tolist()))[:k])
    return np.array([row for row in ranked.tolist() if document_ids[row] in first], dtype=np.int64)


def compute_candidate_recall(examples: Sequence[TrainingExample]) -> float:
    """Return the mean share of gold documents that are among the candidates, an upper bound of recall."""
    return float(np.mean([example.holds.any(axis=0).mean() for example in examples]))


def _weight_examples(
    datasets: Sequence[Sequence[TrainingExample]],
) -> tuple[list[TrainingExample], npt.NDArray[np.float64]]:
    """Return the examples that have both gold and other candidates, and a weight for each of these examples.

    All data sets have the same total weight, and the mean weight is 1.
    """
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
    """A trained linear scorer with its recall on each data set.

    Attributes:
        scorer: Scorer trained on all data sets.
        unseen: Recall on each data set of a scorer trained on the other data sets; empty with fewer than two data sets.
        seen: Recall on each data set of ``scorer``.
        candidates: Share of gold passages among the candidates of each data set, an upper bound of recall.
    """

    scorer: LinearScorer
    unseen: dict[str, float]
    seen: dict[str, float]
    candidates: dict[str, float]


def build_examples(candidates: Iterable[Candidates], queries: Sequence[Question]) -> list[TrainingExample]:
    """Return one training example per question: the signals of candidates, labelled by the gold documents."""
    return [
        TrainingExample(
            group.signals,
            np.array([[document == gold for gold in sorted(query.gold)] for document in group.documents], dtype=bool),
            group.linkability,
            group.documents,
            query.text,
        )
        for query, group in zip(queries, candidates, strict=True)
    ]


def train_with_report(datasets: Mapping[str, Sequence[TrainingExample]], names: Sequence[str]) -> TrainingReport:
    """Return a linear scorer that is trained on all data sets, with its recall on each data set.

    The report also has the recall on each data set of a scorer that is trained on all other data sets.

    Args:
        datasets: Examples by name of the data set; columns beyond ``names`` are ignored.
        names: Names of the first signals.
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


def train_and_save(
    datasets: Mapping[str, Sequence[TrainingExample]],
    directory: Path,
    train_later_stages: Callable[[LinearScorer], LinearScorer] = lambda scorer: scorer,
) -> TrainingReport:
    """Train the weights of all ranking stages, and save the weights, a report and a plot.

    Args:
        datasets: Examples by name of the data set.
        directory: Folder of the files.
        train_later_stages: Returns the first stage with the networks of the later stages.

    Raises:
        ConfigurationError: the directory cannot be written.
    """
    report = train_with_report(datasets, SIGNAL_NAMES)
    path = directory / WEIGHTS_FILE
    with create_training_folder(directory):
        scorer = train_later_stages(replace(report.scorer, trained_on=tuple(datasets)))
        write_atomically(path, scorer.to_text())
        write_training_report(path, linear_report_to_json(report), partial(_plot_weights, report.scorer, datasets))
    return report


def linear_report_to_json(report: TrainingReport) -> dict[str, object]:
    """Return the training report of a linear scorer as a dictionary for JSON."""
    return {
        f"recall@{K}": {
            name: {
                "trained_on_the_others": round(report.unseen[name], 4) if name in report.unseen else None,
                "with_these_weights": round(report.seen[name], 4),
                "among_the_candidates": round(report.candidates[name], 4),
            }
            for name in report.seen
        },
        "weights": report.scorer.weights,
    }


def _plot_weights(scorer: LinearScorer, datasets: Mapping[str, Sequence[TrainingExample]]) -> Figure:
    """Return a bar plot of the contribution of each feature: weight times standard deviation of the feature."""
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
    return figure
