"""Relevance: a probability beside the score."""

from __future__ import annotations

from math import exp
from pathlib import Path

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.evaluation.training.linear_scorer import TrainingExample, fit_relevance_model
from polyad.model import Document
from polyad.retrieval.default.retriever import DefaultSettings
from polyad.retrieval.default.scorer import INTERCEPT, RELEVANCE_FEATURES, LinearScorer, RelevanceModel
from polyad.retrieval.default.signals import list_signal_names, list_weight_names


def example(score: float, seed: int) -> TrainingExample:
    """A question whose gold passage has a signal of ``score``; nineteen others have less than 1."""
    signals = np.random.default_rng(seed).uniform(0, 1, (20, 1)).astype(np.float32)
    signals[3] = score
    holds = np.zeros((20, 1), dtype=bool)
    holds[3] = True
    return TrainingExample(signals, holds, features=np.zeros((20, len(RELEVANCE_FEATURES)), dtype=np.float32))


SCORER = LinearScorer(dict.fromkeys(list_weight_names(["s"]), 1.0))


BY_SCORE = RelevanceModel({**dict.fromkeys(RELEVANCE_FEATURES, 0.0), "score": 2.0, INTERCEPT: -1.0})


def test_relevance_is_a_logistic_function_of_the_measures() -> None:
    measures = np.full((3, len(RELEVANCE_FEATURES)), 0.5, dtype=np.float32)
    measures[:, 0] = 0, 0.5, 3
    assert BY_SCORE.predict_relevance(measures) == pytest.approx([1 / (1 + exp(1)), 0.5, 1 / (1 + exp(-5))])


def test_relevance_stays_a_probability_however_large_a_score_is() -> None:
    measures = np.zeros((2, len(RELEVANCE_FEATURES)), dtype=np.float32)
    measures[:, 0] = -1e9, 1e9
    low, high = BY_SCORE.predict_relevance(measures)
    assert low is not None
    assert high is not None
    assert 0 <= low < 1e-9 < 1 - 1e-9 < high <= 1


def test_what_scores_like_evidence_is_likely_and_what_scores_like_the_rest_is_not() -> None:
    calibration = fit_relevance_model([[example(3.0, seed) for seed in range(60)]], SCORER, ["s"])
    measures = np.zeros((2, len(RELEVANCE_FEATURES)), dtype=np.float32)
    measures[:, 0] = 3.0, 0.9
    high, low = calibration.predict_relevance(measures)
    assert high is not None
    assert low is not None
    assert 1 >= high > 0.9
    assert 0 <= low < 0.1


def test_on_average_what_is_called_likely_is_as_often_evidence() -> None:
    examples = [example(1.5 if seed % 2 else 0.2, seed) for seed in range(200)]
    calibration = fit_relevance_model([examples], SCORER, ["s"])
    measures = np.zeros((200, len(RELEVANCE_FEATURES)), dtype=np.float32)
    measures[:, 0] = [one.signals.max() for one in examples]
    told = [value for value in calibration.predict_relevance(measures) if value is not None]
    best_is_gold = [bool(one.holds[one.signals.argmax()].any()) for one in examples]
    assert np.mean(told) == pytest.approx(np.mean(best_is_gold), abs=0.1)


def test_without_a_fitted_model_nothing_is_said() -> None:
    assert RelevanceModel().predict_relevance(np.zeros((2, len(RELEVANCE_FEATURES)), dtype=np.float32)) == [None, None]
    unmeasured = TrainingExample(np.ones((2, 1), dtype=np.float32), np.eye(2, 1, dtype=bool))
    assert fit_relevance_model([[unmeasured]], SCORER, ["s"]) == RelevanceModel()


def test_a_calibration_survives_a_round_trip_through_text() -> None:
    weights = dict.fromkeys(RELEVANCE_FEATURES, 0.5) | {INTERCEPT: -2.0}
    scorer = LinearScorer({"a": 1.0}, ("one",), RelevanceModel(weights))
    assert LinearScorer.from_text(scorer.to_text(), "file") == scorer


def test_a_file_with_a_measure_that_is_not_known_says_which() -> None:
    with pytest.raises(ConfigurationError, match="from colour; expected about a name"):
        LinearScorer.from_text("a\t1\nrelevance: colour\t2\n", "w.tsv")


def test_hits_of_the_default_retriever_say_how_relevant_they_are(tmp_path: Path) -> None:
    weights = dict.fromkeys(list_weight_names(list_signal_names(rewriting=False)), 0.0)
    weights |= dict.fromkeys(list_weight_names(["similar to the question"]), 1.0)
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
