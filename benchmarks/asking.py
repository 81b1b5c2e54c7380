"""Overhead of ``polyad eval --out`` beside the searches of each retriever, in processor time.

    python benchmarks/asking.py BEIR_DIR --store DIR [--retrievers NAME,...] [--limit N] [--json FILE]

``DIR`` keeps the index for the next run. Beside a search stand the words of what came back, the record of the question
and the texts, each written before the next question is asked.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from measured_rows import write_rows

from polyad import Engine
from polyad.model import Evidence
from polyad_bench.datasets.beir import Dataset, load_beir
from polyad_bench.runs import retriever_evaluation as retriever_evaluation
from polyad_bench.runs.manifest import build_manifest
from polyad_bench.runs.run_folder import RunWriter

K = 5


def main() -> None:
    """Ask each retriever and print a row for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="BEIR_DIR")
    parser.add_argument("--store", type=Path, required=True, metavar="DIR")
    parser.add_argument("--retrievers", default="bm25,dense,default,hypersu,hypergraphrag,hyperretriever")
    parser.add_argument("--limit", type=int, help="only the first so many questions")
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    dataset = load_beir(arguments.folder, arguments.limit)
    rows = []
    with Engine.open(arguments.store) as engine:
        engine.index([dataset.corpus])
        for retriever in arguments.retrievers.split(","):
            rows.append({"dataset": dataset.name, "retriever": retriever, **measured(engine, retriever, dataset)})
            print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    if arguments.json:
        write_rows(arguments.json, rows)


def measured(engine: Engine, retriever: str, dataset: Dataset) -> dict[str, float]:
    """Return the milliseconds of the median search, the overhead per question, and their ratio."""
    searching: list[float] = []

    def search(question: str, k: int) -> Evidence:
        started = time.process_time()
        evidence = engine.search(question, k, retriever=retriever, merge=False)
        searching.append(time.process_time() - started)
        return evidence

    def spent() -> tuple[int, int]:
        return engine.components.usage.tokens, engine.components.usage_uncached.tokens

    engine.prepare(retriever)
    engine.search(dataset.queries[0].text, K, retriever=retriever)
    manifest = build_manifest(dataset, [retriever], K, {"stages": {}})
    with tempfile.TemporaryDirectory() as place, RunWriter(Path(place) / "run", manifest) as writer:
        started = time.process_time()
        for record, evidence in retriever_evaluation.ask_questions(
            retriever, search, dataset.queries, K, count_tokens=spent
        ):
            writer.add_record(record, evidence)
        whole = time.process_time() - started
    value = whole - sum(searching)
    return {
        "search ms": round(1000 * statistics.median(searching), 3),
        "own ms": round(1000 * value / len(searching), 3),
        "share": round(value / sum(searching), 4),
    }


if __name__ == "__main__":
    main()
