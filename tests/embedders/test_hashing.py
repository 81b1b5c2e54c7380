from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from polyad.config import EncoderSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import ConfigurationError

TEXTS = ["", " ", "?!", "Anna met Bob.", "Bob met Anna", "A river.", "东京塔", "\ud800", "\x00", "a " * 5000]


@pytest.mark.parametrize("dimension", [1, 3, 64, 384])
def test_vectors_have_length_one_and_the_dimension_asked_for(dimension: int) -> None:
    embedder = HashingEmbedder(dimension)
    vectors = embedder.encode(TEXTS, "passage")
    assert vectors.shape == (len(TEXTS), embedder.dimension) == (len(TEXTS), dimension)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([1.0] * len(TEXTS), abs=1e-6)
    assert embedder.name == f"hashing:{dimension}"


def test_texts_that_share_words_are_near() -> None:
    one, same, none = HashingEmbedder(256).encode(["Anna met Bob.", "bob met ANNA", "A river."], "query")
    assert one.tobytes() == same.tobytes()
    assert abs(float(one @ none)) < 0.3
    tower, tokyo = HashingEmbedder(256).encode(["东京塔", "东京"], "query")
    assert float(tower @ tokyo) > 0.5


def test_a_vector_depends_on_its_text_alone() -> None:
    together = HashingEmbedder(32).encode(TEXTS, "passage")
    apart = [HashingEmbedder(32).encode([text], "passage")[0] for text in TEXTS]
    assert together.tobytes() == np.stack(apart).tobytes()
    assert HashingEmbedder(32).encode([], "passage").shape == (0, 32)


def test_every_process_computes_the_same() -> None:
    script = (
        "from polyad.embedders.hashing import HashingEmbedder;"
        "print(HashingEmbedder(8).encode(['Anna met Bob.'], 'query').tobytes().hex())"
    )
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert other == HashingEmbedder(8).encode(["Anna met Bob."], "query").tobytes().hex()


def test_a_dimension_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="dimension is 0"):
        HashingEmbedder(0)
    with pytest.raises(ConfigurationError):  # the name stands in an index, which may come from another person
        HashingEmbedder.from_name("1000000000", EncoderSettings())
