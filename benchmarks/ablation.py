"""Ablation of the signals of ``default``, measured on benchmarks that the scorer was not trained on.

    python benchmarks/ablation.py BEIR_DIR BEIR_DIR... [--store DIR] [--json FILE]

Each benchmark is scored by weights trained on the others.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from polyad import Engine
from polyad.retrieval.default.signals import SIGNAL_NAMES
from polyad_bench.datasets.beir import load_beir
from polyad_bench.training.linear_scorer import TrainingExample, build_examples, extract_signals, train_with_report


def main() -> None:
    """Index the benchmarks, extract signals, train without each signal and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="BEIR_DIR")
    parser.add_argument("--store", type=Path, help="keep the indexes here for the next run")
    parser.add_argument("--json", type=Path, help="save the table here")
    arguments = parser.parse_args()
    examples = {}
    with tempfile.TemporaryDirectory() as temporary:
        for dataset in [load_beir(folder) for folder in arguments.folders]:
            with Engine.open((arguments.store or Path(temporary)) / dataset.name) as engine:
                engine.index([dataset.corpus])
                candidates = extract_signals(engine, [query.text for query in dataset.queries])
                examples[dataset.name] = build_examples(candidates, dataset.queries)
    names = SIGNAL_NAMES
    rows = {"all signals": unseen(examples, names, names)}
    print_row("all signals", rows["all signals"])
    for left_out in names:
        rows[left_out] = unseen(examples, names, [name for name in names if name != left_out])
        print_row(f"without {left_out}", rows[left_out])
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def unseen(
    examples: Mapping[str, Sequence[TrainingExample]], names: Sequence[str], remaining: Sequence[str]
) -> dict[str, float]:
    """Return the recall on each benchmark, in per cent, of weights trained on the others with the signals ``kept``."""
    columns = [names.index(name) for name in remaining]
    selected = {
        dataset: [replace(example, signals=example.signals[:, columns]) for example in items]
        for dataset, items in examples.items()
    }
    return {dataset: round(100 * value, 1) for dataset, value in train_with_report(selected, remaining).unseen.items()}


def print_row(name: str, values: Mapping[str, float]) -> None:
    """Print one row of the table."""
    print(f"{name:60}", "  ".join(f"{dataset} {value:5.1f}" for dataset, value in values.items()), flush=True)


if __name__ == "__main__":
    main()
