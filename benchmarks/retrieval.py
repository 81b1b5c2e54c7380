"""Recall of the retrievers on benchmarks and on harder variants, with an ablation of the ``default`` scorer.

    python benchmarks/retrieval.py BEIR_DIR... [--json FILE] [--limit N] [--store DIR]

Four corpora are made of each folder: as it is; with all titles stripped; with documents joined by four into longer
ones, which are split into passages again; and as the sections of Markdown files, ten a file. Known items: one sentence
of a passage, put as a question by a fixed template, must find its passage.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from measured_rows import write_rows

from polyad import Engine
from polyad.config import ReadSettings, SplitSettings
from polyad.engine.settings import Settings
from polyad.indexing.split import SentenceSplitter
from polyad.model import Document, Evidence
from polyad.readers.folder.files import FileReader
from polyad.readers.format import Source
from polyad_bench.datasets.beir import Dataset, Question, load_beir
from polyad_bench.reports.tables import format_percent
from polyad_bench.runs.retriever_evaluation import (
    RetrieverResult,
    evaluate_retriever,
)
from polyad_readers.markup.markdown import read_markdown

K = 5
SEED = 7
JOINED = 4
SECTIONS = 10
KNOWN_ITEMS = 200


def main() -> None:
    """Evaluate all corpora and print a table for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="BEIR_DIR")
    parser.add_argument("--retrievers", default="default,hypersu,dense,bm25")
    parser.add_argument("--limit", type=int, help="only the first so many questions")
    parser.add_argument("--store", type=Path, help="keep the indexes here for the next run")
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as temporary:
        stores = arguments.store or Path(temporary)
        for folder in arguments.folders:
            dataset = load_beir(folder, arguments.limit)
            for corpus in corpora(dataset):
                with Engine.open(stores / f"{dataset.name}-{corpus.name}", settings=corpus.settings) as engine:
                    engine.index_documents(corpus.documents)
                    for retriever in arguments.retrievers.split(","):
                        result = ask(engine, retriever, corpus.queries, corpus.parts)
                        rows.append({"dataset": dataset.name, "corpus": corpus.name, **result.to_json(K)})
                        print(
                            dataset.name, corpus.name, f"{retriever:10} {format_percent(result.recall):>5}", flush=True
                        )
                    if corpus.name == "as it is":
                        rows += known_items(engine, dataset, load_documents(dataset))
    if arguments.json:
        write_rows(arguments.json, rows)


class Corpus(NamedTuple):
    """A variant of a data set; ``parts`` holds the original documents of joined documents."""

    name: str
    documents: Sequence[Document]
    queries: Sequence[Question]
    settings: Settings = Settings()
    parts: Mapping[str, Sequence[tuple[int, str]]] = MappingProxyType({})


def corpora(dataset: Dataset) -> Iterator[Corpus]:
    """Yield the variants of a data set."""
    documents = load_documents(dataset)
    yield Corpus("as it is", documents, dataset.queries)
    yield Corpus("no titles", [Document(d.id, "", d.text) for d in documents], dataset.queries)
    joined, moved = join(documents)
    queries = [Question(q.id, q.text, frozenset(moved[id] for id in q.gold)) for q in dataset.queries]
    yield Corpus("joined", joined, queries, Settings())
    yield Corpus("sections", *format_sections(documents, dataset.queries))


def load_documents(dataset: Dataset) -> list[Document]:
    """Return the documents of a data set."""
    results = FileReader(ReadSettings()).read([dataset.corpus])
    return [document for document in results if isinstance(document, Document)]


def join(documents: Sequence[Document]) -> tuple[list[Document], dict[str, str]]:
    """Join four documents under the title of the first, and return the position of each.

    The others keep their titles as the first words of their part.
    """
    joined = []
    moved = {}
    for start in range(0, len(documents), JOINED):
        group = documents[start : start + JOINED]
        text = "\n\n".join([group[0].text, *(f"{document.title}. {document.text}" for document in group[1:])])
        joined.append(Document(group[0].id, group[0].title, text))
        moved.update({document.id: group[0].id for document in group})
    return joined, moved


def format_sections(
    documents: Sequence[Document], queries: Sequence[Question]
) -> tuple[list[Document], Sequence[Question], Settings, dict[str, list[tuple[int, str]]]]:
    """Write Markdown files of ten documents each, with titles as headings."""
    files = []
    parts: dict[str, list[tuple[int, str]]] = {}
    for first in range(0, len(documents), SECTIONS):
        id, text = f"handbook {first}", f"# Handbook {first}\n\n"
        parts[id] = []
        for document in documents[first : first + SECTIONS]:
            parts[id].append((len(text) if parts[id] else 0, document.id))
            text += f"## {document.title}\n\n{document.text}\n\n"
        content = read_markdown(Source.from_bytes(text.encode()))
        files.append(Document(id, content.title, content.text, sections=content.sections))
    return files, queries, Settings(), parts


def split_by_parts(evidence: Evidence, parts: Mapping[str, Sequence[tuple[int, str]]]) -> Evidence:
    """Return the evidence with each passage assigned to the original documents that begin in it."""
    hits = []
    for hit in evidence.passages:
        starts, ids = zip(*parts.get(hit.passage.document_id, [(0, hit.passage.document_id)]), strict=True)
        first, end = bisect_right(starts, hit.passage.start) - 1, bisect_left(starts, hit.passage.end)
        hits += [replace(hit, passage=replace(hit.passage, document_id=id)) for id in ids[first:end]]
    return replace(evidence, passages=tuple(hits))


def known_items(engine: Engine, dataset: Dataset, documents: Sequence[Document]) -> list[dict[str, object]]:
    """Return the recall of single-hop questions for ``default`` and its ablations."""
    queries = single_hop(documents)
    rows = []
    for retriever in ("default", "dense", "bm25"):
        result = ask(engine, retriever, queries)
        rows.append({"dataset": dataset.name, "corpus": "known items", **result.to_json(K)})
        print(dataset.name, "known items", f"{retriever:10} {format_percent(result.recall):>5}", flush=True)
    fused = sum(query.id in fuse(engine, query.text) for query in queries) / len(queries)
    rows.append({"dataset": dataset.name, "corpus": "known items", "retriever": "dense+bm25", f"recall@{K}": fused})
    print(dataset.name, "known items", f"{'dense+bm25':10} {100 * fused:5.1f}", flush=True)
    return rows


def single_hop(documents: Sequence[Document]) -> list[Question]:
    """Generate questions from one sentence of a passage each: the sentence without its last word."""
    chooser = random.Random(SEED)
    splitter = SentenceSplitter(SplitSettings())
    queries = []
    for document in chooser.sample(list(documents), min(KNOWN_ITEMS, len(documents))):
        sentences = [span.of(document.text) for span in splitter.sentences(document.text)]
        long = [sentence for sentence in sentences if len(sentence.split()) >= 8]
        if long:
            words = re.sub(r"[^\w\s'-]", " ", chooser.choice(long)).split()
            queries.append(Question(document.id, f"Is it true that {' '.join(words[:-1])}?", frozenset({document.id})))
    return queries


def fuse(engine: Engine, question: str) -> list[str]:
    """Fuse dense and BM25 rankings by reciprocal ranks: the baseline for single-hop questions."""
    scores: dict[str, float] = {}
    for retriever in ("dense", "bm25"):
        hits = engine.search(question, 50, retriever=retriever, merge=False).passages
        for rank, id in enumerate(dict.fromkeys(hit.passage.document_id for hit in hits)):
            scores[id] = scores.get(id, 0.0) + 1 / (60 + rank)
    return sorted(scores, key=lambda id: (-scores[id], id))[:K]


def ask(
    engine: Engine,
    retriever: str,
    queries: Sequence[Question],
    parts: Mapping[str, Sequence[tuple[int, str]]] = MappingProxyType({}),
) -> RetrieverResult:
    """Evaluate one retriever on the questions."""
    return evaluate_retriever(
        retriever,
        lambda question, k: split_by_parts(engine.search(question, k, retriever=retriever, merge=False), parts),
        queries,
        K,
    )


if __name__ == "__main__":
    main()
