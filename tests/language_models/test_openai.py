"""The language model adapter against a real HTTP server that does what it is told, good and bad."""

from __future__ import annotations

import email.utils
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from polyad.config import LanguageModelSettings
from polyad.errors import ConfigurationError, LanguageModelError, MissingExtraError, NoMoreRepliesError
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import Request, ScriptedReply
from polyad.model import Usage
from polyad.protocols.components import LanguageModel, Prompt, Reply
from tests.faults import (
    CutConnectionFault,
    EmptyReplyFault,
    HangFault,
    MalformedJsonFault,
    RateLimitFault,
    RejectionFault,
    ServerErrorFault,
    UnsupportedResponseFormatFault,
)
from tests.scripted_server import ChatOutcome, Fault, ScriptedServer

PASSING_FAULTS: list[Fault] = [
    RateLimitFault(),
    ServerErrorFault(500),
    ServerErrorFault(503),
    HangFault(5.0),
    CutConnectionFault(),
    MalformedJsonFault(),
    EmptyReplyFault(),
    EmptyReplyFault(without_choices=True),
]
SCHEMA = {"type": "object", "properties": {"facts": {"type": "array"}}}


def model(
    server: ScriptedServer,
    *,
    retries: int = 2,
    delay: float = 0.01,
    timeout: float = 0.3,
    concurrency: int = 16,
    prompt_price: float = 0.0,
    completion_price: float = 0.0,
) -> OpenAILanguageModel:
    return OpenAILanguageModel(
        LanguageModelSettings(
            model="m",
            base_url=server.base_url,
            max_retries=retries,
            retry_delay=delay,
            timeout=timeout,
            concurrency=concurrency,
            prompt_price=prompt_price,
            completion_price=completion_price,
        )
    )


def ask(llm: LanguageModel, prompt: Prompt | None = None) -> Reply:
    (outcome,) = llm.complete([prompt or Prompt(user="Who?")])
    assert isinstance(outcome, Reply), outcome
    return outcome


def failure(llm: LanguageModel) -> str:
    (outcome,) = llm.complete([Prompt(user="Who?")])
    assert isinstance(outcome, LanguageModelError), outcome
    return str(outcome)


def user_text(request: Request) -> str:
    return str(request["messages"][-1]["content"])


def test_replies_come_in_the_order_of_the_prompts() -> None:
    def late_first(request: Request) -> str:
        time.sleep(0.05 if user_text(request) == "0" else 0.0)
        return f"re {user_text(request)}"

    with ScriptedServer(late_first) as server:
        outcomes = model(server).complete([Prompt(user=str(number)) for number in range(20)])
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Reply)] == [f"re {n}" for n in range(20)]


def test_requests_run_side_by_side_up_to_the_limit() -> None:
    with ScriptedServer(["yes"], delay=0.05) as server:
        model(server, concurrency=4, timeout=5).complete([Prompt(user=str(number)) for number in range(12)])
    assert server.max_concurrent_requests == 4


def test_one_prompt_that_fails_does_not_fail_the_others() -> None:
    def picky(request: Request) -> ChatOutcome:
        return RejectionFault(400, "too long") if user_text(request) == "1" else "fine"

    with ScriptedServer(picky) as server:
        outcomes = model(server).complete([Prompt(user=str(number)) for number in range(3)])
    assert [type(outcome) for outcome in outcomes] == [Reply, LanguageModelError, Reply]
    assert "too long" in str(outcomes[1])


def test_no_prompts_no_requests() -> None:
    with ScriptedServer() as server:
        assert model(server).complete([]) == []
    assert server.requests == []


@pytest.mark.parametrize("fault", PASSING_FAULTS, ids=repr)
def test_a_fault_that_passes_is_tried_again(fault: Fault) -> None:
    with ScriptedServer([fault, "fine"]) as server:
        assert ask(model(server)).text == "fine"
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault", PASSING_FAULTS, ids=repr)
def test_a_fault_that_stays_is_an_error_after_the_retries(fault: Fault) -> None:
    with ScriptedServer([fault]) as server:
        message = failure(model(server, retries=1, timeout=0.1))
    assert "'m'" in message
    assert server.base_url in message
    assert len(server.requests) == 2


def test_a_reply_cut_in_the_middle_is_tried_again() -> None:
    with ScriptedServer([CutConnectionFault("half an ans"), "whole"]) as server:
        assert ask(model(server)).text == "whole"


@pytest.mark.parametrize("seconds", [0.3, "1"])
def test_retry_after_in_seconds_is_waited_for(seconds: float | str) -> None:
    with ScriptedServer([RateLimitFault(seconds), "fine"]) as server:
        assert ask(model(server)).text == "fine"
        first, second = server.requests
    assert float(seconds) <= second.at - first.at < float(seconds) + 10


def test_retry_after_as_a_date_is_waited_for() -> None:
    date = email.utils.formatdate(time.time() + 2, usegmt=True)
    with ScriptedServer([RateLimitFault(date), "fine"]) as server:
        began = time.time()
        assert ask(model(server)).text == "fine"
    assert time.time() - began > 0.9  # the header has whole seconds


def test_retry_after_holds_the_other_requests_too() -> None:
    limited = iter([True])

    def one_limited(request: Request) -> ChatOutcome:
        if user_text(request) == "a":
            return RateLimitFault(1.5) if next(limited, False) else "fine"
        time.sleep(0.3)
        return "fine"

    with ScriptedServer(one_limited) as server:
        model(server, concurrency=2).complete([Prompt(user=user) for user in "abc"])
        at = {user_text(request.body): request.at for request in reversed(server.requests)}
    assert at["c"] - at["a"] >= 1.5


def test_a_retry_after_of_hours_fails_at_once_and_says_so() -> None:
    with ScriptedServer([RateLimitFault(7200)]) as server:
        assert "7200 s" in failure(model(server))
    assert len(server.requests) == 1


@pytest.mark.parametrize("value", ["soon", "-5", "nan", ""])
def test_a_retry_after_that_makes_no_sense_is_ignored(value: str) -> None:
    with ScriptedServer([RateLimitFault(value), "fine"]) as server:
        assert ask(model(server)).text == "fine"


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        (RejectionFault(400, "context too long"), "context too long"),
        (RejectionFault(401, "wrong key"), "OPENAI_API_KEY"),
        (RejectionFault(402, "pay"), "no credit"),
        (RejectionFault(403, "not yours"), "not yours"),
        (RejectionFault(404, "no such model"), "check the model's name"),
        (RejectionFault(429, "pay", code="insufficient_quota"), "no credit"),
    ],
    ids=repr,
)
def test_a_fault_that_stays_fails_at_once_and_names_the_fix(fault: Fault, hint: str) -> None:
    with ScriptedServer([fault]) as server:
        message = failure(model(server))
    assert hint in message
    assert server.base_url in message
    assert len(server.requests) == 1


def test_a_wrong_key_is_sent_once_a_thread_and_not_once_a_prompt() -> None:
    with ScriptedServer([RejectionFault(401, "wrong key")]) as server:
        outcomes = model(server, concurrency=2).complete([Prompt(user=str(number)) for number in range(50)])
    assert all("wrong key" in str(outcome) for outcome in outcomes)
    assert len(server.requests) <= 2


def test_an_address_where_nobody_listens_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    llm = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=url, max_retries=1, retry_delay=0.01))
    message = failure(llm)
    assert url in message
    assert "server is running" in message


def test_usage_and_cost_are_counted_by_the_endpoint() -> None:
    body = {
        "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 500},
    }
    with ScriptedServer([body]) as server:
        llm = model(server, prompt_price=2.0, completion_price=8.0)
        assert ask(llm).usage == Usage(1, 1000, 500, 0.006)
        assert llm.usage == Usage(1, 1000, 500, 0.006)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": "many"}])
def test_usage_is_estimated_where_the_endpoint_gives_none(usage: object) -> None:
    with ScriptedServer([{"choices": [{"message": {"content": "hello you"}}], "usage": usage}]) as server:
        assert ask(model(server), Prompt(user="a" * 400)).usage == Usage(1, 50, 2)


def test_the_limit_of_tokens_counts_what_was_spent_and_not_what_was_feared() -> None:
    with ScriptedServer(["short"]) as server:
        llm = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url, tokens_per_minute=1000))
        began = time.monotonic()
        for _ in range(5):
            ask(llm, Prompt(user="Who?", max_tokens=900))
    assert time.monotonic() - began < 30


def test_requests_over_the_limit_wait() -> None:
    def give_up(position: int, reply: Reply | LanguageModelError) -> None:
        time.sleep(0.1)
        if len(server.requests) >= 3:
            raise KeyboardInterrupt

    with ScriptedServer(["yes"]) as server:
        settings = LanguageModelSettings(model="m", base_url=server.base_url, requests_per_minute=3)
        with pytest.raises(KeyboardInterrupt):
            OpenAILanguageModel(settings).complete([Prompt(user=str(number)) for number in range(5)], give_up)
        assert len(server.requests) == 3


def test_a_try_that_was_paid_for_is_on_the_bill() -> None:
    with ScriptedServer([ScriptedReply(text="  "), "fine"]) as server:
        assert ask(model(server)).usage.calls == 2


def test_a_reply_cut_at_its_limit_is_marked() -> None:
    with ScriptedServer([ScriptedReply(text="and then", finish_reason="length")]) as server:
        assert ask(model(server), Prompt(user="Who?", max_tokens=2)).truncated
        assert server.requests[0].body["max_tokens"] == 2


def test_thoughts_are_not_part_of_the_reply() -> None:
    with ScriptedServer(["<think>Paris? No.</think>\n\nRome."]) as server:
        assert ask(model(server)).text == "Rome."


@pytest.mark.parametrize("before", ["", "<think>[Paris]?</think>\n", "Paris?</think>\n"])
def test_thoughts_told_of_in_data_are_part_of_the_reply(before: str) -> None:
    data = '{"facts": [{"text": "R1 writes <think>, then </think>, then its answer."}]}'
    with ScriptedServer([before + data]) as server:
        assert ask(model(server)).text == data


def test_a_model_that_only_thought_is_not_asked_again() -> None:
    with ScriptedServer([ScriptedReply(text="<think>Paris? No", finish_reason="length")]) as server:
        assert "allow more tokens" in failure(model(server))
    assert len(server.requests) == 1


def test_a_refusal_is_reported_in_its_own_words() -> None:
    with ScriptedServer([{"choices": [{"message": {"content": None, "refusal": "I will not"}}]}]) as server:
        assert "I will not" in failure(model(server))
    assert len(server.requests) == 1


def test_text_in_typed_parts_is_read() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Rome"}, {"type": "text", "text": "."}]
    with ScriptedServer([{"choices": [{"message": {"content": parts}}]}]) as server:
        assert ask(model(server)).text == "Rome."


def knows(*formats: str) -> Callable[[Request], ChatOutcome]:
    def reply(request: Request) -> ChatOutcome:
        question = (request.get("response_format") or {"type": "none"})["type"]
        return f'{{"{question}": 1}}' if question in formats else UnsupportedResponseFormatFault()

    return reply


@pytest.mark.parametrize(
    ("formats", "requests"), [(("json_schema",), 1), (("json_object", "none"), 2), (("none",), 3)], ids=str
)
def test_a_schema_is_asked_for_in_the_strictest_way_the_endpoint_knows(formats: tuple[str, ...], requests: int) -> None:
    prompt = Prompt(user="Extract.", system="You extract.", json_schema=SCHEMA)
    with ScriptedServer(knows(*formats)) as server:
        llm = model(server)
        assert ask(llm, prompt).text == f'{{"{formats[0]}": 1}}'
        assert len(server.requests) == requests
        assert ask(llm, prompt).text == f'{{"{formats[0]}": 1}}'
        assert len(server.requests) == requests + 1, "what was learnt is remembered"
        system = server.requests[-1].body["messages"][0]["content"]
    assert ('"facts"' in system) == (formats[0] != "json_schema"), "put into words where it is not enforced"


def test_many_threads_learn_the_same_lesson_once() -> None:
    with ScriptedServer(knows("json_object"), delay=0.05) as server:
        llm = model(server, timeout=5)
        outcomes = llm.complete([Prompt(user=str(number), json_schema=SCHEMA) for number in range(16)])
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Reply)] == ['{"json_object": 1}'] * 16


@pytest.mark.parametrize(
    ("complaint", "unwanted", "expected"),
    [
        ("'max_tokens' is not supported. Use 'max_completion_tokens' instead.", "max_tokens", "max_completion_tokens"),
        ("'temperature' does not support 0 with this model.", "temperature", "model"),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_a_parameter_the_endpoint_rejects_is_done_without(
    complaint: str, unwanted: str, expected: str, status: int
) -> None:
    def picky(request: Request) -> ChatOutcome:
        return RejectionFault(status, complaint) if unwanted in request else "fine"

    with ScriptedServer(picky) as server:
        assert ask(model(server), Prompt(user="Who?", max_tokens=9)).text == "fine"
        assert expected in server.requests[-1].body


def test_a_complaint_that_nothing_helps_against_ends() -> None:
    complaint = "max_completion_tokens temperature response_format stream_options are all wrong"
    with ScriptedServer([RejectionFault(400, complaint)]) as server:
        llm = model(server)
        (outcome,) = llm.complete([Prompt(user="Who?", json_schema=SCHEMA, max_tokens=9)])
    assert complaint in str(outcome)
    assert len(server.requests) <= 6


def test_each_reply_is_handed_over_as_it_comes_in_the_calling_thread() -> None:
    heard: list[tuple[int, str, bool]] = []
    others = threading.Event()

    def slow_first(request: Request) -> ChatOutcome:
        assert user_text(request) != "0" or others.wait(60)
        return RejectionFault(400) if user_text(request) == "2" else user_text(request)

    def on_outcome(position: int, outcome: Reply | LanguageModelError) -> None:
        text = outcome.text if isinstance(outcome, Reply) else "failed"
        heard.append((position, text, threading.current_thread() is threading.main_thread()))
        if len(heard) == 2:
            others.set()

    with ScriptedServer(slow_first) as server:
        model(server).complete([Prompt(user=str(number)) for number in range(3)], on_outcome)
    assert sorted(heard[:2]) == [(1, "1", True), (2, "failed", True)]
    assert heard[2:] == [(0, "0", True)]


def test_a_caller_that_fails_ends_the_batch() -> None:
    def refuse(position: int, reply: Reply | LanguageModelError) -> None:
        raise RuntimeError("disk full")

    with ScriptedServer(["yes"], delay=0.02) as server:
        with pytest.raises(RuntimeError, match="disk full"):
            model(server, concurrency=1).complete([Prompt(user=str(number)) for number in range(100)], refuse)
        time.sleep(0.1)
        assert len(server.requests) < 5


def test_an_interrupted_batch_does_not_go_on_waiting_for_retries() -> None:
    def interrupt(position: int, reply: Reply | LanguageModelError) -> None:
        raise KeyboardInterrupt

    def one_limited(request: Request) -> ChatOutcome:
        return RateLimitFault(60) if user_text(request) == "0" else "fine"

    with ScriptedServer(one_limited) as server:
        with pytest.raises(KeyboardInterrupt):
            model(server).complete([Prompt(user="0"), Prompt(user="1")], interrupt)
        time.sleep(0.1)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("polyad-llm")]


def test_halves_of_surrogate_pairs_do_not_stop_a_request() -> None:
    with ScriptedServer(["fine"]) as server:
        assert ask(model(server), Prompt(user="bro\ud800ken")).text == "fine"
        assert user_text(server.requests[0].body) == "bro\ufffdken"


def test_the_key_is_sent_and_never_shown() -> None:
    with ScriptedServer() as server:
        settings = LanguageModelSettings(model="m", base_url=server.base_url, api_key="sk-secret\n")
        ask(OpenAILanguageModel(settings))
        assert server.requests[0].headers["authorization"] == "Bearer sk-secret"
    assert "secret" not in repr(settings)


@pytest.mark.parametrize("key", ["schlüssel", "two\nlines"])
def test_a_key_that_cannot_be_sent_is_a_wrong_setting(key: str) -> None:
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        OpenAILanguageModel(LanguageModelSettings(model="m", api_key=key))


@pytest.mark.parametrize("key", [None, "sk-from-outside"])
def test_address_and_key_are_the_sdks_own_where_none_are_set(monkeypatch: pytest.MonkeyPatch, key: str | None) -> None:
    with ScriptedServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        if key:
            monkeypatch.setenv("OPENAI_API_KEY", key)
        else:
            monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        ask(OpenAILanguageModel(LanguageModelSettings(model="m")))
        assert server.requests[0].headers["authorization"] == f"Bearer {key or 'none'}"


@pytest.mark.parametrize("package", ["openai", "tenacity"])
def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("polyad.openai_api.", "polyad.language_models.openai."))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r'pip install "polyad\[llm\]"'):
        OpenAILanguageModel(LanguageModelSettings(model="m"))


@pytest.mark.parametrize(
    "wrong", [{"base_url": "localhost:11434/v1"}, {"model": " "}, {"timeout": 0}, {"retry_delay": -1}], ids=repr
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        LanguageModelSettings(**{"model": "m", **wrong})


def test_an_endpoint_that_fails_again_and_again_is_given_up() -> None:
    with ScriptedServer([ServerErrorFault(500)]) as server:
        settings = LanguageModelSettings(model="m", base_url=server.base_url, api_key="k", max_retries=0, concurrency=4)
        outcomes = OpenAILanguageModel(settings).complete([Prompt(user=str(n)) for n in range(200)])
        assert len(server.requests) <= 50 + 4
    assert isinstance(outcomes[-1], NoMoreRepliesError)
    assert all(isinstance(outcome, LanguageModelError) for outcome in outcomes)
