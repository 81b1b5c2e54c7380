"""How much later a server answers one tenant while another sends expensive requests: pictures, greps, baselines, lists.

    python benchmarks/tenants.py

builds two workspaces, sends each route of the second one a few requests, repeats them while clients of the first one
send expensive requests without a pause, and prints the slowest reply of each route as JSON. The exit status is 1 if a
reply of a route comes more than ``--limit`` seconds later, or has an unexpected status.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs

from polyad import Document, Engine
from polyad_server.keys import add_key

_SETTINGS = ("server.requests_per_minute=1000000", "server.retrievers=default,lightrag")
_WORDS = (
    *("bell", "tower", "pump", "valve", "amber", "basalt", "copper", "river", "island", "harbour", "engine"),
    *("letter", "garden", "winter", "market", "lantern"),
)
_QUESTION = "Which pump is in the tower?"


class _Tenant(NamedTuple):
    """A workspace, a key for it, and the passage of its drawing."""

    name: str
    key: str
    passage: str


class _Call(NamedTuple):
    """A request: method, path, and its parameters or JSON."""

    method: str
    path: str
    values: dict[str, Any]

    def send(self, client: httpx2.Client) -> int:
        """Send the request and return the status of the reply."""
        if self.method == "POST":
            return client.post(self.path, json=self.values).status_code
        return client.get(self.path, params=self.values).status_code


def main() -> int:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=2000, help="of the first tenant")
    parser.add_argument("--curves", type=int, default=25_000, help="of the page whose pictures are requested")
    parser.add_argument("--clients", type=int, default=24, help="that send expensive requests")
    parser.add_argument("--repeats", type=int, default=3, help="requests of each route")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds that a reply may come later")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        noisy = _build_tenant(Path(folder), "noisy", arguments.documents, arguments.curves)
        quiet = _build_tenant(Path(folder), "quiet", 50, 10)
        with _serve(Path(folder) / "root") as url:
            _measure(url, quiet, 1)  # opens the index and loads models
            alone = _measure(url, quiet, arguments.repeats)
            with _send_expensive(url, noisy, arguments.clients) as statuses:
                beside = _measure(url, quiet, arguments.repeats)
    rows = {name: {"alone_s": alone[name][0], "beside_s": beside[name][0], "status": beside[name][1]} for name in alone}
    later = [name for name, row in rows.items() if row["beside_s"] - row["alone_s"] > arguments.limit]
    print(json.dumps({"routes": rows, "later": later, "expensive_statuses": statuses}, indent=1))
    return int(bool(later) or any(row["status"] >= 300 for row in rows.values()))


def _list_routes(tenant: _Tenant) -> dict[str, _Call]:
    messages = [{"role": "user", "content": _QUESTION}]
    documents = [{"id": "new", "text": "A pump."}]
    return {
        "healthz": _Call("GET", "/healthz", {}),
        "search": _Call("POST", "/api/v1/search", {"question": _QUESTION}),
        "ask": _Call("POST", "/api/v1/ask", {"question": _QUESTION}),
        "chat": _Call("POST", "/v1/chat/completions", {"model": tenant.name, "messages": messages}),
        "embeddings": _Call("POST", "/v1/embeddings", {"model": tenant.name, "input": "a pump"}),
        "document": _Call("GET", "/api/v1/document", {"id": "1"}),
        "documents": _Call("GET", "/api/v1/documents", {}),
        "entities": _Call("GET", "/api/v1/entities", {"like": "tower"}),
        "graph": _Call("GET", "/api/v1/graph", {}),
        "grep": _Call("GET", "/api/v1/grep", {"pattern": "pump [0-9]+"}),
        "picture": _Call("GET", "/api/v1/passages/image", {"id": tenant.passage}),
        "jobs": _Call("GET", "/api/v1/jobs", {}),
        "upload": _Call("POST", "/api/v1/documents", {"documents": documents}),
    }


def _list_expensive(tenant: _Tenant, number: int) -> list[_Call]:
    picture = {"id": tenant.passage, "start": number % 40, "end": 50, "width": 100 + 97 * number % 2900}
    search = {"question": f"Which pump {number} is in the tower?", "retriever": "lightrag"}
    return [
        _Call("GET", "/api/v1/passages/image", picture),
        _Call("GET", "/api/v1/grep", {"pattern": "(pump|valve).*(tower|river).*[0-9]+$", "limit": 1000}),
        _Call("POST", "/api/v1/search", search),
        _Call("GET", "/api/v1/documents", {"limit": 1000, "sort": "title"}),
        _Call("GET", "/api/v1/entities", {"like": "e", "limit": 1000}),
    ]


def _build_tenant(folder: Path, name: str, documents: int, curves: int) -> _Tenant:
    """Build a workspace of a drawing and texts, with a key."""
    drawing, chance = folder / f"{name}.pdf", random.Random(7)
    drawing.write_bytes(_draw(curves))
    texts = [
        ". ".join(f"The {' '.join(chance.choices(_WORDS, k=12))} {number}" for _ in range(20))
        for number in range(documents)
    ]
    with Engine.open(folder / "root" / name, embedder="hashing:64") as engine:
        engine.index_documents([Document(str(number), f"Report {number}", text) for number, text in enumerate(texts)])
        engine.index([drawing])
        passage = next(each.id for each in engine.catalogue.passages() if "drawing" in each.text)
        return _Tenant(name, add_key(engine.values, "client", "write", datetime.now(UTC)), passage)


def _draw(curves: int) -> bytes:
    """Return a PDF of one page with many curves."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(595, 842), invariant=1)
    canvas.drawString(72, 780, "This drawing shows the pump in the tower, with all its pipes and valves.")
    for number in range(curves):
        canvas.bezier(number % 595, 0, 100, 842 - number % 842, 500, number % 842, 595 - number % 595, 842)
    canvas.save()
    return file.getvalue()


@contextmanager
def _serve(root: Path) -> Iterator[str]:
    """Yield the address of a server of all workspaces."""
    settings = [word for each in _SETTINGS for word in ("--set", each)]
    command = [sys.executable, "-m", "polyad", *settings, "serve", "--root", str(root), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        match = re.search(r"http://[^\s/]+", process.stdout.readline())
        assert match
        yield match[0]
    finally:
        process.terminate()
        process.wait(60)


def _open_client(url: str, tenant: _Tenant) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {tenant.key}"}
    return httpx2.Client(base_url=url, headers=headers, timeout=300, verify=False)


def _measure(url: str, tenant: _Tenant, repeats: int) -> dict[str, tuple[float, int]]:
    """Return the seconds of the slowest reply of each route, and the highest status."""
    slowest: dict[str, tuple[float, int]] = {}
    with _open_client(url, tenant) as client:
        for _ in range(repeats):
            for name, call in _list_routes(tenant).items():
                start = time.perf_counter()
                status = call.send(client)
                seconds, highest = slowest.get(name, (0.0, 0))
                slowest[name] = (round(max(seconds, time.perf_counter() - start), 3), max(highest, status))
    return slowest


@contextmanager
def _send_expensive(url: str, tenant: _Tenant, clients: int) -> Iterator[Counter[str]]:
    """Let clients send expensive requests of all kinds during the ``with`` block; yield the counts of statuses."""
    statuses: Counter[str] = Counter()
    is_over = threading.Event()

    def send(first: int) -> None:
        number = first
        with _open_client(url, tenant) as client:
            while not is_over.is_set():
                calls = _list_expensive(tenant, number)
                call = calls[number % len(calls)]
                statuses[f"{call.path} {call.send(client)}"] += 1
                number += clients + 1

    with ThreadPoolExecutor(clients) as threads:
        running = [threads.submit(send, number) for number in range(clients)]
        try:
            time.sleep(2)
            yield statuses
        finally:
            is_over.set()
        for each in running:
            each.result()


if __name__ == "__main__":
    sys.exit(main())
