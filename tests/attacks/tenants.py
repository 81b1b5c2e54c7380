"""Sends random requests of three tenants to every route of a server, and looks for another tenant's text.

    python -m tests.attacks.tenants --requests 50000

Each tenant's documents, entities and file names contain a word that no other tenant has. Every id and word that one
tenant may see is sent with every other tenant's key, over every route of the API, OpenAI's API, MCP and Dify. The exit
status is 1 if a response contains a foreign word or has a status of 500 or above.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from polyad import Document, Engine
from polyad.config import ServerSettings
from polyad_server.app import create_app
from polyad_server.keys import add_key
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app

TENANTS = {"amber": "Quorvex", "basalt": "Zelmira", "cedar": "Thandrik"}
"""Name of each workspace, and the word that only its documents contain."""

ODD_IDS = (
    "a/b#c?d%20e",
    "..%2f..",
    "../../etc/passwd",
    " ",
    "塔恩的钟",
    "x" * 500,
    "\u202e",
    "'; DROP TABLE documents; --",
    "",
)


@dataclass
class Tenant:
    """What one tenant knows."""

    name: str
    word: str
    key: str
    ids: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)


def main() -> None:
    """Attack a server on loopback."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = attack(Path(folder), arguments.requests, arguments.seed)
    sys.stdout.write(f"{json.dumps(report, indent=2)}\n")
    sys.exit(bool(report["leaks"] or report["server_errors"]))


def attack(folder: Path, count: int, seed: int) -> dict[str, Any]:
    """Send random requests and return what went wrong."""
    tenants = [_create_tenant(folder, name, word) for name, word in TENANTS.items()]
    settings = ServerSettings(requests_per_minute=10**9)
    workspaces = Workspaces(open_index(), [], folder)
    leaks: list[str] = []
    errors: list[str] = []
    statuses: Counter[int] = Counter()
    with run_app(create_app(workspaces, settings, allow_writes=True)) as server:
        for tenant in tenants:
            _learn_ids(server, tenant)
        rng = random.Random(seed)
        routes = sorted(_list_routes(server))
        for _ in range(count):
            tenant, other = rng.sample(tenants, 2)
            method, path, options = _build_request(rng, routes, tenant, other)
            request = _send(server.client, tenant, method, path, options)
            statuses[request.status_code] += 1
            line = (
                f"{method} {path} {json.dumps(options, ensure_ascii=False, default=str)[:300]}: {request.status_code}"
            )
            if request.status_code >= 500:
                errors.append(line)
            if _has_foreign_word(request.text, tenant, options, tenants):
                leaks.append(f"{line} {request.text[:300]}")
    return {
        "requests": count,
        "routes": len(routes),
        "statuses": dict(sorted(statuses.items())),
        "leaks": leaks[:20],
        "server_errors": errors[:20],
    }


def _create_tenant(folder: Path, name: str, word: str) -> Tenant:
    documents = tuple(
        Document(
            f"{name}-{number}.md",
            f"{word} {number}",
            f"{word} Tower {number} was built by {word} Larsen in 19{number:02}.",
        )
        for number in range(8)
    )
    with Engine.open(build_index(folder / name, documents)) as engine:
        return Tenant(name, word, add_key(engine.values, "client", "admin", datetime.now(UTC)))


def _learn_ids(server: RunningServer, tenant: Tenant) -> None:
    client, headers = server.client, {"Authorization": f"Bearer {tenant.key}"}
    documents = client.get("/api/v1/documents", headers=headers).json()["documents"]
    entities = client.get("/api/v1/entities", headers=headers).json()["entities"]
    body = {"documents": [{"id": f"{tenant.name}-new.md", "text": f"{tenant.word} has a new tower."}]}
    job = client.post("/api/v1/documents", json=body, headers=headers).json()["job"]["id"]
    tenant.jobs.append(job)
    ids = [each["id"] for each in documents]
    tenant.ids = [*ids, *(f"{id}#0000" for id in ids), *(f"{id}#0000/000" for id in ids), job]
    tenant.ids += [each["key"] for each in entities]


def _list_routes(server: RunningServer) -> Iterator[tuple[str, str, str]]:
    """Yield method, path and body schema of every route; MCP's is added, which the description lacks."""
    description = server.client.get("/openapi.json").json()
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            content = route.get("requestBody", {}).get("content", {})
            kind = next(iter(content), "")
            reference = content.get(kind, {}).get("schema", {}).get("$ref", "").rpartition("/")[2]
            if path not in ("/metrics", "/healthz", "/readyz"):
                yield method.upper(), path, reference or kind
    yield "POST", "/mcp", "mcp"


def _build_request(
    rng: random.Random, routes: list[tuple[str, str, str]], tenant: Tenant, other: Tenant
) -> tuple[str, str, dict[str, Any]]:
    """Return a request of a tenant that names things of another."""
    method, path, body = rng.choice(routes)
    names = [] if method == "DELETE" or path.endswith(("disable", "aliases")) else tenant.ids  # which must remain
    id = rng.choice([*other.ids, *other.ids, *names, *ODD_IDS])
    workspace = rng.choice(["", "", tenant.name, other.name, other.name, *ODD_IDS])
    path = path.replace("{vector_store_id}", workspace or other.name).replace("{model}", workspace or other.name)
    query = {"workspace": workspace, "id": id, "entity": id, "name": id, "like": rng.choice(["", other.name])}
    options: dict[str, Any] = {"params": {key: value for key, value in query.items() if value}}
    if body:
        options |= _build_body(rng, body, id, workspace or other.name, other)
    return method, path, options


def _build_body(rng: random.Random, kind: str, id: str, workspace: str, other: Tenant) -> dict[str, Any]:
    where = rng.choice([None, f'id = "{id}"', {"field": "id", "operator": "like", "values": ["*"]}, "year >= "])
    question = rng.choice(["Who built the tower?", "Which tower is new?", id or " "])
    searching = {"question": question, "where": where, "retriever": rng.choice(["", "bm25", "dense", "x"])}
    bodies: Mapping[str, Any] = {
        "SearchBody": searching,
        "AskBody": {**searching, "stream": rng.choice([True, False]), "history": [{"role": "user", "content": id}]},
        "WorkspaceBody": {"name": rng.choice([other.name, *ODD_IDS])},
        "DocumentsBody": {"documents": [{"id": rng.choice(ODD_IDS) or "x", "text": "A text."}]},
        "IdsBody": {"ids": [id]},
        "JobBody": {"id": rng.choice([*other.jobs, id])},
        "SelectorBody": {"hyperedge": id},
        "RetractionBody": {"hyperedge": id, "reason": "x", "dry_run": True},
        "AliasBody": {"name": rng.choice(ODD_IDS) or "x", "entity": id or "x"},
        "ChatBody": {"model": workspace, "messages": [{"role": "user", "content": question}]},
        "EmbeddingsBody": {"model": workspace, "input": id or "x"},
        "VectorStoreSearchBody": {"query": question},
        "DifyBody": {"knowledge_id": workspace, "query": question},
    }
    if kind == "mcp":
        tool, argument = rng.choice([("search", "query"), ("fetch", "id"), ("describe_entity", "name")])
        call = {"name": tool, "arguments": {argument: id or "x"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        return {"json": message, "headers": {"Accept": "application/json, text/event-stream"}}
    if kind not in bodies:
        return {"files": [("files", (f"{rng.choice(ODD_IDS)[:100]}.txt", b"A text."))]}
    return {"json": bodies[kind]}


def _send(client: httpx2.Client, tenant: Tenant, method: str, path: str, options: dict[str, Any]) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {tenant.key}", **options.pop("headers", {})}
    return client.request(method, path, headers=headers, **options)


def _has_foreign_word(text: str, tenant: Tenant, options: Mapping[str, Any], tenants: list[Tenant]) -> bool:
    """Return whether a response contains a word of another tenant that the request itself does not contain.

    No request stores a foreign word, so a tenant's own workspace never returns one.
    """
    sent = json.dumps(options, ensure_ascii=False, default=str).casefold()
    folded = text.casefold()
    return any(
        each.word.casefold() in folded and each.word.casefold() not in sent for each in tenants if each is not tenant
    )


if __name__ == "__main__":
    main()
