"""One engine, several threads: searches side by side, and beside a writer."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from polyad.curation.curator import Curator, HistoryRecorder
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import NEED_LANGUAGE_MODEL, RETRIEVERS, Engine
from polyad.engine.settings import Settings
from polyad.errors import StoreError
from polyad.model import Document, Evidence
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_scorer import Recipe, TripleScorer
from polyad.stores.sqlite import FILE_NAME

QUESTION = "Where did Anna Keller meet Bob Stone?"

OFFLINE = sorted({*RETRIEVERS} - NEED_LANGUAGE_MODEL)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    embedder = HashingEmbedder(32)
    weights = tmp_path / "weights.safetensors"
    TripleScorer.create_untrained(Recipe(embedder=embedder.name, dimension=embedder.dimension)).save(weights)
    settings = Settings(hyperretriever=HyperRetrieverSettings(weights=str(weights)))
    with Engine.open(tmp_path, embedder=embedder, settings=settings) as opened:
        yield opened


def document(number: int, edition: int = 0) -> Document:
    text = f"Anna Keller met Bob Stone in Town {number}, in the year {1900 + edition}. "
    return Document(f"d{number:02}", f"Town {number}", text * (1 + edition % 2))


def is_sound(evidence: Evidence) -> bool:
    """Whether what the evidence shows belongs together."""
    passages = {hit.passage.id for hit in evidence.passages}
    edges = {edge.hyperedge.id for edge in evidence.hyperedges}
    beyond = evidence.retriever in ("hypergraphrag", "hyperretriever")  # their hyperedges are evidence by themselves
    scores = [hit.score for hit in evidence.passages]
    return (
        (beyond or all(edge.hyperedge.passage_id in passages for edge in evidence.hyperedges))
        and all(step.hyperedge_id in edges for step in evidence.trace)
        and all(beyond or step.passage_id in passages for step in evidence.trace)
        and scores == sorted(scores, reverse=True)
        and len(passages) == len(scores)
    )


@pytest.mark.parametrize("name", sorted({*OFFLINE} - {"none"}))
def test_threads_that_search_side_by_side_find_what_one_finds(engine: Engine, name: str) -> None:
    engine.index_documents(map(document, range(30)))
    alone = list(engine.search(QUESTION, retriever=name).passages)
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda _: engine.search(QUESTION, retriever=name).passages, range(24)))
    assert [list(hits) for hits in results] == [alone] * 24


@pytest.mark.parametrize("name", sorted({*OFFLINE} - {"none"}))
def test_a_search_beside_a_writer_gives_sound_evidence(engine: Engine, name: str) -> None:
    engine.index_documents(map(document, range(20)))
    done = threading.Event()

    def write() -> None:
        try:
            for edition in range(1, 8):
                engine.index_documents(document(number, edition) for number in range(20))
                engine.remove([f"d{number:02}" for number in range(edition, 20, 7)])
        finally:
            done.set()

    def search() -> list[bool]:
        sound = [is_sound(engine.search(QUESTION, retriever=name))]
        while not done.is_set():
            sound.append(is_sound(engine.search(QUESTION, retriever=name)))
        return sound

    with ThreadPoolExecutor(4) as pool:
        writer = pool.submit(write)
        searches = [pool.submit(search) for _ in range(3)]
        writer.result(timeout=60)
        assert all(all(future.result(timeout=60)) for future in searches)


def test_statistics_are_recomputed_after_all_documents_were_replaced(engine: Engine) -> None:
    for edition in range(4):
        engine.index_documents(document(number, edition) for number in range(20))
        evidence = engine.search(QUESTION, retriever="default")
        assert is_sound(evidence)
        assert evidence.hyperedges, "of common entities, which are counted"


def test_a_search_sees_what_was_indexed_before_it(engine: Engine) -> None:
    for number in range(5):
        engine.index_documents([document(number)])
        assert len(engine.search(QUESTION, 100, retriever="dense").passages) == number + 1
    engine.remove(["d03"])
    passages = engine.search(QUESTION, 100, retriever="dense").passages
    assert [hit.passage.document_id for hit in passages if hit.passage.document_id == "d03"] == []


def test_a_search_sees_what_another_engine_indexed(engine: Engine, tmp_path: Path) -> None:
    engine.index_documents([document(1)])
    assert len(engine.search(QUESTION, 9, retriever="dense").passages) == 1
    with Engine.open(tmp_path, embedder=HashingEmbedder(32)) as other:
        other.index_documents([document(2)])
    assert len(engine.search(QUESTION, 9, retriever="dense").passages) == 2


def test_an_index_that_lists_what_it_does_not_have_says_that_it_may_be_damaged(engine: Engine, tmp_path: Path) -> None:
    engine.index_documents(map(document, range(3)))
    engine.prepare("dense")
    with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as connection:
        connection.execute("UPDATE passage SET number = number + 1000")
    with pytest.raises(StoreError, match="the index is damaged: restore it from a copy, or index again"):
        engine.search(QUESTION, retriever="dense")


def call_in_fork(call: Callable[[], object]) -> int:
    """Return the exit code of a forked process that calls a function: 0, or 3 after a StoreError; -9 if it hangs."""
    if not (child := os.fork()):
        code = 1
        try:
            call()
            code = 0
        except StoreError:
            code = 3
        finally:
            os._exit(code)
    timer = threading.Timer(20, os.kill, [child, signal.SIGKILL])
    timer.start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    timer.cancel()
    return code


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_is_forked_while_threads_search_is_refused_and_does_not_wait(engine: Engine) -> None:
    engine.index_documents(map(document, range(30)))
    is_over = threading.Event()

    def search() -> None:
        while not is_over.is_set():
            engine.search(QUESTION)

    def write() -> None:
        while not is_over.is_set():
            engine.index_documents([document(1, edition) for edition in range(2)])

    calls: list[Callable[[], object]] = [
        lambda: engine.search(QUESTION),
        lambda: engine.index_documents([document(50)]),
        lambda: engine.catalogue.statistics(),
        lambda: engine.corrections.disable("d01"),
        lambda: engine.values.get_values("x"),
    ]
    with ThreadPoolExecutor(4) as pool:
        threads = [pool.submit(run) for run in (search, search, search, write)]
        try:
            assert [call_in_fork(call) for call in calls] == [3] * len(calls)
            assert call_in_fork(engine.close) == 0
        finally:
            is_over.set()
        for thread in threads:
            thread.result()
    assert engine.search(QUESTION).passages


def test_pruning_keeps_a_file_that_another_process_added_and_indexed_meanwhile(tmp_path: Path) -> None:
    docs, embedder = tmp_path / "docs", HashingEmbedder(32)
    docs.mkdir()
    for name in ("a.md", "b.md"):
        (docs / name).write_text(f"Anna Keller met Bob Stone in {name}.", encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder=embedder) as first, Engine.open(tmp_path / "kb") as second:
        first.index([docs])
        (docs / "b.md").unlink()

        def add_file(done: int, total: int | None, message: str) -> None:
            if done and not (docs / "0.md").exists():
                (docs / "0.md").write_text("Ines Moreau was born in Aldby.", encoding="utf-8")
                second.index([docs / "0.md"])

        report = first.index([docs], prune=True, progress=add_file)
        assert report.missing == (f"{docs}/b.md",)
        assert set(first.catalogue.sources()) == {f"{docs}/0.md", f"{docs}/a.md"}


def test_two_processes_may_prune_the_same_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a.md", "b.md", "c.md"):
        (docs / name).write_text(f"Anna Keller met Bob Stone in {name}.", encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32)) as first, Engine.open(tmp_path / "kb") as second:
        first.index([docs])
        for name in ("b.md", "c.md"):
            (docs / name).unlink()
        remove = Curator.remove

        def remove_after_another(curator: Curator, ids: list[str], recorder: HistoryRecorder) -> None:
            monkeypatch.undo()
            second.remove(f"{docs}/b.md")
            remove(curator, ids, recorder)

        monkeypatch.setattr(Curator, "remove", remove_after_another)
        first.index([docs], prune=True)
        assert set(first.catalogue.sources()) == {f"{docs}/a.md"}
