"""The language model adapter against servers that mean harm, or are broken in ways that look like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from polyad.adapters.openai import OpenAIEmbedder, OpenAILanguageModel
from polyad.adapters.scripted import Body, Fault, Refused, Say, ScriptedServer
from polyad.config import LanguageModelSettings
from polyad.errors import EmbedderError, LanguageModelError
from polyad.model import Usage
from polyad.protocols import Prompt, Reply


def model(base_url: str, **settings: Any) -> OpenAILanguageModel:
    given = {"model": "m", "base_url": base_url, "max_retries": 0, "retry_delay": 0.01, "timeout": 5.0}
    return OpenAILanguageModel(LanguageModelSettings(**{**given, **settings}))


def ask(llm: OpenAILanguageModel, prompt: Prompt | None = None) -> Reply:
    (outcome,) = llm.complete([prompt or Prompt(user="Who?")])
    assert isinstance(outcome, Reply), outcome
    return outcome


def failure(llm: OpenAILanguageModel) -> str:
    (outcome,) = llm.complete([Prompt(user="Who?")])
    assert isinstance(outcome, LanguageModelError), outcome
    return str(outcome)


def said(text: str, **more: object) -> dict[str, object]:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], **more}


# What no text and no count may be


@pytest.mark.parametrize("count", [10**30, -1, True, 1.5, "12", None])
def test_a_count_that_makes_no_sense_is_estimated(count: object) -> None:
    with ScriptedServer([said("Rome it is", usage={"prompt_tokens": count, "completion_tokens": count})]) as server:
        assert ask(model(server.base_url)).usage == Usage(1, 2, 3)


def test_half_a_character_becomes_the_sign_for_what_is_no_character() -> None:
    with ScriptedServer([said("Rome \ud800!")]) as server:
        assert ask(model(server.base_url)).text == "Rome \ufffd!"


def test_half_a_character_in_a_stream_too_and_halves_that_meet_are_one() -> None:
    pieces: list[str] = []
    with ScriptedServer([Say(text="", pieces=["Rome \ud800", "! \ud83d", "\ude00."])]) as server:
        reply = model(server.base_url).stream(Prompt(user="Who?"), pieces.append)
    assert reply.text == "".join(pieces) == "Rome \ufffd! \N{GRINNING FACE}."


@pytest.mark.parametrize(
    "fault",
    [
        Refused(400, "no \ud800"),
        Body(200, {"error": {"message": "no \ud800"}}),
        said("", choices=[{"message": {"refusal": "no \ud800"}}]),
        said("", choices=[{"error": "no \ud800", "finish_reason": "error", "message": {}}]),
        Body(200, '"\\ud800"'),
    ],
)
def test_what_a_server_says_of_a_failure_can_be_printed(fault: Fault | Mapping[str, Any]) -> None:
    with ScriptedServer([fault]) as server:
        assert failure(model(server.base_url)).encode()


def test_a_stream_nested_too_deep_is_a_failure() -> None:
    deep = Body(200, "data: " + "[" * 200_000 + "\n\n")
    with ScriptedServer([deep]) as server, pytest.raises(LanguageModelError, match="not what the protocol allows"):
        model(server.base_url).stream(Prompt(user="Who?"), lambda piece: None)


def test_a_number_in_a_vector_that_no_float_holds_is_a_failure() -> None:
    huge = {"data": [{"index": 0, "embedding": [10**400, 1]}]}
    with ScriptedServer(vectors=[huge]) as server, pytest.raises(EmbedderError, match="numbers"):
        OpenAIEmbedder("m", server.base_url, max_retries=0).encode(["a"], "query")
