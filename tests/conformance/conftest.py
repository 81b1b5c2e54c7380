from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from polyad.adapters.sqlite import SqliteStore
from polyad.protocols import Store

Opener = Callable[[], Store]
"""Opens the one index of a test, and makes it the first time; each call is another handle on it."""


def open_sqlite(directory: Path) -> Store:
    return SqliteStore.create(directory, "test", 4, "rules")


STORES: dict[str, Callable[[Path], Store]] = {"sqlite": open_sqlite}
"""One line for each implementation of the protocol."""


@pytest.fixture(params=sorted(STORES))
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    opened: list[Store] = []

    def opener() -> Store:
        opened.append(STORES[request.param](tmp_path / "index"))
        return opened[-1]

    yield opener
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Opener) -> Store:
    return open_store()
