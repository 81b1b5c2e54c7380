"""What is SQLite's own about replies; what every keeper promises is in ``tests/conformance``."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import IndexMismatchError, StoreError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Document, Usage
from polyad.protocols.components import Reply
from polyad.protocols.store import REPLIES, Manifest
from polyad.stores.sqlite import SqliteStore, SqliteValueFile


def answering() -> ScriptedLanguageModel:
    return ScriptedLanguageModel(lambda prompt: Reply("In Oslo [1].", Usage(1, 10, 10, 0.5)))


def ask(directory: Path, model: ScriptedLanguageModel, replies: Path | None = None) -> float:
    """Ask one question; what the index has cost so far."""
    with Engine.open(directory, embedder=HashingEmbedder(16), language_model=model, replies=replies) as engine:
        engine.index_documents([Document("a", "Anna", "Anna met Bob in Oslo.")])
        assert engine.ask("Where did Anna meet Bob?", k=1).text == "In Oslo [1]."
        return engine.catalogue.statistics().cost


def test_the_replies_of_an_index_lie_beside_it_unless_told_otherwise(tmp_path: Path) -> None:
    ask(tmp_path / "kb", answering())
    assert {path.name for path in (tmp_path / "kb").iterdir()} == {"index.sqlite", "replies.sqlite"}


def test_an_index_without_a_language_model_has_no_file_of_replies(tmp_path: Path) -> None:
    Engine.open(tmp_path, embedder=HashingEmbedder(16)).close()
    assert {path.name for path in tmp_path.iterdir()} == {"index.sqlite"}


def test_two_indexes_may_share_their_replies_and_each_has_its_own_account(tmp_path: Path) -> None:
    model, shared = answering(), tmp_path / "shared" / "replies"
    assert ask(tmp_path / "one", model, shared) == 0.5
    assert ask(tmp_path / "two", model, shared) == 0
    assert ask(tmp_path / "one", model, shared) == 0.5
    assert len(model.prompts) == 1


def test_an_index_made_again_pays_for_nothing_twice(tmp_path: Path) -> None:
    model = answering()
    ask(tmp_path, model)
    (tmp_path / "index.sqlite").unlink()
    assert ask(tmp_path, model) == 0
    assert len(model.prompts) == 1


def test_replies_that_may_not_be_written_are_read_and_none_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SqliteValueFile(tmp_path / "replies")) as replies:
        replies.put_values(REPLIES, {"a": b"text"})
    monkeypatch.setattr("polyad.stores.sqlite.database.os.access", lambda path, mode: False)
    with closing(SqliteValueFile(tmp_path / "replies")) as replies:
        replies.put_values(REPLIES, {"b": b"text", "a": None})
        assert list(replies.get_values(REPLIES)) == ["a"]


def test_without_write_permission_nothing_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.stores.sqlite.database.os.access", lambda path, mode: False)
    replies = SqliteValueFile(tmp_path / "replies", is_required=False)
    replies.put_values(REPLIES, {"a": b"text"})
    assert replies.get_values(REPLIES) == {}
    replies.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("contents", [b"This is no database at all. " * 400, b"SQLite format 3\x00" + b"\xff" * 4080])
def test_a_damaged_file_of_replies_is_an_error_that_names_it(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "replies").write_bytes(contents)
    with pytest.raises(
        StoreError, match=r"replies' is damaged .*; restore it from a copy, or name another .*--replies"
    ):
        SqliteValueFile(tmp_path / "replies")
    assert (tmp_path / "replies").read_bytes() == contents


def test_an_index_is_no_file_of_replies(tmp_path: Path) -> None:
    SqliteStore.open(tmp_path, Manifest("e", 4, "rules")).close()
    with pytest.raises(StoreError, match="belongs to another program; name another file with --replies"):
        SqliteValueFile(tmp_path / "index.sqlite")


def test_replies_of_another_format_are_a_mismatch(tmp_path: Path) -> None:
    SqliteValueFile(tmp_path / "replies").close()
    with closing(sqlite3.connect(tmp_path / "replies")) as connection:
        connection.execute("PRAGMA user_version = 999")
    with pytest.raises(IndexMismatchError, match="format 999 of replies"):
        SqliteValueFile(tmp_path / "replies")


def test_a_directory_that_cannot_be_made_is_an_error_before_anything_is_paid(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    model = answering()
    with pytest.raises(StoreError):
        ask(tmp_path / "kb", model, tmp_path / "file" / "replies")
    assert model.prompts == []
