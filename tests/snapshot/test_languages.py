"""The passages of a snapshot by language."""

from __future__ import annotations

from pathlib import Path

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document

TEXTS = {
    "en": "The bell of Tarn was cast by Ines Moreau in the year 1702.",
    "de": "Die Glocke von Tarn wurde im Jahr 1702 von Ines Moreau gegossen.",
    "zh": "塔恩的钟由伊内斯·莫罗于1702年铸造。",
    "": "P-17 4711",
}


def count_languages(engine: Engine) -> str:
    return engine.catalogue.statistics().settings["languages"]


def test_statistics_show_the_languages_of_passages(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        assert count_languages(engine) == ""
        engine.index_documents([Document(f"{number}", "", TEXTS["en"]) for number in range(2)])
        assert count_languages(engine) == "en (100 %)"
        engine.index_documents([Document(language or "none", "", text) for language, text in TEXTS.items()])
        assert count_languages(engine) == "en (60 %), de (20 %), zh (20 %)"
        engine.remove(["de"])
        assert count_languages(engine) == "en (75 %), zh (25 %)"
        assert engine.catalogue.statistics().settings["embedder_choice"] == "named"
