"""Exceptions of components that users supply: each is reported as that component's, and never as a damaged index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from polyad.config import ReadSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import (
    EmbedderError,
    LanguageModelError,
    MentionExtractorError,
    ReadError,
    RerankerError,
    RetrieverError,
    StoreError,
)
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.language_models.scripted.model import ScriptedLanguageModel
from polyad.model import Document, Evidence, FloatArray, Mention, Passage, Query
from polyad.protocols.components import Prompt, Reply, TextKind
from polyad.protocols.snapshot import Snapshot
from polyad.readers.format import Format
from polyad.readers.pool.one_file import read_content

ERRORS = (IndexError("7"), ValueError("no"), KeyError("k"), sqlite3.DatabaseError("file is not a database"), OSError())
DOCUMENTS = [Document("bell", "Bell of Tarn", "The Bell of Tarn was cast by Ines Moreau in 1702.")]


class Failing:
    """Fails as a retriever and a reranker, inside and outside of a read transaction."""

    name = "failing"

    def __init__(self, error: Exception, *, in_transaction: bool = False) -> None:
        self._error = error
        self._in_transaction = in_transaction

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        if self._in_transaction:
            with snapshot.read_transaction():
                raise self._error
        raise self._error

    def scores(self, question: str, passages: Sequence[str]) -> FloatArray:
        raise self._error


class FailingEmbedder(HashingEmbedder):
    error: Exception | None = None

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        if self.error:
            raise self.error
        return super().encode(texts, kind)


class FailingLanguageModel(ScriptedLanguageModel):
    def complete(self, prompts: Sequence[Prompt], *_: Any, **__: Any) -> list[Reply | LanguageModelError]:
        raise IndexError("7")

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        on_text("The")
        raise IndexError("7")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "kb", embedder=FailingEmbedder(32)) as engine:
        engine.index_documents(DOCUMENTS)
        yield engine


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("in_transaction", [False, True])
def test_an_exception_of_a_retriever_is_reported_as_the_retrievers(
    engine: Engine, error: Exception, in_transaction: bool
) -> None:
    with pytest.raises(RetrieverError, match=f"'failing' failed: {type(error).__name__}") as raised:
        engine.search("Who?", retriever=Failing(error, in_transaction=in_transaction))
    assert raised.value.__cause__ is error
    assert engine.search("Who cast the Bell of Tarn?").passages  # the index is as good as before


def test_a_row_that_does_not_exist_is_the_retrievers_error(engine: Engine) -> None:
    class Lost(Failing):
        def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
            passages: list[Passage] = snapshot.get(Passage, [10**6])
            raise AssertionError(passages)

    with pytest.raises(RetrieverError, match="'failing' failed: IndexError"):
        engine.search("Who?", retriever=Lost(IndexError()))


def test_a_retriever_that_returns_no_evidence_is_named(engine: Engine) -> None:
    class Silent(Failing):
        def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
            return None  # type: ignore[return-value]  # the mistake is the point

    with pytest.raises(RetrieverError, match=r"the retriever 'failing' returned None; expected polyad.Evidence"):
        engine.search("Who?", retriever=Silent(ValueError()))


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_exception_of_an_embedder_is_reported_as_the_embedders(tmp_path: Path, error: Exception) -> None:
    embedder = FailingEmbedder(32)
    with Engine.open(tmp_path / "kb", embedder=embedder) as engine:
        engine.index_documents(DOCUMENTS)
        embedder.error = error
        for retriever in ("default", "dense", "hypergraphrag"):
            with pytest.raises(EmbedderError, match=f"'hashing:32' failed: {type(error).__name__}"):
                engine.search("Who cast the Bell of Tarn?", retriever=retriever)
        report = engine.index_documents([Document("tower", "Corven Tower", "Corven Tower is built of red granite.")])
        assert f"the embedder 'hashing:32' failed: {type(error).__name__}" in report.failures[0].reason


def test_an_exception_of_a_mention_extractor_is_reported_as_the_extractors(tmp_path: Path) -> None:
    class Extractor(RuleMentionExtractor):
        def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
            if any("Who" in text or "granite" in text for text in texts):
                raise IndexError("7")
            return super().extract(texts)

    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32), mention_extractor=Extractor()) as engine:
        engine.index_documents(DOCUMENTS)
        with pytest.raises(MentionExtractorError, match="the mention extractor 'rules' failed: IndexError: 7"):
            engine.search("Who cast the Bell of Tarn?")
        report = engine.index_documents([Document("tower", "Corven Tower", "Corven Tower is built of red granite.")])
        assert "the mention extractor 'rules' failed: IndexError: 7" in report.failures[0].reason


def test_an_exception_of_a_reranker_is_reported_as_the_rerankers(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32), reranker=Failing(IndexError("7"))) as engine:
        engine.index_documents(DOCUMENTS)
        with pytest.raises(RerankerError, match="'failing' failed: IndexError: 7"):
            engine.search("Who cast the Bell of Tarn?")


def test_an_exception_of_a_language_model_is_reported_as_the_models(tmp_path: Path) -> None:
    model = FailingLanguageModel(lambda _: "")
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32), language_model=model) as engine:
        engine.index_documents(DOCUMENTS)
        for on_text in (None, lambda _: None):
            with pytest.raises(LanguageModelError, match="failed: IndexError: 7"):
                engine.answer(engine.search("Who cast the Bell of Tarn?", retriever="bm25"), on_text)


def test_an_exception_of_a_callback_is_not_the_language_models(tmp_path: Path) -> None:
    def close(_: str) -> None:
        raise BrokenPipeError

    model = FailingLanguageModel(lambda _: "")
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32), language_model=model) as engine:
        engine.index_documents(DOCUMENTS)
        with pytest.raises(BrokenPipeError):
            engine.answer(engine.search("Who cast the Bell of Tarn?", retriever="bm25"), close)


def test_an_exception_of_a_reader_is_reported_as_the_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: bytes) -> None:
        raise IndexError("7\n8")

    monkeypatch.setattr("json.loads", fail)
    (tmp_path / "a.bell").write_text("text")
    bell = Format(name="bell", extensions=(".bell",), read="json:loads", takes_bytes=True)
    with pytest.raises(ReadError, match=r"^the reader 'json:loads' failed: IndexError: 7 8$"):
        read_content(tmp_path / "a.bell", bell, ReadSettings())


def test_a_damaged_index_is_still_reported_as_damaged(tmp_path: Path, engine: Engine) -> None:
    with sqlite3.connect(tmp_path / "kb" / "index.sqlite") as connection:
        connection.execute("UPDATE passage SET title = 'The Bell of nobody'")
    with pytest.raises(StoreError):
        engine.search("Who cast the Bell of Tarn?")
