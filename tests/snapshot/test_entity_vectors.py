from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import StaleSnapshotError
from polyad.hypergraph.sparse import rank_by_id
from polyad.model import (
    Document,
    Entity,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Passage,
)
from polyad.protocols.components import TextKind
from polyad.protocols.lookups import get_version
from polyad.protocols.store import ENTITY_VECTORS, Manifest
from polyad.snapshot.entity_vectors import MAX_DESCRIPTION, OutdatedEntities, format_entity_text
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.provider import SnapshotProvider
from polyad.snapshot.records import read_entities
from polyad.stores.sqlite import SqliteStore

DIMENSION = 8
ZERO = np.zeros(DIMENSION, dtype=np.float32)


class CountingEmbedder(HashingEmbedder):
    """Records the texts it embeds."""

    def __init__(self) -> None:
        super().__init__(DIMENSION)
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        assert kind == "passage"
        self.texts += texts
        return super().encode(texts, kind)


def put(store: SqliteStore, id: str, scored: float = 100, /, **entities: str) -> None:
    """Store a document with one hyperedge; ``entities`` are descriptions by key."""
    incidences = tuple(
        Incidence(key, f"{id}#0/0", key.title(), description=text, score=scored)
        for key, text in sorted(entities.items())
    )
    edge = Hyperedge(f"{id}#0/0", HyperedgeKind.FACT, id, f"{id}#0", 0, len(id))
    passage = IndexedPassage(
        Passage(f"{id}#0", id, "", id, 0, len(id)), id, ZERO, (IndexedHyperedge(edge, incidences, ZERO),)
    )
    store.put(IndexedDocument(Document(id, "", id), id, 1, (passage,)))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore.open(tmp_path, Manifest("hashing:8", DIMENSION, "rules"))
    yield opened
    opened.close()


def provider_of(store: SqliteStore) -> SnapshotProvider:
    return SnapshotProvider(store, DIMENSION)


def by_key(snapshot: MappedSnapshot) -> FloatArray:
    """Return the vectors of all entities, in the order of their keys."""
    rows = np.flatnonzero(snapshot.graph.are_live(np.arange(snapshot.row_count("entity"))))
    return snapshot.vectors("entity", rows[np.argsort(rank_by_id(snapshot, "entity", rows))])


def vectors(store: SqliteStore, embedder: CountingEmbedder) -> FloatArray:
    """Return the entity vectors of a newly opened index."""
    embedder.texts.clear()
    return by_key(provider_of(store).get_with_entity_vectors(embedder))


def stored_vectors(store: SqliteStore) -> dict[str, bytes]:
    return store.get_values(ENTITY_VECTORS)


def test_the_text_of_an_entity_is_its_name_and_descriptions() -> None:
    assert format_entity_text(Entity("ada", "Ada")) == "Ada"
    assert (
        format_entity_text(Entity("ada", "Ada", "person", "met  Babbage\nwrote notes"))
        == "Ada: met Babbage wrote notes"
    )
    assert format_entity_text(Entity("ada", "Ada", description=" \n ")) == "Ada"
    assert format_entity_text(Entity("ada", "Ada", description="x" * 5000)) == "Ada: " + "x" * MAX_DESCRIPTION


def test_vectors_are_those_of_the_texts_in_the_order_of_keys(store: SqliteStore) -> None:
    put(store, "a", bob="a man", ada="a woman")
    put(store, "b", cy="")
    made = vectors(store, CountingEmbedder())
    assert made.dtype == np.float32
    assert np.array_equal(made, HashingEmbedder(DIMENSION).encode(["Ada: a woman", "Bob: a man", "Cy"], "passage"))


def test_an_index_without_entities_has_no_vectors_and_embeds_nothing(store: SqliteStore) -> None:
    embedder = CountingEmbedder()
    assert vectors(store, embedder).shape == (0, DIMENSION)
    assert embedder.texts == []


def test_entity_vectors_are_stored(store: SqliteStore) -> None:
    put(store, "a", ada="a woman", bob="a man")
    embedder = CountingEmbedder()
    first = vectors(store, embedder)
    assert len(embedder.texts) == 2
    again = vectors(store, embedder)
    assert embedder.texts == []
    assert again.tobytes() == first.tobytes()


def test_only_entities_with_changed_descriptions_are_embedded_again(store: SqliteStore) -> None:
    embedder = CountingEmbedder()
    put(store, "a", ada="a woman", bob="a man")
    vectors(store, embedder)
    put(store, "b", bob="an inventor", cy="")
    vectors(store, embedder)
    assert embedder.texts == ["Bob: a man an inventor", "Cy"]
    put(store, "c", ada="", bob="a man")
    vectors(store, embedder)
    assert embedder.texts == [], "nothing new is said"
    store.remove(["b"])
    removed = vectors(store, embedder)
    assert embedder.texts == ["Bob: a man"]
    assert np.array_equal(removed, HashingEmbedder(DIMENSION).encode(["Ada: a woman", "Bob: a man"], "passage"))


def test_an_entity_added_again_with_another_description_is_embedded_again(store: SqliteStore) -> None:
    embedder = CountingEmbedder()
    put(store, "a", ada="a woman")
    vectors(store, embedder)
    store.remove(["a"])
    put(store, "a", bob="a man")
    made = vectors(store, embedder)
    assert embedder.texts == ["Bob: a man"]
    assert np.array_equal(made, HashingEmbedder(DIMENSION).encode(["Bob: a man"], "passage"))


def test_storing_vectors_does_not_change_the_version_of_the_index(store: SqliteStore) -> None:
    put(store, "a", ada="a woman")
    version = get_version(store)
    vectors(store, CountingEmbedder())
    assert get_version(store) == version


def test_advancing_embeds_only_changed_entities(store: SqliteStore) -> None:
    provider, embedder = provider_of(store), CountingEmbedder()
    put(store, "a", ada="a woman", bob="a man")
    first = provider.get_with_entity_vectors(embedder)
    assert provider.get_with_entity_vectors(embedder) is first
    assert embedder.texts == ["Ada: a woman", "Bob: a man"]
    put(store, "b", bob="an inventor", cy="")
    put(store, "c", ada="")
    second = provider.get_with_entity_vectors(embedder)
    assert sorted(embedder.texts[2:]) == ["Bob: a man an inventor", "Cy"]
    assert np.array_equal(by_key(second), by_key(provider_of(store).get_with_entity_vectors(CountingEmbedder())))
    store.remove(["a", "c"])
    third = provider.get_with_entity_vectors(embedder)
    assert embedder.texts[4:] == ["Bob: an inventor"], "Ada is gone"
    assert np.array_equal(by_key(third), HashingEmbedder(DIMENSION).encode(["Bob: an inventor", "Cy"], "passage"))
    assert np.array_equal(by_key(first), HashingEmbedder(DIMENSION).encode(["Ada: a woman", "Bob: a man"], "passage"))


def test_advancing_updates_entity_scores(store: SqliteStore) -> None:
    def score(snapshot: MappedSnapshot, key: str) -> float:
        ((rows, weighted),) = snapshot.nearest(
            "entity", snapshot.vectors("entity", np.array([snapshot.find_rows("entity", [key])[key]])), 9, weighted=True
        )
        return float(weighted[rows.tolist().index(snapshot.find_rows("entity", [key])[key])])

    provider, embedder = provider_of(store), CountingEmbedder()
    put(store, "a", ada="")
    put(store, "b", 20, ada="")
    assert score(provider.get_with_entity_vectors(embedder), "ada") == pytest.approx(100)
    store.remove(["a"])
    assert score(provider.get_with_entity_vectors(embedder), "ada") == pytest.approx(20)
    put(store, "c", 70, ada="", bob="")
    assert score(provider.get_with_entity_vectors(embedder), "ada") == pytest.approx(70)
    assert score(provider.get_with_entity_vectors(embedder), "bob") == pytest.approx(70)
    assert embedder.texts == ["Ada", "Bob"]


def test_deleted_entities_are_not_found(store: SqliteStore) -> None:
    provider, embedder = provider_of(store), CountingEmbedder()
    put(store, "a", ada="a woman")
    put(store, "b", bob="a man")
    provider.get_with_entity_vectors(embedder)
    store.remove(["a"])
    snapshot = provider.get_with_entity_vectors(embedder)
    question = HashingEmbedder(DIMENSION).encode(["Ada: a woman"], "query")
    for weighted in (False, True):
        ((rows, _),) = snapshot.nearest("entity", question, 5, weighted=weighted)
        assert snapshot.ids("entity", rows) == ["bob"]


def test_an_entity_is_found_by_its_new_description(store: SqliteStore) -> None:
    provider, embedder = provider_of(store), CountingEmbedder()
    put(store, "a", ada="who wrote the first program for an engine that was never built")
    put(store, "b", **{"ada": "", "ada ada": ""})
    provider.get_with_entity_vectors(embedder)
    store.remove(["a"])
    snapshot = provider.get_with_entity_vectors(embedder)
    assert embedder.texts[-1] == "Ada"
    for k in (1, 2):
        ((rows, _),) = snapshot.nearest("entity", HashingEmbedder(DIMENSION).encode(["Ada"], "query"), k)
        assert snapshot.ids("entity", rows) == ["ada", "ada ada"][:k], "the same words make the same vector"


def test_saved_entity_vectors_are_not_computed_again(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.snapshot.provider.MIN_SAVED", 0)
    made: list[int] = []

    def record(snapshot: MappedSnapshot, rows: Sequence[int]) -> list[Entity]:
        made.extend(rows)
        return read_entities(snapshot, rows)

    def opened() -> MappedSnapshot:
        made.clear()
        return SnapshotProvider(store, DIMENSION, SnapshotFiles(store.directory)).get_with_entity_vectors(
            CountingEmbedder()
        )

    monkeypatch.setattr("polyad.snapshot.entity_vectors.read_entities", record)
    put(store, "a", **{f"name{number:02}": f"thing {number}" for number in range(30)})
    first = opened()
    assert len(made) == 30
    second = opened()
    assert made == []
    assert np.array_equal(by_key(second), by_key(first))
    put(store, "b", name07="another thing", new="")
    third = opened()
    assert second.ids("entity", made[:1]) == ["name07"], "and beside it what is new"
    assert len(made) == 2
    assert np.array_equal(by_key(third), by_key(provider_of(store).get_with_entity_vectors(CountingEmbedder())))


def test_reading_a_deleted_entity_raises_stale_snapshot_error(store: SqliteStore) -> None:
    put(store, "a", ada="a woman")
    put(store, "b", bob="a man")
    provider = provider_of(store)
    snapshot = provider.get_current()
    store.remove(["b"])
    with pytest.raises(StaleSnapshotError):
        OutdatedEntities.from_snapshot(snapshot)
    assert list(stored_vectors(store)) == []
    provider.get_with_entity_vectors(CountingEmbedder())
    assert list(stored_vectors(store)) == ["ada"]


def test_progress_counts_entities(store: SqliteStore) -> None:
    put(store, "a", ada="", bob="")
    messages: list[tuple[int, int | None, str]] = []

    def tell(done: int, total: int | None, message: str) -> None:
        messages.append((done, total, message))

    provider_of(store).get_with_entity_vectors(CountingEmbedder(), tell)
    provider_of(store).get_with_entity_vectors(CountingEmbedder(), tell)
    assert messages == [(2, 2, "entities embedded")]


def test_entity_vectors_do_not_depend_on_batches(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, "a", **{f"name{number:02}": f"thing {number}" for number in range(25)})
    monkeypatch.setattr("polyad.snapshot.entity_vectors._BATCH", 10)
    numbers: list[int] = []
    snapshot = provider_of(store).get_with_entity_vectors(
        CountingEmbedder(), lambda done, total, message: numbers.append(done)
    )
    texts = [f"Name{number:02}: thing {number}" for number in range(25)]
    assert np.array_equal(by_key(snapshot), HashingEmbedder(DIMENSION).encode(texts, "passage"))
    assert numbers == [10, 20, 25]


def test_entities_embedded_before_a_failure_are_stored(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, "a", **{f"name{number:02}": "" for number in range(25)})
    monkeypatch.setattr("polyad.snapshot.entity_vectors._BATCH", 10)

    class Breaking(CountingEmbedder):
        def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
            if len(self.texts) == 20:
                raise MemoryError
            return super().encode(texts, kind)

    with pytest.raises(MemoryError):
        provider_of(store).get_with_entity_vectors(Breaking())
    embedder = CountingEmbedder()
    vectors(store, embedder)
    assert embedder.texts == [f"Name{number}" for number in range(20, 25)]


def test_concurrent_threads_get_equal_entity_vectors(store: SqliteStore) -> None:
    put(store, "a", **{f"name{number:03}": f"thing {number}" for number in range(200)})
    provider, embedder = provider_of(store), CountingEmbedder()
    with ThreadPoolExecutor(8) as pool:
        shared = list(pool.map(lambda _: by_key(provider.get_with_entity_vectors(embedder)), range(16)))
        values = list(
            pool.map(lambda _: by_key(provider_of(store).get_with_entity_vectors(CountingEmbedder())), range(16))
        )
    assert len(embedder.texts) == 200
    assert {made.tobytes() for made in [*shared, *values]} == {shared[0].tobytes()}


PROCESS = """
import sys
from pathlib import Path
import numpy as np
from polyad.embedders.hashing import HashingEmbedder
from polyad.model import Entity
from polyad.protocols.lookups import get_all
from polyad.protocols.store import ENTITY_VECTORS
from polyad.stores.sqlite import SqliteStore
from polyad.snapshot.provider import SnapshotProvider

store = SqliteStore.open(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(20):
    snapshot = SnapshotProvider(store, 8).get_with_entity_vectors(HashingEmbedder(8))
    made = snapshot.vectors("entity", np.arange(snapshot.row_count("entity")))
    store.put_values(ENTITY_VECTORS, {entity.key: b"old" for entity in get_all(store, Entity)[::2]}, is_optional=True)
print(made.sum())
"""


def test_two_processes_may_embed_entities_at_once(store: SqliteStore, tmp_path: Path) -> None:
    put(store, "a", **{f"name{number:03}": f"thing {number}" for number in range(100)})
    command = [sys.executable, "-c", PROCESS, str(tmp_path)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    outputs = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        outputs.append(output)
    assert outputs[0] == outputs[1]
    texts = [f"Name{number:03}: thing {number}" for number in range(100)]
    expected = HashingEmbedder(DIMENSION).encode(texts, "passage")
    assert np.array_equal(vectors(store, CountingEmbedder()), expected), "what is out of date is made again"


def test_a_snapshot_has_entity_vectors_although_another_thread_advances(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "a", ada="a woman")
    provider = provider_of(store)
    settled = provider._save_if_needed

    def settled_later() -> MappedSnapshot:
        put(store, "b", bob="a man")
        provider.get_current(min_version=get_version(store))
        return settled()

    monkeypatch.setattr(provider, "_save_if_needed", settled_later)
    snapshot = provider.get_with_entity_vectors(CountingEmbedder())
    assert len(by_key(snapshot)) == snapshot.graph.are_live(np.arange(snapshot.row_count("entity"))).sum()
