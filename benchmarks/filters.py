"""Cost of filters, and searches for evidence of documents that a filter or a time excludes.

    python benchmarks/filters.py cost --index DIR           # an index of scale.py, named like text-100000-384
    python benchmarks/filters.py leaks --searches 10000     # random filters and times on three data sets
    python benchmarks/filters.py time --facts 10000         # a search as of a day against an index of what held then

``cost`` times searches that reuse one filter, without the embedder, as CPU time; ``first_ms`` is the first search with
the filter. ``leaks`` decides by its own rules, not by the filter's, which documents are selected; every type and
description of an entity names the document that states it. The exit status is 1 if a measurement finds a difference.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scale_corpora import MadeUpEmbedder

from polyad import Engine
from polyad.engine.registry import NEED_LANGUAGE_MODEL, RETRIEVERS
from polyad.errors import PolyadError
from polyad.evaluation.datasets.beir import load_beir
from polyad.model import Argument, Document, Evidence, IndexedDocument, MetadataValue, Timings
from polyad.protocols.lookups import get_all, get_digests
from polyad.stores.sqlite import SqliteStore

K = 5
SHARES = (0.9, 0.1, 0.01, 0.0001)
AUTHORS = ("Ada", "Bo", "Cleo")
FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
DAYS = 1000
_BATCH = 500

Predicate = Callable[[Mapping[str, Any]], bool]


def main() -> None:
    """Run one measurement and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurement", choices=("cost", "leaks", "time"))
    parser.add_argument("--index", type=Path, help="an index of scale.py with its questions")
    parser.add_argument("--benchmarks", type=Path, default=Path("../shared/benchmarks"), help="holds the BEIR folders")
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2", help="of leaks and time")
    parser.add_argument("--retrievers", default="default,bm25,dense,hypersu")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--searches", type=int, default=10_000)
    parser.add_argument("--documents", type=int, default=1000, help="of each data set")
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--seed", type=int, default=28)
    options = parser.parse_args()
    result = {"cost": measure_cost, "leaks": count_leaks, "time": compare_times}[options.measurement](options)
    print(json.dumps(result, indent=1))
    sys.exit(1 if result.get("leaks") or result.get("differences") else 0)


# Cost


def measure_cost(options: argparse.Namespace) -> dict[str, Any]:
    """Return the p50 of each retriever by the share of documents that a filter selects, and the ratio to no filter."""
    questions = [text for _, text, _ in json.loads((options.index / "questions.json").read_text())][: options.questions]
    embedder = MadeUpEmbedder(int(options.index.name.rpartition("-")[2]))
    results: dict[str, Any] = {}
    with Engine.open(options.index, embedder=embedder, create=False) as engine:
        ids = sorted(engine.catalogue.sources())
        random.Random(options.seed).shuffle(ids)
        for retriever in options.retrievers.split(","):
            rows = results[retriever] = {"all": _measure(engine, questions, retriever, None)}
            for share in SHARES:
                where = select_share(ids, share)
                row = rows[f"{share:.2%}"] = _measure(engine, questions, retriever, where)
                row["ratio"] = round(row["p50_ms"] / rows["all"]["p50_ms"], 2)
                print(retriever, f"{share:.2%}", row, file=sys.stderr, flush=True)
    return results


def select_share(ids: list[str], share: float) -> dict[str, Any]:
    """Return a filter that selects about a share of the documents, by the end of their ids: a hash and a copy."""
    target = min(share, 1 - share) * len(ids)
    if target < 10:
        return {"field": "id", "operator": "in", "values": ids[: max(1, round(target))]}
    endings = Counter(id[11:] for id in ids)
    patterns, count = [], 0
    for ending in dict.fromkeys(id[11:] for id in ids):
        if count < target:
            patterns.append({"field": "id", "operator": "like", "values": [f"*{ending}"]})
            count += endings[ending]
    return {"or": patterns} if share <= 0.5 else {"not": {"or": patterns}}


def _measure(engine: Engine, questions: list[str], retriever: str, where: dict[str, Any] | None) -> dict[str, float]:
    start = time.process_time()
    engine.search(questions[0], K, retriever=retriever, where=where)
    first = time.process_time() - start
    for question in questions[:20]:
        engine.search(question, K, retriever=retriever, where=where)
    cpus, counts = [], []
    for question in questions:
        start = time.process_time()
        evidence = engine.search(question, K, retriever=retriever, where=where)
        cpus.append(1000 * (time.process_time() - start) - evidence.timings.encode)
        counts.append(len(evidence.passages))
    return {
        "p50_ms": round(float(np.median(cpus)), 2),
        "p95_ms": round(float(np.quantile(cpus, 0.95)), 2),
        "first_ms": round(1000 * first, 1),
        "mean_hits": float(np.mean(counts)),
    }


# Leaks


def count_leaks(options: argparse.Namespace) -> dict[str, Any]:
    """Return how many searches show anything of a document that the filter or the time excludes."""
    generator = random.Random(options.seed)
    names = [name for name in RETRIEVERS if name not in NEED_LANGUAGE_MODEL and name != "none"]
    counts: Counter[str] = Counter()
    leaks: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        documents, questions = build_labelled_index(Path(folder), options, generator)
        with Engine.open(Path(folder) / "kb", embedder=options.embedder, create=False) as engine:
            for number in range(options.searches):
                retriever = names[number % len(names)]
                where, is_selected = draw_filter(generator, 3)
                day = generator.randrange(-5, DAYS + 5)
                selected = {id for id, fields in documents.items() if is_selected(fields) and is_valid(fields, day)}
                question = generator.choice(questions)
                try:
                    evidence = engine.search(
                        question, 20, retriever=retriever, where=where, as_of=to_time(day), merge=number % 2 == 0
                    )
                except PolyadError as error:
                    counts[f"{retriever}: {type(error).__name__}: {str(error)[:80]}"] += 1
                    continue
                counts[retriever] += 1
                counts["empty selections"] += not selected
                counts["short dense results"] += (
                    retriever == "dense"
                    and number % 2 == 1
                    and (len({hit.passage.id for hit in evidence.passages}) < min(20, len(selected)))
                )
                if others := list_shown_documents(evidence, documents) - selected:
                    leaks.append(f"{retriever} where {where} as of {to_time(day)}: {question!r} shows {min(others)}")
    return {"searches": dict(counts), "documents": len(documents), "leaks": len(leaks), "first": leaks[:5]}


def build_labelled_index(
    folder: Path, options: argparse.Namespace, generator: random.Random
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Build an index whose entities have a type and a description that name a document; return documents and questions.

    The documents have random metadata and dates; they are those of three data sets with their own ids.
    """
    questions: list[str] = []
    with Engine.open(folder / "base", embedder=options.embedder) as engine:
        for name in ("2wiki", "hotpotqa", "musique"):
            dataset = load_beir(options.benchmarks / name)
            questions += [query.text for query in dataset.queries]
            with dataset.corpus.open(encoding="utf-8") as lines:
                records = [json.loads(line) for line in islice(lines, options.documents)]
            engine.index_documents(
                [Document(f"{name}:{item['_id']}", item.get("title", ""), item["text"]) for item in records]
            )
    fields: dict[str, dict[str, Any]] = {}
    with (
        closing(SqliteStore.open(folder / "base")) as base,
        closing(SqliteStore.open(folder / "kb", base.manifest)) as store,
    ):
        ids = sorted(get_digests(base))
        for start in range(0, len(ids), _BATCH):
            for id, item in get_all_indexed(base, ids[start : start + _BATCH]):
                metadata = draw_metadata(generator)
                fields[id] = {"id": id, **metadata}
                store.put(label(replace(item, document=replace(item.document, metadata=metadata)), f"<{id}>"))
    return fields, questions


def get_all_indexed(store: SqliteStore, ids: list[str]) -> Iterator[tuple[str, IndexedDocument]]:
    """Yield documents with all that they contribute."""
    for item in get_all(store, IndexedDocument, ids):
        yield item.document.id, item


def label(item: IndexedDocument, text: str) -> IndexedDocument:
    """Return a document whose incidences have this type and description."""
    passages = []
    for passage in item.passages:
        edges = [
            replace(edge, incidences=tuple(replace(part, type=text, description=text) for part in edge.incidences))
            for edge in passage.hyperedges
        ]
        passages.append(replace(passage, hyperedges=tuple(edges)))
    return replace(item, passages=tuple(passages))


def draw_metadata(generator: random.Random) -> dict[str, MetadataValue]:
    """Return random fields, some of them missing."""
    metadata: dict[str, MetadataValue] = {"year": generator.randrange(2010, 2025)}
    if generator.random() < 0.8:
        metadata["author"] = generator.choice(AUTHORS)
    if generator.random() < 0.3:
        metadata["tags"] = tuple(generator.sample(["pump", "valve", "weir"], 2))
    if generator.random() < 0.3:
        first = generator.randrange(DAYS)
        metadata["valid_from"] = to_time(first).date().isoformat()
        if generator.random() < 0.5:
            metadata["valid_to"] = to_time(first + generator.randrange(200)).date().isoformat()
    return metadata


def draw_filter(generator: random.Random, depth: int) -> tuple[str, Predicate]:
    """Return a random filter with the same condition in Python."""
    if depth and generator.random() < 0.5:
        (one, is_one), (other, is_other) = draw_filter(generator, depth - 1), draw_filter(generator, depth - 1)
        kind = generator.choice(["and", "or", "not"])
        if kind == "not":
            return f"not ({one})", lambda item: not is_one(item)
        if kind == "and":
            return f"({one}) and ({other})", lambda item: is_one(item) and is_other(item)
        return f"({one}) or ({other})", lambda item: is_one(item) or is_other(item)
    year, author = generator.randrange(2009, 2026), generator.choice(AUTHORS)
    digits = str(generator.randrange(100))
    simple: list[tuple[str, Predicate]] = [
        (f"year >= {year}", lambda item: item["year"] >= year),
        (f"year < {year}", lambda item: item["year"] < year),
        (f"year = {year}", lambda item: item["year"] == year),
        (f"author = {author}", lambda item: item.get("author") == author),
        (f"author != {author}", lambda item: item.get("author") != author),
        ('author in ("Ada", "Cleo")', lambda item: item.get("author") in ("Ada", "Cleo")),
        ("tags = pump", lambda item: "pump" in item.get("tags", ())),
        ("tags exists", lambda item: "tags" in item),
        (f'id like "*{digits}"', lambda item: item["id"].endswith(digits)),
        ('id like "musique:*"', lambda item: item["id"].startswith("musique:")),
    ]
    return generator.choice(simple)


def is_valid(fields: Mapping[str, Any], day: int) -> bool:
    """Return whether a document holds at noon of a day; dates in ISO 8601 sort as text."""
    date = to_time(day).date().isoformat()
    return str(fields.get("valid_from", "")) <= date <= str(fields.get("valid_to", "9999"))


def to_time(day: int) -> datetime:
    """Return noon of a day."""
    return FIRST_DAY + timedelta(days=day, hours=12)


def list_shown_documents(evidence: Evidence, documents: Mapping[str, Any]) -> set[str]:
    """Return the ids of all documents that evidence shows, or names in a type or description."""
    shown = {hit.passage.document_id for hit in evidence.passages}
    shown |= {scored.hyperedge.passage_id.rpartition("#")[0] for scored in evidence.hyperedges}
    entities = [scored.entity for scored in evidence.entities]
    for entity in [*entities, *(member for scored in evidence.hyperedges for member in scored.members)]:
        for text in (entity.type, *entity.description.splitlines()):
            shown |= {part.partition(">")[0] for part in text.split("<")[1:]}
    if unknown := shown - documents.keys():
        raise SystemExit(f"{min(unknown)!r} is no document of the index")
    return shown


# Time


def compare_times(options: argparse.Namespace) -> dict[str, Any]:
    """Return how many searches as of a day differ from those in an index of the facts that held on that day."""
    generator = random.Random(options.seed)
    facts = [build_fact(number, generator) for number in range(options.facts)]
    names = [name for name in RETRIEVERS if name not in NEED_LANGUAGE_MODEL and name != "none"]
    embedder = options.embedder
    counts: Counter[str] = Counter()
    differences: list[str] = []
    with tempfile.TemporaryDirectory() as folder, Engine.open(Path(folder) / "all", embedder=embedder) as whole:
        whole.index_documents(facts)
        for day in generator.sample(range(DAYS), options.days):
            held = [fact for fact in facts if is_valid(fact.metadata, day)]
            counts["facts that held"] += len(held)
            with Engine.open(Path(folder) / str(day), embedder=embedder) as alone:
                alone.index_documents(held)
                for number in range(10 * len(names)):
                    retriever = names[number % len(names)]
                    question = f"Who led {draw_name(generator)} in Town {generator.randrange(200)}?"
                    try:
                        found, expected = (
                            replace(
                                engine.search(question, 10, retriever=retriever, as_of=to_time(day)), timings=Timings()
                            )
                            for engine in (whole, alone)
                        )
                    except PolyadError as error:
                        counts[f"{retriever}: {type(error).__name__}: {str(error)[:80]}"] += 1
                        continue
                    counts[retriever] += 1
                    counts[f"{retriever} without hits"] += not expected.passages
                    if found != expected:
                        same = [hit.passage.id for hit in found.passages] == [
                            hit.passage.id for hit in expected.passages
                        ]
                        counts[f"{retriever} differs, {'same' if same else 'other'} passages"] += 1
                        differences.append(f"{retriever} as of {to_time(day)}: {question!r}")
            print(day, dict(counts), file=sys.stderr, flush=True)
    return {"counts": dict(counts), "differences": len(differences), "first": differences[:5]}


def build_fact(number: int, generator: random.Random) -> Document:
    """Return a tuple with dates; one in ten has none."""
    leader, member, town = draw_name(generator), draw_name(generator), f"Town {generator.randrange(200)}"
    metadata: dict[str, MetadataValue] = {}
    if generator.random() < 0.9:
        first = generator.randrange(DAYS)
        metadata["valid_from"] = to_time(first).date().isoformat()
        metadata["valid_to"] = to_time(first + generator.randrange(400)).date().isoformat()
    arguments = (Argument("leader", leader), Argument("member", member), Argument("town", town))
    text = f"{leader} led {member} in {town}."
    return Document(f"t{number:06}", "", text, arguments=arguments, relation="led", metadata=metadata)


def draw_name(generator: random.Random) -> str:
    """Return one of 2,500 names."""
    syllables = ("Ar", "Bel", "Cor", "Dun", "El", "Far", "Gor", "Hal", "Is", "Jor")
    first, second = generator.choice(syllables), generator.choice(syllables).lower()
    return f"{first}{second} {generator.choice('ABCDE')}{generator.choice(syllables).lower()[:1]}ton"


if __name__ == "__main__":
    main()
