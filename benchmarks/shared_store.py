"""Compare an index in PostgreSQL with the same index in a folder: evidence, latencies, loading and sizes.

The index is migrated first, unless the address has it already.

Example: python benchmarks/shared_store.py kb postgresql://polyad@localhost/search queries.jsonl
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from polyad import Engine
from polyad.engine import NEED_LANGUAGE_MODEL, RETRIEVERS
from polyad.engine.migration import migrate_index
from polyad.model import Evidence, Timings


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="the index in a folder; its snapshot is built again")
    parser.add_argument("address", help="the address of the index in PostgreSQL")
    parser.add_argument("questions", type=Path, help="JSON lines with the key text")
    parser.add_argument("--retrievers", nargs="*", default=sorted(set(RETRIEVERS) - NEED_LANGUAGE_MODEL))
    parser.add_argument("--limit", type=int, default=10_000, help="number of questions")
    options = parser.parse_args()
    lines = options.questions.read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line)["text"] for line in lines][: options.limit]
    migration = migrate_index(options.folder, options.address)
    report = {"migration": asdict(migration), "questions": len(questions)}
    print(json.dumps(report | compare(options.folder, options.address, questions, options.retrievers), indent=2))


def compare(folder: str, address: str, questions: Sequence[str], retrievers: Sequence[str]) -> dict[str, object]:
    """Return opening times, sizes, latencies in ms and the number of questions with equal evidence by retriever."""
    opened = {name: _open_fresh(place) for name, place in (("folder", folder), ("postgresql", address))}
    first, second = (engine for engine, _ in opened.values())
    rows = {}
    for retriever in retrievers:
        latencies: list[list[float]] = [[], []]
        equal = 0
        for question in questions:
            pairs = zip((first, second), latencies, strict=True)
            evidence = [_search(engine, question, retriever, times) for engine, times in pairs]
            equal += evidence[0] == evidence[1]
        quantiles = [np.percentile(times, [50, 95]).round(2).tolist() for times in latencies]
        rows[retriever] = {"equal": equal, "folder_p50_p95": quantiles[0], "postgresql_p50_p95": quantiles[1]}
    statistics = [engine.catalogue.statistics() for engine in (first, second)]
    sizes = {
        "passages": statistics[0].passages,
        "hyperedges": statistics[0].hyperedges,
        "bytes_a_passage": [round(each.disk_bytes / each.passages) for each in statistics],
        "files": [dict(each.files) for each in statistics],
    }
    for engine in (first, second):
        engine.close()
    return {"open_seconds": {name: seconds for name, (_, seconds) in opened.items()}, **sizes, "retrievers": rows}


def _open_fresh(place: str) -> tuple[Engine, float]:
    """Return an engine whose snapshot was built from the store, and the seconds that this took."""
    with Engine.open(place, create=False) as engine:
        if engine.directory:
            shutil.rmtree(engine.directory / "snapshot", ignore_errors=True)
    engine = Engine.open(place, create=False)
    engine.components.embedder.encode(["warm"], "query")
    start = time.perf_counter()
    engine.search("warm", retriever="bm25")
    return engine, round(time.perf_counter() - start, 2)


def _search(engine: Engine, question: str, retriever: str, latencies: list[float]) -> Evidence:
    evidence = engine.search(question, retriever=retriever)
    latencies.append(evidence.timings.retrieve)
    return replace(evidence, timings=Timings())


if __name__ == "__main__":
    main()
