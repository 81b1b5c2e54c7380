"""Evaluation of retrievers: ask the questions of a data set one at a time and average the measures.

For the measure of refusal each question is asked twice: on the whole index, and on an index without its gold documents.
The best passage should score higher on the whole index.
"""

from __future__ import annotations

import math
import statistics
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from polyad.errors import ConfigurationError
from polyad.model import Evidence, Timings
from polyad.protocols.components import Progress, silent
from polyad_bench.datasets.beir import Dataset, Question, get_document_ids
from polyad_bench.files import index_records, read_records
from polyad_bench.measures.evidence import StatementCoverage
from polyad_bench.measures.ranking import parse_measure
from polyad_bench.runs.records import QuestionRecord, RankedPassage

PASSAGES_PER_DOCUMENT = 4
"""Passages requested for each document of the ranking, because one document may be returned in several passages."""

WORD_BUDGETS = (500, 1000, 2000)
"""Budgets, in words of returned text, at which recall is measured beside the first k documents."""

Search = Callable[[str, int], Evidence]
"""Takes a question and k, and returns the evidence."""

MeasureCoverage = Callable[[Question, Evidence], StatementCoverage | None]
"""Takes a question and its evidence, and returns the coverage of the evidence statements of the question."""


@dataclass(frozen=True, slots=True)
class RetrieverResult:
    """One retriever's mean measures, in [0, 1], and times, in milliseconds, on one benchmark.

    ``mrr`` is over the first k documents. ``latency_p50`` and ``latency_p95`` include the encoding of the question.
    ``recall_at_words`` maps a budget of words to the recall of the text that fits into the budget. Measures of rankings
    are None if the data set has no gold documents. ``evidence`` maps a budget to the share of evidence statements that
    the returned text covers, and ``evidence_ceiling`` is the share that any passage covers; empty and None if the data
    set states no evidence.
    """

    retriever: str
    recall: float | None
    all_recall: float | None
    mrr: float | None
    latency_p50: float
    latency_p95: float
    encode_p50: float
    llm_tokens_per_query: float
    llm_tokens_uncached_per_query: float
    hits: float | None
    ndcg: float | None
    recall_at_words: Mapping[int, float | None]
    evidence: Mapping[int, float] = field(default_factory=dict)
    evidence_ceiling: float | None = None

    def to_json(self, k: int) -> dict[str, object]:
        """Return the retriever's measures as the JSON object that ``polyad eval --json`` prints."""
        value: dict[str, object] = {
            "retriever": self.retriever,
            f"recall@{k}": _round(self.recall),
            f"all_recall@{k}": _round(self.all_recall),
            "mrr": _round(self.mrr),
            "latency_ms": {
                "p50": round(self.latency_p50, 2),
                "p95": round(self.latency_p95, 2),
                "encode_p50": round(self.encode_p50, 2),
            },
            "llm_tokens_per_query": round(self.llm_tokens_per_query, 1),
            "llm_tokens_uncached_per_query": round(self.llm_tokens_uncached_per_query, 1),
            f"hits@{k}": _round(self.hits),
            f"ndcg@{k}": _round(self.ndcg),
            "recall_at_words": {str(budget): _round(value) for budget, value in self.recall_at_words.items()},
        }
        if self.evidence:
            at_words = {str(budget): _round(value) for budget, value in self.evidence.items()}
            value["evidence_recall"] = {"at_words": at_words, "ceiling": _round(self.evidence_ceiling)}
        return value


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def evaluate_retriever(
    retriever: str, search: Search, queries: Sequence[Question], k: int, progress: Progress = silent
) -> RetrieverResult:
    """Call ``search`` with every question, and return the mean measures and times of the retriever named ``retriever``.

    See :func:`ask_questions`.
    """
    records = [record for record, _ in ask_questions(retriever, search, queries, k, progress)]
    return summarise_records(retriever, records, k)


def ask_questions(
    retriever: str,
    search: Search,
    queries: Sequence[Question],
    k: int,
    progress: Progress = silent,
    count_tokens: Callable[[], tuple[int, int]] = lambda: (0, 0),
    load_models: Callable[[], None] = lambda: None,
    earlier_questions: int = 0,
    measure_coverage: MeasureCoverage | None = None,
) -> Iterator[tuple[QuestionRecord, Evidence]]:
    """Search for one question at a time with a retriever; yield a record (ranking, times, tokens) and the evidence.

    The pair is yielded before the next question is asked. There is no warm-up: the first question counts.

    Args:
        retriever: Name of the retriever, for the records.
        search: Searches with the retriever. Evidence without timings, as a bare retriever returns it, gets the wall
            time of the call.
        queries: At least one question.
        k: Depth of the ranking, in documents.
        progress: Called after each question.
        count_tokens: Returns the language-model tokens spent so far, and the tokens without cached replies.
        load_models: Loads the models that the retriever needs; not part of the time of any question.
        earlier_questions: Number of questions that an earlier run has asked, for ``progress``.
        measure_coverage: Measures the coverage of evidence statements; not part of the time of any question.

    Raises:
        ConfigurationError: there is no question.
    """
    if not queries:
        raise ConfigurationError(f"no questions to measure {retriever!r} with; expected at least one")
    load_models()
    spent = count_tokens()  # not before, since loading may write summaries, which is construction
    for number, query in enumerate(queries, earlier_questions + 1):
        start = time.perf_counter()
        evidence = search(query.text, k * PASSAGES_PER_DOCUMENT)
        elapsed = Timings(retrieve=1000 * (time.perf_counter() - start))
        before, spent = spent, count_tokens()
        timings = evidence.timings if evidence.timings.total else elapsed
        record = QuestionRecord(
            retriever,
            query,
            tuple(map(RankedPassage.from_hit, evidence.passages)),
            tuple(scored.hyperedge.id for scored in evidence.hyperedges),
            timings.encode,
            timings.retrieve,
            llm_tokens=spent[0] - before[0],
            llm_tokens_uncached=spent[1] - before[1],
            coverage=measure_coverage(query, evidence) if measure_coverage else None,
        )
        yield record, evidence
        progress(number, earlier_questions + len(queries), f"questions, {retriever}")


def summarise_records(retriever: str, records: Sequence[QuestionRecord], k: int) -> RetrieverResult:
    """Return the mean measures and times of one retriever, computed from one record per question.

    The measures rank documents by their best passage, because a document may be split into several passages.

    Args:
        retriever: Name of the retriever.
        records: Records of the questions; at least one.
        k: Depth of the ranking, in documents.
    """
    judged = [record for record in records if record.query.gold]
    latencies = [record.milliseconds for record in records]
    kinds = ("recall", "all_recall", "mrr", "hits", "ndcg")
    measures: dict[str, Any] = {kind: _average_measure(f"{kind}@{k}", judged) for kind in kinds}
    return RetrieverResult(
        retriever,
        latency_p50=statistics.median(latencies),
        latency_p95=float(np.percentile(latencies, 95)),
        encode_p50=statistics.median(record.encode_ms for record in records),
        llm_tokens_per_query=statistics.fmean(record.llm_tokens for record in records),
        llm_tokens_uncached_per_query=statistics.fmean(record.llm_tokens_uncached for record in records),
        recall_at_words={budget: _average_measure(f"recall@{budget}w", judged) for budget in WORD_BUDGETS},
        **measures,
        **_summarise_coverage(records),
    )


def _average_measure(measure: str, records: Sequence[QuestionRecord]) -> float | None:
    """Return the mean of a measure, such as ``recall@5``, over ``records``; None if there are no records."""
    return statistics.fmean(map(parse_measure(measure), records)) if records else None


def _summarise_coverage(records: Sequence[QuestionRecord]) -> dict[str, Any]:
    """Return the mean recall of evidence statements within each word budget, and the highest possible mean.

    The keys are fields of :class:`RetrieverResult`. The result is empty if the data set has no evidence statements.
    """
    coverages = [record.coverage for record in records if record.coverage]
    if not coverages:
        return {}
    return {
        "evidence": {
            budget: statistics.fmean(coverage.get_recall(budget) for coverage in coverages)
            for budget in coverages[0].at_words
        },
        "evidence_ceiling": statistics.fmean(coverage.ceiling for coverage in coverages),
    }


def track_questions(questions: Sequence[str], progress: Progress, dataset_name: str) -> Iterator[str]:
    """Yield the questions, and report ``progress`` before each question under a label with the name of the data set."""
    for number, question in enumerate(questions):
        progress(number, len(questions), f"questions, {dataset_name}")
        yield question


WITHOUT_GOLD = "without_gold.jsonl"

FALSE_REFUSALS = 0.05
"""Share of the questions with gold documents that may be refused."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """How often a retriever returns nothing to questions whose relevant documents are not in the index.

    It returns nothing if the score of no passage reaches a threshold.

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
        """Share of questions that are refused while their relevant documents are not in the index."""
        return sum(self.flags) / len(self.flags)

    def to_json(self) -> dict[str, object]:
        """Return the measures of refusal as a dictionary, a part of the JSON that ``polyad eval --json`` prints."""
        return {
            "refused": round(self.refused, 4),
            "at_false_refusals": FALSE_REFUSALS,
            "roc_auc": round(self.roc_auc, 4),
            "questions": len(self.flags),
            "criterion": self.criterion,
        }


def read_records_without_gold(folder: Path) -> dict[tuple[str, str], QuestionRecord]:
    """Return the results of searches in an index without the relevant documents, keyed by retriever and question id.

    The result is empty if refusal was not measured.

    Raises:
        ConfigurationError: a line is damaged; the message names file and line.
    """
    return index_records(read_records(folder / WITHOUT_GOLD, QuestionRecord, missing_ok=True))


def require_gold_documents(dataset: Dataset) -> None:
    """Raise ConfigurationError unless a data set has both gold documents (relevant to a question) and other documents.

    Refusal is measured in an index without the gold documents.
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
    records_with_gold: Sequence[QuestionRecord], records_without_gold: Mapping[tuple[str, str], QuestionRecord]
) -> Refusal | None:
    """Return how often one retriever returns nothing to questions whose relevant documents are not in the index.

    A question is refused if its best passage scores below a threshold. At most 5 per cent of the questions with gold
    documents are below the threshold. This is the measure of ``benchmarks/manuals.py``. Return None if refusal was not
    measured.

    Args:
        records_with_gold: Records of the whole index.
        records_without_gold: Records of the index without gold documents, by retriever and question id.
    """
    pairs = [
        (record, records_without_gold[record.key]) for record in records_with_gold if record.key in records_without_gold
    ]
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


def find_refusal_threshold(best_scores: Sequence[float]) -> float:
    """Return the score threshold below which at most 5 per cent of ``best_scores`` (one per question) lie.

    >>> find_refusal_threshold([0.1, *[0.5] * 19]), find_refusal_threshold([0.1, 0.5])
    (0.5, 0.1)
    """
    return sorted(best_scores)[int(FALSE_REFUSALS * len(best_scores))]


def compute_roc_auc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """Return the area under the ROC curve: the probability that a positive exceeds a negative, ties counted half.

    >>> compute_roc_auc([0.5, 0.9], [0.5, 0.1])
    0.875
    """
    ordered = sorted(negatives)
    above = sum(bisect_left(ordered, value) + bisect_right(ordered, value) for value in positives)
    return above / 2 / (len(positives) * len(negatives))
