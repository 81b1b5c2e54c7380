from __future__ import annotations

from collections.abc import Sequence

import pytest

from polyad.adapters.hashing import HashingEmbedder
from polyad.indexing import embedding
from polyad.indexing.embedding import embed
from polyad.model import FloatArray
from polyad.protocols import TextKind


class Remembering(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__(16)
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.calls.append(list(texts))
        return super().encode(texts, kind)


TEXTS = [f"{'word ' * (number % 7)}number {number}" for number in range(40)]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "BLOCK_CHARACTERS", 400)
    monkeypatch.setattr(embedding, "SLICE_CHARACTERS", 100)


def test_texts_have_the_vectors_that_one_call_gives_them() -> None:
    vectors = embed(Remembering(), TEXTS, lambda done: None)
    assert vectors.tobytes() == HashingEmbedder(16).encode(TEXTS, "passage").tobytes()


def test_a_call_is_of_few_characters_and_it_is_told_how_many_texts_are_done() -> None:
    embedder, told = Remembering(), list[int]()
    embed(embedder, TEXTS, told.append)
    assert all(sum(map(len, call)) <= 100 for call in embedder.calls)
    assert sorted(text for call in embedder.calls for text in call) == sorted(TEXTS)
    assert len(told) == len(embedder.calls) > 5
    assert told == sorted(told)
    assert told[-1] == len(TEXTS)


def test_texts_of_like_length_are_embedded_together() -> None:
    embedder = Remembering()
    embed(embedder, ["long " * 15, "a", "lang " * 15, "b"], lambda done: None)
    assert embedder.calls == [["a", "b", "long " * 15], ["lang " * 15]]


def test_a_text_longer_than_a_call_is_embedded_by_itself() -> None:
    embedder = Remembering()
    embed(embedder, ["long " * 200, "a"], lambda done: None)
    assert embedder.calls == [["long " * 200], ["a"]]


def test_no_texts_give_no_vectors() -> None:
    assert embed(Remembering(), [], lambda done: None).shape == (0, 16)
