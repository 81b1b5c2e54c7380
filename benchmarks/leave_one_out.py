"""Recall of ``hyperretriever`` on each benchmark with scorers trained on the others.

    python benchmarks/leave_one_out.py BEIR_DIR... [--train BEIR_DIR... [--limit N]] --to DIR [--json FILE]

For each benchmark a scorer is trained on all others, or on those of ``--train`` that are of another family (named
differently up to a hyphen), with and without the signals of ``default``, and asked all questions of the one left out.
Intervals hold the mean with 95 per cent confidence (bootstrap over the questions). What
``default`` reaches by weights that never saw a benchmark is measured by ``default_training.py``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measured_rows import write_rows

from polyad.cli import app
from polyad_bench.measures.ranking import recall
from polyad_bench.measures.significance import bootstrap_interval
from polyad_bench.runs.run_folder import load_run

SEED = 0
SCORERS = {"hyperretriever": "hyperretriever", "hyperretriever with signals": "hyperretriever_signals"}
"""The files of scorers, without and with the signals of ``default``, by what they are called here."""


def main() -> None:
    """Train, evaluate and print a row for each scorer and benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="BEIR_DIR")
    parser.add_argument("--train", nargs="+", type=Path, metavar="BEIR_DIR", help="train on these, not on the others")
    parser.add_argument("--limit", type=int, help="train on the first questions of each benchmark")
    parser.add_argument("--to", type=Path, required=True, help="scorers and runs; what is there is used again")
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    for left_out in arguments.folders:
        family = left_out.name.split("-")[0]
        others = [each for each in arguments.train or arguments.folders if each.name.split("-")[0] != family]
        limit = ("--limit", arguments.limit) if arguments.limit else ()
        for name, file in SCORERS.items():
            item = arguments.to / f"{name} without {left_out.name}"
            indexes, weights = arguments.to / "indexes", item / f"{file}.safetensors"
            signals = ("--set", f"hyperretriever.signals={str(file != name).lower()}")
            if not weights.exists():
                stores = [word for each in others for word in ("--store", indexes / each.name)]
                run(*signals, "bench", "train", "hyperretriever", *others, *limit, "--to", item, *stores)
            with environment(POLYAD_HYPERRETRIEVER_WEIGHTS=str(weights)):
                options = ("--store", indexes / left_out.name, "--out", item / "run")
                run(*signals, "eval", left_out, "--retriever", "hyperretriever", *options)
            rows.append({"retriever": name, "dataset": left_out.name, **reached(item / "run")})
            print(rows[-1], flush=True)
    if arguments.json:
        write_rows(arguments.json, rows)


def reached(folder: Path) -> dict[str, object]:
    """Return Recall@5 of a run, its interval and the number of questions."""
    values = [recall(one.documents, one.query.gold, 5) for one in load_run(folder).records["hyperretriever"]]
    return {
        "questions": len(values),
        "recall@5": round(sum(values) / len(values), 4),
        "interval": [round(bound, 4) for bound in bootstrap_interval(values, SEED)],
    }


def run(*arguments: object) -> None:
    """Run a polyad command."""
    app([str(argument) for argument in arguments] + ["--quiet"], standalone_mode=False)


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set environment variables within the ``with`` block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


if __name__ == "__main__":
    main()
