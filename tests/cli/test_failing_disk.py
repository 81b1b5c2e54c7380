"""Commands that change or copy an index where it cannot be written: one clear line, and nothing is lost."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import polyad
from polyad import Document, Engine
from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.stores.sqlite import FILE_NAME
from polyad.stores.sqlite.store import SqliteStore
from tests.cli.forked import run_forked
from tests.engine.test_corrections import read_everything

resource = pytest.importorskip("resource", reason="needs the limits and rights of POSIX")

CHANGES = {
    "retract": ("retract", "--entity", "Bo Ray", "--reason", "wrong"),
    "alias": ("alias", "Aldby Town", "Aldby"),
    "disable": ("disable", "d2"),
    "embed": ("embed", "--embedder", "hashing:48"),
    "import": ("import", "other.jsonl"),
}
COPIES = {
    "export": ("export", "--out", "copies/kb.jsonl"),
    "hif": ("export", "--format", "hif", "--out", "copies/kb.hif.json"),
    "graphml": ("export", "--format", "graphml", "--out", "copies/kb.graphml"),
    "backup": ("backup", "copies/kb.sqlite"),
}
DAMAGE = "INSERT OR IGNORE INTO entity (number, key, checksum) VALUES (999, 'nobody', 5)"
"""An entity without incidences, which a repair deletes."""


def write_documents(first: int, last: int) -> list[Document]:
    return [
        Document(f"d{number}", f"Bell {number}", f"Bo Ray cast bell {number} of Tarn in 17{number:02}. It is in Aldby.")
        for number in range(first, last)
    ]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that any user may enter, with an index ``kb``, an empty ``copies`` and the export of another index."""
    with tempfile.TemporaryDirectory() as name:
        monkeypatch.chdir(name)
        Path(name).chmod(0o755)
        Path("copies").mkdir()
        Path("copies").chmod(0o777)
        with Engine.open("kb", embedder=HashingEmbedder(32)) as engine:
            engine.index_documents(write_documents(0, 40))
        with Engine.open("memory://other", embedder=HashingEmbedder(32)) as engine:
            engine.index_documents(write_documents(20, 60))
            engine.export("other.jsonl")
        yield Path(name)


def run(arguments: tuple[str, ...], prepare: Callable[[], object] = lambda: None) -> tuple[int, str, str]:
    """Run a command in a process of its own; return its exit code, output and error output."""
    result = run_forked([*arguments, "--store", "kb"], prepare)
    return result.returncode, result.stdout, result.stderr


def read() -> dict[str, Any]:
    with closing(SqliteStore.open(Path("kb"))) as store:
        return {**read_everything(store), "embedder": store.manifest.embedder}


def assert_one_line(errors: str, message: str) -> None:
    assert errors.count("\n") == 1, errors
    assert errors.startswith("polyad: error: ")
    assert message in errors


def damage() -> None:
    with closing(sqlite3.connect(Path("kb", FILE_NAME))) as connection, connection:
        connection.execute(DAMAGE)


def limit_files(size: int) -> Callable[[], None]:
    """Return a function that lets each write beyond some bytes of a file fail, as on a full disk.

    No bytecode is written meanwhile: Python would cut it, and later processes would fail to import the module.
    """

    def limit() -> None:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # for the processes that it starts
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", [*CHANGES, "check", "repair"])
def test_a_full_disk_is_named_and_is_no_damage(name: str) -> None:
    arguments = {"check": ("check",), "repair": ("check", "--repair"), **CHANGES}[name]
    before = read()
    for size in (1 << 12, 1 << 15):  # no space at all, or only for SQLite's shared memory and the start of its log
        if name == "repair":
            damage()
        code, _, errors = run(arguments, limit_files(size))
        if size == 1 << 15 and code != 2:
            assert code in (0, 1), "what fits is done"
            continue
        assert code == 2
        assert_one_line(errors, "no space is left to write 'kb/index.sqlite'")
        assert read() == before
    assert run(("check", "--repair"))[0] in (0, 1)
    assert run(("check",))[0] == 0
    assert run(arguments)[0] in (0, 2), "done, or done already"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_for_which_there_is_no_space_replaces_nothing(name: str) -> None:
    target = Path(COPIES[name][-1])
    target.write_bytes(b"the copy of yesterday")
    arguments = (*COPIES[name], "--force")
    code, _, errors = run(arguments, limit_files(1 << 15))
    assert code == 2
    assert_one_line(errors, str(target))
    assert target.read_bytes() == b"the copy of yesterday"
    assert [file.name for file in Path("copies").iterdir()] == [target.name]
    assert run(arguments)[0] == 0


@pytest.mark.parametrize("name", [*CHANGES, *COPIES, "check", "repair"])
def test_a_folder_without_write_permission_is_only_read(folder: Path, name: str) -> None:
    arguments = {"check": ("check",), "repair": ("check", "--repair"), **CHANGES, **COPIES}[name]
    folders = Path(polyad.__file__).parents
    if os.geteuid() == 0 and not all(each.stat().st_mode & 0o001 for each in folders):
        pytest.skip("another user may not read the package, which the superuser installed in a folder of its own")
    pytest.importorskip("polyad.interchange.graphml")  # another user may not read the modules that it imports
    before = read()
    if name == "repair":
        damage()
    for path in (*Path("kb").iterdir(), Path("kb")):
        path.chmod(0o555)

    def drop_rights() -> None:
        os.environ["HOME"] = str(folder / "copies")
        if os.geteuid() == 0:
            os.setuid(65534)  # a superuser may write anywhere

    code, output, errors = run(arguments, drop_rights)
    Path("kb").chmod(0o755)
    if name in CHANGES:
        assert code == 2
        assert_one_line(errors, "'kb/index.sqlite' may not be written by this user")
    elif name == "repair":
        assert (code, errors.count("\n")) == (2, 1), (output, errors)
        assert "may not be written by this user" in errors
    else:
        assert (code, errors) == (0, ""), output
    assert read() == before


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", [*CHANGES, "repair"])
def test_a_second_writer_waits_and_then_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"repair": ("check", "--repair"), **CHANGES}[name]
    before = read()
    if name == "repair":
        damage()
    monkeypatch.setattr("polyad.stores.sqlite.database.BUSY_SECONDS", 0.2)
    monkeypatch.setattr("polyad.stores.sqlite.database.SqliteDatabase.writing.__wrapped__.__defaults__", (0.2,))
    with closing(sqlite3.connect(Path("kb", FILE_NAME), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        code, _, errors = run(arguments)
        other.execute("ROLLBACK")
    assert code == 2
    assert_one_line(errors, "another process has been writing to 'kb/index.sqlite'")
    assert read() == before
    assert run(arguments)[0] == (1 if name == "repair" else 0)
    assert run(("check",))[0] == 0


@pytest.mark.usefixtures("folder")
def test_two_writers_at_once_lose_no_change_of_each_other() -> None:
    def change(arguments: list[tuple[str, ...]]) -> int:
        if not (child := os.fork()):
            codes = [CliRunner().invoke(app, [*one, "--store", "kb"]).exit_code for one in arguments]
            os._exit(any(codes))
        return child

    children = [
        change([("disable", f"d{number}") for number in range(5)]),
        change([("alias", f"Tower {number}", "Tarn") for number in range(5)]),
        change([CHANGES["import"], CHANGES["retract"]]),
    ]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert run(("check",))[0] == 0
    with Engine.open("kb", embedder=HashingEmbedder(32)) as engine:
        statements = engine.catalogue.statements()
        numbers = len(statements.disabled), len(statements.aliases), len(statements.retractions)
        assert (*numbers, engine.catalogue.statistics().documents) == (5, 5, 1, 60)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", CHANGES)
def test_a_deleted_log_undoes_the_last_changes_as_a_whole(name: str) -> None:
    before = read()

    def crash() -> None:
        """Change the index, and end without closing it, so that the log is not merged into the file."""
        keeper = sqlite3.connect(Path("kb", FILE_NAME))
        keeper.execute("SELECT * FROM document").fetchone()
        CliRunner().invoke(app, [*CHANGES[name], "--store", "kb"])
        os._exit(0)

    if not (child := os.fork()):
        crash()
    os.waitpid(child, 0)
    log = Path("kb", f"{FILE_NAME}-wal")
    assert log.stat().st_size > 0
    log.unlink()
    assert run(("check",))[0] == 0
    assert read() == before
    assert run(CHANGES[name])[0] == 0
    assert run(("check",))[0] == 0
