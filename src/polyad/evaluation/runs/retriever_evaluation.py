"""Evaluation of retrievers: ask the questions of a data set one at a time and average the measures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.beir import Question
from polyad.evaluation.measures.ranking import all_recall, hits, ndcg, recall, reciprocal_rank
from polyad.evaluation.measures.statement_recall import StatementCoverage
from polyad.evaluation.runs.records import QuestionRecord
from polyad.model import Evidence, Timings
from polyad.protocols.components import Progress, silent

PASSAGES_PER_DOCUMENT = 4
"""Passages requested for each document of the ranking, because one document may be returned in several passages."""

WORD_BUDGETS = (500, 1000, 2000)
"""Budgets, in words of returned text, at which recall is measured beside the first k documents."""

Search = Callable[[str, int], Evidence]
"""Takes a question and k, and returns the evidence."""

MeasureCoverage = Callable[[Question, Evidence], StatementCoverage | None]
"""Takes a question and its evidence, and returns the coverage of the evidence statements of the question."""

OnRecord = Callable[[QuestionRecord, Evidence], None]
"""Takes the record and the evidence of a question before the next question is asked."""


def ignore_record(record: QuestionRecord, evidence: Evidence) -> None:
    """Discard the record of a question: the default ``on_record`` callback."""


@dataclass(frozen=True, slots=True)
class RetrieverResult:
    """Measures in [0, 1] and times in milliseconds of one retriever on one data set.

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
        """Return the JSON object that ``polyad eval --json`` prints for this retriever."""
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
    """Ask every question once and return the measures; see :func:`ask_questions` and :func:`summarise_records`."""
    return summarise_records(retriever, list(ask_questions(retriever, search, queries, k, progress)), k)


def ask_questions(
    retriever: str,
    search: Search,
    queries: Sequence[Question],
    k: int,
    progress: Progress = silent,
    count_tokens: Callable[[], tuple[int, int]] = lambda: (0, 0),
    prepare: Callable[[], None] = lambda: None,
    on_record: OnRecord = ignore_record,
    asked_before: int = 0,
    measure_coverage: MeasureCoverage | None = None,
) -> Iterator[QuestionRecord]:
    """Ask every question once and yield the records. There is no warm-up: the first question counts too.

    Args:
        retriever: Name of the retriever, for the records.
        search: Searches with the retriever. Evidence without timings, as a bare retriever returns it, gets the wall
            time of the call.
        queries: At least one question.
        k: Depth of the ranking, in documents.
        progress: Called after each question.
        count_tokens: Returns the language-model tokens spent so far, and the tokens without cached replies.
        prepare: Loads the models that the retriever needs; not part of the time of any question.
        on_record: Called with each record before the next question is asked.
        asked_before: Number of questions that an earlier run has asked, for ``progress``.
        measure_coverage: Measures the coverage of evidence statements; not part of the time of any question.

    Raises:
        ConfigurationError: there is no question.
    """
    if not queries:
        raise ConfigurationError(f"no questions to measure {retriever!r} with; expected at least one")
    spent = count_tokens()
    prepare()
    for number, query in enumerate(queries, asked_before + 1):
        start = time.perf_counter()
        evidence = search(query.text, k * PASSAGES_PER_DOCUMENT)
        elapsed = Timings(retrieve=1000 * (time.perf_counter() - start))
        before, spent = spent, count_tokens()
        record = QuestionRecord.from_evidence(
            retriever,
            query,
            evidence,
            evidence.timings if evidence.timings.total else elapsed,
            (spent[0] - before[0], spent[1] - before[1]),
            measure_coverage(query, evidence) if measure_coverage else None,
        )
        on_record(record, evidence)
        progress(number, asked_before + len(queries), f"questions, {retriever}")
        yield record


def summarise_records(retriever: str, records: Sequence[QuestionRecord], k: int) -> RetrieverResult:
    """Return the measures and times of one retriever.

    The measures rank documents by their best passage, because a document may be split into several passages.

    Args:
        retriever: Name of the retriever.
        records: Records of the questions; at least one.
        k: Depth of the ranking, in documents.
    """
    judged = [record for record in records if record.query.gold]
    rankings = [(record.documents[:k], record.query.gold) for record in judged]
    latencies = [record.milliseconds for record in records]
    return RetrieverResult(
        retriever,
        recall=_mean(recall(ranked, gold, k) for ranked, gold in rankings),
        all_recall=_mean(all_recall(ranked, gold, k) for ranked, gold in rankings),
        mrr=_mean(reciprocal_rank(ranked, gold) for ranked, gold in rankings),
        latency_p50=statistics.median(latencies),
        latency_p95=compute_percentile(latencies, 95),
        encode_p50=statistics.median(record.encode_ms for record in records),
        llm_tokens_per_query=statistics.fmean(record.llm_tokens for record in records),
        llm_tokens_uncached_per_query=statistics.fmean(record.llm_tokens_uncached for record in records),
        hits=_mean(hits(ranked, gold, k) for ranked, gold in rankings),
        ndcg=_mean(ndcg(ranked, gold, k) for ranked, gold in rankings),
        recall_at_words={budget: _mean(_recall_within(record, budget) for record in judged) for budget in WORD_BUDGETS},
        **_summarise_coverage(records),
    )


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return statistics.fmean(numbers) if numbers else None


def _recall_within(record: QuestionRecord, max_words: int) -> float:
    documents = record.get_documents_within(max_words)
    return recall(documents, record.query.gold, len(documents))


def _summarise_coverage(records: Sequence[QuestionRecord]) -> dict[str, Any]:
    """Return the mean share of covered evidence statements; empty if the data set states no evidence."""
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


def compute_percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile of the values, interpolated linearly between neighbours."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def rank_documents(evidence: Evidence) -> list[str]:
    """Return the ids of the documents in the evidence, ranked by their best passage."""
    return list(dict.fromkeys(hit.passage.document_id for hit in evidence.passages))


def track_questions(questions: Sequence[str], progress: Progress, name: str) -> Iterator[str]:
    """Yield the questions and report progress for each."""
    for number, question in enumerate(questions):
        progress(number, len(questions), f"questions, {name}")
        yield question
