"""Running retrievers over a dataset's questions, one question at a time, and summing up."""

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
from polyad.evaluation.runs.records import QuestionRecord, build_record
from polyad.model import Evidence, Timings
from polyad.protocols.components import Progress, silent

PASSAGES_PER_DOCUMENT = 4
"""Passages asked for, for each document of the ranking: a document that is found may be found by several of them."""

WORD_BUDGETS = (500, 1000, 2000)
"""Words of returned text at which recall is measured beside the first k documents."""

Search = Callable[[str, int], Evidence]
"""A question and k to the evidence."""


Cover = Callable[[Question, Evidence], StatementCoverage | None]
"""A question and what was found to how much of its evidence that covers; None where the data set states none."""

Keep = Callable[[QuestionRecord, Evidence], None]
"""Told of what was found for each question before the next one is asked."""


def ignore_record(record: QuestionRecord, evidence: Evidence) -> None:
    """The :data:`Keep` of whoever has no use for it."""


def covers_nothing(_query: Question, _evidence: Evidence) -> StatementCoverage | None:
    """The :data:`Cover` of data sets that state no evidence."""
    return None


@dataclass(frozen=True, slots=True)
class RetrieverResult:
    """What one retriever reached on one dataset; measures in [0, 1], times in milliseconds.

    ``mrr`` is over the first k. ``latency_p50`` and ``latency_p95`` include the encoding of the question. ``at_words``
    is the recall of what fits into a budget of words, by the budget. Measures of rankings are None where nothing is
    known of gold documents. ``evidence`` is the part of the stated evidence that is covered within each budget, and
    ``evidence_ceiling`` the part that any passage covers; empty and None where the data set states none.
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
    at_words: Mapping[int, float | None]
    evidence: Mapping[int, float] = field(default_factory=dict)
    evidence_ceiling: float | None = None

    def to_json(self, k: int) -> dict[str, object]:
        """The shape that ``polyad eval --json`` prints."""
        return {
            "retriever": self.retriever,
            f"recall@{k}": _rounded(self.recall),
            f"all_recall@{k}": _rounded(self.all_recall),
            "mrr": _rounded(self.mrr),
            "latency_ms": {
                "p50": round(self.latency_p50, 2),
                "p95": round(self.latency_p95, 2),
                "encode_p50": round(self.encode_p50, 2),
            },
            "llm_tokens_per_query": round(self.llm_tokens_per_query, 1),
            "llm_tokens_uncached_per_query": round(self.llm_tokens_uncached_per_query, 1),
            f"hits@{k}": _rounded(self.hits),
            f"ndcg@{k}": _rounded(self.ndcg),
            "recall_at_words": {str(budget): _rounded(value) for budget, value in self.at_words.items()},
            **({"evidence_recall": self._evidence_json()} if self.evidence else {}),
        }

    def _evidence_json(self) -> dict[str, object]:
        at_words = {str(budget): _rounded(value) for budget, value in self.evidence.items()}
        return {"at_words": at_words, "ceiling": _rounded(self.evidence_ceiling)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def evaluate_retriever(
    retriever: str,
    search: Search,
    queries: Sequence[Question],
    k: int,
    progress: Progress = silent,
    llm_tokens: Callable[[], tuple[int, int]] = lambda: (0, 0),
    prepare: Callable[[], None] = lambda: None,
) -> RetrieverResult:
    """Ask every question once, and sum up; see :func:`ask_questions` and :func:`summarise_records`."""
    return summarise_records(
        retriever, list(ask_questions(retriever, search, queries, k, progress, llm_tokens, prepare)), k
    )


def ask_questions(
    retriever: str,
    search: Search,
    queries: Sequence[Question],
    k: int,
    progress: Progress = silent,
    llm_tokens: Callable[[], tuple[int, int]] = lambda: (0, 0),
    prepare: Callable[[], None] = lambda: None,
    keep: Keep = ignore_record,
    asked_before: int = 0,
    cover: Cover = covers_nothing,
) -> Iterator[QuestionRecord]:
    """Ask every question once; all of them count, the first too.

    Args:
        retriever: Its name, for the records.
        search: Asks it. Evidence without timings, such as a bare retriever gives, counts with the wall time it took.
        queries: At least one.
        k: Depth of the ranking, in documents.
        progress: Told after each question.
        llm_tokens: Tokens spent on language models so far, and what they would be had no reply been recalled.
        prepare: Loads and makes what the retriever needs once; not part of any question's time.
        keep: Called with each record before the next question is asked.
        asked_before: How many questions an earlier run has asked, for ``progress``.
        cover: Tells how much of the stated evidence was found; no part of any question's time either.

    Raises:
        ConfigurationError: there is no question.
    """
    if not queries:
        raise ConfigurationError(f"no questions to measure {retriever!r} with; expected at least one")
    spent = llm_tokens()
    prepare()
    for done, query in enumerate(queries, asked_before + 1):
        started = time.perf_counter()
        evidence = search(query.text, k * PASSAGES_PER_DOCUMENT)
        elapsed = Timings(retrieve=1000 * (time.perf_counter() - started))
        tokens = llm_tokens()
        timings = evidence.timings if evidence.timings.total else elapsed
        spending = tokens[0] - spent[0], tokens[1] - spent[1]
        record = build_record(retriever, query, evidence, timings, spending, cover(query, evidence))
        spent = tokens
        keep(record, evidence)
        progress(done, asked_before + len(queries), f"questions, {retriever}")
        yield record


def summarise_records(retriever: str, records: Sequence[QuestionRecord], k: int) -> RetrieverResult:
    """The measures and times of one retriever.

    What is judged are documents, ranked by their best passage, since a document may be cut into several.

    Args:
        retriever: Its name.
        records: Of the questions asked; at least one.
        k: Depth of the ranking, in documents.
    """
    judged = [(record.documents[:k], record.query.gold) for record in records if record.query.gold]
    totals = [record.milliseconds for record in records]
    return RetrieverResult(
        retriever,
        recall=_mean(recall(ranked, gold, k) for ranked, gold in judged),
        all_recall=_mean(all_recall(ranked, gold, k) for ranked, gold in judged),
        mrr=_mean(reciprocal_rank(ranked, gold) for ranked, gold in judged),
        latency_p50=statistics.median(totals),
        latency_p95=compute_percentile(totals, 95),
        encode_p50=statistics.median(record.encode_ms for record in records),
        llm_tokens_per_query=statistics.fmean(record.llm_tokens for record in records),
        llm_tokens_uncached_per_query=statistics.fmean(record.llm_tokens_uncached for record in records),
        hits=_mean(hits(ranked, gold, k) for ranked, gold in judged),
        ndcg=_mean(ndcg(ranked, gold, k) for ranked, gold in judged),
        at_words={
            budget: _mean(_recall_at_words(record, budget) for record in records if record.query.gold)
            for budget in WORD_BUDGETS
        },
        **_evidence(records),
    )


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return statistics.fmean(listed) if listed else None


def _evidence(records: Sequence[QuestionRecord]) -> dict[str, Any]:
    """Recall of stated evidence: of each question the part of its statements, and the mean of that."""
    found = [record.covered for record in records if record.covered]
    if not found:
        return {}
    at_words = {
        budget: statistics.fmean(one.at_words[budget] / one.statements for one in found) for budget in found[0].at_words
    }
    return {
        "evidence": at_words,
        "evidence_ceiling": statistics.fmean(one.coverable / one.statements for one in found),
    }


def _recall_at_words(record: QuestionRecord, budget: int) -> float:
    read = record.within_words(budget)
    return recall(read, record.query.gold, len(read))


def track_questions(questions: Sequence[str], progress: Progress, name: str) -> Iterator[str]:
    """The questions, telling ``progress`` of each when the next is asked for."""
    for done, question in enumerate(questions):
        progress(done, len(questions), f"questions, {name}")
        yield question


def rank_documents(evidence: Evidence) -> list[str]:
    """The documents of the evidence's passages, each once, in the order of its best passage."""
    return list(dict.fromkeys(hit.passage.document_id for hit in evidence.passages))


def compute_percentile(values: Sequence[float], share: int) -> float:
    """The ``share`` per cent point of ``values``, interpolated between neighbours."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def format_percent(value: float | None) -> str:
    """With one digit; a dash where there is nothing to tell."""
    return "-" if value is None else f"{100 * value:.1f}"


def format_result_row(result: RetrieverResult) -> Mapping[str, str]:
    """One line of the report for people."""
    spent, whole = result.llm_tokens_per_query, result.llm_tokens_uncached_per_query
    uncached = f" ({whole:.0f} uncached)" if whole > spent else ""
    return {
        "retriever": result.retriever,
        "recall": format_percent(result.recall),
        "all recall": format_percent(result.all_recall),
        "MRR": format_percent(result.mrr),
        "p50 ms": f"{result.latency_p50:.1f}",
        "p95 ms": f"{result.latency_p95:.1f}",
        "encoder ms": f"{result.encode_p50:.1f}",
        "LLM tokens": f"{result.llm_tokens_per_query:.0f}{uncached}",
    }


def format_evidence_row(result: RetrieverResult) -> Mapping[str, str]:
    """One line of the report for people on the evidence that a data set states."""
    return {
        "retriever": result.retriever,
        **{f"{budget:,} words": format_percent(value) for budget, value in result.evidence.items()},
        "in the index": format_percent(result.evidence_ceiling),
    }
