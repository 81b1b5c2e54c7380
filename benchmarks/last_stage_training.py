"""Trains the last stage of ``default`` on every kind of text, and compares all rankings on each.

    python benchmarks/last_stage_training.py BEIR_DIR... [--sampled BEIR_DIR...] [--joined BEIR_DIR...]
        [--kinds BEIR_DIR...] [--everyday CORPUS...] [--prose FOLDER] [--test BEIR_DIR...] [--left-out NAME...]
        [--by-other BEIR_DIR...] [--weights FILE] [--store DIR] [--vectors FILE] [--embedder NAME] [--other NAME]
        [--weigh NAME=FACTOR...] [--measure] [--to DIR] [--json FILE]

BEIR_DIR are multi-hop questions, asked of their corpus as it is; with ``--sampled``, some of them of the articles that
answer them and others drawn at random; with ``--joined``, of documents of ten articles. ``--kinds`` are questions of
any other kind. With a second embedder, ``--other``, the everyday corpora are asked once more, and the questions of
``--by-other``: what similarity says depends on the encoder.

An everyday CORPUS is a folder with the files of an organisation in ``corpus`` and ``questions.jsonl`` (``question``,
``gold``: ends of document ids, or ``gold_pattern``: a regular expression). Each index also yields known items: words
that few of its passages contain together. A share of the questions is asked as if the encoder could not be trusted, so
that the network learns what to do then. Sets named by ``--test`` are only measured, with ``--left-out`` also by a
network that was trained without the set. The stages before are those of ``--weights`` (by default the bundled ones).

Printed for each set: share of questions whose first hit is gold, and Recall@5, of BM25, similarity, their reciprocal
rank fusion, the stages before, and all stages.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from measured_rows import write_rows
from second_stage_training import Corpus, StoredVectors, build_article_test
from sentence_evidence import contains_sentence, normalize_texts

from polyad import Engine
from polyad.config import ReadSettings
from polyad.engine.loaders import load_embedder
from polyad.model import Document, FloatArray
from polyad.protocols.components import Embedder
from polyad.readers.folder.files import FileReader
from polyad.retrieval.default.encoder_trust import EncoderTrust
from polyad.retrieval.default.last_stage import LAST_FEATURES
from polyad.retrieval.default.ranking_network import RankingNetwork
from polyad.retrieval.default.scorer import WEIGHTS_FILE, LinearScorer
from polyad.text.digests import hash_questions
from polyad_bench.datasets.beir import Dataset, load_beir
from polyad_bench.training.last_stage_training import (
    KNOWN_ITEMS,
    KNOWN_ITEMS_WEIGHT,
    build_known_items,
    weigh_examples,
)
from polyad_bench.training.linear_scorer import K, TrainingExample, compute_document_recall, extract_signals
from polyad_bench.training.network_training import LAST_STAGE, fit_network

SEED = 7
TRUSTS = (0.0, 0.3, 0.6)
UNTRUSTED_SHARE = 4
"""One question in so many is also asked with less trust in the encoder."""

KNOWN_ITEMS_NAME = ", known items"

SAMPLED_QUESTIONS, SAMPLED_ARTICLES = 200, 1000
"""Questions of a large benchmark, and articles beside those that answer them."""

MULTI_HOP_WEIGHT, PROSE_WEIGHT, UNTRUSTED_WEIGHT = 3.0, 2.0, 0.3
"""Weights of multi-hop questions, of questions about books, and of those asked with less trust in the encoder in
training, where other questions have 1. With 1 for less trust, Recall@5 of musique falls by 2 points."""

FUSION_CONSTANT = 60
DEPTH = 100

Holds = Callable[[str, str], bool]
"""Returns whether a passage, by its id, holds a piece of gold: a document, an article of a joined one, a sentence."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of one set about an index.

    Attributes:
        name: Name of the set.
        examples: Examples with the features of the last stage.
        weight: Weight of the set in training.
        rankings: Ids of the best documents of each question, by name of a ranking; empty where passages count.
        gold: Gold documents of each question.
    """

    name: str
    examples: Sequence[TrainingExample]
    weight: float = 1.0
    rankings: Sequence[Mapping[str, Sequence[str]]] = ()
    gold: Sequence[Sequence[str]] = ()


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks sets of questions.

    Attributes:
        store: Folder of the indexes.
        embedder: Embeds the texts.
        scorer: The stages before the last.
        suffix: Ends the names of the sets.
    """

    store: Path
    embedder: Embedder
    scorer: LinearScorer
    suffix: str = ""

    def open(self, name: str) -> Engine:
        """Open the index of a set."""
        return Engine.open(self.store / f"{name}{self.suffix}".replace(" ", "-"), embedder=self.embedder)

    def ask_beir(
        self, folder: Path, shape: str = "as it is", weight: float = 1.0, sampled: bool = False
    ) -> Iterator[QuestionSet]:
        """Ask the questions of a benchmark, or with ``sampled`` some of them."""
        dataset = load_beir(folder)
        read = FileReader(ReadSettings()).read([dataset.corpus])
        articles = {each.id: each for each in read if isinstance(each, Document)}
        if sampled:
            dataset, articles = sample_questions(dataset, articles)
        documents, places = Corpus(dataset.name, shape, articles, [dataset]).build_documents()
        name = dataset.name if shape == "as it is" else f"{dataset.name} {shape}"
        with self.open(name) as engine:
            engine.index_documents(documents)
            holds = build_article_test(engine, places)
            questions = [(query.text, sorted(query.gold)) for query in dataset.queries]
            yield from self.ask(engine, name, questions, holds, by_document=not places, weight=weight)

    def ask_everyday(self, folder: Path) -> Iterator[QuestionSet]:
        """Ask the questions of an everyday corpus; lists and counts, which have many gold documents, are left out."""
        with self.open(folder.name) as engine:
            engine.index([folder / "corpus"])
            snapshot = engine.snapshot()
            ids = [id.rpartition("#")[0] for id in snapshot.ids("passage", list(range(snapshot.row_count("passage"))))]
            questions = []
            for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                pattern = row.get("gold_pattern") or "|".join(
                    rf"/{re.escape(end)}($|[:#!?])" for end in row.get("gold", ())
                )
                gold = [id for id in dict.fromkeys(ids) if pattern and re.search(pattern, id)]
                if gold and row["kind"] not in ("list", "count"):
                    history = row.get("history")
                    earlier = history if isinstance(history, list) else []
                    questions.append((" ".join([*earlier, row["question"]]), gold))
            yield from self.ask(engine, folder.name, questions, _is_of_document, any_gold=True)

    def ask_prose(self, folder: Path) -> Iterator[QuestionSet]:
        """Ask questions about books, whose evidence are sentences."""
        questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
        texts: dict[str, str] = {}
        with self.open("prose") as engine:
            engine.index(sorted(folder.glob("*.txt")))

            def holds(passage_id: str, sentence: str) -> bool:
                if passage_id not in texts:
                    texts[passage_id] = normalize_texts([engine.catalogue.passage(passage_id).text])
                return contains_sentence(sentence, texts[passage_id])

            pairs = [(question["text"], question["evidence"]) for question in questions]
            yield from self.ask(engine, "prose", pairs, holds, by_document=False, weight=PROSE_WEIGHT)

    def ask(
        self,
        engine: Engine,
        name: str,
        questions: Sequence[tuple[str, Sequence[str]]],
        holds: Holds,
        *,
        by_document: bool = True,
        any_gold: bool = False,
        weight: float = 1.0,
    ) -> Iterator[QuestionSet]:
        """Yield the questions, some of them with less trust, and known items of the index."""
        examples = self.build_examples(engine, questions, holds, by_document, any_gold)
        texts = [text for text, _ in questions]
        rankings = [rank_documents(engine, text) for text in texts] if by_document else ()
        name += self.suffix
        yield QuestionSet(name, examples, weight, rankings, [gold for _, gold in questions])
        for place, trust in enumerate(TRUSTS):
            part = questions[place :: UNTRUSTED_SHARE * len(TRUSTS)]
            fixed = EncoderTrust({"": trust}, {"": 1})
            question_set = self.build_examples(engine, part, holds, by_document, any_gold, fixed)
            yield QuestionSet(f"{name}, trust {trust}", question_set, UNTRUSTED_WEIGHT * weight)
        known_items = weigh_examples(engine, build_known_items(engine, KNOWN_ITEMS, SEED), self.scorer)
        yield QuestionSet(f"{name}{KNOWN_ITEMS_NAME}", known_items, KNOWN_ITEMS_WEIGHT)
        print(f"features of {name}", flush=True)

    def build_examples(
        self,
        engine: Engine,
        questions: Sequence[tuple[str, Sequence[str]]],
        holds: Holds,
        by_document: bool = True,
        any_gold: bool = False,
        trust: EncoderTrust | None = None,
    ) -> list[TrainingExample]:
        """Return the examples of the last stage; with ``any_gold``, any gold document is all of the evidence."""
        examples = []
        signals = extract_signals(engine, [text for text, _ in questions], trust)
        for (text, gold), candidates in zip(questions, signals, strict=True):
            table = [[holds(passage, piece) for piece in gold] for passage in candidates.passages]
            held = np.array(table, dtype=bool).reshape(-1, len(gold))
            held = np.array(held.any(axis=1, keepdims=True)) if any_gold else held
            documents = candidates.documents if by_document else ()
            examples.append(TrainingExample(candidates.signals, held, candidates.linkability, documents, text))
        return weigh_examples(engine, examples, self.scorer, trust)


def sample_questions(dataset: Dataset, articles: Mapping[str, Document]) -> tuple[Dataset, dict[str, Document]]:
    """Return some of the questions of a benchmark, with their gold articles among others, drawn at random."""
    generator = random.Random(1)
    queries = generator.sample(dataset.queries, min(len(dataset.queries), SAMPLED_QUESTIONS))
    gold = {id for query in queries for id in query.gold}
    others = [id for id in articles if id not in gold]
    generator.shuffle(others)
    selected = [*(id for id in articles if id in gold), *others[:SAMPLED_ARTICLES]]
    generator.shuffle(selected)
    return replace(dataset, queries=tuple(queries)), {id: articles[id] for id in selected}


def _is_of_document(passage_id: str, document: str) -> bool:
    return passage_id.rpartition("#")[0] == document


def rank_documents(engine: Engine, question: str) -> dict[str, list[str]]:
    """Return the best documents by BM25, by similarity and by the fusion of both."""
    snapshot = engine.snapshot()
    vectors = engine.components.embedder.encode([question], "query")
    rows = {
        "bm25": snapshot.search_terms(question, DEPTH)[0],
        "dense": snapshot.nearest("passage", vectors, DEPTH)[0][0],
    }
    ranked = {
        name: list(dict.fromkeys(id.rpartition("#")[0] for id in snapshot.ids("passage", each.tolist())))
        for name, each in rows.items()
    }
    scores: dict[str, float] = {}
    for documents in ranked.values():
        for rank, document in enumerate(documents, 1):
            scores[document] = scores.get(document, 0) + 1 / (FUSION_CONSTANT + rank)
    return {**ranked, "fusion": sorted(scores, key=lambda document: -scores[document])}


def main() -> None:
    """Train the network, write the weights and print the figures of each set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="BEIR_DIR")
    parser.add_argument("--everyday", nargs="+", type=Path, default=[], metavar="CORPUS")
    parser.add_argument("--prose", type=Path, help="books and their questions.jsonl")
    parser.add_argument("--sampled", nargs="+", type=Path, default=[], metavar="BEIR_DIR", help="some questions of it")
    parser.add_argument("--kinds", nargs="+", type=Path, default=[], metavar="BEIR_DIR", help="not multi-hop")
    parser.add_argument("--joined", nargs="+", type=Path, default=[], metavar="BEIR_DIR", help="ten articles in one")
    parser.add_argument("--test", nargs="+", type=Path, default=[], metavar="BEIR_DIR", help="measured, not trained on")
    parser.add_argument("--weights", type=Path, help="weights whose first two stages are used")
    parser.add_argument(
        "--weigh",
        nargs="+",
        type=parse_factor,
        default=[],
        metavar="NAME=FACTOR",
        help="factor of the weight of a set's questions",
    )
    parser.add_argument("--measure", action="store_true", help="train nothing, measure the last stage of the weights")
    parser.add_argument("--store", type=Path, help="keep the indexes here for the next run")
    parser.add_argument("--vectors", type=Path, help="keep the vectors of texts in this file")
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2")
    parser.add_argument("--other", metavar="NAME", help="second embedder, of several languages")
    parser.add_argument("--by-other", nargs="+", type=Path, default=[], metavar="BEIR_DIR", help="asked with --other")
    parser.add_argument("--to", type=Path, help="write the weights here")
    parser.add_argument("--left-out", nargs="+", default=[], metavar="NAME", help="also train without this set")
    parser.add_argument("--json", type=Path, help="save the figures here")
    arguments = parser.parse_args()
    scorer = LinearScorer.load(arguments.weights) if arguments.weights else LinearScorer.from_settings("")
    stores = nullcontext(arguments.store) if arguments.store else tempfile.TemporaryDirectory()
    with stores as store:
        asker = Asker(Path(store), open_embedder(arguments.embedder, arguments.vectors), scorer)
        training = list(list_training(asker, arguments))
        tests = [each for folder in arguments.test for each in asker.ask_beir(folder)]
        if arguments.other:
            embedder = open_embedder(arguments.other, arguments.vectors)
            other = replace(asker, embedder=embedder, suffix=f" by {arguments.other}")
            training += list_other_training(other, arguments)
    factors = dict(arguments.weigh)
    training = [
        each if each.name.endswith(KNOWN_ITEMS_NAME) else replace(each, weight=each.weight * factors.get(name, 1.0))
        for each in training
        for name in [get_set_name(each)]
    ]
    network = scorer.last_network if arguments.measure else train(training)
    assert network
    if arguments.to:
        write(replace(scorer, last_network=network), training, arguments.to)
    rows = [row for each in [*training, *tests] if each.gold for row in report(each, network, "")]
    for name in arguments.left_out:
        others = [each for each in training if get_set_name(each) != name]
        network = train(others)
        left_out = [each for each in training if each.gold and get_set_name(each) == name]
        rows += [row for each in left_out for row in report(each, network, name)]
    if arguments.json:
        write_rows(arguments.json, rows)


def parse_factor(text: str) -> tuple[str, float]:
    """Parse the name of a set and a factor, such as "code=2"."""
    name, _, factor = text.partition("=")
    return name, float(factor)


def get_set_name(question_set: QuestionSet) -> str:
    """Return the name of a set without its shape, its trust and its embedder."""
    return question_set.name.split(",")[0].split()[0]


def open_embedder(name: str, vectors: Path | None) -> Embedder:
    """Load an embedder, which keeps its vectors in a file of its own beside ``vectors``, if one is given."""
    embedder = load_embedder(name)
    return StoredVectors(embedder, vectors.with_stem(f"{vectors.stem}-{name}")) if vectors else embedder


def list_training(asker: Asker, arguments: argparse.Namespace) -> Iterator[QuestionSet]:
    """Yield all sets that the network is trained on."""
    for folder in arguments.folders:
        yield from asker.ask_beir(folder, weight=MULTI_HOP_WEIGHT)
    for folder in arguments.sampled:
        yield from asker.ask_beir(folder, weight=MULTI_HOP_WEIGHT, sampled=True)
    for folder in arguments.joined:
        yield from asker.ask_beir(folder, "joined by 10", MULTI_HOP_WEIGHT)
    for folder in arguments.kinds:
        yield from asker.ask_beir(folder)
    for folder in arguments.everyday:
        yield from asker.ask_everyday(folder)
    if arguments.prose:
        yield from asker.ask_prose(arguments.prose)


def list_other_training(asker: Asker, arguments: argparse.Namespace) -> Iterator[QuestionSet]:
    """Yield the sets that are asked with the second embedder."""
    for folder in arguments.everyday:
        yield from asker.ask_everyday(folder)
    for folder in arguments.by_other:
        yield from asker.ask_beir(folder)


def train(sets: Sequence[QuestionSet]) -> RankingNetwork:
    """Return the network of the last stage, trained on the examples of all sets."""
    return fit_network([each.examples for each in sets], SEED, LAST_STAGE, [each.weight for each in sets])


def write(scorer: LinearScorer, sets: Sequence[QuestionSet], directory: Path) -> None:
    """Write the weights of all stages."""
    texts = [example.text for each in sets if each.gold for example in each.examples]
    names = tuple(dict.fromkeys([*scorer.trained_on, *(each.name.split(",")[0] for each in sets)]))
    digests = tuple(sorted({*scorer.question_digests, *hash_questions(texts)}))
    directory.mkdir(parents=True, exist_ok=True)
    text = replace(scorer, trained_on=names, question_digests=digests).to_text()
    (directory / WEIGHTS_FILE).write_text(text, encoding="utf-8")


def report(question_set: QuestionSet, network: RankingNetwork, left_out: str) -> Iterator[dict[str, object]]:
    """Print and yield the share of first hits and the recall of each ranking."""
    figures = {
        name: np.mean(
            [
                _measure_documents(each[name], gold)
                for each, gold in zip(question_set.rankings, question_set.gold, strict=True)
            ],
            axis=0,
        )
        for name in ("bm25", "dense", "fusion")
        if question_set.rankings
    }
    before = LAST_FEATURES.index(LAST_STAGE.score)
    scores = {
        "before": [example.signals[:, before] for example in question_set.examples],
        "default": [network.score(example.signals) for example in question_set.examples],
    }
    for name, each in scores.items():
        pairs = zip(question_set.examples, each, strict=True)
        figures[name] = np.mean([_measure_scores(example, score) for example, score in pairs], axis=0)
    text = "  ".join(f"{name} {100 * first:5.1f} {100 * recall:5.1f}" for name, (first, recall) in figures.items())
    print(
        f"{question_set.name + (', left out' if left_out else ''):40} {len(question_set.examples):4}  {text}",
        flush=True,
    )
    for name, (first, recall) in figures.items():
        yield {
            "set": question_set.name,
            "ranking": name,
            "left out": left_out,
            "questions": len(question_set.examples),
            "first": round(float(first), 4),
            f"recall@{K}": round(float(recall), 4),
        }


def _measure_documents(ranked: Sequence[str], gold: Sequence[str]) -> tuple[float, float]:
    return float(ranked[:1] != [] and ranked[0] in gold), len({*ranked[:K]} & {*gold}) / len(gold)


def _measure_scores(example: TrainingExample, scores: FloatArray) -> tuple[float, float]:
    first = bool(example.is_gold[np.argmax(scores)]) if len(scores) else False
    return float(first), compute_document_recall(example, scores, K)


if __name__ == "__main__":
    main()
