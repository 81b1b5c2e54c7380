"""Binary codes and their distances."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.model import BoolArray, FloatArray
from polyad.snapshot.binary_codes import BinaryCodes, Bits


def unit(vectors: npt.NDArray[np.floating]) -> FloatArray:
    values: FloatArray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return values


def planes_of(bits: Bits) -> BoolArray:
    """Return on which side of each plane each vector is; ``[vectors, planes]``."""
    return np.unpackbits(np.ascontiguousarray(bits.T).view(np.uint8), axis=1).astype(bool)


def groups(count: int, dimension: int) -> FloatArray:
    """Return vectors around some dozens of directions."""
    random = np.random.default_rng(7)
    about = random.normal(size=(40, dimension))[random.integers(40, size=count)]
    return (about + 0.7 * random.normal(size=(count, dimension))).astype(np.float32)


@settings(deadline=None)
@given(st.integers(1, 70), st.lists(st.integers(0, 12), min_size=1, max_size=5, unique=True))
def test_the_distance_is_the_number_of_planes_between_two_vectors(dimension: int, parts: list[int]) -> None:
    drawn = unit(np.random.default_rng(dimension).normal(size=(130, dimension)).astype(np.float32))
    codes, questions = BinaryCodes.from_vectors(drawn), drawn[[3, 77]]
    spans = [slice(10 * part, 10 * part + 10) for part in sorted(parts)]
    places = np.concatenate([np.arange(span.start, span.stop) for span in spans])
    sides, items = (planes_of(bits) for bits in (codes.bits[:, places], codes.encode(questions)))
    expected = [(sides != question).sum(axis=1).tolist() for question in items]
    assert codes.compute_distances(spans, questions).tolist() == expected


@pytest.mark.parametrize("dimension", [50, 384])
@pytest.mark.parametrize("shape", ["about the middle", "far from it", "mostly 0"])
def test_the_nearest_vectors_have_near_codes(shape: str, dimension: int) -> None:
    vectors = groups(4000, dimension)
    if shape == "far from it":
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) + 2 / np.float32(np.sqrt(dimension))
    if shape == "mostly 0":
        vectors = np.where(vectors > np.quantile(vectors, 0.9), vectors, 0)
        vectors[:, 0] += 0.1
    vectors = unit(vectors)
    codes, count = BinaryCodes.from_vectors(vectors), 0
    for question in vectors[:4000:100]:
        nearest = np.argsort(-(vectors @ question))[:10]
        count += int(
            np.isin(nearest, np.argsort(codes.compute_distances([slice(0, 4000)], question[None])[0])[:480]).sum()
        )
    assert count > 0.97 * 400


def test_equal_vectors_have_equal_codes() -> None:
    vectors = unit(groups(100, 96))
    one, other = BinaryCodes.from_vectors(vectors), BinaryCodes.from_vectors(vectors)
    assert one.bits.shape == (2, 100)
    assert np.array_equal(one.bits, other.bits)


def test_a_bit_is_the_side_of_a_plane() -> None:
    vectors = unit(groups(100, 96))
    codes = BinaryCodes.from_vectors(vectors)
    beyond = vectors.astype(np.float64) @ codes.directions - codes.thresholds
    is_set = planes_of(codes.bits)
    assert (is_set == (beyond > 0))[np.abs(beyond) > 1e-6].all()
    assert 0.4 < is_set.mean() < 0.6, "the planes go through the middle"
    assert np.allclose(codes.directions @ codes.directions.T, np.eye(96), atol=1e-5), "no direction is lost"
