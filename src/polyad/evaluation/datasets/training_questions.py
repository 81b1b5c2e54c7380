"""Questions that the weights of a retriever were trained on; measures on them are too high."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyad.engine.settings import Settings
from polyad.evaluation.datasets.beir import Question
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.hyperretriever.triple_scorer import BUNDLED_FOR, TripleScorer
from polyad.text.digests import hash_question


@dataclass(frozen=True, slots=True)
class TrainingQuestions:
    """The training questions of a retriever's weights.

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
        """Whether weights were trained on questions that their file does not list, as in earlier versions."""
        return bool(self.data_sets) and not self.digests

    def find_trained(self, queries: Sequence[Question]) -> list[Question]:
        """Return those of the given questions on which a retriever's weights were trained, compared by text."""
        return [query for query in queries if hash_question(query.text) in self.digests]


def load_training_questions(retrievers: Sequence[str], settings: Settings) -> Iterator[TrainingQuestions]:
    """Yield the training questions of those retrievers that have trained weights.

    Raises:
        ConfigurationError: weights cannot be read.
    """
    if "default" in retrievers:
        default = settings.default
        linear = LinearScorer.from_settings(default.weights, rewriting=default.rewriting)
        yield TrainingQuestions("default", linear.trained_on, frozenset(linear.question_digests))
    if "hyperretriever" in retrievers:
        hyperretriever = settings.hyperretriever
        scorer = (
            TripleScorer.load(Path(hyperretriever.weights))
            if hyperretriever.weights
            else TripleScorer.load_bundled(BUNDLED_FOR, signals=hyperretriever.signals)
        )
        yield TrainingQuestions("hyperretriever", scorer.recipe.trained_on, frozenset(scorer.recipe.questions))
