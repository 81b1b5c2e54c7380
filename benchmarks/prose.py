"""Recall of evidence within a budget of words, on books: one index of long, untitled texts.

    python benchmarks/default_training.py ... --unseen WEIGHTS
    python benchmarks/prose.py FOLDER --weights WEIGHTS [--store DIR] [--retrievers NAMES] [--json FILE]

A question's evidence are sentences; one is found when it stands whole in the first 500, 1,000 or 2,000 words returned.
`default` is asked with weights that were trained on everything but the book in question.
Beside the retrievers stand BM25 and dense vectors joined by reciprocal ranks, on the same passages and on plain pieces
of 200 words, and what `search --max-words` gives.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
from manuals import FUSED, WHOLE, Search, chunks, fuse
from measured_rows import write_rows
from sentence_evidence import contains_all_evidence, evidence_recall, normalize_texts

from polyad import Engine
from polyad.config import ReadSettings
from polyad.engine.settings import Settings
from polyad.model import Document
from polyad.readers.folder.files import FileReader
from polyad.retrieval.default.retriever import DefaultSettings

BUDGETS = (500, 1000, 2000)
K = 40
RETRIEVERS = "default,dense,bm25,hypersu,hypergraphrag,hyperretriever"
SEED, RESAMPLES = 7, 2000


class Question(NamedTuple):
    """A question about a book, with its type and the sentences that together answer it."""

    text: str
    book: str
    type: str
    evidence: Sequence[str]


def main() -> None:
    """Index the books, train without each book, ask every question and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="books (.txt) and their questions.jsonl")
    parser.add_argument("--weights", type=Path, required=True, help="where default_training.py put the unseen ones")
    parser.add_argument("--store", type=Path, help="keep the indexes here for the next run")
    parser.add_argument("--retrievers", default=RETRIEVERS)
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    questions = read_questions(arguments.folder)
    rows = []
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        stores = arguments.store or Path(temporary)
        engines = {
            path.stem: stack.enter_context(
                Engine.open(stores / "prose", settings=Settings(default=DefaultSettings(weights=str(path))))
            )
            for path in sorted((arguments.weights / "prose").glob("*.tsv"))
        }
        next(iter(engines.values())).index(sorted(arguments.folder.glob("*.txt")))
        pieces = stack.enter_context(Engine.open(stores / "prose-pieces", settings=WHOLE))
        pieces.index_documents(split_chunks(arguments.folder))
        for name, searches in build_searches(arguments.retrievers.split(","), engines, pieces).items():
            returned = [[hit.passage.text for hit in searches[q.book](q.text)] for q in questions]
            rows.append({"retriever": name, **measured(questions, dict.fromkeys(BUDGETS, returned))})
            print(format_row(rows[-1]), flush=True)
        with_words = {
            budget: [
                [hit.passage.text for hit in engines[q.book].search(q.text, max_words=budget).passages]
                for q in questions
            ]
            for budget in BUDGETS
        }
        rows.append({"retriever": "default, --max-words", **measured(questions, with_words)})
        print(format_row(rows[-1]), flush=True)
    if arguments.json:
        write_rows(arguments.json, rows)


def read_questions(folder: Path) -> list[Question]:
    """Return the questions of the folder."""
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    records = map(json.loads, lines)
    return [
        Question(each["text"], each["metadata"]["book"], each["metadata"]["type"], each["evidence"]) for each in records
    ]


def split_chunks(folder: Path) -> Iterator[Document]:
    """Split each book into chunks of 200 words with an overlap of 20 words."""
    for document in FileReader(ReadSettings()).read(sorted(folder.glob("*.txt"))):
        if isinstance(document, Document):
            yield from chunks(document)


def build_searches(
    retrievers: Sequence[str], engines: Mapping[str, Engine], pieces: Engine
) -> dict[str, Mapping[str, Search]]:
    """Return the search function of each retriever and book, with weights trained without the book."""

    def ask(engine: Engine, name: str) -> Search:
        return lambda question: engine.search(question, K, retriever=name, merge=False).passages

    first = next(iter(engines.values()))
    searches: dict[str, Mapping[str, Search]] = {
        name: {book: ask(engine if name == "default" else first, name) for book, engine in engines.items()}
        for name in retrievers
    }
    searches[FUSED] = dict.fromkeys(engines, lambda question: fuse(first, question, K))
    searches[f"{FUSED}, 200 words"] = dict.fromkeys(engines, lambda question: fuse(pieces, question, K))
    return searches


def measured(questions: Sequence[Question], returned: Mapping[int, Sequence[Sequence[str]]]) -> dict[str, object]:
    """Return evidence recall with its interval and all-evidence by budget, and recall by type and book."""
    results: dict[str, object] = {}
    for budget, texts in returned.items():
        seen = [normalize_texts(each, budget) for each in texts]
        recall = np.array([evidence_recall(q.evidence, words) for q, words in zip(questions, seen, strict=True)])
        whole = np.array([contains_all_evidence(q.evidence, words) for q, words in zip(questions, seen, strict=True)])
        selection = np.random.default_rng(SEED).integers(len(recall), size=(RESAMPLES, len(recall)))
        results[str(budget)] = {
            "recall": round(float(recall.mean()), 4),
            "interval": np.percentile(recall[selection].mean(axis=1), [2.5, 97.5]).round(4).tolist(),
            "all": round(float(whole.mean()), 4),
            **{
                value: round(float(recall[[getattr(q, kind) == value for q in questions]].mean()), 4)
                for kind in ("type", "book")
                for value in sorted({getattr(q, kind) for q in questions})
            },
        }
    return results


def format_row(row: Mapping[str, object]) -> str:
    """Format a table row: recall and all-evidence by budget, then recall by type and book at 1,000 words."""
    cells = [f"{row['retriever']:26}"]
    for budget in BUDGETS:
        values = row[str(budget)]
        assert isinstance(values, dict)
        cells.append(f"{100 * values['recall']:5.1f} / {100 * values['all']:4.1f}")
    middle = row["1000"]
    assert isinstance(middle, dict)
    cells += [
        f"{name} {100 * value:.0f}" for name, value in middle.items() if name not in ("recall", "interval", "all")
    ]
    return "  ".join(cells)


if __name__ == "__main__":
    main()
