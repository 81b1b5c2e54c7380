"""Thresholds of cosines that are measured on an index, for embedders that are not calibrated."""

# ruff: noqa: RUF001  Chinese commas

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from polyad.calibration import PAPER_VALUES, get_embedder_calibration
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine.engine import Engine
from polyad.model import Document, FloatArray
from polyad.protocols.components import TextKind
from polyad.retrieval.similarity_thresholds import SimilarityThresholds, find_main_languages, read_everyday_questions
from polyad.text.function_words import find_language_evidence
from tests.retrieval.test_encoder_trust import GERMAN

QUESTION = "Wer war der Meister der Glocke von Saltby im Jahr 1507?"


@dataclass(frozen=True)
class ShiftedEmbedder:
    """An embedder of word counts, whose cosines are mapped from [0, 1] to [``lowest``, 1]."""

    lowest: float
    name: str = "shifted"
    dimension: int = 257

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors with a first component that all texts share."""
        vectors = HashingEmbedder(256).encode(texts, kind)
        shared = np.full((len(texts), 1), np.sqrt(self.lowest))
        return np.hstack([shared, np.sqrt(1 - self.lowest) * vectors]).astype(np.float32)


def build(folder: Path, embedder: ShiftedEmbedder, documents: Sequence[Document] = GERMAN) -> Engine:
    engine = Engine.open(folder / str(embedder.lowest), embedder=embedder)
    engine.index_documents(documents)
    return engine


def measure(engine: Engine, embedder: ShiftedEmbedder) -> SimilarityThresholds:
    thresholds = SimilarityThresholds(embedder, has_entity_vectors=True)
    spec = engine._searcher.get_spec("hypergraphrag")
    thresholds.measure(engine._searcher.get_snapshot(spec))
    return thresholds


def test_thresholds_follow_the_cosines_of_an_unknown_embedder(tmp_path: Path) -> None:
    low, high = ShiftedEmbedder(0.0), ShiftedEmbedder(0.7)
    with build(tmp_path, low) as low_engine, build(tmp_path, high) as high_engine:
        low_values, high_values = measure(low_engine, low).values, measure(high_engine, high).values
    for name, highest in (
        ("activation_threshold", 1),
        ("passage_threshold", 1),
        ("hyperedge_threshold", 10),
        ("entity_threshold", 100),
    ):
        low_cosine, high_cosine = getattr(low_values, name) / highest, getattr(high_values, name) / highest
        assert 0 < low_cosine < 1, name
        assert high_cosine == pytest.approx(0.7 + 0.3 * low_cosine, abs=0.001), name


def test_unrelated_texts_in_the_shifted_range_do_not_change_what_hypersu_finds(tmp_path: Path) -> None:
    scores = []
    for lowest in (0.0, 0.7):
        with build(tmp_path, ShiftedEmbedder(lowest)) as engine:
            hits = engine.search(QUESTION, retriever="hypersu").passages
            scores.append({hit.passage.id: hit.score for hit in hits if hit.score > 0})
    assert scores[0]
    assert scores[1] == pytest.approx(scores[0], abs=0.001)


def test_a_filter_does_not_change_the_thresholds(tmp_path: Path) -> None:
    where = f'id = "{GERMAN[2].id}"'
    with build(tmp_path, ShiftedEmbedder(0.7)) as engine:
        filtered = engine.search(QUESTION, retriever="hypersu", where=where).passages
    with Engine.open(tmp_path / "0.7", embedder=ShiftedEmbedder(0.7)) as engine:
        engine.search(QUESTION, retriever="hypersu")
        again = engine.search(QUESTION, retriever="hypersu", where=where).passages
    assert [(hit.passage.id, hit.score) for hit in filtered] == [(hit.passage.id, hit.score) for hit in again]


def test_an_index_of_few_passages_has_the_values_of_the_papers(tmp_path: Path) -> None:
    embedder = ShiftedEmbedder(0.7)
    with build(tmp_path, embedder, GERMAN[:10]) as engine:
        assert measure(engine, embedder).values == PAPER_VALUES


def test_a_calibrated_embedder_is_not_measured(tmp_path: Path) -> None:
    embedder = ShiftedEmbedder(0.7, name="all-MiniLM-L6-v2")
    with build(tmp_path, embedder) as engine:
        assert measure(engine, embedder).values == get_embedder_calibration("all-MiniLM-L6-v2")


CHINESE = [
    "塔恩之钟由铸钟匠安娜·霍尔特在一五一二年用青铜铸造，后来一直悬挂在老教堂的钟楼里面。",
    "河流观测站每天早晨记录水位和水温，工作人员把这些数据寄给首都的一个研究所保存。",
    "索特比堰的主人继承了一笔遗产，他用这笔钱修建了一座石桥和一所面向渔民子女的学校。",
    "水獭主要以鱼为食，它们在夜间活动，白天通常躲在岸边树根下面的洞穴里休息和睡觉。",
]


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (CHINESE, "zh"),
        ([document.text for document in GERMAN], "de"),
        (["Otters eat fish in the river by night."], "en"),
    ],
)
def test_the_main_language_of_an_index_is_that_of_its_passages(tmp_path: Path, texts: list[str], language: str) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(32)) as engine:
        engine.index_documents(Document(f"{number}", "", text) for number, text in enumerate(texts))
        assert find_main_languages(engine.snapshot()) == [language]


def test_everyday_questions_are_those_of_the_languages_of_the_index() -> None:
    english = read_everyday_questions()
    languages = ["zh", "ja", "ko", "ar", "fa", "he", "hi", "th", "de", "fr", "es", "it", "pt", "nl", "ro", "pl"]
    for language in [*languages, "ru", "uk", "tr", "vi", "el", "sv", "da", "no", "fi", "cs", "hu", "bg", "id"]:
        questions = read_everyday_questions([language])
        assert len(questions) >= 16
        assert not set(questions) & set(english)
        assert find_language_evidence(" ".join(questions)) == language
    assert read_everyday_questions(["xx"]) == english
    assert read_everyday_questions(["en", "de"]) == [*english, *read_everyday_questions(["de"])]
