"""Rerankers: behind a real HTTP server, and a real, tiny cross-encoder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyad.config import RerankerSettings
from polyad.engine.loaders import load_reranker
from polyad.errors import ConfigurationError, MissingExtraError, RerankerError
from polyad.protocols.components import Reranker
from polyad.rerankers.cross_encoder import CrossEncoderReranker
from polyad.rerankers.endpoint import EndpointReranker
from tests.faults import CutConnectionFault, HangFault, RateLimitFault, RejectionFault, ServerErrorFault
from tests.scripted_server import Fault, ScriptedServer

PASSAGES = ["Otters eat fish.", "The bell was cast by Ines Moreau.", "Who cast it? Moreau cast the bell."]


def reranker(server: ScriptedServer, **settings: Any) -> EndpointReranker:
    values: dict[str, Any] = {"timeout": 0.3, "max_retries": 1, "retry_delay": 0.01, **settings}
    return EndpointReranker("r", RerankerSettings(base_url=server.base_url, api_key="k", **values))


def test_scores_come_in_the_order_of_the_passages() -> None:
    with ScriptedServer() as server:
        made: Reranker = reranker(server)
        scores = made.scores("Who cast the bell?", PASSAGES)
        (request,) = server.requests
    np.testing.assert_allclose(scores, [0.0, 0.75, 1.0])
    assert scores.dtype == np.float32
    assert request.path == "rerank"
    assert request.body == {"model": "r", "query": "Who cast the bell?", "documents": PASSAGES}
    assert request.headers["authorization"] == "Bearer k"
    assert made.name == "endpoint:r"


def test_no_passages_ask_nobody() -> None:
    with ScriptedServer() as server:
        assert reranker(server).scores("q", []).shape == (0,)
        assert not server.requests


def test_half_a_character_is_sent_as_a_replacement_character() -> None:
    with ScriptedServer() as server:
        reranker(server).scores("q\ud800", ["\udfff"])
        assert (server.requests[0].body["query"], server.requests[0].body["documents"]) == ("q\ufffd", ["\ufffd"])


@pytest.mark.parametrize("fault", [ServerErrorFault(), CutConnectionFault(), HangFault(0.6), RateLimitFault(0.01)])
def test_temporary_errors_are_retried(fault: Fault) -> None:
    with ScriptedServer(rankings=[fault, [1.0, 3.0, 2.0]]) as server:
        assert reranker(server).scores("q", PASSAGES).tolist() == [1.0, 3.0, 2.0]
        assert len(server.requests) == 2


def results(*pairs: tuple[object, object]) -> Mapping[str, object]:
    return {"results": [{"index": index, "relevance_score": score} for index, score in pairs]}


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (RejectionFault(401), "set OPENAI_API_KEY"),
        (RejectionFault(404), "check the model's name"),
        (ServerErrorFault(), "answered with status 500"),
        ({"data": []}, "no list of results; check that the endpoint reranks"),
        ({"results": [1, 2, 3]}, "no list of results"),
        (results((0, 1.0), (1, 1.0)), "scores for 2 of 3 passages"),
        (results((0, 1.0), (0, 1.0), (1, 1.0)), "scores for 2 of 3 passages"),
        (results((0, 1.0), (1, 1.0), (3, 1.0)), "or for others"),
        (results((0, 1.0), (1, "high"), (2, 1.0)), "a relevance_score is not a finite number"),
        (results((0, 1.0), (1, float("nan")), (2, 1.0)), "a relevance_score is not a finite number"),
        (results((0, 1.0), (1, None), (2, 1.0)), "a relevance_score is not a finite number"),
        (results((0, 1.0), (1, 10**400), (2, 1.0)), "a relevance_score is not a finite number"),
    ],
)
def test_invalid_rankings_are_errors_with_a_reason(outcome: Fault | Mapping[str, Any], message: str) -> None:
    with (
        ScriptedServer(rankings=[outcome]) as server,
        pytest.raises(RerankerError, match=message),
    ):
        reranker(server, max_retries=0).scores("q", PASSAGES)


def test_a_server_that_is_not_there_is_an_error() -> None:
    with ScriptedServer() as server:
        made = reranker(server)
    with pytest.raises(RerankerError):
        made.scores("q", PASSAGES)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("polyad.openai_api.endpoint", "polyad.rerankers.endpoint"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"polyad\[llm\]"):
        load_reranker("endpoint:r")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"polyad\[local\]"):
        load_reranker("cross-encoder:m")


@pytest.mark.parametrize("name", ["cohere", "endpoint:", "endpoint", "cross-encoder: "])
def test_a_name_that_is_no_rerankers_is_an_error(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"no reranker .*; expected .*:MODEL"):
        load_reranker(name)


MakeCrossEncoder = Callable[[int], Path]


@pytest.fixture(scope="module")
def make_cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> MakeCrossEncoder:
    """Saves a cross-encoder of two layers with random weights and so many outputs."""
    import torch
    import transformers

    def make(outputs: int) -> Path:
        folder = tmp_path_factory.mktemp("cross-encoder")
        words = {word for text in PASSAGES for word in text.lower().replace(".", " .").replace("?", " ?").split()}
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(words)]
        (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
        library: Any = transformers
        tokenizer = library.BertTokenizer(vocab={word: id for id, word in enumerate(vocabulary)})
        tokenizer.model_max_length = 64
        torch.manual_seed(0)
        config = library.BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            num_labels=outputs,
            initializer_range=1.0,
        )
        library.BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return make


def test_a_cross_encoder_scores_each_passage_with_the_question(make_cross_encoder: MakeCrossEncoder) -> None:
    folder = make_cross_encoder(1)
    made = load_reranker(f"cross-encoder:{folder}")
    scores = made.scores("Who cast the bell?", PASSAGES)
    assert scores.shape == (3,)
    assert scores.dtype == np.float32
    assert len(set(scores.tolist())) == 3
    alone = [float(made.scores("Who cast the bell?", [passage])[0]) for passage in PASSAGES]
    np.testing.assert_allclose(scores, alone, atol=1e-5)
    assert made.scores("Otters?", PASSAGES).tolist() != scores.tolist()
    assert made.scores("q", []).shape == (0,)
    assert made.name == f"cross-encoder:{folder}"


def test_a_cross_encoder_takes_long_and_broken_texts(make_cross_encoder: MakeCrossEncoder) -> None:
    scores = CrossEncoderReranker(str(make_cross_encoder(1))).scores("q\ud800", ["bell " * 5000, "", "\udfff"])
    assert np.isfinite(scores).all()


def test_a_model_that_gives_no_single_score_is_an_error(make_cross_encoder: MakeCrossEncoder) -> None:
    with pytest.raises(ConfigurationError, match="returns 3 scores for a passage; expected a cross-encoder"):
        CrossEncoderReranker(str(make_cross_encoder(3)))


def test_a_folder_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        CrossEncoderReranker(str(tmp_path))
