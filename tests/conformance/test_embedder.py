"""What every embedder promises; see :class:`polyad.protocols.components.Embedder`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest

from polyad.config import EncoderSettings
from polyad.embedders.minilm.encoder import Network
from polyad.embedders.multilingual_e5.embedder import MultilingualE5Embedder, read_model
from polyad.embedders.numpy_embedder import Tokenizer
from polyad.engine.loaders import DEFAULT_EMBEDDER, load_embedder
from polyad.protocols.components import Embedder, TextKind
from tests.embedders.multilingual_e5.small_model import WIDTH, write_small_model
from tests.scripted_server import ScriptedServer

TEXTS = (
    "The Bell of Tarn was cast by Ines Moreau in 1702.",
    "Otters live on the banks of the Isk.",
    "東京タワーは、1958年に建てられた。",
    "Otters",
    "The committee met on every second Monday and discussed the budget. " * 24,
)
BLANK = ("", " ", "\n\t")

KINDS: tuple[TextKind, ...] = ("query", "passage")


class Row(NamedTuple):
    """How an embedder is made, given an endpoint that serves embeddings, and what it promises beyond the protocol."""

    make: Callable[[str], Embedder]
    is_bit_for_bit: bool
    """Whether a text has the same vector, to the last bit, whatever is embedded beside it."""


class SmallMultilingualE5(MultilingualE5Embedder):
    """The embedder with a small model of random weights."""

    dimension = WIDTH
    prefixes = MappingProxyType({"query": "", "passage": ""})

    @staticmethod
    def load_model() -> tuple[Network, Tokenizer]:
        with TemporaryDirectory() as folder:
            write_small_model(Path(folder, "model"), "".join(TEXTS) + "query: passage")
            return read_model(Path(folder, "model"))


EMBEDDERS = {
    "local": Row(lambda _: load_embedder(DEFAULT_EMBEDDER), is_bit_for_bit=True),
    "numpy": Row(lambda _: load_embedder(DEFAULT_EMBEDDER, EncoderSettings(backend="numpy")), is_bit_for_bit=True),
    "multilingual": Row(lambda _: SmallMultilingualE5(), is_bit_for_bit=True),
    "hashing": Row(lambda _: load_embedder("hashing:64"), is_bit_for_bit=True),
    "openai": Row(lambda base_url: load_embedder("openai:e", EncoderSettings(base_url=base_url)), is_bit_for_bit=False),
}
"""One line for each implementation of the protocol."""


@pytest.fixture(scope="module", params=sorted(EMBEDDERS))
def made(request: pytest.FixtureRequest) -> Iterator[tuple[Embedder, Row]]:
    row = EMBEDDERS[request.param]
    with ScriptedServer(dimension=48) as server:
        yield row.make(server.base_url), row


@pytest.fixture
def embedder(made: tuple[Embedder, Row]) -> Embedder:
    return made[0]


def test_an_embedder_fits_the_protocol_and_has_a_name(embedder: Embedder) -> None:
    assert isinstance(embedder, Embedder)
    assert embedder.name
    assert embedder.dimension > 0


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_a_float32_row_of_length_one_for_each_text(embedder: Embedder, kind: TextKind) -> None:
    vectors = embedder.encode(TEXTS, kind)
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_stand_in_the_order_of_their_texts(embedder: Embedder, kind: TextKind) -> None:
    forwards, backwards = embedder.encode(TEXTS, kind), embedder.encode(TEXTS[::-1], kind)
    np.testing.assert_allclose(forwards, backwards[::-1], atol=1e-2)
    cosines = forwards @ backwards[::-1].T
    assert cosines.argmax(axis=1).tolist() == list(range(len(TEXTS)))


def test_a_text_has_the_same_vector_alone_as_in_a_batch(made: tuple[Embedder, Row]) -> None:
    embedder, row = made
    together = embedder.encode(TEXTS, "passage")
    alone = np.concatenate([embedder.encode([text], "passage") for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    if row.is_bit_for_bit:
        assert together.tobytes() == alone.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_no_texts_give_no_rows(embedder: Embedder, kind: TextKind) -> None:
    vectors = embedder.encode([], kind)
    assert vectors.shape == (0, embedder.dimension)
    assert vectors.dtype == np.float32


@pytest.mark.parametrize("kind", KINDS)
def test_a_blank_text_has_a_vector_of_length_one(embedder: Embedder, kind: TextKind) -> None:
    vectors = embedder.encode([BLANK[0], TEXTS[0], *BLANK[1:]], kind)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(vectors[1], embedder.encode([TEXTS[0]], kind)[0], atol=1e-2)


def test_a_question_is_nearest_to_the_passage_that_repeats_it(embedder: Embedder) -> None:
    questions, passages = embedder.encode(TEXTS, "query"), embedder.encode(TEXTS, "passage")
    assert (questions @ passages.T).argmax(axis=1).tolist() == list(range(len(TEXTS)))
