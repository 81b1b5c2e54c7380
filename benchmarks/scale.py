"""Cost of searches, memory, disk and refreshing from ten thousand to a million hyperedges.

    python benchmarks/scale.py --store DIR [--sizes 10000,100000] [--corpora text,records] [--phases open,search]

The corpora are those of ``scale_corpora.py``: articles with their names replaced, and records with roles. The articles
are indexed once, by the pipeline; their copies are written straight to the store, since finding names and units in the
copies again would take most of the time and give nearly the same. What the pipeline does beside the store is measured
by ``indexing.py``. Vectors are made up, so recall says only whether questions still find what they ask for.

Each phase runs in a process of its own; a phase that changes the index comes last. CPU seconds are those of all threads
of the process; on a busy machine they say more than wall time. Times of searches are without those of the embedder.

    write     each document to the store, by tenths of the corpus
    snapshot      a snapshot from nothing, and its arrays on disk
    open      from opening the index to the first hits; resident memory
    search    p50 and p95 of each retriever (with ``hypergraphrag`` a vector for every entity is made first)
    shared    proportional memory of several processes on one index
    added     one document until a search sees it: by the engine that indexes it, and by one beside it
    beside    p95 of several readers, alone and beside a writer
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, islice
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import numpy as np
from scale_corpora import MadeUpEmbedder, Records, RenamedText, embedded

from polyad import Engine
from polyad.model import Document, Evidence, FloatArray, IndexedDocument
from polyad.protocols.components import TextKind
from polyad.protocols.lookups import get_all, get_digests, get_document_passages, get_sources, get_statistics
from polyad.protocols.store import Manifest
from polyad.snapshot.files import FOLDER
from polyad.stores.sqlite import SqliteStore
from polyad_bench.datasets.beir import Question, load_beir
from polyad_bench.measures.ranking import recall

K = 5
_COPIES = 300
"""More than the copies of a corpus of a million hyperedges that may have a document's title."""

WARM = 20
"""Searches before those that are measured."""

FOLDERS = ("2wiki", "musique")
QUESTIONS = "questions.json"
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")

Results = dict[str, Any]


def main() -> None:
    """Run each phase in a process of its own and print the measurements."""
    options = _options()
    if options.run:
        corpus, size, phase = options.run
        print(json.dumps(PHASES[phase](Place(options, corpus, int(size)))))
        return
    results: list[Results] = []
    for corpus in options.corpora.split(","):
        for size in options.sizes.split(","):
            for phase in options.phases.split(","):
                if phase == "write" and (Place(options, corpus, int(size)).directory / QUESTIONS).exists():
                    continue
                command = [sys.executable, *sys.argv, "--run", corpus, size, phase]
                environment = os.environ | {name: str(options.blas_threads) for name in BLAS_THREADS}
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
                result = json.loads(done.stdout)
                results.append({"corpus": corpus, "hyperedges": int(size), "phase": phase, **result})
                _show(results[-1])
                if options.json:
                    _save(options, results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True, help="keeps the indexes; what is there is used again")
    parser.add_argument("--benchmarks", type=Path, default=Path("../shared/benchmarks"), help="holds the BEIR folders")
    parser.add_argument("--sizes", default="10000,100000", help="hyperedges of each index")
    parser.add_argument("--corpora", default="text,records")
    parser.add_argument("--phases", default=",".join(PHASES))
    parser.add_argument("--retrievers", default="default,bm25,dense,hypersu")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--questions", type=int, default=200, help="measured for each retriever")
    parser.add_argument("--name-share", type=float, default=0.5, help="share of the common names that copies keep")
    parser.add_argument("--processes", type=int, default=4, help="that share one index")
    parser.add_argument("--documents", type=int, default=20, help="added one by one")
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--threads", action="store_true", help="readers are threads of one process")
    parser.add_argument("--rate", type=float, default=5.0, help="documents a second that the writer changes")
    parser.add_argument("--change", choices=("add", "replace", "remove"), default="add", help="what the writer does")
    parser.add_argument("--seconds", type=float, default=20.0, help="for which they read, with and without it")
    parser.add_argument("--blas-threads", type=int, default=1, help="of each product: more of them wait for each other")
    parser.add_argument("--json", type=Path, help="save the results here")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


class MeasuredEmbedder(MadeUpEmbedder):
    """An embedder that records its CPU time."""

    cpu = 0.0

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """As the other."""
        started = time.process_time()
        try:
            return super().encode(texts, kind)
        finally:
            self.cpu += time.process_time() - started


@dataclass(frozen=True)
class Place:
    """An index of the benchmark with its corpus.

    Attributes:
        options: Of the command line.
        corpus: ``text`` or ``records``.
        size: Hyperedges.
    """

    options: argparse.Namespace
    corpus: str
    size: int

    @property
    def directory(self) -> Path:
        """Where the index is."""
        store: Path = self.options.store
        return store / f"{self.corpus}-{self.size}-{self.options.dimension}"

    @property
    def questions(self) -> list[Question]:
        """Some to ask, each once."""
        listed = json.loads((self.directory / QUESTIONS).read_text(encoding="utf-8"))
        queries = [Question(id, text, frozenset(gold)) for id, text, gold in listed]
        return queries[: self.options.questions]

    def engine(self) -> tuple[Engine, MeasuredEmbedder]:
        """Create a new index, and return its embedder."""
        embedder = MeasuredEmbedder(self.options.dimension)
        return Engine.open(self.directory, embedder=embedder, create=False), embedder

    def corpus_of_size(self) -> RenamedText | Records:
        """Make the documents."""
        return self._text() if self.corpus == "text" else Records(self.size)

    def more(self) -> Iterator[IndexedDocument]:
        """Documents of the corpus that are not in the index."""
        with closing(SqliteStore.open(self.directory)) as store:
            there = get_digests(store).keys()
        documents = (item for item in self.corpus_of_size().documents() if item.document.id not in there)
        return embedded(documents, MadeUpEmbedder(self.options.dimension))

    def _text(self) -> RenamedText:
        options = self.options
        datasets = [load_beir(options.benchmarks / name) for name in FOLDERS]
        directory = options.store / f"base-{options.dimension}"
        if not Engine.exists(directory):
            with Engine.open(directory, embedder=MadeUpEmbedder(options.dimension)) as engine:
                engine.index([dataset.corpus for dataset in datasets])
        queries = [query for dataset in datasets for query in dataset.queries]
        questions = {id for query in queries for id in query.gold}
        with closing(SqliteStore.open(directory)) as store:
            ids = sorted(get_sources(store), key=lambda id: (id not in questions, id))
            passages = get_document_passages(store, ids)
            base = [IndexedDocument(document, document.id, 0, ()) for document in get_all(store, Document, ids)]
        items: dict[str, list[Any]] = {id: [] for id in ids}
        for item in passages:
            items[item.passage.document_id].append(item)
        whole = [replace(item, passages=tuple(items[item.document.id])) for item in base]
        return RenamedText(whole, queries, options.name_share)


@dataclass
class Spent:
    """Seconds of wall and CPU time within ``with`` blocks.

    Attributes:
        wall: Of the clock.
        cpu: Of all threads of the process.
    """

    wall: float = 0.0
    cpu: float = 0.0

    @contextmanager
    def more(self) -> Iterator[None]:
        """Add what the block takes."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu


def write(place: Place) -> Results:
    """Store the corpus, document by document."""
    corpus = place.corpus_of_size()
    embedder = MadeUpEmbedder(place.options.dimension)
    tenths = [Spent() for _ in range(10)]
    documents = edges = 0
    with closing(SqliteStore.open(place.directory, Manifest(embedder.name, embedder.dimension, "rules"))) as store:
        for item in embedded(corpus.documents(), embedder):
            with tenths[min(9, 10 * edges // place.size)].more():
                store.put(item)
            documents += 1
            edges += sum(len(passage.hyperedges) for passage in item.passages)
            if edges >= place.size:
                break
        statistics = get_statistics(store)
    questions = corpus.questions(documents, place.options.questions)
    listed = [(query.id, query.text, sorted(query.gold)) for query in questions]
    (place.directory / QUESTIONS).write_text(json.dumps(listed), encoding="utf-8")
    return {
        "documents": documents,
        "passages": statistics.passages,
        "entities": statistics.entities,
        "incidences": statistics.incidences,
        "index_bytes_per_passage": statistics.disk_bytes / statistics.passages,
        "put_cpu_ms_by_tenth": [1e4 * tenth.cpu / documents for tenth in tenths],
        "put_wall_ms_by_tenth": [1e4 * tenth.wall / documents for tenth in tenths],
    }


def snapshot(place: Place) -> Results:
    """Build the snapshot from scratch."""
    folder = place.directory / FOLDER
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    engine, _ = place.engine()
    spent = Spent()
    with engine, spent.more():
        engine.search("something", retriever="bm25")
    with closing(SqliteStore.open(place.directory)) as store:
        passages = get_statistics(store).passages
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {
        "wall_s": spent.wall,
        "cpu_s": spent.cpu,
        "view_bytes_per_passage": size / passages,
        **_memory(),
    }


def opening(place: Place) -> Results:
    """Open the index and search once."""
    question, opened, searched = place.questions[0].text, Spent(), Spent()
    with opened.more():
        engine, _ = place.engine()
    with searched.more():
        engine.search(question, K)
    first = _memory()
    for query in place.questions[: 2 * WARM]:
        engine.search(query.text, K)
    return {
        "open_wall_s": opened.wall + searched.wall,
        "open_cpu_s": opened.cpu + searched.cpu,
        "at_once": first,
        **_memory(),
    }


def search(place: Place) -> Results:
    """Ask each retriever all questions, one at a time."""
    return {name: _searched(place, name) for name in place.options.retrievers.split(",")}


def _searched(place: Place, retriever: str) -> Results:
    engine, embedder = place.engine()
    questions = place.questions
    with engine:
        for query in questions[:WARM]:
            engine.search(query.text, K, retriever=retriever)
        walls, cpus, recalls = [], [], []
        for query in questions:
            spent, encoding = Spent(), embedder.cpu
            with spent.more():
                evidence = engine.search(query.text, K, retriever=retriever)
            walls.append(1000 * spent.wall - evidence.timings.encode)
            cpus.append(1000 * (spent.cpu - embedder.cpu + encoding))
            recalls.append(recall([hit.passage.document_id for hit in evidence.passages], query.gold, K))
    return {**_quantiles("cpu_ms", cpus), **_quantiles("wall_ms", walls), f"recall@{K}": float(np.mean(recalls))}


def shared(place: Place) -> Results:
    """Search in several processes in parallel and add up the proportional share of their memory."""
    return {f"pss_mb_of_{many}": _proportional(place, many) for many in (1, place.options.processes)}


def _proportional(place: Place, many: int) -> float:
    context = multiprocessing.get_context("spawn")
    there, read = context.Barrier(many), context.Barrier(many)
    answers = context.Queue()
    processes = [context.Process(target=_share, args=(place, there, read, answers)) for _ in range(many)]
    for process in processes:
        process.start()
    results = [answers.get() for _ in processes]
    for process in processes:
        process.join()
    return float(sum(results))


def _share(place: Place, there: Any, read: Any, answers: Any) -> None:
    engine, _ = place.engine()
    for query in place.questions:
        engine.search(query.text, K)
    there.wait()
    answers.put(_memory()["pss_mb"])
    read.wait()


def _documents(evidence: Evidence) -> set[str]:
    return {hit.passage.document_id for hit in evidence.passages}


def added(place: Place) -> Results:
    """Add documents one by one."""
    documents = [item.document for item in islice(place.more(), place.options.documents)]
    writer, _ = place.engine()
    reader, _ = place.engine()
    question = place.questions[0].text
    for engine in (writer, reader):
        engine.search(question, K)
    indexed: list[Spent] = []
    spents: list[Spent] = []
    other: list[Spent] = []
    for document in documents:
        with _measured(indexed):
            writer.index_documents([document], method="tuples" if place.corpus == "records" else "semantic-units")
        for engine, spent in ((writer, spents), (reader, other)):
            with _measured(spent):
                evidence = engine.search(_title(document), K, retriever="bm25")
            if document.id not in _documents(evidence):  # copies may have its title, too
                evidence = engine.search(_title(document), _COPIES, retriever="bm25")
            if document.id not in _documents(evidence):
                raise SystemExit(f"{document.id} was added and is not found")
    return {
        name: {"wall_ms": 1000 * _median(spent, "wall"), "cpu_ms": 1000 * _median(spent, "cpu")}
        for name, spent in {"indexed": indexed, "seen by the writer": spents, "seen by another": other}.items()
    }


@contextmanager
def _measured(spent: list[Spent]) -> Iterator[None]:
    spent.append(Spent())
    with spent[-1].more():
        yield


def _title(document: Document) -> str:
    return f"{document.title} {' '.join(document.text.split()[:30])}"


def _median(spent: Sequence[Spent], name: str) -> float:
    return float(np.median([asdict(item)[name] for item in spent]))


def beside(place: Place) -> Results:
    """Measure several readers, first alone, then beside a writer."""
    read = _by_threads if place.options.threads else _by_processes
    alone = read(place)
    context = multiprocessing.get_context("spawn")
    begun, end = context.Event(), context.Event()
    writer = context.Process(target=_keep_writing, args=(place, begun, end))
    writer.start()
    begun.wait()
    try:
        accompanied = read(place)
    finally:
        end.set()
        writer.join()
    return {
        **_quantiles("alone_wall_ms", alone),
        **_quantiles("beside_wall_ms", accompanied),
        "searches": [len(alone), len(accompanied)],
    }


def _keep_writing(place: Place, begun: Any, end: Any) -> None:
    with closing(SqliteStore.open(place.directory)) as store:
        changes = _changes(place, store)
        first = next(changes)  # of an added document those that are there are made before it: it takes minutes
        start = time.perf_counter()
        for number, change in enumerate(chain([first], changes), 1):
            change()
            begun.set()
            if end.wait(max(0.0, start + number / place.options.rate - time.perf_counter())):
                return


def _changes(place: Place, store: SqliteStore) -> Iterator[Callable[[], None]]:
    """Yield the writes: updates of existing documents in id order."""
    if place.options.change == "add":
        yield from (partial(store.put, item) for item in place.more())
        return
    for id in get_digests(store):
        if place.options.change == "remove":
            yield partial(store.remove, [id])
        else:
            [document] = get_all(store, Document, [id])
            yield partial(store.put, IndexedDocument(document, "", 0, tuple(get_document_passages(store, [id]))))


def _by_threads(place: Place) -> list[float]:
    engine, _ = place.engine()
    readers = place.options.readers
    with engine, ThreadPool(readers) as pool:
        return list(chain(*pool.map(partial(_read, place, engine, threading.Barrier(readers)), range(readers), 1)))


def _by_processes(place: Place) -> list[float]:
    readers, context = place.options.readers, multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(readers) as pool:
        return list(chain(*pool.map(partial(_read, place, None, manager.Barrier(readers)), range(readers), 1)))


def _read(place: Place, engine: Engine | None, warm: Any, first: int) -> list[float]:
    """Return the wall milliseconds of each search until the time is over, started when all readers are ``warm``."""
    engine = engine or place.engine()[0]
    questions = place.questions
    place_of_next = first * len(questions) // place.options.readers
    for query in questions[:WARM]:
        engine.search(query.text, K)
    warm.wait()
    walls = []
    until = time.perf_counter() + place.options.seconds
    while time.perf_counter() < until:
        spent = Spent()
        with spent.more():
            evidence = engine.search(questions[place_of_next % len(questions)].text, K)
        walls.append(1000 * spent.wall - evidence.timings.encode)
        place_of_next += 1
    return walls


PHASES: Mapping[str, Callable[[Place], Results]] = {
    "write": write,
    "snapshot": snapshot,
    "open": opening,
    "search": search,
    "shared": shared,
    "added": added,
    "beside": beside,
}


def _quantiles(name: str, values: Sequence[float]) -> Results:
    return {f"{name}_p50": float(np.quantile(values, 0.5)), f"{name}_p95": float(np.quantile(values, 0.95))}


def _memory() -> dict[str, float]:
    """Return the peak and current resident, proportional and private memory of this process in MB."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    rollup = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines()[1:]
    now = {name: float(value.split()[0]) / 1024 for name, value in (line.split(":", 1) for line in rollup)}
    return {
        "peak_mb": float(status["VmHWM"].split()[0]) / 1024,
        "rss_mb": now["Rss"],
        "pss_mb": now["Pss"],
        "own_mb": now["Anonymous"],
    }


def _show(result: Results) -> None:
    """Print one line per number or group of numbers."""
    head = f"{result['corpus']:8}{result['hyperedges']:>9,} {result['phase']:8}"
    plain = {name: value for name, value in result.items() if name not in ("corpus", "hyperedges", "phase")}
    groups = {name: value for name, value in plain.items() if isinstance(value, dict)}
    numbers = {name: value for name, value in plain.items() if name not in groups}
    for name, values in {**({"": numbers} if numbers else {}), **groups}.items():
        print(
            head,
            f"{name:20}",
            "  ".join(f"{label} {_format_value(value)}" for label, value in values.items()),
            flush=True,
        )


def _format_value(value: Any) -> str:
    return " ".join(map(_format_value, value)) if isinstance(value, list) else f"{value:,.4g}"


def _save(options: argparse.Namespace, results: Sequence[Results]) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "load": os.getloadavg()}
    record = {"commit": commit, **machine, "dimension": options.dimension, "results": results}
    options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
