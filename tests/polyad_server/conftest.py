from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from polyad import Document, Engine
from polyad.config import ServerSettings
from polyad_server.app import create_app
from polyad_server.keys import add_key
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server of one index without keys and without a language model."""
    workspaces = Workspaces(open_index(), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(max_k=20))) as running:
        yield running


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[tuple[RunningServer, dict[str, str]]]:
    """A server of the indexes ``one`` and ``two``, each with a key for reading and writing."""
    keys = {}
    for name, text in (("one", "The secret of one is amber."), ("two", "The secret of two is basalt.")):
        with Engine.open(build_index(tmp_path / "root" / name, (Document("a.md", name, text),))) as engine:
            keys[name] = add_key(engine.values, "client", "write", datetime.now(UTC))
    workspaces = Workspaces(open_index(), [], tmp_path / "root")
    with run_app(create_app(workspaces)) as running:
        yield running, keys
