"""Cost of filters, and searches for evidence of documents that a filter or a time excludes.

    python benchmarks/filters.py cost --index DIR           # an index of scale.py, named like text-100000-384
    python benchmarks/filters.py leaks --searches 10000     # random filters and times on three data sets and books
    python benchmarks/filters.py alone --questions 300      # a search with a filter against an index of what it selects
    python benchmarks/filters.py time --facts 10000         # a search as of a day against an index of what held then

``cost`` times searches that reuse one filter, without the embedder, as CPU time; ``first_ms`` is the first search with
the filter. ``leaks`` decides by its own rules, not by the filter's, what is selected; every type and description of an
entity names the hyperedge that states it. The exit status is 1 if ``leaks`` or ``time`` find a difference.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scale_corpora import MadeUpEmbedder

from polyad import Engine, Settings
from polyad.config import QuestionSettings
from polyad.engine.registry import NEED_LANGUAGE_MODEL, RETRIEVERS
from polyad.errors import PolyadError
from polyad.model import (
    Argument,
    Document,
    Evidence,
    HyperedgeKind,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    MetadataValue,
    Timings,
)
from polyad.protocols.lookups import get_all, get_digests
from polyad.stores.sqlite import SqliteStore
from polyad.text.filters import Filter, filter_from_json
from polyad_bench.datasets.beir import load_beir
from polyad_bench.measures.ranking import recall

K = 5
SHARES = (0.9, 0.1, 0.01, 0.0001)
AUTHORS = ("Ada", "Bo", "Cleo")
FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
DAYS = 1000
_BATCH = 500
_BOOK_PART = 5000
"""Characters of each part of a book that is a document of its own."""

Predicate = Callable[[Mapping[str, Any]], bool]


def main() -> None:
    """Run one measurement and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurement", choices=("cost", "leaks", "alone", "time"))
    parser.add_argument("--index", type=Path, help="an index of scale.py with its questions; for alone, of a data set")
    parser.add_argument("--benchmarks", type=Path, default=Path("../shared/benchmarks"), help="holds the BEIR folders")
    parser.add_argument("--data-sets", default="2wiki,hotpotqa,musique", help="of leaks and alone")
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2", help="of leaks, alone and time")
    parser.add_argument("--retrievers", default="default,bm25,dense,hypersu")
    parser.add_argument("--prose", type=Path, help="holds books as .txt and questions.jsonl, for leaks and alone")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--searches", type=int, default=10_000)
    parser.add_argument("--documents", type=int, default=1000, help="of each data set")
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--seed", type=int, default=28)
    options = parser.parse_args()
    measurements = {"cost": measure_cost, "leaks": count_leaks, "alone": compare_alone, "time": compare_times}
    result = measurements[options.measurement](options)
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


def select_share(ids: list[str], share: float) -> Filter:
    """Return a filter that selects about a share of the documents, by the end of their ids: a hash and a copy.

    It is parsed once, because it has a hundred patterns, whose parsing takes a millisecond.
    """
    target = min(share, 1 - share) * len(ids)
    if target < 10:
        return filter_from_json({"field": "id", "operator": "in", "values": ids[: max(1, round(target))]})
    endings = Counter(id[11:] for id in ids)
    patterns, count = [], 0
    for ending in dict.fromkeys(id[11:] for id in ids):
        if count < target:
            patterns.append({"field": "id", "operator": "like", "values": [f"*{ending}"]})
            count += endings[ending]
    return filter_from_json({"or": patterns} if share <= 0.5 else {"not": {"or": patterns}})


def _measure(engine: Engine, questions: list[str], retriever: str, where: Filter | None) -> dict[str, float]:
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


@dataclass(frozen=True)
class LabelledIndex:
    """What an index contains whose entities name, in type and description, the hyperedge that they come from.

    Attributes:
        documents: Metadata and id of each document.
        passages: For each passage its document, and the fields of its hyperedges by hyperedge id.
        questions: Questions about the documents.
    """

    documents: dict[str, dict[str, Any]]
    passages: dict[str, tuple[str, dict[str, dict[str, Any]]]]
    questions: list[str]

    def list_leaks(self, evidence: Evidence, is_selected: Predicate, day: int) -> set[str]:
        """Return the ids of passages and hyperedges in evidence that a filter and a day exclude."""
        passages = {hit.passage.id for hit in evidence.passages}
        passages |= {step.passage_id for step in evidence.trace}
        hyperedges = {scored.hyperedge.id for scored in evidence.hyperedges}
        hyperedges |= {id for step in evidence.trace for id in (step.hyperedge_id, step.parent) if id}
        entities = [scored.entity for scored in evidence.entities]
        for entity in [*entities, *(member for scored in evidence.hyperedges for member in scored.members)]:
            for text in (entity.type, *entity.description.splitlines()):
                hyperedges |= {part.partition(">")[0] for part in text.split("<")[1:]}
        leaks = {id for id in passages if not self._selects_passage(id, is_selected, day)}
        return leaks | {id for id in hyperedges if not self._selects_hyperedge(id, is_selected, day)}

    def count_selected(self, is_selected: Predicate, day: int) -> int:
        """Return the number of passages that a filter and a day select."""
        return sum(self._selects_passage(id, is_selected, day) for id in self.passages)

    def _selects_hyperedge(self, id: str, is_selected: Predicate, day: int) -> bool:
        document_id, hyperedges = self.passages[id.rpartition("/")[0]]
        document = self.documents[document_id]
        return is_valid(document, day) and is_selected(document | hyperedges[id])

    def _selects_passage(self, id: str, is_selected: Predicate, day: int) -> bool:
        document_id, hyperedges = self.passages[id]
        document = self.documents[document_id]
        records = [document | fields for fields in hyperedges.values()] or [document]
        return is_valid(document, day) and any(map(is_selected, records))


def count_leaks(options: argparse.Namespace) -> dict[str, Any]:
    """Return how many searches show anything of a document or hyperedge that the filter or the time excludes.

    In every second search, excluded documents may connect others.
    """
    generator = random.Random(options.seed)
    names = [name for name in RETRIEVERS if name not in NEED_LANGUAGE_MODEL and name != "none"]
    counts: Counter[str] = Counter()
    leaks: list[str] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        index = build_labelled_index(Path(folder), options, generator)
        engines = [
            stack.enter_context(
                Engine.open(
                    Path(folder) / "kb",
                    embedder=options.embedder,
                    create=False,
                    settings=Settings(question=QuestionSettings(bridge_outside=bridges)),
                )
            )
            for bridges in (False, True)
        ]
        for number in range(options.searches):
            retriever, bridges = names[number // 2 % len(names)], number % 2 == 1
            where, is_selected = draw_filter(generator, 3)
            day, merge = generator.randrange(-5, DAYS + 5), generator.random() < 0.5
            question = generator.choice(index.questions)
            try:
                evidence = engines[bridges].search(
                    question, 20, retriever=retriever, where=where, as_of=to_time(day), merge=merge
                )
            except PolyadError as error:
                counts[f"{retriever}: {type(error).__name__}: {str(error)[:80]}"] += 1
                continue
            counts[f"{retriever}{' with bridges' if bridges else ''}"] += 1
            counts["without hits"] += not evidence.passages
            if retriever == "dense" and not merge:
                expected = min(20, index.count_selected(is_selected, day))
                counts["short dense results"] += len(evidence.passages) < expected
            if others := index.list_leaks(evidence, is_selected, day):
                leaks.append(f"{retriever} where {where} as of {to_time(day)}: {question!r} shows {min(others)}")
            if number % 500 == 499:
                print(number + 1, len(leaks), file=sys.stderr, flush=True)
    size = {"documents": len(index.documents), "passages": len(index.passages)}
    return {"searches": dict(counts), **size, "leaks": len(leaks), "first": leaks[:5]}


def load_documents(options: argparse.Namespace) -> tuple[list[Document], list[str]]:
    """Return documents of three data sets and of books, which are cut into parts, and questions about them."""
    documents, questions = [], []
    for name in options.data_sets.split(","):
        dataset = load_beir(options.benchmarks / name)
        questions += [query.text for query in dataset.queries]
        with dataset.corpus.open(encoding="utf-8") as lines:
            records = [json.loads(line) for line in islice(lines, options.documents)]
        documents += [Document(f"{name}:{item['_id']}", item.get("title", ""), item["text"]) for item in records]
    for path in sorted(options.prose.glob("*.txt")) if options.prose else ():
        text = path.read_text(encoding="utf-8")
        for start in range(0, len(text), _BOOK_PART):
            documents.append(Document(f"{path.stem}:{start}", path.stem, text[start : start + _BOOK_PART]))
    if options.prose:
        lines = (options.prose / "questions.jsonl").read_text(encoding="utf-8").splitlines()
        questions += [json.loads(line)["text"] for line in lines]
    return documents, questions


def build_labelled_index(folder: Path, options: argparse.Namespace, generator: random.Random) -> LabelledIndex:
    """Build an index with random metadata and dates, and with facts among the semantic units."""
    documents, questions = load_documents(options)
    with Engine.open(folder / "base", embedder=options.embedder) as engine:
        engine.index_documents(documents)
    index = LabelledIndex({}, {}, questions)
    with (
        closing(SqliteStore.open(folder / "base")) as base,
        closing(SqliteStore.open(folder / "kb", base.manifest)) as store,
    ):
        ids = sorted(get_digests(base))
        for start in range(0, len(ids), _BATCH):
            labelled = []
            for item in get_all(base, IndexedDocument, ids[start : start + _BATCH]):
                metadata = draw_metadata(generator)
                document = replace(item.document, metadata=metadata)
                passages = tuple(label(passage, generator) for passage in item.passages)
                labelled.append(replace(item, document=document, passages=passages))
                index.documents[document.id] = {"id": document.id, **metadata}
                for passage in passages:
                    index.passages[passage.passage.id] = document.id, dict(map(list_fields, passage.hyperedges))
            store.put(*labelled)
    return index


def label(item: IndexedPassage, generator: random.Random) -> IndexedPassage:
    """Return a passage whose incidences name their hyperedge; some hyperedges are facts."""
    edges = []
    for edge in item.hyperedges:
        kind = HyperedgeKind.FACT if generator.random() < 0.3 else edge.hyperedge.kind
        text = f"<{edge.hyperedge.id}>"
        incidences = tuple(replace(part, type=text, description=text) for part in edge.incidences)
        edges.append(replace(edge, hyperedge=replace(edge.hyperedge, kind=kind), incidences=incidences))
    return replace(item, hyperedges=tuple(edges))


def list_fields(edge: IndexedHyperedge) -> tuple[str, dict[str, Any]]:
    """Return the id and the fields of a hyperedge."""
    roles = tuple({part.role for part in edge.incidences} - {""})
    fields: dict[str, Any] = {"hyperedge.kind": str(edge.hyperedge.kind)}
    return edge.hyperedge.id, fields | ({"hyperedge.role": roles} if roles else {})


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
        ("hyperedge.kind = fact", lambda item: item.get("hyperedge.kind") == "fact"),
        ("hyperedge.role = subject", lambda item: "subject" in item.get("hyperedge.role", ())),
    ]
    return generator.choice(simple)


def is_valid(fields: Mapping[str, Any], day: int) -> bool:
    """Return whether a document holds at noon of a day; dates in ISO 8601 sort as text."""
    date = to_time(day).date().isoformat()
    return str(fields.get("valid_from", "")) <= date <= str(fields.get("valid_to", "9999"))


def to_time(day: int) -> datetime:
    """Return noon of a day."""
    return FIRST_DAY + timedelta(days=day, hours=12)


# Comparison with an index of the selected documents


def compare_alone(options: argparse.Namespace) -> dict[str, Any]:
    """Compare searches with filters that retain half or a tenth of the documents with indexes of these documents alone.

    Gold documents that a filter excludes do not count. Whole evidence is compared without times and notes.
    """
    generator = random.Random(options.seed)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        if not options.index:
            documents, _ = load_documents(options)
            with Engine.open(folder / "base", embedder=options.embedder) as engine:
                engine.index_documents(documents)
        base = stack.enter_context(closing(SqliteStore.open(options.index or folder / "base")))
        shares = {id: generator.random() for id in list_in_order(base)}
        copy_documents(base, folder / "whole", shares)
        whole = stack.enter_context(Engine.open(folder / "whole", embedder=options.embedder, create=False))
        for share in (0.5, 0.1):
            selected = {id: value for id, value in shares.items() if value < share}
            copy_documents(base, folder / str(share), selected)
            queries = select_questions(options, selected, generator)
            with Engine.open(folder / str(share), embedder=options.embedder, create=False) as alone:
                for retriever in options.retrievers.split(","):
                    row = compare_retriever(whole, alone, queries, retriever, f"share < {share}")
                    results[f"{retriever} {share:.0%}"] = row
                    print(share, retriever, row, file=sys.stderr, flush=True)
    return {"documents": len(shares), "results": results}


def copy_documents(base: SqliteStore, target: Path, shares: Mapping[str, float]) -> None:
    """Copy documents, with their vectors, into a new index in which their only metadata is a share."""
    ids = list(shares)
    with closing(SqliteStore.open(target, base.manifest)) as store:
        for start in range(0, len(ids), _BATCH):
            items = get_all(base, IndexedDocument, ids[start : start + _BATCH])
            documents = [replace(item.document, metadata={"share": shares[item.document.id]}) for item in items]
            store.put(*(replace(item, document=document) for item, document in zip(items, documents, strict=True)))


def list_in_order(store: SqliteStore) -> list[str]:
    """Return the ids of documents in the order in which they were written."""
    with store.read_transaction() as transaction:
        rows = transaction.rows(transaction.changes().documents)
        return list(dict.fromkeys(id for batch in rows for id in batch.document_ids))


def select_questions(
    options: argparse.Namespace, selected: Collection[str], generator: random.Random
) -> list[tuple[str, set[str]]]:
    """Return questions with the gold documents that are selected, at least one each."""
    questions = []
    for name in options.data_sets.split(","):
        for query in load_beir(options.benchmarks / name).queries:
            ids = query.gold if options.index else {f"{name}:{id}" for id in query.gold}
            if gold := set(ids).intersection(selected):
                questions.append((query.text, gold))
    generator.shuffle(questions)
    return questions[: options.questions]


def compare_retriever(
    engine: Engine, alone: Engine, queries: list[tuple[str, set[str]]], retriever: str, where: str
) -> dict[str, float]:
    """Return Recall@5 of both indexes, and the share of questions with equal evidence and with equal passages."""
    recalls: list[tuple[float, float]] = []
    equal = same = 0
    for question, gold in queries:
        evidence_list = (
            one.search(question, K, retriever=retriever, where=filter, merge=False)
            for one, filter in ((engine, where), (alone, None))
        )
        pair = [replace(evidence, timings=Timings(), notes={}) for evidence in evidence_list]
        documents = [[hit.passage.document_id for hit in evidence.passages] for evidence in pair]
        passages = [[hit.passage.id for hit in evidence.passages] for evidence in pair]
        recalls.append((recall(documents[0], gold, K), recall(documents[1], gold, K)))
        equal += pair[0] == pair[1]
        same += passages[0] == passages[1]
    filtered, separate = np.mean(recalls, axis=0)
    return {
        "questions": len(queries),
        "recall@5 filtered": round(100 * float(filtered), 2),
        "recall@5 alone": round(100 * float(separate), 2),
        "equal evidence": round(equal / len(queries), 4),
        "equal passages": round(same / len(queries), 4),
    }


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
                        evidence, expected = (
                            replace(
                                engine.search(question, 10, retriever=retriever, as_of=to_time(day)),
                                timings=Timings(),
                                notes={},
                            )
                            for engine in (whole, alone)
                        )
                    except PolyadError as error:
                        counts[f"{retriever}: {type(error).__name__}: {str(error)[:80]}"] += 1
                        continue
                    counts[retriever] += 1
                    counts[f"{retriever} without hits"] += not expected.passages
                    if evidence != expected:
                        same = [hit.passage.id for hit in evidence.passages] == [
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
