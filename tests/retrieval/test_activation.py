from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.embedders.hashing import HashingEmbedder
from polyad.hypergraph.sparse import compute_cosines
from polyad.model import FloatArray, IntArray
from polyad.protocols.snapshot import Kind, Snapshot
from polyad.retrieval.hypersu.activation import ClueActivation, HubLimitedGraph
from tests.examples import count_examples


def vectors(seed: int, count: int, dimension: int = 6) -> FloatArray:
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(count, dimension))
    result: FloatArray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return result


class Units:
    """The part of a snapshot that activation asks: cosines of hyperedges."""

    def __init__(self, vectors: FloatArray) -> None:
        self.vectors = vectors

    def cosines(self, kind: Kind, rows: IntArray, vectors: FloatArray) -> FloatArray:
        assert kind == "hyperedge"
        return compute_cosines(self.vectors[rows], vectors)


def snapshot_of(units: FloatArray) -> Snapshot:
    return cast(Snapshot, Units(units))


def edges(*rows: int) -> IntArray:
    return np.array(rows, dtype=np.int64)


def at_angles(*degrees: float) -> FloatArray:
    return np.array([[np.cos(np.radians(d)), np.sin(np.radians(d))] for d in degrees], dtype=np.float32)


def by_definition(unit: FloatArray, clues: FloatArray, threshold: float, sharpening: float) -> float:
    nearest = max(float(np.dot(unit.astype(np.float64), clue.astype(np.float64))) for clue in clues)
    return float(min(1.0, max(0.0, (nearest - threshold) / (1 - threshold))) ** sharpening)


def test_without_a_limit_a_frequent_entity_has_all_its_hyperedges(
    build_small_snapshot: Callable[..., Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = HashingEmbedder(32)
    spec = {f"P{number}": [(f"word{number}", ["bell", f"other{number}"])] for number in range(6)}
    snapshot = build_small_snapshot(spec, embedder)
    monkeypatch.setattr("polyad.retrieval.hypersu.activation.NEAREST_PER_CLUE", 2)
    clue = embedder.encode(["word3"], "query")
    everything = np.arange(snapshot.row_count("entity"))
    degrees = np.bincount(snapshot.graph.memberships(everything)[1])
    bell = everything[degrees == 6]
    limited = HubLimitedGraph(snapshot, clue, -1.0, hub_degree=5).memberships(bell)[0]
    assert len(limited) == 2, "the nearest to the clue"
    for hub_degree in (0, 6):
        edges, owners = HubLimitedGraph(snapshot, clue, -1.0, hub_degree).memberships(bell)
        assert (sorted(edges.tolist()), set(owners.tolist())) == (list(range(6)), {0})


@settings(max_examples=count_examples(100), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 30),
    clues=st.integers(1, 4),
    threshold=st.sampled_from([0.0, 0.2, 0.5, 0.9]),
    sharpening=st.sampled_from([0.5, 1.0, 2.0]),
    data=st.data(),
)
def test_asked_piece_by_piece_it_equals_the_formula_over_all_units(
    seed: int, count: int, clues: int, threshold: float, sharpening: float, data: st.DataObject
) -> None:
    units, given_clues = vectors(seed, count), vectors(seed + 1, clues)
    full = [by_definition(unit, given_clues, threshold, sharpening) for unit in units]
    activation = ClueActivation(snapshot_of(units), given_clues, threshold, sharpening)
    requested: set[int] = set()
    for piece in data.draw(st.lists(st.lists(st.integers(0, count - 1), unique=True, max_size=8), max_size=6)):
        values = activation(edges(*piece))
        requested |= set(piece)
        # The root of a number near 0 magnifies the last digits of single precision.
        assert values.tolist() == pytest.approx([full[edge] for edge in piece], abs=2e-3 if sharpening < 1 else 1e-5)
        assert activation.computed_count == len(requested)


def test_only_units_that_were_asked_about_are_read() -> None:
    units = np.full((5, 2), np.nan, dtype=np.float32)
    units[[1, 3]] = at_angles(0, 60)
    activation = ClueActivation(snapshot_of(units), at_angles(0), 0.0, 1.0)
    assert activation(edges(3, 1)).tolist() == pytest.approx([0.5, 1.0])
    assert activation.computed_count == 2


def test_a_unit_is_computed_once() -> None:
    units = at_angles(0, 60)
    activation = ClueActivation(snapshot_of(units), at_angles(0), 0.0, 1.0)
    first = activation(edges(0, 1)).copy()
    units[:] = 0
    assert activation(edges(1, 0)).tolist() == first[::-1].tolist()


def test_values_by_hand() -> None:
    activation = ClueActivation(snapshot_of(at_angles(0, 60, 90, 180)), at_angles(0), 0.2, 2.0)
    # cosines 1, 0.5, 0, -1; (0.5 - 0.2) / 0.8 = 0.375
    assert activation(edges(0, 1, 2, 3)).tolist() == pytest.approx([1.0, 0.375**2, 0.0, 0.0])


def test_any_clue_may_activate_a_unit_and_the_nearest_is_the_one_it_matched() -> None:
    activation = ClueActivation(snapshot_of(at_angles(0, 100, 40)), at_angles(0, 90), 0.0, 1.0)
    assert activation(edges(0, 1, 2)).tolist() == pytest.approx(np.cos(np.radians([0, 10, 40])).tolist())
    assert [activation.get_nearest_clue(edge) for edge in (0, 1, 2)] == [0, 1, 0]


def test_asking_about_nothing_computes_nothing() -> None:
    activation = ClueActivation(snapshot_of(at_angles(0)), at_angles(0), 0.0, 1.0)
    assert activation(edges()).tolist() == []
    assert activation.computed_count == 0
