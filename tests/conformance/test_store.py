"""What every store promises; see :class:`polyad.protocols.store.Store`."""

# ruff: noqa: RUF001  (text in the punctuation of other languages)
from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyad.errors import IndexMismatchError, NotFoundError, StoreError, StoreNotFoundError, VersionConflictError
from polyad.model import (
    SUBJECT,
    Argument,
    Document,
    DocumentSummary,
    Entity,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Origin,
    Pagination,
    Passage,
    Usage,
)
from polyad.protocols.lookups import (
    check_manifest,
    find_duplicates,
    find_passages_by_digest,
    get_all,
    get_digests,
    get_document_passages,
    get_incidences,
    get_statistics,
    get_version,
)
from polyad.protocols.store import (
    ENTITY_VECTORS,
    IN_COMMON_WORDS,
    ORIGINALS,
    PENDING_VECTORS,
    REPLIES,
    Changes,
    DocumentText,
    HyperedgeFields,
    MaintainedStore,
    Manifest,
    Store,
    StoredRows,
    StoreOpener,
    Values,
)
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.memory import MemoryStore
from polyad.stores.sqlite import SqliteStore
from polyad.text.json_types import format_value
from tests.examples import count_examples
from tests.postgres_server import open_workspace

Opener = Callable[[], Store]
"""Opens the index of a test, which the first call creates; each call returns another handle."""

MANIFEST = Manifest("test", 4, "rules")

STORES: dict[str, StoreOpener] = {"memory": MemoryStore.open, "postgres": open_workspace, "sqlite": SqliteStore.open}
"""One line for each implementation of the protocol."""


@pytest.fixture(params=sorted(STORES))
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    opened: list[Store] = []

    def opener() -> Store:
        opened.append(STORES[request.param](tmp_path / "index", MANIFEST))
        return opened[-1]

    yield opener
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Opener) -> Store:
    return open_store()


class Member(NamedTuple):
    """One incidence to be."""

    key: str
    name: str = ""
    role: str = ""
    type: str = ""
    description: str = ""
    score: float = 100.0


def vector(*numbers: float) -> FloatArray:
    return np.resize(np.array(numbers, dtype=np.float32), 4) / np.float32(3)


def indexed(id: str, *texts: str, members: Mapping[int, Sequence[Member]] | None = None) -> IndexedDocument:
    """A document with one passage a text, and one hyperedge of the given members over the whole of each."""
    document = Document(id, f"Title of {id}", "\n".join(texts), source=f"{id}.txt")
    return IndexedDocument(
        document,
        digest=f"digest of {texts}",
        tokens=len(document.text.split()),
        passages=tuple(
            passage_of(document, position, text, (members or {}).get(position, (Member("anna", "Anna"),)))
            for position, text in enumerate(texts)
        ),
    )


def passage_of(document: Document, position: int, text: str, members: Sequence[Member]) -> IndexedPassage:
    passage = Passage(f"{document.id}#{position:04}", document.id, document.title, text, position, position + len(text))
    edge = Hyperedge(
        f"{passage.id}/000", HyperedgeKind.SEMANTIC_UNIT, text, passage.id, start=0, end=len(text), score=7.5
    )
    incidences = tuple(
        Incidence(m.key, edge.id, m.name or m.key, m.role, m.type, m.description, m.score) for m in sorted(members)
    )
    return IndexedPassage(
        passage,
        f"digest of {text}",
        vector(position, len(text)),
        (IndexedHyperedge(edge, incidences, vector(len(text), 1, position)),),
    )


def stored_rows(store: Store) -> list[StoredRows]:
    """The rows of all documents."""
    with store.read_transaction() as transaction:
        return list(transaction.rows(transaction.changes().documents))


def changes_of(store: Store, since: int) -> Changes:
    with store.read_transaction() as transaction:
        return transaction.changes(since)


def contents(store: Store) -> dict[str, object]:
    """Everything a store holds, as plain values in the order of their ids."""
    passages: list[tuple[str, str, str, list[float]]] = []
    hyperedges: list[tuple[str, str, float, list[float]]] = []
    pairs: list[tuple[int, str, float]] = []
    key_of: dict[int, str] = {}
    for rows in stored_rows(store):
        passage_of = dict(zip(rows.passage_numbers.tolist(), rows.passage_ids, strict=True))
        edge_of = dict(zip(rows.hyperedge_numbers.tolist(), rows.hyperedge_ids, strict=True))
        passages += zip(rows.passage_ids, rows.document_ids, rows.texts, rows.passage_vectors.tolist(), strict=True)
        owners = [passage_of[number] for number in rows.passage_of_hyperedge.tolist()]
        scores, vectors = rows.hyperedge_scores.tolist(), rows.hyperedge_vectors.tolist()
        hyperedges += zip(rows.hyperedge_ids, owners, scores, vectors, strict=True)
        pairs += zip(
            rows.incidence_entity.tolist(),
            (edge_of[number] for number in rows.incidence_hyperedge.tolist()),
            rows.incidence_strength.tolist(),
            strict=True,
        )
        key_of |= rows.entity_keys
    edge_ids = sorted(id for id, *_ in hyperedges)
    statistics = get_statistics(store)
    return {
        "digests": get_digests(store),
        "documents": get_all(store, Document, list(get_digests(store))),
        "passages": get_all(store, Passage, sorted(id for id, *_ in passages)),
        "rows of passages": sorted(passages),
        "hyperedges": get_all(store, Hyperedge, edge_ids),
        "rows of hyperedges": sorted(hyperedges),
        "incidences": get_incidences(store, edge_ids),
        "pairs": sorted((key_of[entity], edge, strength) for entity, edge, strength in pairs),
        "entities": get_all(store, Entity, sorted(key_of.values())),
        "sizes": (
            statistics.documents,
            statistics.passages,
            statistics.hyperedges,
            statistics.entities,
            statistics.incidences,
            statistics.tokens,
        ),
    }


def flattened(passage: IndexedPassage) -> tuple[object, ...]:
    """A passage as values that compare, vectors bit for bit."""
    edges = [(item.hyperedge, item.incidences, item.vector.tobytes()) for item in passage.hyperedges]
    return passage.passage, passage.digest, passage.vector.tobytes(), edges


def search_text(store: Store, question: str, k: int) -> list[tuple[str, float]]:
    """Passages by the words that the store gives for them."""
    snapshot = SnapshotProvider(store, store.manifest.dimension).get_current()
    rows, scores = snapshot.search_terms(question, k)
    return list(zip(snapshot.ids("passage", rows), scores.tolist(), strict=True))


def search_ids(store: Store, question: str, k: int = 10) -> list[str]:
    return [id for id, _ in search_text(store, question, k)]


def entity_keys(store: Store) -> list[str]:
    return sorted({key for rows in stored_rows(store) for key in rows.entity_keys.values()})


# Making and opening


@pytest.mark.parametrize("open_index", STORES.values(), ids=STORES)
@pytest.mark.parametrize("as_place", [Path, str])
def test_a_store_is_created_once_and_then_opened(
    open_index: StoreOpener, as_place: Callable[[Path], str | Path], tmp_path: Path
) -> None:
    place = as_place(tmp_path / "index")
    with pytest.raises(StoreNotFoundError):
        open_index(place)
    with closing(open_index(place, MANIFEST)) as store:
        store.put(indexed("a", "Anna."))
        if isinstance(store, MaintainedStore):
            assert [one for one in store.verify() if one.invariant != "vectors"] == []  # of no embedder
    with closing(open_index(place, MANIFEST)) as store:
        assert list(get_digests(store)) == ["a"]
    with pytest.raises(IndexMismatchError, match="'test', not 'other'"):
        open_index(place, Manifest("other", 4, "rules"))
    with closing(open_index(place)) as store:
        assert (store.manifest.embedder, store.manifest.mentions) == ("test", "rules")
        check_manifest(store.manifest, embedder="test", mentions="rules")
        with pytest.raises(IndexMismatchError, match="'rules', not 'other'"):
            check_manifest(store.manifest, mentions="other")


# Documents


def test_a_new_store_is_empty_in_every_respect(store: Store) -> None:
    assert get_digests(store) == {}
    assert contents(store)["sizes"] == (0, 0, 0, 0, 0, 0)
    assert stored_rows(store) == []
    assert search_text(store, "anything", 5) == []
    assert find_passages_by_digest(store, ["x"]) == {}
    assert get_all(store, Document, []) == []
    assert (store.manifest.embedder, store.manifest.dimension, store.manifest.mentions) == ("test", 4, "rules")


def test_incidences_are_read_up_to_a_large_primary_key(store: Store) -> None:
    store.put(indexed("a", "Anna left."))
    with store.read_transaction() as transaction:
        assert (
            transaction.get_together({}, [(1, 0, 100_000)])[1] == transaction.get_together({}, [(1, 0, 1)])[1] != [[]]
        )


def test_stored_documents_can_be_read(store: Store) -> None:
    document = indexed("a", "Anna left.", "She came back.")
    store.put(document)
    assert get_all(store, Document, ["a"]) == [document.document]
    assert get_all(store, Passage, ["a#0001", "a#0000"]) == [document.passages[1].passage, document.passages[0].passage]
    assert get_all(store, Hyperedge, ["a#0001/000"]) == [document.passages[1].hyperedges[0].hyperedge]
    assert get_incidences(store, ["a#0000/000"]) == {"a#0000/000": list(document.passages[0].hyperedges[0].incidences)}
    statistics = get_statistics(store)
    assert (statistics.documents, statistics.passages, statistics.hyperedges, statistics.tokens) == (1, 2, 2, 5)


def test_digests_are_sorted_by_id(store: Store) -> None:
    for id in ("b", "é", "a", "Z", "中"):
        store.put(indexed(id, id))
    assert list(get_digests(store)) == ["Z", "a", "b", "é", "中"]
    assert get_digests(store)["b"] == "digest of ('b',)"
    assert get_digests(store, ["é", "none", "Z"]) == {"Z": "digest of ('Z',)", "é": "digest of ('é',)"}
    assert get_digests(store, []) == {}


def test_putting_an_id_again_replaces_all_that_came_from_it(store: Store, open_store: Opener) -> None:
    store.put(indexed("a", "Old words.", "And more.", members={0: [Member("old")]}))
    store.put(indexed("a", "New."))
    assert contents(store)["digests"] == {"a": "digest of ('New.',)"}
    assert [list(rows.passage_ids) for rows in stored_rows(store)] == [["a#0000"]]
    assert entity_keys(store) == ["anna"]
    assert search_ids(store, "old words more") == []
    with pytest.raises(NotFoundError, match="a#0001"):
        get_all(store, Passage, ["a#0001"])


def test_removing_a_document_restores_the_earlier_index(store: Store) -> None:
    store.put(indexed("a", "Anna left.", members={0: [Member("anna", "Anna"), Member("rome", "Rome")]}))
    before = contents(store)
    store.put(indexed("b", "Bob stayed.", members={0: [Member("anna", "ANNA", score=3), Member("bob", "Bob")]}))
    assert contents(store) != before
    store.remove(["b"])
    assert contents(store) == before


def test_removing_an_unknown_document_removes_none(store: Store) -> None:
    store.put(indexed("a", "Anna."))
    store.put(indexed("b", "Bob."))
    before, version = contents(store), get_version(store)
    with pytest.raises(NotFoundError, match=r"'no such'.*and 1 more"):
        store.remove(["a", "no such", "nor this", "b"])
    assert contents(store) == before
    assert get_version(store) == version


def test_removing_a_document_twice_in_one_call_removes_it(store: Store) -> None:
    store.put(indexed("a", "Anna."))
    store.remove(["a", "a"])
    assert get_digests(store) == {}


def test_reading_what_is_not_there_names_it(store: Store) -> None:
    store.put(indexed("a", "Anna."))
    with pytest.raises(NotFoundError, match="document 'x'"):
        get_all(store, Document, ["a", "x"])
    with pytest.raises(NotFoundError, match="passage 'x'"):
        get_all(store, Passage, ["x"])
    with pytest.raises(NotFoundError, match="hyperedge 'x'"):
        get_all(store, Hyperedge, ["x"])
    with pytest.raises(NotFoundError, match="entity 'x'"):
        get_all(store, Entity, ["anna", "x"])


def test_reading_keeps_the_order_and_the_repetitions_asked_for(store: Store) -> None:
    for number in range(1200):  # more than is bound to one statement
        store.put(indexed(f"d{number}", f"text {number}", members={0: [Member(f"entity {number}")]}))
    expected = [f"d{number}" for number in range(1199, -1, -1)] + ["d7"]
    assert [document.id for document in get_all(store, Document, expected)] == expected
    keys = [f"entity {number}" for number in range(1199, -1, -1)]
    assert [entity.key for entity in get_all(store, Entity, keys)] == keys


# Atomicity


def broken(document: IndexedDocument) -> IndexedDocument:
    """The document with a last passage whose id is that of its first, which no store can hold."""
    return replace(document, passages=(*document.passages, document.passages[0]))


def test_a_put_that_fails_half_way_leaves_the_earlier_state(store: Store) -> None:
    store.put(indexed("a", "Anna left.", members={0: [Member("anna", "Anna")]}))
    before, version = contents(store), get_version(store)
    for id in ("a", "b"):
        with pytest.raises(StoreError):
            store.put(broken(indexed(id, "Other words.", "More of them.", members={0: [Member("other")]})))
    assert contents(store) == before
    assert get_version(store) == version
    assert search_ids(store, "other words") == []
    store.put(indexed("b", "Bob."))  # and the store still works
    assert list(get_digests(store)) == ["a", "b"]


def test_documents_put_together_are_there_all_or_none(store: Store) -> None:
    store.put(indexed("b", "Bob.", members={0: [Member("bob")]}))
    before, version = contents(store), get_version(store)
    with pytest.raises(StoreError):
        store.put(indexed("a", "Anna."), indexed("b", "Other words."), broken(indexed("c", "Carl.")))
    assert contents(store) == before
    store.put()
    assert get_version(store) == version
    store.put(indexed("a", "Anna."), indexed("c", "Carl."))
    assert list(get_digests(store)) == ["a", "b", "c"]
    assert get_version(store) > version


@settings(max_examples=count_examples(20), deadline=None)
@given(
    given_ids=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["Anna.", "Bob."])), max_size=6),
    size=st.integers(1, 6),
)
@pytest.mark.parametrize("open_other", STORES.values(), ids=STORES)
def test_documents_put_together_are_stored_as_one_by_one(
    open_other: StoreOpener, given_ids: list[tuple[str, str]], size: int
) -> None:
    documents = [indexed(id, text, members={0: [Member(text), Member(id)]}) for id, text in given_ids]
    with ExitStack() as stack:
        together, one_by_one = (
            stack.enter_context(closing(open_other(stack.enter_context(tempfile.TemporaryDirectory()), MANIFEST)))
            for _ in range(2)
        )
        for start in range(0, len(documents), size):
            together.put(*documents[start : start + size])
        for document in documents:
            one_by_one.put(document)
        assert contents(together) == contents(one_by_one)
        with together.read_transaction() as transaction, one_by_one.read_transaction() as other:
            assert list(transaction.entity_keys()) == list(other.entity_keys())
            assert transaction.changes().documents == other.changes().documents


def test_a_put_that_is_interrupted_leaves_the_earlier_state(store: Store) -> None:
    class Interrupted(tuple[IndexedPassage, ...]):
        """Passages that cannot be walked through to the end a second time."""

        walks = 0

        def __iter__(self) -> Iterator[IndexedPassage]:
            self.walks += 1
            yield from super().__iter__()
            if self.walks > 1:
                raise KeyboardInterrupt

    store.put(indexed("a", "Anna."))
    before = contents(store)
    document = indexed("b", "Bob.", "And more.")
    with pytest.raises(KeyboardInterrupt):
        store.put(replace(document, passages=Interrupted(document.passages)))
    assert contents(store) == before


def test_version_grows_with_every_change_of_documents_and_only_then(store: Store) -> None:
    versions = [get_version(store)]
    store.put(indexed("a", "Anna."))
    versions.append(get_version(store))
    store.put(indexed("a", "Anna again."))
    versions.append(get_version(store))
    store.remove(["a"])
    versions.append(get_version(store))
    assert versions == sorted(set(versions))
    store.charge(Usage(1, 2, 3, 0.5))
    stored_rows(store), search_text(store, "anna", 3), get_statistics(store)
    assert get_version(store) == versions[-1]


def test_another_handle_sees_what_was_committed(store: Store, open_store: Opener) -> None:
    other = open_store()
    version = get_version(other)
    store.put(indexed("a", "Anna."))
    assert get_version(other) > version
    assert contents(other) == contents(store)


# Changes


Actions = list[tuple[str, tuple[str, ...]]]
"""Puts, each of an id and texts; and removals, of ids alone, which are not of documents that are not there."""

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abcd"), st.lists(st.sampled_from(["Anna.", "Bob."]), max_size=3).map(tuple)),
        st.tuples(st.just(""), st.sets(st.sampled_from("abcd")).map(lambda ids: tuple(sorted(ids)))),
    ),
    max_size=12,
)


def act(store: Store, actions: Actions) -> None:
    for id, values in actions:
        if id:
            store.put(indexed(id, *values))
        else:
            store.remove([there for there in values if there in get_digests(store)])


def passages_by_document(store: Store) -> dict[str, list[int]]:
    """The numbers of each document's passages, in the order of their ids."""
    results: dict[str, list[tuple[str, int]]] = {}
    for rows in stored_rows(store):
        for owner, id, number in zip(rows.document_ids, rows.passage_ids, rows.passage_numbers.tolist(), strict=True):
            results.setdefault(owner, []).append((id, number))
    return {owner: [number for _, number in sorted(items)] for owner, items in results.items()}


class Mirror:
    """The numbers of all passages, read whole once, then told of changes alone."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.version = get_version(store)
        self.passages = {number for numbers in passages_by_document(store).values() for number in numbers}

    def advance(self) -> Changes:
        """Drop what was removed; read what was written, which no number seen before is of."""
        changes = changes_of(self.store, self.version)
        dropped = {number for first, last in changes.removed for number in range(first, last + 1)}
        written = passages_by_document(self.store)
        latest = max(self.passages, default=0)
        self.passages -= dropped
        for numbers in written.values():
            self.passages |= {number for number in numbers if number > latest}
        self.version = changes.version
        return changes


@settings(max_examples=count_examples(20), deadline=None)
@given(actions=st.lists(ACTIONS, max_size=4))
@pytest.mark.parametrize("open_other", STORES.values(), ids=STORES)
def test_advancing_by_changes_equals_reading_everything(open_other: StoreOpener, actions: list[Actions]) -> None:
    with tempfile.TemporaryDirectory() as directory, closing(open_other(directory, MANIFEST)) as store:
        mirror = Mirror(store)
        documents: set[int] = set()
        for some in actions:
            before = get_digests(store)
            act(store, some)
            changes = mirror.advance()
            assert mirror.passages == Mirror(store).passages
            assert mirror.version == get_version(store)
            assert not documents & set(changes.documents)
            assert list(changes.documents) == sorted(changes.documents)
            written = {id for id, _ in some if id} & set(get_digests(store))
            assert len(changes.documents) == len(written)
            assert written >= set(get_digests(store)) - set(before)
            documents |= set(changes.documents)
        everything = changes_of(store, 0)
        assert len(everything.documents) == len(get_digests(store))
        assert documents >= set(everything.documents)


def test_changes_name_what_was_removed_replaced_and_written(store: Store) -> None:
    since = partial(changes_of, store)
    store.put(indexed("a", "Anna.", "Rome."))
    store.put(indexed("b", "Bob."))
    first = since(0)
    assert (first.version, first.removed, len(first.documents)) == (get_version(store), (), 2)
    numbers = passages_by_document(store)
    assert (since(first.version).removed, since(first.version).documents) == ((), ())

    item = indexed("a", "Anna.", "Rome.")
    store.put(replace(item, document=replace(item.document, metadata={"year": 1})))  # passages as they were
    second = since(first.version)
    assert second.removed == ((numbers["a"][0], numbers["a"][1]),)
    [replaced] = second.documents
    assert replaced > max(first.documents)
    assert since(0).documents == (first.documents[1], replaced)

    later = passages_by_document(store)
    store.remove(["a", "b"])
    third = since(second.version)
    assert third.documents == ()
    assert sorted(third.removed) == [(later["b"][0], later["b"][0]), (later["a"][0], later["a"][1])]
    assert sorted(since(first.version).removed) == sorted([*second.removed, *third.removed])


def test_a_failed_change_is_not_among_the_changes(store: Store) -> None:
    store.put(indexed("a", "Anna."))
    version = get_version(store)
    with pytest.raises(StoreError):
        store.put(broken(indexed("a", "Other words.")))
    with pytest.raises(NotFoundError):
        store.remove(["a", "unknown"])
    changes = changes_of(store, version)
    assert (changes.removed, changes.documents) == ((), ())


def test_changes_since_a_version_still_to_come_are_unknown(store: Store) -> None:
    store.put(indexed("a", "Anna."))
    unknown = changes_of(store, get_version(store) + 1)
    assert unknown.is_complete
    assert len(unknown.documents) == 1


def test_the_passages_of_a_document_have_consecutive_numbers_in_its_order(store: Store) -> None:
    store.put(indexed("a", "Anna.", "Bob."))
    store.put(indexed("b", *[f"passage {number}" for number in range(30)]))
    store.put(indexed("a", "Anna.", "Bob.", "Carl."))
    for numbers in passages_by_document(store).values():
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_a_number_is_never_given_again(store: Store) -> None:
    seen: set[int] = set()
    for _ in range(3):
        store.put(indexed("a", "Anna.", "Bob."))
        [numbers] = passages_by_document(store).values()
        assert seen.isdisjoint(numbers)
        seen |= set(numbers)
        store.remove(["a"])


# Passages that are known


def test_known_passages_equal_what_was_put(store: Store) -> None:
    members = {
        0: [
            Member("anna", "Anna", SUBJECT, "person", "A singer.\nOf songs.", 12.5),
            Member("anna", "ANNA", "", "person", "", 99.0),
            Member("rome", "Rome", "city"),
        ],
        1: [],
    }
    document = indexed("a", "Anna left Rome.", "Nothing is named.", members=members)
    store.put(document)
    names = find_passages_by_digest(store, ["digest of Nothing is named.", "unknown", "digest of Anna left Rome."])
    assert {digest: flattened(passage) for digest, passage in names.items()} == {
        passage.digest: flattened(passage) for passage in document.passages
    }


def test_known_passages_keep_their_hyperedges_in_order(store: Store) -> None:
    document = indexed("a", "x" * 2000)
    passage = document.passages[0]
    edge = passage.hyperedges[0]
    many = tuple(
        replace(edge, hyperedge=replace(edge.hyperedge, id=f"a#0000/{n:03}", text=f"fact {n}"), incidences=())
        for n in range(1500)
    )
    store.put(replace(document, passages=(replace(passage, hyperedges=many),)))
    other_passage = find_passages_by_digest(store, [passage.digest])[passage.digest]
    assert [item.hyperedge.text for item in other_passage.hyperedges] == [f"fact {n}" for n in range(1500)]


def test_a_passage_that_two_documents_share_is_known_while_one_of_them_is_there(store: Store) -> None:
    store.put(indexed("a", "Anna."))
    store.put(indexed("b", "Anna."))
    store.remove(["a"])
    assert find_passages_by_digest(store, ["digest of Anna."])["digest of Anna."].passage.document_id == "b"
    store.remove(["b"])
    assert find_passages_by_digest(store, ["digest of Anna."]) == {}


def test_a_duplicate_has_all_the_content_of_one_written_earlier(store: Store) -> None:
    def put(id: str, *texts: str, title: str = "") -> None:
        item = indexed(id, *texts)
        store.put(replace(item, document=replace(item.document, title=title)))

    put("c", "Anna.", "Rome.")
    put("longer", "Anna.", "Anna.", "Rome.")
    put("titled", "Anna.", "Rome.", title="Anna")
    put("b", "Anna.", "Rome.")
    put("a", "Anna.", "Rome.")
    every = sorted(get_digests(store))
    assert find_duplicates(store, every) == {"b": "c", "a": "c"}
    assert find_duplicates(store, ["a", "c", "unknown"]) == {"a": "c"}
    put("c", "Anna.", "Rome.")
    assert find_duplicates(store, every) == {"a": "b", "c": "b"}
    store.remove(["b"])
    assert find_duplicates(store, every) == {"c": "a"}


def test_passages_without_a_digest_make_no_duplicates(store: Store) -> None:
    for id in "ab":
        item = indexed(id, "Anna.")
        passages = tuple(replace(passage, digest="") for passage in item.passages)
        store.put(replace(item, document=replace(item.document, title=""), passages=passages))
    assert find_duplicates(store, ["a", "b"]) == {}


@settings(max_examples=count_examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30), data=st.data())
def test_any_text_and_span_comes_back_as_it_was_put(store: Store, text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    document = indexed("a", text, members={0: [Member(text, text, text, text, text)]})
    passage = document.passages[0]
    edge = replace(passage.hyperedges[0].hyperedge, text=text[start:end], start=start, end=end)
    edges = (replace(passage.hyperedges[0], hyperedge=edge),)
    store.put(replace(document, passages=(replace(passage, hyperedges=edges),)))

    assert get_all(store, Document, ["a"]) == [document.document]
    assert get_all(store, Hyperedge, [edge.id]) == [edge]
    other_passage = find_passages_by_digest(store, [passage.digest])[passage.digest]
    assert flattened(other_passage) == flattened(replace(passage, hyperedges=edges))
    assert get_all(store, Entity, [text])[0].name == text
    store.remove(["a"])
    assert search_ids(store, text) == []


def test_control_characters_in_a_text_end_nothing(store: Store) -> None:
    text = "before \x00 after \x1f end"
    document = indexed("a", text, members={0: [Member("n\x00m", "N\x00M")]})
    store.put(document)
    assert get_all(store, Passage, ["a#0000"])[0].text == text
    assert get_all(store, Hyperedge, ["a#0000/000"])[0].text == text
    assert flattened(find_passages_by_digest(store, ["digest of " + text])["digest of " + text]) == flattened(
        document.passages[0]
    )
    assert search_ids(store, "after end") == ["a#0000"]
    assert get_all(store, Entity, ["n\x00m"])[0].name == "N\x00M"
    store.remove(["a"])
    assert search_ids(store, "before after end") == []


def test_vectors_come_back_bit_for_bit(store: Store) -> None:
    document = indexed("a", "Anna.")
    odd = np.array([-0.0, 1e-42, np.nextafter(np.float32(1), np.float32(2)), 3.4e38], dtype=np.float32)
    store.put(replace(document, passages=(replace(document.passages[0], vector=odd),)))
    (rows,) = stored_rows(store)
    assert rows.passage_vectors.tobytes() == odd.tobytes()


# Entities


def test_an_entity_is_named_and_typed_by_vote_and_scored_by_its_best_incidence(store: Store) -> None:
    members = {
        0: [Member("who", "WHO", type="organisation", description="It advises.", score=20)],
        1: [Member("who", "WHO", type="", description="", score=90)],
        2: [Member("who", "Who", type="band", description="A band.", score=10)],
        3: [Member("who", "who", type="organisation", description="It advises.", score=5)],
    }
    store.put(indexed("a", "one", "two", "three", "four", members=members))
    (entity,) = get_all(store, Entity, ["who"])
    assert (entity.name, entity.type, entity.score) == ("WHO", "organisation", 90)
    assert entity.description == "A band.\nIt advises."


def test_a_tie_of_names_or_types_goes_to_the_first_in_order(store: Store) -> None:
    store.put(indexed("b", "one", members={0: [Member("x", "Xavier", type="b")]}))
    store.put(indexed("a", "two", members={0: [Member("x", "X.", type="c")]}))
    assert [(e.name, e.type) for e in get_all(store, Entity, ["x"])] == [("X.", "b")]


def test_an_entity_without_any_type_has_none_and_an_untyped_majority_does_not_outvote_one(store: Store) -> None:
    members = {0: [Member("x"), Member("y")], 1: [Member("x"), Member("y", type="city")], 2: [Member("y")]}
    store.put(indexed("a", "one", "two", "three", members=members))
    assert [entity.type for entity in get_all(store, Entity, ["x", "y"])] == ["", "city"]


def test_an_entity_is_gone_with_its_last_incidence(store: Store) -> None:
    store.put(indexed("a", "one", members={0: [Member("x", "X", score=3), Member("y")]}))
    store.put(indexed("b", "two", members={0: [Member("x", "Xaver", score=9)]}))
    store.remove(["b"])
    assert [(e.name, e.score) for e in get_all(store, Entity, ["x"])] == [("X", 3)]
    store.remove(["a"])
    assert entity_keys(store) == []
    with pytest.raises(NotFoundError):
        get_all(store, Entity, ["x"])


def test_an_entity_may_play_two_parts_in_one_hyperedge(store: Store) -> None:
    members = {0: [Member("x", "X", SUBJECT), Member("x", "X", "object"), Member("w", "W")]}
    store.put(indexed("a", "one", members=members))
    assert [part.role for part in get_incidences(store, ["a#0000/000"])["a#0000/000"]] == ["", "object", SUBJECT]
    assert contents(store)["pairs"] == [("w", "a#0000/000", 0), ("x", "a#0000/000", 0), ("x", "a#0000/000", 1)]


# ReadTransactions


def test_rows_come_as_documents_did_and_agree_with_the_ids(store: Store) -> None:
    for id in ("m", "B", "é", "a"):
        members = {0: [Member(id, name=id), Member("z", role=SUBJECT)]}
        store.put(indexed(id, f"{id} one", f"{id} two", members=members))
    (rows,) = stored_rows(store)
    assert list(rows.document_ids) == ["m", "m", "B", "B", "é", "é", "a", "a"]
    assert list(rows.passage_ids) == [f"{id}#000{place}" for id in ("m", "B", "é", "a") for place in (0, 1)]
    assert list(rows.texts) == [f"{one.title}\n{one.text}" for one in get_all(store, Passage, rows.passage_ids)]
    for numbers in (rows.passage_numbers, rows.hyperedge_numbers):
        assert (np.diff(numbers) > 0).all()
    for id, text, stored in zip(rows.passage_ids, rows.texts, rows.passage_vectors, strict=True):
        reply = text.split("\n")[1]
        assert stored.tolist() == vector(int(id[-4:]), len(reply)).tolist()
    id_of = dict(zip(rows.passage_numbers.tolist(), rows.passage_ids, strict=True))
    for edge, passage in zip(rows.hyperedge_ids, rows.passage_of_hyperedge.tolist(), strict=True):
        assert edge.startswith(id_of[passage] + "/")
    stored_parts = [
        (
            part.entity_key,
            edge,
            part.strength if part.role == SUBJECT else 0 if part.name in ("B", "Anna") else IN_COMMON_WORDS,
        )
        for edge, parts in get_incidences(store, rows.hyperedge_ids).items()
        for part in parts
    ]
    assert contents(store)["pairs"] == sorted(stored_parts)


def test_a_transaction_returns_all_entity_keys_by_primary_key(store: Store) -> None:
    for number in range(450):  # more than are read at a time
        store.put(indexed(f"d{number:03}", "text", members={0: [Member(f"e{number}"), Member("all")]}))
    store.remove(["d007"])
    with store.read_transaction() as transaction:
        keys = list(transaction.entity_keys())
        [rows] = list(transaction.rows(list(transaction.changes().documents)[:3]))
    assert len(keys) == 450
    assert [number for number, _ in keys] == sorted(number for number, _ in keys)
    assert dict(keys).items() >= rows.entity_keys.items()
    assert "e7" not in dict(keys).values()


def test_rows_of_some_documents_are_theirs_alone(store: Store) -> None:
    for number in range(900):  # more than is bound to one statement
        store.put(indexed(f"d{number:03}", f"text {number}", members={0: [Member(f"e{number}"), Member("all")]}))
    with store.read_transaction() as transaction:
        documents = list(transaction.changes().documents)
        some = list(transaction.rows(documents[100:850]))
    assert documents == sorted(documents)
    assert [id for rows in some for id in rows.document_ids] == [f"d{number:03}" for number in range(100, 850)]
    keys = {number: key for rows in some for number, key in rows.entity_keys.items()}
    assert sorted(keys.values()) == sorted([*(f"e{number}" for number in range(100, 850)), "all"])
    count = sorted(keys)[200]
    with store.read_transaction() as transaction:
        later = list(transaction.rows(documents[100:850], count))
    assert {number: key for rows in later for number, key in rows.entity_keys.items()} == {
        number: key for number, key in keys.items() if number > count
    }
    assert [rows.incidence_entity.tolist() for rows in later] == [rows.incidence_entity.tolist() for rows in some]


def test_a_summary_of_a_document_counts_its_tokens_and_passages(store: Store) -> None:
    store.put(indexed("a", "One.", "Two."), indexed("b"))
    with store.read_transaction() as transaction:
        summaries, documents = transaction.get(DocumentSummary), transaction.get(IndexedDocument)
        assert summaries == {
            id: DocumentSummary(transaction.get(Origin, [id])[id], each.tokens, len(each.passages))
            for id, each in documents.items()
        }
        assert [each.passages for each in summaries.values()] == [2, 0]
        assert transaction.get(DocumentSummary, ["b", "x"]).keys() == {"b"}


def test_records_are_read_by_primary_key_and_missing_ones_are_left_out(store: Store) -> None:
    store.put(indexed("a", "Anna left.", members={0: [Member("anna", "Anna"), Member("rome", "Rome")]}))
    store.put(indexed("b", "Anna came.", members={0: [Member("anna", "ANNA", score=200), Member("anna", role="who")]}))
    (rows,) = stored_rows(store)
    (first, second), edges = rows.passage_numbers.tolist(), rows.hyperedge_numbers.tolist()
    number_of = {key: number for number, key in rows.entity_keys.items()}
    anna, rome = number_of["anna"], number_of["rome"]
    with store.read_transaction() as transaction:
        version, passages, origins = (
            transaction.version,
            transaction.get(Passage, [second, 99]),
            transaction.get(Origin, ["b", "x"]),
        )
        hyperedges = transaction.get(Hyperedge, [edges[0], 99])
        now = transaction.get_together({}, [(anna, 0, edges[1]), (99, 0, edges[1]), (rome, 0, edges[1])])[1]
        (earlier,) = transaction.get_together({}, [(anna, 0, edges[0])])[1]
        later = transaction.get_together({}, [(rome, *edges), (anna, *edges)])[1]
    assert version == get_version(store)
    assert passages == {second: get_all(store, Passage, ["b#0000"])[0]}
    assert hyperedges == {edges[0]: get_all(store, Hyperedge, ["a#0000/000"])[0]}
    assert origins == {"b": get_all(store, Origin, ["b"])[0]}
    assert get_all(store, Pagination, ["b"]) == [Pagination(get_all(store, Document, ["b"])[0].places)]
    assert [[hyperedge for hyperedge, *_ in group] for group in now] == [
        [edges[0], *edges[1:], edges[1]],
        [],
        edges[:1],
    ]
    assert [incidence[1] for incidence in now[0]].count("ANNA") == 1
    assert [(number, name, score) for number, name, _, _, score in earlier] == [(edges[0], "Anna", 100)]
    assert later == [[], now[0][1:]]
    assert max(incidence[4] for incidence in later[1]) == 200
    store.remove(["a"])
    with store.read_transaction() as transaction:
        assert list(transaction.get(Passage, [first, second])) == [second]
        assert list(transaction.get(Hyperedge, edges)) == [edges[1]]
        assert transaction.get_together({}, [(anna, 0, edges[1]), (rome, 0, edges[1])])[1] == [later[1], []]
        assert transaction.get(Origin, ["a"]) == {}


def test_a_hyperedge_has_the_roles_of_its_members_and_arguments(store: Store) -> None:
    document = indexed(
        "a", "Anna came.", members={0: [Member("anna", role="who"), Member("rome", role="to"), Member("x")]}
    )
    edge = document.passages[0].hyperedges[0]
    year = Argument("year", "1990", "number")
    fact = replace(edge.hyperedge, kind=HyperedgeKind.TUPLE, relation="come", arguments=(year, Argument("to", "Rome")))
    hyperedges = (replace(edge, hyperedge=fact),)
    store.put(
        replace(document, passages=(replace(document.passages[0], hyperedges=hyperedges),)), indexed("b", "Rome.")
    )
    expected = HyperedgeFields("tuple", ("to", "who", "year")), HyperedgeFields("semantic-unit", ())
    with store.read_transaction() as transaction:
        by_id = transaction.get(HyperedgeFields, ["b#0000/000", "x", "a#0000/000"])
        numbers = [number for rows in stored_rows(store) for number in rows.hyperedge_numbers.tolist()]
        by_number = transaction.get(HyperedgeFields, numbers)
    assert by_id == dict(zip(["b#0000/000", "a#0000/000"], reversed(expected), strict=True))
    assert by_number == dict(zip(numbers, expected, strict=True))


def test_the_text_of_a_document_is_read_by_its_passages(store: Store) -> None:
    store.put(indexed("a", "Anna.", "Bert."), indexed("empty"), indexed("b", "Clara."))
    numbers = [number for rows in stored_rows(store) for number in rows.passage_numbers.tolist()]
    texts = {id: DocumentText(id, get_all(store, Document, [id])[0].text) for id in ("a", "b")}
    with store.read_transaction() as transaction:
        by_number = transaction.get(DocumentText, numbers[1:])
        by_distant_number = transaction.get(DocumentText, [numbers[1], 10**6])
        beyond = transaction.get(DocumentText, [10**6, 10**6 + 1])
        by_id = transaction.get(DocumentText, ["a#0001", "x"])
    assert by_number == {numbers[1]: texts["a"], numbers[2]: texts["b"]}
    assert by_distant_number == {numbers[1]: texts["a"]}
    assert beyond == {}
    assert by_id == {"a#0001": texts["a"]}


def test_a_moment_does_not_see_what_is_written_meanwhile(store: Store, open_store: Opener) -> None:
    store.put(indexed("a", "Anna."))
    writer = open_store()
    with store.read_transaction() as transaction:
        (before,) = transaction.rows(transaction.changes().documents)
        writer.put(indexed("a", "Other words."))
        writer.put(indexed("b", "More."))
        (after,) = transaction.rows(transaction.changes().documents)
        assert (list(after.texts), list(after.document_ids)) == (list(before.texts), ["a"])
        assert [one.text for one in transaction.get(Passage, before.passage_numbers.tolist()).values()] == ["Anna."]
        assert transaction.changes(transaction.version).documents == ()
    assert [list(rows.document_ids) for rows in stored_rows(store)] == [["a", "b"]]


def test_the_order_of_insertion_leaves_no_trace(store: Store, open_store: Opener) -> None:
    documents = [indexed(id, f"{id} text", "shared words") for id in "abcd"]
    for document in documents:
        store.put(document)
    forward = contents(store), search_text(store, "shared text", 3)
    store.remove(list("abcd"))
    for document in reversed(documents):
        store.put(document)
    assert (contents(store), search_text(store, "shared text", 3)) == forward


# Words


def test_search_finds_by_words_of_text_and_title_best_first(store: Store) -> None:
    store.put(replace(indexed("a", "A long text about many other things, and once about a lighthouse.")))
    store.put(indexed("b", "Lighthouse, lighthouse."))
    store.put(indexed("lamp", "Nothing of the kind."))
    assert search_ids(store, "Where is the LIGHTHOUSE?") == ["b#0000", "a#0000"]
    assert search_ids(store, "lamp") == ["lamp#0000"]  # the title
    scores = [score for _, score in search_text(store, "lighthouse", 5)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[1]


def test_a_passage_has_a_title_of_its_own(store: Store) -> None:
    before = contents(store)
    item = indexed("works", "Old ones leak.", "New ones do not.")
    passages = tuple(
        replace(one, passage=replace(one.passage, title=f"Works / {name}"))
        for one, name in zip(item.passages, ["Pumps", "Valves"], strict=True)
    )
    store.put(replace(item, passages=passages))
    assert [passage.title for passage in get_all(store, Passage, ["works#0001", "works#0000"])] == [
        "Works / Valves",
        "Works / Pumps",
    ]
    assert [one.passage.title for one in get_document_passages(store, ["works"])] == ["Works / Pumps", "Works / Valves"]
    assert get_all(store, Document, ["works"])[0].title == item.document.title
    assert search_ids(store, "valves") == ["works#0001"]
    store.remove(["works"])
    assert search_ids(store, "valves") == []
    assert contents(store) == before


def test_search_matches_inflected_and_accented_forms(store: Store) -> None:
    store.put(indexed("a", "The cafés were closing."))
    assert search_ids(store, "cafe closes") == ["a#0000"]


def test_search_breaks_ties_by_id_even_where_they_are_cut_off(store: Store) -> None:
    ids = [f"d{number:02}" for number in range(40)]
    for id in reversed(ids):
        store.put(replace(indexed(id, "The same words."), document=Document(id, "", "The same words.")))
    assert search_ids(store, "same words", k=3) == ["d00#0000", "d01#0000", "d02#0000"]
    assert search_ids(store, "same words", k=40) == [f"{id}#0000" for id in ids]


def test_search_finds_chinese_japanese_and_korean_by_parts_of_a_run(store: Store) -> None:
    store.put(indexed("zh", "东京塔是东京的电视塔。"))
    store.put(indexed("ja", "京都は日本の都市です。"))
    store.put(indexed("ko", "서울특별시는 한국의 수도이다."))
    assert search_ids(store, "东京塔在哪里？") == ["zh#0000"]
    assert search_ids(store, "日本の首都") == ["ja#0000"]
    assert search_ids(store, "한국의") == ["ko#0000"]


@pytest.mark.parametrize(
    "question",
    [
        '"AND" NEAR( * ^',
        '"',
        'a"b OR NOT',
        "title: text:lighthouse",
        "-lighthouse",
        "light*",
        "{lighthouse} + (lighthouse",
        "NEAR(lighthouse lamp, 2)",
        "lighthouse \x00 lamp",
        "lighthouse \ud800",
        "\\ ' ; DROP TABLE document; --",
        "²",
        "word " * 3000,
        " ".join(f"w{number}" for number in range(3000)),
        "",
        "   ",
        "?!",
    ],
)
def test_no_question_is_taken_for_a_query_language(store: Store, question: str) -> None:
    store.put(indexed("a", "Near and not: a lighthouse."))
    store.put(indexed("b", "Words."))
    hits = search_ids(store, question)
    assert ("a#0000" in hits) == any(word in question.lower() for word in ("lighthouse", "near", "not", "and"))


def test_words_of_removed_and_replaced_documents_are_forgotten(store: Store) -> None:
    store.put(indexed("kept", "A lighthouse and a harbour."))
    alone = search_text(store, "lighthouse harbour 东京", 5)
    store.put(indexed("a", "Lighthouse. 东京塔 \x00 harbour’s"))
    store.put(indexed("a", "Harbour lighthouse."))
    store.put(indexed("b", "Lighthouse harbour 东京塔", "second passage"))
    store.remove(["a", "b"])
    assert search_text(store, "lighthouse harbour 东京", 5) == alone  # not even the statistics remember


def test_a_question_of_stop_words_alone_is_still_looked_for(store: Store) -> None:
    store.put(indexed("a", "To be or not to be."))
    assert search_ids(store, "to be") == ["a#0000"]


# What is derived and what was spent


def test_usage_is_added_to_the_account_of_the_index(store: Store, open_store: Opener) -> None:
    store.charge(Usage(1, 10, 5, 0.25))
    assert open_store().charge(Usage(2, 1, 1, 0.5)) == Usage(3, 11, 6, 0.75)
    assert store.charge(Usage()) == Usage(3, 11, 6, 0.75)
    assert get_statistics(store).cost == 0.75


# Values


@pytest.mark.parametrize("namespace", ["anything", PENDING_VECTORS, REPLIES])
def test_values_are_stored_replaced_and_deleted(store: Store, open_store: Opener, namespace: str) -> None:
    assert store.get_values(namespace, ["a"]) == store.get_values(namespace) == {}
    store.put_values(namespace, {"a": b"one", "b \x00 中": b"\x00\xff", "c": b""})
    assert open_store().get_values(namespace, ["a", "none", "c"]) == {"a": b"one", "c": b""}
    store.put_values(namespace, {"a": b"two", "c": None, "none": None})
    assert open_store().get_values(namespace) == {"a": b"two", "b \x00 中": b"\x00\xff"}
    store.put_values(namespace, {})
    store.put_values(namespace, None)
    store.put_values(namespace, None)
    assert open_store().get_values(namespace) == {}


def test_namespaces_are_independent_and_no_part_of_the_documents(store: Store) -> None:
    store.put(indexed("a", "Anna met Bob."))
    before, version = contents(store), get_version(store)
    store.put_values("one", {"a": b"1"})
    store.put_values("two", {"a": b"2", "anna": b"3"}, is_optional=True)
    store.put_values("one", None)
    assert (contents(store), get_version(store)) == (before, version)
    store.remove(["a"])
    assert store.get_values("two") == {"a": b"2", "anna": b"3"}


def test_many_values_are_read_at_once(store: Store) -> None:
    store.put_values("many", {str(number): str(number).encode() for number in range(1200)})
    assert len(store.get_values("many", [str(number) for number in range(2000)])) == 1200


def test_values_of_entities_are_deleted_with_their_entity(store: Store) -> None:
    store.put(indexed("a", "one", members={0: [Member("anna"), Member("bert")]}))
    store.put(indexed("b", "two", members={0: [Member("bert")]}))
    store.put_values(ENTITY_VECTORS, {"anna": b"1", "bert": b"2"})
    store.remove(["a"])
    assert store.get_values(ENTITY_VECTORS) == {"bert": b"2"}


def test_entities_are_listed_in_parts(store: Store) -> None:
    store.put(indexed("a", "one", members={0: [Member("carl"), Member("\u00e9mile"), Member("anna")]}))
    store.put(indexed("b", "two", members={0: [Member("bert"), Member("dora")]}))
    store.put(indexed("c", "three", members={0: [Member("aaron")]}))
    store.remove(["c"])
    with store.read_transaction() as transaction:
        assert transaction.entity_page(0, 2) == (["anna", "bert"], 5)
        assert transaction.entity_page(2, 9) == (["carl", "dora", "\u00e9mile"], 5)
        assert transaction.entity_page(5, 2) == ([], 5)


# Strange contents


def test_values_are_committed_with_the_documents_or_not_at_all(store: Store, open_store: Opener) -> None:
    store.put(indexed("a", "Otters."), values={"log": {"1": b"a"}, "state": {"x": b"old"}})
    assert open_store().get_values("log") == {"1": b"a"}
    with pytest.raises(UnicodeEncodeError):
        store.put(indexed("b\ud800", "Herons."), values={"log": {"2": b"b"}, "state": {"x": None}})
    with pytest.raises(NotFoundError):
        store.remove(["b"], values={"log": {"2": b"b"}})
    assert (store.get_values("log"), store.get_values("state")) == ({"1": b"a"}, {"x": b"old"})
    store.remove(["a"], values={"log": {"2": b"b"}, "state": {"x": None}})
    assert (store.get_values("log"), store.get_values("state")) == ({"1": b"a", "2": b"b"}, {})
    store.put(values={"log": {"1": None}})
    assert store.get_values("log") == {"2": b"b"}


def test_a_document_is_read_whole_in_its_order(store: Store) -> None:
    document = indexed("a", *(f"Otters {number}." for number in range(12)), members={0: [Member("otter", "Otter")]})
    store.put(indexed("b", "Herons."), document)
    with store.read_transaction() as transaction:
        stored = transaction.get(IndexedDocument, ["a", "c"])
        everything = transaction.get(IndexedDocument)
    assert list(stored) == ["a"]
    assert format_value(stored["a"]) == format_value(document)
    assert list(everything) == ["a", "b"]


def test_a_change_computed_from_an_older_version_is_refused(store: Store, open_store: Opener) -> None:
    store.put(indexed("a", "Otters."))
    version = get_version(store)
    open_store().put(indexed("b", "Herons."))
    with pytest.raises(VersionConflictError):
        store.put(indexed("a", "Otters swim."), values={"log": {"1": b"x"}}, expected_version=version)
    assert (get_version(store), store.get_values("log")) == (version + 1, {})
    store.put(indexed("a", "Otters swim."), expected_version=version + 1)
    assert get_all(store, Document, ["a"])[0].text == "Otters swim."


def test_documents_computed_from_changed_values_are_not_stored(store: Store, open_store: Opener) -> None:
    store.put(values={"log": {"1": b"x"}, "other": {"1": b"x"}})
    values: Values = {"log": store.get_values("log"), "none": {}}
    open_store().put(values={"log": {"2": b"y"}})
    others: tuple[Values, ...] = ({"log": {"1": b"x", "2": b"z"}}, {"log": {}}, {"none": {"1": b"x"}})
    for expected in (values, *others):
        with pytest.raises(VersionConflictError):
            store.put(indexed("a", "Otters."), expected_values=expected)
    assert get_all(store, Document) == []
    store.put(indexed("a", "Otters."), expected_values={"log": {"1": b"x", "2": b"y"}, "none": {}})
    assert [document.id for document in get_all(store, Document)] == ["a"]


def test_values_are_not_compared_at_the_version_at_which_they_were_read(store: Store, open_store: Opener) -> None:
    store.put(values={"log": {"1": b"x"}})
    version, values = get_version(store), {"log": store.get_values("log")}
    store.put(indexed("a", "Otters."), expected_values=values, values_version=version)
    assert get_version(store) == version + 1
    open_store().put(values={"log": {"1": b"y"}})
    with pytest.raises(VersionConflictError):
        store.put(indexed("b", "Otters."), expected_values=values, values_version=version + 1)
    assert [document.id for document in get_all(store, Document)] == ["a"]


def test_namespaces_with_values_are_listed(store: Store) -> None:
    assert store.list_namespaces() == []
    store.put_values("b", {"key": b"1"})
    store.put_values("a", {"key": b"1", "other": None})
    store.put_values("c", {"key": None})
    store.put_values(REPLIES, {"key": b"1"})
    assert store.list_namespaces() == ["a", "b", REPLIES]


def test_originals_are_deleted_with_their_document_and_replaced_with_it(store: Store) -> None:
    store.put(indexed("a", "Otters."), indexed("b", "Herons."), values={ORIGINALS: {"a": b"1", "b": b"2"}})
    store.put(indexed("a", "Otters swim."))
    assert store.get_values(ORIGINALS) == {"b": b"2"}
    store.put(indexed("a", "Otters."), values={ORIGINALS: {"a": b"3"}})
    store.remove(["b"])
    assert store.get_values(ORIGINALS) == {"a": b"3"}


def test_very_long_ids_and_names_are_kept(store: Store) -> None:
    id = "path/" * 20_000
    store.put(indexed(id, "Anna.", members={0: [Member("k" * 100_000, "K" * 100_000)]}))
    assert get_all(store, Document, [id])[0].id == id
    assert get_all(store, Entity, ["k" * 100_000])[0].name == "K" * 100_000
    store.remove([id])
    assert get_digests(store) == {}


@pytest.mark.parametrize("place", ["id", "title", "text", "name"])
def test_half_a_character_is_refused_and_nothing_is_changed(store: Store, place: str) -> None:
    store.put(indexed("a", "Anna."))
    before = contents(store)
    document = indexed("b", "Bob.", members={0: [Member("bob", "B\ud800" if place == "name" else "Bob")]})
    if place != "name":
        broken: dict[str, Any] = {place: "B\ud800"}
        document = replace(document, document=replace(document.document, **broken))
    with pytest.raises(UnicodeEncodeError):
        store.put(document)
    assert contents(store) == before


# Threads


def test_readers_do_not_wait_for_a_writer_and_see_the_state_before_it(store: Store) -> None:
    store.put(indexed("a", "Anna."))
    before = contents(store)
    inside, release = threading.Event(), threading.Event()

    class Slow(tuple[IndexedPassage, ...]):
        """Passages that keep the writer waiting in the middle of its transaction."""

        def __iter__(self) -> Iterator[IndexedPassage]:
            inside.set()
            assert release.wait(20)
            return super().__iter__()

    document = indexed("a", "Other words.", "And more.")
    writer = threading.Thread(target=store.put, args=[replace(document, passages=Slow(document.passages))])
    writer.start()
    try:
        assert inside.wait(20)
        with ThreadPoolExecutor(4) as pool:
            seen = [future.result(timeout=20) for future in [pool.submit(contents, store) for _ in range(4)]]
    finally:
        release.set()
        writer.join()
    assert seen == [before] * 4
    assert get_all(store, Passage, ["a#0001"])[0].text == "And more."


def test_threads_may_write_side_by_side(store: Store) -> None:
    def write(worker: int) -> None:
        for number in range(15):
            store.put(
                indexed(f"{worker}-{number}", f"words {number}", members={0: [Member("shared"), Member(f"e{number}")]})
            )
            if number % 3 == 0:
                store.remove([f"{worker}-{number}"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(get_digests(store)) == 40
    assert entity_keys(store) == sorted([*(f"e{n}" for n in range(15) if n % 3), "shared"])
    assert len(search_ids(store, "words", k=100)) == 40


def test_a_closed_store_says_so(open_store: Opener) -> None:
    store = open_store()
    store.close()
    with pytest.raises(StoreError):
        get_digests(store)
    store.close()


def test_validity_and_the_time_of_recording_come_back_as_they_were_put(store: Store) -> None:
    item = indexed("a", "one", "two")
    first, second = item.passages
    dated = replace(
        second.hyperedges[0].hyperedge, valid_from="1970-01-02T00:00:00Z", valid_to="1970-01-03T00:00:00.500000Z"
    )
    second = replace(second, hyperedges=(replace(second.hyperedges[0], hyperedge=dated),))
    document = replace(item.document, metadata={"valid_to": 1971})
    dated_document = replace(item, document=document, passages=(first, second), recorded="2024-05-17T12:00:00+00:00")
    store.put(dated_document, indexed("b", "three"))
    rows = stored_rows(store)
    passages = np.concatenate([part.passage_intervals for part in rows])
    hyperedges = np.concatenate([part.hyperedge_intervals for part in rows])
    inf = np.inf
    assert passages.tolist() == [[-inf, 730 * 86400.0], [-inf, 730 * 86400.0], [-inf, inf]]
    assert hyperedges.tolist() == [[-inf, inf], [86400.0, 172800.5], [-inf, inf]]
    with store.read_transaction() as transaction:
        origins = transaction.get(Origin)
        whole = transaction.get(IndexedDocument, ["a"])["a"]
    assert {id: origin.recorded for id, origin in origins.items()} == {"a": "2024-05-17T12:00:00+00:00", "b": ""}
    assert whole.recorded == origins["a"].recorded
    assert whole.passages[1].hyperedges[0].hyperedge == dated
