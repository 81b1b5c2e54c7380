"""Measures workers on an index in PostgreSQL: throughput, killed workers, and readers beside writers.

Usage::

    python benchmarks/workers.py throughput --documents 48    # one worker, then four; a model of 1 s latency
    python benchmarks/workers.py kills --seconds 120          # four workers, one killed every 5 s
    python benchmarks/workers.py readers --seconds 60         # 20 processes that search, beside 5 writes a second

Prints one JSON object. PostgreSQL and the model are started for the run; replies and vectors are scripted, so that the
figures are those of jobs, transactions and waiting.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier

import numpy as np

from polyad.config import LanguageModelSettings
from polyad.engine import Engine
from polyad.engine.workers import WorkerRun
from polyad.language_models.scripted import Request, ScriptedServer, extract_passage
from polyad.model import Document, IndexedDocument
from polyad.protocols.components import silent

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.postgres_server import (
    get_server,
    get_url,
)  # the folder above is not on the path of a script

_READERS = 20
_WRITES = 5

_MIN_REQUESTS = 8
"""Requests after which the first worker is killed: the workers have started."""


class Model(ScriptedServer):
    """A model that states a fact about each passage, and counts requests by passage."""

    def __init__(self, delay: float) -> None:
        self.requests: Counter[str] = Counter()
        self.times: list[float] = []
        super().__init__(self._reply_to, delay=delay)

    def _reply_to(self, request: Request) -> str:
        passage = extract_passage(str(request["messages"][-1]["content"]))
        self.requests[passage] += 1
        self.times.append(time.monotonic())
        words = passage.split()
        fact = {
            "text": " ".join(words[:8]),
            "entities": [words[0], words[3]],
            "score": 9,
        }
        return json.dumps({"facts": [fact], "entities": []})


class Run:
    """Indexes generated documents with worker processes.

    Args:
        folder: Folder of the documents.
        name: Name of the workspace.
        model: The language model.
        concurrency: Concurrent requests of each worker.
    """

    def __init__(self, folder: Path, name: str, model: Model, concurrency: int) -> None:
        self.folder = folder
        self.url = get_url(f"{folder}/{name}")
        self.processes: list[subprocess.Popen[bytes]] = []
        self._model = model
        self._concurrency = concurrency

    def start(self) -> subprocess.Popen[bytes]:
        """Start a worker process."""
        environment = {
            "OPENAI_BASE_URL": self._model.base_url,
            "OPENAI_API_KEY": "k",
            "POLYAD_STORE": self.url,
            "POLYAD_LANGUAGE_MODEL_CONCURRENCY": str(self._concurrency),
            "POLYAD_WORKER_LEASE_SECONDS": "10",
        }
        command = [
            sys.executable,
            "-m",
            "polyad",
            "worker",
            "--until-idle",
            "--model",
            "m",
        ]
        self.processes.append(subprocess.Popen(command, env={**os.environ, **environment}))
        return self.processes[-1]

    def index(self, workers: int) -> dict[str, object]:
        """Index the documents and return the figures."""
        settings = LanguageModelSettings(model="m", base_url=self._model.base_url, api_key="k")
        with Engine.open(self.url, embedder="hashing:64", language_model=settings) as engine:
            report = WorkerRun(engine, self.start, workers).index([self.folder], "facts", silent, prune=False)
        ends = self._model.times[-1] - self._model.times[0] if self._model.times else 0.0
        return {
            "workers": workers,
            "documents": report.counts.added,
            "failures": len(report.failures),
            "seconds_between_first_and_last_request": round(ends, 1),
            "requests": self._model.requests.total(),
            "passages_asked_twice": sum(count > 1 for count in self._model.requests.values()),
        }


def write_documents(folder: Path, count: int) -> None:
    """Write documents of one passage."""
    folder.mkdir()
    for number in range(count):
        text = f"Anna{number} of Oslo met Bob{number % 7} of Aldby in the year {1900 + number}. They spoke of otters."
        (folder / f"{number:04}.txt").write_text(text)


def read_contents(place: str | Path) -> list[object]:
    """Return everything about the documents of an index but the time when they were indexed."""
    with Engine.open(place, create=False) as engine:
        assert hasattr(engine.values, "read_transaction")
        with engine.values.read_transaction() as transaction:
            documents = transaction.get(IndexedDocument)
    return [
        (
            item.document.id,
            item.digest,
            [
                (
                    p.passage,
                    p.vector.tobytes(),
                    [(e.hyperedge, e.incidences, e.vector.tobytes()) for e in p.hyperedges],
                )
                for p in item.passages
            ],
        )
        for item in documents.values()
    ]


def measure_throughput(folder: Path, documents: int, delay: float) -> dict[str, object]:
    """Return the figures of one worker and of four, each with one request at a time."""
    write_documents(folder / "files", documents)
    runs = []
    for workers in (1, 4):
        with Model(delay) as model:
            runs.append(Run(folder / "files", f"workers-{workers}", model, 1).index(workers))
    seconds = [float(str(run["seconds_between_first_and_last_request"])) for run in runs]
    return {"runs": runs, "speedup": round(seconds[0] / seconds[1], 2)}


def measure_kills(folder: Path, documents: int, delay: float, seconds: float) -> dict[str, object]:
    """Return the figures of four workers of which one is killed every 5 seconds."""
    write_documents(folder / "files", documents)
    with Model(delay) as model:
        run = Run(folder / "files", "killed", model, 2)
        is_done = threading.Event()
        kills = 0

        def kill() -> None:
            nonlocal kills
            while len(model.times) < _MIN_REQUESTS:
                time.sleep(0.1)
            end = time.monotonic() + seconds
            while not is_done.wait(5) and time.monotonic() < end:
                active = [process for process in run.processes if process.poll() is None]
                active[kills % len(active)].kill()
                kills += 1

        thread = threading.Thread(target=kill)
        thread.start()
        figures = run.index(4)
        is_done.set()
        thread.join()
    with Model(0.0) as model:
        settings = LanguageModelSettings(model="m", base_url=model.base_url, api_key="k", cache_name="alone")
        with Engine.open(folder / "alone", embedder="hashing:64", language_model=settings) as engine:
            engine.index(folder / "files", method="facts")
    is_equal = read_contents(run.url) == read_contents(folder / "alone")
    return {
        **figures,
        "kills": kills,
        "processes": len(run.processes),
        "is_equal_to_one_process": is_equal,
    }


def measure_readers(documents: int, seconds: float) -> dict[str, object]:
    """Return the latencies of processes that each search once a second, and the CPU time of the database."""
    url = get_url("readers")
    with Engine.open(url, embedder="hashing:64") as engine:
        engine.index_documents(_build_document(number) for number in range(documents))
        with ProcessPoolExecutor(_READERS, get_context("spawn")) as pool, get_context("spawn").Manager() as manager:
            barrier = manager.Barrier(_READERS + 1)
            tasks = [pool.submit(_search_regularly, url, number, seconds, barrier) for number in range(_READERS)]
            cpu_percent = []
            for writes in (0, _WRITES):
                barrier.wait()
                cpu, start = _get_server_cpu(), time.perf_counter()
                for number in range(int(writes * seconds)):
                    time.sleep(max(0.0, start + number / writes - time.perf_counter()))
                    engine.index_documents([_build_document(documents + number)])
                time.sleep(max(0.0, start + seconds - time.perf_counter()))
                share = (_get_server_cpu() - cpu) / (time.perf_counter() - start)
                cpu_percent.append(round(100 * share, 1))
            latencies = [[time for task in tasks for time in task.result()[phase]] for phase in (0, 1)]
    phases = [
        {
            "writes_a_second": writes,
            "searches": len(times),
            "p50_ms": round(float(np.percentile(times, 50)), 1),
            "p95_ms": round(float(np.percentile(times, 95)), 1),
            "database_cpu_percent": cpu,
        }
        for writes, times, cpu in zip((0, _WRITES), latencies, cpu_percent, strict=True)
    ]
    ratio = float(np.percentile(latencies[1], 95) / np.percentile(latencies[0], 95))
    return {"readers": _READERS, "phases": phases, "p95_ratio": round(ratio, 2)}


def _build_document(number: int) -> Document:
    text = f"Anna{number} of Oslo met Bob{number % 7} of Aldby in the year {1900 + number}. They spoke of otters."
    return Document(str(number), f"Anna{number}", text)


def _search_regularly(url: str, reader: int, seconds: float, barrier: Barrier) -> list[list[float]]:
    """Search once a second in two phases; return the latencies of each in ms."""
    phases: list[list[float]] = []
    with Engine.open(url, create=False) as engine:
        engine.search("Who met Anna1?")
        engine.follow_changes()
        for _ in range(2):
            barrier.wait()
            end, latencies = time.perf_counter() + seconds, list[float]()
            time.sleep(reader / _READERS)
            while (start := time.perf_counter()) < end:
                engine.search(f"Who met Anna{random.randrange(100)} in Aldby?")
                latencies.append(1000 * (time.perf_counter() - start))
                time.sleep(max(0.0, start + 1 - time.perf_counter()))
            phases.append(latencies)
    return phases


def _get_server_cpu() -> float:
    """Return the CPU seconds of all processes of the database server so far (Linux)."""
    server = get_server().process_id
    fields = [Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()]
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    for child in children:
        with suppress(FileNotFoundError):  # it ended, and the server has its time
            fields.append(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split())
    number = sum(int(ticks) for process in fields for ticks in process[11:13])
    return (number + sum(map(int, fields[0][13:15]))) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run a measurement and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", choices=["throughput", "kills", "readers"])
    parser.add_argument("--documents", type=int, default=48)
    parser.add_argument("--delay", type=float, default=1.0, help="latency of the model in seconds")
    parser.add_argument(
        "--seconds",
        type=float,
        default=120.0,
        help="time during which workers are killed",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="polyad-") as folder:
        measurements: dict[str, Callable[[], dict[str, object]]] = {
            "throughput": lambda: measure_throughput(Path(folder), options.documents, options.delay),
            "kills": lambda: measure_kills(Path(folder), options.documents, options.delay, options.seconds),
            "readers": lambda: measure_readers(options.documents, options.seconds),
        }
        print(json.dumps(measurements[options.figures]()))


if __name__ == "__main__":
    main()
