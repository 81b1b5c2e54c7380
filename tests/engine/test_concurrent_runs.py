"""Two processes that index one store: the later one is told, and neither waits."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from polyad import Document, Engine
from polyad.engine import concurrent_runs
from tests.postgres_server import get_url
from tests.waiting import wait_until

SLOW_RUN = """
import sys
from polyad import Document, Engine
from polyad.engine import concurrent_runs

concurrent_runs.FIRST_BEAT = 0.1

def documents():
    yield Document("a", "Tarn", "Ines Moreau cast the bell of Tarn.")
    sys.stdin.readline()

with Engine.open(sys.argv[1], embedder="hashing:32") as engine:
    engine.index_documents(documents())
"""
NOTICE = "has been indexing this store since "


@pytest.fixture(params=["folder", pytest.param("database", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "kb") if request.param == "folder" else get_url(tmp_path)


@contextmanager
def indexing(place: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process that indexes documents, once its heartbeat is in the store; a line of input ends its run."""
    process = subprocess.Popen([sys.executable, "-c", SLOW_RUN, place], stdin=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: process.poll() is not None or has_heartbeat(place))
        yield process
    finally:
        process.kill()
        process.wait()


def has_heartbeat(place: str) -> bool:
    if not Engine.exists(place):
        return False
    with Engine.open(place, create=False) as engine:
        return bool(engine.values.get_values(concurrent_runs.RUNS))


def run_index(place: str, file: Path) -> str:
    """Return what ``polyad index`` prints on standard error."""
    command = [sys.executable, "-m", "polyad", "index", str(file), "--store", place, "--embedder", "hashing:32"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stderr


def test_the_later_of_two_processes_is_told_and_does_not_wait(place: str, tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("Bo Ray built Corven Tower.")
    with indexing(place) as first:
        lines = [line for line in run_index(place, tmp_path / "b.md").splitlines() if NOTICE in line]
        assert len(lines) == 1
        assert f"another process ({first.pid}, " in lines[0]
        assert first.poll() is None
        first.communicate("\n")
        assert first.returncode == 0
    assert not has_heartbeat(place)
    assert NOTICE not in run_index(place, tmp_path / "b.md")


def put_run(engine: Engine, beat: datetime) -> None:
    run = {"process": [1, "elsewhere"], "start": "2026-11-28T09:00:00+00:00", "beat": beat.isoformat()}
    engine.values.put_values(concurrent_runs.RUNS, {"other": json.dumps(run).encode()})


@pytest.mark.parametrize(("silence", "count"), [(5, 1), (60, 0), (-3600, 0)])
def test_a_run_that_is_silent_has_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, silence: int, count: int
) -> None:
    monkeypatch.setattr(concurrent_runs, "FIRST_BEAT", 0.01)
    monkeypatch.setattr(concurrent_runs, "INTERVAL", 0.01)
    caplog.set_level(logging.WARNING)
    with Engine.open(tmp_path / "kb", embedder="hashing:32") as engine:
        put_run(engine, datetime.now(UTC) - timedelta(seconds=silence))

        def documents() -> Iterator[Document]:
            yield Document("a", "Tarn", "Ines Moreau cast the bell of Tarn.")
            wait_until(lambda: len(engine.values.get_values(concurrent_runs.RUNS)) == 2)

        engine.index_documents(documents())
        assert [message for message in caplog.messages if NOTICE in message] == [
            "another process (1, elsewhere) has been indexing this store since 2026-11-28T09:00:00+00:00; "
            "the same documents may be read twice"
        ] * count
        assert not engine.values.get_values(concurrent_runs.RUNS)


def test_a_short_run_writes_no_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine.open(tmp_path / "kb", embedder="hashing:32") as engine:
        put = type(engine.values).put_values

        def check(self: object, namespace: str, *arguments: object, **options: object) -> None:
            assert namespace != concurrent_runs.RUNS
            put(self, namespace, *arguments, **options)  # type: ignore[arg-type]  # passed on as they came

        monkeypatch.setattr(type(engine.values), "put_values", check)
        engine.index_documents([Document("a", "Tarn", "Ines Moreau cast the bell of Tarn.")])


@pytest.mark.parametrize(
    "value", [b"{", b"7", b"[]", b"null", b"{}", b'{"beat": "2026", "process": 7, "start": ""}', b"\xff"]
)
def test_damaged_heartbeats_do_not_stop_indexing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, value: bytes
) -> None:
    with Engine.open(tmp_path / "kb", embedder="hashing:32") as engine:
        engine.values.put_values(concurrent_runs.RUNS, {"damaged": value})
        report = engine.index_documents([Document("a", "Tarn", "Ines Moreau cast the bell of Tarn.")])
    assert report.is_complete
    assert not caplog.records
