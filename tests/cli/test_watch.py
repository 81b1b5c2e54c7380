"""``polyad index --watch`` follows a folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad import Engine
from polyad.cli import app
from polyad.cli.watching import watch_changes

pytest.importorskip("watchfiles")
SECONDS = 60.0


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not is_true():
        assert time.monotonic() < end, "the index does not follow the folder"
        time.sleep(0.1)


def test_without_watchfiles_no_index_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("The bell of Tarn.", encoding="utf-8")
    result = CliRunner().invoke(app, ["index", "a.md", "--watch", "--store", "kb", "--embedder", "hashing:32"])
    assert result.exit_code == 2
    assert "polyad[watch]" in result.stderr
    assert not (tmp_path / "kb").exists()


def count_changes(changes: Iterator[int]) -> list[int]:
    counts: list[int] = []
    threading.Thread(target=lambda: counts.extend(changes), daemon=True).start()
    return counts


def test_changes_during_the_first_run_are_reported(tmp_path: Path) -> None:
    changes = watch_changes([tmp_path], None)
    (tmp_path / "a.md").write_text("The bell of Tarn.", encoding="utf-8")
    time.sleep(1)  # as long as the first run takes, which reads the files
    counts = count_changes(changes)
    wait_until(lambda: counts == [1])


def test_a_file_that_is_replaced_again_and_again_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("The bell of Tarn.", encoding="utf-8")
    counts = count_changes(watch_changes([file], None))
    for edition in range(3):
        before = len(counts)
        (tmp_path / "new").write_text(f"Edition {edition}.", encoding="utf-8")
        (tmp_path / "new").replace(file)
        wait_until(lambda before=before: len(counts) > before)  # type: ignore[misc]  # no type is inferred for the default
        time.sleep(1.5)  # the system may report the change later


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_a_folder_is_followed_until_an_interrupt(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "bell.md").write_text("The bell of Tarn was cast by Ines Moreau.", encoding="utf-8")
    options = ["--watch", "--store", "kb", "--embedder", "hashing:32"]
    command = [sys.executable, "-m", "polyad", "index", "docs", *options]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    ) as process:
        assert process.stdout is not None
        try:

            def list_documents() -> list[str]:
                with Engine.open(tmp_path / "kb", create=False) as engine:
                    return sorted(engine.catalogue.sources())

            while "watching" not in (line := process.stdout.readline()):
                assert line, process.stderr.read() if process.stderr else ""
            time.sleep(0.5)
            (docs / "tower.md").write_text("Corven Tower stands in Aldby.", encoding="utf-8")
            wait_until(lambda: list_documents() == ["docs/bell.md", "docs/tower.md"])
            (docs / "bell.md").rename(docs / "moved.md")
            wait_until(lambda: list_documents() == ["docs/moved.md", "docs/tower.md"])
            shutil.move(docs / "tower.md", tmp_path)
            shutil.move(docs / "moved.md", tmp_path)
            time.sleep(3)
            assert len(list_documents()) >= 1, "documents of an empty folder, whose disk may not be mounted, remain"
        finally:
            process.send_signal(signal.SIGINT)
        try:
            output, errors = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert "1 added" in output
