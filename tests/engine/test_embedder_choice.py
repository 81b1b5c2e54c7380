"""The languages of the documents choose the embedder of an index, unless the user names one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import permutations
from pathlib import Path

import pytest

from polyad import Document
from polyad.config import EncoderSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import EmbedderError, IndexMismatchError, ModelNotFoundError
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, TextKind

DEFAULT, MULTILINGUAL = "all-MiniLM-L6-v2", "multilingual-e5-small"
GERMAN = "Die Glocke von Tarn wurde im Jahr 1702 von Ines Moreau gegossen."
CHINESE = "塔恩的钟由伊内斯·莫罗于1702年铸造。"
ENGLISH = "The bell of Tarn was cast by Ines Moreau in the year 1702."


class NamedHashingEmbedder(HashingEmbedder):
    """Hashed words under the name of a model."""

    def __init__(self, name: str) -> None:
        super().__init__(384)
        self._model = name

    @property
    def name(self) -> str:
        return self._model


@pytest.fixture
def embedders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the embedders that were loaded."""
    names: list[str] = []

    def load(name: str, settings: EncoderSettings | None = None) -> Embedder:
        names.append(name)
        return NamedHashingEmbedder(name)

    monkeypatch.setattr("polyad.engine.loaders.load_embedder", load)
    return names


def build_documents(*texts: str) -> list[Document]:
    return [Document(str(number), "", text) for number, text in enumerate(texts)]


@pytest.mark.usefixtures("embedders")
@pytest.mark.parametrize(
    ("texts", "name"),
    [
        ([ENGLISH], DEFAULT),
        ([GERMAN], MULTILINGUAL),
        ([ENGLISH, GERMAN, GERMAN], MULTILINGUAL),
        ([GERMAN, ENGLISH, ENGLISH], MULTILINGUAL),
        ([GERMAN, "17 3.5 2.2", "4711-A", "4712-B"], MULTILINGUAL),
        (["17 3.5 2.2"], DEFAULT),
        (["塔恩之钟是谁铸造的？"], MULTILINGUAL),  # noqa: RUF001
    ],
)
def test_the_languages_of_the_text_choose(tmp_path: Path, texts: list[str], name: str) -> None:
    with Engine.open(tmp_path) as engine:
        engine.search("Who cast it?")  # makes a retriever with the first embedder
        engine.index_documents(build_documents(*texts))
        assert engine.catalogue.statistics().settings["embedder"] == engine.components.embedder.name == name
        if len(texts[0]) > 40:
            assert engine.search(texts[0]).passages[0].passage.document_id == "0"
        assert engine.index_documents(build_documents(*texts)).counts.unchanged == len(texts)
    with Engine.open(tmp_path) as engine:
        assert engine.components.embedder.name == name


@pytest.mark.usefixtures("embedders")
def test_files_choose_too(tmp_path: Path) -> None:
    (tmp_path / "glocke.txt").write_text(GERMAN, encoding="utf-8")
    with Engine.open(tmp_path / "kb") as engine:
        engine.index(tmp_path / "glocke.txt")
        assert engine.components.embedder.name == MULTILINGUAL


@pytest.mark.usefixtures("embedders")
@pytest.mark.parametrize(
    "open_index",
    [
        lambda path: Engine.open(path, embedder=DEFAULT),
        lambda path: Engine.open(path, embedder=NamedHashingEmbedder(DEFAULT)),
    ],
)
def test_a_named_embedder_stays(tmp_path: Path, open_index: Callable[[Path], Engine]) -> None:
    with open_index(tmp_path) as engine:
        engine.index_documents(build_documents(GERMAN))
        assert engine.components.embedder.name == DEFAULT


@pytest.mark.usefixtures("embedders")
@pytest.mark.parametrize("order", [*permutations((ENGLISH, GERMAN, CHINESE))])
def test_any_order_of_indexing_gives_the_same_index(tmp_path: Path, order: tuple[str, ...]) -> None:
    for text in order:
        with Engine.open(tmp_path) as engine:
            engine.index_documents([Document(text, "", text)])
            assert [hit.passage.text for hit in engine.search(text).passages[:1]] == [text]
    with Engine.open(tmp_path) as engine, Engine.open(tmp_path / "new") as new:
        new.index_documents([Document(text, "", text) for text in sorted(order)])
        for one in (engine, new):
            assert one.components.embedder.name == one.catalogue.statistics().settings["embedder"] == MULTILINGUAL
        assert engine.search(GERMAN).passages == new.search(GERMAN).passages
    with Engine.open(tmp_path) as engine:
        engine.remove([GERMAN, CHINESE])
        assert engine.components.embedder.name == DEFAULT
        assert engine.search(ENGLISH).passages[0].passage.text == ENGLISH


@pytest.mark.usefixtures("embedders")
def test_an_engine_that_was_opened_before_a_move_is_outdated(tmp_path: Path) -> None:
    with Engine.open(tmp_path) as engine:
        engine.index_documents(build_documents(ENGLISH))
        with Engine.open(tmp_path) as early:
            assert early.search("bell").passages
            engine.index_documents([Document("de", "", GERMAN)])
            assert (early.is_outdated, engine.is_outdated) == (True, False)


@pytest.mark.usefixtures("embedders")
def test_after_a_replacement_by_the_user_the_embedder_stays(tmp_path: Path) -> None:
    with Engine.open(tmp_path) as engine:
        engine.index_documents(build_documents(GERMAN))
        engine.replace_embedder(DEFAULT)
    with Engine.open(tmp_path) as engine:
        engine.index_documents([Document("zh", "", CHINESE)])
        assert engine.components.embedder.name == DEFAULT


def test_an_interrupted_move_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class FailingEmbedder(NamedHashingEmbedder):
        def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
            raise EmbedderError("out of memory")

    for is_failing, name in ((True, DEFAULT), (False, MULTILINGUAL)):

        def load(name: str, settings: EncoderSettings | None = None, fails: bool = is_failing) -> Embedder:
            return (FailingEmbedder if fails and name == MULTILINGUAL else NamedHashingEmbedder)(name)

        monkeypatch.setattr("polyad.engine.loaders.load_embedder", load)
        with Engine.open(tmp_path) as engine:
            engine.index_documents(build_documents(ENGLISH))
            with pytest.raises(EmbedderError) if is_failing else nullcontext():
                engine.index_documents([Document("de", "", GERMAN)])
            assert engine.components.embedder.name == name
            assert engine.search(ENGLISH).passages[0].passage.document_id == "0"


@pytest.mark.usefixtures("embedders")
def test_few_passages_in_another_language_do_not_move_an_index(tmp_path: Path) -> None:
    with Engine.open(tmp_path) as engine:
        engine.index_documents(build_documents(*(f"{ENGLISH} It has the number {number}." for number in range(60))))
        engine.index_documents([Document("de", "", GERMAN)])
        assert engine.components.embedder.name == DEFAULT
        engine.index_documents([Document("zh", "", CHINESE)])
        assert engine.components.embedder.name == MULTILINGUAL


@pytest.mark.usefixtures("embedders")
def test_a_named_embedder_that_does_not_know_the_languages_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Engine.open(tmp_path, embedder=DEFAULT) as engine, caplog.at_level(logging.WARNING, "polyad"):
        engine.index_documents(build_documents(ENGLISH, GERMAN))
        assert engine.components.embedder.name == DEFAULT
    assert "de (50 %), en (50 %)" in caplog.text
    assert "polyad embed --embedder multilingual-e5-small" in caplog.text


def test_the_choice_is_logged_in_one_line(
    tmp_path: Path, embedders: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with Engine.open(tmp_path) as engine, caplog.at_level(logging.WARNING, "polyad"):
        engine.index_documents(build_documents(GERMAN))
    [record] = caplog.records
    assert "in de (100 %): the index gets the embedder multilingual-e5-small" in record.getMessage()
    assert embedders == [DEFAULT, MULTILINGUAL]


def test_without_the_multilingual_model_the_index_is_built_and_a_warning_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load(name: str, settings: EncoderSettings | None = None) -> Embedder:
        if name == MULTILINGUAL:
            raise ModelNotFoundError("the model cannot be downloaded")
        return NamedHashingEmbedder(name)

    monkeypatch.setattr("polyad.engine.loaders.load_embedder", load)
    with Engine.open(tmp_path) as engine, caplog.at_level(logging.WARNING, "polyad"):
        assert engine.index_documents(build_documents(GERMAN)).counts.added == 1
        assert engine.components.embedder.name == DEFAULT
    assert "cannot be downloaded" in caplog.text


@pytest.mark.usefixtures("embedders")
def test_an_engine_that_was_opened_before_the_choice_is_outdated(tmp_path: Path) -> None:
    with Engine.open(tmp_path) as early, Engine.open(tmp_path) as engine:
        assert not early.is_outdated
        engine.index_documents(build_documents(GERMAN))
        assert (early.is_outdated, engine.is_outdated) == (True, False)
        with pytest.raises(IndexMismatchError):
            early.search("Glocke")


@pytest.mark.usefixtures("embedders")
@pytest.mark.parametrize(
    ("question", "document", "name"),
    [
        ("Wer goss die Glocke von Tarn?", ENGLISH, MULTILINGUAL),
        ("Who cast the bell of Tarn?", ENGLISH, DEFAULT),
        ("Who cast the bell of Tarn?", GERMAN, MULTILINGUAL),
    ],
)
def test_questions_in_another_language_choose_the_multilingual_embedder(
    tmp_path: Path, question: str, document: str, name: str
) -> None:
    with Engine.open(tmp_path / "index") as engine:
        engine.writer.expect_questions([question])
        engine.index_documents(build_documents(document))
        assert engine.components.embedder.name == name
