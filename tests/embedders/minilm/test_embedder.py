from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from polyad.config import EncoderSettings
from polyad.embedders.minilm.embedder import MiniLMEmbedder
from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder
from polyad.engine import Engine
from polyad.engine.loaders import load_embedder
from polyad.errors import ConfigurationError
from tests.conftest import SIX_DOCUMENTS
from tests.examples import count_examples

WORDS = ("the", "river", "bank", "of", "Oslo", "was", "flooded", "in", "1961", "Keller's", "東京", "café")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=300).map(" ".join)


@pytest.fixture(scope="module")
def light() -> MiniLMEmbedder:
    return MiniLMEmbedder()


@pytest.fixture(scope="module")
def full() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(precision="float32", device="cpu")


@settings(max_examples=count_examples(10), deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_vectors_are_those_of_sentence_transformers(
    light: MiniLMEmbedder, full: SentenceTransformerEmbedder, texts: list[str]
) -> None:
    np.testing.assert_allclose(light.encode(texts, "passage"), full.encode(texts, "passage"), atol=5e-6)


def test_with_torch_installed_numpy_embeds_queries_and_few_passages_and_torch_many(
    light: MiniLMEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyad.embedders.minilm.embedder._MAX_NUMPY_CHARACTERS", 50)
    both, texts = load_embedder("all-MiniLM-L6-v2"), ["Keller's café", "the bank of Oslo"]
    assert (both.name, both.dimension) == (light.name, light.dimension)
    np.testing.assert_array_equal(both.encode(texts, "query"), light.encode(texts, "query"))
    np.testing.assert_array_equal(both.encode(texts, "passage"), light.encode(texts, "passage"))
    torch = load_embedder("all-MiniLM-L6-v2", EncoderSettings(backend="torch"))
    np.testing.assert_array_equal(both.encode(texts, "passage"), torch.encode(texts, "passage"))


def test_a_few_passages_are_embedded_without_importing_torch() -> None:
    program = (
        "import sys; from polyad.engine.loaders import load_embedder; "
        "load_embedder('all-MiniLM-L6-v2').encode(['the bank of Oslo'] * 9, 'passage'); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_texts_vector_is_bit_identical_whatever_is_embedded_beside_it(light: MiniLMEmbedder) -> None:
    texts = [" ".join((WORDS * 30)[:words]) for words in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 377)]
    together = light.encode(texts, "passage")
    backwards = light.encode(texts[::-1], "passage")[::-1]
    alone = np.concatenate([light.encode([text], "query") for text in texts])
    assert together.tobytes() == alone.tobytes() == backwards.tobytes()


def test_an_index_made_with_one_is_searched_with_the_other(
    tmp_path: Path, light: MiniLMEmbedder, full: SentenceTransformerEmbedder
) -> None:
    question = "Where was the maker of the Bell of Tarn born?"
    with Engine.open(tmp_path / "kb", embedder=full) as engine:
        engine.index_documents(SIX_DOCUMENTS)
        expected = engine.search(question, 3).passages
    with Engine.open(tmp_path / "kb", embedder=light, create=False) as engine:
        passages = engine.search(question, 3).passages
    assert [hit.passage.id for hit in passages] == [hit.passage.id for hit in expected]
    assert [hit.score for hit in passages] == pytest.approx([hit.score for hit in expected], abs=0.05)


def test_a_device_that_numpy_does_not_compute_on_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"device is 'cuda'.*polyad\[local\]"):
        MiniLMEmbedder.from_name("all-MiniLM-L6-v2", EncoderSettings(device="cuda"))


def test_each_matrix_product_of_numpy_is_left_to_one_thread(light: MiniLMEmbedder) -> None:
    light.encode(["Oslo"], "query")
    of_numpy = [pool for pool in threadpool_info() if pool["user_api"] == "blas" and "numpy" in pool["filepath"]]
    assert {pool["num_threads"] for pool in of_numpy} <= {1}
