"""How likely a passage is to be evidence."""

from __future__ import annotations

from math import exp
from pathlib import Path

import numpy as np
import pytest

from polyad.adapters.hashing import HashingEmbedder
from polyad.config import DefaultSettings, Settings
from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.model import Document
from polyad.retrieval.default.relevance import CONSTANT, MEASURES, Calibration
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.signals import profile_names, signal_names

BY_SCORE = Calibration({**dict.fromkeys(MEASURES, 0.0), "score": 2.0, CONSTANT: -1.0})


def measures(*scores: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Of passages that differ by their score."""
    return np.array([[score, *[0.5] * (len(MEASURES) - 1)] for score in scores], dtype=np.float32)


def test_relevance_is_a_logistic_function_of_the_measures() -> None:
    assert BY_SCORE.relevance(measures(0, 0.5, 3)) == pytest.approx([1 / (1 + exp(1)), 0.5, 1 / (1 + exp(-5))])


def test_relevance_stays_a_probability_however_large_a_score_is() -> None:
    low, high = BY_SCORE.relevance(measures(-1e9, 1e9))
    assert low is not None
    assert high is not None
    assert 0 <= low < 1e-9 < 1 - 1e-9 < high <= 1


def test_without_a_fit_relevance_is_unknown() -> None:
    assert Calibration().relevance(measures(1, 2)) == [None, None]


def test_what_relevance_is_told_by_survives_a_round_trip_through_text() -> None:
    scorer = LinearScorer({"a b": 0.25}, ("musique",), BY_SCORE)
    assert LinearScorer.from_text(scorer.to_text(), "file") == scorer


@pytest.mark.parametrize("line", ["relevance by luck\t1", "relevance by score\t1"])
def test_other_measures_than_there_are_are_refused(line: str) -> None:
    with pytest.raises(ConfigurationError, match=r"w\.tsv: .* is no measure of relevance, or one is missing"):
        LinearScorer.from_text(line, "w.tsv")


def test_hits_of_the_default_retriever_say_how_relevant_they_are(tmp_path: Path) -> None:
    weights = dict.fromkeys(profile_names(signal_names(rewriting=False)), 0.0)
    weights |= dict.fromkeys(profile_names(["similarity to the question"]), 1.0)
    (tmp_path / "w.tsv").write_text(LinearScorer(weights, (), BY_SCORE).to_text(), encoding="utf-8")
    settings = Settings(default=DefaultSettings(weights=str(tmp_path / "w.tsv")))
    documents = [
        Document("bell", "Bell", "It was cast in bronze."),
        Document("bowl", "Bowl", "It may be of wood or of clay or of bronze."),
        Document("otter", "Otter", "It eats fish."),
    ]
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32), settings=settings) as engine:
        engine.index_documents(documents)
        hits = engine.search("What was cast in bronze?").passages
        relevant = engine.search("What was cast in bronze?", min_relevance=0.5).passages
    assert [hit.relevance for hit in hits] == pytest.approx([1 / (1 + exp(1 - 2 * hit.score)) for hit in hits])
    assert [hit.passage.document_id for hit in hits] == ["bell", "bowl"]
    assert [hit.passage.document_id for hit in relevant] == ["bell"]
