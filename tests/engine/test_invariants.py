"""Each invariant of an index, and a violation of it in the files that a check finds and, if it can, repairs."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from typer.testing import CliRunner

from polyad import Document, Engine
from polyad.cli import app
from polyad.config import NearestSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine.settings import Settings
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Argument, Evidence, Timings
from polyad.snapshot.files import FOLDER
from polyad.stores.relational.rows import COLUMNS
from polyad.stores.sqlite import FILE_NAME, REPLIES_FILE_NAME
from polyad.stores.sqlite.connection import SqliteConnection

DIMENSION = 16
QUESTION = "Who repaired pump 7 in Tarn?"


def write_files(folder: Path) -> None:
    for number in range(12):
        text = f"# Pump {number}\n\nInes Moreau repaired pump {number} in Tarn. Bo Ray built it in Aldby.\n"
        (folder / f"d{number:02}.md").write_text(text)


def open_engine(directory: Path) -> Engine:
    model = ScriptedLanguageModel(lambda _: "Ines Moreau [1].")
    return Engine.open(directory, embedder=HashingEmbedder(DIMENSION), language_model=model)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents and their index, in which each table has rows and a snapshot is saved."""
    folder = tmp_path_factory.mktemp("sound")
    write_files(folder)
    patch = pytest.MonkeyPatch()
    with patch.context() as during:
        during.chdir(folder)
        during.setattr("polyad.snapshot.provider.MIN_SAVED", 1)
        with open_engine(Path("kb")) as engine:
            engine.index(["."])
            fact = (Argument("giver", "Ada Lee"), Argument("gift", "3 kg", "number"))
            engine.index_documents([Document("fact", "", "Ada Lee gave 3 kg.", arguments=fact, relation="give")])
            engine.index_documents([Document("gone", "", "This document is removed.")])
            engine.remove("gone")
            engine.corrections.retract(entity="Bo Ray", reason="privacy")
            engine.prepare("hypergraphrag")
            engine.ask(QUESTION)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(sound, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setattr("polyad.snapshot.provider.MIN_SAVED", 1)
    return tmp_path / "copy"


def run(*arguments: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    result = CliRunner().invoke(app, ["check", *arguments, "--store", "kb", "--json"])
    return result.exit_code, json.loads(result.stdout)


def search() -> list[Evidence]:
    with open_engine(Path("kb")) as engine:
        evidence_list = [
            engine.search(QUESTION, retriever=name) for name in ("default", "bm25", "hypersu", "hypergraphrag")
        ]
    return [replace(one, timings=Timings()) for one in evidence_list]


def change(*statements: str, file: str = FILE_NAME, reseal: str = "") -> None:
    """Change a file by SQL, without foreign keys; ``reseal`` is a table whose rows get the checksums that fit."""
    with closing(sqlite3.connect(Path("kb", file), factory=SqliteConnection)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
        if reseal:
            columns = ", ".join(f'"{name}"' for name in COLUMNS[reseal])
            connection.execute(f"UPDATE {reseal} SET checksum = row_checksum({columns})")


def test_a_sound_index_has_no_damage(folder: Path) -> None:
    assert run() == (0, {"schema": 1, "damage": [], "remaining": [], "seconds": pytest.approx(0, abs=60)})
    assert run("--repair")[0] == 0
    assert Path("kb", FOLDER, "snapshot.json").exists(), "nothing was deleted"
    with open_engine(Path("kb")) as engine:  # the snapshot on disk is advanced before it is compared
        engine.remove("d03.md")
        engine.index_documents([Document("later", "Later", "Ada Lee repaired pump 7.")])
    assert run()[0] == 0


@pytest.mark.parametrize(
    ("invariant", "violate"),
    [
        # an orphan: a passage, and all that belongs to it, of a document that is missing
        ("references", lambda: change("DELETE FROM document WHERE id = 'd03.md'")),
        (
            "references",
            lambda: change(
                "DELETE FROM hyperedge WHERE id = 'd03.md#0000/000'",
                "UPDATE passage SET hyperedges = 0 WHERE id = 'd03.md#0000'",
                reseal="passage",
            ),
        ),
        (
            "entities",
            lambda: change(
                "INSERT INTO entity (number, key) VALUES (9999, 'nobody')".replace(")", ", checksum)", 1).replace(
                    "')", "', 0)"
                ),
                reseal="entity",
            ),
        ),
        ("primary keys", lambda: change("UPDATE sqlite_sequence SET seq = 3 WHERE name = 'passage'")),
        ("versions", lambda: change("UPDATE manifest SET value = '1' WHERE key = 'version'")),
        ("versions", lambda: change("UPDATE manifest SET value = 'x' WHERE key = 'version'")),
        ("checksums", lambda: change("UPDATE removal SET last_passage = last_passage + 1")),
        ("values", lambda: change("UPDATE value SET value = x'00' WHERE namespace = 'entity-vectors'")),
        ("values", lambda: change("UPDATE value SET key = 'missing' WHERE key = 'd05.md'", reseal="value")),
        ("values", lambda: change("UPDATE value SET value = x'00' WHERE key = 'd05.md' AND namespace = 'withdrawn'")),
        ("values", lambda: change("UPDATE value SET value = '{}'", file=REPLIES_FILE_NAME)),
        (
            "values",
            lambda: change("UPDATE value SET value = CAST('{}' AS BLOB)", file=REPLIES_FILE_NAME, reseal="value"),
        ),
        ("usage", lambda: change("UPDATE account SET cost = 99.0")),
        ("usage", lambda: change("UPDATE manifest SET key = 'checksul' WHERE key = 'checksum'")),
    ],
)
def test_derived_and_orphaned_data_is_repaired(folder: Path, invariant: str, violate: Callable[[], None]) -> None:
    violate()
    code, report = run()
    assert code == 1
    assert {one["invariant"] for one in report["damage"]} >= {invariant}
    code, report = run("--repair")
    assert (code, report["remaining"]) == (1, []), report
    assert run()[0] == 0
    assert search()


@pytest.mark.parametrize(
    ("invariant", "violate"),
    [
        ("checksums", lambda: change("UPDATE passage SET title = 'x' WHERE id = 'd03.md#0000'")),
        ("checksums", lambda: change("UPDATE document SET text = text || 'x' WHERE id = 'd03.md'")),
        ("checksums", lambda: change("UPDATE passage SET text = CAST(x'c328' AS TEXT) WHERE id = 'd03.md#0000'")),
        (
            "checksums",
            lambda: change(
                "UPDATE incidence SET score = 1.0 WHERE hyperedge = "
                "(SELECT number FROM hyperedge WHERE id = 'd03.md#0000/000')"
            ),
        ),
        ("counts", lambda: change("DELETE FROM hyperedge WHERE id = 'd03.md#0000/000'")),
        (
            "vectors",
            lambda: change("UPDATE passage SET vector = x'0000803f' WHERE id = 'd03.md#0000'", reseal="passage"),
        ),
        (
            "vectors",
            lambda: change(
                f"UPDATE hyperedge SET vector = x'{np.full(DIMENSION, 9, dtype='<f4').tobytes().hex()}' "
                "WHERE id = 'd03.md#0000/000'",
                reseal="hyperedge",
            ),
        ),
        ("spans", lambda: change("UPDATE passage SET \"start\" = 1 WHERE id = 'd03.md#0000'", reseal="passage")),
        (
            "spans",
            lambda: change("UPDATE hyperedge SET \"end\" = 9999 WHERE id = 'd03.md#0000/000'", reseal="hyperedge"),
        ),
    ],
)
def test_a_damaged_document_is_named_with_the_command_that_indexes_it_again(
    folder: Path, invariant: str, violate: Callable[[], None]
) -> None:
    expected = search()
    violate()
    code, report = run()
    assert code == 1
    assert invariant in {one["invariant"] for one in report["damage"]}
    assert {one["document_id"] for one in report["damage"] if one["remedy"] == "index"} == {"d03.md"}
    code, report = run("--repair")
    assert code == 2, "a contribution of a document is never deleted"
    assert {one["source"] for one in report["remaining"]} == {"d03.md"}
    result = CliRunner().invoke(app, ["check", "--store", "kb"])
    for command in ("polyad index --force --store kb d03.md", "polyad remove --store kb d03.md"):
        if command in result.stdout:
            again = CliRunner().invoke(app, command.split()[1:])
            assert again.exit_code == 0, again.output
    assert CliRunner().invoke(app, ["index", "d03.md", "--store", "kb"]).exit_code == 0
    assert run()[0] == 0
    assert search() == expected


def test_an_incidence_without_its_entity_names_its_document(folder: Path) -> None:
    change("DELETE FROM entity WHERE key = 'pump 3'")
    code, report = run("--repair")
    assert code == 2
    damage = {(one["invariant"], one["table"], one["document_id"]) for one in report["remaining"]}
    assert damage == {("references", "incidence", "d03.md")}


def test_a_damaged_document_without_a_file_can_be_removed(folder: Path) -> None:
    change("UPDATE passage SET text = 'x' WHERE id LIKE 'fact#%'")
    result = CliRunner().invoke(app, ["check", "--store", "kb"])
    assert "remove and index again: polyad remove --store kb fact" in result.stdout
    assert CliRunner().invoke(app, ["remove", "fact", "--store", "kb"]).exit_code == 0
    assert run()[0] == 0


def test_a_document_that_lost_what_corrections_withdrew_is_indexed_again(folder: Path) -> None:
    change("UPDATE value SET key = 'd99.md' WHERE key = 'd05.md' AND namespace = 'originals'")
    code, report = run("--repair")
    assert code == 2
    assert [(one["invariant"], one["document_id"], one["source"]) for one in report["remaining"]] == [
        ("corrections", "d05.md", "d05.md")
    ]
    assert CliRunner().invoke(app, ["index", "--force", "d05.md", "--store", "kb"]).exit_code == 0
    assert run()[0] == 0


def test_a_repair_never_deletes_corrections(folder: Path) -> None:
    change("UPDATE value SET value = x'00' WHERE namespace = 'retractions'")
    for _ in range(2):
        code, report = run("--repair")
        assert code == 2
        assert [(one["table"], one["remedy"]) for one in report["remaining"]] == [("retractions", "restore")]


def test_a_document_is_stored_as_corrections_leave_it(folder: Path) -> None:
    change("DELETE FROM value WHERE namespace = 'retractions'")
    code, report = run()
    assert (code, {one["invariant"] for one in report["damage"]}) == (1, {"corrections"})
    assert run("--repair")[0] == 1
    assert run()[0] == 0
    with open_engine(Path("kb")) as engine:
        assert engine.catalogue.entity("Bo Ray")[1]
        assert engine.catalogue.history(1)[0].command == "repair"


@pytest.mark.parametrize(
    ("invariant", "statement"),
    [("tables", "DROP INDEX passage_by_digest"), ("tables", "ALTER TABLE account ADD COLUMN more")],
)
def test_tables_of_another_definition_are_damage(folder: Path, invariant: str, statement: str) -> None:
    change(statement)
    code, report = run("--repair")
    assert code == 2
    assert invariant in {one["invariant"] for one in report["remaining"]}


def test_an_index_of_sqlite_that_lacks_a_row_is_built_again(folder: Path) -> None:
    """The root page of an index is exchanged for that of another one, as a misdirected write would do."""
    with closing(sqlite3.connect(Path("kb", FILE_NAME))) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("CREATE INDEX empty ON passage (digest) WHERE digest IS NULL")
        connection.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'empty') "
            "WHERE name = 'passage_by_digest'"
        )
        connection.execute("DELETE FROM sqlite_master WHERE name = 'empty'")
    code, report = run()
    assert (code, {one["invariant"] for one in report["damage"]}) == (1, {"structure"})


def test_a_file_that_is_no_database_is_damage(folder: Path) -> None:
    contents = bytearray(Path("kb", FILE_NAME).read_bytes())
    contents[:2000] = bytes(2000)
    Path("kb", FILE_NAME).write_bytes(contents)
    code, report = run()
    assert (code, [one["remedy"] for one in report["damage"]]) == (1, ["restore"])
    assert run("--repair")[0] == 2
    missing = CliRunner().invoke(app, ["check", "--store", "nowhere"])
    assert missing.exit_code == 2, "no index is a usage error"


def test_a_changed_file_of_the_snapshot_is_deleted_and_built_again(folder: Path) -> None:
    expected = search()
    for pattern in ("snapshot.json", "*/passage_vectors.bin", "*/graph.edge_passage.bin"):
        [path] = Path("kb", FOLDER).glob(pattern)
        contents = bytearray(path.read_bytes())
        contents[len(contents) // 2] ^= 1
        path.write_bytes(contents)
        code, report = run()
        assert (code, {one["invariant"] for one in report["damage"]}) == (1, {"snapshot files"}), path
        assert run("--repair")[0] == 1
        assert run()[0] == 0
        assert search() == expected
        assert list(Path("kb", FOLDER).glob(pattern)), "the search saved a new snapshot"


def change_array(name: str, change: Callable[[np.ndarray[Any, Any]], None]) -> None:
    """Change a saved array, and the checksums so that they fit."""
    manifest_path = Path("kb", FOLDER, "snapshot.json")
    manifest = json.loads(manifest_path.read_bytes())
    entry, path = manifest["arrays"][name], Path("kb", FOLDER, manifest["folder"], f"{name}.bin")
    array = np.fromfile(path, dtype=entry["type"]).reshape(entry["shape"])
    change(array)
    array.tofile(path)
    entry["checksum"] = crc32(array.tobytes())
    del manifest["checksum"]
    manifest_path.write_text(json.dumps({"checksum": crc32(json.dumps(manifest).encode()), **manifest}))


def add_one(array: np.ndarray[Any, Any]) -> None:
    array[...] += 1


def flip_sign(array: np.ndarray[Any, Any]) -> None:
    array[0] *= -1


def invert(array: np.ndarray[Any, Any]) -> None:
    array[...] = ~array


def swap_first(array: np.ndarray[Any, Any]) -> None:
    array[0] = array[1]


@pytest.mark.parametrize(
    ("invariant", "name", "violate"),
    [
        ("snapshot rows", "passage_vectors", flip_sign),
        ("snapshot rows", "passages.document", swap_first),
        ("postings", "passages.terms.postings.segments.weights", add_one),
        ("postings", "passages.terms.lengths", add_one),
        ("incidences", "graph.edge_score", add_one),
        ("incidences", "graph.entity_edges.pairs.segments.weights", add_one),
        ("incidences", "graph.variants.subject", add_one),
        ("incidences", "link_count", add_one),
        ("clusters", "hyperedge_clusters.places", swap_first),
        ("codes", "hyperedge_codes.bits", invert),
    ],
)
def test_a_snapshot_in_step_with_its_rows(
    folder: Path, invariant: str, name: str, violate: Callable[[np.ndarray[Any, Any]], None]
) -> None:
    shutil.rmtree(Path("kb", FOLDER))
    nearest = Settings(nearest=NearestSettings(exact_up_to=1, clusters_from=2))
    with Engine.open("kb", embedder=HashingEmbedder(DIMENSION), settings=nearest) as engine:
        engine.search(QUESTION)
        assert engine.check().damage == ()
        change_array(name, violate)
        assert invariant in {one.invariant for one in engine.check().damage}
        report = engine.check(repair=True)
        assert (len(report.damage) > 0, report.remaining) == (True, ())
