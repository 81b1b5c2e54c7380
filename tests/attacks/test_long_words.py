"""Documents in which one field is a single word of a megabyte: indexing takes little memory for each character."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from polyad import Document, Engine
from polyad.model import Section
from polyad.text.function_words import find_language_evidence

pytestmark = pytest.mark.attacks

TEXT = "The bell of Tarn was cast by Ines Moreau in 1702."
SIZE = 1_000_000
LONG_WORDS = ("x" * SIZE, "X" * SIZE, "1" * SIZE, "é" * SIZE, "A." * (SIZE // 2), "a-" * (SIZE // 2))
MAX_BYTES_PER_CHARACTER = 80
"""A word of letters takes up to 17, a number or a chain of letters and signs, which may be a code, 70."""


def build_document(field: str, word: str) -> Document:
    values = {
        "id": Document(word, "Bell", TEXT),
        "title": Document("long", word, TEXT),
        "text": Document("long", "Bell", word),
        "heading": Document("long", "Bell", TEXT, sections=(Section(word, 0, len(TEXT)),)),
        "name": Document("long", "Bell", f"The X{word} was cast by Ines Moreau."),
        "source": Document("long", "Bell", TEXT, source=f"{word}.md"),
        "metadata": Document("long", "Bell", TEXT, metadata={"author": word}),
        "key": Document("long", "Bell", TEXT, metadata={word: "yes"}),
    }
    return values[field]


@pytest.mark.parametrize("word", LONG_WORDS, ids=[word[:2] for word in LONG_WORDS])
@pytest.mark.parametrize("field", ["id", "title", "text", "heading", "name", "source", "metadata", "key"])
def test_a_long_word_takes_little_memory(tmp_path: Path, field: str, word: str) -> None:
    with Engine.open(tmp_path / "kb", embedder="hashing:16") as engine:
        engine.index_documents([build_document(field, word[:100])])
        tracemalloc.start(1)
        try:
            engine.index_documents([build_document(field, word)])
            engine.search("Who cast the bell of Tarn?")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < MAX_BYTES_PER_CHARACTER * SIZE


def test_a_long_word_is_no_evidence_of_a_language() -> None:
    word = "und" * 100_000
    tracemalloc.start(1)
    try:
        assert find_language_evidence(f"{word} Wer goss die Glocke von Tarn? {word}") == "de"
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES_PER_CHARACTER * 2 * len(word)
    finally:
        tracemalloc.stop()
