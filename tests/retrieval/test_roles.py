from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from polyad.config import SplitSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine.catalogue import Catalogue
from polyad.errors import ConfigurationError
from polyad.indexing.indexer import Indexer
from polyad.indexing.split import SentenceSplitter
from polyad.indexing.tuples import TupleBuilder
from polyad.model import Argument, ArgumentType, Document
from polyad.protocols.components import silent
from polyad.protocols.store import Manifest
from polyad.retrieval.roles import RoleBinding, answer_roles, count_units, list_roles
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.stores.sqlite import SqliteStore

FACTS = {
    "g1": [("giver", "Alice"), ("recipient", "Bob"), ("gift", "Book")],
    "g2": [("giver", "Alice"), ("recipient", "Carol"), ("gift", "Pen")],
    "g3": [("giver", "Bob"), ("recipient", "Alice"), ("gift", "The Pen")],
    "g4": [("giver", "Dora"), ("giver", "ALICE"), ("recipient", "Carol"), ("year", "1961")],
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(tmp_path, Manifest("hashing:16", 16, "none"))
    documents = [
        Document(id, "", f"gift {id}", arguments=tuple(Argument(role, name) for role, name in arguments))
        for id, arguments in FACTS.items()
    ]
    Indexer(store, HashingEmbedder(16), SentenceSplitter(SplitSettings()), TupleBuilder()).index(documents, silent)
    yield store
    store.close()


def find_ids(store: SqliteStore, bound: Mapping[str, str | Sequence[str]], *expected: str) -> list[str]:
    return [binding.hyperedge_id[:2] for binding in answer_roles(store, bound, expected)]


def test_the_missing_role_is_read_from_the_fact_that_has_all_bound_ones(store: SqliteStore) -> None:
    assert answer_roles(store, {"giver": "Alice", "recipient": "Bob"}, ["gift"]) == [
        RoleBinding("g1#0000/000", "gift g1", {"gift": ("Book",)}, "", (Argument("gift", "Book"),))
    ]
    assert answer_roles(store, {"giver": "Alice", "gift": "Pen"}, ["recipient"]) == [
        RoleBinding("g2#0000/000", "gift g2", {"recipient": ("Carol",)}, "", (Argument("recipient", "Carol"),))
    ]


def test_every_role_of_the_index_is_known(store: SqliteStore) -> None:
    assert Catalogue(store, None, dict, lambda: MappedSnapshot.empty(store, 1)).role_names() == [
        "gift",
        "giver",
        "recipient",
        "year",
    ]


def test_an_entity_counts_only_in_its_bound_role(store: SqliteStore) -> None:
    assert find_ids(store, {"giver": "Alice"}) == ["g1", "g2"]
    assert find_ids(store, {"recipient": "Alice"}) == ["g3"]
    assert find_ids(store, {"gift": "Alice"}) == []


def test_entities_that_meet_only_in_different_facts_are_not_joined(store: SqliteStore) -> None:
    assert find_ids(store, {"recipient": "Bob", "gift": "Pen"}) == []


def test_role_values_match_in_their_exact_spelling_only(store: SqliteStore) -> None:
    (binding,) = answer_roles(store, {"giver": "Bob", "gift": " The  Pen"})
    assert binding.roles == {"gift": ("The Pen",), "giver": ("Bob",), "recipient": ("Alice",)}
    assert find_ids(store, {"giver": "BOB"}) == []
    assert find_ids(store, {"gift": "Pen"}) == ["g2"]


def test_without_wanted_roles_the_whole_fact_is_given_with_roles_sorted(store: SqliteStore) -> None:
    (binding,) = answer_roles(store, {"year": "1961"})
    assert list(binding.roles.items()) == [
        ("giver", ("Dora", "ALICE")),
        ("recipient", ("Carol",)),
        ("year", ("1961",)),
    ]


def test_a_fact_that_lacks_a_wanted_role_is_left_out(store: SqliteStore) -> None:
    assert find_ids(store, {"giver": "ALICE"}, "year") == ["g4"]
    assert find_ids(store, {"giver": "Alice"}, "gift", "year") == []


def test_an_unknown_entity_is_in_no_fact(store: SqliteStore) -> None:
    assert find_ids(store, {"giver": "Zora"}) == []
    assert find_ids(store, {"giver": "Alice", "recipient": "Zora"}) == []


def test_one_entity_may_be_bound_to_two_roles(store: SqliteStore) -> None:
    assert find_ids(store, {"giver": "Alice", "recipient": "Alice"}) == []


def test_several_entities_may_be_bound_to_one_role(store: SqliteStore) -> None:
    assert find_ids(store, {"giver": ["Dora", "ALICE"]}) == ["g4"]
    assert find_ids(store, {"giver": ["Dora", "Bob"]}) == []


def test_the_roles_that_an_entity_takes(store: SqliteStore) -> None:
    assert list_roles(store, "Alice") == ["giver", "recipient"]
    assert list_roles(store, "ALICE") == ["giver"]
    assert list_roles(store, "Zora") == []


def test_binding_nothing_is_an_error(store: SqliteStore) -> None:
    with pytest.raises(ConfigurationError):
        answer_roles(store, {})


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_an_error(store: SqliteStore, limit: int) -> None:
    with pytest.raises(ConfigurationError, match=f"limit is {limit}; expected 1 or more"):
        answer_roles(store, {"giver": "Alice"}, limit=limit)


# Conditions, relations and literals

YES_NO: ArgumentType = "boolean"
DOSES = {
    "d1": [Argument("drug", "AB-"), Argument("dose", "-250", "number", "mg"), Argument("on", "1990-05-31", "date")],
    "d2": [Argument("drug", "AB"), Argument("dose", "250", "number", "mg"), Argument("on", "1990", "date")],
    "d3": [Argument("drug", "Georgia (country)"), Argument("dose", "2.50e2", "number"), Argument("ok", "Yes", YES_NO)],
    "d4": [Argument("drug", "Georgia"), Argument("dose", "9" * 400, "number"), Argument("ok", "false", YES_NO)],
    "d5": [Argument("drug", "the"), Argument("dose", "1", "number"), Argument("dose", "1000", "number")],
    "d7": [Argument("on", "1991", "number")],
    "d6": [Argument("drug", "Q42", names=("Douglas Adams", "DNA")), Argument("ok", "null", "null")],
}


@pytest.fixture
def doses(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(tmp_path / "doses", Manifest("hashing:16", 16, "none"))
    documents = [
        Document(id, "", f"dose {id}", arguments=tuple(arguments), relation="dose" if id < "d4" else "other")
        for id, arguments in DOSES.items()
    ]
    Indexer(store, HashingEmbedder(16), SentenceSplitter(SplitSettings()), TupleBuilder()).index(documents, silent)
    yield store
    store.close()


@pytest.mark.parametrize(
    ("questions", "ids"),
    [
        (["drug=AB-"], ["d1"]),
        (["drug=AB"], ["d2"]),
        (["drug=Georgia (country)"], ["d3"]),
        (["drug=Georgia"], ["d4"]),
        (["drug=the"], ["d5"]),
        (["drug=Q42"], ["d6"]),
        (["drug=DNA"], ["d6"]),
        (["drug=dna"], []),
        (["dose=250"], ["d2", "d3"]),
        (["dose=250 mg"], ["d2"]),
        (["dose=-250"], ["d1"]),
        (["dose = 250.0"], ["d2", "d3"]),
        (["dose>=250"], ["d2", "d3", "d4", "d5"]),
        (["dose>250"], ["d4", "d5"]),
        (["dose<250"], ["d1", "d5"]),
        (["dose<=-250"], ["d1"]),
        (["dose>=2", "dose<=999"], ["d2", "d3"]),
        ([f"dose>{'9' * 399}8"], ["d4"]),
        ([f"dose>={'9' * 399}8", f"dose<{'9' * 400}"], []),
        (["dose!=250"], ["d1", "d4", "d5"]),
        (["on=1990"], ["d2"]),
        (["on=1990-05-31"], ["d1"]),
        (["on>=1990"], ["d1", "d2", "d7"]),
        (["on>=1990-02"], ["d1", "d7"]),
        (["on<1990-06"], ["d1"]),
        (["on>1990-06", "on<1992-01"], ["d7"]),
        (["on<=1990"], ["d1", "d2"]),
        (["on>1990"], ["d7"]),
        (["ok=yes"], ["d3"]),
        (["ok=False"], ["d4"]),
        (["ok=null"], ["d6"]),
        (["ok!=true"], ["d4", "d6"]),
    ],
)
def test_values_are_found_exactly_and_by_their_order(doses: SqliteStore, questions: list[str], ids: list[str]) -> None:
    assert [binding.hyperedge_id[:2] for binding in answer_roles(doses, questions)] == ids


def test_facts_are_asked_for_by_their_relation_with_a_limit(doses: SqliteStore) -> None:
    assert Catalogue(doses, None, dict, lambda: MappedSnapshot.empty(doses, 1)).relations() == {"dose": 3, "other": 4}
    assert [one.relation for one in answer_roles(doses, {}, relation="dose")] == ["dose"] * 3
    assert [one.hyperedge_id[:2] for one in answer_roles(doses, {}, relation="dose", limit=2)] == ["d1", "d2"]
    assert [one.hyperedge_id[:2] for one in answer_roles(doses, ["dose>=0"], relation="other")] == ["d4", "d5"]
    (fact,) = answer_roles(doses, ["drug=AB-"], ["dose"])
    assert (fact.roles, fact.arguments) == ({"dose": ("-250",)}, (Argument("dose", "-250", "number", "mg"),))


AMOUNTS = {
    "a": ("1000", "mg"),
    "b": ("1.5", "g"),
    "c": ("0.0005", "kg"),
    "d": ("999", "mg"),
    "e": ("5", "IU"),
    "f": ("1000000", ""),
    "g": ("2 kg", ""),
    "h": ("5", "mg/kg"),
    "i": ("1000000", "\u03bcg"),
    "j": ("1" + "0" * 40 + "1", "mg"),
    "k": ("-3", "g"),
}


@pytest.mark.parametrize(
    ("questions", "ids"),
    [
        (["dose>=1 g"], "abgij"),
        (["dose>1 g"], "bgj"),
        (["dose<1 g"], "cdk"),
        (["dose<=1000 mg"], "acdik"),
        (["dose=1 g"], "ai"),
        (["dose=1000000 \u00b5g"], "ai"),
        (["dose=500mg"], "c"),
        (["dose!=1 g"], "bcdefghjk"),
        (["dose>0.5 g", "dose<1500 mg"], "adi"),
        ([f"dose=1{'0' * 38}.001 g"], "j"),
        ([f"dose=1{'0' * 38}.0001 kg"], ""),
        ([f"dose=1{'0' * 38}.0001 g"], ""),
        ([f"dose=1{'0' * 37}.0001 kg"], ""),
        ([f"dose=1{'0' * 35}.000001 kg"], "j"),
        ([f"dose>1{'0' * 35} kg"], "j"),
        (["dose>=4 IU"], "e"),
        (["dose>=4 mIU"], "e"),
        (["dose>=1 mg/kg"], "h"),
        (["dose>=1 lb"], ""),
        (["dose>=1 grams"], ""),
        (["dose>=1 s"], ""),
        (["dose>=1000"], "afij"),
    ],
)
def test_numbers_are_compared_across_decimal_prefixes_and_across_nothing_else(
    tmp_path: Path, questions: list[str], ids: str
) -> None:
    store = SqliteStore.open(tmp_path / "amounts", Manifest("hashing:16", 16, "none"))
    documents = [
        Document(id, "", id, arguments=(Argument("dose", value, "number", unit),))
        for id, (value, unit) in AMOUNTS.items()
    ]
    Indexer(store, HashingEmbedder(16), SentenceSplitter(SplitSettings()), TupleBuilder()).index(documents, silent)
    assert "".join(binding.hyperedge_id[0] for binding in answer_roles(store, questions)) == ids
    assert count_units(store, "dose") == {"": 1, "IU": 1, "g": 2, "kg": 2, "mg": 3, "mg/kg": 1, "\u03bcg": 1}
    assert count_units(store, "nothing") == {}
    store.close()


@pytest.mark.parametrize("question", ["dose", "=5", "dose=", "dose>", "drug>Georgia"])
def test_a_condition_that_asks_nothing_is_an_error(doses: SqliteStore, question: str) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        answer_roles(doses, [question])
