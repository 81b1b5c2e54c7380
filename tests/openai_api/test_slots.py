"""No more requests are under way than an endpoint answers in time."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from polyad.config import LanguageModelSettings
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import Request
from polyad.openai_api.slots import Slots
from polyad.protocols.components import Prompt, Reply
from tests.scripted_server import ScriptedServer


class FullError(Exception):
    """There is no slot left."""


def full() -> None:
    raise FullError


def room(slots: Slots) -> int:
    """How many requests may be under way."""
    with contextlib.ExitStack() as held:
        for number in range(100):
            try:
                held.enter_context(slots.acquire(full))
            except FullError:
                return number
    raise AssertionError("there is no limit")


def time_out(slots: Slots) -> None:
    with pytest.raises(TimeoutError), slots.acquire(full):
        raise TimeoutError


def test_each_timeout_halves_what_may_be_under_way_down_to_one() -> None:
    slots = Slots(5, TimeoutError)
    rooms = []
    for _ in range(4):
        rooms.append(room(slots))
        time_out(slots)
    assert rooms == [5, 2, 1, 1]


def test_requests_of_one_moment_that_time_out_count_once() -> None:
    slots = Slots(8, TimeoutError)
    with pytest.raises(TimeoutError), slots.acquire(full), slots.acquire(full), slots.acquire(full):
        raise TimeoutError
    assert room(slots) == 4


def test_replies_in_time_let_more_through_again() -> None:
    slots = Slots(4, TimeoutError)
    time_out(slots)
    for _ in range(200):
        with slots.acquire(full):
            pass
    assert room(slots) == 4


def test_other_failures_change_nothing() -> None:
    slots = Slots(4, TimeoutError)
    with pytest.raises(ValueError, match="broken"), slots.acquire(full):
        raise ValueError("broken")
    assert room(slots) == 4


def test_a_server_that_answers_one_request_after_another_answers_all() -> None:
    busy = threading.Lock()

    def one_at_a_time(request: Request) -> str:
        came = time.monotonic()
        with busy:
            if time.monotonic() - came < 0.5:  # whoever asked has gone otherwise
                time.sleep(0.05)
        return "fine"

    prompts = [Prompt(user=str(number)) for number in range(40)]
    with ScriptedServer(one_at_a_time) as server:
        settings = LanguageModelSettings(
            model="m", base_url=server.base_url, timeout=0.5, concurrency=32, max_retries=5, retry_delay=0.01
        )
        outcomes = OpenAILanguageModel(settings).complete(prompts)
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
