"""Refusal: whether a retriever tells questions that the documents answer from those that they do not.

The same questions are put twice: to the whole index, and to one from which every gold document was taken. How sure the
retriever is of its best passage should be more in the first. Records of the second are in ``without_gold.jsonl``.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.beir import Dataset, Question, get_document_ids
from polyad.evaluation.json_lines import JsonLinesFile
from polyad.evaluation.runs.records import QuestionRecord, read_records, record_to_json
from polyad.model import Evidence

WITHOUT_GOLD = "without_gold.jsonl"

FALSE_REFUSALS = 0.05
"""Share of the questions with gold documents that may be refused."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """How well a retriever refuses.

    Attributes:
        flags: Of each question without its gold documents, whether it is refused.
        told_apart: How likely a question with gold documents is surer than one without: the area under the ROC curve.
        by: What was compared: the calibrated relevance of the best passage, or where there is none its score.
    """

    flags: tuple[bool, ...]
    told_apart: float
    by: str

    @property
    def refused(self) -> float:
        """Share of the questions without gold documents that are refused."""
        return sum(self.flags) / len(self.flags)

    def to_json(self) -> dict[str, object]:
        """As ``polyad eval --json`` prints it."""
        return {
            "refused": round(self.refused, 4),
            "at_false_refusals": FALSE_REFUSALS,
            "told_apart": round(self.told_apart, 4),
            "questions": len(self.flags),
            "by": self.by,
        }


class RefusalWriter:
    """Adds records of questions without their gold documents to a run folder.

    Args:
        folder: That of a run.
    """

    def __init__(self, folder: Path) -> None:
        self._file = JsonLinesFile(folder / WITHOUT_GOLD)
        try:
            self._known = read_records_without_gold(folder)
        except BaseException:
            self._file.close()
            raise

    def lacks(self, retriever: str, queries: Iterable[Question]) -> list[Question]:
        """Those of the questions that have gold documents and were not put without them."""
        return [query for query in queries if query.gold and (retriever, query.id) not in self._known]

    def keep(self, record: QuestionRecord, _evidence: Evidence) -> None:
        """Write what was found for one question."""
        self._file.add([record_to_json(record)])

    def __enter__(self) -> RefusalWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()


def read_records_without_gold(folder: Path) -> dict[tuple[str, str], QuestionRecord]:
    """The records of a run folder by retriever and question; none where none were asked for.

    Raises:
        ConfigurationError: the file is damaged: says which and where.
    """
    path = folder / WITHOUT_GOLD
    found: dict[tuple[str, str], QuestionRecord] = {}
    for record in read_records(path) if path.exists() else ():
        found.setdefault(record.key, record)
    return found


def require_gold_documents(dataset: Dataset) -> None:
    """Refuse questions of which nobody knows the evidence, and a corpus of nothing else.

    Raises:
        ConfigurationError: there is no gold document, or no other.
    """
    gold = {id for query in dataset.queries for id in query.gold}
    if not gold:
        raise ConfigurationError("--refusal takes gold documents out of the index; expected questions that have some")
    if not get_document_ids(dataset) - gold:
        raise ConfigurationError(
            f"each document of {dataset.name} is gold: without them nothing is left to search; leave out --refusal, or "
            "take fewer questions with --limit"
        )


def measure_refusal(
    records: Sequence[QuestionRecord], without: Mapping[tuple[str, str], QuestionRecord]
) -> Refusal | None:
    """How well one retriever refuses; None where no question was put both ways.

    Definition: a question is refused when its best passage is less sure than a limit, below which at most 5 per cent of
    the questions with gold documents are. Source: the measure of polyad's ``benchmarks/manuals.py``.

    Args:
        records: Of the whole index.
        without: Of the index without gold documents, by retriever and question.
    """
    pairs = [(record, without[record.key]) for record in records if record.key in without]
    if not pairs:
        return None
    passages = [passage for pair in pairs for record in pair for passage in record.passages]
    is_calibrated = all(passage.relevance is not None for passage in passages)
    with_gold, without_gold = (
        [
            max(
                (_sureness(passage.relevance, passage.score, is_calibrated) for passage in record.passages),
                default=_NONE,
            )
            for record in side
        ]
        for side in zip(*pairs, strict=True)
    )
    limit = find_refusal_threshold(with_gold)
    return Refusal(
        tuple(value < limit for value in without_gold),
        compute_roc_auc(with_gold, without_gold),
        "relevance" if is_calibrated else "score",
    )


_NONE = -math.inf
"""How sure one is who has found nothing."""


def _sureness(relevance: float | None, score: float, is_calibrated: bool) -> float:
    return relevance if is_calibrated and relevance is not None else score


def find_refusal_threshold(values: Sequence[float]) -> float:
    """The highest limit below which at most :data:`FALSE_REFUSALS` of the values are.

    >>> find_refusal_threshold([0.1, *[0.5] * 19]), find_refusal_threshold([0.1, 0.5])
    (0.5, 0.1)
    """
    return sorted(values)[int(FALSE_REFUSALS * len(values))]


def compute_roc_auc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """How likely one of the first is above one of the second, ties as halves: the area under the ROC curve.

    >>> compute_roc_auc([0.5, 0.9], [0.5, 0.1])
    0.875
    """
    ordered = sorted(lower)
    above = sum(bisect_left(ordered, value) + bisect_right(ordered, value) for value in higher)
    return above / 2 / (len(higher) * len(lower))
