"""The search for facts given as data, by indexes that round, finds what comparing each of them finds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.errors import StoreError
from polyad.model import (
    Argument,
    Condition,
    Document,
    Hyperedge,
    HyperedgeKind,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Passage,
)
from polyad.protocols.lookups import get_all, get_document_passages
from polyad.protocols.store import Manifest
from polyad.stores.sqlite import FILE_NAME, SqliteStore
from polyad.stores.sqlite.database import SqliteDatabase
from polyad.text.literals import is_match
from tests.examples import count_examples

MANIFEST = Manifest("test", 4, "rules")

NUMBERS = [
    "0",
    "-0.0",
    "-250",
    "250",
    "250.000",
    "2.5e2",
    "1,200",
    "0.1",
    "1e-400",
    "9007199254740993",
    "9007199254740992",
]
NUMBERS += ["1e400", "2e400", "-1e400", "5 mg", "5 g", "5mg", "\u22125", "1990", "1991", "1989"]
DATES = ["1990", "1990-12", "1990-12-31", "1991-01-01", "1990-12-31T23:59", "1990-12-31T23:59:59Z", "9999-12-31"]
DATES += ["1990-12-31T23:59:59.999999", "1991-01-01T01:00+02:00", "0001", "2024-02-30", "soon"]
OTHERS = [
    "AB",
    "AB-",
    "true",
    "Yes",
    "no",
    "e\u0301",
    "\u00e9",
    " two\n words ",
    "two words",
    "",
    "%",
    "_",
    "null",
    '"',
]

VALUES = st.sampled_from([*NUMBERS, *DATES, *OTHERS])
NAMES = st.lists(st.sampled_from(["Ada", 'Ada "A"', "A%", "AB"]), max_size=2).map(tuple)
ARGUMENTS = st.one_of(
    st.builds(
        Argument, st.sampled_from("ab"), st.sampled_from(NUMBERS), st.just("number"), st.sampled_from(["", "mg"])
    ),
    st.builds(Argument, st.sampled_from("ab"), st.sampled_from(DATES), st.just("date")),
    st.builds(Argument, st.sampled_from("ab"), VALUES, st.sampled_from(["entity", "boolean", "string", "null"])),
    st.builds(Argument, st.sampled_from("ab"), VALUES, st.just("entity"), st.just(""), NAMES),
)
FACTS = st.lists(st.tuples(st.sampled_from(["", "r", "s"]), st.lists(ARGUMENTS, max_size=3)), max_size=6)
CONDITION = st.builds(
    Condition,
    st.sampled_from("ab"),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.sampled_from([*NUMBERS, *DATES, *OTHERS, "Ada", 'Ada "A"', "A%"]),
)


def fact(id: str, relation: str, arguments: Sequence[Argument]) -> IndexedDocument:
    """A document of one fact, with vectors that say nothing."""
    text, vector = f"fact {id}", np.full(4, 0.5, dtype=np.float32)
    edge = Hyperedge(
        f"{id}#0/0", HyperedgeKind.TUPLE, text, f"{id}#0", 0, len(text), relation=relation, arguments=tuple(arguments)
    )
    passage = IndexedPassage(
        Passage(f"{id}#0", id, "", text, 0, len(text)), f"digest {id}", vector, (IndexedHyperedge(edge, (), vector),)
    )
    return IndexedDocument(Document(id, "", text), f"digest {id}", 1, (passage,))


@settings(max_examples=count_examples(60), deadline=None)
@given(facts=FACTS, conditions=st.lists(CONDITION, min_size=1, max_size=3), relation=st.sampled_from(["", "r"]))
def test_find_tuples_returns_the_facts_that_satisfy_the_conditions(
    facts: list[tuple[str, list[Argument]]], conditions: list[Condition], relation: str
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore.open(folder, MANIFEST)) as store,
    ):
        for place, (name, arguments) in enumerate(facts):
            store.put(fact(f"f{place}", name, arguments))
        expected = [
            f"f{place}#0/0"
            for place, (name, arguments) in enumerate(facts)
            if (not relation or name == relation) and is_match(conditions, arguments)
        ]
        with store.read_transaction() as transaction:
            assert transaction.find_tuples(relation, conditions) == expected


@settings(max_examples=count_examples(30), deadline=None)
@given(facts=FACTS)
def test_arguments_are_read_as_they_were_written(facts: list[tuple[str, list[Argument]]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore.open(folder, MANIFEST)) as store,
    ):
        documents = [fact(f"f{place}", *one) for place, one in enumerate(facts)]
        for document in documents:
            store.put(document)
        remaining = get_document_passages(store, [document.document.id for document in documents])
        for passage, document in zip(remaining, documents, strict=True):
            assert passage.hyperedges[0].hyperedge == document.passages[0].hyperedges[0].hyperedge
        assert store.verify() == []
        store.remove([document.document.id for document in documents])
        with store.read_transaction() as transaction:
            assert transaction.count("relation") == {}


@pytest.mark.parametrize(
    ("damage", "table"),
    [
        ("DELETE FROM argument WHERE place = 1", "tuple"),
        ("UPDATE argument SET value = 'Zed' WHERE place = 1", "argument"),
        ("UPDATE tuple SET relation = 'take'", "tuple"),
        ("DELETE FROM tuple", "hyperedge"),
    ],
)
def test_changed_or_missing_arguments_are_damage(tmp_path: Path, damage: str, table: str) -> None:
    with closing(SqliteStore.open(tmp_path, MANIFEST)) as store:
        store.put(fact("f", "give", [Argument("giver", "Ada"), Argument("gift", "Pen")]))
    with closing(SqliteDatabase(tmp_path / FILE_NAME)) as database, database.writing() as connection:
        connection.execute(damage)
    with closing(SqliteStore.open(tmp_path)) as store:
        assert {one.table for one in store.verify()} == {table}
        with pytest.raises(StoreError):
            get_all(store, Hyperedge, ["f#0/0"])
