"""Trains the first stage of the bundled weights of ``default``, and measures it on kinds of text that it never saw.

    python benchmarks/default_training.py BEIR_DIR... --prose FOLDER --manuals FOLDER [--store DIR] [--to DIR]
        [--unseen DIR] [--json FILE]

One scorer has to serve every kind of text, so it is trained on several: each benchmark as it is, with its titles
stripped, and with ten of its articles joined to one document without titles; and questions about books and about
manuals, whose evidence are sentences. Each benchmark counts the same in each shape, and books and manuals as much as
all benchmarks in one shape. The figures are of weights trained without the
benchmark in any shape (those named alike but for what follows a hyphen count as one), without the book, or without the
manuals of the same sixth; ``--unseen`` keeps these last for ``prose.py`` and ``manuals.py``. The second stage is
trained by ``second_stage_training.py``.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from manuals import get_parts, load_documents, select_questions
from measured_rows import write_rows
from sentence_evidence import contains_sentence, normalize_texts

from polyad import Engine
from polyad.config import ReadSettings
from polyad.model import Document, FloatArray, Passage
from polyad.readers.folder.files import FileReader
from polyad.retrieval.default.scorer import WEIGHTS_FILE
from polyad.retrieval.default.signals import SIGNAL_NAMES, Candidates, list_weight_names
from polyad_bench.datasets.beir import Dataset, Question, load_beir
from polyad_bench.datasets.selection import split_questions
from polyad_bench.training import linear_scorer
from polyad_bench.training.linear_scorer import (
    K,
    TrainingExample,
    compute_recall,
    extract_signals,
)

SEED = 7
JOINED = 10
RESAMPLES = 2000
PROSE, MANUALS = "prose", "manuals"
MANUALS_INDEX = "manuals-files"

Parts = Mapping[str, Sequence[TrainingExample]]
"""The examples of one kind of text, by the book or the like that they are about."""


class Shape(NamedTuple):
    """A variant of a benchmark: with titles, without titles, or with joined documents.

    Attributes:
        name: Of the shape.
        documents: To index.
        holds: Whether a passage, by its id, holds one of the benchmark's own documents.
        is_whole: Whether its own documents are those that are indexed.
    """

    name: str
    documents: Sequence[Document]
    holds: Callable[[Engine, str, str], bool]
    is_whole: bool = True


def main() -> None:
    """Extract the signals of every question, train without each kind of text, then train on all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="BEIR_DIR")
    parser.add_argument("--prose", type=Path, required=True, help="books and their questions.jsonl")
    parser.add_argument("--manuals", type=Path, required=True, help="files that manuals/fetch.py got")
    parser.add_argument("--store", type=Path, help="keep the indexes here for the next run")
    parser.add_argument("--to", type=Path, help="write the weights here")
    parser.add_argument("--unseen", type=Path, help="write the weights that did not see a book or a part here")
    parser.add_argument("--json", type=Path, help="save the figures here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        stores = arguments.store or Path(temporary)
        sets = articles(arguments.folders, stores)
        texts = {PROSE: prose(arguments.prose, stores), MANUALS: manuals(arguments.manuals, stores)}
        if arguments.to:
            write_weights({**sets, **{kind: together(parts) for kind, parts in texts.items()}}, arguments.to)
        rows = [*evaluate_unseen_articles(sets, texts), *evaluate_unseen_texts(sets, texts, arguments.unseen)]
    if arguments.json:
        write_rows(arguments.json, rows)


def write_weights(sets: Mapping[str, Sequence[TrainingExample]], directory: Path) -> None:
    """Train the first stage and write the weights.

    Questions of test splits (:func:`split_questions`) are left out, so that shipped weights can be measured on them.
    """
    directory.mkdir(parents=True, exist_ok=True)
    sets = {name: [each for each in examples if not is_test(each.text)] for name, examples in sets.items()}
    trained_on = tuple(dict.fromkeys(map(get_family, sets)))
    scorer = replace(linear_scorer.train_linear_scorer(balance(sets), SIGNAL_NAMES), trained_on=trained_on)
    (directory / WEIGHTS_FILE).write_text(scorer.to_text(), encoding="utf-8")
    print(f"weights in {directory / WEIGHTS_FILE}", flush=True)


def balance(sets: Mapping[str, Sequence[TrainingExample]]) -> list[list[TrainingExample]]:
    """Return the examples in groups that count the same in training.

    A benchmark and its further questions are one group in each shape. Books and manuals are each as many equal groups
    as there are benchmarks, since every signal that articles in one shape need would otherwise count more than theirs.
    """
    groups: dict[str, list[TrainingExample]] = {}
    for name, examples in sets.items():
        groups.setdefault(" ".join([get_family(name), *name.split()[1:]]), []).extend(examples)
    benchmarks = {get_family(name) for name in sets} - {PROSE, MANUALS}
    return [group for name, group in groups.items() for _ in range(len(benchmarks) if name in (PROSE, MANUALS) else 1)]


def is_test(question: str) -> bool:
    """Return whether a question is in the test split of its benchmark."""
    return bool(split_questions([Question("", question, frozenset())])[2])


def articles(folders: Sequence[Path], stores: Path) -> dict[str, list[TrainingExample]]:
    """Return the examples of each benchmark in each shape, by name."""
    sets = {}
    for dataset in map(load_beir, folders):
        for shape in shapes(dataset):
            with Engine.open(stores / f"{dataset.name}-{shape.name}") as engine:
                engine.index_documents(shape.documents)
                signals = extract_signals(engine, [query.text for query in dataset.queries])
                examples = [
                    build_example(engine, candidates, query.text, sorted(query.gold), shape.holds)
                    for query, candidates in zip(dataset.queries, signals, strict=True)
                ]
            if not shape.is_whole:
                examples = [replace(example, documents=()) for example in examples]
            sets[f"{dataset.name} {shape.name}"] = examples
        print(f"signals of {dataset.name}", flush=True)
    return sets


def shapes(dataset: Dataset) -> Iterator[Shape]:
    """Yield a benchmark unchanged, without titles, and with ten documents joined."""
    read = FileReader(ReadSettings()).read([dataset.corpus])
    documents = [document for document in read if isinstance(document, Document)]
    yield Shape("as it is", documents, lambda _, passage, gold: passage.rpartition("#")[0] == gold)
    bare = [Document(document.id, "", document.text) for document in documents]
    yield Shape("no titles", bare, lambda _, passage, gold: passage.rpartition("#")[0] == gold)
    joined, places = join(documents, JOINED)
    passages: dict[str, Passage] = {}

    def holds(engine: Engine, passage_id: str, gold: str) -> bool:
        id, start, end = places[gold]
        if passage_id.rpartition("#")[0] != id:
            return False
        passage = passages.setdefault(passage_id, engine.catalogue.passage(passage_id))
        shared = min(passage.end, end) - max(passage.start, start)
        return 2 * shared >= min(end - start, passage.end - passage.start)

    yield Shape(f"joined by {JOINED}", joined, holds, is_whole=False)


def join(documents: Sequence[Document], count: int) -> tuple[list[Document], dict[str, tuple[str, int, int]]]:
    """Join shuffled documents without titles, and return the position of each: document, start and end."""
    shuffled = list(documents)
    random.Random(SEED).shuffle(shuffled)
    joined, places = [], {}
    for first in range(0, len(shuffled), count):
        id, text = f"joined {first // count}", ""
        for document in shuffled[first : first + count]:
            places[document.id] = id, len(text), len(text) + len(document.text)
            text += document.text + "\n\n"
        joined.append(Document(id, "", text))
    return joined, places


def prose(folder: Path, stores: Path) -> dict[str, list[TrainingExample]]:
    """Return the examples of each book; all books are in one index."""
    questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    with Engine.open(stores / PROSE) as engine:
        engine.index(sorted(folder.glob("*.txt")))
        examples = build_sentence_examples(engine, [(question["text"], question["evidence"]) for question in questions])
    print(f"signals of {PROSE}", flush=True)
    return group_by_part((question["metadata"]["book"] for question in questions), examples)


def manuals(folder: Path, stores: Path) -> dict[str, list[TrainingExample]]:
    """Return the examples of each part of the manuals, in the index that ``manuals.py`` uses too."""
    documents = load_documents(folder)
    questions = select_questions(documents)
    with Engine.open(stores / MANUALS_INDEX) as engine:
        engine.index_documents(documents.values())
        examples = build_sentence_examples(engine, [(question.text, question.sentences) for question in questions])
    print(f"signals of {MANUALS}", flush=True)
    return group_by_part(get_parts(questions), examples)


def group_by_part(parts: Iterable[str], examples: Iterable[TrainingExample]) -> dict[str, list[TrainingExample]]:
    """Group examples by part."""
    contains_sentence: dict[str, list[TrainingExample]] = {}
    for part, example in zip(parts, examples, strict=True):
        contains_sentence.setdefault(part, []).append(example)
    return contains_sentence


def build_sentence_examples(engine: Engine, questions: Sequence[tuple[str, Sequence[str]]]) -> list[TrainingExample]:
    """Yield the examples of questions whose evidence is sentences, which any passage may contain."""
    seen: dict[str, str] = {}

    def holds(engine: Engine, passage: str, sentence: str) -> bool:
        if passage not in seen:
            seen[passage] = normalize_texts([engine.catalogue.passage(passage).text])
        return contains_sentence(sentence, seen[passage])

    signals = extract_signals(engine, [text for text, _ in questions])
    return [
        replace(build_example(engine, candidates, text, evidence, holds), documents=())
        for (text, evidence), candidates in zip(questions, signals, strict=True)
    ]


def build_example(
    engine: Engine,
    candidates: Candidates,
    question: str,
    evidence: Sequence[str],
    holds: Callable[[Engine, str, str], bool],
) -> TrainingExample:
    """Build an example from the candidates of a question and the evidence that each holds."""
    rows = [[holds(engine, passage, piece) for piece in evidence] for passage in candidates.passages]
    return TrainingExample(
        candidates.signals,
        np.array(rows, dtype=bool).reshape(-1, len(evidence)),
        candidates.linkability,
        candidates.documents,
        question,
    )


def evaluate_unseen_articles(
    sets: Mapping[str, Sequence[TrainingExample]], texts: Mapping[str, Parts]
) -> Iterator[dict[str, object]]:
    """Yield the recall on each benchmark and shape of weights trained without the benchmark."""
    everything = {**sets, **{kind: together(parts) for kind, parts in texts.items()}}
    for family in sorted({get_family(name) for name in sets}):
        seen = {name: examples for name, examples in everything.items() if get_family(name) != family}
        scorer = linear_scorer.train_linear_scorer(balance(seen), SIGNAL_NAMES)
        for name, examples in sets.items():
            if get_family(name) == family:
                yield report_recall(name, examples, scorer.get_weights(list_weight_names(SIGNAL_NAMES)))


def evaluate_unseen_texts(
    sets: Mapping[str, Sequence[TrainingExample]], texts: Mapping[str, Parts], to: Path | None
) -> Iterator[dict[str, object]]:
    """Yield the recall on each book and manual of weights trained without it, and save these weights in ``to``."""
    names = SIGNAL_NAMES
    articles = linear_scorer.train_linear_scorer(balance(sets), names)
    for kind, parts in texts.items():
        yield report_recall(
            f"{kind}, by articles alone", together(parts), articles.get_weights(list_weight_names(names))
        )
        for part in parts:
            seen = exclude_part(sets, texts, kind, part)
            scorer = linear_scorer.train_linear_scorer(balance(seen), names)
            if to:
                (to / kind).mkdir(parents=True, exist_ok=True)
                (to / kind / f"{part}.tsv").write_text(scorer.to_text(), encoding="utf-8")
            yield report_recall(part, parts[part], scorer.get_weights(list_weight_names(names)))


def exclude_part(
    sets: Mapping[str, Sequence[TrainingExample]], texts: Mapping[str, Parts], kind: str, part: str
) -> dict[str, Sequence[TrainingExample]]:
    """Return all sets, with one part removed from one kind of text."""
    left = {name: examples for name, examples in texts[kind].items() if name != part}
    return {**sets, **{name: together(left if name == kind else parts) for name, parts in texts.items()}}


def together(parts: Parts) -> list[TrainingExample]:
    """Join the examples of all parts."""
    return [example for examples in parts.values() for example in examples]


def get_family(name: str) -> str:
    """Return the name of a set without its shape and suffix: "musique" for "musique-more no titles"."""
    return name.split()[0].split("-")[0]


def report_recall(name: str, examples: Sequence[TrainingExample], weights: FloatArray) -> dict[str, object]:
    """Print and return the recall of weights on questions that they never saw, with a 95 % bootstrap interval."""
    each = np.array([compute_recall([example], weights, K) for example in examples])
    selection = np.random.default_rng(SEED).integers(len(each), size=(RESAMPLES, len(each)))
    low, high = np.percentile(each[selection].mean(axis=1), [2.5, 97.5])
    print(f"{name:36} {100 * each.mean():5.1f} ({100 * low:.1f} to {100 * high:.1f}) of {len(each):3}", flush=True)
    return {
        "set": name,
        f"recall@{K}": round(float(each.mean()), 4),
        "interval": [round(float(low), 4), round(float(high), 4)],
    }


if __name__ == "__main__":
    main()
