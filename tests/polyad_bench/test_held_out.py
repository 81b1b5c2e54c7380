"""Trained retrievers beside others, on questions that training did not see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.signals import SIGNAL_NAMES, list_weight_names
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_scorer import TripleScorer
from polyad_bench.datasets.beir import Question
from polyad_bench.runs.retriever_evaluation import RetrieverResult
from polyad_bench.training.triple_examples import build_recipe
from polyad_bench.training.triple_scorer import UNTRAINED_RETRIEVERS, evaluate_held_out

EMBEDDER = HashingEmbedder(32)
NAMES = list_weight_names(SIGNAL_NAMES)
DOCUMENTS = [
    Document("bell", "Bell of Tarn", "The Bell of Tarn was cast by Ines Moreau in 1702. It hangs in Corven Tower."),
    Document("moreau", "Ines Moreau", "Ines Moreau was a founder of bronze. She was born in the village of Aldby."),
    Document("tower", "Corven Tower", "Corven Tower is built of red granite. Its stairs have 214 steps."),
    Document("aldby", "Aldby", "Aldby is a village on the river Isk. It is known for its walnut orchards."),
    Document("isk", "Isk", "The Isk is a river that flows north. Otters live on its banks."),
]
QUERIES = [
    Question("1", "Where was the maker of the Bell of Tarn born?", frozenset({"bell", "moreau"})),
    Question("2", "On which river is the village where Ines Moreau was born?", frozenset({"moreau", "aldby"})),
]
SETTINGS = HyperRetrieverSettings(dense_weight=0)
UNTRAINED = TripleScorer.create_untrained(build_recipe(SETTINGS, EMBEDDER))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as opened:
        opened.index_documents(DOCUMENTS)
        yield opened


def by_name(engine: Engine, scorer: TripleScorer, linear: LinearScorer) -> dict[str, RetrieverResult]:
    return {row.retriever: row for row in evaluate_held_out(engine, scorer, linear, SETTINGS, QUERIES, 2)}


def weighing(signal: str) -> LinearScorer:
    """Weighs one signal, however far names lead."""
    return LinearScorer({name: float(name in list_weight_names([signal])) for name in NAMES})


def test_each_row_is_of_the_scorer_it_is_called_after(engine: Engine) -> None:
    bias = np.full_like(UNTRAINED.output_bias, -20)
    doubting = replace(UNTRAINED, output=np.zeros_like(UNTRAINED.output), output_bias=bias)
    before = by_name(engine, UNTRAINED, weighing("contains words of the question"))
    after = by_name(engine, doubting, weighing("nothing"))

    def measures(rows: dict[str, RetrieverResult], name: str) -> tuple[float | None, float | None]:
        return rows[name].recall, rows[name].mrr

    for name in ("hyperretriever, untrained", *UNTRAINED_RETRIEVERS):
        assert measures(before, name) == measures(after, name)
    assert measures(before, "hyperretriever") == measures(before, "hyperretriever, untrained")
    assert measures(after, "hyperretriever") != measures(after, "hyperretriever, untrained")
    assert measures(before, "default, trained alike") != measures(after, "default, trained alike")


def test_every_row_says_how_long_a_question_took(engine: Engine) -> None:
    rows = by_name(engine, UNTRAINED, weighing("about an entity that a good passage mentions"))
    assert all(row.latency_p50 > 0 for row in rows.values())
