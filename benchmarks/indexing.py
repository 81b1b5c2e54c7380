"""How much of indexing is not the embedder's time.

    python benchmarks/indexing.py BEIR_DIR [--runs 3] [--json FILE]

Everything beside the encoder (reading, splitting, mentions, segmentation, the store) should add at most 15 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from polyad import Engine
from polyad.evaluation.datasets import load


def main() -> None:
    """Index the corpus several times, and print the median share."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="BEIR_DIR")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    runs = []
    for _ in range(arguments.runs):
        with tempfile.TemporaryDirectory() as directory, Engine.open(directory) as engine:
            report = engine.index([load(arguments.folder).corpus])
            again = engine.index([load(arguments.folder).corpus])
        runs.append(
            {
                "seconds": report.seconds,
                "encode_seconds": report.encode_seconds,
                "overhead": report.seconds / report.encode_seconds - 1,
                "embedded_texts": report.embedded_texts,
                "embedded_again": again.embedded_texts,
                "seconds_again": again.seconds,
            }
        )
        print(", ".join(f"{name} {value:.3g}" for name, value in runs[-1].items()), flush=True)
    overhead = statistics.median(run["overhead"] for run in runs)
    print(f"median overhead beyond the encoder: {100 * overhead:.1f} %")
    if arguments.json:
        arguments.json.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
