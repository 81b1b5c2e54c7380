"""Folders and questions made to have what is not theirs read, or to take time without end."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from polyad.config import ReadSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.model import Document

pytestmark = pytest.mark.attacks

SECRET = "the key is 7f1d-otter-walnut"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder, outside = tmp_path / "docs", tmp_path / "outside"
    (folder / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (folder / "a.txt").write_text("An otter eats fish and crabs.")
    targets = {
        "environment.txt": "/proc/self/environ",
        "kernel.txt": "/proc/kmsg",
        "endless.txt": "/dev/zero",
        "random.txt": "/dev/random",
        "input.txt": "/dev/stdin",
        "table.csv": "/dev/zero",
        "lines.jsonl": "/proc/kmsg",
        "absolute.txt": str(outside / "secret.txt"),
        "relative.txt": "../outside/secret.txt",
        "twice.txt": "relative.txt",
        "deep/folder": "../../outside",
        "deep/through.txt": "../../docs/../outside/secret.txt",
        "deep/self": "../deep",
        "gone.txt": "nowhere.txt",
        "pipe.txt": "pipe",
    }
    for name, target in targets.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("follows", [False, True])
def test_links_lead_to_no_secret_and_to_nothing_endless(hostile: Path, tmp_path: Path, follows: bool) -> None:
    settings = Settings(read=ReadSettings(follow_links=follows))
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16), settings=settings) as engine:
        report = engine.index([hostile])
        texts = [engine.catalogue.document(id).text for id in engine.catalogue.sources()]
    assert (SECRET in texts) is follows, "only who asks for it gets what links lead to"
    assert all("PATH=" not in text for text in texts)
    failed = {Path(failure.id).name for failure in report.failures}
    assert {"environment.txt", "kernel.txt", "endless.txt", "random.txt", "table.csv", "lines.jsonl"} <= failed


@pytest.mark.parametrize(
    "unit", ["a", "1", "a1-", "a,", "«", "水", "A.", '"', "a\u0301", "Aa ", "1.", "(", "-", "\n- "]
)
def test_a_question_of_any_shape_is_answered_soon(unit: str, tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents([Document("d", "Otter", "An otter eats fish and crabs.")])
        started = time.process_time()
        for retriever in ("bm25", "dense", "hypersu", "hypergraphrag"):
            engine.search((unit * 8000)[:7990] + " otter 1", retriever=retriever)
        assert time.process_time() - started < 20
