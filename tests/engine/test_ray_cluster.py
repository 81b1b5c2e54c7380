"""Indexing on a Ray cluster: the index of one process, whatever process of the cluster or driver dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyad.config import LanguageModelSettings, ReadSettings
from polyad.engine import Engine, loaders
from polyad.errors import ConfigurationError
from polyad.indexing.run import IndexReport
from polyad.language_models.scripted import Request, extract_passage
from polyad.model import IndexedDocument
from polyad.readers.formats import list_formats
from polyad.stores.sqlite import SqliteStore
from tests.scripted_server import ScriptedServer

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,  # Ray starts a process for each task and actor, some 20 s together
    pytest.mark.skipif(sys.platform == "win32", reason="Ray on Windows is a beta"),
]

from polyad.engine.ray_cluster import RayCluster  # noqa: E402  # needs Ray


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with RayCluster("local") as cluster:
        yield cluster


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of files that the driver, a task and nobody can read."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(6):
        text = f"Ines Moreau met Anna {number} in Oslo.\n\nShe came from Aldby in {1900 + number}.\n\n"
        (folder / f"{number}.txt").write_text(text * 20)
        (folder / f"{number}.html").write_text(f"<h1>Letter {number}</h1><p>{text}</p>")
    (folder / "damaged.pdf").write_bytes(b"%PDF-1.7\nnothing")
    (folder / "people.jsonl").write_text('{"_id": "ada", "text": "Ada Byron wrote to Charles Babbage."}\n')
    return folder


def index(place: Path, folder: Path, loader: loaders.Loader, server: ScriptedServer | None = None) -> IndexReport:
    model = LanguageModelSettings(model="m", base_url=server.base_url, api_key="k") if server else None
    with Engine.open(place, embedder="hashing:16", language_model=model, loader=loader) as engine:
        return engine.index(folder, method="facts" if server else "")


def contents(place: Path) -> list[object]:
    """Return everything about the documents of an index but the time when they were indexed."""
    store = SqliteStore.open(place)
    with store.read_transaction() as transaction:
        documents = transaction.get(IndexedDocument)
    store.close()
    return [
        (
            document.document,
            document.digest,
            [
                (
                    item.passage,
                    item.vector.tobytes(),
                    [(e.hyperedge, e.incidences, e.vector.tobytes()) for e in item.hyperedges],
                )
                for item in document.passages
            ],
        )
        for document in documents.values()
    ]


def state_fact(request: Request) -> str:
    """Reply with a fact about the passage of a request."""
    words = extract_passage(str(request["messages"][-1]["content"])).split()
    return f'{{"facts": [{{"fact": "{" ".join(words[:5])}", "entities": ["{words[0]}", "Oslo"], "score": 9}}]}}'


def test_the_index_equals_that_of_one_process(tmp_path: Path, folder: Path, cluster: RayCluster) -> None:
    reports = [index(tmp_path / "local", folder, loaders), index(tmp_path / "ray", folder, cluster)]
    assert reports[0].counts == reports[1].counts
    assert reports[0].counts.added == 13
    assert [Path(failure.id).name for failure in reports[1].failures] == ["damaged.pdf"]
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


def test_the_replies_of_a_language_model_on_the_cluster_are_paid_once(
    tmp_path: Path, folder: Path, cluster: RayCluster
) -> None:
    with ScriptedServer(state_fact) as server:
        index(tmp_path / "local", folder, loaders, server)
        requests = len(server.requests)
        report = index(tmp_path / "ray", folder, cluster, server)
        assert len(server.requests) == 2 * requests == 2 * report.usage.calls
        assert index(tmp_path / "ray", folder, cluster, server).counts.unchanged == 13
        assert len(server.requests) == 2 * requests
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


def test_a_budget_ends_the_run_on_a_cluster(tmp_path: Path, folder: Path, cluster: RayCluster) -> None:
    with ScriptedServer(state_fact) as server:
        model = LanguageModelSettings(model="m", base_url=server.base_url, api_key="k", concurrency=1)
        with Engine.open(tmp_path / "kb", embedder="hashing:16", language_model=model, loader=cluster) as engine:
            report = engine.index(folder, method="facts", max_tokens=3_000)
        assert report.counts.stop_reason
        assert 0 < len(server.requests) < 13


def test_a_rejected_key_on_the_cluster_is_one_line(tmp_path: Path, folder: Path, cluster: RayCluster) -> None:
    model = LanguageModelSettings(model="m", base_url="http://127.0.0.1:9/v1", api_key="k", max_retries=0)
    with Engine.open(tmp_path / "kb", embedder="hashing:16", language_model=model, loader=cluster) as engine:
        report = engine.index(folder, method="facts")
    assert report.counts.stop_reason
    assert "\n" not in report.counts.stop_reason
    assert "Traceback" not in report.counts.stop_reason


def test_an_unknown_extractor_is_a_configuration_error(tmp_path: Path, cluster: RayCluster) -> None:
    with pytest.raises(ConfigurationError, match="nothing-of-the-kind"):
        Engine.open(tmp_path / "kb", embedder="hashing:16", mention_extractor="nothing-of-the-kind", loader=cluster)


def test_a_file_above_the_limit_is_not_sent_to_the_cluster(tmp_path: Path, cluster: RayCluster) -> None:
    path = tmp_path / "large.html"
    path.write_text(f"<p>{'word ' * 100}</p>")
    pool = cluster.open_reading_pool(ReadSettings(max_bytes=100))
    with contextlib.closing(pool), pytest.raises(Exception, match="max_bytes"):
        pool.submit(path, list_formats()[".html"]).wait(lambda _: None)


def test_a_run_continues_when_processes_of_the_cluster_are_killed(
    tmp_path: Path, folder: Path, cluster: RayCluster
) -> None:
    index(tmp_path / "local", folder, loaders)
    is_done = threading.Event()
    kills = 0

    def kill() -> None:
        nonlocal kills
        while not is_done.wait(0.5):
            for pid in find_processes("ray::Host"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
            if kills > 3:
                return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        while kills < 4:
            with Engine.open(tmp_path / "ray", embedder="hashing:16", loader=cluster) as engine:
                assert engine.index(folder, force=True).counts.added + len(contents(tmp_path / "ray")) >= 13
    finally:
        is_done.set()
        thread.join()
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


def find_processes(name: str) -> list[int]:
    """Return the processes whose title begins with a name and whose ancestor is this process."""
    listing = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 2) for line in listing.splitlines()[1:]]
    parents = {int(pid): int(parent) for pid, parent, _ in lines}

    def is_descendant(pid: int) -> bool:
        while pid and pid != os.getpid():
            pid = parents.get(pid, 0)
        return pid != 0

    return [int(pid) for pid, _, title in lines if title.startswith(name) and is_descendant(int(pid))]


def test_embedder_and_extractor_share_the_only_gpu(tmp_path: Path, folder: Path) -> None:
    script = """
import sys
from ray.cluster_utils import Cluster
from polyad.engine import Engine
from polyad.engine.ray_cluster import RayCluster

folder, *places = sys.argv[1:]
machine = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 1, "include_dashboard": False})
with RayCluster(machine.address) as cluster:
    for place in places:
        with Engine.open(place, embedder="hashing:16", loader=cluster) as engine:
            engine.index(folder)
machine.shutdown()
"""
    places = [str(tmp_path / "first"), str(tmp_path / "second")]
    subprocess.run([sys.executable, "-c", script, str(folder), *places], check=True, timeout=120)
    index(tmp_path / "local", folder, loaders)
    assert contents(tmp_path / "first") == contents(tmp_path / "second") == contents(tmp_path / "local")


def test_a_killed_driver_resumes_without_paying_again(tmp_path: Path, folder: Path) -> None:
    with ScriptedServer(state_fact, delay=0.5) as server:
        command = ["index", str(folder), "--store", str(tmp_path / "ray"), "--embedder", "hashing:16", "--ray", "local"]
        command = [sys.executable, "-m", "polyad", *command, "--method", "facts", "--model", "m", "--quiet"]
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "k",
            "POLYAD_LANGUAGE_MODEL_CONCURRENCY": "1",  # a killed driver loses the replies under way
        }
        process = subprocess.Popen(command, env=environment)
        while len(server.requests) < 5:
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
        process.wait()
        stopped_at = len(server.requests)
        assert subprocess.run(command, env=environment, check=False).returncode == 1  # one file is damaged
        distinct = {extract_passage(str(each.body["messages"][-1]["content"])) for each in server.requests}
        assert stopped_at < len(distinct)
        assert len(server.requests) <= len(distinct) + 1  # the request under way when the driver was killed
        index(tmp_path / "local", folder, loaders, server)
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
