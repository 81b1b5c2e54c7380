"""Trains the network of the second stage of ``default``, and measures it on families of questions that it never saw.

    python benchmarks/second_stage_training.py BEIR_DIR... [--test BEIR_DIR...] [--first-stage FILE] [--store DIR]
        [--vectors FILE] [--embedder NAME] [--shapes SHAPE...] [--to DIR] [--left-out FAMILY...] [--json FILE]

Questions are asked of their own corpus as it is, and at full size: among the articles of all given benchmarks of the
family (those named alike but for what follows a hyphen). Of families with several benchmarks, those of up to
:data:`MAX_SHAPED` articles are also used without titles, with ten articles joined to one document without titles, and
with four joined to one Markdown document. The network is trained on BEIR_DIR; the benchmarks of ``--test`` are only
measured. With ``--left-out`` the questions of these families are also measured with a network that was trained without
the family. Weights have the first stage of ``--first-stage`` (by default the bundled one), which
``default_training.py`` trains.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from measured_rows import write_rows

from polyad import Engine
from polyad.config import ReadSettings
from polyad.engine.loaders import load_embedder
from polyad.model import Document, FloatArray, Passage
from polyad.protocols.components import Embedder, TextKind
from polyad.readers.folder.files import FileReader
from polyad.retrieval.default.ranking_network import RankingNetwork
from polyad.retrieval.default.scorer import WEIGHTS_FILE, LinearScorer
from polyad.retrieval.default.second_stage import FEATURES, compute_second_stage_weight
from polyad.text.digests import hash_questions
from polyad_bench.datasets.beir import Dataset, load_beir
from polyad_bench.measures.significance import bootstrap_interval
from polyad_bench.training.linear_scorer import K, TrainingExample, compute_document_recall, extract_signals
from polyad_bench.training.network_training import SelectNetwork, compare_examples, train_second_stage

SEED = 7
MAX_SHAPED = 8000
AS_IT_IS, FULL_SIZE = "as it is", "full size"
SHAPES = (AS_IT_IS, "no titles", "joined by 10", "Markdown by 4", FULL_SIZE)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents to index, and the data sets whose questions are asked.

    Attributes:
        name: Name of the data set or family.
        shape: How documents are made of its articles.
        articles: The articles by id.
        datasets: The data sets.
    """

    name: str
    shape: str
    articles: Mapping[str, Document]
    datasets: Sequence[Dataset]

    def build_documents(self) -> tuple[list[Document], dict[str, tuple[str, int, int]]]:
        """Return the documents, and the place of each article: document, start and end."""
        articles = list(self.articles.values())
        if self.shape in (AS_IT_IS, FULL_SIZE):
            return articles, {}
        if self.shape == "no titles":
            return [Document(article.id, "", article.text) for article in articles], {}
        random.Random(SEED).shuffle(articles)
        count = int(self.shape.rpartition(" ")[2])
        documents, places = [], {}
        for first in range(0, len(articles), count):
            id, text = f"joined {first // count}", ""
            for article in articles[first : first + count]:
                text += f"# {article.title}\n\n" if self.shape.startswith("Markdown") else ""
                places[article.id] = id, len(text), len(text) + len(article.text)
                text += f"{article.text}\n\n"
            documents.append(Document(id, "", text))
        return documents, places


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of a data set about a corpus, as examples of the first stage.

    Attributes:
        corpus: The corpus.
        dataset: Name of the data set.
        examples: The examples.
    """

    corpus: Corpus
    dataset: str
    examples: Sequence[TrainingExample]


class StoredVectors:
    """An embedder that keeps vectors in a SQLite file, so that texts of several corpora are embedded once.

    Args:
        embedder: Computes the vectors.
        file: The file.
    """

    def __init__(self, embedder: Embedder, file: Path) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension
        self._embedder = embedder
        self._database = sqlite3.connect(file, check_same_thread=False)
        self._database.execute("create table if not exists v (k blob primary key, x blob) without rowid")

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return the vectors of texts; those that the file lacks are computed and kept."""
        keys = [
            hashlib.blake2b(f"{kind}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
            for text in texts
        ]
        find = "select x from v where k = ?"
        rows = {key: self._database.execute(find, (key,)).fetchone() for key in keys}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if rows[key] is None}
        if missing:
            vectors = zip(missing, self._embedder.encode(list(missing.values()), kind), strict=True)
            rows |= {key: (vector.tobytes(),) for key, vector in vectors}
            added = [(key, *rows[key]) for key in missing]
            with self._database:  # one transaction, because each waits for the disk
                self._database.executemany("insert or ignore into v values (?, ?)", added)
        vectors_in_order = [np.frombuffer(rows[key][0], np.float32) for key in keys]
        return np.array(vectors_in_order, dtype=np.float32).reshape(len(texts), self.dimension)


def main() -> None:
    """Train the network, write the weights and print the recall on each set and shape."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="BEIR_DIR")
    parser.add_argument("--test", nargs="+", type=Path, default=[], metavar="BEIR_DIR", help="measured, not trained on")
    parser.add_argument("--first-stage", type=Path, help="weights whose first stage is used")
    parser.add_argument("--store", type=Path, help="keep the indexes here for the next run")
    parser.add_argument("--vectors", type=Path, help="keep the vectors of texts in this file")
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES, help="by default all")
    parser.add_argument("--weights", type=Path, help="measure this file of weights and train nothing")
    parser.add_argument("--to", type=Path, help="write the weights here")
    parser.add_argument("--left-out", nargs="+", default=[], metavar="FAMILY", help="also train without it")
    parser.add_argument("--json", type=Path, help="save the figures here")
    arguments = parser.parse_args()
    embedder = load_embedder(arguments.embedder)
    if arguments.vectors:
        embedder = StoredVectors(embedder, arguments.vectors)
    first = arguments.weights or arguments.first_stage
    scorer = LinearScorer.load(first) if first else LinearScorer.from_settings("")
    training = {folder.name for folder in arguments.folders}
    stores = nullcontext(arguments.store) if arguments.store else tempfile.TemporaryDirectory()
    with stores as store:
        open_index = IndexOpener(Path(store), embedder)
        datasets = [load_beir(folder) for folder in [*arguments.folders, *arguments.test]]
        corpora = [corpus for corpus in list_corpora(datasets) if corpus.shape in arguments.shapes]
        skipped = training if arguments.weights else set()
        question_sets = [each for corpus in corpora for each in ask(corpus, skipped, open_index)]
        rows = measure(question_sets, training, scorer, open_index, arguments)
    if arguments.json:
        write_rows(arguments.json, rows)


@dataclass(frozen=True, slots=True)
class IndexOpener:
    """Opens the index of a corpus.

    Attributes:
        store: Folder of the indexes.
        embedder: Embeds the texts.
    """

    store: Path
    embedder: Embedder

    def __call__(self, corpus: Corpus) -> Engine:
        """Open the index; it is built by :func:`ask`."""
        name = f"{self.embedder.name} {corpus.name} {corpus.shape}".replace(" ", "-")
        return Engine.open(self.store / name, embedder=self.embedder)


def list_corpora(datasets: Sequence[Dataset]) -> Iterator[Corpus]:
    """Yield each data set in each shape, and each family at full size."""
    families: dict[str, list[Dataset]] = {}
    for dataset in datasets:
        families.setdefault(get_family(dataset.name), []).append(dataset)
    for family, members in families.items():
        joined: dict[str, Document] = {}
        for dataset in members:
            documents = FileReader(ReadSettings()).read([dataset.corpus])
            articles = {each.id: each for each in documents if isinstance(each, Document)}
            joined |= articles
            is_shaped = len(members) > 1 and len(articles) <= MAX_SHAPED
            for shape in SHAPES[:-1] if is_shaped else (AS_IT_IS,):
                yield Corpus(dataset.name, shape, articles, [dataset])
        if len(members) > 1:
            yield Corpus(family, FULL_SIZE, joined, members)


def get_family(name: str) -> str:
    """Return the name of a set without its suffix: "musique" for "musique-more"."""
    return name.split("-")[0]


def build_article_test(engine: Engine, places: Mapping[str, tuple[str, int, int]]) -> Callable[[str, str], bool]:
    """Return a function that states whether a passage, by its id, holds an article.

    Args:
        engine: Engine of the index.
        places: Document, start and end of each article; empty if each article is a document.
    """
    passages: dict[str, Passage] = {}

    def holds(passage_id: str, article: str) -> bool:
        document = passage_id.rpartition("#")[0]
        if not places:
            return document == article
        id, start, end = places[article]
        if document != id:
            return False
        passage = passages.setdefault(passage_id, engine.catalogue.passage(passage_id))
        shared = min(passage.end, end) - max(passage.start, start)
        return 2 * shared >= min(end - start, passage.end - passage.start)

    return holds


def ask(corpus: Corpus, skipped: set[str], open_index: IndexOpener) -> Iterator[QuestionSet]:
    """Index a corpus, and yield the examples of each of its data sets that is not skipped."""
    datasets = [dataset for dataset in corpus.datasets if dataset.name not in skipped]
    if not datasets:
        return
    documents, places = corpus.build_documents()
    with open_index(corpus) as engine:
        engine.index_documents(documents)

        holds = build_article_test(engine, places)
        for dataset in datasets:
            examples = []
            signals = extract_signals(engine, [query.text for query in dataset.queries])
            for query, candidates in zip(dataset.queries, signals, strict=True):
                table = [[holds(passage, gold) for gold in sorted(query.gold)] for passage in candidates.passages]
                ids = () if places else candidates.documents
                held = np.array(table, dtype=bool).reshape(-1, len(query.gold))
                examples.append(TrainingExample(candidates.signals, held, candidates.linkability, ids, query.text))
            yield QuestionSet(corpus, dataset.name, examples)
    print(f"signals of {corpus.name}, {corpus.shape}: {len(corpus.articles):,} articles", flush=True)


def measure(
    question_sets: Sequence[QuestionSet],
    training: set[str],
    scorer: LinearScorer,
    open_index: IndexOpener,
    arguments: argparse.Namespace,
) -> list[dict[str, object]]:
    """Train networks, write the weights, and return rows of recall on all questions."""
    seen = [each for each in question_sets if each.dataset in training]
    rows = [
        row
        for each in question_sets
        for row in report("first stage", each, each.examples, get_first_scores(each, scorer))
    ]
    if arguments.weights:
        trained = scorer
    else:
        network = train(seen, scorer, open_index)
        scorer = replace(scorer, last_network=None)  # reads the scores of the second stage, so it is trained after it
        texts = [example.text for each in seen for example in each.examples]
        names = tuple(dict.fromkeys([*scorer.trained_on, *(each.dataset for each in seen)]))
        digests = tuple(sorted({*scorer.question_digests, *hash_questions(texts)}))
        trained = replace(scorer, network=network, trained_on=names, question_digests=digests)
        if arguments.to:
            arguments.to.mkdir(parents=True, exist_ok=True)
            (arguments.to / WEIGHTS_FILE).write_text(trained.to_text(), encoding="utf-8")
    tests = [each for each in question_sets if each.dataset not in training]
    rows += evaluate("both stages", tests, trained, open_index)
    for family in arguments.left_out:
        others = [each for each in seen if get_family(each.dataset) != family]
        left_out = [each for each in question_sets if get_family(each.dataset) == family]
        network = train(others, scorer, open_index)
        rows += evaluate("family left out", left_out, replace(scorer, network=network), open_index)
    return rows


def train(question_sets: Sequence[QuestionSet], scorer: LinearScorer, open_index: IndexOpener) -> RankingNetwork | None:
    """Return a network trained on the questions."""

    def compare(select: SelectNetwork | None) -> list[list[TrainingExample]]:
        return [compare_questions(each, scorer, open_index, select) for each in question_sets]

    return train_second_stage(compare, SEED)


def compare_questions(
    question_set: QuestionSet, scorer: LinearScorer, open_index: IndexOpener, select: SelectNetwork | None
) -> list[TrainingExample]:
    """Return the compared examples of questions; see :func:`compare_examples`."""
    with open_index(question_set.corpus) as engine:
        return compare_examples(engine, question_set.examples, scorer, select)


def evaluate(
    name: str, question_sets: Sequence[QuestionSet], scorer: LinearScorer, open_index: IndexOpener
) -> Iterator[dict[str, object]]:
    """Yield the recall of both stages on the questions of each data set and shape."""
    network = scorer.network
    assert network
    for each in question_sets:
        compared = compare_questions(each, scorer, open_index, lambda _: network)
        yield from report(name, each, compared, [get_final_scores(example, network) for example in compared])


def get_first_scores(question_set: QuestionSet, scorer: LinearScorer) -> list[FloatArray]:
    """Return the scores of the first stage."""
    return [example.compute_scores(scorer) for example in question_set.examples]


def get_final_scores(compared: TrainingExample, network: RankingNetwork) -> FloatArray:
    """Return the scores of both stages, for an example of the last round."""
    weight = compute_second_stage_weight(compared.linkability, len(compared.signals))
    first: FloatArray = compared.signals[:, FEATURES.index("score of the first stage")]
    scores: FloatArray = (1 - weight) * first + weight * network.score(compared.signals)
    return scores


def report(
    name: str, question_set: QuestionSet, examples: Sequence[TrainingExample], scores: Sequence[FloatArray]
) -> Iterator[dict[str, object]]:
    """Print and yield the recall, of all questions and by the number of gold documents, with its interval."""
    recalls = [compute_document_recall(example, each, K) for example, each in zip(examples, scores, strict=True)]
    hops = [example.holds.shape[1] for example in examples]
    for count in (None, *(sorted(set(hops)) if len(set(hops)) > 1 else ())):
        values = [value for value, hop in zip(recalls, hops, strict=True) if count in (None, hop)]
        low, high = bootstrap_interval(values, SEED)
        mean = sum(values) / len(values)
        label = f"{name}, {question_set.dataset} {question_set.corpus.shape}{f', {count} gold' if count else ''}"
        print(f"{label:70} {100 * mean:5.1f} ({100 * low:.1f} to {100 * high:.1f}) of {len(values)}", flush=True)
        yield {
            "weights": name,
            "set": question_set.dataset,
            "shape": question_set.corpus.shape,
            "articles": len(question_set.corpus.articles),
            "gold": count,
            "questions": len(values),
            f"recall@{K}": round(mean, 4),
            "interval": [round(low, 4), round(high, 4)],
        }


if __name__ == "__main__":
    main()
