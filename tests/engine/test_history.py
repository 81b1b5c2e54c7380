"""The history of an index: an entry for each command that changed it, exactly of what was stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad import Document, Engine
from polyad.cli import app
from polyad.curation.curator import HISTORY, HistoryEntry, HistoryRecorder, load_history
from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import NotFoundError
from polyad.indexing import indexer
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, TextKind
from polyad.protocols.store import Store
from polyad.stores.memory import MemoryStore
from polyad.stores.sqlite import SqliteStore

NOW = datetime(2030, 1, 2, 3, 4, 5, 678900, UTC)
TIME = "2030-01-02T03:04:05+00:00"
# One passage with one hyperedge each.
BELL = Document("bell", "Bell of Tarn", "The bell of Tarn was cast by Ines Moreau.")
TOWER = Document("tower", "Corven Tower", "Corven Tower stands in Aldby.")

Opener = Callable[[Embedder], Engine]


@pytest.fixture(params=["sqlite", "memory"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    openers: dict[str, Callable[..., Store]] = {"sqlite": SqliteStore.open, "memory": MemoryStore.open}
    return lambda embedder: Engine.open(tmp_path / "kb", store=openers[request.param], embedder=embedder)


def test_each_change_is_listed_with_what_it_changed(opener: Opener) -> None:
    with opener(HashingEmbedder(16)) as engine:
        corrections = engine.corrections
        engine.index_documents([BELL, TOWER], now=NOW)
        engine.index_documents([BELL, replace(TOWER, text="Corven Tower fell.")], now=NOW)
        corrections.retract(hyperedge="bell#0000/000", reason="it was Ada", now=NOW)
        corrections.restore(hyperedge="bell#0000/000", now=NOW)
        corrections.add_aliases([("Tarn Bell", "Bell of Tarn")], now=NOW)
        corrections.remove_alias("Tarn Bell", now=NOW)
        corrections.disable("bell", now=NOW)
        corrections.enable("bell", now=NOW)
        engine.remove(["bell"], now=NOW)
        engine.replace_embedder(HashingEmbedder(32), now=NOW)
    expected = [
        ("index", 2, 2, 2),
        ("index", 1, 1, 1),
        ("retract", 1, 1, 1),
        ("restore", 1, 1, 1),
        ("alias", 0, 0, 0),  # no document names the alias
        ("alias", 0, 0, 0),
        ("disable", 1, 1, 1),
        ("enable", 1, 1, 1),
        ("remove", 1, 1, 1),
        ("embed", 1, 1, 1),
    ]
    with opener(HashingEmbedder(32)) as engine:
        assert engine.catalogue.history() == [HistoryEntry(TIME, *counts) for counts in reversed(expected)]
        assert engine.catalogue.history(1) == [HistoryEntry(TIME, "embed", 1, 1, 1)]


def test_a_run_that_changes_nothing_is_not_listed(opener: Opener) -> None:
    with opener(HashingEmbedder(16)) as engine:
        engine.index_documents([BELL], now=NOW)
        engine.index_documents([BELL], now=NOW)
        engine.corrections.retract(entity="Ines Moreau", reason="privacy", now=NOW, is_trial=True)
        with pytest.raises(NotFoundError):
            engine.remove(["bell", "unknown"])
        assert engine.catalogue.history() == [HistoryEntry(TIME, "index", 1, 1, 1)]


class InterruptedEmbedder:
    """Embeds two batches of documents, then is interrupted."""

    name, dimension = "hashing:16", 16

    def __init__(self) -> None:
        self.calls = 2

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return HashingEmbedder(16).encode(texts, kind)


def test_an_interrupted_run_is_listed_with_what_it_had_stored(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "BATCH_CHARACTERS", 1)  # each document is stored alone
    documents = [BELL, TOWER, Document("town", "Aldby", "Aldby is a town.")]
    with opener(InterruptedEmbedder()) as engine, pytest.raises(KeyboardInterrupt):
        engine.index_documents(documents, now=NOW)
    with opener(HashingEmbedder(16)) as engine:
        engine.index_documents(documents, now=NOW)
        assert [(entry.command, entry.documents) for entry in engine.catalogue.history()] == [
            ("index", 1),
            ("index", 2),
        ]


def test_tokens_are_those_of_the_run_also_if_nothing_was_stored(tmp_path: Path) -> None:
    fact = '{"facts": [{"text": "The bell was cast by Ines Moreau.", "entities": [{"name": "Ines Moreau"}]}]}'
    model = ScriptedLanguageModel(lambda _: fact)
    with Engine.open(tmp_path, embedder=HashingEmbedder(16), language_model=model) as engine:
        first = engine.index_documents([BELL], method="facts", now=NOW)
        second = engine.index_documents([BELL, TOWER], method="facts", now=NOW)
        listed = engine.catalogue.history()
    assert [entry.tokens for entry in listed] == [second.usage.tokens, first.usage.tokens]
    assert min(entry.tokens for entry in listed) > 0


def test_entries_of_one_time_keep_their_order_and_never_replace_each_other(opener: Opener) -> None:
    later, earlier = NOW + timedelta(hours=1), NOW.astimezone(timezone(timedelta(hours=9))) - timedelta(seconds=1)
    with opener(HashingEmbedder(16)) as engine:
        store = engine._store
        recorders = [HistoryRecorder(f"c{number}", NOW) for number in range(50)]
        for recorder in (HistoryRecorder("last", later), *reversed(recorders), HistoryRecorder("first", earlier)):
            with recorder.add(1) as values:
                store.put(values=values)
        commands = [entry.command for entry in load_history(store)]
        assert commands == ["last", *(f"c{number}" for number in reversed(range(50))), "first"]
        assert len(store.get_values(HISTORY)) == 52


def test_the_command_prints_the_last_changes(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents([BELL, TOWER], now=NOW)
        engine.remove("tower", now=NOW)
    runner = CliRunner()
    result = runner.invoke(app, ["log", "--store", str(tmp_path)])
    assert result.stdout.splitlines() == [
        f"{TIME}  remove   1 document, 1 passage, 1 hyperedge",
        f"{TIME}  index    2 documents, 2 passages, 2 hyperedges",
    ]
    last = runner.invoke(app, ["log", "-n", "1", "--json", "--store", str(tmp_path)])
    entry = {
        "time": TIME,
        "command": "remove",
        "documents": 1,
        "passages": 1,
        "hyperedges": 1,
        "tokens": 0,
        "cost": 0.0,
    }
    assert json.loads(last.stdout)["changes"] == [entry]
