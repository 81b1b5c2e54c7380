from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi")

from polyad.config import EncoderSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, TextKind
from polyad_server.encoding import MAX_BATCH, BatchingEmbedder, SharedEmbedders
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import build_index, open_index

QUESTIONS = [f"Who cast bell {number}?" for number in range(60)]


class SlowEmbedder(HashingEmbedder):
    """An embedder that records its batches, and rejects blank texts."""

    def __init__(self) -> None:
        super().__init__(64)
        self.batches: list[int] = []

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.batches.append(len(texts))
        time.sleep(0.01)
        if "" in texts:
            raise ValueError("blank text")
        return super().encode(texts, kind)


def encode_at_once(embedder: Embedder, texts: Sequence[str]) -> list[FloatArray | Exception]:
    barrier = threading.Barrier(len(texts))

    def encode(text: str) -> FloatArray | Exception:
        barrier.wait()
        try:
            vector: FloatArray = embedder.encode([text], "query")[0]
        except ValueError as error:
            return error
        return vector

    with ThreadPoolExecutor(len(texts)) as threads:
        return list(threads.map(encode, texts))


def test_concurrent_questions_get_their_own_vectors_in_few_batches() -> None:
    slow = SlowEmbedder()
    vectors = encode_at_once(BatchingEmbedder(slow), QUESTIONS)
    np.testing.assert_array_equal(np.array(vectors), HashingEmbedder(64).encode(QUESTIONS, "query"))
    assert len(slow.batches) < len(QUESTIONS) / 4
    assert max(slow.batches) <= MAX_BATCH


def test_a_lone_question_is_a_batch_of_its_own() -> None:
    slow = SlowEmbedder()
    embedder = BatchingEmbedder(slow)
    for question in QUESTIONS[:3]:
        embedder.encode([question, question], "query")
    embedder.encode(QUESTIONS, "passage")
    assert slow.batches == [2, 2, 2, len(QUESTIONS)]


def test_the_words_of_a_model_are_known_through_a_batching_embedder(embedder: Embedder) -> None:
    words = ["warranties", "Heart", "extinguihser"]
    assert BatchingEmbedder(embedder).knows_words(words) == [False, True, False]
    assert BatchingEmbedder(SlowEmbedder()).knows_words(words) == [False, False, False]


def test_a_question_that_the_model_rejects_fails_alone() -> None:
    embedder = BatchingEmbedder(SlowEmbedder())
    texts = ["Bell", "", "Tower", "Tarn"]
    vectors = encode_at_once(embedder, texts)
    assert [isinstance(vector, ValueError) for vector in vectors] == [False, True, False, False]
    assert len(embedder.encode(["Bell"], "query")) == 1


def test_workspaces_share_one_embedder_of_each_name(tmp_path: Path) -> None:
    names: list[str] = []

    def load(name: str, settings: EncoderSettings) -> Embedder:
        names.append(name)
        return HashingEmbedder(64)

    directories = [build_index(tmp_path / name) for name in ("one", "two")]
    workspaces = Workspaces(open_index(), directories, tmp_path / "root", load_embedder=SharedEmbedders(load).get)
    (tmp_path / "root").mkdir()
    workspaces.create("three")
    for workspace in workspaces.list_all():
        workspace.engine.search("Who cast the bell?", 1)
    workspaces.close()
    assert names == ["hashing:64"]
