"""Measures by the names that tables and command lines give them: ``recall@5``, ``ndcg@10``, ``recall@500w``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from polyad.errors import ConfigurationError
from polyad.evaluation.measures.ranking import all_recall, hits, ndcg, recall, reciprocal_rank
from polyad.evaluation.runs.records import QuestionRecord

_RANKING: dict[str, Callable[[Sequence[str], Collection[str], int], float]] = {
    "recall": recall,
    "all_recall": all_recall,
    "hits": hits,
    "ndcg": ndcg,
    "mrr": lambda ranked, gold, k: reciprocal_rank(ranked[:k], gold),
}

_EVIDENCE = "evidence_recall"
"""Of the evidence that a data set states, within a budget of words."""

_NOT_STATED = "expected a data set that states the evidence, and one of the budgets that polyad eval measures at"
_NOT_JUDGED = "nobody has judged which documents hold its evidence"

_NAME = re.compile(r"([a-z_]+)@([1-9][0-9]*)(w?)")


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of a record, in [0, 1].

    Attributes:
        name: As it is written: the measure, ``@``, the depth in documents, or in words of returned text with a ``w``.
        kind: One of those above, or that of stated evidence.
        depth: At which the ranking is cut.
        in_words: Whether that is a budget of words: see :meth:`polyad.evaluation.runs.records.Asked.within_words`.
    """

    name: str
    kind: str
    depth: int
    in_words: bool

    def __call__(self, record: QuestionRecord) -> float:
        """What the retriever reached on this question.

        Raises:
            ConfigurationError: the data set does not say what this measure is of.
        """
        if self.kind == _EVIDENCE:
            if record.covered is None or self.depth not in record.covered.at_words:
                raise ConfigurationError(f"there is no {self.name} of question {record.query.id!r}: {_NOT_STATED}")
            return record.covered.at_words[self.depth] / record.covered.statements
        if not record.query.gold:
            raise ConfigurationError(f"there is no {self.name} of question {record.query.id!r}: {_NOT_JUDGED}")
        ranked = record.within_words(self.depth) if self.in_words else record.documents
        k = max(1, len(ranked)) if self.in_words else self.depth
        return _RANKING[self.kind](ranked, record.query.gold, k)


def parse_measure(name: str) -> Measure:
    """The measure of that name.

    >>> parse_measure("recall@500w").in_words
    True

    Raises:
        ConfigurationError: there is none.
    """
    parts = _NAME.fullmatch(name)
    if not parts or parts[1] not in (*_RANKING, _EVIDENCE) or (parts[1] == _EVIDENCE and not parts[3]):
        raise ConfigurationError(
            f"no measure {name!r}; expected one of {', '.join(_RANKING)} at a depth: recall@5 of documents, "
            f"recall@500w of words; or {_EVIDENCE}@500w"
        )
    return Measure(name, parts[1], int(parts[2]), bool(parts[3]))
