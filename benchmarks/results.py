"""Measures all that ``docs/results`` shows, without a language model, and sums it up in ``benchmarks/results``.

    python benchmarks/results.py --benchmarks DIR [--runs DIR] [--only NAME,...] [--data NAME,...]
    python benchmarks/tables.py

``DIR`` holds the BEIR folders 2wiki, hotpotqa and musique. Each experiment is what ``polyad eval``, ``sweep`` or
``ablate`` does, and its runs are kept under ``--runs``, so that what was stopped is taken up. What goes into
``benchmarks/results`` are summaries: means with their intervals, the numbers of the hypergraphs, and what they were
measured with. ``tables.py`` makes the tables and the pictures of them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from polyad.cli import app
from polyad.evaluation.report import grouped, run_folders
from polyad.evaluation.run_folder import Run, load
from polyad.evaluation.summary import summed_up, to_json

OWN = Path(__file__).parent / "results"

RETRIEVERS = "standard,bm25,hypersu,hypergraphrag,hyperretriever,default"

CONSTRUCTIONS = "mdl,mdl-no-entities,mdl-no-semantics,sentence,window,semantic-chunking"

Command = Callable[[Path], Sequence[str]]
"""The arguments of polyad for one benchmark."""


def _ablation(retriever: str) -> Command:
    return lambda folder: ("ablate", str(folder), "--retriever", retriever)


def _sweep(*swept: str, retrievers: str = "hypersu") -> Command:
    return lambda folder: ("sweep", str(folder), *swept, "--retriever", retrievers)


EXPERIMENTS: Mapping[str, Command] = {
    "retrievers": lambda folder: ("eval", str(folder), "--retriever", RETRIEVERS),
    "constructions": _sweep(f"segmentation.method={CONSTRUCTIONS}", retrievers="hypersu,hypergraphrag,default"),
    "ablation-hypersu": _ablation("hypersu"),
    "ablation-hypergraphrag": _ablation("hypergraphrag"),
    "ablation-hyperretriever": _ablation("hyperretriever"),
    "sweep-depth-decay": _sweep("hypersu.forward_depth=1,2,3,4,5", "hypersu.decay=0.1,0.3,0.5,0.7,0.9"),
    "sweep-kappa-dimension": _sweep(
        "segmentation.kappa=6.0,12.5,25.0,50.0", "segmentation.effective_dimension=8,32,128"
    ),
}
"""By name, in the order of what they cost."""


def main() -> None:
    """Run the experiments that are named, and write the summary of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--benchmarks", type=Path, required=True, metavar="DIR", help="holds the BEIR folders")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), metavar="DIR", help="where runs and indexes are kept"
    )
    parser.add_argument("--only", default=",".join(EXPERIMENTS), help="some of the experiments")
    parser.add_argument("--data", default="hotpotqa,musique,2wiki", help="some of the benchmarks")
    parser.add_argument("--summed-up", action="store_true", help="only sum up the runs that are there")
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        runs = arguments.runs / name
        if not arguments.summed_up:
            for data in arguments.data.split(","):
                measure(name, arguments.benchmarks / data, arguments.runs)
        write(OWN / f"{name}.json", summary(name, [load(folder) for folder in run_folders([runs])]))


def measure(name: str, folder: Path, runs: Path) -> None:
    """Run one experiment on one benchmark; what is there is not run again."""
    command = EXPERIMENTS[name](folder)
    out, stores = runs / name, runs / "indexes"
    if command[0] == "eval":
        out, stores = out / folder.name, stores / folder.name
    app([*command, "--out", str(out), "--store", str(stores), "--quiet"], standalone_mode=False)


def summary(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    """The groups of an experiment, one a benchmark, and what they were measured with."""
    seed = runs[0].seed
    groups = [summed_up(group.title, group.name, group.systems, seed) for group in grouped(runs)]
    return {
        "command": f"python benchmarks/results.py --benchmarks DIR --only {name}",
        "seed": seed,
        "measured": _together([_measured(run) for run in runs]),
        "data": {run.dataset: run.manifest["dataset"]["digest"] for run in runs},
        "groups": [to_json(group) for group in sorted(groups, key=lambda group: group.name)],
    }


def _measured(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    return {name: manifest[name] for name in ("commit", "versions", "machine")} | {
        "embedder": run.index.get("embedder", ""),
        "mentions": manifest["mentions"],
    }


def _together(settings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each once."""
    found: list[dict[str, Any]] = []
    for one in settings:
        if one not in found:
            found.append(one)
    return found


def write(path: Path, value: Mapping[str, Any]) -> None:
    """Write a summary, one system a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_lined(value) + "\n", encoding="utf-8")


def _lined(value: Any, depth: int = 0) -> str:
    """JSON of which the upper levels have a line for each item."""
    if depth == 5 or not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_lined(item, depth + 1)}" for key, item in value.items()]
        return "{" + pad + f",{pad}".join(parts) + "\n" + " " * depth + "}"
    return "[" + pad + f",{pad}".join(_lined(item, depth + 1) for item in value) + "\n" + " " * depth + "]"


if __name__ == "__main__":
    main()
