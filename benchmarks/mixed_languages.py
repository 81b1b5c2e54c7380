"""Recall and refusal in an index of several languages: own language, and across languages, in several orders.

    python benchmarks/mixed_languages.py LANGUAGES --store DIR [--order en-de-zh-ar ...] [--json FILE]

LANGUAGES holds BEIR folders of parallel questions and passages, named by ISO 639-1 codes. The paragraphs are shared
out: half of them are indexed in English, a sixth each in the three other languages, one language after the other. Every
question is asked in every language: its passage is in the index in one of them.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from measured_rows import write_rows
from refusal import read_lines

from polyad import Engine
from polyad.model import Document

LANGUAGES = ("en", "de", "en", "zh", "en", "ar")
"""Languages of six consecutive paragraphs, in the order of the first question about each."""

ORDERS = ("en-de-zh-ar", "zh-ar-de-en", "de-en-ar-zh")
RETRIEVERS = ("default", "dense", "bm25")
K = 5


def main() -> None:
    """Measure each order of indexing and print a row for each retriever, and for each pair of languages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("languages", type=Path, metavar="LANGUAGES")
    parser.add_argument("--store", type=Path, required=True, help="keep the indexes here for the next run")
    parser.add_argument("--order", nargs="*", default=ORDERS, help="orders of the languages, joined by hyphens")
    parser.add_argument("--embedder", help="embedder of the indexes [chosen by polyad]")
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    parts = share_out(arguments.languages)
    rows = []
    for order in arguments.order:
        with Engine.open(arguments.store / order, embedder=arguments.embedder) as engine:
            if not engine.catalogue.statistics().documents:
                for language in order.split("-"):
                    engine.index_documents(parts[language])
        with Engine.open(arguments.store / order) as engine:
            for row in measure(engine, arguments.languages, parts):
                rows.append({"order": order, "embedder": engine.components.embedder.name, **row})
                print(json.dumps(rows[-1]), flush=True)
    if arguments.json:
        write_rows(arguments.json, rows)


def share_out(folder: Path) -> dict[str, list[Document]]:
    """Return the paragraphs of each language; no paragraph is in two languages."""
    return {
        language: [
            Document(f"{language}-{each['_id']}", each["title"], each["text"])
            for position, each in enumerate(order_paragraphs(folder, language))
            if LANGUAGES[position % len(LANGUAGES)] == language
        ]
        for language in dict.fromkeys(LANGUAGES)
    }


def order_paragraphs(languages: Path, language: str) -> list[dict[str, str]]:
    """Return the passages of a language in the order of the first parallel question about each; others at the end."""
    records = {each["_id"]: each for each in read_lines(languages / language / "corpus.jsonl")}
    with_question = dict.fromkeys(read_gold(languages, language).values())
    return [records[id] for id in [*with_question, *(id for id in records if id not in with_question)]]


def read_gold(languages: Path, language: str) -> dict[str, str]:
    """Return the passage of each question, by question id."""
    lines = (languages / language / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return {question: passage for question, passage, _ in map(str.split, lines)}


def measure(engine: Engine, languages: Path, parts: dict[str, list[Document]]) -> Iterator[dict[str, object]]:
    """Yield a row for each retriever and pair of languages, and means in the own language and across languages."""
    language_of = {document.id: language for language, documents in parts.items() for document in documents}
    gold: dict[str, str] = {}
    for language in parts:
        for question, passage in read_gold(languages, language).items():
            if f"{language}-{passage}" in language_of:
                gold[question] = f"{language}-{passage}"
    for retriever in RETRIEVERS:
        results: dict[str, list[tuple[bool, bool, bool]]] = defaultdict(list)
        for language in parts:
            for each in read_lines(languages / language / "queries.jsonl"):
                result = search(engine, each["text"], gold[each["_id"]], retriever)
                other = language_of[gold[each["_id"]]]
                results[f"{language} -> {other}"].append(result)
                results["own" if other == language else "across"].append(result)
        for pair, values in results.items():
            in_five, first, refused = (sum(column) for column in zip(*values, strict=True))
            yield {
                "retriever": retriever,
                "pair": pair,
                "questions": len(values),
                "recall": round(100 * in_five / len(values), 1),
                "first": round(100 * first / len(values), 1),
                "refused": round(100 * refused / max(1, first), 1),
            }


def search(engine: Engine, question: str, gold: str, retriever: str) -> tuple[bool, bool, bool]:
    """Return whether the right passage is in five, is first, and is refused although first."""
    ids = [hit.passage.document_id for hit in engine.search(question, k=K, retriever=retriever).passages]
    is_first = ids[:1] == [gold]
    is_refused = (
        is_first
        and retriever == "default"
        and not engine.search(question, k=K, retriever=retriever, min_relevance="auto").passages
    )
    return gold in ids, is_first, is_refused


if __name__ == "__main__":
    main()
