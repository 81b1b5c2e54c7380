"""What is SQLite's own; what every store promises is in ``tests/conformance``."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyad.engine import Engine
from polyad.errors import IndexMismatchError, StoreError, StoreNotFoundError
from polyad.model import (
    Document,
    Entity,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Origin,
    Passage,
    Usage,
)
from polyad.protocols.lookups import (
    check_manifest,
    get_all,
    get_digests,
    get_document_passages,
    get_incidences,
    get_kinds,
    get_statistics,
    get_version,
)
from polyad.protocols.store import ENTITY_VECTORS, Changes, Manifest, StoredRows
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.relational import read_transaction, writing
from polyad.stores.sqlite import FILE_NAME, SqliteStore
from polyad.stores.sqlite.connection import SqliteConnection


def create(directory: Path) -> SqliteStore:
    return SqliteStore.open(directory, Manifest("e", 4, "rules"))


def document(id: str) -> IndexedDocument:
    return IndexedDocument(Document(id, "", "text"), "digest", 1, ())


def with_hyperedge(id: str) -> IndexedDocument:
    vector = np.zeros(4, dtype=np.float32)
    edge = Hyperedge(f"{id}#0/0", HyperedgeKind.FACT, "text", f"{id}#0", 0, 4)
    item = IndexedHyperedge(edge, (Incidence(id, edge.id, id),), vector)
    passage = IndexedPassage(Passage(f"{id}#0", id, "", "text", 0, 4), "digest", vector, (item,))
    return IndexedDocument(Document(id, "", "text"), "digest", 1, (passage,))


def stored_rows(store: SqliteStore) -> list[StoredRows]:
    """The rows of all documents."""
    with store.read_transaction() as transaction:
        return list(transaction.rows(transaction.changes().documents))


def changes_of(store: SqliteStore, since: int) -> Changes:
    with store.read_transaction() as transaction:
        return transaction.changes(since)


def snapshot_of(store: SqliteStore) -> MappedSnapshot:
    return SnapshotProvider(store, store.manifest.dimension).get_current()


def execute(directory: Path, *statements: str) -> None:
    with closing(sqlite3.connect(directory / FILE_NAME, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_opening_where_there_is_no_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="polyad index"):
        SqliteStore.open(tmp_path)
    assert not Engine.exists(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_each_commit_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = []

    def execute(connection: SqliteConnection, statement: str, *parameters: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            settings.append(sqlite3.Connection.execute(connection, "PRAGMA synchronous").fetchone())
        return sqlite3.Connection.execute(connection, statement, *parameters)

    monkeypatch.setattr(SqliteConnection, "execute", execute, raising=False)
    with closing(create(tmp_path)) as store:
        store.put(document("a"))
    assert settings, "something was committed"
    assert set(settings) == {(2,)}, "2 is FULL: the log is synced at each commit"


def test_an_index_is_opened_again_with_what_it_was_built_with(tmp_path: Path) -> None:
    create(tmp_path / "new" / "folder").close()
    store = SqliteStore.open(tmp_path / "new" / "folder")
    assert (store.manifest.embedder, store.manifest.dimension, store.manifest.mentions) == ("e", 4, "rules")
    check_manifest(store.manifest, embedder="e", mentions="rules")
    check_manifest(store.manifest)


@pytest.mark.parametrize(
    ("embedder", "mentions", "named"),
    [("other", "rules", "embedder 'e', not 'other'"), ("e", "llm", "'rules', not 'llm'")],
)
def test_another_embedder_or_extractor_is_a_mismatch(tmp_path: Path, embedder: str, mentions: str, named: str) -> None:
    create(tmp_path).put(document("a"))
    with pytest.raises(IndexMismatchError, match=named):
        SqliteStore.open(tmp_path, Manifest(embedder, 4, mentions))
    assert list(get_digests(create(tmp_path))) == ["a"]


@pytest.mark.parametrize(
    ("format_version", "remedy"), [(5, r"polyad export --out FILE \(retractions, aliases"), (999, "upgrade polyad$")]
)
def test_an_index_of_another_format_names_the_remedy(tmp_path: Path, format_version: int, remedy: str) -> None:
    create(tmp_path).close()
    execute(tmp_path, f"UPDATE manifest SET value = '{format_version}' WHERE key = 'format_version'")
    with pytest.raises(IndexMismatchError, match=rf"format {format_version}, .*{remedy}"):
        SqliteStore.open(tmp_path)
    assert Engine.exists(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", [FILE_NAME, f"{FILE_NAME}-journal", f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"])
def test_a_pipe_in_place_of_a_file_is_an_error(tmp_path: Path, name: str) -> None:
    create(tmp_path).close()
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(StoreError, match=f"{name}' is a pipe or a device"):
        SqliteStore.open(tmp_path)


@pytest.mark.parametrize("contents", [b"This is no database at all. " * 400, b"SQLite format 3\x00" + b"\xff" * 4080])
def test_a_damaged_file_is_an_error_and_left_as_it_is(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(contents)
    assert Engine.exists(tmp_path)
    with pytest.raises(StoreError):
        SqliteStore.open(tmp_path)
    with pytest.raises(StoreError):
        create(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == contents


def test_a_file_damaged_in_the_middle_is_an_error_when_it_is_read(tmp_path: Path) -> None:
    store = create(tmp_path)
    for number in range(300):
        store.put(document(f"document {number}"))
    store.close()
    path = tmp_path / FILE_NAME
    contents = path.read_bytes()
    path.write_bytes(contents[: len(contents) // 2] + b"\xa5" * (len(contents) - len(contents) // 2))
    with pytest.raises(StoreError):
        get_all(SqliteStore.open(tmp_path), Document, [f"document {number}" for number in range(300)])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE document SET title = CAST(x'ff' AS TEXT)",
        "UPDATE document SET title = x'00'",
        "UPDATE document SET metadata = '{'",
        "UPDATE document SET metadata = '1'",
        "UPDATE document SET places = '[1]'",
        "UPDATE passage SET text = x'07'",
        "UPDATE passage SET page = 'first'",
        "UPDATE passage SET vector = x'0000'",
        "UPDATE passage SET vector = 'text'",
        "UPDATE passage SET vector = x'0000c07f0000c07f0000c07f0000c07f'",
        "UPDATE hyperedge SET kind = 'other'",
        "UPDATE hyperedge SET score = 1e300",
        "UPDATE hyperedge SET passage = 99",
        "UPDATE hyperedge SET passage = -1",
        "UPDATE incidence SET entity = 99",
        "UPDATE incidence SET entity = -1",
        "UPDATE entity SET number = 9000000000000000",
        "UPDATE value SET value = x'00'",
        "UPDATE value SET value = 'text'",
        "UPDATE manifest SET value = 'four' WHERE key = 'dimension'",
        "UPDATE manifest SET value = '0' WHERE key = 'dimension'",
        "UPDATE manifest SET value = x'00' WHERE key = 'embedder'",
    ],
)
def test_rows_that_are_not_as_they_were_written_say_that_the_file_is_damaged(tmp_path: Path, statement: str) -> None:
    with closing(create(tmp_path)) as store:
        store.put(with_hyperedge("a"))
        store.put_values(ENTITY_VECTORS, {"a": b"vector"}, is_optional=True)
    execute(tmp_path, "PRAGMA foreign_keys = OFF", statement)

    def read_everything() -> None:
        with closing(SqliteStore.open(tmp_path)) as store:
            for record_type in (Document, Origin):
                get_all(store, record_type, ["a"])
            get_document_passages(store, ["a"])
            get_all(store, Passage, ["a#0"])
            snapshot_of(store)
            get_all(store, Hyperedge, ["a#0/0"])
            store.get_values(ENTITY_VECTORS, ["a"])

    with pytest.raises(StoreError, match=r"damaged or not an index .*; restore it from a copy, or index again"):
        read_everything()


def read_for_an_answer(store: SqliteStore) -> None:
    get_all(store, Document, ["a"])
    get_all(store, Passage, ["a#0"])
    get_all(store, Hyperedge, ["a#0/0"])
    get_incidences(store, ["a#0/0"])
    get_all(store, Entity, ["a"])
    store.get_values(ENTITY_VECTORS, ["a"])


@pytest.mark.parametrize(
    ("statement", "table", "id"),
    [
        ("UPDATE document SET text = 'other'", "document", "a"),
        ("UPDATE document SET metadata = '{\"year\": 1}'", "document", "a"),
        ("UPDATE passage SET text = 'taxt'", "passage", "a#0"),
        ("UPDATE passage SET title = 'other'", "passage", "a#0"),
        ("UPDATE passage SET vector = x'0000803f000000000000000000000000'", "passage", "a#0"),
        ('UPDATE hyperedge SET "end" = 3', "hyperedge", "a#0/0"),
        ("UPDATE hyperedge SET vector = x'0000803f000000000000000000000000'", "hyperedge", "a#0/0"),
        ("UPDATE hyperedge SET score = 9.5", "hyperedge", "a#0/0"),
        ("UPDATE incidence SET name = 'b'", "incidence", "1/1/"),
        ("UPDATE entity SET key = 'b'", "entity", "b"),
        ("UPDATE value SET value = x'00'", "entity-vectors", "a"),
        ("UPDATE passage SET checksum = checksum + 1", "passage", "a#0"),
    ],
)
def test_a_row_that_is_another_than_was_written_is_no_answer(
    tmp_path: Path, statement: str, table: str, id: str
) -> None:
    with closing(create(tmp_path)) as store:
        store.put(with_hyperedge("a"))
        store.put_values(ENTITY_VECTORS, {"a": b"vector"}, is_optional=True)
        read_for_an_answer(store)
        assert store.verify() == []
    execute(tmp_path, statement)
    with closing(SqliteStore.open(tmp_path)) as store:
        message = r"index\.sqlite' is damaged .*changed since it was written\); restore it from a copy, or index again"
        with pytest.raises(StoreError, match=message):
            read_for_an_answer(store)
        if table != ENTITY_VECTORS and "document SET text" not in statement:  # snapshots show passages
            with pytest.raises(StoreError, match=message):
                snapshot_of(store)
        assert {(one.table, one.id) for one in store.verify() if one.invariant != "spans"} == {(table, id)}


@pytest.mark.parametrize(
    ("statement", "table", "id"),
    [
        ("DELETE FROM passage WHERE id = 'a#0'", "document", "a"),
        ("DELETE FROM hyperedge WHERE id = 'a#0/0'", "passage", "a#0"),
        ("DELETE FROM incidence WHERE hyperedge = 1", "hyperedge", "a#0/0"),
    ],
)
def test_rows_that_got_lost_are_missed(tmp_path: Path, statement: str, table: str, id: str) -> None:
    with closing(create(tmp_path)) as store:
        store.put(with_hyperedge("a"))
        store.put(with_hyperedge("b"))
    execute(tmp_path, statement)
    with closing(SqliteStore.open(tmp_path)) as store:
        with pytest.raises(StoreError, match=r"is damaged .* where \d were written"):
            snapshot_of(store)
        assert (table, id) in {(one.table, one.id) for one in store.verify()}


def test_a_file_whose_message_of_damage_is_no_unicode_is_an_error(tmp_path: Path) -> None:
    create(tmp_path).close()
    execute(tmp_path, "PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = CAST(x'c3ff' AS TEXT)")
    assert Engine.exists(tmp_path)
    with pytest.raises(StoreError):
        SqliteStore.open(tmp_path)


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE theirs (x)"],
        ["CREATE TABLE manifest (file, size)", "INSERT INTO manifest VALUES ('a', 1)"],
        ["CREATE TABLE manifest (key, value)", "INSERT INTO manifest VALUES ('a', 1)"],
    ],
)
def test_the_file_of_another_program_is_an_error_and_left_as_it_is(tmp_path: Path, statements: list[str]) -> None:
    execute(tmp_path, *statements)
    for opening in (create, SqliteStore.open):
        with pytest.raises(StoreError):
            opening(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        assert len(connection.execute("SELECT * FROM sqlite_master").fetchall()) == 1


def test_the_empty_file_of_a_run_killed_at_once_is_no_index_and_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).touch()
    assert not Engine.exists(tmp_path)
    with pytest.raises(StoreNotFoundError):
        SqliteStore.open(tmp_path)
    execute(tmp_path, "PRAGMA journal_mode = WAL")
    assert not Engine.exists(tmp_path)
    create(tmp_path).close()
    assert Engine.exists(tmp_path)


def test_a_path_that_cannot_be_a_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        create(tmp_path / "file" / "index")


def test_a_path_that_is_too_long_is_an_error_before_directories_are_made(tmp_path: Path) -> None:
    room = 504 - len(os.fsencode(tmp_path)) - len(f"/{FILE_NAME}")
    deep = tmp_path.joinpath("x" * 150, "x" * 100, "x" * (room - 253))
    with pytest.raises(StoreError, match=r"has 505 bytes; SQLite opens paths of at most 504; choose a shorter one"):
        create(deep.with_name(deep.name + "x"))
    assert list(tmp_path.iterdir()) == []
    create(deep).close()
    assert Engine.exists(deep)


CREATE_WITHOUT_RIGHTS = """
import os, sys
from pathlib import Path
from polyad.protocols.store import Manifest
from polyad.stores.relational import read_transaction, writing
from polyad.stores.sqlite import SqliteStore
from polyad.errors import StoreError
if os.geteuid() == 0:
    os.setuid(65534)  # a superuser may write anywhere
try:
    SqliteStore.open(Path(sys.argv[1]), Manifest("e", 4, "rules"))
except StoreError as error:
    print("refused:", error)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs the rights of POSIX")
def test_a_directory_that_may_not_be_written_is_an_error() -> None:
    with tempfile.TemporaryDirectory() as target:
        Path(target).chmod(0o555)
        command = [sys.executable, "-c", CREATE_WITHOUT_RIGHTS, target]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.startswith("refused: cannot use")
        assert "unable to open database file" in done.stdout
        assert list(Path(target).iterdir()) == []


COUNT_WORDS = """
import sys
from pathlib import Path
from polyad.protocols.store import Manifest
from polyad.stores.relational import read_transaction, writing
from polyad.stores.sqlite import SqliteStore
from polyad.model import Document, IndexedDocument
store = SqliteStore.open(Path(sys.argv[1]), Manifest("e", 4, "rules"))
for number in range(40):
    store.put(IndexedDocument(Document(f"{sys.argv[2]} {number}", "", "text"), "digest", 1, ()))
"""


def test_an_index_that_may_not_be_written_can_be_read_and_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(create(tmp_path)) as store:
        store.put(with_hyperedge("a"))
    monkeypatch.setattr("polyad.stores.sqlite.database.os.access", lambda path, mode: False)
    with closing(SqliteStore.open(tmp_path)) as store:
        assert list(get_digests(store)) == ["a"]
        assert snapshot_of(store).find_rows("entity", ["a", "b"]) == {"a": 0}
        store.charge(Usage(1, 10, 10, 0.5))
        store.put_values(ENTITY_VECTORS, {"a": b"vector"}, is_optional=True)
        assert (get_statistics(store).cost, store.get_values(ENTITY_VECTORS, ["a"])) == (0, {})
        with pytest.raises(StoreError):
            store.remove(["a"])


def test_an_index_that_may_not_be_written_shows_what_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(create(tmp_path)) as writer:
        writer.put(with_hyperedge("a"))
    with monkeypatch.context() as of_reader:
        of_reader.setattr("polyad.stores.sqlite.database.os.access", lambda path, mode: False)
        reader = SqliteStore.open(tmp_path)
    seen = [list(get_digests(reader))]
    with closing(create(tmp_path)) as writer:
        for id in "bc":
            writer.put(with_hyperedge(id))
            seen.append(list(get_digests(reader)))
    seen.append(list(get_digests(reader)))
    with closing(create(tmp_path)) as writer:
        writer.remove(["a", "b"])
        seen.append(list(get_digests(reader)))
    seen.append(list(get_digests(reader)))
    reader.close()
    assert seen == [["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c"], ["c"], ["c"]]


def test_an_index_that_may_not_be_written_and_changes_between_readings_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tmp_path).close()
    with monkeypatch.context() as of_reader:
        of_reader.setattr("polyad.stores.sqlite.database.os.access", lambda path, mode: False)
        reader = SqliteStore.open(tmp_path)
    for id in ("a", "b", "c"):
        with closing(create(tmp_path)) as writer:  # closed before the next reading: there is no log to see
            writer.put(with_hyperedge(id))
        assert list(get_digests(reader))[-1] == id
        assert get_version(reader) == len(get_digests(reader))
    reader.close()


def test_a_read_that_spans_two_versions_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(create(tmp_path)) as writer:
        writer.put(with_hyperedge("early"))
    monkeypatch.setattr("polyad.stores.sqlite.database.os.access", lambda path, mode: False)

    class Interrupted(SqliteConnection):
        """Has another write the file between the statements of a reader."""

        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if "hyperedge.vector" in sql:
                execute(tmp_path, "UPDATE document SET title = 'changed'")
            return super().execute(sql, *parameters)

    with monkeypatch.context() as of_reader:
        of_reader.setattr("polyad.stores.sqlite.database.SqliteConnection", Interrupted)
        store = SqliteStore.open(tmp_path)
    with pytest.raises(StoreError, match="was changed by another process while it was read; try again"):
        stored_rows(store)
    assert get_digests(store) == {"early": "digest"}
    store.close()


def test_keeping_vectors_does_not_wait_for_another_process_that_writes(tmp_path: Path) -> None:
    with closing(create(tmp_path)) as store, closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        store.put(with_hyperedge("a"))
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        store.put_values(ENTITY_VECTORS, {"a": b"vector"}, is_optional=True)
        assert time.monotonic() - started < 10, "writers wait for a minute"
        other.execute("ROLLBACK")
        assert store.get_values(ENTITY_VECTORS, ["a"]) == {}
        store.put_values(ENTITY_VECTORS, {"a": b"vector"}, is_optional=True)
        assert list(store.get_values(ENTITY_VECTORS, ["a"])) == ["a"]


def test_the_parts_of_a_code_count_together(tmp_path: Path) -> None:
    def passage(id: str, text: str) -> IndexedDocument:
        vector = np.zeros(4, dtype=np.float32)
        one = IndexedPassage(Passage(f"{id}#0", id, "", text, 0, len(text)), id, vector, ())
        return IndexedDocument(Document(id, "", text), id, 1, (one,))

    with closing(create(tmp_path)) as store:
        store.put(passage("a", "Line 17 ends at gate P of hall 17, gate P."))
        store.put(passage("b", "Gate and hall of pump P-17."))
        store.put(passage("c", "An otter."))
        snapshot = snapshot_of(store)
        assert snapshot.ids("passage", snapshot.search_terms("Who saw P-17?", 2)[0]) == ["b#0", "a#0"]
        assert snapshot.ids("passage", snapshot.search_terms("Who saw P and 17?", 2)[0]) == ["a#0", "b#0"]


def test_two_processes_may_make_and_fill_one_index_at_the_same_time(tmp_path: Path) -> None:
    target = tmp_path / "index"
    writers = [subprocess.Popen([sys.executable, "-c", COUNT_WORDS, str(target), name]) for name in "ab"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    store = SqliteStore.open(target)
    assert len(get_digests(store)) == 80
    assert get_version(store) == 80


def test_an_index_that_many_make_in_the_same_moment_is_one_index_for_all(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def make(directory: Path) -> str:
        together.wait(timeout=60)
        with closing(create(directory)) as store:
            return store.manifest.embedder

    with ThreadPoolExecutor(together.parties) as pool:
        for attempt in range(100):  # SQLite refuses one of them in some twenty attempts
            directory = tmp_path / str(attempt)
            assert list(pool.map(make, [directory] * together.parties)) == ["e"] * together.parties


def test_a_snapshot_has_one_version_although_others_write_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = create(tmp_path)
    interrupted: list[str] = []

    class Interrupted(SqliteConnection):
        """Has a document put by the other between the statements of a reader."""

        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if "hyperedge.vector" in sql or "FROM entity" in sql:
                interrupted.append(sql)
                writer.put(with_hyperedge(f"late {len(interrupted)}"))
            return super().execute(sql, *parameters)

    writer.put(with_hyperedge("early"))
    monkeypatch.setattr("polyad.stores.sqlite.database.SqliteConnection", Interrupted)
    snapshot = snapshot_of(SqliteStore.open(tmp_path))
    assert len(interrupted) == 2
    assert (snapshot.document_ids(range(snapshot.row_count("passage"))), snapshot.row_count("hyperedge")) == (
        ["early"],
        1,
    )
    assert snapshot.ids("entity", range(snapshot.row_count("entity"))) == ["early"]
    assert len(get_digests(writer)) == 3


def test_the_log_of_changes_forgets_what_is_long_ago(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.stores.sqlite.store.LOG_LENGTH", 5)
    with closing(create(tmp_path)) as store:
        for _ in range(20):
            store.put(with_hyperedge("a"))
        complete = [changes_of(store, version).is_complete for version in range(13, 18)]
        assert complete == [True, True, False, False, False]
        changes = changes_of(store, 15)
        assert changes.removed == tuple((number, number) for number in range(15, 20))
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM removal").fetchone() == (5,)


def test_no_number_is_given_twice_and_hyperedges_have_consecutive_ones_in_the_order_of_the_document(
    tmp_path: Path,
) -> None:
    def put(id: str, *edges: int) -> None:
        vector = np.zeros(4, dtype=np.float32)
        passages = []
        for position, count in enumerate(edges):
            passage = Passage(f"{id}#{position}", id, "", "text", 0, 4)
            items = []
            for number in range(count):
                edge = Hyperedge(f"{passage.id}/{number:03}", HyperedgeKind.FACT, "text", passage.id, 0, 4)
                items.append(IndexedHyperedge(edge, (Incidence(f"e{number}", edge.id, "E"),), vector))
            passages.append(IndexedPassage(passage, "digest", vector, tuple(items)))
        store.put(IndexedDocument(Document(id, "", "text"), "digest", 1, tuple(passages)))

    values: dict[str, dict[int, str]] = {"document": {}, "passage": {}, "hyperedge": {}, "entity": {}}
    column = {"entity": "key"}
    with closing(create(tmp_path)) as store, closing(sqlite3.connect(tmp_path / FILE_NAME)) as reader:
        for id, *edges in [("a", 2, 0, 3), ("b", 1), ("a", 1, 11), ("c", 4, 4), ("c", 1)]:
            put(str(id), *map(int, edges))
            for table, names in values.items():
                for number, name in reader.execute(f"SELECT number, {column.get(table, 'id')} FROM {table}"):
                    assert names.setdefault(number, name) == name
            for document in get_digests(store):
                rows = reader.execute(
                    "SELECT hyperedge.number FROM hyperedge JOIN passage ON passage.number = hyperedge.passage "
                    "WHERE passage.id LIKE ? ORDER BY hyperedge.id",
                    [f"{document}#%"],
                ).fetchall()
                assert [number for (number,) in rows] == list(range(rows[0][0], rows[0][0] + len(rows)))
            if id == "b":
                store.remove(["b"])


def test_an_index_may_be_copied_while_nobody_writes(tmp_path: Path) -> None:
    store = create(tmp_path / "one")
    store.put(document("a"))
    store.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert list(get_digests(SqliteStore.open(tmp_path / "two"))) == ["a"]


CLOSE_BESIDE_READERS = """
import sys, threading
from pathlib import Path
from polyad.protocols.lookups import get_digests
from polyad.stores.sqlite import SqliteStore
from polyad.errors import StoreError

wrong = []

def shown(store):
    with store.read_transaction() as moment:
        return [id for rows in moment.rows(moment.changes().documents) for id in rows.passage_ids]

def read(store, started):
    try:
        while True:
            if len(get_digests(store)) != 300 or len(shown(store)) != 300:
                wrong.append("another answer")
            started.set()
    except StoreError as error:
        if "was closed; open it again" not in str(error):
            wrong.append(error)
    except BaseException as error:
        wrong.append(error)

for _ in range(int(sys.argv[2])):
    store, started = SqliteStore.open(Path(sys.argv[1])), threading.Event()
    threads = [threading.Thread(target=read, args=(store, started)) for _ in range(16)]
    for thread in threads:
        thread.start()
    started.wait(60)
    store.close()
    for thread in threads:
        thread.join(60)
print("wrong:", wrong)
"""


def test_closing_beside_readers_waits_for_what_they_read(tmp_path: Path) -> None:
    with closing(create(tmp_path)) as store:
        for number in range(300):
            store.put(with_hyperedge(f"document {number}"))
    command = [sys.executable, "-c", CLOSE_BESIDE_READERS, str(tmp_path), "15"]  # a process: it would crash this one
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "wrong: []\n")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files the Linux way")
def test_threads_that_ended_leave_no_file_open(tmp_path: Path) -> None:
    store = create(tmp_path)
    for _ in range(30):
        thread = threading.Thread(target=get_digests, args=[store])
        thread.start()
        thread.join()
    mine = [link for link in Path("/proc/self/fd").iterdir() if str(tmp_path) in os.path.realpath(link)]
    assert len(mine) < 12


@pytest.mark.parametrize(
    "error", [TypeError("ours"), KeyError("ours"), ValueError("ours"), MemoryError(), RecursionError()]
)
def test_errors_of_the_program_are_not_reported_as_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    with closing(create(tmp_path)) as store:
        store.put(with_hyperedge("a"))
        monkeypatch.setattr(read_transaction, "groupby", fail)
        with pytest.raises(type(error)):
            get_all(store, Entity, ["a"])
        monkeypatch.setattr(writing, "insert_documents", fail)
        with pytest.raises(type(error)):
            store.put(with_hyperedge("b"))
        with pytest.raises(type(error)), store._database.reading():
            raise error
        assert list(get_digests(store)) == ["a"]


@pytest.mark.parametrize("kind", ["'semantic/unit'", "CAST(x'73ff' AS TEXT)"])
def test_an_unknown_kind_is_damage_and_does_not_prevent_another_run(tmp_path: Path, kind: str) -> None:
    with closing(create(tmp_path)) as store:
        store.put(with_hyperedge("a"))
        store.put(with_hyperedge("b"))
    execute(tmp_path, f"UPDATE hyperedge SET kind = {kind} WHERE id = 'a#0/0'")
    with closing(SqliteStore.open(tmp_path)) as store:
        assert get_kinds(store) == {HyperedgeKind.FACT}
        with pytest.raises(StoreError):
            get_statistics(store)
