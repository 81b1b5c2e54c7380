"""Relevance: a probability beside the score."""

# ruff: noqa: RUF001  Chinese commas

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad import sample
from polyad.calibration import get_embedder_calibration
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.model import Document, FloatArray
from polyad.protocols.components import Embedder, TextKind
from polyad.retrieval.default.relevance import (
    MIN_QUESTIONS,
    Calibration,
    RelevanceFeatures,
    find_main_languages,
    generate_questions,
    read_everyday_questions,
)
from polyad.retrieval.default.retriever import DefaultRetriever, DefaultSettings
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.signals import SIGNAL_NAMES, list_weight_names
from polyad.text.function_words import find_language_evidence


def test_hits_of_the_default_retriever_say_how_relevant_they_are(tmp_path: Path) -> None:
    weights = dict.fromkeys(list_weight_names(SIGNAL_NAMES), 0.0)
    weights |= dict.fromkeys(list_weight_names(["similar to the question"]), 1.0)
    (tmp_path / "w.tsv").write_text(LinearScorer(weights).to_text(), encoding="utf-8")
    settings = Settings(default=DefaultSettings(weights=str(tmp_path / "w.tsv")))
    documents = [
        Document("bell", "Bell", "It was cast in bronze."),
        Document("bowl", "Bowl", "It may be of wood or of clay or of bronze."),
        Document("otter", "Otter", "It eats fish."),
    ]
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32), settings=settings) as engine:
        engine.index_documents(documents)
        hits = engine.search("What was cast in bronze?").passages
    assert [hit.passage.document_id for hit in hits] == ["bell", "bowl"]
    assert 1 > (hits[0].relevance or 0) > (hits[1].relevance or 0) > 0


def test_relevance_grows_with_score_and_cosine_and_falls_with_unknown_terms_and_names() -> None:
    calibration, base = Calibration(), RelevanceFeatures(8.0, 0.4, 0.1, 0.2, 0.5)
    better = (replace(base, score=9.0), replace(base, cosine=0.5))
    worse = (replace(base, unknown=0.2), replace(base, unknown_names=0.3))
    log_odds = calibration.compute_log_odds(base)
    assert all(calibration.compute_log_odds(each) > log_odds for each in better)
    assert all(calibration.compute_log_odds(each) < log_odds for each in worse)


@given(st.lists(st.floats(0, 50), min_size=0, max_size=50), st.floats(0, 5), st.floats(-100, 100))
def test_a_limit_is_a_probability_whatever_the_scores_are(values: list[float], gap: float, score: float) -> None:
    hidden = [RelevanceFeatures(value, 0.3, 0.0, 0.0, 0.5) for value in values]
    present = [replace(each, score=each.score + gap) for each in hidden]
    calibration = Calibration.from_measurements(present, hidden, hidden[:5], 10)
    assert 0 < calibration.limit <= 0.63 or (calibration.limit == 0.02 and len(values) < MIN_QUESTIONS)
    assert calibration.scale > 0
    assert Calibration.from_bytes(calibration.to_bytes()) == calibration
    low, high = calibration.predict_relevance(
        hidden[0] if hidden else RelevanceFeatures(1, 0, 0, 0, 0), np.array([score, 101])
    )
    assert 0 < low <= high < 1


@pytest.mark.parametrize(("linkability", "is_relative"), [(0.0, True), (1.0, False)])
def test_the_limit_follows_the_everyday_questions_where_names_do_not_lead(
    linkability: float, is_relative: bool
) -> None:
    generated = [RelevanceFeatures(8.0, cosine, 0.0, 0.0, linkability) for cosine in np.linspace(0.1, 0.9, 80)]
    limits = []
    for cosine in (0.0, 0.2, 0.3, 0.8, 0.9):
        everyday = [RelevanceFeatures(8.0, cosine, 0.0, 0.0, linkability)] * 3
        limits.append(Calibration.from_measurements(generated, generated, everyday, 10).limit)
    if is_relative:
        assert limits[0] < limits[1] < limits[2] < limits[3] == limits[4], (
            "at most a quantile of the generated questions"
        )
    else:
        assert len(set(limits)) == 1


@pytest.fixture(scope="module")
def army_index(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Path:
    """An index of one document, a manual of an army that does not name its country."""
    folder = tmp_path_factory.mktemp("army")
    with Engine.open(folder, embedder=embedder) as engine:
        engine.index_documents(
            [Document("drill", "Drill", "Infantrymen stand in ranks with elbows four inches apart.")]
        )
    return folder


def compute_features(engine: Engine, question: str) -> RelevanceFeatures:
    components = engine.components
    retriever = DefaultRetriever(components.embedder, components.extractor, components.settings.default)
    return retriever.compute_relevance_features(question, engine.snapshot())[0]


@pytest.mark.parametrize(
    ("question", "share"),
    [
        ("How far apart, elbow to elbow, do American infantrymen stand in ranks?", 0),
        ("How far apart do infantrymen stand in ranks?", 0),
        ("How far apart do infantrymen stand in the Battle of Brolvak?", 1),
        ("How far apart do the stones of Stonehenge stand?", 1),
    ],
)
def test_an_unknown_name_counts_if_it_matters_for_the_meaning_of_the_question(
    army_index: Path, question: str, share: float
) -> None:
    with Engine.open(army_index) as engine:
        assert compute_features(engine, question).unknown_names == pytest.approx(share, abs=0.01)


def test_unknown_terms_count_where_they_are_nearly_all_terms(army_index: Path) -> None:
    with Engine.open(army_index) as engine:
        half, all_terms = (compute_features(engine, text).unknown for text in ("infantrymen soup", "qxv zzkr plomt"))
    assert half < 0.2
    assert all_terms == pytest.approx(1)


def test_a_calibration_belongs_to_the_weights_of_relevance(army_index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine.open(army_index) as engine:
        components = engine.components
        arguments = components.embedder, components.extractor, components.settings.default
        digests = [DefaultRetriever(*arguments).scorer_digest for _ in range(2)]
        monkeypatch.setattr("polyad.retrieval.default.retriever.INTERCEPT", 0.0)
        assert digests[0] == digests[1] != DefaultRetriever(*arguments).scorer_digest


def test_an_index_is_calibrated_again_when_a_fifth_of_it_is_new() -> None:
    calibration = Calibration(passages=100)
    assert [calibration.is_current(count) for count in (79, 80, 120, 121)] == [False, True, True, False]


@pytest.fixture(scope="module")
def sample_index(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Path:
    """An index of twelve short articles."""
    folder = tmp_path_factory.mktemp("sample")
    with Engine.open(folder, embedder=embedder) as engine:
        engine.index_documents(document for document in sample.documents() if isinstance(document, Document))
    return folder


def test_auto_answers_questions_that_a_small_index_answers_and_refuses_others(sample_index: Path) -> None:
    answered = ["Who designed the Ottermere Gauge?", "Whose gift founded the owner of Saltby Weir?"]
    unanswered = ["qxv zzkr plomt?", "How do I bake a cake without eggs?", "Who designed the Brolvak Cathedral?"]
    with Engine.open(sample_index) as engine:
        for question in answered:
            assert engine.search(question, min_relevance="auto").passages, question
            assert engine.search(question, min_relevance=0.2).passages, question
        for question in unanswered:
            evidence = engine.search(question, min_relevance="auto")
            assert not evidence.passages, question
            assert evidence.best_relevance is not None
        assert len(engine.search(answered[0], min_relevance="auto").passages) == 5, "auto leaves no single passage out"
        assert engine.search(unanswered[0], retriever="dense", min_relevance="auto").passages, "it has no relevance"


def test_a_calibration_is_stored_and_loaded_by_every_search(sample_index: Path) -> None:
    question = "Who designed the Ottermere Gauge?"
    with Engine.open(sample_index) as engine:
        first = engine.search(question, min_relevance="auto")
        assert "generated questions and 12 passages" in engine.catalogue.statistics().settings["relevance"]
    with Engine.open(sample_index) as engine:
        again = engine.search(question)
    assert [hit.relevance for hit in again.passages] == [hit.relevance for hit in first.passages]


def test_an_index_too_small_to_calibrate_has_relevance(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(32)) as engine:
        assert not engine.search("otters", min_relevance="auto").passages, "an empty index has no hits"
        engine.index_documents([Document("otter", "Otter", "It eats fish.")])
        evidence = engine.search("What do otters eat?", min_relevance="auto")
        assert evidence.best_relevance or evidence.passages
        assert "0 generated questions and 1 passages" in engine.catalogue.statistics().settings["relevance"]


def test_an_index_of_one_passage_answers_and_refuses_what_it_lacks(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32)) as engine:
        engine.index_documents([Document("a", "Anna", "Anna met Bob in Oslo.")])
        assert engine.search("Whom did Anna meet?", min_relevance="auto").passages
        assert not engine.search("How do submarines dive?", min_relevance="auto").passages


class CountingEmbedder(HashingEmbedder):
    """A hashing embedder that records the number of texts of each request."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.requests: list[int] = []

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.requests.append(len(texts))
        return super().encode(texts, kind)


def test_an_unknown_name_costs_no_further_request_to_the_embedder(tmp_path: Path) -> None:
    embedder = CountingEmbedder(32)
    with Engine.open(tmp_path, embedder=embedder) as engine:
        engine.index_documents([Document("drill", "Drill", "Infantrymen stand in ranks.")])
        embedder.requests.clear()
        compute_features(engine, "How do infantrymen of Brolvak stand?")
    assert embedder.requests == [3]


CHINESE = [
    "塔恩之钟由铸钟匠安娜·霍尔特在一五一二年用青铜铸造，后来一直悬挂在老教堂的钟楼里面。",
    "河流观测站每天早晨记录水位和水温，工作人员把这些数据寄给首都的一个研究所保存。",
    "索特比堰的主人继承了一笔遗产，他用这笔钱修建了一座石桥和一所面向渔民子女的学校。",
    "水獭主要以鱼为食，它们在夜间活动，白天通常躲在岸边树根下面的洞穴里休息和睡觉。",
]
GERMAN = [
    "Die Glocke von Tarn wurde im Jahr 1512 von der Meisterin Anna Holt aus Bronze gegossen und hängt im Turm.",
    "Der Besitzer des Wehrs von Saltby erbte ein Vermögen und baute damit eine Brücke aus Stein und eine Schule.",
]


@pytest.mark.parametrize(
    ("texts", "language"), [(CHINESE, "zh"), (GERMAN, "de"), (["Otters eat fish in the river by night."], "en")]
)
def test_questions_are_generated_from_sentences_of_the_language_of_the_index(
    tmp_path: Path, texts: list[str], language: str
) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(32)) as engine:
        engine.index_documents(Document(f"{number}", "", text) for number, text in enumerate(texts))
        snapshot = engine.snapshot()
        assert find_main_languages(snapshot) == [language]
        generated = dict(generate_questions(snapshot))
    assert len(generated) == len(texts)
    assert len(set(generated.values())) == len(texts), "one sentence of each passage"


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


@pytest.mark.parametrize("height", [0.0, 0.1, 0.5])
def test_the_limit_in_another_language_does_not_depend_on_how_high_its_cosines_are(height: float) -> None:
    def make(low: float, high: float) -> list[RelevanceFeatures]:
        return [RelevanceFeatures(8.0, height + cosine, 0.0, 0.0, 0.0) for cosine in np.linspace(low, high, 80)]

    calibration = Calibration.from_measurements(make(0.4, 0.8), make(0.3, 0.5), make(0.15, 0.25), 10, languages=["zh"])
    limit = np.log(calibration.limit / (1 - calibration.limit))
    assert all(calibration.compute_log_odds(each) > limit for each in make(0.4, 0.8))
    assert all(calibration.compute_log_odds(each) < limit for each in make(0.15, 0.25))


def test_the_cosines_of_a_multilingual_encoder_are_on_the_scale_of_an_english_one() -> None:
    multilingual, english = map(get_embedder_calibration, ("multilingual-e5-small", "all-MiniLM-L6-v2"))
    assert english.rescale_cosine(0.31) == 0.31
    assert 0 < multilingual.rescale_cosine(0.81) < 0.3 < 0.5 < multilingual.rescale_cosine(0.87) < 1


def test_a_question_in_another_language_than_the_index_is_hardly_refused() -> None:
    calibration = Calibration(limit=0.4, languages="zh de")
    assert calibration.get_limit("Wer goss die Glocke?") == calibration.get_limit("谁铸造了这口钟") == 0.4
    assert calibration.get_limit("Who cast the bell of the tower?") == 0.02
    assert Calibration(limit=0.4).get_limit("Wer goss die Glocke?") == 0.4
