"""Refusal of questions that the documents do not answer, in four classes, and the weights of relevance.

    python benchmarks/refusal.py BENCHMARKS PROSE --store DIR [--manuals FOLDER] [--json FILE]

BENCHMARKS holds BEIR folders, PROSE books with questions.jsonl, FOLDER the files that ``manuals/fetch.py`` got. Books
are measured together and each in an index of its own; articles with titles and stripped of them, except for fits. Four
classes are not answered: gibberish; questions about other things; questions whose names were replaced by invented ones;
and questions whose evidence is hidden. For prose and manuals, the hand-written questions of
``manuals/unanswerable*.jsonl`` are a fifth. Each class is reported at the limit that refuses 5 % of the answered
questions, and at the limit of ``--min-relevance auto``, which knows no question. Limits and calibration errors are
those of weights that were fitted without the corpus and others of its kind; the last line has the weights of all.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from manuals import QUESTIONS, load_documents, select_questions
from measured_rows import write_rows
from scipy.optimize import minimize

from polyad import Engine, sample
from polyad.model import Document, Passage
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default import relevance
from polyad.retrieval.default.relevance import (
    Calibration,
    RelevanceFeatures,
    generate_questions,
    read_everyday_questions,
)
from polyad.retrieval.default.retriever import DefaultRetriever

Array = npt.NDArray[np.float64]
QuestionsWithAnswers = Sequence[tuple[str, Sequence[str]]]
"""Questions, each with the ids of the gold documents or the evidence sentences."""

FALSE_REFUSALS, BINS, L2, SEED = 0.05, 10, 0.01, 5
MAX_QUESTIONS = 100
ANSWERED, REMOVED, WRITTEN = "answered", "gold removed", "written"
SHARES = {ANSWERED: 0.5, REMOVED: 0.05, "gibberish": 0.1, "off topic": 0.2, "absent subject": 0.15}
"""Weight of each class when weights are fitted and errors are measured."""
MANUALS, BOOK, STRIPPED = "manuals", "prose: ", ": no titles"
UNANSWERABLE = {"prose": "unanswerable_prose.jsonl", MANUALS: "unanswerable.jsonl"}
OFF_TOPIC = (Path(__file__).parent / "off_topic.txt").read_text(encoding="utf-8").splitlines()


def main() -> None:
    """Measure all corpora, fit weights without each and print a row for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("benchmarks", type=Path, metavar="BENCHMARKS")
    parser.add_argument("prose", type=Path, metavar="PROSE")
    parser.add_argument("--store", type=Path, required=True, help="keep the indexes here for the next run")
    parser.add_argument("--manuals", type=Path, help="measure these manuals too")
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    records = read_lines(arguments.prose / "questions.jsonl")
    books = [(record["text"], record["evidence"]) for record in records]
    articles = {name: read_beir(arguments.benchmarks / name) for name in ("2wiki", "hotpotqa", "musique")}
    corpora: dict[str, dict[str, list[RelevanceFeatures]]] = {}
    manuals = load_documents(arguments.manuals) if arguments.manuals else {}
    guides = [(question.text, question.sentences) for question in select_questions(manuals)]
    single: dict[str, list[tuple[str, Sequence[str]]]] = {}
    for record in records:
        single.setdefault(BOOK + record["metadata"]["book"], []).append((record["text"], record["evidence"]))
    stripped = {name + STRIPPED: questions for name, questions in articles.items()}
    every = {**articles, "prose": books, "sample": read_sample(), MANUALS: guides, **single, **stripped}
    for name, questions in every.items():
        if not questions:
            continue
        kind = get_kind(name)
        others = books if kind in articles else articles["hotpotqa"]
        with Engine.open(arguments.store / name.replace(": ", "-")) as engine:
            if name == MANUALS:
                engine.index_documents(manuals.values())
            elif not engine.catalogue.statistics().documents:
                index(engine, name, arguments.benchmarks / kind, arguments.prose)
            off_topic = [*OFF_TOPIC, *(text for text, _ in select(others)[:40])]
            corpora[name] = measure_corpus(engine, kind, select(questions), off_topic)
            print(f"measured {name}", flush=True)
    rows = [build_row(name, corpora) for name in corpora]
    for row in rows:
        print(json.dumps(row))
    print("weights:", np.round(fit(corpora), 3).tolist())
    if arguments.json:
        write_rows(arguments.json, rows)


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the records of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def read_beir(folder: Path) -> QuestionsWithAnswers:
    """Return the questions of a BEIR folder with their gold documents."""
    gold: dict[str, list[str]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, _ = line.split("\t")
        gold.setdefault(query, []).append(document)
    return [
        (str(record["text"]), gold[str(record["_id"])])
        for record in read_lines(folder / "queries.jsonl")
        if record["_id"] in gold
    ]


def read_sample() -> QuestionsWithAnswers:
    """Return the questions of the sample corpus with their gold documents."""
    return [(question.text, sorted(question.gold)) for question in sample.questions()]


def get_kind(name: str) -> str:
    """Return the kind of a corpus: the name of a data set, ``prose``, ``manuals`` or ``sample``."""
    return name.partition(":")[0]


def select(questions: QuestionsWithAnswers) -> QuestionsWithAnswers:
    """Return a fixed sample of the questions."""
    return random.Random(SEED).sample(questions, min(len(questions), MAX_QUESTIONS))


def index(engine: Engine, name: str, folder: Path, prose: Path) -> None:
    """Index one corpus."""
    if get_kind(name) == "prose":
        engine.index(sorted(prose.glob(f"{name.removeprefix(BOOK)}.txt" if name.startswith(BOOK) else "*.txt")))
    elif name == "sample":
        engine.index_documents(each for each in sample.documents() if isinstance(each, Document))
    else:
        records = read_lines(folder / "corpus.jsonl")
        has_title = not name.endswith(STRIPPED)
        engine.index_documents(
            Document(each["_id"], each["title"] if has_title else "", each["text"]) for each in records
        )


def measure_corpus(
    engine: Engine, name: str, questions: QuestionsWithAnswers, off_topic: Sequence[str]
) -> dict[str, list[RelevanceFeatures]]:
    """Return the measurements of each class of questions, and of the generated ones, on one index."""
    generator = random.Random(SEED)
    retriever, snapshot = (
        DefaultRetriever(engine.components.embedder, engine.components.extractor, engine.components.settings.default),
        engine.snapshot(),
    )
    find_rows = find_evidence(snapshot) if name in UNANSWERABLE else find_documents(snapshot)
    pairs = [retriever.compute_relevance_features(text, snapshot, find_rows(gold)) for text, gold in questions]
    generated = [
        retriever.compute_relevance_features(text, snapshot, (row,)) for text, row in generate_questions(snapshot)
    ]
    written = read_lines(QUESTIONS / UNANSWERABLE[name]) if name in UNANSWERABLE else []
    classes = {
        "gibberish": [" ".join(invent(generator, 9) for _ in range(6)) + "?" for _ in range(40)],
        "off topic": off_topic,
        "absent subject": [new for text, _ in questions if (new := replace_names(text, generator)) != text],
        WRITTEN: [str(record["text"]) for record in written],
    }
    return {
        ANSWERED: [pair[0] for pair in pairs],
        REMOVED: [pair[1] for pair in pairs],
        **{
            kind: [retriever.compute_relevance_features(text, snapshot)[0] for text in texts]
            for kind, texts in classes.items()
        },
        "everyday": [retriever.compute_relevance_features(text, snapshot)[0] for text in read_everyday_questions()],
        "generated": [pair[0] for pair in generated],
        "generated, hidden": [pair[1] for pair in generated],
    }


def find_current_passages(snapshot: Snapshot) -> list[int]:
    """Return the rows of the passages that are not deleted; deleted ones have no hyperedges."""
    rows: list[int] = np.unique(snapshot.graph.hyperedges(np.arange(snapshot.row_count("passage")))[1]).tolist()
    return rows


def find_documents(snapshot: Snapshot) -> Callable[[Sequence[str]], list[int]]:
    """Return a function that finds the passages of documents."""
    rows = find_current_passages(snapshot)
    documents = [id.rpartition("#")[0] for id in snapshot.ids("passage", rows)]
    return lambda gold: [row for row, document in zip(rows, documents, strict=True) if document in gold]


def find_evidence(snapshot: Snapshot) -> Callable[[Sequence[str]], list[int]]:
    """Return a function that finds the passages with the beginning or the end of sentences."""
    rows = find_current_passages(snapshot)
    texts = [join(passage.text) for passage in snapshot.get(Passage, rows)]
    return lambda sentences: [
        row
        for row, text in zip(rows, texts, strict=True)
        if any(join(sentence)[:60] in text or join(sentence)[-60:] in text for sentence in sentences)
    ]


def join(text: str) -> str:
    """Return the words of a text without line ends and marks of emphasis."""
    return " ".join(re.split(r"[\s_]+", text)).strip()


def invent(generator: random.Random, length: int) -> str:
    """Return random letters."""
    return "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=generator.randint(3, length)))


def replace_names(text: str, generator: random.Random) -> str:
    """Replace the capitalised words of a question after the first by invented ones."""
    syllables = ["ba", "ro", "vu", "ke", "zi", "ta", "mo", "lex", "nar", "dosk"]
    return re.sub(r"(?<=\s)([A-Z][\w.-]*)", lambda _: "".join(generator.choices(syllables, k=3)).capitalize(), text)


def calibrate(measured: Mapping[str, Sequence[RelevanceFeatures]]) -> Calibration:
    """Return the calibration of a corpus."""
    return Calibration.from_measurements(measured["generated"], measured["generated, hidden"], measured["everyday"], 1)


def scale(measured: Mapping[str, Sequence[RelevanceFeatures]], kind: str) -> Array:
    """Return the features of a class, ``[questions, features]``, with scores on the scale of the index."""
    calibration = calibrate(measured)
    rows = np.array([astuple(each) for each in measured[kind]], dtype=np.float64).reshape(-1, 6)
    features, linkability = rows[:, :4], rows[:, 4]
    features[:, 0] = linkability * (features[:, 0] - calibration.offset) / calibration.scale
    return features


def fit(corpora: Mapping[str, Mapping[str, Sequence[RelevanceFeatures]]]) -> Array:
    """Return the weights and the intercept of a logistic regression with equal weight for each kind of corpus."""
    names = [name for name in corpora if not name.endswith(STRIPPED)]
    counts = Counter(map(get_kind, names))
    parts = [
        (scale(corpora[name], kind), kind == ANSWERED, share / counts[get_kind(name)])
        for name in names
        for kind, share in SHARES.items()
    ]
    features = np.concatenate([part for part, _, _ in parts])
    is_answered = np.concatenate([np.full(len(part), answered) for part, answered, _ in parts])
    importance = np.concatenate([np.full(len(part), share / max(1, len(part))) for part, _, share in parts])
    importance /= len(counts)
    deviations = features.std(axis=0)
    columns = np.column_stack([features / deviations, np.ones(len(features))])

    def loss(weights: Array) -> tuple[float, Array]:
        logits = columns @ weights
        errors = importance * (1 / (1 + np.exp(-logits)) - is_answered)
        penalised = np.append(weights[:-1], 0)
        value = importance @ np.logaddexp(0, np.where(is_answered, -logits, logits)) + L2 * penalised @ penalised
        return float(value), columns.T @ errors + 2 * L2 * penalised

    bounds = [(0, None)] * 2 + [(None, 0)] * 2 + [(None, None)]
    solution = minimize(loss, np.zeros(5), jac=True, method="L-BFGS-B", bounds=bounds).x
    weights: Array = np.append(solution[:-1] / deviations, solution[-1])
    return weights


def build_row(name: str, corpora: Mapping[str, Mapping[str, Sequence[RelevanceFeatures]]]) -> dict[str, object]:
    """Return the figures of one corpus, with weights that were fitted to the others."""
    measured = corpora[name]
    weights = fit({other: rest for other, rest in corpora.items() if get_kind(other) != get_kind(name)})
    log_odds = {kind: scale(measured, kind) @ weights[:-1] + weights[-1] for kind in (*SHARES, WRITTEN)}
    names = dict(zip(relevance.WEIGHTS, weights.tolist(), strict=False))
    with patch.multiple(relevance, WEIGHTS=names, INTERCEPT=float(weights[-1])):
        limit = calibrate(measured).limit
    value = float(np.quantile(log_odds[ANSWERED], FALSE_REFUSALS, method="lower"))
    return {
        "corpus": name,
        "questions": len(log_odds[ANSWERED]),
        "at_5_percent": dict(count_refused(log_odds, value)),
        "auto": dict(count_refused(log_odds, float(np.log(limit / (1 - limit))))),
        "limit": round(limit, 3),
        "calibration_error": round(compute_calibration_error(log_odds), 3),
    }


def count_refused(log_odds: Mapping[str, Array], limit: float) -> Iterator[tuple[str, float]]:
    """Yield each class and the percentage of its questions below a limit."""
    for kind, values in log_odds.items():
        if len(values):
            yield kind, round(100 * float((values < limit).mean()), 1)


def compute_calibration_error(log_odds: Mapping[str, Array]) -> float:
    """Return the expected calibration error, with half of the weight on answered questions."""
    parts = [(1 / (1 + np.exp(-log_odds[kind])), kind, share) for kind, share in SHARES.items()]
    predicted = np.concatenate([values for values, _, _ in parts])
    errors = np.concatenate([(values - (kind == ANSWERED)) * share / len(values) for values, kind, share in parts])
    bins = np.minimum(BINS - 1, (predicted * BINS).astype(int))
    return float(sum(abs(errors[bins == number].sum()) for number in range(BINS)))


if __name__ == "__main__":
    main()
