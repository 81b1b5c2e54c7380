from __future__ import annotations

import threading

import pytest

pytest.importorskip("fastapi")

from polyad.server.limits import Turnstile
from polyad.server.problems import RequestError


def test_slots_are_assigned_in_the_order_of_arrival() -> None:
    turnstile = Turnstile(running=1, waiting=1, name="searches")
    order: list[str] = []
    is_full = threading.Event()

    def search() -> None:
        try:
            with turnstile.enter():
                order.append("earlier")
        except RequestError:
            is_full.set()

    threads = [threading.Thread(target=search) for _ in range(2)]
    with turnstile.enter():
        for thread in threads:
            thread.start()
        assert is_full.wait(10)  # so the other one is in the queue
    with turnstile.enter():
        order.append("later")
    for thread in threads:
        thread.join(10)
    assert order == ["earlier", "later"]


def test_a_failed_request_releases_its_slot() -> None:
    turnstile = Turnstile(running=1, waiting=0, name="searches")
    for _ in range(3):
        with pytest.raises(KeyError), turnstile.enter():
            raise KeyError
    with turnstile.enter(), pytest.raises(RequestError) as caught, turnstile.enter():
        pass
    assert (caught.value.status, caught.value.retry_after) == (429, 1)
