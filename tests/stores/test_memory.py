"""An engine over the in-memory store; ``tests/conformance`` has what every store promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import StoreNotFoundError
from polyad.model import Document, Evidence

DOCUMENTS = [Document(f"d{n}", f"Town {n}", f"Anna Keller met Bob Stone in Town {n}. They left it.") for n in range(20)]


def search(place: str | Path) -> Evidence:
    with Engine.open(place, embedder=HashingEmbedder(32)) as engine:
        engine.index_documents(DOCUMENTS)
        engine.remove(["d7"])
    with Engine.open(place, embedder=HashingEmbedder(32), create=False) as engine:
        assert engine.catalogue.statistics().documents == 19
        return engine.search("Where did Anna Keller meet Bob Stone?", k=5)


def test_an_engine_finds_the_same_as_with_sqlite(tmp_path: Path) -> None:
    in_memory, in_sqlite = search(f"memory://{tmp_path}"), search(tmp_path)
    assert in_memory.passages == in_sqlite.passages
    assert in_memory.hyperedges == in_sqlite.hyperedges


def test_an_index_in_memory_must_be_created_first() -> None:
    assert not Engine.exists("memory://nothing")
    with pytest.raises(StoreNotFoundError):
        Engine.open("memory://nothing", create=False)
