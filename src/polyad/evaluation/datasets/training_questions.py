"""Questions that the weights of a retriever were trained on: on these it may do better than on others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyad.config import Settings
from polyad.evaluation.datasets.beir import Question
from polyad.retrieval.default.retriever import DefaultSettings
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_scorer import BUNDLED_FOR, TripleScorer
from polyad.text.digests import question_digest


@dataclass(frozen=True, slots=True)
class TrainingQuestions:
    """What the weights of a retriever say of their training.

    Attributes:
        retriever: Its name.
        data_sets: Names of what the weights were trained on; none where they were not.
        digests: Of the questions that training used, for whatever.
    """

    retriever: str
    data_sets: Sequence[str]
    digests: Collection[str]

    @property
    def is_unknown(self) -> bool:
        """Whether the weights were trained, and do not say on which questions: those of earlier versions."""
        return bool(self.data_sets) and not self.digests

    def among(self, queries: Sequence[Question]) -> list[Question]:
        """Those of some questions that were trained on, by their texts, whatever their data set is called."""
        return [query for query in queries if question_digest(query.text) in self.digests]


def load_training_questions(retrievers: Sequence[str], settings: Settings) -> Iterator[TrainingQuestions]:
    """What those of some retrievers that are trained know, with the weights that are set.

    Raises:
        ConfigurationError: weights cannot be read.
    """
    if "default" in retrievers:
        chosen = settings.of(DefaultSettings)
        linear = LinearScorer.from_settings(chosen.weights, rewriting=chosen.rewriting)
        yield TrainingQuestions("default", linear.trained_on, frozenset(linear.question_digests))
    if "hyperretriever" in retrievers:
        own = settings.of(HyperRetrieverSettings)
        scorer = (
            TripleScorer.load(Path(own.weights))
            if own.weights
            else TripleScorer.load_bundled(BUNDLED_FOR, signals=own.signals)
        )
        yield TrainingQuestions("hyperretriever", scorer.recipe.trained_on, frozenset(scorer.recipe.questions))
