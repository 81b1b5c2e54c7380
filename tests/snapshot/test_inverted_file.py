from __future__ import annotations

import numpy as np
import pytest

from polyad.model import IntArray
from polyad.snapshot.inverted_file import InvertedFile, cell_count, centres_of, nearest_centres

AXES = np.eye(4, dtype=np.float32)


def test_every_row_lies_in_one_cell_beside_those_of_its_cell() -> None:
    cells = InvertedFile.of(AXES[:3], np.array([2, 0, 2, 0, 0], dtype=np.int32))
    assert cells.offsets.tolist() == [0, 3, 3, 5]
    assert cells.rows.tolist() == [1, 3, 4, 0, 2]
    assert cells.places.tolist() == [3, 0, 4, 1, 2]
    assert cells.of_rows.tolist() == [2, 0, 2, 0, 0]


def test_what_has_gone_lies_behind_all_cells() -> None:
    cells = InvertedFile.of(AXES[:2], np.array([2, 0, 2, 1, 0], dtype=np.int32))
    assert cells.offsets.tolist() == [0, 2, 3]
    assert cells.rows.tolist() == [1, 4, 3, 0, 2]
    assert cells.places.tolist() == [3, 0, 4, 2, 1]
    assert cells.of_rows.tolist() == [2, 0, 2, 1, 0]
    assert cells.left_out == 2
    assert cells.spans(np.array([0, 1]))[1].tolist() == [0, 1, 2]


def test_a_search_looks_into_the_cells_nearest_to_it() -> None:
    of_rows: IntArray = np.repeat(np.arange(4), 100)
    cells = InvertedFile.of(AXES, of_rows.astype(np.int32))
    question = np.array([0.1, 0.9, 0.4, -0.1], dtype=np.float32)
    assert cells.near(question[None], 1).tolist() == [0, 1, 2, 3], "without a number of cells into all"
    assert cells.looking_into(1).near(question[None], 1).tolist() == [1]
    assert cells.looking_into(2).near(question[None], 1).tolist() == [1, 2]
    assert cells.looking_into(1).near(question[None], 5).tolist() == [1, 2], "the first holds too few to choose from"
    assert cells.looking_into(9).near(question[None], 1000).tolist() == [0, 1, 2, 3]


def test_centres_are_where_vectors_are() -> None:
    random = np.random.default_rng(7)
    drawn = AXES[random.integers(4, size=400)] + 0.05 * random.normal(size=(400, 4)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    centres = centres_of(drawn.__getitem__, np.arange(400))
    assert np.allclose(np.linalg.norm(centres, axis=1), 1, atol=1e-5)
    assert (centres.max(axis=1) > 0.9).all()
    assert set(centres.argmax(axis=1).tolist()) == {0, 1, 2, 3}
    assert np.array_equal(centres, centres_of(drawn.__getitem__, np.arange(400)))
    nearest = nearest_centres(drawn, centres)
    assert (centres[nearest].argmax(axis=1) == drawn.argmax(axis=1)).all()


def test_of_vectors_that_say_nothing_there_are_cells_too() -> None:
    nothing = np.zeros((10, 4), dtype=np.float32)
    cells = nearest_centres(nothing, centres_of(nothing.__getitem__, np.arange(10)))
    assert len(cells) == 10


@pytest.mark.parametrize(("rows", "expected"), [(1, 8), (200_000, 4096), (900_000, 8192), (1_200_000, 8192)])
def test_there_are_some_root_of_the_rows_many_cells(rows: int, expected: int) -> None:
    assert cell_count(rows) == expected
