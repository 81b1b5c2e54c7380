from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polyad.hypergraph.sparse import compute_cosines, compute_dot_product_matrix


@given(st.integers(1, 80), st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_equal_vectors_tie_wherever_they_stand_and_never_exceed_one(rows: int, dimension: int, seed: int) -> None:
    vector = np.random.default_rng(seed).normal(size=dimension).astype(np.float32)
    vector /= np.linalg.norm(vector)
    values = compute_cosines(np.tile(vector, (rows, 1)), vector)
    assert values.max() <= 1
    assert len(set(values.tolist())) == 1
    assert values.dtype == np.float32


def test_cosines_with_one_vector_equal_those_with_several() -> None:
    vectors = np.eye(3, dtype=np.float32)
    assert np.array_equal(compute_cosines(vectors, vectors)[:, 1], compute_cosines(vectors, vectors[1]))


@given(st.integers(1, 5), st.integers(0, 300))
def test_products_of_some_rows_are_those_of_the_same_vectors_copied(queries: int, count: int) -> None:
    generator = np.random.default_rng(count)
    vectors = generator.normal(size=(50, 384)).astype(np.float32)
    questions = generator.normal(size=(queries, 384)).astype(np.float32)
    rows = generator.integers(0, len(vectors), count)
    products = compute_dot_product_matrix(vectors, questions, rows)
    assert products.shape == (queries, count)
    np.testing.assert_allclose(products, compute_dot_product_matrix(vectors[rows], questions), atol=1e-4)
