"""Two processes follow one folder into one index while its files change: the result equals a new index."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from polyad import Engine
from polyad.errors import PolyadError

pytest.importorskip("watchfiles")
pytestmark = [pytest.mark.attacks, pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")]

PROCESSES = 2
SECONDS_OF_CHANGES, SECONDS_TO_SETTLE = 6, 40


def change_a_file(docs: Path, chance: random.Random) -> None:
    """Write, replace, move, or remove a file or a folder below ``docs``."""
    number, files = chance.randrange(10**6), sorted(docs.rglob("*.md"))
    folder = chance.choice([path for path in docs.iterdir() if path.is_dir()])
    text = f"Anna Keller {number} met Bob Stone in Town {number}."
    match chance.randrange(7):
        case 0 | 1:
            (folder / f"new {number}.md").write_text(text, encoding="utf-8")
        case 2:
            chance.choice(files).write_text(text, encoding="utf-8")
        case 3:
            chance.choice(files).unlink()
        case 4:
            chance.choice(files).rename(folder / f"moved {number}.md")
        case 5:
            folder.rename(docs / f"folder {number}")
        case _:
            file = chance.choice(files)
            text = file.read_text(encoding="utf-8")
            file.unlink()
            time.sleep(chance.random() / 20)
            file.write_text(text, encoding="utf-8")


def read_texts(index: Path) -> dict[str, str]:
    with suppress(PolyadError), Engine.open(index, create=False) as engine:
        return {id: engine.catalogue.document(id).text for id in engine.catalogue.sources()}
    return {}


def test_two_processes_that_follow_one_folder_lose_nothing(tmp_path: Path) -> None:
    docs, chance = tmp_path / "docs", random.Random(7)
    for number in range(60):
        folder = docs / f"folder {number % 6}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.md").write_text(f"Ines Moreau {number} was born in Aldby.", encoding="utf-8")
    command = [sys.executable, "-m", "polyad", "index", "docs", "--watch", "--store", "kb", "--embedder", "hashing:32"]
    processes = [
        subprocess.Popen(
            [*command, "--quiet"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        for _ in range(PROCESSES)
    ]
    try:
        end = time.monotonic() + SECONDS_OF_CHANGES
        while time.monotonic() < end:
            change_a_file(docs, chance)
            time.sleep(chance.random() / 20)
        texts = {str(path.relative_to(tmp_path)): path.read_text(encoding="utf-8") for path in docs.rglob("*.md")}
        end = time.monotonic() + SECONDS_TO_SETTLE
        while read_texts(tmp_path / "kb") != texts and time.monotonic() < end:
            time.sleep(0.5)
        assert [process.poll() for process in processes] == [None] * PROCESSES, "a process ended"
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        errors = [process.communicate(timeout=60)[1] for process in processes]
    assert read_texts(tmp_path / "kb") == texts, errors
    with (
        Engine.open(tmp_path / "kb", create=False) as engine,
        Engine.open(tmp_path / "new", embedder="hashing:32") as new,
    ):
        new.index_documents([engine.catalogue.document(id) for id in engine.catalogue.sources()])
        assert engine.catalogue.statistics().hyperedges == new.catalogue.statistics().hyperedges
        assert engine.catalogue.statistics().entities == new.catalogue.statistics().entities
