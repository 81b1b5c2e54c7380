"""The test doubles do what they promise: other tests stand on them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from polyad.errors import LanguageModelError
from polyad.language_models.scripted import ScriptedLanguageModel, ScriptedReply, cite_first_passage
from polyad.language_models.scripted.__main__ import main
from polyad.protocols.components import Prompt, Reply
from tests.faults import HangFault
from tests.scripted_server import ScriptedServer


def post(url: str, body: object) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as response:
        return str(response.read().decode())


def chat(server: ScriptedServer, user: str, *, stream: bool = False) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": user}], "stream": stream}
    return post(f"{server.base_url}/chat/completions", body)


def hang_up(server: ScriptedServer) -> None:
    with pytest.raises(OSError, match=r"closed|reset"):
        chat(server, "?")


def test_a_list_is_said_in_order_and_its_last_for_ever() -> None:
    with ScriptedServer(["one", ScriptedReply(text="two", finish_reason="length")]) as server:
        replies = [json.loads(chat(server, "?"))["choices"][0] for _ in range(3)]
    assert [reply["message"]["content"] for reply in replies] == ["one", "two", "two"]
    assert replies[2]["finish_reason"] == "length"


def test_a_stream_has_pieces_a_reason_and_an_end() -> None:
    with ScriptedServer(["one two"]) as server:
        events = [line.removeprefix("data: ") for line in chat(server, "?", stream=True).split("\n\n") if line]
    assert events[-1] == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert [choice["delta"].get("content") for choice in choices] == ["one", " two", None]
    assert choices[-1]["finish_reason"] == "stop"


def test_requests_are_recorded() -> None:
    with ScriptedServer() as server:
        chat(server, "first")
        chat(server, "second")
    assert [request.body["messages"][0]["content"] for request in server.requests] == ["first", "second"]
    assert server.requests[0].at < server.requests[1].at
    assert server.requests[0].headers["content-type"] == "application/json"


def test_sixteen_slow_requests_are_served_side_by_side() -> None:
    with ScriptedServer(delay=0.2) as server, ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: chat(server, str(number)), range(64)))
    assert server.max_concurrent_requests == 16


def test_similar_texts_have_similar_vectors_everywhere() -> None:
    with ScriptedServer(dimension=64) as server:
        reply = post(f"{server.base_url}/embeddings", {"input": ["the red fox", "a red fox", "tax law"]})
    fox, other_fox, tax = (item["embedding"] for item in json.loads(reply)["data"])
    assert sum(a * b for a, b in zip(fox, other_fox, strict=True)) > sum(a * b for a, b in zip(fox, tax, strict=True))


def test_models_are_listed_and_other_paths_are_not_found() -> None:
    with ScriptedServer() as server:
        with urllib.request.urlopen(f"{server.base_url}/models", timeout=5) as response:
            assert json.load(response)["data"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            post(f"{server.base_url}/unknown", {})


def test_closing_does_not_wait_for_a_hang() -> None:
    with ScriptedServer([HangFault(60.0)]) as server:
        thread = threading.Thread(target=hang_up, args=(server,))
        thread.start()
        while not server.requests:
            time.sleep(0.01)
        began = time.perf_counter()
    thread.join()
    assert time.perf_counter() - began < 2


def test_an_empty_script_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        ScriptedServer([])


def test_the_model_in_process_records_and_runs_dry() -> None:
    model = ScriptedLanguageModel(["one"])
    first, second = model.complete([Prompt(user="a"), Prompt(user="b")])
    assert isinstance(first, Reply)
    assert first.text == "one"
    assert isinstance(second, LanguageModelError)
    assert [prompt.user for prompt in model.prompts] == ["a", "b"]


def test_the_model_in_process_streams_what_it_is_computed_to_say() -> None:
    pieces: list[str] = []
    reply = ScriptedLanguageModel(lambda prompt: f"You said {prompt.user}").stream(Prompt(user="hi"), pieces.append)
    assert pieces == ["You", " said", " hi"]
    assert reply.text == "You said hi"


def test_the_server_runs_from_a_shell() -> None:
    command = [sys.executable, "-m", "polyad.language_models.scripted", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = process.stderr.readline().split()[0].partition("=")[2]
            body = {"messages": [{"role": "user", "content": '<passage number="1">\nRome fell. So.\n</passage>'}]}
            assert "Rome fell [1]." in post(f"{url}/chat/completions", body)
        finally:
            process.terminate()


@pytest.mark.parametrize("port", ["taken", "99999"])
def test_a_port_that_cannot_be_served_at_is_one_line(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer() as server, pytest.raises(SystemExit) as end:
        main(["--port", server.base_url.split(":")[-1].removesuffix("/v1") if port == "taken" else port])
    errors = capsys.readouterr().err
    assert (end.value.code, errors.count("\n")) == (2, 1)
    assert "python -m polyad.language_models.scripted: error: cannot serve at port" in errors


def test_without_a_passage_it_says_so() -> None:
    assert "no passage" in cite_first_passage({"messages": [{"role": "user", "content": "Who?"}]})
