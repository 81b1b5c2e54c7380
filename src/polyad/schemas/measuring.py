"""Measurements and training, as JSON. Keys of measures name their depth, so these shapes are in no schema."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from polyad.evaluation.datasets.beir import Dataset, Question
from polyad.evaluation.runs.retriever_evaluation import RetrieverResult
from polyad.evaluation.training import linear_scorer, triple_scorer
from polyad.evaluation.training.linear_scorer import TrainingReport
from polyad.evaluation.training.triple_scorer import TripleTrainingReport
from polyad.indexing.run import IndexReport
from polyad.model import Evidence, Statistics
from polyad.schemas.evidence import evidence_json, usage_json
from polyad.schemas.indexing import index_json


def eval_index_json(report: IndexReport, statistics: Statistics) -> dict[str, object]:
    """The part of ``polyad eval --json`` on indexing; taken right after it, for the peak of memory to be its own."""
    return {
        "seconds": round(report.seconds, 3),
        "encode_seconds": round(report.encode_seconds, 3),
        "written": report.counts.passages,
        "tokens": statistics.tokens,
        "passages": statistics.passages,
        "hyperedges": statistics.hyperedges,
        "entities": statistics.entities,
        "peak_rss_mb": round(_peak_memory_mb(), 1),
        "llm": usage_json(report.usage),
        "failed": len(report.failures) + report.counts.unprocessed,
    }


def eval_json(
    dataset: Dataset, k: int, index: dict[str, object], results: Sequence[RetrieverResult]
) -> dict[str, object]:
    """The shape that ``polyad eval --json`` prints."""
    return {
        "dataset": dataset.name,
        "k": k,
        "queries": len(dataset.queries),
        "index": index,
        "results": [result.to_json(k) for result in results],
    }


def demo_json(report: IndexReport, found: Sequence[tuple[Question, Evidence]]) -> dict[str, object]:
    """The shape that ``polyad demo --json`` prints."""
    return {
        "index": index_json(report),
        "questions": [
            {**evidence_json(evidence, explain=False), "gold": sorted(query.gold), "missing": missing(query, evidence)}
            for query, evidence in found
        ],
    }


def missing(query: Question, evidence: Evidence) -> list[str]:
    """The gold documents of a question that are not in the evidence."""
    return sorted(query.gold - {hit.passage.document_id for hit in evidence.passages})


def _peak_memory_mb() -> float:
    """The most memory this process has held; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def training_json(reports: Mapping[str, TrainingReport]) -> dict[str, object]:
    """What ``polyad bench train --json`` prints: recall at 5 of each file of weights, on each benchmark."""
    return {file: linear_scorer.linear_report_to_json(report) for file, report in reports.items()}


def triple_training_json(
    report: TripleTrainingReport, results: Mapping[str, Sequence[RetrieverResult]], k: int
) -> dict[str, object]:
    """What ``polyad bench train hyperretriever --json`` prints."""
    held_out = {name: [result.to_json(k) for result in rows] for name, rows in results.items()}
    return {"training": triple_scorer.triple_report_to_json(report), "held_out": held_out}
