"""Sends requests that schemathesis generates from the OpenAPI description to every operation of a server.

    python -m tests.attacks.openapi --requests 10000

Half of the requests are valid by the description and half are not. Most ids and names are drawn from a list of texts,
most of which exist in the index, so that requests also reach what lies behind the look-up. The exit status is 1 if a
response has a status of 500 or above.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.core.result import Ok

from polyad.config import ServerSettings
from polyad_server.app import create_app
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import DOCUMENTS, RunningServer, build_index, open_index, run_app

WORKSPACE = "kb"
WORKSPACES_PATH = "/api/v1/workspaces"
TEXTS = ("bell.md", "bell.md#0000", "bell.md#0000/000", "Ines Moreau", "ines moreau", WORKSPACE, "bm25")
NAMES = frozenset(("id", "ids", "entity", "name", "hyperedge", "model", "knowledge_id", "vector_store_id", "retriever"))
"""Parameters and properties that take an id or a name."""

ROUNDS = 10
"""Least number of passes over all operations, so that the changes of one operation meet the requests of all others."""


@dataclass
class Findings:
    """Statuses of all responses, and the requests that failed in the server."""

    requests: int = 0
    operations: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    server_errors: dict[str, str] = field(default_factory=dict)


def main() -> None:
    """Attack a server on loopback."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        findings = attack(Path(folder), arguments.requests, arguments.seed)
    report = {**vars(findings), "statuses": dict(sorted(findings.statuses.items()))}
    sys.stdout.write(f"{json.dumps(report, indent=2)}\n")
    sys.exit(bool(findings.server_errors))


def attack(folder: Path, count: int, seed_number: int) -> Findings:
    """Send at least `count` requests and return the statuses of the responses."""
    build_index(folder / WORKSPACE)
    workspaces = Workspaces(open_index(), [], folder)
    app = create_app(workspaces, ServerSettings(requests_per_minute=10**9), allow_writes=True)
    findings = Findings()
    with run_app(app) as server:
        description = server.client.get("/openapi.json").json()
        schema = schemathesis.openapi.from_dict(description)
        schema.config.update(base_url=server.url)
        operations = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
        assert len(operations) == sum(map(len, description["paths"].values()))
        findings.operations = len(operations)
        number = 0
        while number < ROUNDS or findings.requests < count:
            _restore_documents(server)
            for operation in operations:
                for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
                    remaining = (count - findings.requests) / len(operations) / 2 / max(1, ROUNDS - number)
                    if remaining > 0:
                        examples = max(1, math.ceil(remaining))
                        _send_cases(operation, mode, examples, seed_number + number, findings)
            number += 1
        _restore_documents(server)
    return findings


def _send_cases(
    operation: schemathesis.APIOperation[Any, Any, Any, Any],
    mode: schemathesis.GenerationMode,
    examples: int,
    seed_number: int,
    findings: Findings,
) -> None:
    @seed(seed_number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode), text=st.one_of(st.none(), st.sampled_from(TEXTS)))
    def send(case: schemathesis.Case[Any], text: str | None) -> None:
        if text is not None:
            if operation.path != WORKSPACES_PATH:
                case.query = {**(case.query or {}), "workspace": WORKSPACE}
            case.path_parameters = _insert(case.path_parameters, text)
            case.query = _insert(case.query, text)
            case.body = _insert(case.body, text)
        response = case.call(timeout=60)
        findings.requests += 1
        findings.statuses[response.status_code] += 1
        if response.status_code >= 500:
            findings.server_errors.setdefault(operation.label, f"{response.status_code}: {case.as_curl_command()}")

    with suppress(Unsatisfiable):  # an operation without parameters has no invalid request
        send()


def _insert(value: Any, text: str) -> Any:
    """Return a value of a request with a text as each id and name."""
    if isinstance(value, Mapping):
        return {key: _replace(each, text) if key in NAMES else _insert(each, text) for key, each in value.items()}
    return [_insert(each, text) for each in value] if isinstance(value, list) else value


def _replace(value: Any, text: str) -> Any:
    if isinstance(value, list):
        return [text for _ in value]
    return text if isinstance(value, str) else value


def _restore_documents(server: RunningServer) -> None:
    """Index again what earlier requests removed, and check that the server answers a valid search."""
    documents = [{"id": each.id, "title": each.title, "text": each.text} for each in DOCUMENTS]
    parameters = {"workspace": WORKSPACE}
    response = server.client.post("/api/v1/documents", params=parameters, json={"documents": documents})
    assert response.status_code == 202, response.text
    response = server.client.post("/api/v1/search", params=parameters, json={"question": "Who cast the bell?"})
    assert response.status_code == 200, response.text


if __name__ == "__main__":
    main()
