"""The routes of documents: the table with its filters, the outcome of each uploaded file, and indexing again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from polyad import Document, Engine
from polyad_server.app import create_app
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app

PDF = b"%PDF-1.7\n1 0 obj << /Type /Catalog"
PHOTO = b"\x89PNG\r\n\x1a\n" + bytes(40)
MANUALS = (
    Document("pumps/a.md", "Pump", "The pump of Aldby is opened with a key.", metadata={"date": "2023-05-01"}),
    Document(
        "pumps/b.md", "Seal", "Der Dichtring der Pumpe wird jedes Jahr von Hand getauscht.", metadata={"date": 2021}
    ),
    Document("bell", "Bell", "The bell of Tarn rings at noon. " * 20, metadata={"extension": ".pdf", "created": "x"}),
)


@pytest.fixture
def manuals(tmp_path: Path) -> Iterator[RunningServer]:
    """A server of an index of three documents with dates, languages and types."""
    with run_app(create_app(Workspaces(open_index(), [build_index(tmp_path / "kb", MANUALS)]))) as running:
        yield running


def list_documents(server: RunningServer, **query: Any) -> dict[str, Any]:
    response = server.client.get("/api/v1/documents", params=query)
    assert response.status_code == 200, response.text
    shape: dict[str, Any] = response.json()
    return shape


def list_ids(server: RunningServer, **query: Any) -> list[str]:
    return [row["id"] for row in list_documents(server, **query)["documents"]]


def follow(server: RunningServer, job: dict[str, Any]) -> dict[str, Any]:
    """Return the last state of a job."""
    events = server.client.get("/api/v1/job/events", params={"id": job["id"]}).text
    last: dict[str, Any] = json.loads(events.split("data: ")[-1].splitlines()[0])
    return last


def test_the_table_is_filtered_sorted_and_counted(manuals: RunningServer) -> None:
    [bell] = list_documents(manuals, text="BELL")["documents"]
    assert (bell["title"], bell["type"], bell["language"], bell["folder"]) == ("Bell", "pdf", "", "")
    assert (bell["date"], bell["state"], bell["passages"]) == ("", "searchable", 1)
    assert bell["tokens"] > 100
    assert list_ids(manuals) == ["bell", "pumps/a.md", "pumps/b.md"]
    assert list_ids(manuals, sort="title", descending=True) == ["pumps/b.md", "pumps/a.md", "bell"]
    assert list_ids(manuals, year="2023") == ["pumps/a.md"]
    assert list_ids(manuals, year="none") == ["bell"]
    assert list_ids(manuals, folder="pumps", language="de") == ["pumps/b.md"]
    assert list_documents(manuals)["facets"]["language"].keys() >= {"de", "en"}
    counts = list_documents(manuals, folder="pumps")["facets"]
    assert counts["year"] == {"2021": 1, "2023": 1}
    assert counts["folder"] == {"": 1, "pumps": 2}, "the other folders can still be chosen"
    first = list_documents(manuals, limit=2, sort="tokens")
    assert (first["total"], len(first["documents"])) == (3, 2)
    assert list_ids(manuals, limit=2, sort="tokens", cursor=first["next_cursor"]) == ["bell"]
    assert manuals.client.get("/api/v1/documents", params={"sort": "colour"}).status_code == 422


def test_documents_are_disabled_and_removed_together(manuals: RunningServer) -> None:
    ids = ["pumps/a.md", "pumps/b.md"]
    manuals.client.post("/api/v1/documents/disable", json={"ids": ids})
    assert list_ids(manuals, state="disabled") == ids
    assert manuals.client.post("/api/v1/documents/remove", json={"ids": [*ids, "unknown"]}).status_code == 404
    assert len(list_ids(manuals)) == 3, "one unknown id, and no document is removed"
    assert manuals.client.post("/api/v1/documents/remove", json={"ids": ids}).json()["documents"] == 1
    assert list_ids(manuals) == ["bell"]


def test_each_uploaded_file_has_its_own_outcome(manuals: RunningServer) -> None:
    def upload() -> dict[str, Any]:
        files = [
            ("files", (name, content))
            for name, content in (("bad.pdf", PDF), ("x.png", PHOTO), ("c.md", b"Orra rises."))
        ]
        return follow(manuals, manuals.client.post("/api/v1/documents/files", files=files).json()["job"])

    results = {each["name"]: each for each in upload()["results"]}
    assert {name: each["state"] for name, each in results.items()} == {
        "bad.pdf": "failed",
        "x.png": "failed",
        "c.md": "added",
    }
    assert results["c.md"]["document_id"] == "c.md"
    for name in ("bad.pdf", "x.png"):
        assert results[name]["reason"]
        assert name not in results[name]["reason"], "the page shows the name beside the reason"
    assert [each["state"] for each in upload()["results"]] == ["failed", "failed", "unchanged"]


def test_documents_are_indexed_again_from_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.md", "b.md"):
        Path(name).write_text(f"The {name} of Tarn.", encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder="hashing:64") as engine:
        engine.index(["a.md", "b.md"])
        engine.index_documents([Document("pasted", "", "A pasted text.")])
    Path("a.md").write_text("The bell was cast by Ines Moreau.", encoding="utf-8")
    with run_app(create_app(Workspaces(open_index(), [tmp_path / "kb"]))) as server:
        post = server.client.post
        job = post("/api/v1/documents/reindex", json={"ids": ["a.md", "b.md"]}).json()["job"]
        ended = follow(server, job)
        assert (ended["state"], ended["report"]["updated"], ended["results"]) == ("succeeded", 2, [])
        assert "Moreau" in server.client.get("/api/v1/document", params={"id": "a.md"}).json()["text"]
        refused = post("/api/v1/documents/reindex", json={"ids": ["pasted"]})
        assert (refused.status_code, refused.json()["kind"]) == (422, "no_file")


def test_a_document_lists_its_passages_and_what_reading_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (
        "<html><body><nav><a href='/'>Home</a> <a href='/shop'>Shop</a> <a href='/x'>News</a></nav><main><h1>Orra</h1>"
    )
    Path("a.html").write_text(f"{page}<p>{'The Orra rises in Velm. ' * 300}</p></main></body></html>", encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder="hashing:64") as engine:
        engine.index(["a.html"])
    with run_app(create_app(Workspaces(open_index(), [tmp_path / "kb"]))) as server:
        passages = server.client.get("/api/v1/document/passages", params={"id": "a.html"}).json()
        starts = [each["start"] for each in passages["passages"]]
        assert len(starts) > 2
        assert starts == sorted(starts)
        removals = server.client.get("/api/v1/document/removals", params={"id": "a.html"}).json()
        assert sum(removals["counts"].values()) > 0
        assert any("Shop" in text for texts in removals["texts"].values() for text in texts)


def test_the_time_of_a_file_is_not_shown_as_the_date_of_its_document(tmp_path: Path) -> None:
    document = Document("a.txt", "A", "The otter eats fish.", metadata={"modified": "2026-11-28T10:00:00+00:00"})
    with Engine.open(tmp_path / "kb", embedder="hashing:64") as engine:
        engine.index_documents([document])
        assert engine.catalogue.documents.get("a.txt").date == ""
