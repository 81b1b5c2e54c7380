"""JSON of measurements and training. Keys contain the depth of a measure, so these shapes have no JSON Schema."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from polyad.evaluation.datasets.beir import Question
from polyad.evaluation.runs.retriever_evaluation import RetrieverResult
from polyad.evaluation.training import linear_scorer
from polyad.evaluation.training.linear_scorer import TrainingReport
from polyad.evaluation.training.triple_scorer import TripleTrainingReport
from polyad.indexing.run import IndexReport
from polyad.model import Evidence, Statistics
from polyad.retrieval.default.scorer import WEIGHTS_FILE
from polyad.schemas.evidence import evidence_json
from polyad.schemas.reports import index_json, usage_json


def eval_index_json(report: IndexReport, statistics: Statistics) -> dict[str, object]:
    """Return times and sizes of indexing as a part of the JSON object that ``polyad eval --json`` prints.

    Call this function right after indexing, because it reads the peak memory of the process.
    """
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


def demo_json(report: IndexReport, results: Sequence[tuple[Question, Evidence]]) -> dict[str, object]:
    """Return the results of the demo as the JSON object that ``polyad demo --json`` prints."""
    return {
        "index": index_json(report),
        "questions": [
            {
                **evidence_json(evidence, explain=False),
                "gold": sorted(query.gold),
                "missing": find_missing_gold(query, evidence),
            }
            for query, evidence in results
        ],
    }


def find_missing_gold(query: Question, evidence: Evidence) -> list[str]:
    """Return the ids of a question's gold documents that the search did not retrieve."""
    return sorted(query.gold - {hit.passage.document_id for hit in evidence.passages})


def _peak_memory_mb() -> float:
    """Return the peak memory of this process in megabytes; 0 on Windows."""
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def training_json(report: TrainingReport) -> dict[str, object]:
    """Return a training report as the JSON object that ``polyad bench train default --json`` prints, by file name."""
    return {WEIGHTS_FILE: linear_scorer.linear_report_to_json(report)}


def triple_training_json(
    report: TripleTrainingReport, results: Mapping[str, Sequence[RetrieverResult]], k: int
) -> dict[str, object]:
    """Return training and held-out measures as the object that ``polyad bench train hyperretriever --json`` prints."""
    held_out = {name: [result.to_json(k) for result in rows] for name, rows in results.items()}
    return {"training": asdict(report), "held_out": held_out}
