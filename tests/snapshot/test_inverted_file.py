from __future__ import annotations

import numpy as np
import pytest

from polyad.model import IntArray
from polyad.snapshot.inverted_file import InvertedFile, assign_clusters, choose_cluster_count, compute_centroids

AXES = np.eye(4, dtype=np.float32)


def test_rows_of_a_cluster_are_contiguous() -> None:
    cells = InvertedFile.from_assignments(AXES[:3], np.array([2, 0, 2, 0, 0], dtype=np.int32))
    assert cells.offsets.tolist() == [0, 3, 3, 5]
    assert cells.rows.tolist() == [1, 3, 4, 0, 2]
    assert cells.places.tolist() == [3, 0, 4, 1, 2]
    assert cells.cluster_of_row.tolist() == [2, 0, 2, 0, 0]


def test_deleted_rows_lie_behind_all_clusters() -> None:
    cells = InvertedFile.from_assignments(AXES[:2], np.array([2, 0, 2, 1, 0], dtype=np.int32))
    assert cells.offsets.tolist() == [0, 2, 3]
    assert cells.rows.tolist() == [1, 4, 3, 0, 2]
    assert cells.places.tolist() == [3, 0, 4, 2, 1]
    assert cells.cluster_of_row.tolist() == [2, 0, 2, 1, 0]
    assert cells.deleted_count == 2
    assert cells.get_spans(np.array([0, 1]))[1].tolist() == [0, 1, 2]


def test_a_search_reads_the_nearest_clusters() -> None:
    of_rows: IntArray = np.repeat(np.arange(4), 100)
    cells = InvertedFile.from_assignments(AXES, of_rows.astype(np.int32))
    question = np.array([0.1, 0.9, 0.4, -0.1], dtype=np.float32)
    assert cells.find_nearest_clusters(question[None], 1).tolist() == [0, 1, 2, 3], "without a number of cells into all"
    assert cells.with_nprobe(1).find_nearest_clusters(question[None], 1).tolist() == [1]
    assert cells.with_nprobe(2).find_nearest_clusters(question[None], 1).tolist() == [1, 2]
    assert cells.with_nprobe(1).find_nearest_clusters(question[None], 5).tolist() == [1, 2], (
        "the first holds too few to choose from"
    )
    assert cells.with_nprobe(9).find_nearest_clusters(question[None], 1000).tolist() == [0, 1, 2, 3]


def test_centroids_are_near_the_vectors() -> None:
    random = np.random.default_rng(7)
    drawn = AXES[random.integers(4, size=400)] + 0.05 * random.normal(size=(400, 4)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    centres = compute_centroids(drawn.__getitem__, np.arange(400))
    assert np.allclose(np.linalg.norm(centres, axis=1), 1, atol=1e-5)
    assert (centres.max(axis=1) > 0.9).all()
    assert set(centres.argmax(axis=1).tolist()) == {0, 1, 2, 3}
    assert np.array_equal(centres, compute_centroids(drawn.__getitem__, np.arange(400)))
    nearest = assign_clusters(drawn, centres)
    assert (centres[nearest].argmax(axis=1) == drawn.argmax(axis=1)).all()


def test_zero_vectors_have_clusters() -> None:
    nothing = np.zeros((10, 4), dtype=np.float32)
    cells = assign_clusters(nothing, compute_centroids(nothing.__getitem__, np.arange(10)))
    assert len(cells) == 10


@pytest.mark.parametrize(("rows", "expected"), [(1, 8), (200_000, 4096), (900_000, 8192), (1_200_000, 8192)])
def test_the_number_of_clusters_grows_with_the_root_of_the_rows(rows: int, expected: int) -> None:
    assert choose_cluster_count(rows) == expected
