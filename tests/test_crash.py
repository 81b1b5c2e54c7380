"""Whatever dies when: a document is in the index whole or not at all, and the next run completes the work."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document, Entity, FloatArray
from polyad.protocols.components import TextKind
from polyad.protocols.lookups import get_all, get_digests, get_document_passages, get_incidences
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.sqlite import SqliteStore

DOCUMENTS = 500
SENTENCES = 30
"""Of each document; enough for several passages."""

KILLS = 6

RUN = """
import sys
from polyad.embedders.hashing import HashingEmbedder
from polyad.config import SplitSettings
from polyad.engine.settings import Settings
from polyad.snapshot.provider import SnapshotProvider
from polyad.engine import Engine
from polyad.model import Document

settings = Settings(split=SplitSettings(passage_tokens=200, overlap_tokens=20))

def documents(edition):
    for number in range(int(sys.argv[2])):
        sentences = [
            f"Anna {number} of edition {edition} met Bob {number % 7} in Oslo in the year {1900 + place}."
            for place in range(int(sys.argv[3]))
        ]
        yield Document(f"document {number:03}", f"Title {number % 9}", " ".join(sentences))

with Engine.open(sys.argv[1], embedder=HashingEmbedder(16), settings=settings) as engine:
    print("ready", flush=True)
    report = engine.index_documents(documents(sys.argv[4]))
    print(report.counts.failures)
    sys.exit(bool(report.failures))
"""


def start(directory: Path, edition: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, str(directory), str(DOCUMENTS), str(SENTENCES), edition]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def complete(directory: Path, edition: str) -> float:
    """Run to the end; the seconds from the moment the store was open."""
    process = start(directory, edition)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    started = time.perf_counter()
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    return time.perf_counter() - started


def hits(store: SqliteStore, question: str, k: int) -> list[tuple[str, float]]:
    snapshot = SnapshotProvider(store, store.manifest.dimension).get_current()
    rows, scores = snapshot.search_terms(question, k)
    return list(zip(snapshot.ids("passage", rows), scores.tolist(), strict=True))


def contents(directory: Path) -> dict[str, object]:
    store = SqliteStore.open(directory)
    passages = get_document_passages(store, list(get_digests(store)))
    edges = [edge for item in passages for edge in item.hyperedges]
    result: dict[str, object] = {
        "digests": get_digests(store),
        "documents": get_all(store, Document, list(get_digests(store))),
        "passages": [item.passage for item in passages],
        "passage vectors": [item.vector.tobytes() for item in passages],
        "hyperedges": [edge.hyperedge for edge in edges],
        "hyperedge vectors": [edge.vector.tobytes() for edge in edges],
        "incidences": get_incidences(store, [edge.hyperedge.id for edge in edges]),
        "entities": get_all(store, Entity),
        "words": hits(store, "Anna 17 met Bob in edition two", 50),
    }
    store.close()
    return result


def assert_no_document_is_half_there(directory: Path, sizes: dict[str, set[tuple[int, int]]]) -> int:
    """Each document has the passages and hyperedges of one of its editions; how many documents there are."""
    store = SqliteStore.open(directory)
    items = get_document_passages(store, list(get_digests(store)))
    counted = counts(store)
    for id, size in counted.items():
        assert size in sizes[id]
    texts = {document.id: document.text for document in get_all(store, Document, list(get_digests(store)))}
    for passage in (item.passage for item in items):
        assert texts[passage.document_id][passage.start : passage.end] == passage.text
    assert len(hits(store, "Anna met Bob", 100_000)) == len(items)
    store.close()
    return len(counted)


def counts(store: SqliteStore) -> dict[str, tuple[int, int]]:
    """How many passages and hyperedges each document has, by its id."""
    passages, hyperedges = dict.fromkeys(get_digests(store), 0), dict.fromkeys(get_digests(store), 0)
    with store.read_transaction() as transaction:
        for rows in transaction.rows(transaction.changes().documents):
            owner = dict(zip(rows.passage_numbers.tolist(), rows.document_ids, strict=True))
            for id in owner.values():
                passages[id] += 1
            for number in rows.passage_of_hyperedge.tolist():
                hyperedges[owner[number]] += 1
    return {id: (passages[id], hyperedges[id]) for id in passages}


def sizes_of(directory: Path) -> dict[str, tuple[int, int]]:
    store = SqliteStore.open(directory)
    counted = counts(store)
    store.close()
    return counted


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_an_index_killed_again_and_again_ends_up_as_if_nothing_had_happened(tmp_path: Path) -> None:
    moments = random.Random(2026)
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    sizes: dict[str, set[tuple[int, int]]] = {}
    partial = []
    for edition in ("one", "two"):  # the second run replaces every document of the first
        seconds = complete(undisturbed, edition)
        for id, size in sizes_of(undisturbed).items():
            sizes.setdefault(id, set()).add(size)
            assert size[0] > 1
        for _ in range(KILLS):
            process = start(disturbed, edition)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(moments.uniform(0, seconds / 2))
            process.kill()
            process.wait()
            process.stdout.close()
            partial.append(assert_no_document_is_half_there(disturbed, sizes))
        complete(disturbed, edition)
        assert contents(disturbed) == contents(undisturbed)
    assert any(0 < count < DOCUMENTS for count in partial)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_run_killed_before_its_first_document_is_taken_up_again(tmp_path: Path) -> None:
    process = start(tmp_path / "index", "one")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.wait()
    process.stdout.close()
    with Engine.open(tmp_path / "index", embedder=HashingEmbedder(16)) as engine:
        engine.index_documents([Document("a", "Anna", "Anna met Bob.")])
        assert engine.catalogue.document("a").title == "Anna"


LARGE = """
import signal, sys, time
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.indexing import embedding
from polyad.model import Document

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts in the background ignore it
embedding.SAVE_SECONDS = 0.0
embedding.CALL_CHARACTERS = 4_000

class Slow(HashingEmbedder):
    def encode(self, texts, kind):
        time.sleep(0.02)
        vectors = super().encode(texts, kind)
        print(len(texts), flush=True)
        return vectors

with Engine.open(sys.argv[1], embedder=Slow(64)) as engine:
    engine.index_documents([Document("large", "A large document", sys.stdin.read())])
"""
"""Embeds a large document by and by, and says after each call how many texts it was of."""

CALLS = 12
"""After which it is interrupted; about half of them."""


class Counting(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__(64)
        self.texts = 0

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.texts += len(texts)
        return super().encode(texts, kind)


def interrupt(directory: Path, text: str, by: int) -> list[int]:
    """Index a large document, and end that in the middle; how many texts each call embedded."""
    process = subprocess.Popen(
        [sys.executable, "-c", LARGE, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(text)
    process.stdin.close()
    calls = [int(process.stdout.readline()) for _ in range(CALLS)]
    process.send_signal(by)
    calls += map(int, process.stdout)
    assert process.wait() != 0
    process.stdout.close()
    return calls


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("name", ["SIGKILL", pytest.param("SIGINT", marks=pytest.mark.slow)])
def test_of_a_large_document_only_what_was_not_embedded_before_an_interruption_is_embedded(
    tmp_path: Path, name: str
) -> None:
    text = " ".join(f"Anna {number} met Bob {number % 97} in Oslo in the year {number}." for number in range(2000))
    document = Document("large", "A large document", text)
    undisturbed, disturbed = Counting(), Counting()
    with Engine.open(tmp_path / "undisturbed", embedder=undisturbed) as engine:
        engine.index_documents([document])
    calls = interrupt(tmp_path / "disturbed", text, getattr(signal, name))
    assert sum(calls) < undisturbed.texts * 3 / 4
    with Engine.open(tmp_path / "disturbed", embedder=disturbed) as engine:
        assert engine.catalogue.statistics().documents == 0
        engine.index_documents([document])
        assert engine.index_documents([document]).counts.unchanged == 1
    remaining = undisturbed.texts - disturbed.texts
    assert sum(calls[:-1]) <= remaining <= sum(calls)  # the call under way was lost, or kept and not said
    assert contents(tmp_path / "disturbed") == contents(tmp_path / "undisturbed")
    sizes = [(tmp_path / side / "index.sqlite").stat().st_size for side in ("disturbed", "undisturbed")]
    assert sizes[0] < 1.1 * sizes[1]
