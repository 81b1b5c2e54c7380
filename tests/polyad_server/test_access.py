"""Keys, workspaces and origins: who may use what."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from polyad import Engine
from polyad.config import ServerSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine.migration import migrate_index
from polyad.errors import ConfigurationError
from polyad.protocols.components import TextKind
from polyad.protocols.store import ValueStore
from polyad_server.app import create_app
from polyad_server.keys import add_key, list_keys, open_root_keys, record_use, remove_key
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app

Tenants = tuple[RunningServer, dict[str, str]]
QUESTION = {"question": "What is the secret?"}


def search(server: RunningServer, key: str, workspace: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    params = {"workspace": workspace} if workspace else {}
    response = server.client.post("/api/v1/search", json=QUESTION, headers=headers, params=params)
    return response.status_code, response.text


def test_a_key_opens_its_workspace_and_no_other(tenants: Tenants) -> None:
    server, keys = tenants
    status, text = search(server, keys["one"])
    assert status == 200
    assert "amber" in text
    assert search(server, keys["one"], "one")[0] == 200
    other, missing = search(server, keys["one"], "two"), search(server, keys["one"], "nil")
    assert other[0] == missing[0] == 404
    assert other[1].replace("'two'", "'nil'") == missing[1]


@pytest.mark.parametrize("key", ["", "pk_x_y", "nonsense", "pk_", "pk__"])
def test_a_wrong_key_opens_nothing(tenants: Tenants, key: str) -> None:
    server, _ = tenants
    assert search(server, key)[0] == 401
    assert search(server, key, "one")[0] == 401
    assert server.client.get("/healthz").status_code == 200


def test_a_body_is_not_read_without_a_valid_key(tenants: Tenants) -> None:
    server, keys = tenants
    for path in ("/api/v1/search", "/api/v1/workspaces", "/v1/chat/completions", "/v1/embeddings", "/dify/retrieval"):
        for headers, status in (({}, 401), ({"Authorization": f"Bearer {keys['one']}"}, 422)):
            response = server.client.post(path, content=b"[]", headers=headers)
            assert response.status_code == status, path


def test_a_body_without_documents_has_at_most_8_megabytes(tenants: Tenants) -> None:
    server, keys = tenants
    headers = {"Authorization": f"Bearer {keys['one']}", "Content-Type": "application/json"}
    body = b'{"question": "' + b"x" * 8_000_000 + b'"}'
    for path in ("/api/v1/search", "/v1/chat/completions", "/dify/retrieval", "/api/v1/documents/disable"):
        assert server.client.post(path, content=body, headers=headers).status_code == 413, path
    assert server.client.post("/api/v1/documents", content=body, headers=headers).status_code == 422


def test_a_secret_of_another_key_is_rejected(tenants: Tenants) -> None:
    server, keys = tenants
    id, secret = keys["one"].rsplit("_", 1)[0], keys["two"].rsplit("_", 1)[1]
    assert search(server, f"{id}_{secret}")[0] == 401


def test_a_scope_includes_the_lower_ones_only(tmp_path: Path) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        read = add_key(engine.values, "reader", "read", datetime.now(UTC))
    with run_app(create_app(Workspaces(open_index(), [tmp_path / "kb"]))) as server:
        headers = {"Authorization": f"Bearer {read}"}
        assert search(server, read)[0] == 200
        response = server.client.delete("/api/v1/document", params={"id": "bell.md"}, headers=headers)
        assert (response.status_code, response.json()["kind"]) == (403, "scope_required")
        assert "scope read; expected write" in response.json()["detail"]
        assert server.client.post("/api/v1/workspaces", json={"name": "new"}, headers=headers).status_code == 403


def test_keys_expire_and_can_be_removed(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        old = add_key(engine.values, "old", "read", now - timedelta(days=2), now - timedelta(days=1))
        good = add_key(engine.values, "good", "read", now)
        with pytest.raises(ConfigurationError):
            add_key(engine.values, "good", "read", now)
        stored = b"".join(engine.values.get_values("server-keys").values())
        assert good.rsplit("_", 1)[1].encode() not in stored
        with run_app(create_app(Workspaces(open_index(), [tmp_path / "kb"]))) as server:
            assert search(server, old)[0] == 401
            assert search(server, good)[0] == 200
            assert next(key for key in list_keys(engine.values) if key.name == "good").last_used
        remove_key(engine.values, "good")
        with run_app(create_app(Workspaces(open_index(), [tmp_path / "kb"]))) as server:
            assert search(server, good)[0] == 401, "the expired key is left, so a key is needed"


def test_a_stream_ends_when_its_key_is_removed(tmp_path: Path) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        key = add_key(engine.values, "only", "write", datetime.now(UTC))
        workspaces = Workspaces(open_index(), [tmp_path / "kb"], runs_jobs=False)
        with run_app(create_app(workspaces)) as server:
            headers = {"Authorization": f"Bearer {key}"}
            body = {"documents": [{"id": "new", "text": "The lake of Tarn is deep."}]}
            job = server.client.post("/api/v1/documents", json=body, headers=headers).json()["job"]["id"]
            with server.client.stream("GET", "/api/v1/job/events", params={"id": job}, headers=headers) as response:
                lines = response.iter_lines()
                assert next(lines) == "event: job"
                remove_key(engine.values, "only")
                time.sleep(1.1)  # until the server reads the keys again
                workspace = workspaces.find("kb")
                assert workspace
                workspace.engine.values.jobs.cancel(job, reason="secret")  # type: ignore[attr-defined]
                assert "secret" not in "".join(lines)


def test_removing_the_last_key_admits_nobody(tmp_path: Path) -> None:
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        key = add_key(engine.values, "only", "read", datetime.now(UTC))
        with run_app(create_app(Workspaces(open_index(), [tmp_path / "kb"]))) as server:
            assert search(server, key)[0] == 200
            remove_key(engine.values, "only")
            time.sleep(1.1)  # until the server reads the keys again
            assert (search(server, key)[0], search(server, "")[0]) == (401, 401)


def test_a_use_does_not_restore_a_removed_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    with Engine.open(build_index(tmp_path / "kb")) as engine:
        add_key(engine.values, "lost", "read", now)
        [key] = list_keys(engine.values)
        put_values = type(engine.values).put_values

        def remove_and_put(store: ValueStore, *arguments: Any, **options: Any) -> None:
            monkeypatch.undo()
            remove_key(store, "lost")
            put_values(store, *arguments, **options)

        monkeypatch.setattr(type(engine.values), "put_values", remove_and_put)
        record_use(engine.values, key, now)
        assert list_keys(engine.values) == []


@pytest.mark.parametrize("copy", ["folder", "migrate"])
def test_a_key_is_invalid_in_a_copy_of_its_index(tmp_path: Path, copy: str) -> None:
    root = tmp_path / "root"
    with Engine.open(build_index(root / "a")) as engine:
        key = add_key(engine.values, "client", "write", datetime.now(UTC))
    if copy == "folder":
        shutil.copytree(root / "a", root / "b")
    else:
        migrate_index(root / "a", root / "b")
    with run_app(create_app(Workspaces(open_index(), [], root))) as server:
        assert [search(server, key, name)[0] for name in ("", "a", "b")] == [200, 200, 404]
    with run_app(create_app(Workspaces(open_index(), [root / "b"]))) as server:
        assert [search(server, each)[0] for each in (key, "")] == [401, 401], "a copy is not open to everybody"
    with Engine.open(root / "b") as engine:
        assert list_keys(engine.values) == []
        text = add_key(engine.values, "client", "read", datetime.now(UTC))
    with run_app(create_app(Workspaces(open_index(), [], root))) as server:
        assert [search(server, text, name)[0] for name in ("a", "b")] == [404, 200]


def test_a_restored_backup_brings_no_removed_key_back(tmp_path: Path) -> None:
    store = build_index(tmp_path / "kb")
    with Engine.open(store) as engine:
        old, valid = (add_key(engine.values, name, "read", datetime.now(UTC)) for name in ("old", "valid"))
        engine.back_up(tmp_path / "backup")
        remove_key(engine.values, "old")
    shutil.copy(tmp_path / "backup", store / "index.sqlite")
    with run_app(create_app(Workspaces(open_index(), [store]))) as server:
        assert (search(server, old)[0], search(server, valid)[0]) == (401, 200)
    shutil.rmtree(store)
    store.mkdir()
    shutil.copy(tmp_path / "backup", store / "index.sqlite")
    with Engine.open(store) as engine:
        assert list_keys(engine.values) == [], "without the list of keys, none is valid"


def test_a_restored_folder_of_a_workspace_brings_no_removed_key_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with open_root_keys(root), Engine.open(build_index(root / "a")) as engine:
        add_key(engine.values, "client", "write", datetime.now(UTC))
    shutil.copytree(root / "a", tmp_path / "copy")
    with Engine.open(root / "a") as engine:
        remove_key(engine.values, "client")
    shutil.rmtree(root / "a")
    shutil.copytree(tmp_path / "copy", root / "a")
    with Engine.open(root / "a") as engine:
        assert list_keys(engine.values) == []


def test_a_key_of_the_root_creates_and_deletes_workspaces(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with open_root_keys(root) as keys:
        admin = {"Authorization": f"Bearer {add_key(keys, 'admin', 'admin', datetime.now(UTC))}"}
        with run_app(create_app(Workspaces(open_index(), [], root), root_keys=keys)) as server:
            assert server.client.get("/api/v1/workspaces").status_code == 401
            assert server.client.post("/api/v1/workspaces", json={"name": "new"}, headers=admin).status_code == 201
            assert server.client.post("/api/v1/workspaces", json={"name": "new"}, headers=admin).status_code == 422
            for name in ("", "..", "a/b", ".keys", "x" * 65):
                assert server.client.post("/api/v1/workspaces", json={"name": name}, headers=admin).status_code == 422
            names = server.client.get("/api/v1/workspaces", headers=admin).json()["workspaces"]
            assert names == [{"name": "new"}]
            assert server.client.get("/api/v1/stats", headers=admin).json()["documents"] == 0
            response = server.client.delete("/api/v1/workspaces", params={"workspace": "new"}, headers=admin)
            assert response.status_code == 200
            assert not (root / "new").exists()


class BusyWorkspace:
    """A server of ``busy``, whose job waits in the embedder, of ``other``, and of ``linked``, a symbolic link."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("busy", "other"):
            build_index(root / name)
        (root / "busy" / "notes.txt").write_text("x")
        (root / "linked").symlink_to(root / "other")
        self.root = root
        self.may_continue = threading.Event()
        self._is_embedding, encode = threading.Event(), HashingEmbedder.encode

        def encode_slowly(embedder: HashingEmbedder, texts: Sequence[str], kind: TextKind) -> Any:
            if kind == "passage":
                self._is_embedding.set()
                assert self.may_continue.wait(60)
            return encode(embedder, texts, kind)

        monkeypatch.setattr(HashingEmbedder, "encode", encode_slowly)

    @contextmanager
    def serve(self) -> Iterator[RunningServer]:
        with run_app(create_app(Workspaces(open_index(), [], self.root))) as server:
            body = {"documents": [{"id": "new", "text": "The lake of Tarn is deep."}]}
            assert server.client.post("/api/v1/documents?workspace=busy", json=body).status_code == 202
            assert self._is_embedding.wait(10)
            yield server

    def list_files(self) -> list[str]:
        return [path.name for path in (self.root / "busy").iterdir()]


def test_other_requests_do_not_wait_for_the_deletion_of_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyad_server.workspaces._STOP_SECONDS", 60.0)
    workspace = BusyWorkspace(tmp_path / "root", monkeypatch)
    with workspace.serve() as server, ThreadPoolExecutor() as threads:
        deletion = threads.submit(server.client.delete, "/api/v1/workspaces?workspace=busy")
        while search(server, "", "busy")[0] != 404:
            time.sleep(0.01)
        assert search(server, "", "other")[0] == 200
        assert not deletion.done()
        workspace.may_continue.set()
        assert deletion.result(30).status_code == 200


def test_a_workspace_is_deleted_while_its_job_waits_for_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = BusyWorkspace(tmp_path / "root", monkeypatch)
    with workspace.serve() as server:
        assert server.client.delete("/api/v1/workspaces?workspace=busy").status_code == 200
        assert workspace.list_files() == ["notes.txt"]
        workspace.may_continue.set()
        time.sleep(1)
        assert workspace.list_files() == ["notes.txt"], "the job stores nothing later"
        assert server.client.delete("/api/v1/workspaces?workspace=linked").status_code == 200
        assert not (tmp_path / "root" / "linked").is_symlink()
        assert search(server, "", "other")[0] == 200


def test_a_damaged_workspace_leaves_the_others_working(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "root"
    keys = {}
    for name in ("bad", "good", "later"):
        with Engine.open(build_index(root / name)) as engine:
            keys[name] = add_key(engine.values, "client", "admin", datetime.now(UTC))
    (root / "bad" / "index.sqlite").write_text("x")
    (root / "empty").mkdir()
    (root / "empty" / "index.sqlite").touch()
    (root / "loop").mkdir()
    (root / "loop" / "index.sqlite").symlink_to("index.sqlite")
    with open_root_keys(root) as root_keys:
        admin = add_key(root_keys, "admin", "admin", datetime.now(UTC))
        with run_app(create_app(Workspaces(open_index(), [], root), root_keys=root_keys)) as server:
            assert [search(server, keys[name])[0] for name in ("bad", "good", "later")] == [401, 200, 200]
            assert [search(server, admin, name)[0] for name in ("bad", "empty", "loop", "good")] == [503, 503, 404, 200]
            (root / "later" / "index.sqlite").unlink()
            (root / "later" / "index.sqlite").write_text("x")
            time.sleep(1.1)  # until the server reads the keys again
            assert [search(server, keys[name])[0] for name in ("later", "good")] == [503, 200]
            headers = {"Authorization": f"Bearer {admin}"}
            for path in ("/metrics", "/v1/models", "/v1/vector_stores", "/api/v1/workspaces"):
                assert server.client.get(path, headers=headers).status_code == 200, path
            time.sleep(1.1)
            assert search(server, admin, "good")[0] == 200
    reports = [record.message for record in caplog.records if "cannot be used" in record.message]
    assert sorted(report.split()[2] for report in reports) == ["bad", "empty", "later"], "each is reported once"


def test_a_damaged_workspace_with_keys_does_not_open_the_server(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("bad", "good"):
        build_index(root / name)
    with Engine.open(root / "bad") as engine:
        add_key(engine.values, "client", "read", datetime.now(UTC))
    (root / "bad" / "index.sqlite").write_text("x")
    with run_app(create_app(Workspaces(open_index(), [], root))) as server:
        assert search(server, "", "good")[0] == 401


def test_foreign_hosts_and_pages_are_rejected(server: RunningServer) -> None:
    for host in (
        "evil.example",
        "localhost:1@evil.example",
        "[::1].evil.example",
        "127.0.0.1.evil.example",
        "testserver",
    ):
        assert server.client.get("/healthz", headers={"Host": host}).status_code == 421, host
    for host in ("LOCALHOST", "127.0.0.1:80", "[::1]:8420"):
        assert server.client.get("/healthz", headers={"Host": host}).status_code == 200, host
    for origin, status in (("http://evil.example", 403), (server.url, 200), ("null", 403)):
        response = server.client.post("/api/v1/search", json=QUESTION, headers={"Origin": origin})
        assert response.status_code == status, origin


@pytest.mark.parametrize("address", ["192.0.2.1", "testclient", "localhost", "127.0.0.1.evil.example"])
def test_without_keys_a_client_behind_a_proxy_is_rejected(server: RunningServer, address: str) -> None:
    response = server.client.post("/api/v1/search", json=QUESTION, headers={"X-Forwarded-For": address})
    assert response.status_code == 401


def count_admitted(tmp_path: Path, settings: ServerSettings, addresses: list[str]) -> int:
    """Return how many searches are admitted, each with a header X-Forwarded-For."""
    with run_app(create_app(Workspaces(open_index(), [build_index(tmp_path / "kb")]), settings)) as server:
        responses = [
            server.client.post("/api/v1/search", json=QUESTION, headers={"X-Forwarded-For": address})
            for address in addresses
        ]
    return sum(response.status_code == 200 for response in responses)


def test_a_client_cannot_name_itself_anew_to_send_more_requests(tmp_path: Path) -> None:
    addresses = [f"127.0.0.{number}" for number in range(1, 6)]
    assert count_admitted(tmp_path, ServerSettings(requests_per_minute=2), addresses) == 2


def test_a_configured_proxy_names_its_clients(tmp_path: Path) -> None:
    settings = ServerSettings(requests_per_minute=2, proxies="127.0.0.1")
    assert count_admitted(tmp_path, settings, ["127.0.0.2"] * 3 + ["127.0.0.3"] * 3 + ["192.0.2.1"]) == 4


def test_two_folders_of_one_name_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        Workspaces(open_index(), [tmp_path / "a" / "kb", tmp_path / "b" / "kb"])
