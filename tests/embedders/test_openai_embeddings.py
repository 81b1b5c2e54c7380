"""The embedder against a real HTTP server."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from polyad.embedders.openai import OpenAIEmbedder
from polyad.engine.loaders import load_embedder
from polyad.errors import EmbedderError, MissingExtraError
from polyad.language_models.scripted import Request
from polyad.protocols.components import Embedder
from tests.faults import (
    CutConnectionFault,
    HangFault,
    MalformedJsonFault,
    RateLimitFault,
    RejectionFault,
    ServerErrorFault,
)
from tests.scripted_server import Fault, ScriptedServer


def embedder(server: ScriptedServer, *, dimension: int | None = None, batch_size: int = 64) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        "e",
        server.base_url,
        dimension=dimension,
        batch_size=batch_size,
        max_retries=1,
        retry_delay=0.01,
        timeout=0.3,
    )


def test_vectors_are_unit_float32_in_the_order_of_the_texts() -> None:
    texts = [f"number {number} of many" for number in range(25)]
    with ScriptedServer(dimension=32) as server:
        vectors = embedder(server, batch_size=4).encode(texts, "passage")
        alone = embedder(server).encode(texts[17:18], "passage")
    assert vectors.shape == (25, 32)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(vectors[17], alone[0])


def test_texts_go_out_in_batches() -> None:
    with ScriptedServer() as server:
        embedder(server, dimension=64, batch_size=10).encode(["word"] * 25, "passage")
        assert sorted(len(request.body["input"]) for request in server.requests) == [5, 10, 10]
        assert server.requests[0].body["encoding_format"] == "float"


def test_vectors_are_put_in_order_by_their_index() -> None:
    data = [{"index": 1, "embedding": [0.0, 2.0]}, {"index": 0, "embedding": [3.0, 0.0]}]
    with ScriptedServer(vectors=[{"data": data}]) as server:
        vectors = embedder(server, dimension=2).encode(["a", "b"], "passage")
    np.testing.assert_array_equal(vectors, [[1, 0], [0, 1]])


def test_the_dimension_is_asked_for_once() -> None:
    with ScriptedServer(dimension=48) as server:
        made = embedder(server)
        assert server.requests == [], "nothing is sent before it is needed"
        assert (made.dimension, made.dimension) == (48, 48)
        assert len(server.requests) == 1
        assert made.encode([], "query").shape == (0, 48)
        assert len(server.requests) == 1


def test_blank_texts_are_not_sent_and_get_a_unit_vector() -> None:
    with ScriptedServer(dimension=8) as server:
        vectors = embedder(server, dimension=8).encode(["", "word", " \n"], "passage")
        assert [request.body["input"] for request in server.requests] == [["word"]]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)
    np.testing.assert_array_equal(vectors[0], vectors[2])


def test_prefixes_go_before_the_texts_and_into_the_name() -> None:
    with ScriptedServer() as server:
        plain: Embedder = embedder(server)
        prefixed = OpenAIEmbedder("e", server.base_url, dimension=64, query_prefix="query: ", passage_prefix="text: ")
        prefixed.encode(["a"], "query")
        prefixed.encode(["a"], "passage")
        assert [request.body["input"] for request in server.requests] == [["query: a"], ["text: a"]]
    assert plain.name == "openai:e"
    assert prefixed.name.startswith("openai:e+")


@pytest.mark.parametrize(
    "fault",
    [RateLimitFault(0.05), ServerErrorFault(), HangFault(5.0), CutConnectionFault(), MalformedJsonFault()],
    ids=repr,
)
def test_a_fault_that_passes_is_tried_again(fault: Fault) -> None:
    with ScriptedServer(vectors=[fault, [[1.0, 0.0]]]) as server:
        np.testing.assert_array_equal(embedder(server, dimension=2).encode(["a"], "query"), [[1, 0]])


def test_retry_after_is_waited_for() -> None:
    with ScriptedServer(vectors=[RateLimitFault(0.3), [[1.0, 0.0]]]) as server:
        embedder(server, dimension=2).encode(["a"], "query")
        first, second = server.requests
    assert second.at - first.at >= 0.3


@pytest.mark.parametrize(
    "fault",
    [RejectionFault(401), RejectionFault(404), RejectionFault(400, "input too long"), ServerErrorFault()],
    ids=repr,
)
def test_a_fault_that_stays_is_an_embedder_error(fault: Fault) -> None:
    with ScriptedServer(vectors=[fault]) as server, pytest.raises(EmbedderError, match="'e' at http"):
        embedder(server).encode(["a"], "query")


@pytest.mark.parametrize(
    "vectors",
    [
        [[1.0, 2.0]],
        [[1.0, 2.0], [1.0]],
        [[1.0, 2.0], [float("nan"), 1.0]],
        [[1.0, 2.0], [float("inf"), 1.0]],
        [[1.0, 2.0], [0.0, 0.0]],
        [[], []],
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
        {"data": [{"embedding": ["a", "b"]}, {"embedding": ["c", "d"]}]},
        {"data": [{"embedding": None}, {"embedding": None}]},
        {"data": [{}, {}]},
        {"data": ["a", "b"]},
        {"data": None},
        {"vectors": []},
    ],
    ids=repr,
)
def test_a_reply_without_one_vector_per_text_is_an_error(vectors: list[list[float]] | dict[str, object]) -> None:
    with ScriptedServer(vectors=[vectors]) as server, pytest.raises(EmbedderError):
        embedder(server, dimension=2).encode(["a", "b"], "passage")


def test_vectors_of_another_length_than_promised_are_an_error() -> None:
    def shrinking(request: Request) -> list[list[float]]:
        return [[1.0, 1.0] if text == "short" else [1.0, 1.0, 1.0] for text in request["input"]]

    with ScriptedServer(vectors=shrinking) as server:
        made = embedder(server, batch_size=1)
        assert made.dimension == 3
        with pytest.raises(EmbedderError, match="expected 3"):
            made.encode(["long", "short"], "passage")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("polyad.openai_api.endpoint", "polyad.embedders.openai"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r'pip install "polyad\[llm\]"'):
        load_embedder("openai:e")
