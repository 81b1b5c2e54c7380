"""Streamed replies against a real HTTP server, whole, cut and misunderstood."""

from __future__ import annotations

import pytest

from polyad.config import LanguageModelSettings
from polyad.errors import LanguageModelError
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import Request, ScriptedReply
from polyad.model import Usage
from polyad.protocols.components import Prompt, Reply
from tests.faults import (
    CutConnectionFault,
    EmptyReplyFault,
    HangFault,
    MalformedJsonFault,
    RateLimitFault,
    RejectionFault,
    ServerErrorFault,
)
from tests.scripted_server import ChatOutcome, Fault, ScriptedServer

PROMPT = Prompt(user="Who?", max_tokens=50)


def model(server: ScriptedServer) -> OpenAILanguageModel:
    return OpenAILanguageModel(
        LanguageModelSettings(model="m", base_url=server.base_url, max_retries=2, retry_delay=0.01, timeout=0.3)
    )


def stream(server: ScriptedServer) -> tuple[Reply, list[str]]:
    pieces: list[str] = []
    return model(server).stream(PROMPT, pieces.append), pieces


def test_pieces_come_as_they_are_said() -> None:
    with ScriptedServer([ScriptedReply(text="Rome, I think.", pieces=["Rome", ", I", " think."])]) as server:
        reply, pieces = stream(server)
    assert reply.text == "Rome, I think."
    assert pieces == ["Rome", ", I", " think."]


def test_usage_comes_with_the_stream() -> None:
    with ScriptedServer(["one two"]) as server:
        reply, _ = stream(server)
        assert server.requests[0].body["stream_options"] == {"include_usage": True}
    assert reply.usage.completion_tokens == 2
    assert reply.usage.prompt_tokens > 1, "the server counts the whole of the messages"


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_rejects_stream_options_still_streams(status: int) -> None:
    def old(request: Request) -> ChatOutcome:
        return RejectionFault(status, "unknown field stream_options") if "stream_options" in request else "Rome it is"

    with ScriptedServer(old) as server:
        reply, pieces = stream(server)
    assert pieces == ["Rome", " it", " is"]
    assert reply.usage == Usage(1, 2, 3), "estimated"


def test_thoughts_are_never_streamed() -> None:
    scripted_reply = ScriptedReply(text="", pieces=["<th", "ink>Par", "is?</thi", "nk>\n", "Rome", " it is <", " 3"])
    with ScriptedServer([scripted_reply]) as server:
        reply, pieces = stream(server)
    assert reply.text == "Rome it is < 3"
    assert "".join(pieces) == "Rome it is < 3"


def test_streamed_pieces_equal_the_reply_without_thoughts() -> None:
    with ScriptedServer([ScriptedReply(text="", pieces=["Rome [1]", " <think>or Paris?</think>", "it is."])]) as server:
        reply, pieces = stream(server)
    assert reply.text == "".join(pieces) == "Rome [1] it is."


@pytest.mark.parametrize(
    "fault",
    [
        RateLimitFault(0.05),
        ServerErrorFault(),
        HangFault(5.0),
        CutConnectionFault(),
        MalformedJsonFault(),
        CutConnectionFault("<think>Par"),
        CutConnectionFault("<think>Par", orderly=True),
        ScriptedReply(text=" "),
    ],
    ids=repr,
)
def test_a_fault_before_the_first_text_is_tried_again(fault: ChatOutcome) -> None:
    with ScriptedServer([fault, "fine"]) as server:
        reply, pieces = stream(server)
    assert (reply.text, pieces) == ("fine", ["fine"])
    assert len(server.requests) == 2


@pytest.mark.parametrize("orderly", [False, True])
def test_a_stream_cut_after_text_is_an_error_that_says_how_far_it_came(orderly: bool) -> None:
    pieces: list[str] = []
    with ScriptedServer([CutConnectionFault("Rome, be", orderly=orderly), "never asked"]) as server:
        llm = model(server)
        with pytest.raises(LanguageModelError, match="broke off after 8 characters"):
            llm.stream(PROMPT, pieces.append)
    assert pieces == ["Rome, be"]
    assert len(server.requests) == 1
    assert llm.usage.completion_tokens == 3, "what was said was paid for"


def test_an_endpoint_that_does_not_stream_is_asked_for_the_whole() -> None:
    body = {"choices": [{"message": {"content": "Rome."}, "finish_reason": "stop"}]}
    with ScriptedServer([body]) as server:
        reply, pieces = stream(server)
        assert [request.body["stream"] for request in server.requests] == [True, False]
    assert (reply.text, pieces) == ("Rome.", ["Rome."])


@pytest.mark.parametrize(
    "fault", [RejectionFault(401), RejectionFault(404), EmptyReplyFault(), ServerErrorFault()], ids=repr
)
def test_a_stream_that_never_comes_is_an_error(fault: Fault) -> None:
    with ScriptedServer([fault]) as server, pytest.raises(LanguageModelError, match="'m'"):
        stream(server)


def test_a_listener_that_fails_is_not_mistaken_for_the_endpoint() -> None:
    def fail(piece: str) -> None:
        raise ValueError("closed pipe")

    with ScriptedServer(["one two three"]) as server, pytest.raises(ValueError, match="closed pipe"):
        model(server).stream(PROMPT, fail)
    assert len(server.requests) == 1


def test_a_stream_cut_at_its_limit_is_marked() -> None:
    with ScriptedServer([ScriptedReply(text="and then", finish_reason="length")]) as server:
        assert stream(server)[0].truncated
