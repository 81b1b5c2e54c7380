"""The splits of a benchmark: questions to train on, for validation, and for test.

Which split a question is in is settled by the whole of its benchmark. Only then may a limit choose among the questions,
so that one for test is never trained on, whatever the limits of the runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets import Dataset, Question
from polyad.text.counting import counted


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

    def seen(self, queries: Sequence[Question]) -> int:
        """How many of ``queries`` training on these splits has seen: to learn from, or to know when to stop."""
        known = {*self.train, *self.validation}
        return sum(query in known for query in queries)


def split(queries: Sequence[Question], seed: int = 0) -> tuple[list[Question], list[Question], list[Question]]:
    """Questions for training, validation and test: 64, 16 and 20 per cent (HyperRAG, Table 5).

    By the rank of a hash of seed and id, so that the order of the file and the texts of questions change nothing.

    Args:
        queries: All of a benchmark's: of some of them, the ranks would be others.
        seed: Other splits for each.
    """
    ordered = sorted(queries, key=lambda query: (_hash(f"{seed}:{query.id}"), query.id))
    first, second = round(0.64 * len(ordered)), round(0.8 * len(ordered))
    return ordered[:first], ordered[first:second], ordered[second:]


def splits_of(dataset: Dataset, limit: int | None = None) -> Splits:
    """The splits of a benchmark; see :func:`split`.

    Args:
        dataset: With all of its questions.
        limit: Of each split, only what is among the first so many questions of the file.
    """
    taken = set(dataset.queries[:limit])
    return Splits(*(tuple(query for query in part if query in taken) for part in split(dataset.queries)))


def queries_of(dataset: Dataset, name: str, limit: int | None = None) -> tuple[Question, ...]:
    """The first questions of one split, in the order of the file.

    Args:
        dataset: With all of its questions.
        name: ``train``, ``validation``, ``test``; or ``all``.
        limit: At most so many.

    Raises:
        ConfigurationError: there is none.
    """
    if name == "all":
        return dataset.queries[:limit]
    chosen = set(getattr(splits_of(dataset), name))
    if not chosen:
        raise ConfigurationError(
            f"{dataset.name} has {counted(len(dataset.queries), 'question')}, and none of them in {name!r}"
        )
    return tuple(query for query in dataset.queries if query in chosen)[:limit]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
