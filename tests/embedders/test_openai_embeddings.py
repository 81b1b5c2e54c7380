"""The embedder against a real HTTP server."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import numpy as np
import pytest

from polyad import Engine, Settings
from polyad.config import EncoderSettings
from polyad.embedders.openai import OpenAIEmbedder
from polyad.engine.loaders import load_embedder
from polyad.errors import EmbedderError, IndexMismatchError, MissingExtraError, PolyadError
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
from tests.scripted_server import EmbeddingOutcome, Fault, ScriptedServer, hash_texts


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
        assert "encoding_format" not in server.requests[0].body


def test_vectors_are_put_in_order_by_their_index() -> None:
    data = [{"index": 1, "embedding": [0.0, 2.0]}, {"index": 0, "embedding": [3.0, 0.0]}]
    with ScriptedServer(vectors=[{"data": data}]) as server:
        vectors = embedder(server, dimension=2).encode(["a", "b"], "passage")
    np.testing.assert_array_equal(vectors, [[1, 0], [0, 1]])


def test_vectors_in_base64_equal_those_in_lists() -> None:
    vector = base64.b64encode(np.array([0.0, 2.0], dtype="<f4").tobytes()).decode()
    with ScriptedServer(vectors=[{"data": [{"embedding": vector}, {"embedding": [3.0, 0.0]}]}]) as server:
        vectors = embedder(server, dimension=2).encode(["a", "b"], "passage")
    np.testing.assert_array_equal(vectors, [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("status", "message", "limit"),
    [
        (422, "batch size 64 > maximum allowed batch size 32", 32),
        (400, "batch size is invalid, it should not be larger than 10.: input.contents", 10),
        (413, "Payload too large", 6),
    ],
)
def test_a_limit_of_texts_is_learnt_from_the_refusal(status: int, message: str, limit: int) -> None:
    def answer(request: Request) -> EmbeddingOutcome:
        texts = request["input"]
        return RejectionFault(status, message) if len(texts) > limit else hash_texts(texts, 64)

    texts = [f"text {number}" for number in range(150)]
    with ScriptedServer(vectors=answer) as server, ScriptedServer() as other:
        limited = OpenAIEmbedder("e", server.base_url, dimension=64, concurrency=1)
        first = limited.encode(texts, "passage")
        count = len(server.requests)
        second = limited.encode(texts, "passage")
        np.testing.assert_array_equal(first, embedder(other, dimension=64).encode(texts, "passage"))
        np.testing.assert_array_equal(first, second)
        assert max(len(request.body["input"]) for request in server.requests[count:]) <= limit


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_text_that_is_too_long_is_embedded_in_halves_and_no_other_text_is(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(request: Request) -> EmbeddingOutcome:
        if any(len(text.split()) > 100 for text in request["input"]):
            return RejectionFault(status, "input (301 tokens) is too large to process. current batch size: 100")
        return hash_texts(request["input"], 64)

    texts = [*(f"text {number}" for number in range(20)), " ".join(f"word{n}" for n in range(300))]
    with ScriptedServer(vectors=answer) as server, ScriptedServer() as other:
        vectors = embedder(server, dimension=64).encode(texts, "passage")
        rest = len(server.requests)
        embedder(server, dimension=64).encode(texts[:20], "passage")
        whole = embedder(other, dimension=64).encode(texts, "passage")
        assert len(server.requests) - rest == 1, "the long text does not limit the number of texts"
    np.testing.assert_array_equal(vectors[:20], whole[:20])
    assert vectors[20] @ whole[20] > 0.9
    assert "1 so far" in caplog.text


def test_a_text_that_is_refused_for_another_reason_is_an_error() -> None:
    with ScriptedServer(vectors=[RejectionFault(400, "no")]) as server, pytest.raises(EmbedderError):
        embedder(server, dimension=64).encode(["word " * 1000, "b"], "passage")
    assert len(server.requests) < 20


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("multilingual-e5-large", "query: ", "passage: "),
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("multilingual-e5-large-instruct", "Instruct: ", ""),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("bge-m3", "", ""),
        ("nomic-embed-text:latest", "search_query: ", "search_document: "),
        ("snowflake-arctic-embed-m-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: ", ""),
        ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
        ("text-embedding-3-small", "", ""),
    ],
)
def test_well_known_models_get_their_prefixes(model: str, query: str, passage: str) -> None:
    with ScriptedServer() as server:
        made = load_embedder(f"openai:{model}", EncoderSettings(base_url=server.base_url))
        made.encode(["a"], "query")
        made.encode(["a"], "passage")
        _, *sent = [request.body["input"][0] for request in server.requests]
    assert sent[0].startswith(query)
    assert sent[0].endswith("a")
    assert sent[1] == f"{passage}a"
    assert (made.name == f"openai:{model}") == (not query)


def test_an_index_opens_only_with_the_prefixes_that_built_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ines Moreau cast the bell.")
    with ScriptedServer() as server:
        settings = EncoderSettings(base_url=server.base_url, query_prefix="q: ", passage_prefix="p: ", batch_size=1)
        stages, plain = Settings(encoder=settings), Settings(encoder=EncoderSettings(base_url=server.base_url))
        with Engine.open(tmp_path / "kb", embedder="openai:own", settings=stages) as engine:
            engine.index([tmp_path / "a.txt"])
        with Engine.open(tmp_path / "kb", settings=stages) as engine:
            assert engine.search("Who cast the bell?").passages
        inputs = {text for request in server.requests for text in request.body["input"]}
        assert all(len(request.body["input"]) == 1 for request in server.requests)
        assert "q: Who cast the bell?" in inputs
        assert any(text.startswith("p: ") for text in inputs)
        with Engine.open(tmp_path / "kb", settings=plain) as engine, pytest.raises(PolyadError, match="query_prefix"):
            engine.search("Who cast the bell?")
        with pytest.raises(IndexMismatchError):
            Engine.open(tmp_path / "kb", embedder="openai:own", settings=plain)


def test_an_index_that_is_older_than_the_prefixes_of_its_model_is_searched_without(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ines Moreau cast the bell.")
    with ScriptedServer() as server:
        plain = OpenAIEmbedder("multilingual-e5-large", server.base_url)
        with Engine.open(tmp_path / "kb", embedder=plain) as engine:
            engine.index([tmp_path / "a.txt"])
        settings = Settings(encoder=EncoderSettings(base_url=server.base_url))
        with Engine.open(tmp_path / "kb", settings=settings) as engine:
            assert engine.search("Who cast the bell?").passages
        assert server.requests[-1].body["input"] == ["Who cast the bell?"]


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
