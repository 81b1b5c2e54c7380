"""The files of a snapshot: loaded if they fit the index, otherwise written again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document, Entity, IntArray, Origin, Passage
from polyad.protocols.lookups import get_all, get_version
from polyad.protocols.store import EntityIncidence
from polyad.snapshot import array_files
from polyad.snapshot.files import FOLDER, SnapshotFiles, iterate_snapshot_arrays, restore_snapshot
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.name_variants import NamedEntities, NameVariants
from polyad.snapshot.part_cache import PartCache
from polyad.snapshot.parts import restrict
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.sqlite import SqliteStore
from polyad.stores.sqlite.store import SqliteReadTransaction
from polyad.text.filters import parse_filter

EMBEDDER = HashingEmbedder(16)
DOCUMENTS = [
    Document("bell", "Bell of Tarn", "The Bell of Tarn was cast by Ines Moreau in 1702."),
    Document("moreau", "Ines Clara Moreau", "She was born in Aldby."),
    Document("aldby", "Aldby", "Aldby is a village on the Isk. It has walnuts."),
]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    monkeypatch.setattr("polyad.snapshot.provider.MIN_SAVED", 0)
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as engine:
        engine.index_documents(DOCUMENTS)
    with closing(SqliteStore.open(tmp_path / "kb")) as opened:
        yield opened


def loaded(store: SqliteStore) -> MappedSnapshot | None:
    with store.read_transaction() as transaction:
        return SnapshotFiles(store.directory).load(store, transaction)


def contents(snapshot: MappedSnapshot) -> dict[str, list[object]]:
    """Return all arrays and vectors of a snapshot as lists."""
    arrays = dict(iterate_snapshot_arrays(snapshot))
    for kind, vectors in snapshot.all_vectors.items():
        arrays[f"{kind} vectors"], arrays[f"{kind} is there"] = vectors.take(np.arange(len(vectors))), vectors.live.mask
    return {name: array.tolist() for name, array in arrays.items()}


def folder_of(store: SqliteStore) -> Path:
    (folder,) = (store.directory / FOLDER).glob("arrays-*")
    return folder


def test_the_saved_snapshot_is_loaded(store: SqliteStore) -> None:
    snapshot = loaded(store)
    assert snapshot is not None
    made = SnapshotProvider(store, EMBEDDER.dimension).get_current()
    assert contents(snapshot) == contents(made)
    assert snapshot.version == get_version(store)
    assert snapshot.get(Entity, [0]) == made.get(Entity, [0])
    assert contents(restore_snapshot(dict(iterate_snapshot_arrays(snapshot)), snapshot.all_vectors, store)) == contents(
        made
    )


@pytest.mark.parametrize(("max_verified", "is_synced"), [(0, True), (1 << 20, False)])
def test_arrays_whose_checksum_no_search_verifies_are_durable_before_the_manifest(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, max_verified: int, is_synced: bool
) -> None:
    with store.read_transaction() as transaction:
        token = transaction.changes().token
    files = SnapshotFiles(store.directory)
    snapshot = SnapshotProvider(store, EMBEDDER.dimension).get_current()
    files.delete()
    monkeypatch.setattr(array_files, "_MAX_VERIFIED", max_verified)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    files.save(snapshot, token)
    arrays = {path.stat().st_ino for path in folder_of(store).iterdir() if path.stat().st_size}
    before_the_manifest = synced[: synced.index((store.directory / FOLDER / "snapshot.json").stat().st_ino)]
    assert set(before_the_manifest) == (arrays if is_synced else set())


def test_a_snapshot_saved_at_an_earlier_version_is_advanced(store: SqliteStore, tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as engine:
        engine.remove("moreau")
    remaining = loaded(store)
    assert remaining is not None
    assert remaining.version < get_version(store)
    snapshot = SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory)).get_current()
    assert snapshot.version == get_version(store)
    assert snapshot.find_rows("entity", ["ines clara moreau"]) == {}
    assert snapshot.passage_count == 2


def spoil(store: SqliteStore, name: str) -> None:
    path = folder_of(store) / f"{name}.bin"
    written = bytearray(path.read_bytes())
    written[-1] ^= 1
    path.write_bytes(written)


def forget_an_array(store: SqliteStore) -> None:
    (folder_of(store) / "graph.variants.subject.bin").unlink()


def cut_short(store: SqliteStore) -> None:
    path = folder_of(store) / "passage_vectors.bin"
    path.write_bytes(path.read_bytes()[:-8])


def spoil_manifest(store: SqliteStore) -> None:
    (store.directory / FOLDER / "snapshot.json").write_text("[1, 2", encoding="utf-8")


def another_shape(store: SqliteStore) -> None:
    (store.directory / FOLDER / "snapshot.json").write_text("[]", encoding="utf-8")


def another_format(store: SqliteStore) -> None:
    path = store.directory / FOLDER / "snapshot.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"format": 99}), encoding="utf-8")


def remove_folder(store: SqliteStore) -> None:
    shutil.rmtree(store.directory / FOLDER)


@pytest.mark.parametrize(
    "damage",
    [
        lambda store: spoil(store, "passage_vectors"),
        lambda store: spoil(store, "passages.terms.postings.segments.rows"),
        forget_an_array,
        cut_short,
        spoil_manifest,
        another_shape,
        another_format,
        remove_folder,
    ],
)
def test_damaged_or_missing_files_are_written_again(store: SqliteStore, damage: Callable[[SqliteStore], None]) -> None:
    expected = contents(SnapshotProvider(store, EMBEDDER.dimension).get_current())
    damage(store)
    assert loaded(store) is None
    provider = SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory))
    assert contents(provider.get_current()) == expected
    again = loaded(store)
    assert again is not None
    assert contents(again) == expected
    assert folder_of(store).is_dir(), "of several snapshots one is left"


def test_the_snapshot_of_another_index_is_not_loaded(store: SqliteStore, tmp_path: Path) -> None:
    with Engine.open(tmp_path / "other", embedder=EMBEDDER) as engine:
        engine.index_documents([Document(document.id, "", "Other words.") for document in DOCUMENTS])
    other = tmp_path / "other" / FOLDER
    shutil.rmtree(other)
    shutil.copytree(store.directory / FOLDER, other)
    with closing(SqliteStore.open(tmp_path / "other")) as second:
        assert get_version(second) == get_version(store)
        assert loaded(second) is None
        snapshot = SnapshotProvider(second, EMBEDDER.dimension, SnapshotFiles(second.directory)).get_current()
        assert {passage.text for passage in snapshot.get(Passage, range(3))} == {"Other words."}


def test_a_full_disk_leaves_the_snapshot_in_memory(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(range(3))

    def until_the_disk_is_full(data: bytes, checksum: int) -> int:
        if next(names, None) is None:
            raise OSError("no space left on device")
        return crc32(data, checksum)

    shutil.rmtree(store.directory / FOLDER)
    monkeypatch.setattr("polyad.snapshot.array_files.crc32", until_the_disk_is_full)
    snapshot = SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory)).get_current()
    assert snapshot.passage_count == 3
    assert loaded(store) is None
    assert list((store.directory / FOLDER).glob("arrays-*")) == [], "half a snapshot only fills the disk"


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_size_of_blocks_does_not_change_the_snapshot(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    with Engine.open(store.directory, embedder=EMBEDDER, create=False) as engine:
        engine.index_documents([replace(DOCUMENTS[0], text="It was cast by Ines Clara Moreau, of Aldby.")])

    def made(files: SnapshotFiles | None) -> dict[str, list[object]]:
        """Return the contents of a newly built snapshot."""
        results = contents(SnapshotProvider(store, EMBEDDER.dimension, files).get_current())
        return {name: values for name, values in results.items() if not name.endswith("_ids_keys")}

    expected = made(None)
    shutil.rmtree(store.directory / FOLDER)
    monkeypatch.setattr("polyad.snapshot.reading.BLOCK", 1)
    monkeypatch.setattr("polyad.stores.relational.read_transaction._DOCUMENTS_PER_BATCH", 1)
    assert made(SnapshotFiles(store.directory) if is_kept else None) == expected
    assert len(list((store.directory / FOLDER).glob("arrays-*"))) == is_kept


def test_each_name_is_resolved_once_for_any_number_of_blocks(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    resolve = NameVariants.resolve

    def noted(names: NameVariants, expected: Sequence[str], entities: NamedEntities) -> IntArray:
        messages.extend(expected)
        return resolve(names, expected, entities)

    monkeypatch.setattr(NameVariants, "resolve", noted)
    monkeypatch.setattr("polyad.snapshot.reading.BLOCK", 1)
    monkeypatch.setattr("polyad.stores.relational.read_transaction._DOCUMENTS_PER_BATCH", 1)
    snapshot = SnapshotProvider(store, EMBEDDER.dimension).get_current()
    entities = np.arange(snapshot.row_count("entity"))
    assert sorted(messages) == sorted(snapshot.ids("entity", entities[~snapshot.graph.are_subjects(entities)]))


def test_searches_run_while_a_snapshot_is_saved(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory))
    keep, seen = SnapshotFiles.save, []

    def while_another_document_comes(files: SnapshotFiles, snapshot: MappedSnapshot, state: str) -> None:
        with (
            Engine.open(store.directory, embedder=EMBEDDER, create=False) as engine,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(SnapshotFiles, "save", keep)
            engine.index_documents([Document("isk", "Isk", "The Isk is a river.")])
        seen.append(provider.get_current(get_version(store)).passage_count)
        keep(files, snapshot, state)

    provider.get_current()
    shutil.rmtree(store.directory / FOLDER)
    provider = SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory))
    monkeypatch.setattr(SnapshotFiles, "save", while_another_document_comes)
    assert provider.get_current().passage_count == 4
    assert seen == [4]


def test_a_small_snapshot_is_not_saved(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(store.directory / FOLDER)
    monkeypatch.setattr("polyad.snapshot.provider.MIN_SAVED", 1000)
    SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory)).get_current()
    assert not (store.directory / FOLDER).exists()


def test_a_loaded_snapshot_survives_the_deletion_of_its_files(store: SqliteStore) -> None:
    snapshot = loaded(store)
    assert snapshot is not None
    expected = contents(snapshot)
    shutil.rmtree(store.directory / FOLDER)
    assert contents(snapshot) == expected


def test_incidences_of_frequent_entities_are_saved(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.snapshot.records._FREQUENT", 2)
    shutil.rmtree(store.directory / FOLDER)
    SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory)).get_current()
    requested: list[int] = []
    get_together = SqliteReadTransaction.get_together

    def noted(
        transaction: SqliteReadTransaction, ids: Mapping[type[Any], Any], some: Sequence[tuple[int, int, int]] = ()
    ) -> tuple[dict[type[Any], Any], list[list[EntityIncidence]]]:
        requested.extend(after for _, after, _ in some)
        return get_together(transaction, ids, some)

    monkeypatch.setattr(SqliteReadTransaction, "get_together", noted)
    provider = SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory))
    snapshot = provider.get_current()
    (aldby,) = snapshot.find_rows("entity", ["aldby"]).values()
    assert snapshot.graph.entity_edges.degrees(np.array([aldby])).tolist() == [2]
    last = snapshot.hyperedges.pks.last()
    entities = snapshot.get(Entity, [aldby])
    assert requested == []
    first = snapshot.graph.entity_edges.get_neighbours(np.array([aldby]))[0][0]
    passages = np.arange(snapshot.passage_count) == snapshot.graph.passages(np.array([first]))[0]
    (selected,) = restrict(snapshot, passages).get(Entity, [aldby])
    assert (selected.key, requested) == ("aldby", []), "nor does a filter read any"
    with Engine.open(store.directory, embedder=EMBEDDER, create=False) as engine:
        engine.index_documents([Document("isk", "Isk", "The Isk is a river near Aldby.")])
        later = provider.get_current()
        requested.clear()
        assert later.get(Entity, [aldby]) == entities
        assert requested == [last]
        engine.remove(["aldby"])
        later = provider.get_current()
        requested.clear()
        (left,) = later.get(Entity, [aldby])
        assert requested == []
        engine.index_documents([Document("by", "By", "By is a farm near Aldby.")])
    monkeypatch.setattr("polyad.snapshot.mapped_snapshot._MAX_NEW", 0.0)
    provider.save()
    requested.clear()
    (left,) = (
        SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory)).get_current().get(Entity, [aldby])
    )
    assert requested == [], "what came since was counted when the snapshot was kept again"
    monkeypatch.undo()
    assert [left] == get_all(store, Entity, ["aldby"])


def test_fields_of_documents_are_not_read_again_after_a_snapshot_is_saved(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    get, ids_read = SqliteReadTransaction.get, []

    def record(transaction: SqliteReadTransaction, record_type: type[Any], ids: Any = None) -> Any:
        if record_type is Origin:
            ids_read.extend(ids)
        return get(transaction, record_type, ids)

    monkeypatch.setattr(SqliteReadTransaction, "get", record)
    where = parse_filter("title like 'Aldby*'")
    with Engine.open(store.directory, embedder=EMBEDDER, create=False) as engine:
        provider = SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory))
        parts = PartCache()
        parts.restrict(provider.get_current(), where, None)
        saved_version = provider.get_current().saved.version
        engine.index_documents([Document("isk", "Isk", "The Isk is a river.")])
        provider.save(1000)
        part = parts.restrict(provider.get_current(), where, None)
    assert part.whole.saved.version > saved_version
    assert part.selected.passage_count == 1
    assert ids_read == ["bell", "moreau", "aldby", "isk"]
