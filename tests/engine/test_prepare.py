"""Preparing a retriever: what is made once for an index is made before the first question."""

from __future__ import annotations

import pytest

from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.hyperretriever.triple_walk import SearchSpace


def test_preparing_builds_the_search_space_before_the_first_search(
    small_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0
    make = SearchSpace.from_snapshot

    def counted(snapshot: Snapshot, *, binary: bool) -> SearchSpace:
        nonlocal made
        made += 1
        return make(snapshot, binary=binary)

    monkeypatch.setattr(SearchSpace, "from_snapshot", counted)
    small_engine.prepare("hyperretriever")
    assert made == 1
    assert small_engine.search("Who cast the Bell of Tarn?", retriever="hyperretriever").passages
    assert made == 1


def test_a_retriever_that_does_not_exist_cannot_be_prepared(small_engine: Engine) -> None:
    with pytest.raises(ConfigurationError, match="bm52"):
        small_engine.prepare("bm52")
