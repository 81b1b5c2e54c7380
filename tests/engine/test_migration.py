"""Migrations between stores: everything is copied, in both directions, and an interrupted one is continued."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from polyad import Document, Engine
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine.migration import migrate_index
from polyad.errors import ConfigurationError, StoreNotFoundError
from polyad.model import Evidence, IndexedDocument, Timings, Usage
from polyad.protocols.store import REPLIES
from polyad.text.json_types import format_value
from tests.conftest import SIX_DOCUMENTS
from tests.postgres_server import get_url

EMBEDDER = HashingEmbedder(32)
QUESTIONS = ("Who cast the Bell of Tarn?", "Where do otters live?", "Who was born in Aldby?")


def open_engine(place: str | Path) -> Engine:
    return Engine.open(place, embedder=EMBEDDER)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with an index of documents, one without passages, and what users stated."""
    place = tmp_path / "kb"
    with open_engine(place) as engine:
        engine.index_documents(SIX_DOCUMENTS)
        engine._store.put(IndexedDocument(Document("empty", "Empty", ""), "digest", 0, ()))
        engine.corrections.retract(entity="Ines Moreau", reason="privacy")
        engine.corrections.add_aliases([("river Isk", "Isk")])
        engine.corrections.disable("otter")
        engine.search(QUESTIONS[0], min_relevance="auto")
        engine.values.put_values(REPLIES, {"prompt": b"reply"})
        engine._store.charge(Usage(calls=2, prompt_tokens=30))
    return place


def read_evidence(place: str | Path) -> list[Evidence]:
    with open_engine(place) as engine:
        return [
            replace(engine.search(question, retriever=retriever), timings=Timings())
            for question in QUESTIONS
            for retriever in ("default", "dense", "bm25", "hypersu", "hypergraphrag")
        ]


def read_contents(place: str | Path) -> dict[str, object]:
    with open_engine(place) as engine:
        store = engine._store
        with store.read_transaction() as transaction:
            documents = transaction.get(IndexedDocument)
        names = set(store.list_namespaces()) - {"entity-vectors"}  # computed by searches
        return {
            "documents": {id: format_value(item) for id, item in documents.items()},
            "values": {name: store.get_values(name) for name in names},
            "usage": store.charge(Usage()),
        }


def test_an_index_is_equal_in_postgresql_and_back_in_a_folder(source: Path, tmp_path: Path) -> None:
    address = get_url(tmp_path)
    report = migrate_index(source, address)
    assert (report.documents, report.copied) == (7, 7)
    assert read_contents(address) == read_contents(source)
    evidence = read_evidence(source)
    assert read_evidence(address) == evidence
    migrate_index(address, tmp_path / "back")
    assert read_contents(tmp_path / "back") == read_contents(source)
    assert read_evidence(tmp_path / "back") == evidence


def test_an_interrupted_migration_is_continued(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.engine.migration._BATCH", 2)
    address = get_url(tmp_path)

    def interrupt(done: int, total: int | None, message: str) -> None:
        if done > 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate_index(source, address, interrupt)
    with open_engine(source) as engine:
        engine.corrections.restore(entity="Ines Moreau")  # changes a document that was copied, not its digest
    report = migrate_index(source, address)
    assert 0 < report.copied < report.documents == 7
    assert migrate_index(source, address).copied == 0
    assert read_contents(address) == read_contents(source)


def test_an_index_with_other_documents_is_not_overwritten(source: Path, tmp_path: Path) -> None:
    with open_engine(tmp_path / "other") as engine:
        engine.index_documents([Document("mine", "Mine", "A text of its own.")])
    with pytest.raises(ConfigurationError, match="'mine'"):
        migrate_index(source, tmp_path / "other")
    with pytest.raises(StoreNotFoundError):
        migrate_index(tmp_path / "missing", tmp_path / "new")
    assert not (tmp_path / "new").exists()
