"""The last stage of the default retriever: what it measures, and that telling words, codes and amounts lead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyad.engine import Engine
from polyad.model import Document
from polyad.protocols.components import Embedder
from polyad.retrieval.default.last_stage import LAST_FEATURES, PASSAGE_MEASURES, QUESTION_MEASURES, WordMatch
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.second_stage import rank_by_links
from polyad.retrieval.default.signals import SignalExtractor, compute_signals
from polyad.retrieval.question import QuestionLinker
from polyad_bench.training.last_stage_training import generate_known_items, weigh_examples
from polyad_bench.training.linear_scorer import TrainingExample, extract_signals
from polyad_bench.training.network_training import LAST_STAGE, fit_network

NOTES = [
    ("pump", "Pump", "The pump of the old mill lifts water. Its torque is 45 Nm at the shaft."),
    ("mixer", "Mixer", "The mixer of the dairy runs at 45 rpm. Its bolts take 30 Nm."),
    ("gate", "Gate", "The gate at the river is opened by Sykora in spring. See drawing P-20."),
    ("list", "Prices", "Drawings cost 20 EUR each. Post is free from 200 EUR on."),
    *((f"note {number}", f"Note {number}", f"The crew cleaned the hall on day {number}.") for number in range(60)),
]


@pytest.fixture
def engine(tmp_path: Path, embedder: Embedder) -> Engine:
    engine = Engine.open(tmp_path / "kb", embedder=embedder)
    engine.index_documents([Document(*note) for note in NOTES])
    return engine


def measure(engine: Engine, question: str) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Return the measures of each compared passage by its document, and those of the question."""
    snapshot, components = engine.snapshot(), engine.components
    inputs = SignalExtractor(snapshot, components.embedder, QuestionLinker(components.extractor)).compute_inputs(
        question
    )
    scorer = LinearScorer.from_settings("")
    assert scorer.network
    signals = compute_signals(inputs)
    ranking = rank_by_links(inputs, signals, signals.sum(axis=1), scorer.network, snapshot)
    match = WordMatch.from_inputs(inputs, snapshot)
    passages = match.measure_passages(ranking.best, ranking.titles)
    ids = snapshot.ids("passage", inputs.candidates[ranking.best].tolist())
    features = match.compute_features(ranking)
    assert features.shape == (len(ids), len(LAST_FEATURES))
    assert np.isfinite(features).all()
    return (
        {
            id.rpartition("#")[0]: dict(zip(PASSAGE_MEASURES, row.tolist(), strict=True))
            for id, row in zip(ids, passages, strict=True)
        },
        dict(zip(QUESTION_MEASURES, match.measure_question().tolist(), strict=True)),
    )


def test_the_measures_say_who_holds_the_words_and_how_telling_they_are(engine: Engine) -> None:
    passages, question = measure(engine, "45 Nm")
    assert passages["pump"]["holds all words of the question"] == 1
    assert passages["mixer"]["holds all words of the question"] == 1  # it has both, but not together
    assert passages["gate"]["share of the question's words, by rarity"] == 0
    assert question["question: passages that hold all words"] == pytest.approx(np.log1p(2))
    assert question["question: share of words that the index lacks"] == 0
    passages, question = measure(engine, "P-20 drawing of a submarine")
    assert passages["gate"]["share of the question's numbers and codes"] == 1
    assert passages["gate"]["holds a word that few passages hold"] == 1
    assert 0 < passages["list"]["share of the question's words, by rarity"] < 1
    assert question["question: share of words that the index lacks"] > 0
    passages, _ = measure(engine, "the price of the pump")
    assert passages["pump"]["share of the question's words in its title, by rarity"] > 0
    assert passages["list"]["share of the question's words in its title, by rarity"] > 0


@pytest.mark.parametrize(
    ("question", "document"),
    [("P-20", "gate"), ("Sykora", "gate"), ("bolts", "mixer"), ("drawing P-20", "gate"), ("lifts water", "pump")],
)
def test_a_word_of_one_passage_leads_to_it(engine: Engine, question: str, document: str) -> None:
    assert engine.search(question, 3).passages[0].passage.document_id == document


def test_weights_of_all_stages_survive_their_file(tmp_path: Path) -> None:
    scorer = LinearScorer.from_settings("")
    (tmp_path / "weights.tsv").write_text(scorer.to_text(), encoding="utf-8")
    assert scorer.last_network
    loaded = LinearScorer.load(tmp_path / "weights.tsv")
    assert loaded.last_network
    assert loaded.last_network.to_rows(LAST_FEATURES) == scorer.last_network.to_rows(LAST_FEATURES)


def test_known_items_are_words_that_few_passages_contain(engine: Engine) -> None:
    snapshot = engine.snapshot()
    items = list(generate_known_items(snapshot, 12, seed=3))
    assert 5 <= len(items) <= 12
    assert items == list(generate_known_items(snapshot, 12, seed=3)), "the seed decides"
    for item in items:
        assert 1 <= len(item.passages) <= 3
        for id in item.passages:
            text = engine.catalogue.passage(id).text.lower()
            assert all(word in text for word in item.question.lower().split())


def test_training_learns_that_words_lead(engine: Engine) -> None:
    items = list(generate_known_items(engine.snapshot(), 30, seed=3))
    examples = []
    for item, candidates in zip(items, extract_signals(engine, [item.question for item in items]), strict=True):
        held = np.array([[passage in item.passages] for passage in candidates.passages])
        examples.append(TrainingExample(candidates.signals, held, candidates.linkability, (), item.question))
    weighed = weigh_examples(engine, examples, LinearScorer.from_settings(""))
    network = fit_network([weighed], stage=LAST_STAGE)
    first = [bool(example.is_gold[network.score(example.signals).argmax()]) for example in weighed]
    assert len(first) >= 10
    assert sum(first) >= 0.9 * len(first)
