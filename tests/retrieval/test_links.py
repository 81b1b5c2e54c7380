"""Links between passages, on hypergraphs small enough to compute by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.hypergraph.sparse import Scores
from polyad.model import Document, FloatArray
from polyad.protocols.components import Embedder, TextKind
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default import links
from polyad.retrieval.default.links import (
    CosineScaler,
    FollowedMentions,
    build_links,
    compute_rarity,
    score_entity_hyperedges,
)
from tests.rows import get_document_ids

SnapshotOf = Callable[[dict[str, list[tuple[str, list[str]]]], Embedder], Snapshot]


DIRECTIONS = {"north": (1.0, 0.0), "half": (0.6, 0.8), "east": (0.0, 1.0)}


class Compass:
    """Embeds a text by the direction that it begins with, names all alike."""

    name, dimension = "compass", 2

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        return np.array([DIRECTIONS.get(text.split()[0], (0.0, 1.0)) for text in texts], dtype=np.float32)


def north(snapshot: Snapshot) -> CosineScaler:
    """Of a question that lies east and its remainder north; similarities are cosines."""
    scale = CosineScaler(np.array([[0, 1], [1, 0]], dtype=np.float32), snapshot)
    scale.means, scale.spreads = np.zeros(2, dtype=np.float32), np.ones(2, dtype=np.float32)
    return scale


@pytest.fixture
def snapshot(build_small_snapshot: SnapshotOf) -> Snapshot:
    """Three passages: Isk is in two, so half as telling as could be; Marr is in one."""
    spec = {
        "a": [("east", ["isk"]), ("north", ["isk"])],
        "b": [("half", ["isk"]), ("north", ["lode"])],
        "c": [("half", ["marr"])],
    }
    return build_small_snapshot(spec, Compass())


def count_weights(snapshot: Snapshot, weights: dict[str, float]) -> list[float]:
    """What the best hyperedge of each passage counts, with these entities."""
    rows = snapshot.find_rows("entity", weights)
    entities = np.array([rows[key] for key in weights], dtype=np.int64)
    counting = np.array(list(weights.values()), dtype=np.float32)
    passages_of_edges, owners, values = score_entity_hyperedges(
        snapshot,
        entities,
        counting * compute_rarity(snapshot, snapshot.graph.mention_counts(entities)),
        north(snapshot),
    )
    assert set(owners.tolist()) <= set(range(len(weights)))
    passages = np.array([snapshot.find_rows("passage", [id])[id] for id in ("a#0000", "b#0000", "c#0000")])
    counted: list[float] = Scores.from_max(passages_of_edges, values).get(passages).tolist()
    return counted


def test_a_hyperedge_counts_by_its_entity_and_by_how_it_resembles_the_remainder(snapshot: Snapshot) -> None:
    assert count_weights(snapshot, {"isk": 1.0}) == pytest.approx([0.5 * 1, 0.5 * 0.6, 0])
    assert count_weights(snapshot, {"isk": 1.0, "marr": 0.25}) == pytest.approx([0.5, 0.3, 0.25 * 0.6])


def test_an_entity_and_the_remainder_apart_from_each_other_do_not_count(snapshot: Snapshot) -> None:
    assert count_weights(snapshot, {"isk": 1.0})[1] < count_weights(snapshot, {"lode": 1.0})[1], (
        "the north of b is not of Isk"
    )


def test_each_scored_hyperedge_belongs_to_its_entity(snapshot: Snapshot) -> None:
    rows = snapshot.find_rows("entity", ["isk", "marr"])
    entities = np.array([rows["isk"], rows["marr"]], dtype=np.int64)
    _, owners, values = score_entity_hyperedges(
        snapshot, entities, np.array([1, 0.25], dtype=np.float32), north(snapshot)
    )
    assert owners.tolist() == [0, 0, 0, 1]
    assert values[-1] == pytest.approx(0.25 * 0.6)


def test_an_entity_of_too_many_passages_is_not_followed(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MAX_FOLLOWED_DEGREE", 1)
    rows, one = snapshot.find_rows("entity", ["isk", "marr"]), np.ones(2, dtype=np.float32)
    entities = np.array([rows["isk"], rows["marr"]], dtype=np.int64)
    assert FollowedMentions.from_incidences(
        snapshot, entities, np.zeros(2, dtype=np.int64), one, one
    ).entities.tolist() == [rows["marr"]]


def test_without_entities_nothing_is_anchored(snapshot: Snapshot) -> None:
    assert count_weights(snapshot, {}) == [0, 0, 0]


def test_a_link_to_a_strong_subject_is_shared_by_the_strong_alone(tmp_path: Path) -> None:
    documents = [
        Document("a", "Isk", "It is long."),
        Document("b", "Isk", "It is old."),
        Document("c", "", "They met. The Isk is a river."),
    ]
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents(documents)
        snapshot = engine.snapshot()
    mentions = snapshot.graph.mentions(np.array([snapshot.find_rows("entity", ["isk"])["isk"]]))
    weak = dict(zip(get_document_ids(snapshot, mentions[0]), mentions[2].tolist(), strict=True))["c"]
    passages, owners, shares, sure = build_links(*mentions, 1)
    results = dict(zip(get_document_ids(snapshot, passages), shares.tolist(), strict=True))
    assert owners.tolist() == [0, 0, 0]
    assert dict(zip(get_document_ids(snapshot, passages), sure.tolist(), strict=True)) == {
        "a": True,
        "b": True,
        "c": False,
    }
    assert 0 < weak < 1
    assert results == pytest.approx({"a": 1 / sqrt(2), "b": 1 / sqrt(2), "c": weak / sqrt(3)})
