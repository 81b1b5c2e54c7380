from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.embedded.columns import Column
from polyad.embedded.ids import Ids
from polyad.embedded.vectors import Vectors
from polyad.hypergraph.cosines import cosines
from polyad.model import FloatArray

DIRECTIONS = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6], [-1, 0]], dtype=np.float32)
CAME = st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.5, 1.0, 10.0])), max_size=5)
STEPS = st.lists(st.tuples(CAME, st.sets(st.integers(0, 12), max_size=4)), min_size=1, max_size=4)
"""Directions that come with scores, and which rows of those before go."""


def by_definition(
    rows: dict[int, tuple[int, float]], ids: Ids, vector: FloatArray, k: int, *, weighted: bool
) -> list[tuple[int, float]]:
    near = {row: float(cosines(DIRECTIONS[[place]], vector)[0]) for row, (place, _) in rows.items()}
    found = {row: np.float32(value) * np.float32(rows[row][1] if weighted else 1) for row, value in near.items()}
    return sorted(((row, float(value)) for row, value in found.items()), key=lambda pair: (-pair[1], ids[pair[0]]))[:k]


@settings(max_examples=200, deadline=None)
@given(steps=STEPS, k=st.integers(0, 6), weighted=st.booleans())
def test_the_nearest_are_those_with_the_highest_cosines_and_ties_go_by_id(
    steps: list[tuple[list[tuple[int, float]], set[int]]], k: int, weighted: bool
) -> None:
    vectors, ids, scores = Vectors.none(2), Ids.none(), Column.of(np.empty(0, dtype=np.float32))
    there: dict[int, tuple[int, float]] = {}
    count = 0
    questions = DIRECTIONS[:3]
    for came, gone in steps:
        known = sorted(gone & there.keys())
        vectors = vectors.advanced(
            np.array(known, dtype=np.int64), DIRECTIONS[np.array([place for place, _ in came], dtype=np.int64)]
        )
        ids = ids.extended([f"{row * 7 % 10}{row}" for row in range(count, count + len(came))])
        scores = scores.extended(np.array([score for _, score in came], dtype=np.float32))
        for row in known:
            del there[row]
        there |= dict(enumerate(came, count))
        count += len(came)
        found = vectors.nearest(questions, k, ids, scores if weighted else None)
        assert len(found) == len(questions)
        for question, (rows, near) in zip(questions, found, strict=True):
            expected = by_definition(there, ids, question, k, weighted=weighted)
            assert list(zip(rows.tolist(), near.tolist(), strict=True)) == expected
        rows = np.array(sorted(there), dtype=np.int64)
        assert np.array_equal(vectors.at(rows), DIRECTIONS[[there[row][0] for row in rows.tolist()]])


@pytest.mark.parametrize("cut", [0, 1, 997, 3000])
def test_where_vectors_lie_makes_no_difference(cut: int) -> None:
    random = np.random.default_rng(7)
    drawn = random.normal(size=(3000, 48)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    drawn[1500:1600] = drawn[3]  # the same, far apart
    ids = Ids.none().extended([f"{row:05}" for row in range(3000)])
    nothing = np.empty(0, dtype=np.int64)
    scores = Column.of(random.integers(1, 11, 3000).astype(np.float32))
    whole = Vectors.none(48).advanced(nothing, drawn)
    parts = Vectors(Column.of(drawn[:cut]), np.ones(cut, dtype=bool), 0).advanced(nothing, drawn[cut:])
    questions = drawn[[3, 2999]]
    for weighed in (None, scores):
        expected, found = (one.nearest(questions, 50, ids, weighed) for one in (whole, parts))
        for (rows, near), (other_rows, other_near) in zip(expected, found, strict=True):
            assert other_rows.tolist() == rows.tolist()
            assert other_near.tolist() == near.tolist()
    assert parts.nearest(questions[:1], 4, ids)[0][0].tolist() == [3, 1500, 1501, 1502]
