"""What servers that speak OpenAI's protocol say where OpenAI's own would say something else, over real HTTP."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from polyad.config import LanguageModelSettings
from polyad.errors import LanguageModelError
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import Request
from polyad.protocols.components import Prompt, Reply
from tests.faults import RawResponseFault
from tests.scripted_server import ChatOutcome, ScriptedServer

FACTS = '{"facts": []}'
PROMPT = Prompt(user="Who?", system="You extract.", json_schema={"type": "object"}, max_tokens=9)


def model(server: ScriptedServer) -> OpenAILanguageModel:
    return OpenAILanguageModel(
        LanguageModelSettings(model="m", base_url=server.base_url, max_retries=2, retry_delay=0.01, timeout=5)
    )


def ask(*outcomes: ChatOutcome | Callable[[Request], ChatOutcome]) -> tuple[Reply | LanguageModelError, int]:
    """What comes of one prompt, and in how many requests."""
    (first, *_) = outcomes
    script: Any = first if callable(first) else outcomes
    with ScriptedServer(script) as server:
        (outcome,) = model(server).complete([PROMPT])
        return outcome, len(server.requests)


def body_of(message: Mapping[str, object], finish_reason: str = "stop", **choice: object) -> Mapping[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason, **choice}]}


def events(*events: object) -> RawResponseFault:
    return RawResponseFault(200, "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n")


def delta(content: str | None = None, finish_reason: str | None = None, **more: object) -> Mapping[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content, **more}, "finish_reason": finish_reason}]}


def error(message: str, **more: object) -> Mapping[str, Any]:
    return {"error": {"message": message, **more}}


def wants_json_schema(request: Request) -> bool:
    return bool((request.get("response_format") or {}).get("type") == "json_schema")


def has_system(request: Request) -> bool:
    return bool(request["messages"][0]["role"] == "system")


@pytest.mark.parametrize(
    ("is_refused", "refusal"),
    [
        (wants_json_schema, RawResponseFault(400, error("This response_format type is unavailable now"))),
        (wants_json_schema, RawResponseFault(400, {"error": "'response_format.type' must be 'text'"})),
        (
            wants_json_schema,
            RawResponseFault(404, error("No endpoints found that can handle the requested response_format")),
        ),
        (
            wants_json_schema,
            RawResponseFault(422, {"detail": [{"loc": ["body", "response_format"], "msg": "extra inputs"}]}),
        ),
        (wants_json_schema, RawResponseFault(500, error("failed to parse grammar", type="server_error"))),
        (wants_json_schema, RawResponseFault(501, {"error": "json_schema is not implemented"})),
        (
            wants_json_schema,
            RawResponseFault(400, [error("Unknown name at 'generation_config.response_schema'", code=400)]),
        ),
        (has_system, RawResponseFault(400, {"object": "error", "message": "System role not supported", "code": 400})),
        (has_system, RawResponseFault(500, error("Jinja Exception: System role not supported"))),
        (has_system, RawResponseFault(400, [error("Developer instruction is not enabled for models/gemma-3-27b-it")])),
        (
            has_system,
            RawResponseFault(400, error("Conversation roles must alternate user/assistant/user/assistant/...")),
        ),
        (
            lambda request: "max_tokens" in request,
            RawResponseFault(400, error("Use 'max_completion_tokens' instead.", param="max_tokens")),
        ),
        (
            lambda request: "temperature" in request,
            RawResponseFault(400, error("Only the default (1) value is supported.", param="temperature")),
        ),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_parameters_that_a_server_refuses_are_left_out(
    is_refused: Callable[[Request], bool], refusal: RawResponseFault
) -> None:
    seen: list[Request] = []

    def server(request: Request) -> ChatOutcome:
        seen.append(request)
        return refusal if is_refused(request) else FACTS

    outcome, requests = ask(server)
    assert isinstance(outcome, Reply), outcome
    assert outcome.text == FACTS
    assert requests == 2
    reply = json.dumps(seen[-1]["messages"])
    assert "You extract." in reply
    assert "Who?" in reply


@pytest.mark.parametrize(
    ("reply", "thoughts"),
    [
        (body_of({"content": None, "reasoning_content": FACTS}), ""),
        (body_of({"content": "", "reasoning": f"\n{FACTS}\n"}), ""),
        (body_of({"content": FACTS, "reasoning": "Hm. {}"}), "Hm. {}"),
        (body_of({"content": FACTS, "reasoning_content": " Hm. "}), "Hm."),
        (body_of({"content": f"<think>{{}}</think>{FACTS}"}), "{}"),
        (body_of({"content": f"<reasoning>{{}}</reasoning>{FACTS}", "reasoning": "Hm."}), "Hm.\n\n{}"),
        (body_of({"content": f"{{}} or []?\n</think>\n{FACTS}"}), "{} or []?"),
        (
            body_of({"content": f"<|channel|>analysis<|message|>{{}}?<|end|><|channel|>final<|message|>{FACTS}"}),
            "{}?<|end|>",
        ),
    ],
    ids=str,
)
def test_a_reply_is_found_beside_thoughts(reply: Mapping[str, Any], thoughts: str) -> None:
    outcome, requests = ask(reply)
    assert isinstance(outcome, Reply), outcome
    assert (outcome.text, requests, outcome.thoughts) == (FACTS, 1, thoughts)


@pytest.mark.parametrize(
    ("reply", "words", "requests"),
    [
        (
            body_of({"content": None, "reasoning": "Hm. {}"}),
            "thoughts and no text; turn the model's thinking off",
            3,
        ),
        (body_of({"content": "<think>Hm. {}"}), "thoughts and no text; turn the model's thinking off", 3),
        (body_of({"content": None, "reasoning": "Hm."}, "length"), "allow more tokens", 1),
        (body_of({"content": None, "tool_calls": []}, "tool_calls"), "no text (finish_reason tool_calls)", 3),
        (body_of({"content": '{"fac'}, "content_filter"), "content filter", 1),
        (body_of({"content": '{"fac'}, "insufficient_system_resource"), "insufficient_system_resource", 3),
        (
            body_of({"content": '{"fac'}, "error", error={"message": "Overloaded", "code": 502}),
            "off the reply (Over",
            3,
        ),
        (error("Insufficient credits", code=402), "reports an error: Insufficient credits", 1),
        (error("Provider returned error", code=502, metadata={"raw": "busy"}), "Provider returned error: busy", 3),
        ({"error": "Unexpected endpoint or method. (POST /chat/completions)"}, "address ends where the API begins", 3),
        (RawResponseFault(200, "<!doctype html><title>Chat</title>"), "address ends where the API begins", 3),
        (RawResponseFault(404, error('model "m" not found, try pulling it first')), "check the model's name", 1),
        (
            RawResponseFault(503, error("Loading model", type="unavailable_error")),
            "Loading model; look into the server's log",
            3,
        ),
        (RawResponseFault(400, error("the request exceeds the available context size")), "lower passage_tokens", 1),
        (RawResponseFault(400, error("too long", code="context_length_exceeded")), "lower passage_tokens", 1),
        (RawResponseFault(400, [error("API key expired", code=400)]), "status 400: API key expired", 1),
    ],
    ids=str,
)
def test_a_failure_says_what_happened_and_what_to_do(reply: ChatOutcome, words: str, requests: int) -> None:
    outcome, sent = ask(reply)
    assert isinstance(outcome, LanguageModelError), outcome
    assert words in str(outcome)
    assert sent == requests


@pytest.mark.parametrize(
    "hiccup",
    [
        body_of({"content": '{"fac'}, "error", error={"message": "Overloaded"}),
        body_of({"content": '{"fac'}, "insufficient_system_resource"),
        error("Provider returned error", code=502),
        RawResponseFault(502, "<html><h1>502 Bad Gateway</h1></html>"),
    ],
    ids=str,
)
def test_a_reply_that_the_provider_broke_off_is_asked_for_again(hiccup: ChatOutcome) -> None:
    outcome, requests = ask(hiccup, FACTS)
    assert isinstance(outcome, Reply), outcome
    assert (outcome.text, requests) == (FACTS, 2)


@pytest.mark.parametrize("reason", ["length", "model_length", "model_context_window_exceeded"])
def test_every_word_for_a_reply_cut_at_a_limit_is_known(reason: str) -> None:
    outcome, _ = ask(body_of({"content": '{"facts": ['}, reason))
    assert isinstance(outcome, Reply), outcome
    assert outcome.truncated


# Streams


def stream(*outcomes: ChatOutcome) -> tuple[Reply, list[str]]:
    pieces: list[str] = []
    with ScriptedServer(outcomes) as server:
        return model(server).stream(PROMPT, pieces.append), pieces


def test_chunks_without_choices_text_or_usage_are_passed_over() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    reply, pieces = stream(
        events(
            {"choices": [], "prompt_filter_results": []},
            delta("", role="assistant"),
            delta(None, reasoning_content="Hm."),
            {**delta("Rome"), "usage": None},
            delta(None, "stop"),
            {"choices": [], "usage": usage},
        )
    )
    assert (reply.text, pieces, reply.usage.prompt_tokens) == ("Rome", ["Rome"], 7)
    assert reply.thoughts == "Hm."


@pytest.mark.parametrize(
    "end",
    [
        {**delta("", "error"), "error": {"message": "Overloaded"}},
        delta("", "error"),
        delta("", "insufficient_system_resource"),
        delta("", "content_filter"),
    ],
    ids=str,
)
def test_a_stream_that_the_provider_broke_off_is_an_error_once_text_was_shown(end: Mapping[str, Any]) -> None:
    with pytest.raises(LanguageModelError, match="broke off after 4 characters"):
        stream(events(delta("Rome"), end), events(delta("never asked"), delta(None, "stop")))
    reply, pieces = stream(events(delta("<think>Hm"), delta("", "error")), events(delta("Rome"), delta(None, "stop")))
    assert (reply.text, pieces) == ("Rome", ["Rome"])


def test_a_stream_that_ends_with_done_is_complete_without_a_finish_reason() -> None:
    reply, pieces = stream(events(delta("Rome"), delta(" fell.")))
    assert (reply.text, reply.truncated, "".join(pieces)) == ("Rome fell.", False, "Rome fell.")
    reply, _ = stream(events(delta("Rome"), delta("", "length")))
    assert reply.truncated
    says_done = RawResponseFault(200, f"data: {json.dumps(delta('data: [DONE]'))}\n\n")
    with pytest.raises(LanguageModelError, match="broke off after 12 characters"):
        stream(says_done, says_done)


# Prompts cut by the server


@pytest.mark.parametrize(("read", "warnings"), [(2050, 1), (5200, 0), (0, 0)])
def test_a_prompt_that_the_server_read_only_a_part_of_is_warned_of_once(
    read: int, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    usage = {"prompt_tokens": read, "completion_tokens": 1}
    prompts = [Prompt(user=f"{number} " + "word " * 7000) for number in range(3)]
    with (
        ScriptedServer([{**body_of({"content": "Rome"}), "usage": usage}]) as server,
        caplog.at_level(logging.WARNING, "polyad"),
    ):
        model(server).complete(prompts)
    replies = [record.getMessage() for record in caplog.records]
    assert len(replies) == warnings
    assert all("2,050 tokens of a prompt of about 7,001 tokens" in text for text in replies)
    assert all("OLLAMA_CONTEXT_LENGTH" in text for text in replies)
