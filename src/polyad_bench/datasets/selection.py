"""Loading of data sets in any supported layout, and selection of the questions to measure or to train with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.hyperretriever.triple_scorer import BUNDLED_FOR, TripleScorer
from polyad.text.digests import hash_question
from polyad.text.words import format_count
from polyad_bench.datasets import beir, papers
from polyad_bench.datasets.beir import Dataset, Question


def load_dataset(path: Path) -> Dataset:
    """Return a data set with all questions, read from a folder or a file of questions.

    The formats are BEIR, GraphRAG-Bench and WikiTopics.

    Raises:
        ConfigurationError: the layout is unknown or a file is invalid; the message names file and line.
    """
    if papers.is_graphrag_bench(path):
        return papers.load_graphrag_bench(path)
    if papers.is_wikitopics(path):
        return papers.load_wikitopics(path)
    if path.is_file():
        raise ConfigurationError(
            f"{str(path)!r} is no file of questions; expected a folder, or *_questions.json of GraphRAG-Bench"
        )
    dataset = beir.load_beir(path)
    beir.require_valid_corpus(dataset)
    return dataset


def load_datasets(folders: Iterable[Path], load: Callable[[Path], Dataset] = load_dataset) -> dict[str, Dataset]:
    """Return the data sets in ``folders``, keyed by name; ``load`` reads the data set in one folder.

    Raises:
        ConfigurationError: two data sets have the same name, or one cannot be read.
    """
    datasets: dict[str, Dataset] = {}
    for dataset in map(load, folders):
        if dataset.name in datasets:
            raise ConfigurationError(
                f"{str(datasets[dataset.name].corpus.parent)!r} and {str(dataset.corpus.parent)!r} are both called "
                f"{dataset.name!r}; expected benchmarks of different names; rename one of the folders"
            )
        datasets[dataset.name] = dataset
    return datasets


@dataclass(frozen=True, slots=True)
class TrainingQuestions:
    """Hashes of the questions on which a retriever's weights were trained.

    Attributes:
        retriever: Name of the retriever.
        data_sets: Names of the data sets; empty if the weights were not trained.
        digests: Digests of the texts of all questions used in training or validation.
    """

    retriever: str
    data_sets: Sequence[str]
    digests: Collection[str]

    @property
    def is_unknown(self) -> bool:
        """Whether a retriever's weights may have been trained on any question: old weight files do not list theirs."""
        return bool(self.data_sets) and not self.digests

    def find_trained(self, questions: Sequence[Question]) -> list[Question]:
        """Return the ``questions`` on which the retriever's weights were trained.

        Questions are compared by hashes of their texts.
        """
        return [query for query in questions if hash_question(query.text) in self.digests]


def load_training_questions(retrievers: Sequence[str], settings: Settings) -> Iterator[TrainingQuestions]:
    """Yield the hashes of the training questions of each named retriever that has trained weights.

    Raises:
        ConfigurationError: weights cannot be read.
    """
    if "default" in retrievers:
        linear = LinearScorer.from_settings(settings.default.weights)
        yield TrainingQuestions("default", linear.trained_on, frozenset(linear.question_digests))
    if "hyperretriever" in retrievers:
        hyperretriever = settings.hyperretriever
        scorer = (
            TripleScorer.load(Path(hyperretriever.weights))
            if hyperretriever.weights
            else TripleScorer.load_bundled(BUNDLED_FOR, signals=hyperretriever.signals)
        )
        yield TrainingQuestions("hyperretriever", scorer.recipe.trained_on, frozenset(scorer.recipe.questions))


TRAINING, VALIDATION = 0.64, 0.16
"""Expected shares of the questions; the rest is for test."""


@dataclass(frozen=True, slots=True)
class Splits:
    """The questions of a data set, split into training, validation and test sets."""

    train: tuple[Question, ...]
    validation: tuple[Question, ...]
    test: tuple[Question, ...]

    def require_nonempty(self, dataset_name: str) -> None:
        """Raise ConfigurationError if the training, validation or test set of the data set is empty."""
        counts = {"train": len(self.train), "validation": len(self.validation), "test": len(self.test)}
        if not all(counts.values()):
            listed = ", ".join(f"{count} for {name}" for name, count in counts.items())
            raise ConfigurationError(
                f"the questions of {dataset_name!r} are {listed}; expected at least one for each; give a benchmark of "
                "more questions, or a higher --limit"
            )


def split_questions(queries: Iterable[Question]) -> tuple[list[Question], list[Question], list[Question]]:
    """Return three lists of questions for training, validation and test: about 64, 16 and 20 per cent of all.

    The shares are those of HyperRAG, Table 5.

    A digest of the text is scaled to [0, 1) and compared with the shares, so that ids, order and other questions do not
    matter.
    """
    parts: tuple[list[Question], list[Question], list[Question]] = [], [], []
    for query in queries:
        position = int(hash_question(query.text), 16) / 2**64
        parts[(position >= TRAINING) + (position >= TRAINING + VALIDATION)].append(query)
    return parts


def split_dataset(dataset: Dataset, limit: int | None = None) -> Splits:
    """Return the questions of a data set, split into training, validation and test sets.

    See :func:`split_questions`.

    Args:
        dataset: The benchmark.
        limit: Number of questions, from the first; None for all.
    """
    return Splits(*map(tuple, split_questions(dataset.queries[:limit])))


def select_questions(
    dataset: Dataset, name: str, limit: int | None = None, training_questions: Iterable[TrainingQuestions] = ()
) -> tuple[Question, ...]:
    """Return up to ``limit`` questions of a split: train, validation, test, all or unseen (not trained on).

    Args:
        dataset: The benchmark.
        name: ``train``, ``validation``, ``test``, ``all``, or ``unseen`` for questions that were not trained on.
        limit: Most questions; None for all.
        training_questions: Training questions of the retrievers to evaluate, for ``unseen``.

    Raises:
        ConfigurationError: the split is empty, or weights do not name their training questions.
    """
    if name == "all":
        return dataset.queries[:limit]
    if name == "unseen":
        questions: Sequence[Question] = _select_unseen(dataset.queries, training_questions)
    else:
        questions = getattr(split_dataset(dataset), name)
    if not questions:
        raise ConfigurationError(
            f"{dataset.name} has {format_count(len(dataset.queries), 'question')}, and none of them in {name!r}"
        )
    return tuple(questions[:limit])


def _select_unseen(queries: Sequence[Question], training: Iterable[TrainingQuestions]) -> list[Question]:
    seen: set[Question] = set()
    for questions in training:
        if questions.is_unknown:
            raise ConfigurationError(
                f"the weights of {questions.retriever} are from an earlier version and cannot tell which questions "
                "they were trained on; expected weights that do for the split 'unseen'; train again"
            )
        seen.update(questions.find_trained(queries))
    return [query for query in queries if query not in seen]
