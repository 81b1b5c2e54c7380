"""What a try at an endpoint may take, against a server that sends bytes as it pleases."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from polyad.config import LanguageModelSettings, RerankerSettings
from polyad.embedders.openai import OpenAIEmbedder
from polyad.errors import EmbedderError, LanguageModelError, RerankerError
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import ScriptedReply
from polyad.protocols.components import Prompt, Reply
from polyad.rerankers.endpoint import EndpointReranker
from tests.faults import RateLimitFault
from tests.scripted_server import ScriptedServer

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
BODY = json.dumps({"choices": [{"message": {"content": "Rome"}, "finish_reason": "stop"}]}).encode()

TIMEOUT = 0.3
"""Of silence; a reply has to be whole in four times as many seconds."""


@contextmanager
def serving(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """The address of a server that reads each request and has ``answer`` send whatever it likes."""
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    def serve(connection: socket.socket) -> None:
        with closing(connection):
            try:
                connection.recv(1 << 20)
                answer(connection)
            except OSError:  # the client hung up, as it should
                pass

    threading.Thread(target=accept, daemon=True).start()
    with closing(listening):
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def dripping(before: bytes, piece: bytes) -> Callable[[socket.socket], None]:
    """Sends a piece every now and then for a minute, often enough never to be silent."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(before)
        for _ in range(600):
            connection.sendall(piece)
            time.sleep(0.1)

    return answer


def pouring(before: bytes, piece: bytes) -> Callable[[socket.socket], None]:
    """Sends a piece again and again until the client hangs up."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(before)
        while True:
            connection.sendall(piece)

    return answer


def event(text: str) -> bytes:
    return f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n".encode()


def model(base_url: str, **settings: Any) -> OpenAILanguageModel:
    values = {"model": "m", "base_url": base_url, "max_retries": 0, "retry_delay": 0.01, "timeout": TIMEOUT}
    return OpenAILanguageModel(LanguageModelSettings(**{**values, **settings}))


def failure(llm: OpenAILanguageModel) -> str:
    (outcome,) = llm.complete([Prompt(user="Who?")])
    assert isinstance(outcome, LanguageModelError), outcome
    return str(outcome)


DRIPS = {
    "headers": dripping(b"HTTP/1.1 200 OK\r\nX-", b"x"),
    "body": dripping(HEAD + b"Content-Length: 9999\r\n\r\n", b" "),
    "chunks": dripping(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x"),
    "events": dripping(STREAM, b": still here\n\n"),
    "thoughts": dripping(STREAM + event("<think>"), event("Paris? Lyon? ")),
}


@pytest.mark.parametrize("answer", DRIPS.values(), ids=DRIPS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_reply_that_never_comes_to_its_end_is_given_up(
    answer: Callable[[socket.socket], None], streamed: bool
) -> None:
    began = time.monotonic()
    with serving(answer) as base_url:
        llm = model(base_url)
        if streamed:
            with pytest.raises(LanguageModelError, match=r"in time|timed out|not JSON"):
                llm.stream(Prompt(user="Who?"), lambda piece: None)
        else:
            assert "in time (timeout = 0.3 s of silence, 1.2 s for a whole reply)" in failure(llm)
    assert time.monotonic() - began < 20  # a minute without a limit


def test_embedders_and_rerankers_give_up_too() -> None:
    with serving(DRIPS["body"]) as base_url:
        with pytest.raises(EmbedderError):
            OpenAIEmbedder("m", base_url, timeout=TIMEOUT, max_retries=0).encode(["a"], "query")
        settings = RerankerSettings(base_url=base_url, timeout=TIMEOUT, max_retries=0)
        with pytest.raises(RerankerError):
            EndpointReranker("m", settings).scores("a", ["b"])


@pytest.mark.parametrize("before", [HEAD + b"\r\n", STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize("piece", [b"x" * 65536, b"\n" * 65536], ids=["a line", "lines"])
def test_a_reply_without_end_is_given_up_at_the_limit_of_bytes(before: bytes, piece: bytes) -> None:
    with serving(pouring(before, piece)) as base_url:
        message = failure(model(base_url, timeout=30.0, max_reply_bytes=100_000))
    assert "max_reply_bytes = 100000" in message


def test_a_small_reply_that_unpacks_to_a_large_one_is_given_up_before_it_fills_the_memory() -> None:
    bomb = gzip.compress(bytes(200_000_000))
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    with serving(lambda connection: connection.sendall(head + bomb)) as base_url:
        llm = model(base_url, timeout=30.0)
        tracemalloc.start()
        try:
            message = failure(llm)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert "longer than 8,388,608 bytes" in message
    assert most < 40_000_000


def test_a_packed_reply_is_read() -> None:
    packed = gzip.compress(BODY)
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    with serving(lambda connection: connection.sendall(head + packed)) as base_url:
        (outcome,) = model(base_url).complete([Prompt(user="Who?")])
    assert isinstance(outcome, Reply)
    assert outcome.text == "Rome"


@pytest.mark.parametrize(("encoding", "message"), [(b"gzip", "cannot be unpacked"), (b"br", "packed as 'br'")])
def test_a_reply_packed_in_another_way_is_a_failure_that_says_so(encoding: bytes, message: str) -> None:
    head = HEAD + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (encoding, len(BODY))
    with serving(lambda connection: connection.sendall(head + BODY)) as base_url:
        assert message in failure(model(base_url))


def test_a_stream_that_goes_on_after_the_asked_length_is_cut_there() -> None:
    pieces: list[str] = []
    with serving(pouring(STREAM, event("Rome and ") * 100)) as base_url:
        reply = model(base_url, timeout=30.0).stream(Prompt(user="Who?", max_tokens=50), pieces.append)
    assert (len(reply.text), reply.truncated) == (800, True)
    assert "".join(pieces).strip() == reply.text


def test_a_whole_reply_that_goes_on_after_the_asked_length_is_cut_there() -> None:
    with ScriptedServer([ScriptedReply(text="Rome and " * 10_000)]) as server:
        (outcome,) = model(server.base_url, timeout=30.0).complete([Prompt(user="Who?", max_tokens=50)])
    assert isinstance(outcome, Reply)
    assert (len(outcome.text), outcome.truncated) == (800, True)


def test_a_thought_without_end_is_ended() -> None:
    thinking = pouring(STREAM + event("<think>"), event("Paris? ") * 100)
    with serving(thinking) as base_url, pytest.raises(LanguageModelError):
        model(base_url, timeout=30.0).stream(Prompt(user="Who?", max_tokens=50), lambda piece: None)


def test_a_wait_that_is_long_for_the_timeout_is_not_waited_for() -> None:
    with ScriptedServer([RateLimitFault(60), "fine"]) as server:
        message = failure(model(server.base_url, timeout=5.0, max_retries=1))
        assert len(server.requests) == 1
    assert "asks to wait 60 s" in message
