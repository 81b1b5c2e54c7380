"""How far the default retriever trusts an encoder in each language of an index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine.engine import Engine
from polyad.model import Document, FloatArray
from polyad.protocols.components import Embedder, TextKind
from polyad.retrieval.default.encoder_trust import EncoderTrust
from polyad.retrieval.default.retriever import DefaultRetriever

CITIES = ["Tarn", "Aldby", "Saltby", "Corven", "Merrow", "Holt", "Ness", "Wick", "Brae", "Dunmore"]
GERMAN = [
    Document(
        f"de{number}-{city}",
        "",
        f"Die Glocke von {city} wurde im Jahr {1500 + 7 * number} gegossen und hängt im Turm der Kirche. "
        f"Der Meister der Glocke war {name} aus {city}.",
    )
    for number, name in enumerate(["Hans", "Karl", "Otto"])
    for city in CITIES
]


class RandomEmbedder:
    """An embedder whose vectors say nothing about a text, except that equal texts have equal vectors."""

    name = "random"
    dimension = 16

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return a random unit vector of each text and kind."""
        seeds = [[*text.encode()[:200], len(kind)] for text in texts]
        vectors = np.array([np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds])
        unit: FloatArray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return unit


class WordEmbedder(RandomEmbedder):
    """An embedder that finds repeated words, except in the passages about every fifth village."""

    name = "words"
    dimension = 256

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return vectors of word counts; random ones of texts about every fifth village."""
        is_random = np.array([[bool(re.search(r"dorf\d*[05]\b", text))] for text in texts])
        vectors = np.where(is_random, super().encode(texts, kind), HashingEmbedder(256).encode(texts, kind))
        return vectors.astype(np.float32)


def build(folder: Path, documents: Sequence[Document], embedder: Embedder) -> Engine:
    engine = Engine.open(folder, embedder=embedder)
    engine.index_documents(documents)
    return engine


def find_trust(engine: Engine, question: str) -> float:
    engine.search(question, retriever="default")
    retriever = engine._searcher.resolve("default").retriever
    assert isinstance(retriever, DefaultRetriever)
    return float(retriever.encoder_trust.get_trust(question))


def test_an_encoder_that_finds_nothing_is_not_trusted_and_words_decide(tmp_path: Path) -> None:
    with build(tmp_path / "index", GERMAN, RandomEmbedder()) as engine:
        question = "Wer war der Meister der Glocke von Saltby im Jahr 1507?"
        assert find_trust(engine, question) == 0
        by_words = engine.search(question, retriever="bm25").passages[0].passage.document_id
        assert engine.search(question, retriever="default").passages[0].passage.document_id == by_words


def test_an_encoder_that_finds_four_of_five_passages_by_their_words_is_trusted_little(tmp_path: Path) -> None:
    words = ("dorf", "turm", "fluss", "berg", "wald", "feld", "weg", "hof")
    documents = [
        Document(f"de{number}", "", "Wer nicht kam, ist " + " und ".join(f"{word}{number}" for word in words) + ".")
        for number in range(40)
    ]
    with build(tmp_path / "index", documents, WordEmbedder()) as engine:
        assert 0.1 < find_trust(engine, "Wer war der Meister der Glocke?") < 0.3


def test_the_same_index_is_measured_once_and_has_the_same_trust_when_it_is_opened_again(tmp_path: Path) -> None:
    with build(tmp_path / "index", GERMAN, RandomEmbedder()) as engine:
        trust = find_trust(engine, "Wer war es?")
    with Engine.open(tmp_path / "index", embedder=RandomEmbedder()) as engine:
        assert find_trust(engine, "Wer war es?") == trust


def test_each_language_of_an_index_has_its_trust() -> None:
    trust = EncoderTrust({"en": 1.0, "de": 0.2}, {"en": 30, "de": 10}, 40)
    assert trust.get_trust("Who is the master of the bell?") == 1
    assert trust.get_trust("Wer ist der Meister der Glocke?") == 0.2
    assert trust.get_trust("那座钟是谁铸造的") == 0.8
    assert EncoderTrust.from_bytes(trust.to_bytes()) == trust


def test_trust_is_measured_again_after_a_fifth_of_the_passages_changed() -> None:
    assert EncoderTrust(passages=100).is_current(119)
    assert not EncoderTrust(passages=100).is_current(121)


def test_an_index_whose_encoder_is_not_trusted_refuses_by_words(tmp_path: Path) -> None:
    with build(tmp_path / "index", GERMAN, RandomEmbedder()) as engine:
        for question in ("Wer war der Meister der Glocke von Saltby?", "Wann wurde die Glocke von Merrow gegossen?"):
            assert engine.search(question, min_relevance="auto").passages, question
        for question in ("Wie backe ich einen Schokoladenkuchen ohne Eier?", "Wie lange kocht man Reis?"):
            assert not engine.search(question, min_relevance="auto").passages, question
