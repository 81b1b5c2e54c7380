"""Refusal: whether a retriever is less certain about questions that the documents do not answer.

Each question is asked twice: on the whole index, and on an index without its gold documents. The best passage should
score higher on the whole index. ``without_gold.jsonl`` holds the records of the second index.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.beir import Dataset, Question, get_document_ids
from polyad.evaluation.json_lines import RecordFile, read_records
from polyad.evaluation.runs.records import QuestionRecord
from polyad.model import Evidence

WITHOUT_GOLD = "without_gold.jsonl"

FALSE_REFUSALS = 0.05
"""Share of the questions with gold documents that may be refused."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """How well a retriever refuses questions without gold documents.

    Attributes:
        flags: Whether each question without its gold documents is refused.
        roc_auc: Probability that a question with gold documents scores higher than a question without: the area under
            the ROC curve.
        criterion: The compared value: calibrated ``relevance`` of the best passage, or its ``score`` if a record has no
            relevance.
    """

    flags: tuple[bool, ...]
    roc_auc: float
    criterion: str

    @property
    def refused(self) -> float:
        """Share of the questions without gold documents that are refused."""
        return sum(self.flags) / len(self.flags)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object that ``polyad eval --json`` prints."""
        return {
            "refused": round(self.refused, 4),
            "at_false_refusals": FALSE_REFUSALS,
            "roc_auc": round(self.roc_auc, 4),
            "questions": len(self.flags),
            "criterion": self.criterion,
        }


class RefusalWriter(RecordFile[QuestionRecord]):
    """Appends records of questions without their gold documents to a run folder.

    Args:
        folder: Folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / WITHOUT_GOLD, QuestionRecord)
        self._keys = {record.key for record in self.records}

    def find_missing_questions(self, retriever: str, queries: Iterable[Question]) -> list[Question]:
        """Return the questions with gold documents that the retriever was not asked without them."""
        return [query for query in queries if query.gold and (retriever, query.id) not in self._keys]

    def add_record(self, record: QuestionRecord, _evidence: Evidence) -> None:
        """Write the record of one question."""
        self.append(record)


def read_records_without_gold(folder: Path) -> dict[tuple[str, str], QuestionRecord]:
    """Return the records of ``without_gold.jsonl`` by retriever and question id; empty if the file is missing.

    Raises:
        ConfigurationError: a line is damaged; the message names file and line.
    """
    return {record.key: record for record in read_records(folder / WITHOUT_GOLD, QuestionRecord, missing_ok=True)}


def require_gold_documents(dataset: Dataset) -> None:
    """Raise ConfigurationError if the data set has no gold documents, or nothing but gold documents."""
    gold = {id for query in dataset.queries for id in query.gold}
    if not gold:
        raise ConfigurationError("--refusal takes gold documents out of the index; expected questions that have some")
    if not get_document_ids(dataset) - gold:
        raise ConfigurationError(
            f"each document of {dataset.name} is gold: without them nothing is left to search; leave out --refusal, or "
            "take fewer questions with --limit"
        )


def measure_refusal(
    records: Sequence[QuestionRecord], without_gold: Mapping[tuple[str, str], QuestionRecord]
) -> Refusal | None:
    """Return how well one retriever refuses; None if no question was asked both ways.

    A question is refused if its best passage scores below a threshold. At most 5 per cent of the questions with gold
    documents are below the threshold. This is the measure of ``benchmarks/manuals.py``.

    Args:
        records: Records of the whole index.
        without_gold: Records of the index without gold documents, by retriever and question id.
    """
    pairs = [(record, without_gold[record.key]) for record in records if record.key in without_gold]
    if not pairs:
        return None
    passages = [passage for pair in pairs for record in pair for passage in record.passages]
    is_calibrated = all(passage.relevance is not None for passage in passages)

    def get_best(record: QuestionRecord) -> float:
        values = [passage.relevance if is_calibrated else passage.score for passage in record.passages]
        return max((value for value in values if value is not None), default=-math.inf)

    with_gold = [get_best(record) for record, _ in pairs]
    without = [get_best(record) for _, record in pairs]
    threshold = find_refusal_threshold(with_gold)
    flags = tuple(value < threshold for value in without)
    return Refusal(flags, compute_roc_auc(with_gold, without), "relevance" if is_calibrated else "score")


def find_refusal_threshold(values: Sequence[float]) -> float:
    """Return the highest threshold that at most :data:`FALSE_REFUSALS` of the values are below.

    >>> find_refusal_threshold([0.1, *[0.5] * 19]), find_refusal_threshold([0.1, 0.5])
    (0.5, 0.1)
    """
    return sorted(values)[int(FALSE_REFUSALS * len(values))]


def compute_roc_auc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """Return the probability that a positive exceeds a negative, ties counted half: the area under the ROC curve.

    >>> compute_roc_auc([0.5, 0.9], [0.5, 0.1])
    0.875
    """
    ordered = sorted(negatives)
    above = sum(bisect_left(ordered, value) + bisect_right(ordered, value) for value in positives)
    return above / 2 / (len(positives) * len(negatives))
