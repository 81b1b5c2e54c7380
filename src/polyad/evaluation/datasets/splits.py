"""The splits of a benchmark: questions to train on, for validation, and for test.

Which split a question is in is settled by its text alone. So a question that is added moves none of the others, one
that is in two benchmarks is in the same split of both, and one for test is never trained on, whatever the limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.beir import Dataset, Question
from polyad.evaluation.datasets.training_questions import TrainingQuestions
from polyad.text.counting import counted
from polyad.text.digests import question_digest

TRAINING, VALIDATION = 0.64, 0.16
"""Shares of all questions that there can be; the rest is for test."""


@dataclass(frozen=True, slots=True)
class Splits:
    """Questions by what they are for; no question is in two splits."""

    train: tuple[Question, ...]
    validation: tuple[Question, ...]
    test: tuple[Question, ...]

    def require_all(self, benchmark: str) -> None:
        """Refuse to go on where one is empty.

        Raises:
            ConfigurationError: one is.
        """
        counts = {field.name: len(getattr(self, field.name)) for field in fields(self)}
        if not all(counts.values()):
            listed = ", ".join(f"{count} for {name}" for name, count in counts.items())
            raise ConfigurationError(
                f"the questions of {benchmark!r} are {listed}; expected at least one for each; give a benchmark of "
                "more questions, or a higher --limit"
            )


def split_questions(queries: Iterable[Question]) -> tuple[list[Question], list[Question], list[Question]]:
    """Questions for training, validation and test, in their order: about 64, 16 and 20 per cent (HyperRAG, Table 5).

    A digest of the text is a number, and where it is among all that it could be decides; ids, order and the other
    questions change nothing.
    """
    parts: tuple[list[Question], list[Question], list[Question]] = [], [], []
    for query in queries:
        place = int(question_digest(query.text), 16) / 2**64
        parts[(place >= TRAINING) + (place >= TRAINING + VALIDATION)].append(query)
    return parts


def split_dataset(dataset: Dataset, limit: int | None = None) -> Splits:
    """The splits of a benchmark; see :func:`split_questions`.

    Args:
        dataset: Of which.
        limit: Only of the first so many questions of the file.
    """
    return Splits(*map(tuple, split_questions(dataset.queries[:limit])))


def select_questions(
    dataset: Dataset, name: str, limit: int | None = None, known: Iterable[TrainingQuestions] = ()
) -> tuple[Question, ...]:
    """The first questions of one split, in the order of the file.

    Args:
        dataset: Of which.
        name: ``train``, ``validation``, ``test``; ``all``; or ``unseen``, those that were not trained on.
        limit: At most so many.
        known: What the weights of the retrievers that will be asked were trained on.

    Raises:
        ConfigurationError: there is none, or weights do not tell which are unseen.
    """
    if name == "all":
        return dataset.queries[:limit]
    chosen = _unseen(dataset.queries, known) if name == "unseen" else getattr(split_dataset(dataset), name)
    if not chosen:
        raise ConfigurationError(
            f"{dataset.name} has {counted(len(dataset.queries), 'question')}, and none of them in {name!r}"
        )
    return tuple(chosen[:limit])


def _unseen(queries: Sequence[Question], known: Iterable[TrainingQuestions]) -> list[Question]:
    seen: set[Question] = set()
    for one in known:
        if one.is_unknown:
            raise ConfigurationError(
                f"the weights of {one.retriever} are from an earlier version and cannot tell which questions they were "
                "trained on; expected weights that do for the split 'unseen'; train again"
            )
        seen.update(one.among(queries))
    return [query for query in queries if query not in seen]
