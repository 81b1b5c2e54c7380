"""JSON of measurements and training. Keys contain the depth of a measure, so these shapes have no JSON Schema."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from polyad.indexing.run import IndexReport
from polyad.model import Statistics
from polyad.retrieval.default.scorer import WEIGHTS_FILE
from polyad_bench.runs.retriever_evaluation import RetrieverResult
from polyad_bench.training import linear_scorer
from polyad_bench.training.linear_scorer import TrainingReport
from polyad_bench.training.triple_scorer import TripleTrainingReport


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
        "llm": asdict(report.usage),
        "failed": len(report.failures) + report.counts.unprocessed,
    }


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
