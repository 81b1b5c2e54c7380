from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tokenizers
from tokenizers.models import Unigram

from polyad.config import EncoderSettings
from polyad.embedders.multilingual_e5.embedder import MultilingualE5Embedder, OriginalMultilingualE5Embedder, read_model
from polyad.embedders.multilingual_e5.tokenizer import UnigramTokenizer
from polyad.embedders.multilingual_e5.weights import MULTILINGUAL_E5, read_model_file
from polyad.engine.loaders import load_embedder, resolve_embedder_name
from polyad.errors import ConfigurationError, ModelNotFoundError
from tests.embedders.multilingual_e5.small_model import write_small_model

needs_model = pytest.mark.skipif(MULTILINGUAL_E5.find_folder() is None, reason="the model is not on this machine")


def test_the_arrays_of_a_file_are_decompressed(tmp_path: Path) -> None:
    arrays = write_small_model(tmp_path / "m", "abc")
    model = read_model_file(tmp_path / "m")
    assert model.pieces == [b"<s>", b"<pad>", b"</s>", b"<unk>", "\u2581".encode(), b"a", b"b", b"c"]
    np.testing.assert_array_equal(model.words[np.array([5, 0])], arrays["emb.word"][[5, 0]])
    for name, key in {
        "encoder.layer.0.attention.self.query.weight": "l0.q.w",
        "encoder.layer.0.output.dense.weight": "l0.fo.w",
        "encoder.layer.0.attention.output.LayerNorm.weight": "l0.aln.w",
        "embeddings.position_embeddings.weight": "emb.pos",
    }.items():
        np.testing.assert_array_equal(model.weights[name], arrays[key])


@pytest.mark.parametrize("damage", [b"", b"E5S2", b"E5S1" + bytes(60), b"\xff" * 200])
def test_a_file_of_another_format_is_named(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "e5.bin").write_bytes(damage)
    with pytest.raises(ModelNotFoundError, match=r"e5\.bin.*cannot be read"):
        read_model(tmp_path / "e5.bin")


def test_a_text_has_the_pieces_of_the_library_tokenizers() -> None:
    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "\u2581",
        "\u2581be",
        "ll",
        "l",
        "b",
        "e",
        "\u2581the",
        "鐘",
        "\u2581t",
        "h",
    ]
    scores = np.array([0, 0, 0, 0, -5, -2, -2, -4, -4, -4, -1, -3, -3, -4], dtype=np.float32)
    vocabulary = list(zip(pieces, scores.tolist(), strict=True))
    reference = tokenizers.Tokenizer(Unigram(vocabulary, unk_id=3))
    tokenizer = UnigramTokenizer([piece.encode() for piece in pieces], scores)
    for text in ("the bell", "the bell tt", "鐘 the 鐘e", "hhh"):
        expected = reference.encode("\u2581" + text.replace(" ", "\u2581")).ids
        assert tokenizer.split_windows(text, 64) == [[0, *expected, 2]]


def test_compatible_characters_and_spaces_are_normalised() -> None:
    tokenizer = UnigramTokenizer([b"<s>", b"</s>", b"<unk>", "\u2581".encode(), b"A", b"1"], np.zeros(6, np.float32))
    assert tokenizer.split_windows("  \uff21\u2003\u2460\n", 16) == tokenizer.split_windows("A 1", 16)


def test_a_long_text_has_windows_and_an_empty_text_has_one() -> None:
    tokenizer = UnigramTokenizer([b"<s>", b"</s>", b"<unk>", "\u2581".encode(), b"a"], np.zeros(5, np.float32))
    assert tokenizer.split_windows("aaaa", 5) == [[0, 3, 4, 4, 1], [0, 4, 4, 1]]
    assert tokenizer.split_windows("", 5) == [[0, 1]]


@pytest.mark.parametrize("name", ["multilingual-e5-small", "intfloat/multilingual-e5-small"])
def test_both_names_of_the_model_are_one_embedder(name: str) -> None:
    assert resolve_embedder_name(name) == "multilingual-e5-small"


def test_the_original_weights_count_if_they_are_available(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, settings: EncoderSettings) -> str:
        if is_offline:
            raise ConfigurationError("offline")
        return name

    is_offline = False
    module = "polyad.embedders.multilingual_e5.embedder"
    monkeypatch.setattr(OriginalMultilingualE5Embedder, "from_name", load)
    monkeypatch.setattr(MultilingualE5Embedder, "from_name", lambda *_: "4 bits")
    monkeypatch.setattr(f"{module}._is_cached", lambda: True)
    for backend in ("auto", "torch"):
        loaded: object = load_embedder("multilingual-e5-small", EncoderSettings(backend=backend))
        assert loaded == "intfloat/multilingual-e5-small"
    assert load_embedder("multilingual-e5-small", EncoderSettings(backend="numpy")) == "4 bits"  # type: ignore[comparison-overlap]
    is_offline = True
    assert load_embedder("multilingual-e5-small") == "4 bits"  # type: ignore[comparison-overlap]
    with pytest.raises(ConfigurationError, match="offline"):
        load_embedder("multilingual-e5-small", EncoderSettings(backend="torch"))


@needs_model
def test_a_question_is_nearest_to_its_passage_in_every_language() -> None:
    embedder = load_embedder("multilingual-e5-small", EncoderSettings(backend="numpy"))
    passages = [
        "The Bell of Tarn was cast by Ines Moreau in 1702.",
        "Otter leben am Ufer des Isk und fressen Fische.",
        "東京タワーは、1958年に建てられた。",
        "Комитет собирался по понедельникам и обсуждал бюджет.",
    ]
    questions = ["1702年谁铸造了这座钟?", "What do otters eat?", "متى بني برج طوكيو؟", "Wann traf sich der Ausschuss?"]
    scores = embedder.encode(questions, "query") @ embedder.encode(passages, "passage").T
    assert scores.argmax(axis=1).tolist() == [0, 1, 2, 3]
    assert scores.min() > 0.6
