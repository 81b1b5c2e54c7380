"""Questions in one language about passages in another, in an index of several languages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from polyad.engine import Engine
from polyad.model import Document, FloatArray
from polyad.protocols.components import TextKind
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
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


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
