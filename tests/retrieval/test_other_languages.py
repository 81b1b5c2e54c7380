"""Questions in one language about passages in another, in an index of several languages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from polyad.engine import Engine
from polyad.model import BoolArray, Document, FloatArray, IntArray
from polyad.protocols.components import TextKind
from polyad.retrieval.default.other_languages import OtherLanguages
from polyad.text.function_words import find_language_evidence

THINGS = [("bell", "Glocke"), ("tower", "Turm"), ("otter", "Fischotter"), ("bridge", "Brücke"), ("mill", "Mühle")]
MORE_THINGS = [("ship", "Schiff"), ("wall", "Mauer"), ("garden", "Garten"), ("harbour", "Hafen"), ("pump", "Pumpe")]
TOPICS = [*THINGS, *MORE_THINGS]


class BilingualEmbedder:
    """Embeds a text by the things that it names; texts in one language lie together, as with multilingual models."""

    name, dimension = "bilingual", 2 + len(TOPICS)

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            vector[int(find_language_evidence(text) == "de")] = 1
            for place, names in enumerate(TOPICS, start=2):
                vector[place] = any(name.lower() in text.lower() for name in names)
        unit: FloatArray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


ENGLISH = [Document(f"en-{en}", "", f"The {en} of Tarn was built by a master in that year.") for en, _ in THINGS]
GERMAN = [
    Document(f"de-{de}", "", f"Das ist, was man von der {de} in Tarn weiß: sie wurde in dem Jahr gebaut.")
    for _, de in MORE_THINGS
]


def find_first(engine: Engine, question: str) -> str:
    return engine.search(question, k=1, retriever="default").passages[0].passage.document_id


@pytest.mark.parametrize("order", [*permutations((ENGLISH, GERMAN))])
def test_the_passage_in_another_language_comes_first(tmp_path: Path, order: tuple[list[Document], ...]) -> None:
    with Engine.open(tmp_path, embedder=BilingualEmbedder()) as engine:
        for documents in order:
            engine.index_documents(documents)
        for english, german in TOPICS:
            expected = f"en-{english}" if (english, german) in THINGS else f"de-{german}"
            assert find_first(engine, f"In welchem Jahr wurde die {german} von Tarn gebaut, und von wem?") == expected
            assert find_first(engine, f"In which year was the {english} of Tarn built, and by whom?") == expected


def test_words_still_decide_within_the_language_of_the_question(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=BilingualEmbedder()) as engine:
        engine.index_documents([*ENGLISH, *GERMAN, Document("melville", "", "The bell of Melville is cracked.")])
        assert find_first(engine, "What is wrong with the bell of Melville?") == "melville"


def test_passages_of_an_unknown_language_belong_to_no_other(tmp_path: Path) -> None:
    with (
        Engine.open(tmp_path, embedder=BilingualEmbedder()) as engine,
        Engine.open(tmp_path / "other", embedder=BilingualEmbedder()) as other,
    ):
        for one in (engine, other):
            one.index_documents([*ENGLISH, Document("code", "", "P-17 4711")])
        other.index_documents([Document("de", "", GERMAN[0].text)])
        other.remove("de")
        question = "Who built the tower of Tarn?"
        assert engine.search(question).passages == other.search(question).passages


class GermanRow:
    """The third of three passages is the only one in another language."""

    mean, count = np.zeros(2, dtype=np.float32), 1

    def contains(self, rows: IntArray) -> BoolArray:
        is_third: BoolArray = rows == 2
        return is_third

    def nearest(self, vectors: FloatArray, k: int) -> list[tuple[IntArray, FloatArray]]:
        raise NotImplementedError


@pytest.mark.parametrize(("before", "after"), [(2.5, 7.0), (4.0, 11.0), (1.0, 3.0)])
def test_a_passage_in_another_language_keeps_its_place_when_words_rank(before: float, after: float) -> None:
    languages = OtherLanguages((GermanRow(),), offsets=np.zeros((1, 2), dtype=np.float32))
    first, later = np.array([3, 2, before], dtype=np.float32), np.array([10, 4, -1], dtype=np.float32)
    assert languages.keep_places(first, later, np.arange(3)).tolist() == [10, 4, after]
    assert OtherLanguages().keep_places(first, later, np.arange(3)).tolist() == later.tolist()


def test_signals_of_passages_in_another_language_are_those_of_equally_similar_passages() -> None:
    languages = OtherLanguages((GermanRow(),), offsets=np.zeros((1, 2), dtype=np.float32))
    signals = np.array([[1.0, 0.8], [0.5, 0.4], [0.75, 0.0]], dtype=np.float32)
    filled = languages.fill_signals(signals, np.arange(3), signals[:, 0])
    assert filled[2].tolist() == pytest.approx([0.75, 0.6], abs=1e-3)
    assert filled[:2].tolist() == signals[:2].tolist()
