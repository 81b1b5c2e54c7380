"""Linking a name that is no entity's to the entity with the most similar name."""

from __future__ import annotations

import pytest

from polyad.engine import Engine
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.question import SimilarNames


@pytest.fixture
def snapshot(small_engine: Engine) -> Snapshot:
    return small_engine.snapshot()


def test_a_misspelt_name_is_linked_through_the_word_it_shares(snapshot: Snapshot, embedder: Embedder) -> None:
    results = SimilarNames(embedder, 0.6).find_nearest(["inez moreau"], snapshot)
    assert {key: snapshot.ids("entity", [row])[0] for key, row in results.items()} == {"inez moreau": "ines moreau"}


@pytest.mark.parametrize(("key", "threshold"), [("inez moreau", 0.999), ("nothing alike", 0.1)])
def test_nothing_is_linked_below_the_threshold_or_without_a_shared_word(
    snapshot: Snapshot, embedder: Embedder, key: str, threshold: float
) -> None:
    assert SimilarNames(embedder, threshold).find_nearest([key], snapshot) == {}
