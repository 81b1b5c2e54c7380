"""The native API under ``/api/v1``."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

import pytest

from polyad import Document
from polyad.engine.catalogue import Catalogue
from tests.polyad_server.serving import RunningServer

QUESTION = {"question": "Who cast the bell of Tarn?", "k": 2}


def wait_for_job(server: RunningServer, id: str) -> dict[str, Any]:
    states: list[dict[str, Any]] = []
    with server.client.stream("GET", "/api/v1/job/events", params={"id": id}) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                states.append(json.loads(line.removeprefix("data: ")))
    assert [state["number"] for state in states] == sorted({state["number"] for state in states})
    return states[-1]


def test_a_search_returns_what_the_command_prints(server: RunningServer) -> None:
    response = server.client.post("/api/v1/search", json=QUESTION)
    assert response.status_code == 200
    shape = response.json()
    assert shape["schema"] == 1
    assert shape["hits"][0]["document_id"] == "bell.md"
    assert len(shape["hits"]) == 2
    assert "trace" not in shape
    assert "trace" in server.client.post("/api/v1/search", json={**QUESTION, "explain": True}).json()


def test_exact_search(server: RunningServer) -> None:
    shape = server.client.get("/api/v1/grep", params={"pattern": "19[0-9]{2}", "limit": 1}).json()
    assert [match["document_id"] for match in shape["matches"]] == ["bell.md"]
    assert (shape["total"], shape["next_cursor"]) == (2, 1)
    parameters: dict[str, str | bool] = {
        "pattern": "corven tower",
        "phrase": True,
        "ignore_case": True,
        "where": 'id = "tower.md"',
    }
    assert server.client.get("/api/v1/grep", params=parameters).json()["total"] == 1
    assert server.client.get("/api/v1/grep", params={"pattern": "(a"}).status_code == 422


def test_a_filter_is_text_or_json(server: RunningServer) -> None:
    for where in ('id = "tower.md"', {"field": "id", "operator": "=", "values": ["tower.md"]}):
        hits = server.client.post("/api/v1/search", json={**QUESTION, "where": where}).json()["hits"]
        assert [hit["document_id"] for hit in hits] == ["tower.md"]


JSON = {"Content-Type": "application/json"}


def test_bad_requests_are_problems(server: RunningServer) -> None:
    for body, kind in (
        ({"question": " "}, "configuration"),
        ({"question": "x" * 8001}, "question_too_long"),
        ({**QUESTION, "k": 21}, "k_too_large"),
        ({**QUESTION, "colour": "red"}, "invalid_request"),
        ({**QUESTION, "where": "year >="}, "filter"),
        ({**QUESTION, "retriever": "guess"}, "configuration"),
    ):
        response = server.client.post("/api/v1/search", json=body)
        assert response.status_code == 422, body
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["kind"] == kind
        assert response.json()["detail"]
    response = server.client.post("/api/v1/search", content='{"question": x}', headers=JSON)
    assert (response.status_code, response.json()["kind"]) == (422, "invalid_request")
    assert response.json()["detail"] == "the body is not JSON at character 13; expected an object"


def test_without_a_model_an_answer_is_the_evidence(server: RunningServer) -> None:
    answer = server.client.post("/api/v1/ask", json=QUESTION).json()
    assert answer["answer"] == ""
    assert answer["evidence"]["hits"][0]["document_id"] == "bell.md"
    with server.client.stream("POST", "/api/v1/ask", json={**QUESTION, "stream": True}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [line for line in response.iter_lines() if line.startswith("event: ")]
    assert events == ["event: evidence", "event: citations", "event: done"]


def test_texts_and_files_are_indexed_in_the_background(server: RunningServer) -> None:
    body = {"documents": [{"id": "a/b#c?", "text": "Aldby lies on the river Orra.", "metadata": {"year": 2020}}]}
    response = server.client.post("/api/v1/documents", json=body)
    assert response.status_code == 202
    job = wait_for_job(server, response.json()["job"]["id"])
    assert (job["state"], job["report"]["added"]) == ("succeeded", 1)
    document = server.client.get("/api/v1/document", params={"id": "a/b#c?"}).json()
    assert (document["text"], document["metadata"]["year"]) == ("Aldby lies on the river Orra.", 2020)
    files = [("files", ("notes/orra.md", b"# Orra\n\nThe Orra rises in Velm.")), ("files", ("bad.pdf", b"no PDF"))]
    response = server.client.post("/api/v1/documents/files", files=files, data={"metadata": '{"year": 1999}'})
    job = wait_for_job(server, response.json()["job"]["id"])
    assert job["state"] == "succeeded"
    assert [failure["id"] for failure in job["report"]["failures"]] == ["bad.pdf"]
    document = server.client.get("/api/v1/document", params={"id": "notes/orra.md"}).json()
    assert (document["title"], document["source"]) == ("Orra", "")
    assert document["metadata"] == {"year": 1999, "path": "notes/orra.md", "extension": ".md"}
    hits = server.client.post("/api/v1/search", json={"question": "Where does the Orra rise?"}).json()["hits"]
    assert hits[0]["document_id"] == "notes/orra.md"


def test_a_repeated_request_is_one_job(server: RunningServer) -> None:
    body = {"documents": [{"id": "a", "text": "Aldby lies on the river Orra."}]}
    headers = {"Idempotency-Key": "one"}
    first = server.client.post("/api/v1/documents", json=body, headers=headers).json()["job"]["id"]
    assert server.client.post("/api/v1/documents", json=body, headers=headers).json()["job"]["id"] == first
    other = {"documents": [{"id": "b", "text": "Another text."}]}
    assert server.client.post("/api/v1/documents", json=other, headers=headers).status_code == 409


def test_documents_are_listed_in_parts_disabled_and_removed(server: RunningServer) -> None:
    first = server.client.get("/api/v1/documents", params={"limit": 2}).json()
    second = server.client.get("/api/v1/documents", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    ids = [each["id"] for each in (*first["documents"], *second["documents"])]
    assert (ids, second["next_cursor"]) == (["bell.md", "moreau.md", "tower.md"], "")
    assert server.client.get("/api/v1/documents", params={"cursor": "?"}).status_code == 422
    server.client.post("/api/v1/documents/disable", json={"ids": ["bell.md"]}).raise_for_status()
    hits = server.client.post("/api/v1/search", json=QUESTION).json()["hits"]
    assert "bell.md" not in [hit["document_id"] for hit in hits]
    server.client.post("/api/v1/documents/enable", json={"ids": ["bell.md"]}).raise_for_status()
    response = server.client.delete("/api/v1/document", params={"id": "bell.md"})
    assert response.json()["documents"] == 2
    assert server.client.delete("/api/v1/document", params={"id": "bell.md"}).status_code == 404


def test_the_hypergraph_can_be_explored(server: RunningServer) -> None:
    around = server.client.get("/api/v1/neighbourhood", params={"entity": "Ines Moreau"}).json()
    assert around["entities"][0]["name"] == "Ines Moreau"
    assert around["entities"][0]["degree"] == around["total"]
    edge = server.client.get("/api/v1/hyperedge", params={"id": around["hyperedges"][0]["id"]}).json()
    keys = {incidence["entity_key"] for incidence in edge["incidences"]}
    assert keys == set(around["hyperedges"][0]["entities"])
    passage = server.client.get("/api/v1/passage", params={"id": edge["passage_id"]}).json()
    assert "Ines Moreau" in passage["text"]
    entity = server.client.get("/api/v1/entity", params={"name": "Ines Moreau"}).json()
    assert len(entity["hyperedges"]) == around["total"]
    assert server.client.get("/api/v1/entity", params={"name": "Nobody"}).status_code == 404


def test_entities_are_listed_in_parts_without_reading_the_others(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = server.client.get("/api/v1/entities", params={"limit": 1000}).json()
    names = [entity["name"] for entity in everything["entities"]]
    towers = server.client.get("/api/v1/entities", params={"like": "TOWER"}).json()
    assert (towers["total"], towers["entities"][0]["name"]) == (1, "Corven Tower")
    monkeypatch.delattr(Catalogue, "entities")
    pages: list[dict[str, Any]] = []
    cursor = ""
    while not pages or cursor:
        page = server.client.get("/api/v1/entities", params={"limit": 2, "cursor": cursor}).json()
        pages.append(page)
        cursor = page["next_cursor"]
    assert [entity["name"] for page in pages for entity in page["entities"]] == names
    assert {page["total"] for page in pages} == {len(names)} == {everything["total"]}
    negative = base64.urlsafe_b64encode(b"-5").decode()
    assert len(server.client.get("/api/v1/entities", params={"cursor": negative}).json()["entities"]) == len(names)


def test_corrections_take_effect_at_once(server: RunningServer) -> None:
    edge = server.client.get("/api/v1/neighbourhood", params={"entity": "Ines Moreau"}).json()["hyperedges"][0]
    body = {"hyperedge": edge["id"], "reason": "wrong"}
    trial = server.client.post("/api/v1/retractions", json={**body, "dry_run": True}).json()
    assert [one["hyperedge_id"] for one in trial["withdrawn"]] == [edge["id"]]
    assert server.client.get("/api/v1/retractions").json()["total"] == 0
    server.client.post("/api/v1/retractions", json=body).raise_for_status()
    assert server.client.get("/api/v1/hyperedge", params={"id": edge["id"]}).status_code == 404
    [retraction] = server.client.get("/api/v1/retractions").json()["retractions"]
    assert retraction["selector"] == {"hyperedge": edge["id"]}
    assert [fact["hyperedge_id"] for fact in retraction["facts"]] == [edge["id"]]
    server.client.post("/api/v1/retractions/restore", json=retraction["selector"]).raise_for_status()
    assert server.client.get("/api/v1/hyperedge", params={"id": edge["id"]}).status_code == 200
    alias = {"name": "The founder", "entity": "Ines Moreau"}
    server.client.post("/api/v1/aliases", json=alias).raise_for_status()
    assert server.client.get("/api/v1/entity", params={"name": "The founder"}).json()["name"] == "Ines Moreau"
    server.client.delete("/api/v1/aliases", params={"name": "The founder"}).raise_for_status()
    commands = [change["command"] for change in server.client.get("/api/v1/log").json()["changes"]]
    assert commands == ["alias", "alias", "restore", "retract", "index"]


def test_health_and_description(server: RunningServer) -> None:
    assert server.client.get("/healthz").json() == {"status": "ok"}
    assert server.client.get("/readyz").json() == {"status": "ready"}
    description = server.client.get("/openapi.json").json()
    assert "/api/v1/search" in description["paths"]
    references = re.findall(r"#/components/schemas/(\w+)", json.dumps(description))
    assert set(references) <= description["components"]["schemas"].keys()
    assert server.client.get("/api/v1/stats").json()["documents"] == 3


def test_each_operation_describes_the_result_that_it_returns(server: RunningServer) -> None:
    description = server.client.get("/openapi.json").json()
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            statuses = [status for status in operation["responses"] if status < "300"]
            assert len(statuses) == 1, (method, path, statuses)
            content = operation["responses"][statuses[0]]["content"]
            if shape := content.get("application/json"):
                assert "$ref" in shape["schema"] or path == "/api/v1/job/events", (method, path, shape)
    job = server.client.post(
        "/api/v1/documents", json={"documents": [{"id": "orra", "text": "The Orra rises in Velm."}]}
    )
    assert str(job.status_code) in description["paths"]["/api/v1/documents"]["post"]["responses"]
    assert set(job.json()["job"]) == set(description["components"]["schemas"]["JobSchema"]["properties"])


@pytest.mark.parametrize("value", ["NaN", "1e400", '"\\ud800"'])
def test_metadata_that_is_no_json_is_rejected(server: RunningServer, value: str) -> None:
    files = [("files", ("orra.md", b"The Orra rises in Velm."))]
    data = {"metadata": f'{{"length": {value}}}'}
    assert server.client.post("/api/v1/documents/files", files=files, data=data).status_code == 422
    body = f'{{"documents": [{{"id": "orra.md", "text": "The Orra", "metadata": {{"length": {value}}}}}]}}'
    response = server.client.post("/api/v1/documents", content=body, headers=JSON)
    assert response.status_code == (202 if "ud800" in value else 422)
    assert server.client.get("/api/v1/jobs").status_code == 200


@pytest.mark.parametrize("name", ["Tarn." + "x" * 400, "\u5854" * 200 + ".md", "x" * 480 + ".md"])
def test_a_file_with_a_long_name_does_not_stop_later_jobs(server: RunningServer, name: str) -> None:
    for each, state in ((name, "succeeded" if name.endswith(".md") else "failed"), ("orra.md", "succeeded")):
        files = [("files", (each, b"The Orra rises in Velm."))]
        response = server.client.post("/api/v1/documents/files", files=files)
        assert wait_for_job(server, response.json()["job"]["id"])["state"] == state


def test_a_job_that_crashes_does_not_stop_later_jobs(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> Iterator[Document]:
        raise OSError("no space left on device")

    body = {"documents": [{"id": "orra.md", "text": "The Orra rises in Velm."}]}
    with monkeypatch.context() as patch:
        patch.setattr("polyad_server.job_kinds.read_uploads", read)
        job = server.client.post("/api/v1/documents", json=body).json()["job"]
        assert wait_for_job(server, job["id"])["state"] == "failed"
    job = server.client.post("/api/v1/documents", json=body).json()["job"]
    assert wait_for_job(server, job["id"])["state"] == "succeeded"


@pytest.mark.parametrize("path", ["/api/v1/search", "/api/v1/ask"])
@pytest.mark.parametrize("stream", ["true", "false"])
def test_a_question_with_a_lone_surrogate_is_rejected(server: RunningServer, path: str, stream: str) -> None:
    rest = f', "stream": {stream}' if path.endswith("ask") else ""
    body = f'{{"question": "Who cast the \\ud800 bell?"{rest}}}'
    assert server.client.post(path, content=body, headers=JSON).status_code == 422


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/", "/v1/models", "/api/v1/jobs"]
)
def test_head_is_answered_as_get_without_a_body(server: RunningServer, path: str) -> None:
    response = server.client.head(path)
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-type"] == server.client.get(path).headers["content-type"]


def test_the_address_of_the_documentation_is_relative(server: RunningServer) -> None:
    response = server.client.get("/docs", follow_redirects=False)
    assert urljoin("https://intra.example.org/rag/docs", response.headers["location"]) == (
        "https://intra.example.org/rag/#/api"
    )
