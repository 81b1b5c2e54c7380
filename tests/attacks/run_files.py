"""A small data set and a sound run of it, for tests that damage them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from typer.testing import CliRunner

from polyad.cli import app

CORPUS = {
    "bell": ("Bell of Tarn", "The Bell of Tarn was cast by Ines Moreau."),
    "moreau": ("Ines Moreau", "Ines Moreau was born in Aldby, on the river Isk."),
    "otter": ("otter", "An otter eats fish and crabs."),
}
QUESTIONS = {"q1": "Who cast the bell of Tarn?", "q2": "What do otters eat?"}
GOLD = {"q1": "bell", "q2": "otter"}


def write_dataset(folder: Path) -> Path:
    """Write a BEIR folder with answers and evidence."""
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": id, "title": title, "text": text} for id, (title, text) in CORPUS.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(record) + "\n" for record in corpus))
    queries = [
        {"_id": id, "text": text, "metadata": {"answers": ["x"], "evidence": [CORPUS[GOLD[id]][1]], "type": "one"}}
        for id, text in QUESTIONS.items()
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(record) + "\n" for record in queries))
    judged = "".join(f"{query}\t{document}\t1\n" for query, document in GOLD.items())
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return folder


@cache
def _measure() -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        write_dataset(Path(folder) / "tarn")
        arguments = ["bench", "run", f"{folder}/tarn", "--retriever", "bm25,default", "--embedder", "hashing:16"]
        result = CliRunner().invoke(app, [*arguments, "--refusal", "--out", f"{folder}/run"])
        assert result.exit_code == 0, result.output
        run = Path(folder) / "run"
        hypergraph = json.loads((run / "hypergraph.json").read_text())
        hypergraph["neighbourhood"] = {"entity": "Tarn", "hyperedges": [["Tarn", "Isk"], ["Tarn", "Aldby", "Isk"]]}
        (run / "hypergraph.json").write_text(json.dumps(hypergraph))
        keys = [{"retriever": name, "query_id": id} for name in ("bm25", "default") for id in QUESTIONS]
        answers = [
            key | {"text": "x", "cited": ["p"], "tokens": 3, "milliseconds": 1.5, "names": ["x"]} for key in keys
        ]
        judged = [key | {"judge": "gpt_acc", "prompt": "p", "reply": "r", "value": 1.0, "model": "m"} for key in keys]
        (run / "answers.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
        (run / "judgements.jsonl").write_text("".join(json.dumps(judgement) + "\n" for judgement in judged))
        return {path.name: path.read_bytes() for path in run.iterdir()}


def measure_run(folder: Path) -> Path:
    """Write the folder of a run of two retrievers on the data set."""
    folder.mkdir(parents=True)
    for name, contents in _measure().items():
        (folder / name).write_bytes(contents)
    return folder
