"""Load on `polyad serve`: 50 clients against one, and against the library, also while documents are indexed.

    python benchmarks/serve.py --workers 1 2

builds an index of 2WikiMultihopQA (``--benchmarks``), starts a server for each number of workers, and prints a table as
JSON. Clients are threads of one process with a connection each, whose processor time is measured too. The times of a
search are those that the server states (``timings_ms``); the rest of a request is HTTP, JSON and waiting. Processor
times of the server are read from /proc. The exit status is 1 if a reply has a status other than 200.

    python benchmarks/serve.py --workers 1 --seconds 300

lets the clients search, and ``--writers`` others add and remove documents, for this time instead, and prints the errors
and the memory of the server by tenths of the time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import cycle, islice, takewhile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from polyad import Document, Engine

Row = dict[str, Any]
_TICK = os.sysconf("SC_CLK_TCK")
_PAUSE = 0.5
"""Seconds between the upload of a document and its removal."""

_SETTINGS = ("--set", "server.requests_per_minute=1000000")


def main() -> int:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", type=Path, default=Path("../shared/benchmarks"), help="holds 2wiki")
    parser.add_argument("--store", type=Path, help="index to use, built if missing")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--searches", type=int, default=20, help="of each client")
    parser.add_argument(
        "--documents",
        type=int,
        default=500,
        help="not yet in the index: indexed during the second measurement; 0 for none",
    )
    parser.add_argument("--seconds", type=float, default=0, help="of a run with writers, in place of the measurements")
    parser.add_argument("--writers", type=int, default=4, help="of a run of --seconds")
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2")
    arguments = parser.parse_args()
    folder = arguments.benchmarks / "2wiki"
    questions = [line["text"] for line in _read_lines(folder / "queries.jsonl")]
    corpus = [Document(line["_id"], line["title"], line["text"]) for line in _read_lines(folder / "corpus.jsonl")]
    added, indexed = corpus[: arguments.documents], corpus[arguments.documents :]
    with tempfile.TemporaryDirectory() as temporary:
        store = arguments.store or Path(temporary) / "2wiki"
        is_new = not Engine.exists(store)
        with Engine.open(store, embedder=arguments.embedder if is_new else None) as engine:
            if is_new:
                engine.index_documents(indexed)
            count = engine.catalogue.statistics().documents
        rows = [] if arguments.seconds else [_measure_library(store, questions[:200])]
        for workers in arguments.workers:
            with _serve(store, workers) as (address, pid):
                load = _Load(address, pid, questions)
                load.run(4 * workers, 10)  # loads the model and fills caches
                if arguments.seconds:
                    row = load.run_with_writers(added, arguments.clients, arguments.writers, arguments.seconds)
                    rows.append({"workers": workers, **row})
                    continue
                rows.append({"workers": workers, **load.run(1, 200)})
                rows.append({"workers": workers, **load.run(arguments.clients, arguments.searches)})
                rows[-1]["throughput_ratio"] = round(rows[-1]["per_second"] / rows[-2]["per_second"], 2)
                if arguments.documents:
                    row = load.run_beside(added, arguments.clients, arguments.searches)
                    row["p95_ratio"] = round(row["p95_ms"] / rows[-1]["p95_ms"], 2)
                    rows.append({"workers": workers, **row})
    print(json.dumps({"load": os.getloadavg(), "documents": count, "rows": rows}, indent=1))
    return int(any(set(row.get("statuses", {"200": 0})) != {"200"} for row in rows))


def _read_lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _measure_library(store: Path, questions: Sequence[str]) -> Row:
    """Search with the library alone, one question after the other."""
    with Engine.open(store, create=False) as engine:
        for question in questions[:10]:
            engine.search(question)
        seconds, encode = [], []
        begin, cpu = time.perf_counter(), time.process_time()
        for question in questions:
            start = time.perf_counter()
            encode.append(engine.search(question).timings.encode)
            seconds.append(time.perf_counter() - start)
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    row = _summarize(seconds, wall)
    return {"clients": "library", **row, "cpu_ms": {"library": round(1000 * cpu / len(questions), 2)}} | {
        "encode_ms": round(statistics.median(encode), 2)
    }


def _summarize(seconds: Sequence[float], wall: float) -> Row:
    ordered = sorted(1000 * each for each in seconds)
    return {
        "searches": len(ordered),
        "p50_ms": round(ordered[len(ordered) // 2], 1),
        "p95_ms": round(ordered[int(len(ordered) * 0.95)], 1),
        "per_second": round(len(ordered) / wall, 1),
    }


@contextmanager
def _serve(store: Path, workers: int) -> Iterator[tuple[str, int]]:
    """Yield the address and the process of a server; it has to end with status 0."""
    command = [sys.executable, "-m", "polyad", *_SETTINGS, "serve", "--store", str(store), "--port", "0"]
    process = subprocess.Popen([*command, "--workers", str(workers)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        match = re.search(r"http://(\S+)", process.stdout.readline())
        assert match
        yield match[1], process.pid
    finally:
        process.terminate()
        if process.wait(60):
            raise RuntimeError(f"the server ended with status {process.returncode}")


class _Load:
    """Sends searches to a server.

    Args:
        address: Host and port.
        pid: Process of the server.
        questions: Questions.
    """

    def __init__(self, address: str, pid: int, questions: Sequence[str]) -> None:
        self._address = address
        self._pid = pid
        self._questions = questions

    def run(self, clients: int, searches: int) -> Row:
        """Let clients search one question after the other, all at the same time."""
        timings: list[Row] = []
        statuses: dict[str, int] = {}
        seconds: list[float] = []
        barrier = threading.Barrier(clients + 1)

        def search(client: int) -> None:
            connection = http.client.HTTPConnection(self._address, timeout=120)
            barrier.wait()
            for question in islice(cycle(self._questions), client * searches, (client + 1) * searches):
                start = time.perf_counter()
                status, body = _send(connection, "POST", "/api/v1/search", {"question": question})
                seconds.append(time.perf_counter() - start)
                statuses[str(status)] = statuses.get(str(status), 0) + 1
                if status == 200:
                    timings.append(json.loads(body[body.rindex(b'"timings_ms"') + 13 :].partition(b"}")[0] + b"}"))
            connection.close()

        with ThreadPoolExecutor(clients) as threads:
            running = [threads.submit(search, client) for client in range(clients)]
            before, value = _read_cpu(self._pid), time.process_time()
            barrier.wait()
            begin = time.perf_counter()
            for each in running:
                each.result()
            wall = time.perf_counter() - begin
        after = _read_cpu(self._pid)
        cpu = {name: after[name] - before.get(name, 0) for name in after}
        cpu["clients"] = time.process_time() - value
        return {
            "clients": clients,
            **_summarize(seconds, wall),
            "statuses": statuses,
            "cpu_ms": {name: round(1000 * each / len(seconds), 2) for name, each in sorted(cpu.items())},
            **{f"{stage}_ms": round(statistics.median(t[stage] for t in timings), 2) for stage in timings[0]},
        }

    def run_beside(self, documents: Sequence[Document], clients: int, searches: int) -> Row:
        """Do the same while documents are indexed, as often as it takes for half of the documents."""
        body = {"documents": [{"id": each.id, "title": each.title, "text": each.text} for each in documents]}
        job = self._request("POST", "/api/v1/documents", body)["job"]["id"]
        row: Row = {}
        done = [0]
        while not row or (not row["is_over"] and done[-1] < len(documents) / 2):
            row = self.run(clients, searches)
            state = self._request("GET", f"/api/v1/job?id={job}")["job"]
            done.append(state["done"])
            row["is_over"] = state["state"] in ("succeeded", "failed")
        return {**row, "while": "indexing", "documents_done": done}

    def run_with_writers(self, documents: Sequence[Document], clients: int, writers: int, seconds: float) -> Row:
        """Let clients search while others add and remove documents, and read the memory of the server meanwhile."""
        statuses: Counter[str] = Counter()
        durations: list[float] = []
        begin = time.monotonic()

        def has_time(_: object) -> bool:
            return time.monotonic() - begin < seconds

        def send(connection: http.client.HTTPConnection, method: str, path: str, body: Row | None = None) -> None:
            try:
                statuses[f"{path.partition('?')[0]} {_send(connection, method, path, body)[0]}"] += 1
            except (OSError, http.client.HTTPException) as error:
                statuses[f"{path.partition('?')[0]} {error!r}"] += 1
                connection.close()

        def search(number: int) -> None:
            with closing(http.client.HTTPConnection(self._address, timeout=120)) as connection:
                for question in takewhile(has_time, islice(cycle(self._questions), number, None)):
                    start = time.monotonic()
                    send(connection, "POST", "/api/v1/search", {"question": question})
                    durations.append(time.monotonic() - start)

        def write(number: int) -> None:
            with closing(http.client.HTTPConnection(self._address, timeout=120)) as connection:
                for document in takewhile(has_time, cycle(documents[number::writers])):
                    body = {"documents": [{"id": document.id, "title": document.title, "text": document.text}]}
                    send(connection, "POST", "/api/v1/documents", body)
                    time.sleep(_PAUSE)
                    send(connection, "DELETE", f"/api/v1/document?id={quote(document.id)}")

        with ThreadPoolExecutor(clients + writers) as threads:
            running = [threads.submit(search, number) for number in range(clients)]
            running += [threads.submit(write, number) for number in range(writers)]
            memory = []
            for part in range(1, 11):
                time.sleep(max(0.0, begin + part * seconds / 10 - time.monotonic()))
                memory.append(_read_memory(self._pid))
            for each in running:
                each.result()
        row = {"clients": clients, "writers": writers, **_summarize(durations, seconds), "memory_mb": memory}
        errors = {name: count for name, count in statuses.items() if name.rpartition(" ")[2] not in ("200", "202")}
        return {**row, "errors": errors, "statuses": {"error" if errors else "200": sum(statuses.values())}}

    def _request(self, method: str, path: str, body: Row | None = None) -> Row:
        """Send a request over a connection of its own, since the server closes a connection that is idle."""
        with closing(http.client.HTTPConnection(self._address, timeout=120)) as connection:
            return dict(json.loads(_send(connection, method, path, body)[1]))


def _send(connection: http.client.HTTPConnection, method: str, path: str, body: Row | None = None) -> tuple[int, bytes]:
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


def _read_cpu(pid: int) -> dict[str, float]:
    """Return the processor seconds of a server and of its child processes, in the order in which they start."""
    cpu = {"server": _get_cpu(pid)}
    path = Path(f"/proc/{pid}/task/{pid}/children")
    for number, child in enumerate(path.read_text().split()):
        count = len(path.read_text().split())
        name = "encoder" if not number else "jobs" if number == count - 1 else "workers"
        cpu[name] = cpu.get(name, 0.0) + _get_cpu(int(child))
    return cpu


def _read_memory(pid: int) -> int:
    """Return the resident memory of a server and its child processes in MB."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    pages = [int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in (pid, *children)]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") // 1_000_000


def _get_cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


if __name__ == "__main__":
    sys.exit(main())
