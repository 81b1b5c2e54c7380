"""An advanced snapshot equals a snapshot that is built from the store at the same version."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.config import NearestSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import StaleSnapshotError, StoreError
from polyad.hypergraph.sparse import rank_by_id
from polyad.model import (
    SUBJECT,
    Document,
    Entity,
    Evidence,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    IntArray,
    Origin,
    Passage,
    Timings,
)
from polyad.protocols.components import TextKind
from polyad.protocols.lookups import get_all, get_version
from polyad.protocols.snapshot import Kind
from polyad.protocols.store import EntityIncidence, Manifest
from polyad.snapshot.advancing import find_rows, resolve_links
from polyad.snapshot.columns import Column
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.parts import restrict
from polyad.snapshot.provider import SnapshotProvider
from polyad.snapshot.records import read_entities
from polyad.stores.sqlite import SqliteStore
from polyad.stores.sqlite.store import SqliteReadTransaction
from tests.examples import count_examples

EMBEDDER = HashingEmbedder(16)
RETRIEVERS = ("default", "hypergraphrag", "hypersu", "dense", "bm25")
NAMES = ("ann bea lee", "ann lee", "ann cy lee", "a lee", "bo ray", "captain bo ray", "bo xu ray", "isk", "old isk")
"""Some are short for others, or end in them; "bo ray" may be one person or be short for another."""

TEXTS = ("the bell of isk was cast", "the isk flows north", "bells and towers", "ann lee met captain bo ray", "walnuts")
RANKINGS: tuple[tuple[Kind, bool], ...] = (("passage", False), ("hyperedge", False), ("hyperedge", True))
QUESTIONS = ("Who cast the bell that Ann Lee and Bo Ray saw?", "where does the isk flow?", "towers of bells")


@dataclass(frozen=True)
class Unit:
    """A hyperedge: text, subject, subject strength and other members."""

    text: str
    subject: str
    strength: float
    others: frozenset[str]


Content = tuple[tuple[Unit, ...], ...]
"""The hyperedges of each passage of a document."""


def indexed(id: str, content: Content) -> IndexedDocument:
    passages = []
    for place, units in enumerate(content):
        text = " ".join(unit.text for unit in units) or "nothing is said"
        passage = Passage(f"{id}#{place:04}", id, f"Title {len(units)}", text, 0, len(text))
        edges = []
        for position, unit in enumerate(units):
            edge = Hyperedge(
                f"{passage.id}/{position:03}",
                HyperedgeKind.SEMANTIC_UNIT,
                unit.text,
                passage.id,
                0,
                len(unit.text),
                score=float(1 + len(unit.others)),
            )
            others = [Incidence(key, edge.id, key.title(), description=unit.text) for key in sorted(unit.others)]
            about = Incidence(unit.subject, edge.id, unit.subject.title(), SUBJECT, strength=unit.strength)
            vector = EMBEDDER.encode([unit.text], "passage")[0]
            edges.append(IndexedHyperedge(edge, tuple([*others, about] if unit.subject else others), vector))
        passages.append(IndexedPassage(passage, "", EMBEDDER.encode([text], "passage")[0], tuple(edges)))
    document = Document(id, id, "text", metadata={"passages": len(content)})
    return IndexedDocument(document, "digest", 1, tuple(passages))


UNITS = st.builds(
    Unit,
    text=st.sampled_from(TEXTS),
    subject=st.sampled_from([*NAMES, ""]),
    strength=st.sampled_from([1.0, 1.0, 0.5]),
    others=st.frozensets(st.sampled_from(NAMES), max_size=3),
)
CONTENTS = st.lists(st.lists(UNITS, max_size=2).map(tuple), max_size=3).map(tuple)
STEPS = st.lists(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | CONTENTS), min_size=1, max_size=4),
    min_size=1,
    max_size=4,
)
"""In each step, documents that are put, or removed if the content is None."""


def new_store(folder: Path) -> SqliteStore:
    return SqliteStore.open(Path(tempfile.mkdtemp(dir=folder)), Manifest(EMBEDDER.name, EMBEDDER.dimension, "rules"))


def act(store: SqliteStore, documents: dict[str, Content], actions: Sequence[tuple[str, Content | None]]) -> None:
    """Apply the actions to the store and to ``documents``."""
    for id, content in actions:
        if content is not None:
            store.put(indexed(id, content))
            documents[id] = content
        elif id in documents:
            store.remove([id])
            del documents[id]


def found_in(directory: Path, engine: Engine | None = None) -> list[Evidence]:
    """Return the evidence of every retriever, from an open engine or a new one."""
    if engine is None:
        with Engine.open(directory, embedder=EMBEDDER, create=False) as opened:
            return found_in(directory, opened)
    return [
        replace(engine.search(question, 4, retriever=name, merge=False), timings=Timings())
        for name in RETRIEVERS
        for question in QUESTIONS
    ]


def shown_by(snapshot: MappedSnapshot) -> dict[str, object]:
    """Return everything that a snapshot contains, by sorted ids and keys."""
    graph, vectors = snapshot.graph, EMBEDDER.encode(QUESTIONS, "query")

    def ids(kind: Kind, rows: IntArray) -> list[str]:
        return snapshot.ids(kind, rows)

    def all_rows(kind: Kind, k: int = 1000) -> IntArray:
        rows = snapshot.nearest(kind, vectors[:1], k)[0][0]
        return rows[np.argsort(rank_by_id(snapshot, kind, rows))]

    keys, entities = [], []
    for key, row in sorted(snapshot.find_rows("entity", NAMES).items()):
        keys.append(key)
        entities.append(row)
    outputs: dict[str, object] = {
        "statistics": (snapshot.passage_count, snapshot.linkability, snapshot.mean_cosines(vectors).tolist()),
        "subjects": {
            name: ids("entity", np.array(rows))
            for name, rows in sorted(snapshot.find_entities("variant", NAMES).items())
        },
        "words": {
            word: sorted(snapshot.ids("entity", snapshot.find_entities("word", [word]).get(word, [])))
            for word in ("bo", "isk", "lee", "bell")
        },
        "frequencies": snapshot.document_frequencies(["bell", "isk", "noth"]).tolist(),
    }
    for row, key in zip(entities, keys, strict=True):
        one = np.array([row])
        passages, _, strengths = graph.mentions(one, as_subject=True)
        outputs[key] = (
            int(graph.mention_counts(one)[0]),
            sorted(zip(ids("passage", passages), strengths.tolist(), strict=True)),
            sorted(ids("passage", graph.mentions(one)[0])),
            sorted(ids("hyperedge", graph.memberships(one)[0])),
            snapshot.get(Entity, [row]),
        )
    for row in all_rows("passage").tolist():
        one = np.array([row])
        outputs[snapshot.ids("passage", one)[0]] = (
            snapshot.document_ids(one),
            snapshot.get(Passage, [row]),
            snapshot.get(Origin, [row]),
            sorted(ids("hyperedge", graph.hyperedges(one)[0])),
            snapshot.contains_terms(["bell", "isk"], one).tolist(),
            snapshot.cosines("passage", one, vectors).tolist(),
        )
    for row in all_rows("hyperedge").tolist():
        one = np.array([row])
        outputs[snapshot.ids("hyperedge", one)[0]] = (
            snapshot.get(Hyperedge, [row]),
            ids("passage", graph.passages(one)),
            sorted(ids("entity", graph.members(one)[0])),
            sorted(ids("entity", graph.members(one, variants=False)[0])),
        )
    for k in (1, 3, 100):
        for question, vector in zip(QUESTIONS, vectors, strict=True):
            rows, scores = snapshot.search_terms(question, k)
            outputs[f"best {k} by words: {question}"] = (ids("passage", rows), scores.tolist())
            for kind, weighted in RANKINGS:
                ((rows, scores),) = snapshot.nearest(kind, vector[None], k, weighted=weighted)
                outputs[f"best {k} of {kind} {weighted}: {question}"] = (ids(kind, rows), scores.tolist())
    return outputs


@settings(max_examples=count_examples(60), deadline=None)
@given(steps=STEPS, last=st.permutations("abcdef"))
def test_an_advanced_snapshot_equals_a_built_one(
    steps: list[list[tuple[str, Content | None]]], last: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyad.snapshot.mapped_snapshot._MAX_DELETED", 1.0)  # never made anew by itself
        patch.setattr("polyad.snapshot.records._FREQUENT", 1)
        store, documents = new_store(Path(name)), dict[str, Content]()
        with closing(store):
            provider = SnapshotProvider(store, EMBEDDER.dimension)
            for actions in steps:
                act(store, documents, actions)
                moved = shown_by(provider.get_current())
                assert moved == shown_by(SnapshotProvider(store, EMBEDDER.dimension).get_current())
        with closing(new_store(Path(name))) as other:
            for id in last:
                if id in documents:
                    other.put(indexed(id, documents[id]))
            assert moved == shown_by(SnapshotProvider(other, EMBEDDER.dimension).get_current())


@settings(max_examples=count_examples(40), deadline=None)
@given(
    steps=STEPS,
    settled=st.sets(st.integers(0, 3)),
    opened=st.sets(st.integers(0, 3)),
    nearest=st.sampled_from([NearestSettings(), NearestSettings(exact_up_to=0, clusters_from=0, nprobe=0)]),
)
def test_a_loaded_snapshot_is_advanced_like_a_built_one(
    steps: list[list[tuple[str, Content | None]]], settled: set[int], opened: set[int], nearest: NearestSettings
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyad.snapshot.mapped_snapshot._MAX_DELETED", 1.0)
        patch.setattr("polyad.snapshot.mapped_snapshot._MAX_NEW", 0.0)  # kept as soon as anything is new
        patch.setattr("polyad.snapshot.records._FREQUENT", 2)
        patch.setattr("polyad.snapshot.provider.MIN_SAVED", 0)
        store, documents = new_store(Path(name)), dict[str, Content]()

        def keeper_of_files() -> SnapshotProvider:
            return SnapshotProvider(store, EMBEDDER.dimension, SnapshotFiles(store.directory, nearest))

        with closing(store):
            provider = keeper_of_files()
            for number, actions in enumerate(steps):
                act(store, documents, actions)
                if number in settled:
                    provider.save()
                if number in opened:
                    provider = keeper_of_files()
                outputs = shown_by(provider.get_current())
                assert outputs == shown_by(SnapshotProvider(store, EMBEDDER.dimension).get_current())


@settings(max_examples=count_examples(60), deadline=None)
@given(
    steps=STEPS,
    selected=st.sets(st.sampled_from("abcdef")),
    nearest=st.sampled_from([20_000, 0]),
    frequent=st.sampled_from([1, 8]),
)
def test_a_restricted_snapshot_equals_one_of_the_selected_documents(
    steps: list[list[tuple[str, Content | None]]], selected: set[str], nearest: int, frequent: int
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyad.snapshot.records._FREQUENT", frequent)
        patch.setattr("polyad.snapshot.mapped_snapshot._MAX_DELETED", 1.0)
        patch.setattr("polyad.snapshot.mapped_snapshot._MAX_NEW", 0.0)
        patch.setattr("polyad.snapshot.provider.MIN_SAVED", 0)
        store, documents = new_store(Path(name)), dict[str, Content]()
        with closing(store), closing(new_store(Path(name))) as other:
            files = SnapshotFiles(store.directory, NearestSettings(exact_up_to=nearest, clusters_from=nearest))
            provider = SnapshotProvider(store, EMBEDDER.dimension, files)
            for actions in steps:
                act(store, documents, actions)
                snapshot = provider.get_current()
            names = snapshot.passages.documents.take(np.arange(len(snapshot.passages.documents)))
            mask = np.array([name in selected for name in names], dtype=bool)[snapshot.passages.document.to_array()]
            # Name variants and links stay those of the whole index; all else is to be equal.
            restricted = shown_by(resolve_links(restrict(snapshot, mask)))
            for id, content in documents.items():
                if id in selected:
                    other.put(indexed(id, content))
            alone = shown_by(SnapshotProvider(other, EMBEDDER.dimension).get_current())
            assert restricted.pop("statistics")[:2] == alone.pop("statistics")[:2]  # type: ignore[index]
            assert restricted == alone


@settings(max_examples=count_examples(25), deadline=None)
@given(steps=STEPS, last=st.permutations("abcdef"))
def test_retrievers_find_the_same_in_an_advanced_snapshot(
    steps: list[list[tuple[str, Content | None]]], last: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyad.snapshot.mapped_snapshot._MAX_DELETED", 1.0)
        store, documents = new_store(Path(name)), dict[str, Content]()
        with closing(store), Engine.open(store.directory, embedder=EMBEDDER, create=False) as engine:
            for actions in steps:
                act(store, documents, actions)
                moved = found_in(store.directory, engine)
                assert moved == found_in(store.directory)
        with closing(new_store(Path(name))) as other:
            for id in last:
                if id in documents:
                    other.put(indexed(id, documents[id]))
            assert moved == found_in(other.directory)


# One moment


BELL, TOWER = Unit("the bell was cast", "bo ray", 1.0, frozenset({"isk"})), Unit("a tower", "isk", 1.0, frozenset())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(new_store(tmp_path)) as opened:
        opened.put(indexed("a", ((BELL,),)))
        opened.put(indexed("b", ((TOWER,),)))
        yield opened


def test_a_snapshot_does_not_change_when_documents_are_written(store: SqliteStore) -> None:
    provider = SnapshotProvider(store, EMBEDDER.dimension)
    first = provider.get_current()
    before = shown_by(first)
    store.put(indexed("c", ((BELL, TOWER), (TOWER,))))
    later = provider.get_current()
    assert later is not first
    assert provider.get_current() is later
    assert shown_by(first) == before, "its entities too are of its moment"
    assert shown_by(later) != before


def test_a_part_of_a_snapshot_does_not_hide_entities_of_the_whole(store: SqliteStore) -> None:
    snapshot = SnapshotProvider(store, EMBEDDER.dimension).get_current()
    expected = SnapshotProvider(store, EMBEDDER.dimension).get_current().find_entities("word", ["isk", "ray"])
    nothing = restrict(snapshot, np.zeros(snapshot.row_count("passage"), dtype=bool))
    assert nothing.find_entities("word", ["isk", "ray"]) == {}
    assert snapshot.find_entities("word", ["isk", "ray"]) == expected != {}


def test_adding_a_document_copies_no_large_segment(store: SqliteStore) -> None:
    provider = SnapshotProvider(store, EMBEDDER.dimension)
    provider.get_current()
    for number in range(100):
        store.put(indexed(f"c{number}", ((Unit(f"note {number}", f"name {number}", 1.0, frozenset({"isk"})),),)))
    earlier = provider.get_current()
    store.put(indexed("d", ((TOWER,), (BELL,))))
    later = provider.get_current()
    assert later.passage_count == earlier.passage_count + 2
    assert later.graph.entity_edges.pairs.segments[0] is earlier.graph.entity_edges.pairs.segments[0]
    assert later.graph.edge_members.segments[0] is earlier.graph.edge_members.segments[0]
    assert later.passages.terms.postings.segments[0] is earlier.passages.terms.postings.segments[0]
    assert later.entities.keys.lookup.segments[0] is earlier.entities.keys.lookup.segments[0]
    assert later.graph.variants.name_codes.segments[0] is earlier.graph.variants.name_codes.segments[0]


def test_recent_records_are_cached_and_the_cache_is_small(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.snapshot.records._MAX_RECORDS", 0)
    read: list[int] = []
    get = SqliteReadTransaction.get

    def counted(transaction: SqliteReadTransaction, record_type: type[Passage], ids: list[int]) -> dict[int, Passage]:
        read.extend(ids)
        return get(transaction, record_type, ids)

    monkeypatch.setattr(SqliteReadTransaction, "get", counted)
    provider = SnapshotProvider(store, EMBEDDER.dimension)
    snapshot = provider.get_current()
    first, both = snapshot.get(Passage, [0]), snapshot.get(Passage, [1, 0, 1])
    assert both == [both[0], *first, both[0]]
    assert len(read) == 2
    assert list(snapshot.records.records[Passage]) == [1], "what was shown before is forgotten"
    store.put(indexed("c", ((TOWER,),)))
    assert provider.get_current().get(Passage, [0, 1, 2])[:2] == [*first, both[0]]
    assert read[2:] == [1, 3], "the cached passage is read again"
    provider.get_current().get(Passage, [0, 1])
    assert read[4:] == [2], "the cached passage is read again"
    provider.get_current().get(Passage, [0])
    assert len(read) == 6
    store.remove(["b"])
    provider.get_current().get(Passage, [0])
    assert len(read) == 6, "a passage is read again after another document was removed"


def test_only_new_hyperedges_of_a_frequent_entity_are_read(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.snapshot.records._FREQUENT", 2)
    questions: list[list[int]] = []
    get_together = SqliteReadTransaction.get_together

    def noted(
        transaction: SqliteReadTransaction, ids: Mapping[type[Any], Any], some: Sequence[tuple[int, int, int]] = ()
    ) -> tuple[dict[type[Any], Any], list[list[EntityIncidence]]]:
        questions.append([after for _, after, _ in some])
        return get_together(transaction, ids, some)

    monkeypatch.setattr(SqliteReadTransaction, "get_together", noted)
    provider = SnapshotProvider(store, EMBEDDER.dimension)
    isk, bo = (provider.get_current().find_rows("entity", [key])[key] for key in ("isk", "bo ray"))
    last = provider.get_current().hyperedges.pks.last()
    replies = ["the bell was cast"]
    for text, counted in (("walnuts", [0, 0]), ("bells", [last, 0]), ("", [last + 1, last + 1])):
        (entity, _) = provider.get_current().get(Entity, [isk, bo])
        assert entity.description.split("\n") == sorted(replies)
        assert questions[-1] == counted
        if text:
            store.put(indexed(text, ((Unit(text, "bo ray", 1.0, frozenset({"isk"})),),)))
            replies.append(text)
        if text == "bells":
            store.remove(["b"])
    assert len(questions) == 3


def note(number: int) -> IndexedDocument:
    return indexed(f"c{number}", ((Unit(f"note {number}", "bo ray", 1.0, frozenset({"isk"})),),))


@pytest.fixture
def counted(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many incidences of entities are read from the store."""
    monkeypatch.setattr("polyad.snapshot.records._FREQUENT", 2)
    read: list[int] = []
    get_together = SqliteReadTransaction.get_together

    def noted(
        transaction: SqliteReadTransaction, ids: Mapping[type[Any], Any], some: Sequence[tuple[int, int, int]] = ()
    ) -> tuple[dict[type[Any], Any], list[list[EntityIncidence]]]:
        records, groups = get_together(transaction, ids, some)
        read.extend(map(len, groups))
        return records, groups

    monkeypatch.setattr(SqliteReadTransaction, "get_together", noted)
    for number in range(30):
        store.put(note(number))
    return read


def test_deleting_a_hyperedge_reads_nothing_of_a_frequent_entity(store: SqliteStore, counted: list[int]) -> None:
    provider = SnapshotProvider(store, EMBEDDER.dimension)
    isk = provider.get_current().find_rows("entity", ["isk"])["isk"]
    assert provider.get_current().get(Entity, [isk]) == get_all(store, Entity, ["isk"])
    assert counted == [32]
    for id in ("c7", "c29", "a"):
        store.remove([id])
        assert provider.get_current().get(Entity, [isk]) == get_all(store, Entity, ["isk"])
    assert counted == [32]


def test_incidences_of_a_later_snapshot_serve_an_earlier_one(store: SqliteStore, counted: list[int]) -> None:
    provider = SnapshotProvider(store, EMBEDDER.dimension)
    snapshots, expected = [], []
    for number in range(30, 36):
        snapshots.append(provider.get_current())
        isk = snapshots[-1].find_rows("entity", ["isk"])["isk"]
        expected.append(read_entities(snapshots[-1], [isk]))
        assert expected[-1] == get_all(store, Entity, ["isk"])
        store.put(note(number))
    for snapshot, entity in [*zip(snapshots, expected, strict=True)][::-1]:
        counted.clear()
        assert read_entities(snapshot, [isk]) == entity
        assert counted == []


def test_reading_a_deleted_record_raises_stale_snapshot_error(store: SqliteStore) -> None:
    snapshot = SnapshotProvider(store, EMBEDDER.dimension).get_current()
    assert snapshot.get(Passage, [0])[0].id == "a#0000", "and to have shown it before does not count"
    store.put(indexed("a", ((TOWER,),)))
    bo, isk = (snapshot.find_rows("entity", [key])[key] for key in ("bo ray", "isk"))
    for show in (
        lambda: snapshot.get(Passage, [0]),
        lambda: snapshot.get(Hyperedge, [0]),
        lambda: snapshot.get(Entity, [bo]),
        lambda: snapshot.get(Entity, [isk]),
    ):
        with pytest.raises(StaleSnapshotError):
            show()
    assert [passage.id for passage in snapshot.get(Passage, [1])] == ["b#0000"]
    store.remove(["b"])
    with pytest.raises(StaleSnapshotError):
        snapshot.get(Origin, [1])


def test_a_snapshot_of_a_minimum_version_is_waited_for(store: SqliteStore) -> None:
    provider = SnapshotProvider(store, EMBEDDER.dimension)
    first = provider.get_current()
    store.put(indexed("c", ((BELL,),)))
    with provider._advancing:
        assert provider.get_current() is first, "another thread moves it on: this one does not wait"
    assert provider.get_current(min_version=get_version(store)).version == get_version(store)


def test_a_new_index_in_the_same_folder_is_read_whole(store: SqliteStore, tmp_path: Path) -> None:
    provider = SnapshotProvider(store, EMBEDDER.dimension)
    for _ in range(3):
        store.put(indexed("c", ((BELL,),)))
    assert provider.get_current().passage_count == 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyad.stores.sqlite.store.LOG_LENGTH", 1)
        for _ in range(3):
            store.put(indexed("d", ((BELL,),)))
        moved = provider.get_current()
    assert shown_by(moved) == shown_by(SnapshotProvider(store, EMBEDDER.dimension).get_current())


def test_a_mostly_deleted_snapshot_is_built_again(store: SqliteStore) -> None:
    provider = SnapshotProvider(store, EMBEDDER.dimension)
    for _ in range(30):
        store.put(indexed("a", ((BELL,),)))
        provider.get_current()
    snapshot = provider.get_current()
    assert snapshot.row_count("passage") < 10
    assert shown_by(snapshot) == shown_by(SnapshotProvider(store, EMBEDDER.dimension).get_current())


class Replacing(HashingEmbedder):
    """Replaces a document while it encodes a question."""

    def __init__(self) -> None:
        super().__init__(EMBEDDER.dimension)
        self.replace: Callable[[], object] | None = None

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        replacing, self.replace = self.replace, None
        if kind == "query" and replacing:
            replacing()
        return super().encode(texts, kind)


@pytest.mark.parametrize("name", sorted({*RETRIEVERS} - {"bm25"}))
def test_a_search_during_which_a_document_is_replaced_sees_one_version(tmp_path: Path, name: str) -> None:
    embedder, question = Replacing(), "Who cast the bell?"
    old, new = Document("bell", "", "Ann Lee cast the bell."), Document("bell", "", "Otters eat crabs and fish.")
    others = [Document("isk", "", "The Isk is a river."), Document("tower", "", "The tower has a bell.")]
    versions = []
    for bell in (old, new):
        with Engine.open(tmp_path / bell.text, embedder=EMBEDDER) as engine:
            engine.index_documents([*others, bell])
            versions.append(replace(engine.search(question, 3, retriever=name), timings=Timings()))
    with (
        Engine.open(tmp_path / "kb", embedder=embedder) as engine,
        Engine.open(tmp_path / "kb", embedder=EMBEDDER) as other,
    ):
        engine.index_documents([old, *others])
        engine.search("Who cast bells?", 3, retriever=name)
        embedder.replace = lambda: other.index_documents([new])
        during = replace(engine.search(question, 3, retriever=name), timings=Timings())
        assert embedder.replace is None
        after = replace(engine.search(question, 3, retriever=name), timings=Timings())
    assert during in versions
    assert after == versions[1]


def test_a_reference_to_a_missing_row_raises() -> None:
    numbers = Column.from_array(np.array([1, 4]))
    assert find_rows(numbers, np.array([4, 1, 4])).tolist() == [1, 0, 1]
    for wrong in (0, 2, 9):
        with pytest.raises(StoreError):
            find_rows(numbers, np.array([wrong]))
