"""Refusal of questions that the documents do not answer: trains the network of relevance, and measures it.

    python benchmarks/refusal.py FOLDER... [--measure FOLDER...] --store DIR [--to FILE] [--json FILE]

FOLDER is a BEIR folder, or one with ``questions.jsonl`` and its files as ``files.tar.xz`` or ``generate.py``. The
network is trained on FOLDER and only measured on those of ``--measure``. Of a large folder, some documents are
indexed. A question is answered if its gold document is the best, and half so if it is among the best five. Six
classes are not answered: gibberish; questions about other things; questions whose names were replaced by invented
ones or whose code by one that no passage has; questions whose gold documents are hidden; and those that a folder
lists without gold. Questions are also asked in a few words. Rows of FOLDER are those of a network that was trained
without it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from measured_rows import write_rows
from scipy.optimize import minimize

from polyad import Engine
from polyad.model import Document
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.relevance import FEATURES, RelevanceFeatures, RelevanceModel
from polyad.retrieval.default.retriever import DefaultRetriever
from polyad.retrieval.default.scorer import WEIGHTS_FILE
from polyad.retrieval.rewriting import RewrittenQuestion
from polyad.retrieval.similarity_thresholds import read_everyday_questions
from polyad.text.files import read_package_file
from polyad.text.function_words import get_function_words, infer_language
from polyad.text.lexicon import FUNCTION_WORDS

Array = npt.NDArray[np.float64]

SEED, MAX_DOCUMENTS, MAX_QUESTIONS, MAX_OTHERS = 5, 800, 60, 15
ANSWERED, IN_FIVE, REMOVED, WRITTEN = "answered", "in five", "gold removed", "written"
OFF_TOPIC, GIBBERISH, ABSENT_NAME, ABSENT_CODE = "off topic", "gibberish", "absent name", "absent code"
WEIGHTS = {
    ANSWERED: 0.5, IN_FIVE: 0.1, REMOVED: 0.08, WRITTEN: 0.1, OFF_TOPIC: 0.15, GIBBERISH: 0.02, ABSENT_NAME: 0.08,
}  # fmt: skip
"""Weight of each class of a folder in training."""
UNITS, PENALTY, NETWORKS = 6, 0.003, 4
FALSE_REFUSALS = 0.02
"""Share of the answered questions below the limit of ``auto``, the mean over folders."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the ids of its gold documents, or the ends of their ids.

    Attributes:
        text: The question.
        gold: Returns whether a document id is gold; None if nothing answers the question.
        kind: Its kind, where the folder states one.
    """

    text: str
    gold: Callable[[str], bool] | None
    kind: str = ""


def main() -> None:
    """Measure all folders, train with and without each, and print a row for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--measure", type=Path, nargs="*", default=[], metavar="FOLDER")
    parser.add_argument("--store", type=Path, required=True, help="keep the indexes here for the next run")
    parser.add_argument("--to", type=Path, help="write the network here")
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    folders = [*arguments.folders, *arguments.measure]
    questions = {folder: list(read_questions(folder)) for folder in folders}
    measured = {}
    for folder in folders:
        others = [each for other in folders if get_family(other) != get_family(folder) for each in questions[other]]
        measured[folder] = load_or_measure(folder, questions[folder], others, arguments.store)
        print(f"measured {folder.name}", flush=True)
    trained = {folder: measured[folder] for folder in arguments.folders}
    rows, predictions = [], {}
    model = train(list(trained.values()))
    for folder, classes in measured.items():
        rest = [each for other, each in trained.items() if get_family(other) != get_family(folder)]
        left_out = train(rest) if folder in trained else model
        predictions[folder] = {name: predict(left_out, each) for name, each in classes.items()}
    limit = select_limit([predictions[folder][ANSWERED] for folder in trained])
    for folder, by_class in predictions.items():
        refused = {name: round(100 * float((values < limit).mean()), 1) for name, values in by_class.items()}
        rows.append({"corpus": folder.name, "questions": len(by_class[ANSWERED]), "refused": refused})
        print(json.dumps(rows[-1]))
    print("limit", round(limit, 3), "calibration error", compute_calibration_error(list(predictions.values())))
    if arguments.to:
        arguments.to.write_text(format_model(replace(model, limit=round(limit, 3))), encoding="utf-8")
    if arguments.json:
        write_rows(arguments.json, rows)


def get_family(folder: Path) -> str:
    """Return the name of a folder without what follows a hyphen: folders of one family have one source."""
    return folder.name.partition("-")[0]


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the records of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def sort_by_hash(texts: Sequence[Any], get_text: Callable[[Any], str]) -> list[Any]:
    """Return the items in the order of the digests of their texts, which is that of no property."""
    return sorted(texts, key=lambda item: hashlib.sha256(get_text(item).encode()).hexdigest())


def read_questions(folder: Path) -> Iterator[Question]:
    """Yield questions of a folder: all of an everyday corpus, some of others."""
    if (folder / "questions.jsonl").exists():
        for record in read_lines(folder / "questions.jsonl"):
            history = record.get("history")
            text = " ".join([*(history if isinstance(history, list) else ()), record["question"]])
            yield Question(text, build_gold_test(record), record["kind"])
        return
    for record, gold in select_records(folder):
        yield Question(str(record["text"]), gold.__contains__)


def select_records(folder: Path) -> list[tuple[dict[str, Any], set[str]]]:
    """Return some queries of a BEIR folder with their gold documents."""
    gold: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, score = line.split("\t")
        if float(score) > 0:
            gold[query].add(document)
    records = [record for record in read_lines(folder / "queries.jsonl") if record["_id"] in gold]
    selection = sort_by_hash(records, lambda record: str(record["text"]))[:MAX_QUESTIONS]
    return [(record, gold[record["_id"]]) for record in selection]


def build_gold_test(record: Mapping[str, Any]) -> Callable[[str], bool] | None:
    """Return whether a document of an everyday corpus is gold, as its questions state it."""
    if pattern := record.get("gold_pattern"):
        return lambda document: bool(re.search(pattern, document))
    files = "|".join(re.escape(file) for file in record.get("gold", ()))
    return (lambda document: bool(re.search(f"/({files})([:#!?].*)?$", document))) if files else None


def index(engine: Engine, folder: Path) -> None:
    """Index a folder: all files of an everyday corpus; of others, gold and some further documents."""
    if (folder / "questions.jsonl").exists():
        with tempfile.TemporaryDirectory() as scratch:
            archive, script = folder.resolve() / "files.tar.xz", folder.resolve() / "generate.py"
            unpack = ["tar", "-xJf", str(archive)] if archive.exists() else [sys.executable, str(script)]
            subprocess.run(unpack, cwd=scratch, check=True, stdout=subprocess.DEVNULL)
            engine.index([scratch])
        return
    gold = {document for _, documents in select_records(folder) for document in documents}
    records = sort_by_hash(read_lines(folder / "corpus.jsonl"), lambda record: str(record["_id"]))
    selection = sorted(records, key=lambda record: record["_id"] not in gold)[: max(MAX_DOCUMENTS, len(gold))]
    engine.index_documents(Document(each["_id"], each["title"], each["text"]) for each in selection)


def load_or_measure(
    folder: Path, questions: Sequence[Question], others: Sequence[Question], store: Path
) -> dict[str, Array]:
    """Return the features of each class of questions, ``[questions, features]``; measured once per ranking."""
    with Engine.open(store / folder.name) as engine:
        if not engine.snapshot().passage_count:
            index(engine, folder)
        components = engine.components
        retriever = DefaultRetriever(components.embedder, components.extractor, components.settings.default)
        ranking = read_package_file("polyad.retrieval.default", WEIGHTS_FILE) + " ".join(FEATURES)
        saved = store / f"{folder.name}-{hashlib.sha256(ranking.encode()).hexdigest()[:8]}.npz"
        if not saved.exists():
            retriever.encoder_trust = retriever.measure_trust(engine.snapshot())
            classes = measure_corpus(retriever, engine.snapshot(), questions, others)
            np.savez(saved, **cast(dict[str, Any], classes))
    with np.load(saved) as arrays:
        return {name: arrays[name] for name in arrays.files if len(arrays[name])}


def measure_corpus(
    retriever: DefaultRetriever, snapshot: Snapshot, questions: Sequence[Question], others: Sequence[Question]
) -> dict[str, Array]:
    """Return the features of each class of questions on one index."""
    generator = random.Random(SEED)
    rows = np.unique(snapshot.graph.hyperedges(np.arange(snapshot.row_count("passage")))[1])
    documents = [id.rpartition("#")[0] for id in snapshot.ids("passage", rows)]
    by_row = dict(zip(rows.tolist(), documents, strict=True))
    classes: dict[str, list[Array]] = {name: [] for name in (*WEIGHTS, ABSENT_CODE)}

    def add(name: str, features: RelevanceFeatures) -> None:
        classes[name].append(np.r_[features.table[0], features.has_absent_code])

    for question, text in list_forms(questions):
        hidden = [row for row, document in by_row.items() if question.gold and question.gold(document)]
        rewritten = RewrittenQuestion.from_question(text, snapshot, 0.0).text
        (features, best), *absent = retriever.measure_relevance(rewritten, snapshot, *([hidden] if hidden else ()))
        ranks = np.flatnonzero(np.isin(best, hidden))
        if question.gold is None:
            add(WRITTEN, features)
        elif len(ranks):
            add(ANSWERED if ranks[0] == 0 else IN_FIVE, features)
        for without, _ in absent:
            add(REMOVED, without)
    for name, texts in write_unanswered(questions, others, generator).items():
        for text in texts:
            rewritten = RewrittenQuestion.from_question(text, snapshot, 0.0).text
            features = retriever.measure_relevance(rewritten, snapshot)[0][0]
            if name != ABSENT_CODE or features.has_absent_code:
                add(name, features)
    return {name: np.array(each, dtype=np.float64) for name, each in classes.items()}


def list_forms(questions: Sequence[Question]) -> Iterator[tuple[Question, str]]:
    """Yield each question as it is, and every second of a data set also in a few words."""
    for number, question in enumerate(questions):
        yield question, question.text
        if number % 2 == 0 and not question.kind and (text := shorten_question(question.text)) != question.text:
            yield question, text


def write_unanswered(
    questions: Sequence[Question], others: Sequence[Question], generator: random.Random
) -> dict[str, list[str]]:
    """Return questions that an index does not answer, by class."""
    language = Counter(infer_language(question.text) for question in questions).most_common(1)[0][0]
    same = [question.text for question in others if infer_language(question.text) == language and not question.kind]
    strange = generator.sample(same, min(len(same), MAX_OTHERS))
    texts = [question.text for question in questions]
    everyday = [*read_off_topic().get(language, ()), *read_everyday_questions([language])[::3]]
    return {
        OFF_TOPIC: [*everyday, *strange, *(shorten_question(text) for text in [*everyday, *strange][::4])],
        GIBBERISH: [" ".join(invent(generator) for _ in range(generator.randint(1, 6))) for _ in range(12)],
        ABSENT_NAME: [new for text in texts[:60] if (new := replace_names(text, generator)) != text][:30],
        ABSENT_CODE: [new for text in texts if (new := replace_codes(text, generator)) != text][:40],
    }


def read_off_topic() -> dict[str, list[str]]:
    """Return questions about other things by language."""
    folder = Path(__file__).parent
    text = (folder / "off_topic_languages.txt").read_text(encoding="utf-8")
    sections = re.split(r"^\[(\w+)\]\n", text, flags=re.MULTILINE)
    english = (folder / "off_topic.txt").read_text(encoding="utf-8").splitlines()
    return {"en": english} | {
        language: questions.splitlines() for language, questions in zip(sections[1::2], sections[2::2], strict=True)
    }


def shorten_question(text: str) -> str:
    """Return a question as people type it into a search box: its words with content, in lower case."""
    left_out = FUNCTION_WORDS | get_function_words(infer_language(text))
    words = re.findall(r"\w[\w'\u2019.-]*\w|\w", text)
    return " ".join(word.lower() for word in words if word.lower() not in left_out) or text


def invent(generator: random.Random) -> str:
    """Return random letters."""
    return "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=generator.randint(3, 9)))


def replace_names(text: str, generator: random.Random) -> str:
    """Replace the capitalised words of a question after the first by invented ones."""
    syllables = ["ba", "ro", "vu", "ke", "zi", "ta", "mo", "lex", "nar", "dosk"]
    return re.sub(r"(?<=\s)([A-Z][\w.-]*)", lambda _: "".join(generator.choices(syllables, k=3)).capitalize(), text)


def replace_codes(text: str, generator: random.Random) -> str:
    """Replace the last two digits of the codes of a question."""
    return re.sub(r"(\b[A-Z]+-?\d*?)\d{1,2}\b", lambda match: f"{match[1]}{generator.randint(10, 99)}", text)


def predict(model: RelevanceModel, rows: Array) -> Array:
    """Return the relevance of the first hit of each question."""
    tables = rows[:, np.newaxis, :-1].astype(np.float32)
    flags = rows[:, -2:].astype(bool).tolist()
    return np.array(
        [model.predict(RelevanceFeatures(table, *each))[0] for table, each in zip(tables, flags, strict=True)]
    )


def train(corpora: Sequence[Mapping[str, Array]]) -> RelevanceModel:
    """Return the mean of several networks trained on some corpora, each corpus with equal weight."""
    parts = [
        (classes[name], name, weight) for classes in corpora for name, weight in WEIGHTS.items() if name in classes
    ]
    features = np.concatenate([part[:, : len(FEATURES)] for part, _, _ in parts])
    labels = np.concatenate([np.full(len(part), float(name in (ANSWERED, IN_FIVE))) for part, name, _ in parts])
    weights = np.concatenate([np.full(len(part), weight / max(len(part), 10)) for part, _, weight in parts])
    weights /= weights.sum()
    mean, deviation = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-3)
    inputs = np.clip((features - mean) / deviation, -4, 4)
    solutions = [fit_network(inputs, labels, weights, seed) for seed in range(NETWORKS)]
    linear = np.mean([solution[0] for solution in solutions], axis=0)
    intercept = float(np.mean([solution[4] for solution in solutions]))
    hidden, bias = (np.concatenate([solution[part] for solution in solutions], axis=-1) for part in (1, 2))
    output = np.concatenate([solution[3] for solution in solutions]) / NETWORKS
    layers = [np.asarray(each, dtype=np.float32) for each in (mean, deviation, linear, hidden, bias, output)]
    return RelevanceModel.from_layers(layers, intercept, 0.0)


def fit_network(inputs: Array, labels: Array, weights: Array, seed: int) -> tuple[Array, Array, Array, Array, float]:
    """Return (linear, hidden, bias, output, intercept) of a network fitted by L-BFGS."""
    count = inputs.shape[1]
    shapes = [(count,), (count, UNITS), (UNITS,), (UNITS,), (1,)]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def split(vector: Array) -> list[Array]:
        return [part.reshape(shape) for part, shape in zip(np.split(vector, ends[:-1]), shapes, strict=True)]

    def loss(vector: Array) -> tuple[float, Array]:
        linear, hidden, bias, output, intercept = split(vector)
        activations = np.tanh(inputs @ hidden + bias)
        logits = inputs @ linear + activations @ output + intercept
        errors = weights * (1 / (1 + np.exp(-np.clip(logits, -30, 30))) - labels)
        inner = np.outer(errors, output) * (1 - activations**2)
        gradients = [inputs.T @ errors, inputs.T @ inner, inner.sum(axis=0), activations.T @ errors, errors.sum()]
        value = weights @ np.logaddexp(0, np.where(labels > 0, -logits, logits))
        penalised = vector.copy()
        penalised[-1] = 0
        gradient = np.concatenate([np.ravel(each) for each in gradients]) + 2 * PENALTY * penalised
        return float(value + PENALTY * penalised @ penalised), gradient

    start = np.random.default_rng(seed).normal(0, 0.3, int(ends[-1]))
    linear, hidden, bias, output, intercept = split(minimize(loss, start, jac=True, method="L-BFGS-B").x)
    return linear, hidden, bias, output, float(intercept[0])


def select_limit(answered: Sequence[Array]) -> float:
    """Return the limit that refuses a share of :data:`FALSE_REFUSALS` of the answered questions, mean over corpora."""
    limits = np.linspace(0.01, 0.6, 119)
    shares = [np.mean([(values < limit).mean() for values in answered]) for limit in limits]
    return float(limits[np.flatnonzero(np.array(shares) <= FALSE_REFUSALS)[-1]])


def compute_calibration_error(predictions: Sequence[Mapping[str, Array]], bins: int = 10) -> float:
    """Return the expected calibration error, with classes weighted as in training."""
    parts = [
        (each[name], name in (ANSWERED, IN_FIVE), share / len(each[name]))
        for each in predictions
        for name, share in WEIGHTS.items()
        if name in each
    ]
    predicted = np.concatenate([values for values, _, _ in parts])
    errors = np.concatenate([(values - label) * weight for values, label, weight in parts]) / len(predictions)
    places = np.minimum(bins - 1, (predicted * bins).astype(int))
    return round(float(sum(abs(errors[places == number].sum()) for number in range(bins))), 3)


def format_model(model: RelevanceModel) -> str:
    """Return a network as JSON with a line for each of its parts."""
    parts = {
        name: np.round(value, 4).tolist() if isinstance(value := getattr(model, name), np.ndarray) else round(value, 4)
        for name in model.__slots__
    }
    return "{\n" + ",\n".join(f'"{name}": {json.dumps(value)}' for name, value in parts.items()) + "\n}\n"


if __name__ == "__main__":
    main()
