"""A server whose index is in PostgreSQL: searches, keys and jobs."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from polyad import Document, Engine
from polyad.engine.migration import migrate_index
from polyad_server.app import create_app
from polyad_server.keys import add_key, list_keys
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import build_index, open_index, run_app
from tests.polyad_server.test_api import QUESTION, wait_for_job
from tests.postgres_server import get_url


def test_a_key_is_invalid_in_a_copy_of_its_index(tmp_path: Path) -> None:
    with Engine.open(build_index(get_url(tmp_path))) as engine:
        add_key(engine.values, "writer", "write", datetime.now(UTC))
        assert len(list_keys(engine.values)) == 1
    for copy in (get_url(tmp_path / "copy"), str(tmp_path / "folder")):
        migrate_index(get_url(tmp_path), copy)
        with Engine.open(copy) as engine:
            assert list_keys(engine.values) == []


def test_searches_keys_and_jobs_use_one_database(tmp_path: Path) -> None:
    address = build_index(get_url(tmp_path))
    with Engine.open(address) as engine:
        key = add_key(engine.values, "writer", "write", datetime.now(UTC))
    workspaces = Workspaces(open_index(), [address])
    with run_app(create_app(workspaces)) as server:
        assert server.client.post("/api/v1/search", json=QUESTION).status_code == 401
        server.client.headers["Authorization"] = f"Bearer {key}"
        assert server.client.post("/api/v1/search", json=QUESTION).json()["hits"][0]["document_id"] == "bell.md"
        body = {"documents": [{"id": "isk", "text": "Aldby lies on the river Isk."}]}
        job = server.client.post("/api/v1/documents", json=body).json()["job"]["id"]
        assert wait_for_job(server, job)["state"] == "succeeded"
        with Engine.open(address) as other:  # another machine writes
            other.index_documents([Document("otter", "Otter", "Otters live in the Isk.")])
        deadline = time.monotonic() + 10
        ids: set[str] = set()
        while not {"isk", "otter"} <= ids:  # another machine's document is visible after at most some 200 ms
            assert time.monotonic() < deadline, ids
            hits = server.client.post("/api/v1/search", json={"question": "Where do otters live?"}).json()["hits"]
            ids = {hit["document_id"] for hit in hits}
