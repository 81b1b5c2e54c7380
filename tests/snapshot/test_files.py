from __future__ import annotations

import errno
import json
import mmap
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document
from polyad.snapshot import provider as keeping
from polyad.snapshot.array_files import map_array, write_array
from polyad.snapshot.files import FOLDER, SnapshotFiles, iterate_snapshot_arrays
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.sqlite import SqliteStore

DIMENSION = 16
QUESTION = "Where did Jeffrey Smart meet Ann Vale?"


def documents(first: int, last: int) -> list[Document]:
    return [
        Document(f"d{n}", f"Person {n} Vale", f"Person {n} Vale met Jeffrey Smart in Lima. They saw Port {n % 7}.")
        for n in range(first, last)
    ]


@pytest.fixture(autouse=True)
def _save_every_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MIN_SAVED", 1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with engine_on(tmp_path / "kb") as engine:
        engine.index_documents(documents(0, 40))
    return tmp_path / "kb"


def engine_on(directory: Path) -> Engine:
    return Engine.open(directory, embedder=HashingEmbedder(DIMENSION))


def answers(engine: Engine) -> list[object]:
    return [
        (hit.passage.id, hit.score, hit.reason)
        for retriever in ("default", "hypersu", "dense", "bm25")
        for hit in engine.search(QUESTION, 8, retriever=retriever, merge=False).passages
    ]


def load_snapshot(directory: Path, files: SnapshotFiles | None = None) -> MappedSnapshot:
    store = SqliteStore.open(directory)
    return SnapshotProvider(store, DIMENSION, files).get_current()


def manifest(directory: Path) -> Path:
    return directory / FOLDER / "snapshot.json"


def test_indexing_saves_the_snapshot_for_the_next_process(directory: Path) -> None:
    snapshot = load_snapshot(directory, SnapshotFiles(directory))
    assert snapshot.saved.passages == 40
    assert len(snapshot.passages.pks.appended) == 0
    assert snapshot.passage_count == 40


def test_a_loaded_snapshot_answers_as_a_built_one(directory: Path) -> None:
    with engine_on(directory) as engine:
        from_files = answers(engine)
    shutil.rmtree(directory / FOLDER)
    with engine_on(directory) as engine:
        assert answers(engine) == from_files


def test_a_loaded_snapshot_has_the_arrays_of_a_built_one(directory: Path) -> None:
    with engine_on(directory) as engine:
        engine.index_documents(documents(40, 43))
        engine.remove(["d3", "d41"])
        made, remaining = (
            dict(iterate_snapshot_arrays(load_snapshot(directory))),
            dict(iterate_snapshot_arrays(load_snapshot(directory, SnapshotFiles(directory)))),
        )
    with engine_on(directory) as engine:
        engine.index_documents(documents(43, 90))  # much is new: kept again
    assert made.keys() == remaining.keys()
    again = load_snapshot(directory, SnapshotFiles(directory))
    assert (len(again.passages.pks.appended), again.passage_count) == (0, 88)


def test_a_loaded_snapshot_is_advanced_by_new_documents(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.snapshot.mapped_snapshot._MAX_NEW", 0.1)
    with engine_on(directory) as engine:
        engine.index_documents(documents(40, 42))
        before = answers(engine)
    snapshot = load_snapshot(directory, SnapshotFiles(directory))
    assert (len(snapshot.passages.pks.base), len(snapshot.passages.pks.appended)) == (40, 2)
    with engine_on(directory) as engine:
        assert answers(engine) == before


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "of another format", "no manifest", "no JSON"])
def test_damaged_files_are_written_again(directory: Path, damage: str) -> None:
    with engine_on(directory) as engine:
        before = answers(engine)
    arrays = sorted((directory / FOLDER).glob("arrays-*/*.bin"))
    largest = max(arrays, key=lambda path: path.stat().st_size)
    if damage == "missing":
        largest.unlink()
    elif damage == "cut":
        os.truncate(largest, largest.stat().st_size - 64)
    elif damage == "flipped":
        content = bytearray(largest.read_bytes())
        content[-100] ^= 0x40
        largest.write_bytes(content)
    elif damage == "of another format":
        text = json.loads(manifest(directory).read_text())
        manifest(directory).write_text(json.dumps({**text, "format": 0}))
    elif damage == "no manifest":
        manifest(directory).unlink()
    else:
        manifest(directory).write_text("{")
    with engine_on(directory) as engine:
        assert answers(engine) == before
    snapshot = load_snapshot(directory, SnapshotFiles(directory))
    assert snapshot.saved.passages == 40, "kept again"


def test_a_flipped_byte_of_an_array_is_detected(directory: Path) -> None:
    with engine_on(directory) as engine:
        before = answers(engine)
    chooses = random.Random(0)
    arrays = sorted((directory / FOLDER).glob("arrays-*/*.bin"))
    for path in arrays:
        sound = path.read_bytes()
        if not sound:
            continue
        damaged = bytearray(sound)
        damaged[chooses.randrange(len(sound))] ^= 1 << chooses.randrange(8)
        path.write_bytes(damaged)
        store = SqliteStore.open(directory)
        with store.read_transaction() as transaction:
            assert SnapshotFiles(directory).load(store, transaction) is None, path.name
        path.write_bytes(sound)
    with engine_on(directory) as engine:
        assert answers(engine) == before


def test_a_manifest_with_a_flipped_bit_is_not_used(directory: Path) -> None:
    with engine_on(directory) as engine:
        before = answers(engine)
    sound = manifest(directory).read_bytes()
    store = SqliteStore.open(directory)
    for place in random.Random(1).sample(range(len(sound)), 200):
        damaged = bytearray(sound)
        damaged[place] ^= 1 << place % 8
        manifest(directory).write_bytes(damaged)
        with store.read_transaction() as transaction:
            assert SnapshotFiles(directory).load(store, transaction) is None, bytes(damaged)
    with engine_on(directory) as engine:
        assert answers(engine) == before


def test_a_file_system_that_cannot_map_files_costs_only_memory(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_on(directory) as engine:
        before = answers(engine)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(mmap, "mmap", refuse)
    store = SqliteStore.open(directory)
    with store.read_transaction() as transaction:
        assert SnapshotFiles(directory).load(store, transaction) is not None
    with engine_on(directory) as engine:
        assert answers(engine) == before


@pytest.mark.parametrize("entry", [{"type": "|O", "shape": [1]}, {"type": "<f8", "shape": [2]}, {"type": "<f4"}])
def test_an_array_that_differs_from_its_entry_is_rejected(tmp_path: Path, entry: dict[str, Any]) -> None:
    actual = write_array(tmp_path, "name", np.ones(2, np.float32))
    with pytest.raises(ValueError, match="name is damaged"):
        map_array(tmp_path, "name", {**actual, "shape": [3], **entry})


def test_files_of_a_diverged_index_are_not_loaded(directory: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    shutil.copy(directory / "index.sqlite", copy)
    with engine_on(directory) as engine:
        engine.index_documents(documents(40, 90))  # kept in files
    shutil.copy(copy, directory / "index.sqlite")
    with engine_on(directory) as engine:
        engine.index_documents([Document(f"o{n}", f"Other {n}", "Ann Vale slept.") for n in range(60)])
        results = {hit.passage.document_id for hit in engine.search("Person 77 Vale", 20, retriever="bm25").passages}
    assert "d77" not in results


def test_a_read_only_folder_costs_only_time(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(directory / FOLDER)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with engine_on(directory) as engine:
        assert len(answers(engine)) == 32
    assert not (directory / FOLDER).exists()


def test_old_arrays_are_removed(directory: Path) -> None:
    for n in range(3):
        with engine_on(directory) as engine:
            engine.index_documents(documents(100 * n + 100, 100 * n + 180))
    assert len(list((directory / FOLDER).glob("arrays-*"))) == 1


def test_another_process_uses_the_same_arrays(directory: Path) -> None:
    script = (
        "import sys, numpy; from pathlib import Path; from polyad.stores.sqlite import SqliteStore\n"
        "from polyad.snapshot.files import SnapshotFiles; d = Path(sys.argv[1]); s = SqliteStore.open(d)\n"
        "with s.read_transaction() as m:\n"
        " array = SnapshotFiles(d).load(s, m).passages.vectors.column.base\n"
        " while isinstance(array.base, numpy.ndarray): array = array.base\n"
        " print(type(array).__name__, type(array.base).__name__)"
    )
    ran = subprocess.run([sys.executable, "-c", script, str(directory)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["memmap", "mmap"]
