"""Metrics, logs and traces."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from polyad.config import ServerSettings
from polyad_server.app import create_app
from polyad_server.request_log import LOG
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app

QUESTION = {"question": "Who cast the bell of Tarn?"}


@pytest.fixture(scope="module")
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield exporter
    provider.shutdown()


def test_metrics_count_searches_and_requests(server: RunningServer) -> None:
    for _ in range(3):
        server.client.post("/api/v1/search", json={**QUESTION, "retriever": "bm25"})
    server.client.post("/api/v1/ask", json=QUESTION)
    lines = server.client.get("/metrics").text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['polyad_search_seconds_count{retriever="bm25",stage="total"}'] == "3.0"
    assert values['polyad_search_seconds_count{retriever="default",stage="encode"}'] == "1.0"
    assert values['polyad_request_seconds_count{route="/api/v1/search",status="200"}'] == "3.0"
    assert values['polyad_tokens_total{kind="prompt"}'] == "0.0"


def test_metrics_need_a_key_where_there_are_keys(tenants: tuple[RunningServer, dict[str, str]]) -> None:
    server, keys = tenants
    assert server.client.get("/metrics").status_code == 401
    response = server.client.get("/metrics", headers={"Authorization": f"Bearer {keys['one']}"})
    assert response.status_code == 200


def test_a_request_is_logged_without_question_and_key(
    tenants: tuple[RunningServer, dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    server, keys = tenants
    headers = {"Authorization": f"Bearer {keys['one']}", "X-Request-ID": "trace-1"}
    with caplog.at_level(logging.INFO, logger=LOG.name):
        response = server.client.post("/api/v1/search", json=QUESTION, headers=headers)
        deadline = time.monotonic() + 10
        while not caplog.records:  # the server logs the request after it has sent the reply
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert response.headers["x-request-id"] == "trace-1"
    line = json.loads(caplog.records[-1].getMessage())
    assert (line["route"], line["status"], line["workspace"]) == ("/api/v1/search", 200, "one")
    assert (line["request_id"], line["key"]) == ("trace-1", keys["one"].split("_")[1])
    assert "bell" not in caplog.text
    assert keys["one"].split("_")[2] not in caplog.text


def test_an_id_of_a_client_cannot_forge_a_line(server: RunningServer) -> None:
    assert server.client.get("/healthz", headers={"X-Request-ID": "a b"}).headers["x-request-id"] != "a b"


@pytest.mark.parametrize("logs", [False, True])
def test_spans_have_the_names_of_the_conventions(tmp_path: Path, spans: InMemorySpanExporter, logs: bool) -> None:
    spans.clear()
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(log_questions=logs))) as server:
        server.client.post("/api/v1/ask", json=QUESTION)
    ended = {span.name: span for span in spans.get_finished_spans()}
    search, answer = ended["retrieval kb"], ended["chat kb"]
    assert search.attributes
    assert search.attributes["gen_ai.operation.name"] == "retrieval"
    assert search.attributes["gen_ai.data_source.id"] == "kb"
    assert ("gen_ai.retrieval.query.text" in search.attributes) is logs
    assert answer.attributes
    assert answer.attributes["gen_ai.usage.input_tokens"] == 0
