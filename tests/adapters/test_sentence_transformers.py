# ruff: noqa: RUF001  (text in the punctuation of other languages)
from __future__ import annotations

from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyad.adapters.sentence_transformers import SentenceTransformerEmbedder
from polyad.errors import ConfigurationError
from polyad.protocols import Embedder

WORDS = "the river bank of Oslo was flooded in 1961 when Anna Keller’s boat sank 东京 café ½ x".split()  # noqa: SIM905
TEXTS = st.lists(st.sampled_from(WORDS), max_size=150).map(" ".join)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, others=st.lists(TEXTS, max_size=12), place=st.integers(0, 12))
def test_a_texts_vector_is_bit_identical_whatever_is_embedded_beside_it(
    embedder: Embedder, text: str, others: list[str], place: int
) -> None:
    alone = embedder.encode([text], "passage")[0]
    among = [*others[:place], text, *others[place:]]
    beside = embedder.encode(among, "passage")[min(place, len(others))]
    assert beside.tobytes() == alone.tobytes()


@pytest.mark.parametrize("words", [2, 8, 30, 90])
def test_a_texts_vector_is_bit_identical_in_batches_of_any_size(embedder: Embedder, words: int) -> None:
    # These lengths and sizes are among those at which matrix kernels round differently if nothing is done about it.
    text = " ".join((WORDS * words)[:words])
    alone = embedder.encode([text], "passage")[0]
    for count in (2, 3, 4, 6, 9, 40):
        assert embedder.encode([text] * count, "passage")[-1].tobytes() == alone.tobytes()


def test_vectors_have_length_one_and_the_order_of_their_texts(embedder: Embedder) -> None:
    texts = ["", " ", "Oslo", "a " * 700, "东京塔", "\x00", "Oslo"]
    vectors = embedder.encode(texts, "passage")
    assert vectors.shape == (len(texts), embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([1.0] * len(texts), abs=1e-5)
    assert vectors[2].tobytes() == vectors[6].tobytes()
    assert vectors[2].tobytes() != vectors[4].tobytes()


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.encode([], "passage").shape == (0, embedder.dimension)
    assert embedder.encode([], "query").shape == (0, embedder.dimension)


def test_the_end_of_a_text_that_is_longer_than_the_model_reads_counts(embedder: Embedder) -> None:
    body = "The committee met on every second Monday and discussed the budget. " * 60
    plain, changed, unlike = embedder.encode(
        [body + "It rained.", body + "Volcanoes erupt under the sea.", "Volcanoes erupt under the sea. " * 60],
        "passage",
    )
    assert plain.tobytes() != changed.tobytes()
    assert float(changed @ unlike) > float(plain @ unlike)


def test_a_long_text_is_near_to_what_stands_at_its_end(embedder: Embedder) -> None:
    body, end = "Budgets are discussed by the committee. " * 60, "Volcanoes erupt under the sea. " * 60
    vectors = embedder.encode([body + end, body, "Volcanoes erupt under the sea."], "passage")
    assert float(vectors[0] @ vectors[2]) > float(vectors[1] @ vectors[2]) + 0.2


def test_likeness_in_meaning_is_nearness(embedder: Embedder) -> None:
    vectors = embedder.encode(["A cat sat on the mat.", "A kitten rested on a rug.", "Interest rates rose."], "passage")
    assert float(vectors[0] @ vectors[1]) > float(vectors[0] @ vectors[2]) + 0.2


def test_a_question_is_comparable_with_passages(embedder: Embedder) -> None:
    question = embedder.encode(["Where was Anna born?"], "query")[0]
    passage = embedder.encode(["Where was Anna born?"], "passage")[0]
    assert float(question @ passage) == pytest.approx(1.0, abs=1e-2)


def test_half_a_character_does_no_harm(embedder: Embedder) -> None:
    vectors = embedder.encode(["Oslo \ud800 town", "Oslo ? town"], "passage")
    assert vectors[0].tobytes() == vectors[1].tobytes()


def test_prefixes_are_put_before_questions_and_passages(embedder: Embedder) -> None:
    prefixed = SentenceTransformerEmbedder(
        "sentence-transformers/all-MiniLM-L6-v2", query_prefix="query: ", passage_prefix="passage: "
    )
    assert prefixed.encode(["Oslo"], "query").tobytes() == embedder.encode(["query: Oslo"], "query").tobytes()
    assert prefixed.encode(["Oslo"], "passage").tobytes() == embedder.encode(["passage: Oslo"], "passage").tobytes()
    assert (prefixed.name, prefixed.dimension) == (embedder.name, embedder.dimension) == ("all-MiniLM-L6-v2", 384)


@pytest.mark.parametrize("name", ["no-such-model", "nobody/no-such-model", "/no/such/folder"])
def test_an_unknown_model_is_a_configuration_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)  # else it tries the network for a minute
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        SentenceTransformerEmbedder(name)


def test_a_folder_that_holds_no_model_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        SentenceTransformerEmbedder(str(tmp_path))
