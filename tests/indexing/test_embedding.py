from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import EmbedderError
from polyad.indexing import embedding
from polyad.indexing.embedding import SAVE_SECONDS, PendingVectors, embed_texts
from polyad.model import FloatArray
from polyad.protocols.components import TextKind
from polyad.protocols.store import Manifest
from polyad.stores.sqlite import SqliteStore


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
    monkeypatch.setattr(embedding, "CALL_CHARACTERS", 100)


def test_texts_have_the_vectors_that_one_call_gives_them() -> None:
    vectors = embed_texts(Remembering(), TEXTS, lambda done: None)
    assert vectors.tobytes() == HashingEmbedder(16).encode(TEXTS, "passage").tobytes()


def test_a_call_is_of_few_characters_and_it_is_told_how_many_texts_are_done() -> None:
    embedder, numbers = Remembering(), list[int]()
    embed_texts(embedder, TEXTS, numbers.append)
    assert all(sum(map(len, call)) <= 100 for call in embedder.calls)
    assert sorted(text for call in embedder.calls for text in call) == sorted(TEXTS)
    assert len(numbers) == len(embedder.calls) > 5
    assert numbers == sorted(numbers)
    assert numbers[-1] == len(TEXTS)


def test_texts_of_like_length_are_embedded_together() -> None:
    embedder = Remembering()
    embed_texts(embedder, ["long " * 15, "a", "lang " * 15, "b"], lambda done: None)
    assert embedder.calls == [["a", "b", "long " * 15], ["lang " * 15]]


def test_a_text_longer_than_a_call_is_embedded_by_itself() -> None:
    embedder = Remembering()
    embed_texts(embedder, ["long " * 200, "a"], lambda done: None)
    assert embedder.calls == [["long " * 200], ["a"]]


def test_no_texts_give_no_vectors() -> None:
    assert embed_texts(Remembering(), [], lambda done: None).shape == (0, 16)


class Failing(Remembering):
    """Fails when it has been asked so often; each call takes a second."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self._most = calls

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        if len(self.calls) == self._most:
            raise EmbedderError("enough")
        return super().encode(texts, kind)

    def seconds(self) -> float:
        return float(len(self.calls))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(tmp_path / "index", Manifest("test", 16, "rules"))
    yield store
    store.close()


def test_texts_embedded_before_a_failure_are_not_embedded_again(store: SqliteStore) -> None:
    assert SAVE_SECONDS == 2
    failing, second, numbers = Failing(5), Remembering(), list[int]()
    with pytest.raises(EmbedderError):
        embed_texts(failing, TEXTS, lambda done: None, PendingVectors(store, clock=failing.seconds))
    vectors = embed_texts(second, TEXTS, numbers.append, PendingVectors(store))
    assert vectors.tobytes() == HashingEmbedder(16).encode(TEXTS, "passage").tobytes()
    remaining = [text for call in failing.calls[:4] for text in call]  # the fifth came less than two seconds later
    assert sorted(remaining + [text for call in second.calls for text in call]) == sorted(TEXTS)
    assert numbers[0] == len(remaining) + len(second.calls[0])
    assert numbers[-1] == len(TEXTS)


def test_vectors_of_fast_batches_are_not_saved(store: SqliteStore) -> None:
    embed_texts(Remembering(), TEXTS, lambda done: None, PendingVectors(store, clock=lambda: 0.0))
    assert PendingVectors(store).load(TEXTS) == {}


def test_half_a_character_is_embedded_too(store: SqliteStore) -> None:
    texts, clock = ["half \ud83d"], iter([0.0, 9.0, 9.0])
    embed_texts(Remembering(), texts, lambda done: None, PendingVectors(store, clock=lambda: next(clock)))
    assert list(PendingVectors(store).load(texts)) == [0]
