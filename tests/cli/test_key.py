"""``polyad key`` and what ``polyad serve`` refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from polyad.cli import app

pytest.importorskip("fastapi")

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))

    def run_command(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(app, [*map(str, arguments)])
        assert result.exit_code == code, result.output
        return result

    return run_command


@pytest.fixture
def index(run: Run, tmp_path: Path) -> Path:
    (tmp_path / "bell.md").write_text("The bell of Tarn was cast by Ines Moreau.", encoding="utf-8")
    run("index", tmp_path / "bell.md", "--store", tmp_path / "kb", "--embedder", "hashing:32")
    return tmp_path / "kb"


def test_a_key_is_printed_once_listed_and_removed(run: Run, index: Path) -> None:
    text = run("key", "add", "chat", "--store", index, "--scope", "write", "--days", "3").stdout.strip()
    assert text.startswith("pk_")
    [shape] = json.loads(run("key", "list", "--store", index, "--json").stdout)["keys"]
    assert (shape["name"], shape["scope"], shape["last_used"]) == ("chat", "write", "")
    assert shape["expires"] > shape["created"]
    assert text.rsplit("_", 1)[1] not in json.dumps(shape)
    assert "never used" in run("key", "list", "--store", index).stdout
    assert run("key", "remove", "chat", "--store", index).stdout == "removed chat\n"
    assert run("key", "list", "--store", index).stdout == ""


def test_a_folder_of_indexes_has_keys_of_its_own(run: Run, index: Path) -> None:
    run("key", "add", "all", "--store", index.parent, "--scope", "admin")
    run("key", "add", "one", "--store", index.parent, "--workspace", "kb")
    assert "all" in run("key", "list", "--store", index.parent).stdout
    assert "one" in run("key", "list", "--store", index).stdout


LOOPING = [
    ("serve", "--store", "loop"),
    ("serve", "--root", "loop"),
    ("key", "list", "--store", "loop"),
    ("stats", "--store", "loop"),
    ("check", "--store", "loop"),
    ("index", "bell.md", "--store", "loop"),
    ("migrate", "loop", "copy"),
    ("migrate", "kb", "loop"),
    ("export", "--out", "loop", "--store", "kb"),
]
"""Commands with a symbolic link that points to itself."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("key", "add", "x", "--store", "kb", "--scope", "all"), "read, write, admin"),
        (("key", "add", " ", "--store", "kb"), "blank"),
        (("key", "add", "x", "--store", "nowhere"), "no folder"),
        (("key", "add", "x", "--store", "kb", "--workspace", "y"), "is an index itself"),
        (("serve", "--store", "kb", "--host", "0.0.0.0"), "polyad key add"),
        (("--set", "server.base_url=https://kb.example", "serve", "--store", "kb"), "polyad key add"),
        (("--set", "server.hosts=kb.example", "serve", "--store", "kb"), "polyad key add"),
        (("--set", "server.cors_origins=*", "serve", "--store", "kb"), "server.cors_origins lets all web pages in"),
        (("--set", "server.cors_origins=https://a.example, null", "serve", "--store", "kb"), "polyad key add"),
        (("serve", "--store", "nowhere"), "nowhere"),
        (("serve",), "--store"),
        (("key", "add", "x", "--store", "kb", "--days", "3000000"), "36500"),
        *((command, "loop") for command in LOOPING),
    ],
)
def test_wrong_commands_name_the_remedy(
    run: Run, index: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(index.parent)
    Path("loop").symlink_to("loop")
    result = run(*arguments, code=2)
    assert message in result.stderr
