"""Misspelt words, dates and file names in questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyad.embedders.minilm.weights import MINILM
from polyad.engine import Engine
from polyad.model import Document
from polyad.protocols.components import Embedder
from polyad.retrieval.rewriting import RewrittenQuestion, find_misspelt_words

DOCUMENTS = {
    "manuals/warranty.md": "The warranty of all pumps is twenty-four months. Model HP-2211 has thirty.",
    "manuals/seal.md": "To change the mechanical seal, close both valves. Müller in Gdańsk sells seals.",
    "home.md": "Staff may work from home on Fridays. Anna Stein signs.",
    "minutes/board-2026-06-09.md": "The board agreed on a new roof.",
    "minutes/board-2026-02-10.md": "The roof will be discussed at the end of June. The roof leaks.",
    "releases/view-4.3.md": "This release mends the view and the dial, and the view of the dial.",
    "releases/view-4.4.md": "Unlike view 4.3, this release has a dial. The view is new.",
    "mails/17.txt": "Anna Stein asks for a quote.",
    "prices-2026.csv:2": "article: P1; price: 4",
    "prices-2026.csv:3": "article: P2; price: 5",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Engine:
    engine = Engine.open(tmp_path_factory.mktemp("index"), embedder=embedder)
    dated = Document("letter", "", "The lamp is broken.", metadata={"date": "2025-11-30"})
    engine.index_documents([*(Document(id, "", text) for id, text in DOCUMENTS.items()), dated])
    return engine


@pytest.mark.parametrize(
    ("question", "spelling"),
    [
        ("waranty", {"waranty": "warranty"}),
        ("mechancal seal chnage", {"mechancal": "mechanical", "chnage": "change"}),
        ("Gdnask", {"Gdnask": "Gdańsk"}),
        ("Mueller", {"Mueller": "Müller"}),
        ("Who is Anna Stien?", {"Stien": "Stein"}),
    ],
)
@pytest.mark.parametrize("retriever", ["bm25", "default"])
def test_a_misspelt_word_finds_its_neighbour(
    engine: Engine, question: str, spelling: dict[str, str], retriever: str
) -> None:
    evidence = engine.search(question, retriever=retriever)
    assert evidence.question == question
    assert evidence.spelling == spelling
    typed, word = next(iter(spelling.items()))
    assert word.lower() in evidence.passages[0].passage.text.lower()
    assert f"for {typed}: {word}" in evidence.passages[0].reason


@pytest.mark.parametrize("question", ["HP-2212", "Where is my hope?", "view-4.5.md", "warranties", "Muller", "中文"])
def test_codes_names_of_files_and_short_or_common_words_are_not_changed(engine: Engine, question: str) -> None:
    assert not engine.search(question, retriever="bm25").spelling


def test_no_word_of_the_embedding_model_is_changed(engine: Engine) -> None:
    vocabulary = (MINILM.get_folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()
    words = [word for word in vocabulary if word.isalpha() and len(word) >= 4]
    assert len(words) > 15_000
    model = engine.components.embedder.word_model
    snapshot = engine.snapshot()
    changes: dict[str, str] = {}
    for start in range(0, len(words), 64):
        changes |= find_misspelt_words(" ".join(words[start : start + 64]), snapshot, model)
    assert changes == {"mueller": "m\u00fcller"}


@pytest.mark.parametrize("question", ["heart", "handles", "addressed", "belly", "kostet", "viel"])
def test_a_word_that_the_index_lacks_is_not_taken_for_a_similar_one(
    tmp_path: Path, embedder: Embedder, question: str
) -> None:
    text = "The heat of the handler. The addressee rings the bell. Die Kosten der vier Pumpen sind hoch."
    with Engine.open(tmp_path, embedder=embedder) as engine:
        engine.index_documents([Document("a", "", text)])
        assert not engine.search(question).spelling


def test_without_a_vocabulary_the_typed_word_is_searched_too(engine: Engine) -> None:
    rewritten = RewrittenQuestion.from_question("Waranty of pumps", engine.snapshot(), 0)
    assert rewritten.text == "Waranty Warranty of pumps"


def test_a_word_of_a_deleted_document_is_no_neighbour(engine: Engine) -> None:
    engine.index_documents([Document("gone", "", "The periscope is green.")])
    assert engine.search("periscoep", retriever="bm25").spelling == {"periscoep": "periscope"}
    engine.remove(["gone"])
    assert not engine.search("periscoep", retriever="bm25").spelling


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("roof minutes of June 2026", "minutes/board-2026-06-09.md"),
        ("What did the board decide on 9.6.2026?", "minutes/board-2026-06-09.md"),
        ("roof in Q1 2026", "minutes/board-2026-02-10.md"),
        ("30 November 2025", "letter"),
        ("view-4.3.md", "releases/view-4.3.md"),
        ("What is in view-4.3?", "releases/view-4.3.md"),
        ("prices-2026.csv", "prices-2026.csv:2"),
        ("mails from Anna Stein", "mails/17.txt"),
    ],
)
def test_dates_and_file_names_find_their_file(engine: Engine, question: str, document: str) -> None:
    assert engine.search(question, retriever="bm25").passages[0].passage.document_id == document


def test_relative_dates_follow_the_time_of_the_question(engine: Engine) -> None:
    evidence = engine.search("roof, last June", retriever="bm25", as_of="2026-11-28")
    assert evidence.question == "roof, last June"
    assert evidence.passages[0].passage.document_id == "minutes/board-2026-06-09.md"
