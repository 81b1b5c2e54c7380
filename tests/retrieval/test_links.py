"""Links between passages, on hypergraphs small enough to compute by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from polyad.adapters.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document, FloatArray
from polyad.protocols import Embedder, TextKind
from polyad.retrieval.default import links
from polyad.retrieval.default.links import SimilarityScale, anchored, shares_of
from polyad.retrieval.snapshot import Snapshot

SnapshotOf = Callable[[dict[str, list[tuple[str, list[str]]]], Embedder], Snapshot]


DIRECTIONS = {"north": (1.0, 0.0), "half": (0.6, 0.8), "east": (0.0, 1.0)}


class Compass:
    """Embeds a text by the direction that it begins with."""

    name, dimension = "compass", 2

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        return np.array([DIRECTIONS[text.split()[0]] for text in texts], dtype=np.float32)


NORTH = SimilarityScale(
    np.array([[0, 1], [1, 0]], dtype=np.float32), np.zeros(2, dtype=np.float32), np.ones(2, dtype=np.float32)
)
"""Of a question that lies east and its remainder north; similarities are cosines."""


@pytest.fixture
def snapshot(small_snapshot_of: SnapshotOf) -> Snapshot:
    """Three passages: Isk is in two, so half as telling as could be; Marr is in one."""
    spec = {
        "a": [("east", ["isk"]), ("north", ["isk"])],
        "b": [("half", ["isk"]), ("north", ["lode"])],
        "c": [("half", ["marr"])],
    }
    return small_snapshot_of(spec, Compass())


def found(snapshot: Snapshot, weights: dict[str, float], away_from: int = -1) -> list[float]:
    """What the best hyperedge of each passage counts, with these entities."""
    entities = np.array([snapshot.entity_rows[key] for key in weights], dtype=np.int64)
    values = anchored(snapshot, entities, np.array(list(weights.values()), dtype=np.float32), NORTH, away_from)
    by_title = {snapshot.document_id(row): value for row, value in enumerate(values.tolist())}
    return [by_title[title] for title in "abc"]


def test_a_hyperedge_counts_by_its_entity_and_by_how_it_resembles_the_remainder(snapshot: Snapshot) -> None:
    assert found(snapshot, {"isk": 1.0}) == pytest.approx([0.5 * 1, 0.5 * 0.6, 0])
    assert found(snapshot, {"isk": 1.0, "marr": 0.25}) == pytest.approx([0.5, 0.3, 0.25 * 0.6])


def test_an_entity_and_the_remainder_apart_from_each_other_do_not_count(snapshot: Snapshot) -> None:
    assert found(snapshot, {"isk": 1.0})[1] < found(snapshot, {"lode": 1.0})[1], "the north of b is not of Isk"


def test_a_passage_that_is_left_out_does_not_count(snapshot: Snapshot) -> None:
    row = next(row for row in range(3) if snapshot.document_id(row) == "a")
    assert found(snapshot, {"isk": 1.0}, away_from=row) == pytest.approx([0, 0.3, 0])


def test_an_entity_of_too_many_passages_leads_nowhere(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "COMMON", 1)
    assert found(snapshot, {"isk": 1.0, "marr": 1.0}) == pytest.approx([0, 0, 0.6])


def test_without_entities_nothing_is_anchored(snapshot: Snapshot) -> None:
    assert found(snapshot, {}) == [0, 0, 0]


def test_a_link_to_a_strong_subject_is_shared_by_the_strong_alone(tmp_path: Path) -> None:
    documents = [
        Document("a", "Isk", "It is long."),
        Document("b", "Isk", "It is old."),
        Document("c", "", "They met. The Isk is a river."),
    ]
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents(documents)
        snapshot, _, _ = engine.training_parts()
    strong, weak = shares_of(snapshot, np.array([snapshot.entity_rows["isk"]]))
    assert (strong.item(), weak.item()) == pytest.approx((1 / sqrt(2), 1 / sqrt(3)))
