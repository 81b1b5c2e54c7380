from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.embedders.metered import MeteredEmbedder
from polyad.errors import EmbedderError
from polyad.model import FloatArray
from polyad.protocols.components import TextKind


class Slow(HashingEmbedder):
    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        time.sleep(0.02)
        if "fail" in texts:
            raise EmbedderError("as told")
        return super().encode(texts, kind)


def test_a_metered_embedder_returns_the_vectors_of_the_inner_one() -> None:
    inner = HashingEmbedder(8)
    metered = MeteredEmbedder(inner)
    assert (metered.name, metered.dimension) == (inner.name, 8)
    assert metered.encode(["a", "b"], "query").tobytes() == inner.encode(["a", "b"], "query").tobytes()


def test_seconds_and_texts_add_up() -> None:
    metered = MeteredEmbedder(Slow(8))
    assert (metered.seconds, metered.text_count) == (0, 0)
    metered.encode(["a", "b"], "query")
    first = metered.seconds
    metered.encode(["c"], "passage")
    assert 0.02 <= first < metered.seconds
    assert metered.text_count == 3


def test_time_that_ended_in_an_error_counts() -> None:
    metered = MeteredEmbedder(Slow(8))
    with pytest.raises(EmbedderError):
        metered.encode(["fail"], "query")
    assert metered.seconds >= 0.02


def test_a_query_is_embedded_once_within_a_block_that_remembers() -> None:
    inner = HashingEmbedder(8)
    metered = MeteredEmbedder(inner)
    expected = inner.encode(["b", "a", "c"], "query").tobytes()
    with metered.prefetch(["c"], "query"), metered.cache_queries():
        metered.encode(["a", "b"], "query")
        assert metered.encode(["b", "a", "c"], "query").tobytes() == expected
        assert metered.text_count == 3, "c ahead, then a and b"
        metered.encode(["a"], "passage")
        metered.encode(["a"], "passage")
        assert metered.text_count == 5, "passages are many, and asked for once"
    metered.encode(["b"], "query")
    assert metered.text_count == 6


def test_each_thread_has_its_own_account() -> None:
    metered = MeteredEmbedder(Slow(8))
    seen: list[tuple[float, int]] = []

    def work() -> None:
        metered.encode(["a"], "query")
        seen.append((metered.seconds, metered.text_count))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen[0][0] >= 0.02
    assert seen[0][1] == 1
    assert (metered.seconds, metered.text_count) == (0, 0)


class Careless(HashingEmbedder):
    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        return super().encode([*texts, "one more"], kind)


def test_an_array_of_another_shape_than_promised_is_refused() -> None:
    with pytest.raises(
        EmbedderError, match=r"'hashing:8' returned an array of shape \(3, 8\) for 2 texts; expected \(2, 8\)"
    ):
        MeteredEmbedder(Careless(8)).encode(["a", "b"], "query")
