"""Commands on an index in PostgreSQL."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad.cli.commands import app
from tests.postgres_server import get_url, open_workspace

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("POLYAD_STORE", get_url(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("tarn.md").write_text("Ines Moreau cast the bell of Tarn in 1702. The bell hangs in Corven Tower.")
    Path("aldby.md").write_text("Aldby is a village. Bo Ray was born there.")

    def run_command(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == code, result.output
        return result.stdout

    return run_command


def test_files_are_indexed_and_found(run: Run) -> None:
    assert "2 added" in run("index", "tarn.md", "aldby.md", "--embedder", "hashing:64")
    hits = json.loads(run("search", "Who cast the bell of Tarn?", "-k", "1", "--json"))["hits"]
    assert [hit["document_id"] for hit in hits] == ["tarn.md"]
    assert "2 unchanged" in run("index", "tarn.md", "aldby.md")
    run("remove", "tarn.md")
    assert json.loads(run("stats", "--json"))["documents"] == 1


def test_a_missing_index_is_named_without_the_user_of_the_database(run: Run) -> None:
    output = run("search", "anything", "--json", code=2)
    assert "no index in postgresql://" in output
    assert "polyad@" not in output


def test_corrections_filters_times_and_checks_work_as_in_a_folder(run: Run) -> None:
    dated = {"_id": "ray", "title": "Bo Ray", "text": "Bo Ray led Aldby.", "metadata": {"valid_to": "1950"}}
    Path("ray.jsonl").write_text(json.dumps(dated))
    run("index", "tarn.md", "aldby.md", "ray.jsonl", "--embedder", "hashing:64")

    def search(*options: str) -> list[str]:
        output = run("search", "Who was born in Aldby or led it?", "--json", *options)
        return [hit["document_id"] for hit in json.loads(output)["hits"]]

    assert "ray" in search("--as-of", "1940")
    assert "ray" not in search("--as-of", "1960")
    assert search("--where", 'id = "aldby.md"') == ["aldby.md"]
    run("retract", "--entity", "Ines Moreau", "--reason", "privacy", "--yes")
    assert "Ines Moreau" not in run("list", "entities")
    run("restore", "--entity", "Ines Moreau")
    assert "Ines Moreau" in run("list", "entities")
    run("disable", "aldby.md")
    assert "aldby.md" not in search()
    run("enable", "aldby.md")
    run("alias", "Aldby", "Tarn")
    commands = [entry["command"] for entry in json.loads(run("log", "--json"))["changes"]]
    assert commands[-1] == "index"
    assert {"retract", "restore", "disable", "enable", "alias"} <= set(commands)
    assert json.loads(run("check", "--json"))["damage"] == []


def test_damage_is_found_and_derived_rows_are_repaired(run: Run, tmp_path: Path) -> None:
    run("index", "tarn.md", "aldby.md", "--embedder", "hashing:64")
    with closing(open_workspace(tmp_path)) as store, closing(store._database.connect()) as connection:
        connection.execute("INSERT INTO entity VALUES (9000, 'nobody')")
        damage = json.loads(run("check", "--json", code=1))["damage"]
        assert [(one["table"], one["id"]) for one in damage] == [("entity", "nobody")]
        assert "1 of 1 repaired" in run("check", "--repair", code=1)
        connection.execute("DELETE FROM passage WHERE id LIKE 'aldby%'")
        damage = json.loads(run("check", "--json", code=1))["damage"]
        assert ("document", "aldby.md") in [(one["table"], one["document_id"]) for one in damage]


def test_backup_names_the_program_of_postgresql(run: Run) -> None:
    run("index", "tarn.md", "--embedder", "hashing:64")
    assert "pg_dump --format=custom --schema=polyad_" in run("backup", "copy.sqlite", "--json", code=2)
    assert not Path("copy.sqlite").exists()


def test_keys_are_in_the_database(run: Run) -> None:
    run("index", "tarn.md", "--embedder", "hashing:64")
    run("key", "add", "chat-window")
    assert "chat-window" in run("key", "list")


def test_an_estimate_reads_the_database_and_a_demonstration_needs_a_folder(run: Run) -> None:
    run("index", "tarn.md", "--embedder", "hashing:64")
    assert json.loads(run("index", "tarn.md", "--dry-run", "--json"))["estimate"]["prompt_tokens"] == 0
    assert "expected a folder" in run("demo", "--store", "postgresql://polyad@host/database", "--json", code=2)


def test_worker_processes_index_files_and_the_exclusive_options_are_named(run: Run) -> None:
    report = json.loads(run("index", "tarn.md", "aldby.md", "--embedder", "hashing:64", "--workers", "1", "--json"))
    assert (report["added"], report["failed"]) == (2, 0)
    assert "2 unchanged" in run("index", "tarn.md", "aldby.md")
    assert "--force" in run("index", "tarn.md", "--workers", "1", "--force", "--json", code=2)
    assert "expected one of embed, extract, read, files" in run("worker", "--kind", "write", "--json", code=2)


def test_workers_need_postgres(run: Run, tmp_path: Path) -> None:
    output = run("index", "tarn.md", "--embedder", "hashing:64", "--workers", "1", "--store", "kb", "--json", code=2)
    assert "postgresql://" in output


def test_advice_on_damage_does_not_show_the_password(run: Run, tmp_path: Path) -> None:
    run("index", "tarn.md", "aldby.md", "--embedder", "hashing:64")
    with closing(open_workspace(tmp_path)) as store, store._database.connect() as connection:
        connection.execute("DELETE FROM passage WHERE id LIKE 'aldby%'")
    output = run("check", "--store", f"{get_url(tmp_path)}&password=hunter2", code=1)
    assert f"polyad remove --store '{get_url(tmp_path)}' aldby.md" in output
    assert "hunter2" not in output


def receive_password(listener: socket.socket, received: list[bytes]) -> None:
    """Ask one client for its password, as a PostgreSQL server does that wants it in clear text."""
    connection, _ = listener.accept()
    with closing(connection):
        connection.recv(1024)
        connection.sendall(b"R\x00\x00\x00\x08\x00\x00\x00\x03")
        received.append(connection.recv(1024))


@pytest.mark.parametrize(("flags", "password"), [([], b"no-key"), (["--trust-endpoint"], b"own-secret")])
def test_a_database_that_only_the_settings_file_names_gets_the_password_if_a_flag_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], password: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POLYAD_STORE", raising=False)
    received: list[bytes] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        address = f"postgresql://u@127.0.0.1:{port}/db?sslmode=disable"
        Path("polyad.toml").write_text(f'store = "{address}"\n')
        thread = threading.Thread(target=receive_password, args=(listener, received))
        thread.start()
        result = CliRunner().invoke(app, [*flags, "stats"], env={"PGPASSWORD": "own-secret"})
        thread.join(10)
    assert result.exit_code == 2
    assert received[-1][5:-1] == password
    assert ("no password of the environment is sent" in result.stderr) is (not flags)
