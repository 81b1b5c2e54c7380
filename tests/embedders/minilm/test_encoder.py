from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from polyad.embedders.minilm.encoder import Network, WordPieceTokenizer, apply_gelu
from polyad.embedders.minilm.weights import MINILM, read_weights
from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder

_FOLDER = MINILM.get_folder()
REFERENCE = Tokenizer.from_file(str(_FOLDER / "tokenizer.json"))
REFERENCE.no_truncation()
REFERENCE.no_padding()
WORD_PIECES = WordPieceTokenizer((_FOLDER / "vocab.txt").read_text(encoding="utf-8").splitlines())

OLD = unicodedata.ucd_3_2_0
"""Unicode of 2002: the library knows no character that is newer than 2015, nor what later versions changed."""


def is_encodable(text: str) -> bool:
    kinds = [OLD.category(character) for character in text]
    return kinds == [unicodedata.category(character) for character in text] and not {"Cn", "Cs"} & set(kinds)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=60).filter(is_encodable))
def test_the_tokens_of_any_text_are_those_of_the_library(text: str) -> None:
    assert WORD_PIECES.split_windows(text, 1000) == [REFERENCE.encode(text).ids]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Where was the maker of the Bell of Tarn born?",
        "don't stop-gap e-mail@host.example £3.50 50% x^2 ~ `code` | a_b",
        "Ångström café naïve İstanbul ΣΊΣΥΦΟΣ straße ﬁne Ⅳ ½",
        "東京タワーは、1958年に建てられた。 한국어 العربية हिन्दी ไทย",
        "zero\u200bwidth soft\u00adhyphen no\u00a0break \u2028 \x00 \x85 \ufffd tab\tnew\nline\r\n",
        "a" * 100 + " " + "a" * 101 + " 🙂 👩‍👩‍👧 \u0301",
        "[CLS] is [MASK]ed, [cls] is not [SEP",
    ],
)
def test_the_tokens_of_unusual_texts_are_those_of_the_library(text: str) -> None:
    assert WORD_PIECES.split_windows(text, 1000) == [REFERENCE.encode(text).ids]


@pytest.mark.slow
def test_every_character_is_taken_as_the_library_takes_it_but_for_new_ones() -> None:
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    words = [f"ab{character}cd" for character in every if is_encodable(character)]
    texts = [" ".join(words[start : start + 500]) for start in range(0, len(words), 500)]
    expected = [encoding.ids for encoding in REFERENCE.encode_batch(texts)]
    assert [WORD_PIECES.split_windows(text, 100_000) for text in texts] == [[ids] for ids in expected]


def test_a_long_text_is_cut_into_windows_that_begin_and_end_as_texts_do() -> None:
    windows = WORD_PIECES.split_windows("one two three four five six seven", 5)
    begin, end = REFERENCE.token_to_id("[CLS]"), REFERENCE.token_to_id("[SEP]")
    assert [len(window) for window in windows] == [5, 5, 3]
    assert all((window[0], window[-1]) == (begin, end) for window in windows)
    whole = [id for window in windows for id in window[1:-1]]
    assert whole == REFERENCE.encode("one two three four five six seven", add_special_tokens=False).ids


@pytest.fixture(scope="module")
def network() -> Network:
    return Network(read_weights(MINILM.get_folder() / "model.safetensors"))


@pytest.fixture(scope="module")
def float32() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(precision="float32", device="cpu")


def test_gelu_is_that_of_torch_from_far_below_zero_to_far_above() -> None:
    import torch

    values = np.concatenate([np.linspace(-12, 12, 50_001), [-200, 200]]).astype(np.float32)
    expected = torch.nn.functional.gelu(torch.from_numpy(values.astype(np.float64))).numpy()
    np.testing.assert_allclose(apply_gelu(values), expected, atol=1e-6)


@pytest.mark.parametrize("length", [2, 3, 17, 128, 256])
def test_a_vector_is_that_of_sentence_transformers(
    network: Network, float32: SentenceTransformerEmbedder, length: int
) -> None:
    window = [101, *np.random.default_rng(length).integers(1000, 30_000, length - 2).tolist(), 102]
    expected = float32._encode_windows([window], "passage")[0]
    result = network.encode_windows([window])[0]
    np.testing.assert_allclose(result / np.linalg.norm(result), expected, atol=2e-6)


def test_vectors_have_the_dimension_of_the_model(network: Network) -> None:
    assert network.encode_windows([[101, 102]]).shape[1] == 384


def test_windows_of_any_lengths_have_the_same_vectors_together_as_alone(network: Network) -> None:
    rng = np.random.default_rng(0)
    windows = [rng.integers(1000, 30_000, length).tolist() for length in (1, 30, 7, 256, 2)]
    together = network.encode_windows(windows)
    alone = np.concatenate([network.encode_windows([window]) for window in windows])
    np.testing.assert_allclose(together, alone, atol=2e-6)
