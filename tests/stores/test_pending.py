from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from polyad.model import FloatArray
from polyad.stores.sqlite import SqliteStore, pending


def vectors(first: int, count: int) -> dict[str, tuple[str, FloatArray]]:
    """By a digest that is its number, one for each document of that number."""
    return {str(number): (str(number), np.full(4, number, dtype=np.float32)) for number in range(first, first + count)}


def tables(directory: Path) -> set[str]:
    with closing(sqlite3.connect(directory / "index.sqlite")) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_of_too_many_the_earliest_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "MOST", 5)
    with closing(SqliteStore.create(tmp_path, "test", 4, "rules")) as store:
        for first in (0, 3, 6):
            store.keep_pending_vectors(vectors(first, 3))
        assert sorted(store.pending_vectors(list("0123456789"))) == list("45678")


def test_the_table_is_there_only_while_something_waits(tmp_path: Path) -> None:
    with closing(SqliteStore.create(tmp_path, "test", 4, "rules")) as store:
        before = tables(tmp_path)
        store.keep_pending_vectors(vectors(0, 3))
        assert tables(tmp_path) - before == {"pending_vector"}
        store.drop_pending_vectors({"2"})
        assert "pending_vector" in tables(tmp_path)
        store.drop_pending_vectors()
        assert tables(tmp_path) == before


def test_a_reader_that_was_there_before_the_table_sees_it_come_and_go(tmp_path: Path) -> None:
    with (
        closing(SqliteStore.create(tmp_path, "test", 4, "rules")) as store,
        closing(SqliteStore.open(tmp_path)) as reader,
    ):
        assert reader.pending_vectors(["1"]) == {}
        store.keep_pending_vectors(vectors(0, 3))
        assert reader.pending_vectors(["1"])["1"].tolist() == [1, 1, 1, 1]
        store.drop_pending_vectors()
        assert reader.pending_vectors(["1"]) == {}
