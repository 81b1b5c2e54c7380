from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.hypergraph.sparse import compute_cosines
from polyad.model import FloatArray, IntArray
from polyad.snapshot.binary_codes import BinaryCodes
from polyad.snapshot.columns import Column, LiveRows, StringColumn
from polyad.snapshot.vectors import Vectors
from tests.examples import count_examples

DIRECTIONS = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6], [-1, 0]], dtype=np.float32)
CAME = st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.5, 1.0, 10.0])), max_size=5)
STEPS = st.lists(
    st.tuples(CAME, st.sets(st.integers(0, 12), max_size=4), st.sets(st.integers(0, 12), max_size=3), st.booleans()),
    min_size=1,
    max_size=4,
)
"""In each step: added vectors with scores, deleted rows, replaced rows, and whether clusters are built."""


def in_clusters(vectors: Vectors, searched: int) -> Vectors:
    """Return the vectors as they would be loaded from files, with clusters."""
    cells = vectors.build_clusters()
    column = Column.from_array(np.concatenate(list(vectors.iterate_blocks(cells))))
    cells, codes = cells.with_nprobe(searched), BinaryCodes.from_vectors(column.base)
    return replace(vectors, column=column, clusters=cells, codes=codes, appended_clusters=vectors.appended_clusters[:0])


def advanced(vectors: Vectors, deleted: IntArray, came: FloatArray) -> Vectors:
    return vectors.with_changes(vectors.live.with_changes(deleted, len(came)), came)


def by_definition(
    rows: dict[int, tuple[int, float]], ids: StringColumn, vector: FloatArray, k: int, *, weighted: bool
) -> list[tuple[int, float]]:
    near = {row: float(compute_cosines(DIRECTIONS[[place]], vector)[0]) for row, (place, _) in rows.items()}
    values = {row: np.float32(value) * np.float32(rows[row][1] if weighted else 1) for row, value in near.items()}
    return sorted(
        ((row, float(value)) for row, value in values.items()), key=lambda pair: (-pair[1], ids.take([pair[0]]))
    )[:k]


@settings(max_examples=count_examples(200), deadline=None)
@given(steps=STEPS, k=st.integers(0, 6), weighted=st.booleans())
def test_the_nearest_are_those_with_the_highest_cosines_and_ties_go_by_id(
    steps: list[tuple[list[tuple[int, float]], set[int], set[int], bool]], k: int, weighted: bool
) -> None:
    vectors, ids, scores = (
        Vectors.empty(2),
        StringColumn.from_strings([]),
        Column.from_array(np.empty(0, dtype=np.float32)),
    )
    there: dict[int, tuple[int, float]] = {}
    count = 0
    questions = DIRECTIONS[:3]
    for came, deleted, turned, is_put_in_cells in steps:
        existing = sorted(deleted & there.keys())
        vectors = advanced(
            vectors,
            np.array(existing, dtype=np.int64),
            DIRECTIONS[np.array([place for place, _ in came], dtype=np.int64)],
        )
        ids = ids.append([f"{row * 7 % 10}{row}" for row in range(count, count + len(came))])
        scores = scores.append(np.array([score for _, score in came], dtype=np.float32))
        for row in existing:
            del there[row]
        there |= dict(enumerate(came, count))
        count += len(came)
        turning = sorted(turned & there.keys())
        there |= {row: (4 - there[row][0], there[row][1]) for row in turning}
        vectors = vectors.replace(
            np.array(turning, dtype=np.int64), DIRECTIONS[np.array([there[row][0] for row in turning], dtype=np.int64)]
        )
        if is_put_in_cells and there:
            vectors = in_clusters(vectors, searched=0)
        numbers = vectors.nearest(questions, k, ids, scores if weighted else None)
        assert len(numbers) == len(questions)
        for question, (rows, near) in zip(questions, numbers, strict=True):
            expected = by_definition(there, ids, question, k, weighted=weighted)
            assert list(zip(rows.tolist(), near.tolist(), strict=True)) == expected
        rows = np.array(sorted(there), dtype=np.int64)
        assert np.array_equal(vectors.take(rows), DIRECTIONS[[there[row][0] for row in rows.tolist()]])


@pytest.mark.parametrize("cut", [0, 1, 997, 3000])
def test_results_do_not_depend_on_base_and_appended_vectors(cut: int) -> None:
    random = np.random.default_rng(7)
    drawn = random.normal(size=(3000, 48)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    drawn[1500:1600] = drawn[3]  # the same, far apart
    ids = StringColumn.from_strings([]).append([f"{row:05}" for row in range(3000)])
    nothing = np.empty(0, dtype=np.int64)
    scores = Column.from_array(random.integers(1, 11, 3000).astype(np.float32))
    whole = advanced(Vectors.empty(48), nothing, drawn)
    parts = advanced(
        Vectors(Column.from_array(drawn[:cut]), LiveRows.from_mask(np.ones(cut, dtype=bool))), nothing, drawn[cut:]
    )
    questions = drawn[[3, 2999]]
    for weighed in (None, scores):
        expected, numbers = (one.nearest(questions, 50, ids, weighed) for one in (whole, parts))
        for (rows, near), (other_rows, other_near) in zip(expected, numbers, strict=True):
            assert other_rows.tolist() == rows.tolist()
            assert other_near.tolist() == near.tolist()
    assert parts.nearest(questions[:1], 4, ids)[0][0].tolist() == [3, 1500, 1501, 1502]


def near_others(count: int, dimension: int = 32) -> FloatArray:
    """Return unit vectors around some dozens of directions."""
    random = np.random.default_rng(7)
    about = random.normal(size=(60, dimension))[random.integers(60, size=count)]
    drawn = (about + 0.6 * random.normal(size=(count, dimension))).astype(np.float32)
    unit: FloatArray = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def test_a_search_of_few_clusters_finds_most_of_the_nearest_live_vectors() -> None:
    nothing, drawn = np.empty(0, dtype=np.int64), near_others(7000)
    ids = StringColumn.from_strings([]).append([f"{row:05}" for row in range(7000)])
    deleted, turned = np.arange(0, 7000, 7), np.arange(1, 7000, 70)
    vectors = in_clusters(advanced(Vectors.empty(32), nothing, drawn[:5000]), searched=20)
    vectors = advanced(advanced(vectors, deleted[deleted < 5000], drawn[5000:]), deleted[deleted >= 5000], drawn[:0])
    vectors = vectors.replace(turned, drawn[turned + 1])
    exact = replace(vectors, clusters=None if vectors.clusters is None else vectors.clusters.with_nprobe(0))
    questions = drawn[2:7000:350]
    hits = 0
    for (expected, _), question in zip(exact.nearest(questions, 20, ids), questions, strict=True):
        ((rows, near),) = vectors.nearest(question[None], 20, ids)
        assert len(rows) == 20
        assert not np.isin(rows, deleted).any()
        assert np.array_equal(near, compute_cosines(vectors.take(rows), question))
        assert (np.diff(near) <= 0).all()
        hits += len(np.intersect1d(rows, expected))
    assert hits > 0.95 * 20 * len(questions)
    assert vectors.measure_recall(ids) > 0.95
    looked_at, _ = vectors._compute_products(questions[:1], 1)
    assert len(looked_at) < 3000, "or the search were no faster"
    for (more, _), question in zip(vectors.nearest(questions[:2], 20, ids), questions, strict=False):
        ((rows, _),) = vectors.nearest(question[None], 20, ids)
        ((expected, _),) = exact.nearest(question[None], 20, ids)
        assert np.isin(expected, more).sum() >= np.isin(expected, rows).sum(), "what one looks into serves the other"


def test_a_search_for_many_vectors_reads_more_clusters() -> None:
    vectors = in_clusters(advanced(Vectors.empty(32), np.empty(0, dtype=np.int64), near_others(2000)), searched=1)
    ids = StringColumn.from_strings([]).append([f"{row:05}" for row in range(2000)])
    ((rows, _),) = vectors.nearest(near_others(1), 2000, ids)
    assert sorted(rows.tolist()) == list(range(2000))


def test_deleted_vectors_do_not_displace_live_ones() -> None:
    others, random = near_others(3000), np.random.default_rng(5)
    question = others[:1]
    old = question + 0.01 * random.normal(size=(2000, 32)).astype(np.float32)
    old /= np.linalg.norm(old, axis=1, keepdims=True)
    ids = StringColumn.from_strings([]).append([f"{row:05}" for row in range(5000)])
    nothing = np.empty(0, dtype=np.int64)
    vectors = in_clusters(advanced(Vectors.empty(32), nothing, np.concatenate([old, others])), searched=300)
    vectors = advanced(vectors, np.arange(2000), old[:0])
    ((rows, _),) = vectors.nearest(question, 5, ids)
    expected = np.argsort(-(others @ question[0]))[:5] + 2000
    assert rows[0] == 2000
    assert np.isin(rows, expected).sum() >= 4
