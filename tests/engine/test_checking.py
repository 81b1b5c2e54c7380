"""Checks, repairs, backups and the history of an index."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyad import Document, Engine
from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import PolyadError
from polyad.model import IndexedDocument, Timings
from polyad.protocols.store import REPLIES, WITHDRAWN
from polyad.snapshot.files import FOLDER
from polyad.stores.memory import MemoryStore
from polyad.stores.relational.rows import COLUMNS
from polyad.stores.sqlite import FILE_NAME
from polyad.stores.sqlite.connection import SqliteConnection, compute_checksum
from polyad.stores.sqlite.values import REPLIES_FILE_NAME, SqliteValueFile

EMBEDDER = HashingEmbedder(32)
DOCUMENTS = [
    Document(f"d{number}", f"Pump {number}", f"Ines Moreau repaired pump {number} in Tarn. Bo Ray built it in Aldby.")
    for number in range(20)
]
QUESTION = "Who repaired pump 7?"


def open_engine(place: Path) -> Engine:
    return Engine.open(place, embedder=EMBEDDER)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("polyad.snapshot.provider.MIN_SAVED", 1)
    with open_engine(tmp_path / "kb") as engine:
        engine.index_documents(DOCUMENTS)
        engine.corrections.retract(entity="Bo Ray", reason="privacy")
    return tmp_path / "kb"


def execute(place: Path, *statements: str) -> None:
    """Change the file as no version of polyad would, with checksums that fit."""
    with closing(sqlite3.connect(place / FILE_NAME, factory=SqliteConnection)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def with_checksum(table: str, where: str) -> str:
    """A statement that makes the checksum of changed rows fit again."""
    columns = ", ".join(f'"{name}"' for name in COLUMNS[table])
    return f"UPDATE {table} SET checksum = row_checksum({columns}) WHERE {where}"


def check(place: Path, *, repair: bool = False) -> tuple[list[str], list[str]]:
    with open_engine(place) as engine:
        report = engine.check(repair=repair)
    return [one.invariant for one in report.damage], [one.invariant for one in report.remaining]


def test_an_undamaged_index_has_no_damage(place: Path) -> None:
    assert check(place) == ([], [])
    result = CliRunner().invoke(app, ["check", "--store", str(place)])
    assert (result.exit_code, result.stdout[:15]) == (0, "no damage found")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("pattern", ["snapshot.json", "arrays-*/passage_vectors.bin"])
def test_a_pipe_in_place_of_a_snapshot_file_is_damage(place: Path, pattern: str) -> None:
    with open_engine(place) as engine:
        expected = engine.search(QUESTION).passages
    file = next((place / FOLDER).glob(pattern))
    file.unlink()
    os.mkfifo(file)
    assert check(place) == (["snapshot files"], ["snapshot files"])
    with open_engine(place) as engine:
        assert engine.search(QUESTION).passages == expected
    assert check(place) == ([], [])


def change_array(place: Path) -> None:
    file = next((place / FOLDER).glob("arrays-*/passage_vectors.bin"))
    data = bytearray(file.read_bytes())
    data[5] ^= 1
    file.write_bytes(data)


def shorten_vector(place: Path) -> None:
    where = "id = 'd3#0000'"
    execute(place, f"UPDATE passage SET vector = SUBSTR(vector, 1, 16) WHERE {where}", with_checksum("passage", where))


def scale_vector(place: Path) -> None:
    where = "id = 'd3#0000/000'"
    vector = HashingEmbedder(32).encode(["pump"], "passage")[0] * 3
    execute(
        place,
        f"UPDATE hyperedge SET vector = x'{vector.tobytes().hex()}' WHERE {where}",
        with_checksum("hyperedge", where),
    )


def move_passage(place: Path) -> None:
    where = "id = 'd3#0000'"
    execute(place, f'UPDATE passage SET "start" = 4 WHERE {where}', with_checksum("passage", where))


def add_entity(place: Path) -> None:
    execute(place, "INSERT INTO entity (number, key, checksum) VALUES (999, 'nobody', row_checksum(999, 'nobody'))")


def add_damaged_entity(place: Path) -> None:
    execute(place, "INSERT INTO entity (number, key, checksum) VALUES (999, 'nobody', 5)")


def break_index(place: Path) -> None:
    """Let an index lose a row that its table has."""
    where = "type = 'index' AND name = 'passage_of_document'"
    with closing(sqlite3.connect(place / FILE_NAME)) as connection:
        sql = connection.execute(f"SELECT sql FROM sqlite_master WHERE {where}").fetchone()[0]
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"UPDATE sqlite_master SET sql = ? WHERE {where}", [f"{sql} WHERE number > 30"])
        connection.commit()
    with closing(sqlite3.connect(place / FILE_NAME)) as connection:
        connection.execute("REINDEX passage_of_document")
        connection.commit()
    with closing(sqlite3.connect(place / FILE_NAME)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"UPDATE sqlite_master SET sql = ? WHERE {where}", [sql])
        connection.commit()


def change_reply(place: Path) -> None:
    with closing(SqliteValueFile(place / REPLIES_FILE_NAME)) as replies:
        replies.put_values(REPLIES, {"prompt": b"reply"})
    with closing(sqlite3.connect(place / REPLIES_FILE_NAME)) as connection:
        connection.execute("UPDATE value SET value = CAST('other' AS BLOB)")
        connection.commit()


def change_retraction(place: Path) -> None:
    execute(place, "UPDATE value SET value = CAST('{}' AS BLOB) WHERE namespace = 'retractions'")


def change_original(place: Path) -> None:
    execute(place, "UPDATE value SET value = CAST('[]' AS BLOB) WHERE namespace = 'originals' AND key = 'd3'")


def change_withdrawn(place: Path) -> None:
    execute(place, "UPDATE value SET value = CAST('{}' AS BLOB) WHERE namespace = 'withdrawn' AND key = 'd3'")


def forget_retraction(place: Path) -> None:
    execute(place, "DELETE FROM value WHERE namespace = 'retractions'")


def break_retraction(place: Path) -> None:
    checksum = compute_checksum("retractions", "x", b'{"reason": 3}')
    execute(
        place,
        "INSERT INTO value (namespace, key, checksum, value) "
        f"VALUES ('retractions', 'x', {checksum}, CAST('{{\"reason\": 3}}' AS BLOB))",
    )


def change_row(place: Path) -> None:
    execute(place, "UPDATE document SET title = 'Pump 99' WHERE id = 'd3'")


def delete_passage(place: Path) -> None:
    execute(place, "DELETE FROM passage WHERE id = 'd3#0000'")


@pytest.mark.parametrize(
    ("damage", "invariant", "is_repairable"),
    [
        (change_array, "snapshot files", True),
        (add_entity, "entities", True),
        (add_damaged_entity, "entities", True),
        (break_index, "structure", True),
        (change_reply, "values", True),
        (change_retraction, "values", False),
        (change_original, "values", False),
        (change_withdrawn, "values", True),
        (forget_retraction, "corrections", True),
        (shorten_vector, "vectors", False),
        (scale_vector, "vectors", False),
        (move_passage, "spans", False),
        (break_retraction, "corrections", False),
        (change_row, "checksums", False),
        (delete_passage, "counts", False),
    ],
)
def test_each_violated_invariant_is_found_and_repaired_where_it_can_be(
    place: Path, damage: Callable[[Path], None], invariant: str, is_repairable: bool
) -> None:
    damage(place)
    damage_found, remaining = check(place, repair=True)
    assert invariant in damage_found
    assert bool(remaining) != is_repairable
    assert (check(place) == ([], [])) == is_repairable
    result = CliRunner().invoke(app, ["check", "--repair", "--json", "--store", str(place)])
    assert result.exit_code == (0 if is_repairable else 2)
    assert bool(json.loads(result.stdout)["remaining"]) != is_repairable


def test_a_repaired_index_is_searched_as_before(place: Path) -> None:
    def search() -> list[Any]:
        with open_engine(place) as engine:
            return [
                replace(engine.search(QUESTION, retriever=name), timings=Timings()) for name in ("dense", "hypersu")
            ]

    before = search()
    for damage in (change_array, add_entity):
        damage(place)
        assert check(place, repair=True)[1] == []
    assert search() == before


def test_a_flipped_bit_is_found_or_harmless(place: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    with open_engine(place) as engine:
        expected = read(engine)
    for number in range(12):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(place, copy)
        files = [copy / FILE_NAME, *sorted((copy / FOLDER).rglob("*.bin"))]
        file = chance.choice([one for one in files if one.stat().st_size])
        data = bytearray(file.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(data)
        try:
            with open_engine(copy) as engine:
                report = engine.check(repair=True)
                if not report.remaining:
                    assert read(engine) == expected
        except PolyadError:
            continue


def read(engine: Engine) -> dict[str, Any]:
    with engine._store.read_transaction() as transaction:
        documents = {id: repr(item) for id, item in transaction.get(IndexedDocument).items()}
    return {"documents": documents, "withdrawn": engine._store.get_values(WITHDRAWN)}


def test_memory_is_not_checked() -> None:
    with Engine.open("memory://checked", store=MemoryStore.open, embedder=EMBEDDER) as engine:
        engine.index_documents(DOCUMENTS)
        assert engine.check(repair=True).damage == ()
