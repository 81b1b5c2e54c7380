"""Runs the experiments of ``docs/papers/results`` without a language model; summaries go to ``benchmarks/results``.

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
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from extraction import slow_server
from leave_one_out import environment

from polyad.cli import app
from polyad_bench.reports.report import find_run_folders, group_runs
from polyad_bench.reports.summary import summarise_systems
from polyad_bench.runs.run_folder import Run, load_run

RESULTS = Path(__file__).parent / "results"

RETRIEVERS = "dense,bm25,hypersu,hypergraphrag,hyperretriever,default"

BASELINES = "dense,hipporag2,linearrag,lightrag,hyper-rag,pathrag,graphrag-local,hypersu,hypergraphrag,default"
"""The retrievers of the papers' tables that need no language model, beside those of polyad."""

CONSTRUCTIONS = "mdl,mdl-no-entities,mdl-no-semantics,sentence,window,semantic-chunking"

BENCHMARKS = ("hotpotqa", "musique", "2wiki")
"""Folders."""

BY_PRESET = ("--preset", "hyperretriever", "--method", "semantic-units")
"""How HyperRetriever is trained and asked as in its paper, but for facts, which take a language model."""

TRAINED_BY_PRESET: Mapping[str, Sequence[str] | None] = {
    "the weights that come with polyad": None,
    "trained by preset": (),
    "trained by preset, on evidence": ("--set", "hyperretriever_training.positives=evidence"),
}
"""What is set in training beside the preset, by the name of the step; None for no training."""

TEXT_ALONE = (
    "segmentation.method=sentence",
    "segmentation.join_subject=false",
    "embedding.hyperedge_titles=false",
)
"""Settings by which a hyperedge has the names in its sentence alone, as in the public code of LinearRAG."""

OF_A_MODEL = "openie.jsonl"
"""What a language model found in the passages of a benchmark, beside its corpus: names and triples."""


class Step(NamedTuple):
    """A run of ``polyad eval``, or the runs of a sweep or an ablation.

    Attributes:
        folder: Where it goes, within the experiment; of a sweep the one of its benchmarks.
        arguments: Of polyad, without the benchmark.
        needs: A file beside the corpus, without which the step is left out.
        serves: Whether a server has to say, over HTTP, what is in this file.
        settings: Values of ``--set``.
        ungrouped: Whether the server returns each triple as a fact, instead of the triples of a subject.
        indexes_alone: Whether the server is there for indexing alone, so that retrievers search without a model.
        is_fresh: Whether it makes an index of its own each time, so that what indexing takes is known.
        trains: Where `hyperretriever` is trained first, on the other benchmarks, with the same preset and method, the
            options of polyad for training that differs from the preset's; else None.
    """

    folder: str
    arguments: Sequence[str]
    needs: str = ""
    serves: bool = False
    is_fresh: bool = False
    trains: Sequence[str] | None = None
    settings: Sequence[str] = ()
    ungrouped: bool = False
    indexes_alone: bool = False


def _eval(
    folder: str,
    *options: str,
    needs: str = "",
    serves: bool = False,
    is_fresh: bool = False,
    trains: Sequence[str] | None = None,
    settings: Sequence[str] = (),
    ungrouped: bool = False,
    indexes_alone: bool = False,
) -> Step:
    words = ("bench", "run", *options)
    return Step(folder, words, needs, serves, is_fresh, trains, settings, ungrouped, indexes_alone)


def _ablation(retriever: str) -> Sequence[Step]:
    return [Step("", ("bench", "ablate", "--retriever", retriever))]


def _sweep(*swept: str, retrievers: str = "hypersu") -> Sequence[Step]:
    return [Step("", ("bench", "sweep", *swept, "--retriever", retrievers))]


EXPERIMENTS: Mapping[str, Sequence[Step]] = {
    "retrievers": [_eval("", "--retriever", RETRIEVERS)],
    "retrievers-test": [_eval("", "--retriever", RETRIEVERS, "--split", "unseen")],
    "presets": [
        _eval("hypersu", "--preset", "hypersu", "--retriever", "hypersu"),
        *(
            _eval(name, "--preset", name, "--method", "semantic-units", "--retriever", name)
            for name in ("hypergraphrag", "hyperretriever")
        ),
    ],
    "hyperretriever-by-preset": [
        _eval(name, *BY_PRESET, "--retriever", "hyperretriever", trains=trains)
        for name, trains in TRAINED_BY_PRESET.items()
    ],
    "found-by-a-model": [
        _eval("names by rules", "--retriever", RETRIEVERS, needs=OF_A_MODEL),
        _eval(
            "names of a model",
            "--retriever",
            RETRIEVERS,
            "--mention-extractor",
            f"given:{{}}/{OF_A_MODEL}",
            needs=OF_A_MODEL,
        ),
        _eval(
            *("facts of a model", "--retriever", RETRIEVERS, "--method", "facts", "--model", "gpt-3.5-turbo"),
            needs=OF_A_MODEL,
            serves=True,
        ),
    ],
    "baselines": [
        _eval("sentences", "--retriever", BASELINES, settings=TEXT_ALONE[:1]),
        _eval("sentences, text alone", "--retriever", "dense,hipporag2,linearrag", settings=TEXT_ALONE),
        _eval(
            *("sentences, names of a model", "--retriever", "dense,hipporag2,linearrag"),
            *("--mention-extractor", f"given:{{}}/{OF_A_MODEL}"),
            needs=OF_A_MODEL,
            settings=TEXT_ALONE[:1],
        ),
        *(
            _eval(
                *(
                    name,
                    "--retriever",
                    f"{BASELINES},bm25,hyperretriever",
                    "--method",
                    "facts",
                    "--model",
                    "gpt-3.5-turbo",
                ),
                needs=OF_A_MODEL,
                serves=True,
                ungrouped=ungrouped,
            )
            for name, ungrouped in (("triples of a model", True), ("facts of a model", False))
        ),
    ],
    "constructions": _sweep(f"segmentation.method={CONSTRUCTIONS}", retrievers="hypersu,hypergraphrag,default"),
    "indexing": [
        Step(
            "",
            ("bench", "sweep", f"segmentation.method={CONSTRUCTIONS}", "--retriever", "bm25", "--limit", "1"),
            is_fresh=True,
        ),
        _eval(
            *("facts of a model", "--retriever", "bm25", "--limit", "1", "--method", "facts"),
            *("--model", "gpt-3.5-turbo"),
            needs=OF_A_MODEL,
            serves=True,
            is_fresh=True,
        ),
    ],
    "ablation-hypersu": _ablation("hypersu"),
    "ablation-hypergraphrag": _ablation("hypergraphrag"),
    "ablation-hyperretriever": _ablation("hyperretriever"),
    "sweep-depth-decay": _sweep("hypersu.forward_depth=1,2,3,4,5", "hypersu.decay=0.1,0.3,0.5,0.7,0.9"),
    "sweep-kappa-dimension": _sweep(
        "segmentation.kappa=6.0,12.5,25.0,50.0", "segmentation.effective_dimension=8,32,128"
    ),
}
"""By name."""


def main() -> None:
    """Run the named experiments and write the summary of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--benchmarks", type=Path, required=True, metavar="DIR", help="holds the BEIR folders")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), metavar="DIR", help="where runs and indexes are kept"
    )
    parser.add_argument("--only", default=",".join(EXPERIMENTS), help="some of the experiments")
    parser.add_argument("--data", default=",".join(BENCHMARKS), help="some of the benchmarks")
    parser.add_argument("--summed-up", action="store_true", help="only sum up the runs that are there")
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        runs = arguments.runs / name
        if not arguments.summed_up:
            for data in arguments.data.split(","):
                measure(name, arguments.benchmarks / data, arguments.runs)
        file = RESULTS / f"{name}.json"
        before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        write(file, merge_summaries(before, summary(name, [load_run(folder) for folder in find_run_folders([runs])])))


def measure(name: str, folder: Path, runs: Path) -> None:
    """Run the missing steps of one experiment on one benchmark."""
    for step in EXPERIMENTS[name]:
        if step.needs and not (folder / step.needs).exists():
            continue
        group, command, *options = (argument.replace("{}", str(folder)) for argument in step.arguments)
        out, stores = runs / name, runs / "indexes"
        if command == "run":
            out, stores = out / folder.name / step.folder, stores / _store(folder.name, step)
        if (out / "results.json").exists():
            continue
        values = {}
        if step.trains is not None:
            values["POLYAD_HYPERRETRIEVER_WEIGHTS"] = str(train_on_others(step, step.trains, folder, runs))
        remaining = [] if step.is_fresh else ["--store", str(stores)]
        settings = [word for setting in step.settings for word in ("--set", setting)]
        words = [*settings, group, command, str(folder), *options]
        if step.indexes_alone:
            indexing = ["--model", "gpt-3.5-turbo", "--retriever", "bm25", "--limit", "1", *remaining, "-q"]
            with _serve(folder, step) as address, environment(OPENAI_BASE_URL=address, OPENAI_API_KEY="none"):
                app([*words, *indexing], standalone_mode=False)
        serves = step.serves and not step.indexes_alone
        with (
            _serve(folder, step) if serves else nullcontext("") as address,
            environment(OPENAI_BASE_URL=address, OPENAI_API_KEY="none", **values),
        ):
            app([*words, "--out", str(out), *remaining, "-q"], standalone_mode=False)


def _serve(folder: Path, step: Step) -> AbstractContextManager[str]:
    return slow_server(folder / "corpus.jsonl", folder / step.needs, *(["--ungrouped"] if step.ungrouped else []))


def train_on_others(step: Step, settings: Sequence[str], folder: Path, runs: Path) -> Path:
    """Return the weights of HyperRetriever by its preset, trained on the other benchmarks unless they exist."""
    to = runs / "weights" / step.folder / f"without {folder.name}"
    weights = to / "hyperretriever.safetensors"
    if not weights.exists():
        others = [str(folder.parent / name) for name in BENCHMARKS if name != folder.name]
        stores = [
            word for other in others for word in ("--store", str(runs / "indexes" / "by preset" / Path(other).name))
        ]
        options = [*BY_PRESET, "--to", str(to), *stores, "-q"]
        app([*settings, "bench", "train", "hyperretriever", *others, *options], standalone_mode=False)
    return weights


def _store(benchmark: str, step: Step) -> str:
    """Return the name of an index; steps that differ only in searching share an index."""
    if step.trains is not None:
        return f"by preset/{benchmark}"
    built = {option for option in step.arguments if option.startswith("--")} - {"--split", "--retriever"}
    return f"{benchmark}-{step.folder}" if built or step.settings else benchmark


def summary(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    """Return the summary of an experiment: a group per benchmark, and the setup of the measurement."""
    seed = runs[0].seed
    groups = [summarise_systems(group.title, group.name, group.systems, seed) for group in group_runs(runs)]
    return {
        "command": f"python benchmarks/results.py --benchmarks DIR --only {name}",
        "seed": seed,
        "measured": _collect_setups(runs),
        "data": {run.dataset: run.manifest["dataset"]["digest"] for run in runs},
        "groups": [asdict(group) for group in sorted(groups, key=lambda group: group.name)],
    }


def _measured(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    return {name: manifest[name] for name in ("commit", "versions", "machine")} | {
        "embedder": run.index.get("embedder", ""),
    }


def _collect_setups(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the distinct setups of the runs, each with its benchmarks."""
    results: list[dict[str, Any]] = []
    for run in runs:
        items = _measured(run)
        names = next((one for one in results if items.items() <= one.items()), None)
        if names is None:
            results.append(names := items | {"data": []})
        names["data"] = sorted({*names["data"], run.dataset})
    return results


def merge_summaries(before: Mapping[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """Return a summary, extended by the benchmarks of an earlier summary that were not measured again."""
    if before is None:
        return now
    left = [group for group in before["groups"] if group["name"] not in now["data"]]
    names = {group["name"] for group in left}
    measured = [
        one | {"data": item}
        for one in before["measured"]
        for item in [sorted(names.intersection(one.get("data", names)))]
        if item
    ]
    return now | {
        "measured": [*measured, *now["measured"]],
        "data": {name: before["data"][name] for name in sorted(names)} | now["data"],
        "groups": sorted([*left, *now["groups"]], key=lambda group: str(group["name"])),
    }


def write(path: Path, value: Mapping[str, Any]) -> None:
    """Write a summary as JSON with one system per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_format_json(value) + "\n", encoding="utf-8")


def _format_json(value: Any, depth: int = 0) -> str:
    """Format JSON with one line per item on the upper levels."""
    if depth == 5 or not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_format_json(item, depth + 1)}" for key, item in value.items()]
        return "{" + pad + f",{pad}".join(parts) + "\n" + " " * depth + "}"
    return "[" + pad + f",{pad}".join(_format_json(item, depth + 1) for item in value) + "\n" + " " * depth + "]"


if __name__ == "__main__":
    main()
