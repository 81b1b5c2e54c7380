"""To index one file, the rest of the index is not gone over."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Argument, Document, HyperedgeKind
from polyad.protocols.lookups import get_document_kinds, get_kinds, get_sources
from polyad.protocols.store import StoredDocument
from polyad.stores.relational.read_transaction import RelationalReadTransaction
from polyad.stores.sqlite import SqliteStore
from polyad.stores.sqlite.store import SqliteReadTransaction

EMBEDDER = HashingEmbedder(8)


def index_of(directory: Path, documents: int) -> Path:
    with Engine.open(directory, embedder=EMBEDDER) as engine:
        engine.index_documents(
            Document(f"shelf/{number}.txt", "", f"Item {number} lies on a shelf in Tarn.", f"shelf/{number}.txt")
            for number in range(documents)
        )
    return directory


def steps(directory: Path) -> int:
    """Of SQLite's machine, to learn what there is and what came from one file."""
    selection = [0]
    with closing(SqliteStore.open(directory)) as store, store._database.reading() as connection:
        connection.set_progress_handler(lambda: selection.__setitem__(0, selection[0] + 1), 1)
        assert get_kinds(store) == {HyperedgeKind.SEMANTIC_UNIT}
        assert list(get_sources(store, ["shelf/3.txt"])) == ["shelf/3.txt"]
        assert get_document_kinds(store, [HyperedgeKind.FACT]) == {}
        connection.set_progress_handler(None, 1)
    return selection[0]


def test_queries_around_indexing_do_not_grow_with_the_index(tmp_path: Path) -> None:
    few, many = (steps(index_of(tmp_path / str(documents), documents)) for documents in (10, 200))
    assert 0 < many < 1.5 * few


def test_nothing_is_counted_and_no_source_of_another_place_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, get = index_of(tmp_path / "kb", 5), SqliteReadTransaction.get
    read: list[str] = []

    def noted(
        transaction: SqliteReadTransaction, record_type: type[StoredDocument], ids: list[str] | None = None
    ) -> dict[str, StoredDocument]:
        results = get(transaction, record_type, ids) if ids is not None else get(transaction, record_type)
        if record_type is StoredDocument:
            read.extend(results)
        return results

    monkeypatch.setattr(SqliteReadTransaction, "get", noted)
    monkeypatch.delattr(RelationalReadTransaction, "count")
    monkeypatch.chdir(tmp_path)
    Path("note.txt").write_text("The ferry to Tarn leaves at noon.", encoding="utf-8")
    with Engine.open(directory, embedder=EMBEDDER, create=False) as engine:
        assert engine.index(["note.txt"]).documents == 1
    assert read == ["note.txt"]


def test_sources_are_those_of_files_of_their_records_and_of_folders_alone(tmp_path: Path) -> None:
    named = ["a.jsonl:1", "a.jsonl:12", "a.jsonl.txt", "a/b.txt", "a/c/d.txt", "a0.txt", "a-b/e.txt", ""]
    with Engine.open(tmp_path, embedder=EMBEDDER) as engine:
        engine.index_documents(Document(f"id {source}", "", "It lies in Tarn.", source) for source in named)
    with closing(SqliteStore.open(tmp_path)) as store:
        assert sorted(get_sources(store, ["a.jsonl"]).values()) == ["a.jsonl:1", "a.jsonl:12"]
        assert sorted(get_sources(store, ["a", "a/c"]).values()) == ["a/b.txt", "a/c/d.txt"]
        assert sorted(get_sources(store, ["a0.txt", "b"]).values()) == ["a0.txt"]
        assert sorted(get_sources(store).values()) == sorted(named)


def test_the_documents_of_other_kinds_are_known_among_many(tmp_path: Path) -> None:
    document = Document(
        "fact", "", "", arguments=(Argument("lender", "Ann"), Argument("item", "Boat")), relation="loan"
    )
    with Engine.open(index_of(tmp_path, 5), embedder=EMBEDDER) as engine:
        engine.index_documents([document])
    with closing(SqliteStore.open(tmp_path)) as store:
        assert get_kinds(store) == {HyperedgeKind.SEMANTIC_UNIT, HyperedgeKind.TUPLE}
        assert get_document_kinds(store, [HyperedgeKind.TUPLE]) == {"fact": HyperedgeKind.TUPLE}
