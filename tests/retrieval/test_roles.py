from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from polyad.adapters.hashing import HashingEmbedder
from polyad.adapters.sqlite import SqliteStore
from polyad.config import SplitSettings
from polyad.errors import ConfigurationError
from polyad.indexing.pipeline import Indexer
from polyad.indexing.split import SentenceSplitter
from polyad.indexing.tuple_builder import TupleBuilder
from polyad.model import Argument, Document
from polyad.protocols import silent
from polyad.retrieval.roles import RoleBinding, answer_roles, roles_taken

FACTS = {
    "g1": [("giver", "Alice"), ("recipient", "Bob"), ("gift", "Book")],
    "g2": [("giver", "Alice"), ("recipient", "Carol"), ("gift", "Pen")],
    "g3": [("giver", "Bob"), ("recipient", "Alice"), ("gift", "The Pen")],
    "g4": [("giver", "Dora"), ("giver", "ALICE"), ("recipient", "Carol"), ("year", "1961")],
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.create(tmp_path, "hashing:16", 16, "none")
    documents = [
        Document(id, "", f"gift {id}", arguments=tuple(Argument(role, name) for role, name in arguments))
        for id, arguments in FACTS.items()
    ]
    Indexer(store, HashingEmbedder(16), SentenceSplitter(SplitSettings()), TupleBuilder()).index(documents, silent)
    yield store
    store.close()


def found(store: SqliteStore, bound: Mapping[str, str | Sequence[str]], *wanted: str) -> list[str]:
    return [binding.hyperedge_id[:2] for binding in answer_roles(store, bound, wanted)]


def test_the_missing_role_is_read_from_the_fact_that_has_all_bound_ones(store: SqliteStore) -> None:
    assert answer_roles(store, {"giver": "Alice", "recipient": "Bob"}, ["gift"]) == [
        RoleBinding("g1#0000/000", "gift g1", {"gift": ("Book",)})
    ]
    assert answer_roles(store, {"giver": "Alice", "gift": "Pen"}, ["recipient"]) == [
        RoleBinding("g2#0000/000", "gift g2", {"recipient": ("Carol",)})
    ]


def test_an_entity_counts_only_in_its_bound_role(store: SqliteStore) -> None:
    assert found(store, {"giver": "Alice"}) == ["g1", "g2", "g4"]
    assert found(store, {"recipient": "Alice"}) == ["g3"]
    assert found(store, {"gift": "Alice"}) == []


def test_entities_that_meet_only_in_different_facts_are_not_joined(store: SqliteStore) -> None:
    assert found(store, {"recipient": "Bob", "gift": "Pen"}) == []


def test_names_are_matched_by_key_and_given_as_the_fact_spells_them(store: SqliteStore) -> None:
    (binding,) = answer_roles(store, {"giver": "BOB", "gift": "pen"})
    assert binding.roles == {"gift": ("The Pen",), "giver": ("Bob",), "recipient": ("Alice",)}


def test_without_wanted_roles_the_whole_fact_is_given_with_roles_sorted(store: SqliteStore) -> None:
    (binding,) = answer_roles(store, {"year": "1961"})
    assert list(binding.roles.items()) == [
        ("giver", ("ALICE", "Dora")),
        ("recipient", ("Carol",)),
        ("year", ("1961",)),
    ]


def test_a_fact_that_lacks_a_wanted_role_is_left_out(store: SqliteStore) -> None:
    assert found(store, {"giver": "Alice"}, "year") == ["g4"]
    assert found(store, {"giver": "Alice"}, "gift", "year") == []


def test_an_unknown_entity_is_in_no_fact(store: SqliteStore) -> None:
    assert found(store, {"giver": "Zora"}) == []
    assert found(store, {"giver": "Alice", "recipient": "Zora"}) == []


def test_one_entity_may_be_bound_to_two_roles(store: SqliteStore) -> None:
    assert found(store, {"giver": "Alice", "recipient": "Alice"}) == []


def test_several_entities_may_be_bound_to_one_role(store: SqliteStore) -> None:
    assert found(store, {"giver": ["Dora", "Alice"]}) == ["g4"]
    assert found(store, {"giver": ["Dora", "Bob"]}) == []


def test_the_roles_that_an_entity_takes(store: SqliteStore) -> None:
    assert roles_taken(store, "ALICE") == ["giver", "recipient"]
    assert roles_taken(store, "Zora") == []


def test_binding_nothing_is_an_error(store: SqliteStore) -> None:
    with pytest.raises(ConfigurationError, match="bound is empty; expected"):
        answer_roles(store, {})


@pytest.mark.parametrize("name", ["", "42", "the"])
def test_binding_what_names_no_entity_is_an_error(store: SqliteStore, name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"giver is bound to '{name}', which names no entity"):
        answer_roles(store, {"giver": name})
