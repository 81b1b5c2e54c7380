from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from polyad.config import SplitSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import ReadError
from polyad.indexing.indexer import Indexer
from polyad.indexing.run import IndexCounts
from polyad.indexing.split import SentenceSplitter
from polyad.indexing.tuples import TupleBuilder
from polyad.model import (
    Argument,
    ArgumentType,
    Document,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedHyperedge,
    Passage,
)
from polyad.protocols.components import silent
from polyad.protocols.lookups import get_all, get_hyperedge_ids, get_incidences
from polyad.protocols.store import Manifest
from polyad.stores.sqlite import SqliteStore

TEXT = "give: giver Alice, recipient Bob, gift Book"


def gift(giver: str, recipient: str, thing: str, id: str = "") -> Document:
    arguments = (Argument("giver", giver), Argument("recipient", recipient), Argument("gift", thing))
    text = f"give: giver {giver}, recipient {recipient}, gift {thing}"
    return Document(id or f"{giver} {recipient} {thing}", "", text, arguments=arguments)


BOOK_FOR_BOB = (gift("Alice", "Bob", "Book"), gift("Alice", "Carol", "Pen"))
PEN_FOR_BOB = (gift("Alice", "Bob", "Pen"), gift("Alice", "Carol", "Book"))
"""The example of HyperRAG, appendix A: the same pairs of entities, and other facts."""


def passage(*arguments: tuple[str, str], text: str = TEXT) -> Passage:
    return Passage("d#0000", "d", "", text, 0, len(text), arguments=tuple(Argument(*one) for one in arguments))


def draft(*arguments: tuple[str, str]) -> IndexedHyperedge:
    (result,) = TupleBuilder().build([passage(*arguments)])
    (edge,) = result.hyperedges
    return edge


def parts(hyperedge: IndexedHyperedge) -> list[tuple[str, str]]:
    return [(part.role, part.name) for part in hyperedge.incidences]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(tmp_path, Manifest("hashing:16", 16, "none"))
    yield store
    store.close()


def index(store: SqliteStore, documents: Sequence[Document]) -> IndexCounts:
    splitter = SentenceSplitter(SplitSettings(passage_tokens=40, overlap_tokens=10))
    return Indexer(store, HashingEmbedder(16), splitter, TupleBuilder()).index(documents, silent)


def facts(store: SqliteStore) -> set[frozenset[tuple[str, str]]]:
    members = get_incidences(store, [edge.id for edge in get_all(store, Hyperedge)])
    return {frozenset((part.role, part.entity_key) for part in incidences) for incidences in members.values()}


def pairs(facts: set[frozenset[tuple[str, str]]]) -> set[frozenset[tuple[str, str]]]:
    return {frozenset((one, other)) for fact in facts for one in fact for other in fact if one != other}


def test_a_fact_is_one_hyperedge_that_says_its_text() -> None:
    edge = draft(("giver", "Alice"), ("recipient", "Bob")).hyperedge
    assert (edge.id, edge.kind, edge.passage_id) == ("d#0000/000", HyperedgeKind.TUPLE, "d#0000")
    assert (edge.text, edge.start, edge.end, edge.score) == (TEXT, 0, len(TEXT), 10.0)


def test_every_argument_is_an_incidence_with_its_role_and_spelling_sorted_by_key_and_role() -> None:
    hyperedge = draft(("recipient", "The Book Club"), ("Giver", "ALICE"))
    assert hyperedge.incidences == (
        Incidence("The Book Club", "d#0000/000", "The Book Club", "recipient"),
        Incidence("alice", "d#0000/000", "ALICE", "Giver"),
    )


def test_an_entity_in_two_roles_is_two_incidences() -> None:
    assert parts(draft(("giver", "Alice"), ("recipient", "alice"))) == [("giver", "Alice"), ("recipient", "alice")]


def test_an_entity_twice_in_one_role_is_one_incidence_as_first_spelt() -> None:
    assert parts(draft(("author", "Alice"), ("author", "Bob"), ("author", "ALICE"))) == [
        ("author", "Alice"),
        ("author", "Bob"),
    ]


@pytest.mark.parametrize("type", ["number", "date", "boolean", "string", "null"])
def test_a_literal_joins_nothing_and_stays_with_the_fact(type: ArgumentType) -> None:
    arguments = (Argument("giver", "Alice"), Argument("since", "1961", type))
    (result,) = TupleBuilder().build([replace(passage(), arguments=arguments, relation="give")])
    (edge,) = result.hyperedges
    assert parts(edge) == [("giver", "Alice")]
    assert (edge.hyperedge.relation, edge.hyperedge.arguments) == ("give", arguments)


@pytest.mark.parametrize(
    ("one", "other"),
    [("AB-", "AB"), ("Georgia (country)", "Georgia"), ("US", "us"), ("Phase 1", "Phase 1/2"), ("Up", "Up!")],
)
def test_entities_of_different_text_are_different_entities(one: str, other: str) -> None:
    first, second = draft(("what", one)).incidences, draft(("what", other)).incidences
    assert len(first) == len(second) == 1
    assert first[0].entity_key != second[0].entity_key


def test_an_entity_with_an_id_is_known_by_it_and_shown_by_its_label() -> None:
    arguments = (Argument("author", "Q42", names=("Douglas Adams", "DNA")),)
    (result,) = TupleBuilder().build([replace(passage(), arguments=arguments)])
    (edge,) = result.hyperedges
    assert edge.incidences == (Incidence("q42", "d#0000/000", "Douglas Adams", "author"),)


def test_literals_are_counted_by_role_and_those_that_are_not_what_was_declared() -> None:
    arguments = (
        *(Argument("dose", "5", "number"), Argument("dose", "6", "number"), Argument("dose", "much", "number")),
        *(Argument("ok", "Yes", "boolean"), Argument("drug", "Zinc")),
    )
    (result,) = TupleBuilder().build([replace(passage(), arguments=arguments)])
    assert result.notes == {"role dose: number": 2, "role dose: no number, kept as text": 1, "role ok: boolean": 1}


def test_prose_is_refused_with_what_was_expected() -> None:
    with pytest.raises(ReadError, match="d is prose: it has no arguments; expected a fact with roles and entities"):
        TupleBuilder().build([passage(("giver", "Alice")), passage()])


def test_prose_among_facts_is_reported_and_the_facts_are_indexed(store: SqliteStore) -> None:
    counts = index(store, [*BOOK_FOR_BOB, Document("notes", "", "Alice likes to give.")])
    assert (counts.added, counts.hyperedges) == (2, 2)
    assert [failure.id for failure in counts.failures] == ["notes"]


def test_a_hyperedge_retains_roles_that_pairs_lose(tmp_path: Path) -> None:
    results = []
    for name, documents in (("one", BOOK_FOR_BOB), ("other", PEN_FOR_BOB)):
        store = SqliteStore.open(tmp_path / name, Manifest("hashing:16", 16, "none"))
        assert index(store, documents).failures == ()
        results.append(facts(store))
        store.close()
    one, other = results
    with_alice = [{pair for pair in pairs(each) if ("giver", "alice") in pair} for each in results]
    assert with_alice[0] == with_alice[1]  # gaveTo and gaveItem, the projection of the example
    assert one != other
    assert one & other == set()


def test_equal_facts_under_two_ids_stay_two_hyperedges(store: SqliteStore) -> None:
    index(store, [gift("Alice", "Bob", "Book", "g"), gift("Alice", "Bob", "Book", "g~2")])
    assert get_hyperedge_ids(store, "alice") == ["g#0000/000", "g~2#0000/000"]


def test_a_fact_of_a_long_text_stays_one_hyperedge(store: SqliteStore) -> None:
    text = "Alice gave Bob the Book in the year 1961, as everyone in the village knew. " * 20
    index(store, [Document("long", "", text, arguments=(Argument("giver", "Alice"),))])
    assert get_hyperedge_ids(store, "alice") == ["long#0000/000"]


def test_another_role_for_the_same_entity_and_text_is_a_change(store: SqliteStore) -> None:
    index(store, [Document("d", "", TEXT, arguments=(Argument("giver", "Alice"),))])
    counts = index(store, [Document("d", "", TEXT, arguments=(Argument("recipient", "Alice"),))])
    assert counts.updated == 1
    assert facts(store) == {frozenset({("recipient", "alice")})}
