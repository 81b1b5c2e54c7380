from __future__ import annotations

import numpy as np
import pytest
import torch

from polyad.embedders.minilm.network import Network, apply_gelu
from polyad.embedders.minilm.weights import get_model_folder, read_weights
from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder


@pytest.fixture(scope="module")
def network() -> Network:
    return Network(read_weights(get_model_folder() / "model.safetensors"))


@pytest.fixture(scope="module")
def float32() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(precision="float32", device="cpu")


def test_gelu_is_that_of_torch_from_far_below_zero_to_far_above() -> None:
    values = np.concatenate([np.linspace(-12, 12, 50_001), [-200, 200]]).astype(np.float32)
    expected = torch.nn.functional.gelu(torch.from_numpy(values.astype(np.float64))).numpy()
    np.testing.assert_allclose(apply_gelu(values), expected, atol=1e-6)


@pytest.mark.parametrize("length", [2, 3, 17, 128, 256])
def test_a_vector_is_that_of_sentence_transformers(
    network: Network, float32: SentenceTransformerEmbedder, length: int
) -> None:
    window = [101, *np.random.default_rng(length).integers(1000, 30_000, length - 2).tolist(), 102]
    expected = float32._encode_windows([window], "passage")[0]
    found = network.encode_windows([window])[0]
    np.testing.assert_allclose(found / np.linalg.norm(found), expected, atol=2e-6)


def test_it_is_as_wide_as_the_model(network: Network) -> None:
    assert network.dimension == network.encode_windows([[101, 102]]).shape[1] == 384


def test_windows_of_any_lengths_have_the_same_vectors_together_as_alone(network: Network) -> None:
    rng = np.random.default_rng(0)
    windows = [rng.integers(1000, 30_000, length).tolist() for length in (1, 30, 7, 256, 2)]
    together = network.encode_windows(windows)
    alone = np.concatenate([network.encode_windows([window]) for window in windows])
    np.testing.assert_allclose(together, alone, atol=2e-6)
