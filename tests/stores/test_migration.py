"""Indexes of earlier formats, made by the code of their time: see ``tests/data/indexes``."""

from __future__ import annotations

import gzip
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import IndexMismatchError, StoreError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Argument, Condition, Document, Usage
from polyad.protocols.components import Reply
from polyad.protocols.store import Changes
from polyad.stores.sqlite import FILE_NAME, SqliteReplies, SqliteStore

INDEXES = Path(__file__).parents[1] / "data" / "indexes"
FORMATS = (3, 4, 5)
WITH_REPLIES = pytest.mark.parametrize("directory", [3, 4], indirect=True)
"""Those that keep the replies of language models in the index, and no log of what was removed."""

QUESTION = "Where was the founder of the Bell of Tarn born?"
FACTS = "Ines Moreau met Bob Stone."
BELL = Document("bell", "Bell", "Ines Moreau cast the Bell of Tarn. The bell hangs in Oslo.", "bell.txt")
MOREAU = Document("moreau", "Moreau", "Ines Moreau was born in Aldby. She met Bob Stone in Oslo.", "moreau.txt")


@pytest.fixture(params=FORMATS)
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Of an index of an earlier format."""
    return unpacked(f"format-{request.param}", tmp_path)


def unpacked(name: str, tmp_path: Path) -> Path:
    """The directory of one of the indexes that are kept."""
    made = tmp_path / "kb"
    made.mkdir()
    (made / FILE_NAME).write_bytes(gzip.decompress((INDEXES / f"{name}.sqlite.gz").read_bytes()))
    return made


def scalar(directory: Path, query: str) -> object:
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection:
        return connection.execute(query).fetchone()[0]


def schema(directory: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
        return {(name, sql.replace('"', "").replace("'", "")) for name, sql in rows}  # what is renamed is quoted


def open_engine(directory: Path, *lines: str, replies: Path | None = None) -> Engine:
    """With a model that has these lines to say and no others."""
    model = ScriptedLanguageModel(list(lines))
    return Engine.open(directory, embedder=HashingEmbedder(8), language_model=model, replies=replies, create=False)


def test_an_index_of_an_earlier_format_is_as_one_made_now(directory: Path, tmp_path: Path) -> None:
    before = {
        table: scalar(directory, f"SELECT COUNT(*) FROM {table}")
        for table in ("document", "passage", "hyperedge", "entity", "incidence", "entity_vector")
    }
    vectors = scalar(directory, "SELECT group_concat(hex(vector)) FROM (SELECT vector FROM hyperedge ORDER BY number)")
    SqliteStore.create(tmp_path / "new", "hashing:8", 8, "rules").close()
    SqliteStore.open(directory).close()
    assert {table: scalar(directory, f"SELECT COUNT(*) FROM {table}") for table in before} == before
    assert scalar(directory, "SELECT group_concat(hex(vector)) FROM hyperedge") == vectors
    assert scalar(directory, "SELECT value FROM manifest WHERE key = 'format_version'") == "6"
    assert scalar(directory, "PRAGMA integrity_check") == "ok"
    assert schema(directory) == schema(tmp_path / "new")


def test_its_rows_are_sound(directory: Path) -> None:
    with closing(SqliteStore.open(directory)) as store:
        assert store.verify() == []


def test_every_retriever_that_needs_no_model_finds_what_it_found(directory: Path) -> None:
    with open_engine(directory) as engine:
        for retriever in ("bm25", "dense", "hypersu", "hypergraphrag", "default"):
            found = [hit.passage.document_id for hit in engine.search(QUESTION, 3, retriever=retriever).passages]
            assert {"bell", "moreau"} <= set(found), retriever
        assert engine.catalogue.passage("moreau#0000").text == MOREAU.text
        assert engine.catalogue.hyperedge("bell#0000/000")[0].text == FACTS
        assert engine.catalogue.entity("ines moreau")[0].description == "A founder of bells."


def test_documents_are_updated_and_removed(directory: Path) -> None:
    with open_engine(directory) as engine:
        numbers = {scalar(directory, "SELECT MAX(number) FROM passage")}
        report = engine.index_documents(
            [Document("stone", "Stone", "Bob Stone sells walnuts in Isk.")], method="semantic-units"
        )
        assert report.counts.updated == 1
        assert engine.search("walnuts", 1, retriever="bm25").passages[0].passage.document_id == "stone"
        assert engine.search("bronze", 1, retriever="bm25").passages == ()
        engine.remove(["bell", "moreau"])
        assert list(engine.catalogue.sources()) == ["odd", "stone"]
        assert scalar(directory, "SELECT MAX(number) FROM passage") not in numbers
    assert scalar(directory, "PRAGMA integrity_check") == "ok"


@WITH_REPLIES
def test_changes_are_known_from_the_beginning(directory: Path) -> None:
    with closing(SqliteStore.open(directory)) as store:
        version = store.version()
        with store.read_transaction() as transaction:
            everything = transaction.changes(0)
        assert everything is not None
        assert (everything.version, everything.removed, len(everything.documents)) == (version, (), 4)
        store.remove(["bell"])
        with store.read_transaction() as transaction:
            assert transaction.changes(version) == Changes(version + 1, ((1, 1),), ())


@WITH_REPLIES
def test_replies_that_were_paid_for_are_recalled_and_their_cost_stays(directory: Path) -> None:
    with open_engine(directory) as engine:
        assert engine.catalogue.statistics().cost == 1.5
        engine.remove(["bell", "moreau"])
        report = engine.index_documents([BELL, MOREAU], method="facts")
        assert (report.counts.added, report.usage) == (2, Usage())
        assert engine.catalogue.hyperedge("bell#0000/000")[0].text == FACTS
        assert engine.catalogue.statistics().cost == 1.5
    assert scalar(directory, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'reply'") == 0


@WITH_REPLIES
def test_replies_go_to_the_file_that_is_named_beside_those_that_are_there(directory: Path, tmp_path: Path) -> None:
    with closing(SqliteReplies(tmp_path / "shared")) as replies:
        replies.keep([("other", Reply("theirs", Usage(1)))])
    with open_engine(directory, replies=tmp_path / "shared") as engine:
        engine.remove(["bell", "moreau"])
        assert engine.index_documents([BELL, MOREAU], method="facts").usage == Usage()
    with closing(SqliteReplies(tmp_path / "shared")) as replies:
        assert list(replies.known(["other"])) == ["other"]
    assert [path.name for path in directory.iterdir()] == [FILE_NAME]


def test_an_index_that_may_not_be_written_says_who_can_convert_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (directory / FILE_NAME).read_bytes()
    with monkeypatch.context() as of_reader:
        of_reader.setattr("polyad.stores.sqlite.database.os.access", lambda path, mode: False)
        with pytest.raises(IndexMismatchError, match=r"may not be written by this user; .*: polyad stats --store .*kb"):
            SqliteStore.open(directory)
    assert (directory / FILE_NAME).read_bytes() == before


def fail_at(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Have a part of the migration fail once it is done."""
    module = "polyad.stores.sqlite.migration"
    part: Callable[..., object] = getattr(sys.modules[module], what)

    def failing(*arguments: object) -> None:
        part(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{module}.{what}", failing)


@WITH_REPLIES
@pytest.mark.parametrize("part", ["_move_replies", "_fill", "_make_anew", "_add_given"])
def test_what_is_interrupted_is_left_as_it_was_and_done_the_next_time(
    directory: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as interrupted:
        fail_at(interrupted, part)
        with pytest.raises(KeyboardInterrupt):
            SqliteStore.open(directory)
    assert scalar(directory, "SELECT COUNT(*) FROM reply WHERE text IS NOT NULL") == 2
    test_replies_that_were_paid_for_are_recalled_and_their_cost_stays(directory)


@WITH_REPLIES
def test_replies_that_cannot_be_moved_stay_where_they_are(directory: Path) -> None:
    (directory / "replies.sqlite").write_bytes(b"This is no database at all. " * 400)
    with pytest.raises(StoreError, match="--replies"):
        SqliteStore.open(directory)
    assert scalar(directory, "SELECT COUNT(*) FROM reply WHERE text IS NOT NULL") == 2
    assert scalar(directory, "SELECT value FROM manifest WHERE key = 'format_version'") in {"3", "4"}


def test_two_processes_may_open_it_at_once(directory: Path) -> None:
    code = "import sys; from pathlib import Path; from polyad.stores.sqlite import SqliteStore; "
    code += "print(len(SqliteStore.open(Path(sys.argv[1])).digests()))"
    command = [sys.executable, "-c", code, str(directory)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in both] == [b"4\n"] * 2
    assert scalar(directory, "SELECT COUNT(*) FROM document") == 4


def test_vectors_are_those_of_the_texts(directory: Path) -> None:
    with closing(SqliteStore.open(directory)) as store:
        [passage] = store.indexed_passages(["moreau"])
        expected = HashingEmbedder(8).encode([f"{MOREAU.title}\n{MOREAU.text}"], "passage")[0]
        assert np.isclose(np.linalg.norm(passage.vector), 1)
        assert np.allclose(passage.vector, expected)


def test_a_removal_that_was_logged_stays_in_the_log_and_no_number_is_given_again(tmp_path: Path) -> None:
    directory = unpacked("format-5", tmp_path)
    before = scalar(directory, "SELECT group_concat(name || seq) FROM (SELECT * FROM sqlite_sequence ORDER BY name)")
    with closing(SqliteStore.open(directory)) as store, store.read_transaction() as transaction:
        changes = transaction.changes(0)
    assert changes is not None
    assert changes.removed == ((5, 5),)
    after = scalar(directory, "SELECT group_concat(name || seq) FROM (SELECT * FROM sqlite_sequence ORDER BY name)")
    assert after == before


def test_of_facts_given_as_data_the_entities_and_roles_that_an_earlier_format_kept_can_be_asked_for(
    tmp_path: Path,
) -> None:
    with closing(SqliteStore.open(unpacked("format-5-tuples", tmp_path))) as store:
        assert store.verify() == []
        assert store.given("", [Condition("gift", "=", "Book")]) == ["g1#0000/000", "g2#0000/000"]
        assert store.given("", [Condition("giver", "=", "Alice Stone"), Condition("gift", "=", "Pen")]) == [
            "g1#0000/000"
        ]
        (fact,) = store.hyperedges(["g1#0000/000"])
        assert (fact.relation, fact.arguments) == (
            "",
            (Argument("gift", "Book"), Argument("gift", "Pen"), Argument("giver", "Alice Stone")),
        )


def test_indexing_again_brings_what_the_earlier_format_did_not_keep(tmp_path: Path) -> None:
    directory = unpacked("format-5-tuples", tmp_path)
    given = (Argument("giver", "Bob"), Argument("age", "42", "number"))
    with open_engine(directory) as engine:
        counts = engine.index_documents([Document("g1", "", "gift g1", arguments=given, relation="give")]).counts
        assert (counts.updated, counts.failures) == (1, ())
        assert (
            engine.catalogue.hyperedge("g1#0000/000")[0].relation,
            engine.catalogue.hyperedge("g1#0000/000")[0].arguments,
        ) == (
            "give",
            given,
        )
