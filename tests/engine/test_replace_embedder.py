"""Replacing the embedder of an index: the result is a fresh index, and an interruption loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyad import Document, Engine
from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import ConfigurationError, IndexMismatchError
from polyad.model import Evidence, FloatArray, IndexedDocument, Timings
from polyad.protocols.components import Embedder, TextKind
from polyad.protocols.store import ORIGINALS, PENDING_VECTORS, Store
from polyad.snapshot.provider import MIN_SAVED
from polyad.stores.memory import MemoryStore
from polyad.stores.sqlite import SqliteStore
from polyad.text.json_types import format_value

OLD, NEW = HashingEmbedder(32), HashingEmbedder(48)
DOCUMENTS = [
    Document(f"d{number}", f"Pump {number}", f"Ines Moreau repaired pump {number} in Tarn. Bo Ray built it in Aldby.")
    for number in range(120)
]
QUESTIONS = ("Who repaired pump 7?", "What was built in Aldby?")


class CountingEmbedder:
    """The new embedder; counts texts, and is interrupted after some calls."""

    name, dimension = NEW.name, NEW.dimension

    def __init__(self, calls: int = 1 << 30) -> None:
        self.calls = calls
        self.texts = 0

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        self.texts += len(texts)
        return NEW.encode(texts, kind)


def open_engine(place: str | Path, embedder: Embedder, store: Callable[..., Store] = SqliteStore.open) -> Engine:
    return Engine.open(place, store=store, embedder=embedder)


@pytest.fixture(params=["sqlite", "memory"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, Embedder], Engine]:
    openers: dict[str, Callable[..., Store]] = {"sqlite": SqliteStore.open, "memory": MemoryStore.open}
    open_store = openers[request.param]
    return lambda name, embedder: open_engine(tmp_path / name, embedder, open_store)


def read(engine: Engine) -> dict[str, Any]:
    with engine._store.read_transaction() as transaction:
        documents = {
            id: format_value(replace(item, recorded="")) for id, item in transaction.get(IndexedDocument).items()
        }
    return {"documents": documents, "originals": engine._store.get_values(ORIGINALS)}


def search(engine: Engine) -> list[Evidence]:
    return [
        replace(engine.search(question, retriever=name), timings=Timings())
        for question in QUESTIONS
        for name in ("default", "dense", "hypersu", "hypergraphrag")
    ]


def correct(engine: Engine) -> None:
    engine.corrections.retract(entity="Bo Ray", reason="privacy")
    engine.corrections.disable("d3")


def test_the_index_equals_a_fresh_one_with_the_new_embedder(opener: Callable[[str, Embedder], Engine]) -> None:
    with opener("old", OLD) as engine, opener("new", NEW) as fresh:
        for one in (engine, fresh):
            one.index_documents(DOCUMENTS)
            correct(one)
        search(engine)
        report = engine.replace_embedder(CountingEmbedder())
        assert report.vectors == 2 * len(DOCUMENTS)
        with opener("old", NEW) as again:
            assert read(again)["documents"] == read(fresh)["documents"]
            assert search(again) == search(fresh)
            assert again.index_documents(DOCUMENTS).counts.unchanged == len(DOCUMENTS)
            for one in (again, fresh):
                one.corrections.restore(entity="Bo Ray")
                one.corrections.enable("d3")
            assert read(again)["documents"] == read(fresh)["documents"]
            assert search(again) == search(fresh)


def test_an_interrupted_run_leaves_the_index_as_it_was_and_continues(opener: Callable[[str, Embedder], Engine]) -> None:
    with opener("old", OLD) as engine:
        engine.index_documents(DOCUMENTS)
        before = read(engine), search(engine)
        with pytest.raises(KeyboardInterrupt):
            engine.replace_embedder(CountingEmbedder(calls=2))
        assert (read(engine), search(engine)) == before
        engine.index_documents([Document("later", "Later", "Ada Lee came later.")])
        counting = CountingEmbedder()
        report = engine.replace_embedder(counting)
        assert counting.texts == report.embedded_texts
    with opener("old", NEW) as again:
        assert again.catalogue.statistics().settings["embedder"] == NEW.name
        assert again._store.get_values(PENDING_VECTORS) == {}


def test_documents_that_are_added_meanwhile_get_new_vectors_too(tmp_path: Path) -> None:
    other = open_engine(tmp_path, OLD)
    with open_engine(tmp_path, OLD) as engine:
        engine.index_documents(DOCUMENTS)

        def add(done: int, total: int | None, message: str) -> None:
            if done == total:
                other.index_documents([Document("later", "Later", "Ada Lee came later.")])

        engine.replace_embedder(NEW, add)
    with open_engine(tmp_path, NEW) as again:
        assert again.search("Who came later?", retriever="dense").passages[0].passage.document_id == "later"
    with pytest.raises(IndexMismatchError):
        other.search("Who came later?")
    with pytest.raises(IndexMismatchError):
        other.index_documents([Document("lost", "Lost", "This must not be written.")])
    other.close()


def test_a_saved_snapshot_of_the_old_vectors_is_not_used(tmp_path: Path) -> None:
    rows = [Document(f"r{number}", "", f"Person {number} lives in Aldby {number}.") for number in range(MIN_SAVED + 10)]
    with open_engine(tmp_path, OLD) as engine:
        engine.index_documents(rows)
        engine.replace_embedder(NEW)
    with open_engine(tmp_path, NEW) as again, open_engine("memory://fresh-rows", NEW, MemoryStore.open) as fresh:
        fresh.index_documents(rows)
        question = "Where does person 77 live?"
        ours, expected = (one.search(question, retriever="dense").passages for one in (again, fresh))
        assert [hit.passage.id for hit in ours] == [hit.passage.id for hit in expected]


def test_the_command_reports_what_it_replaced(tmp_path: Path) -> None:
    with open_engine(tmp_path / "kb", OLD) as engine:
        engine.index_documents(DOCUMENTS)
        with pytest.raises(ConfigurationError):
            engine.replace_embedder("hashing:32")
    result = CliRunner().invoke(app, ["embed", "--embedder", "hashing:48", "--store", str(tmp_path / "kb"), "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["embedder"], report["documents"]) == (NEW.name, len(DOCUMENTS))
