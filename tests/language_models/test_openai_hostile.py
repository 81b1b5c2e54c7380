"""The language model adapter against servers that mean harm, or are broken in ways that look like it."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from polyad.config import LanguageModelSettings, RerankerSettings
from polyad.embedders.openai import OpenAIEmbedder
from polyad.errors import ConfigurationError, EmbedderError, LanguageModelError
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import ScriptedReply
from polyad.model import Usage
from polyad.protocols.components import Prompt, Reply
from polyad.rerankers.endpoint import EndpointReranker
from tests.faults import RawResponseFault, RejectionFault
from tests.scripted_server import Fault, ScriptedServer


def model(base_url: str, **settings: Any) -> OpenAILanguageModel:
    values = {"model": "m", "base_url": base_url, "max_retries": 0, "retry_delay": 0.01, "timeout": 5.0}
    return OpenAILanguageModel(LanguageModelSettings(**{**values, **settings}))


def ask(llm: OpenAILanguageModel, prompt: Prompt | None = None) -> Reply:
    (outcome,) = llm.complete([prompt or Prompt(user="Who?")])
    assert isinstance(outcome, Reply), outcome
    return outcome


def failure(llm: OpenAILanguageModel) -> str:
    (outcome,) = llm.complete([Prompt(user="Who?")])
    assert isinstance(outcome, LanguageModelError), outcome
    return str(outcome)


def build_reply(text: str, **more: object) -> dict[str, object]:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], **more}


# What no text and no count may be


@pytest.mark.parametrize("count", [10**30, -1, True, 1.5, "12", None])
def test_a_count_that_makes_no_sense_is_estimated(count: object) -> None:
    with ScriptedServer(
        [build_reply("Rome it is", usage={"prompt_tokens": count, "completion_tokens": count})]
    ) as server:
        assert ask(model(server.base_url)).usage == Usage(1, 2, 3)


def test_half_a_character_becomes_the_sign_for_what_is_no_character() -> None:
    with ScriptedServer([build_reply("Rome \ud800!")]) as server:
        assert ask(model(server.base_url)).text == "Rome \ufffd!"


def test_half_a_character_in_a_stream_too_and_halves_that_meet_are_one() -> None:
    pieces: list[str] = []
    with ScriptedServer([ScriptedReply(text="", pieces=["Rome \ud800", "! \ud83d", "\ude00."])]) as server:
        reply = model(server.base_url).stream(Prompt(user="Who?"), pieces.append)
    assert reply.text == "".join(pieces) == "Rome \ufffd! \N{GRINNING FACE}."


@pytest.mark.parametrize(
    "fault",
    [
        RejectionFault(400, "no \ud800"),
        RawResponseFault(200, {"error": {"message": "no \ud800"}}),
        build_reply("", choices=[{"message": {"refusal": "no \ud800"}}]),
        build_reply("", choices=[{"error": "no \ud800", "finish_reason": "error", "message": {}}]),
        RawResponseFault(200, '"\\ud800"'),
    ],
)
def test_error_texts_of_servers_can_be_printed(fault: Fault | Mapping[str, Any]) -> None:
    with ScriptedServer([fault]) as server:
        assert failure(model(server.base_url)).encode()


def test_a_stream_nested_too_deep_is_a_failure() -> None:
    deep = RawResponseFault(200, "data: " + "[" * 200_000 + "\n\n")
    with ScriptedServer([deep]) as server, pytest.raises(LanguageModelError):
        model(server.base_url).stream(Prompt(user="Who?"), lambda piece: None)


def test_a_number_in_a_vector_that_no_float_holds_is_a_failure() -> None:
    huge = {"data": [{"index": 0, "embedding": [10**400, 1]}]}
    with ScriptedServer(vectors=[huge]) as server, pytest.raises(EmbedderError):
        OpenAIEmbedder("m", server.base_url, max_retries=0).encode(["a"], "query")


# Addresses and secrets

KEY = "sk-1234567890abcdef"


@pytest.mark.parametrize("query", ["?api-version=2024-10-21", "/?api-version=2024-10-21", "?api-version=2024-10-21#x"])
def test_a_query_in_the_address_goes_with_every_request_and_not_into_the_path(query: str) -> None:
    with ScriptedServer(["Rome"]) as server:
        server_url = f"{server.base_url}{query}"
        assert ask(model(server_url)).text == "Rome"
        OpenAIEmbedder("m", server_url).encode(["a"], "query")
        EndpointReranker("m", RerankerSettings(base_url=server_url)).scores("a", ["b"])
        paths = [request.path for request in server.requests]
        assert paths == ["chat/completions", "embeddings", "embeddings", "rerank"]
        assert {request.query for request in server.requests} == {"api-version=2024-10-21"}


def test_a_query_in_the_address_of_the_environment_works_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(["Rome"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.base_url}?api-version=1")
        assert ask(model("")).text == "Rome"
        assert server.requests[0].query == "api-version=1"


def test_a_name_and_a_password_in_the_address_are_sent_and_not_shown() -> None:
    with ScriptedServer(["Rome", RejectionFault(400, "no")]) as server:
        llm = model(server.base_url.replace("//", "//user:pass%40word@"))
        assert ask(llm).text == "Rome"
        assert server.requests[0].headers["authorization"] == "Basic dXNlcjpwYXNzQHdvcmQ="
        message = failure(llm)
    assert server.base_url in message
    assert "pass" not in message


@pytest.mark.parametrize(
    "echo",
    [
        RejectionFault(401, f"Incorrect API key provided: {KEY}"),
        RejectionFault(400, f"{'x' * 290} {KEY}"),
        RejectionFault(500, f"Bearer {KEY}"),
        RejectionFault(400, "?api-key=k-in-query&p=pass%40word or pass@word dXNlcjpwYXNzQHdvcmQ="),
        RawResponseFault(200, {"error": {"message": f"no {KEY}"}}),
        RawResponseFault(200, f"<html>{'x' * 60}{KEY}</html>"),
        RawResponseFault(200, [KEY]),
        build_reply("", choices=[{"message": {"refusal": KEY}}]),
        build_reply("", choices=[{"message": {}, "finish_reason": KEY}]),
        build_reply("", choices=[{"error": {"message": KEY}, "finish_reason": "error", "message": {}}]),
    ],
)
def test_no_message_and_no_log_has_a_secret(echo: Fault | Mapping[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="polyad")
    with ScriptedServer([echo]) as server:
        address = server.base_url.replace("//", "//user:pass%40word@") + "?api-key=k-in-query"
        message = failure(model(address, api_key=KEY, max_retries=1)) + caplog.text
    assert server.base_url in message
    for secret in (KEY[:8], "k-in-query", "pass", "dXNlcj"):
        assert secret not in message


def test_an_endpoint_that_cannot_be_reached_is_named_without_its_secrets() -> None:
    message = failure(model("http://user:password@127.0.0.1:9/v1?api-key=k-in-query"))
    assert "http://127.0.0.1:9/v1 cannot be reached" in message
    assert "password" not in message
    assert "k-in-query" not in message


def test_a_reply_that_echoes_the_key_comes_without_it_whole_and_streamed() -> None:
    echo = ScriptedReply(text=f"Key: {KEY}.", pieces=["Key: sk", "-1234567890", "abcdef.", " sk-12"])
    pieces: list[str] = []
    with ScriptedServer([echo]) as server:
        llm = model(server.base_url, api_key=KEY)
        assert ask(llm).text == "Key: [secret]."
        reply = llm.stream(Prompt(user="Who?"), pieces.append)
    assert reply.text == "".join(pieces) == "Key: [secret]. sk-12"


def test_the_error_of_the_library_underneath_is_not_shown_with_ours() -> None:
    with ScriptedServer([RejectionFault(401, f"no {KEY}")]) as server:
        (outcome,) = model(server.base_url, api_key=KEY).complete([Prompt(user="Who?")])
    assert isinstance(outcome, LanguageModelError)
    assert KEY not in "".join(traceback.format_exception(outcome))


ACCOUNT = {
    "OPENAI_ORG_ID": "org-0123456789abcdef",
    "OPENAI_PROJECT_ID": "proj_0123456789abcdef",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway-Key: gateway-0123456789\nauthorization: Bearer gateway-abcdefghij",
}


def headers_sent(base_url: str, server: ScriptedServer, **settings: Any) -> str:
    ask(model(base_url, **settings))
    OpenAIEmbedder("m", base_url, **settings).encode(["a"], "query")
    EndpointReranker("m", RerankerSettings(base_url=base_url, **settings)).scores("a", ["b"])
    assert len(server.requests) == 4
    return repr([request.headers for request in server.requests])


@pytest.mark.parametrize("api_key", ["", KEY])
def test_the_account_of_the_environment_goes_where_its_key_goes(monkeypatch: pytest.MonkeyPatch, api_key: str) -> None:
    for name, value in {**ACCOUNT, "OPENAI_API_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    with ScriptedServer(["Rome"]) as server:
        sent = headers_sent(server.base_url, server, api_key=api_key)
    assert sent.count("'openai-organization': 'org-0123456789abcdef'") == 4
    assert sent.count("'openai-project': 'proj_0123456789abcdef'") == 4
    assert sent.count("'x-gateway-key': 'gateway-0123456789'") == 4


def test_another_key_goes_without_the_account_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**ACCOUNT, "OPENAI_API_KEY": "sk-of-the-environment"}.items():
        monkeypatch.setenv(name, value)
    with ScriptedServer(["Rome"]) as server:
        sent = headers_sent(server.base_url, server, api_key=KEY)
    assert sent.count(f"Bearer {KEY}") == 4
    assert not re.search("0123456789abcdef'|gateway|organization|project|sk-of", sent)


def test_account_details_in_error_texts_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    with ScriptedServer([RejectionFault(400, f"no more for {' '.join(ACCOUNT.values())}")]) as server:
        message = failure(model(server.base_url))
    assert "no more for [secret] [secret] X-Gateway-Key: [secret] authorization: Bearer [secret]" in message


def test_a_key_for_administrators_alone_is_none_for_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-0123456789")
    with ScriptedServer(["Rome"]) as server:
        assert ask(model(server.base_url)).text == "Rome"
        assert server.requests[0].headers["authorization"] == "Bearer none"


@dataclass(frozen=True)
class Raw:
    """A whole response, as bytes."""

    response: bytes

    def play(self, wire: Any) -> None:
        wire.wfile.write(self.response)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_is_sent_on_to_another_server(status: int) -> None:
    with ScriptedServer(["Rome"]) as other:
        sent_on = f"HTTP/1.1 {status} x\r\nLocation: {other.base_url}/chat/completions\r\nContent-Length: 0\r\n\r\n"
        with ScriptedServer([Raw(sent_on.encode())]) as server:
            llm = model(server.base_url, api_key=KEY)
            assert f"redirects to another server, {other.base_url}/chat/completions" in failure(llm)
            with pytest.raises(LanguageModelError):
                llm.stream(Prompt(user="Who?"), lambda piece: None)
    assert other.requests == []


@pytest.mark.parametrize("charset", ["idna", "undefined", "hex", "utf-16", "latin-1", "x"])
def test_a_reply_is_read_as_json_is_written_whatever_charset_it_names(charset: str) -> None:
    body = json.dumps(build_reply("R\u00f3ma"), ensure_ascii=False).encode("utf-8-sig")
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset={charset}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with ScriptedServer([Raw(head.encode() + body)]) as server:
        assert ask(model(server.base_url)).text == "R\u00f3ma"


@pytest.mark.parametrize("address", ["http://user:pa?ss@host/v1", "http://user:pass@[/v1", "http://user:pass@host:0"])
def test_an_address_that_is_none_is_said_without_its_secrets(address: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        model(address)
    assert not re.search("pass|pa\\?", str(raised.value))


@pytest.mark.parametrize("address", ["ftp://user:pass@host?key=pass", "user:pass@host/v1?key=pass"])
def test_a_setting_that_is_no_address_is_said_without_its_secrets(address: str) -> None:
    with pytest.raises(ConfigurationError, match="http://") as raised:
        LanguageModelSettings(model="m", base_url=address)
    assert "pass" not in str(raised.value)
    assert "pass" not in repr(LanguageModelSettings(model="m", base_url="http://u:pass@host"))
