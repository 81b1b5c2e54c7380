"""The second stage of the default retriever: its features by a slow reference, and what it may not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from polyad.engine import Engine
from polyad.evaluation.training.linear_scorer import (
    MIN_QUESTIONS,
    TrainingExample,
    build_second_stage_examples,
    extract_signals,
    train_second_stage,
)
from polyad.model import FloatArray, IntArray, Passage, Query
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default import second_stage
from polyad.retrieval.default.links import MAX_FOLLOWED_DEGREE, compute_rarity
from polyad.retrieval.default.retriever import DefaultRetriever, DefaultSettings
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.second_stage import FEATURES, compare_candidates, compute_score_adjustments
from polyad.retrieval.default.signals import SignalExtractor, SignalInputs
from polyad.retrieval.question import QuestionLinker
from polyad.text.words import extract_query_terms, extract_terms

QUESTION = "Where was the maker of the Bell of Tarn born?"
WEIGHTS = np.linspace(-1, 1, len(FEATURES), dtype=np.float32)


@pytest.fixture
def snapshot(small_engine: Engine) -> Snapshot:
    return small_engine.snapshot()


@pytest.fixture
def inputs(small_engine: Engine, snapshot: Snapshot) -> SignalInputs:
    components = small_engine.components
    linker = QuestionLinker(components.extractor)
    return SignalExtractor(snapshot, components.embedder, linker).compute_inputs(QUESTION)


@pytest.fixture
def scores(inputs: SignalInputs) -> FloatArray:
    return np.random.default_rng(3).permutation(len(inputs.candidates)).astype(np.float32)


def get_entities(snapshot: Snapshot, row: int) -> set[int]:
    edges, _ = snapshot.graph.hyperedges(np.array([row]))
    return set(snapshot.graph.members(edges)[0].tolist())


def get_subjects(snapshot: Snapshot, row: int) -> dict[int, float]:
    entities, _, strengths = snapshot.graph.subjects(np.array([row]))
    return dict(sorted(zip(entities.tolist(), strengths.tolist(), strict=True), key=lambda pair: pair[1]))


def get_rarity(snapshot: Snapshot, entity: int) -> float:
    degrees = snapshot.graph.mention_counts(np.array([entity]))
    return float(compute_rarity(snapshot, degrees)[0]) if degrees[0] <= MAX_FOLLOWED_DEGREE else 0.0


def compute_slowly(inputs: SignalInputs, snapshot: Snapshot, rows: list[int], rank: int) -> dict[str, float]:
    """Some features of one candidate, passage by passage."""
    row, question = rows[rank], set(extract_query_terms(QUESTION))
    others = [other for other in rows if other != row]
    texts = {
        each: set(extract_terms(f"{p.title} {p.text}"))
        for each, p in zip(rows, snapshot.get(Passage, rows), strict=True)
    }
    shared = get_entities(snapshot, row) & get_entities(snapshot, rows[0]) if rank else set()
    items = get_subjects(snapshot, row)
    title = set(
        extract_query_terms(" ".join(snapshot.ids("entity", [e for e in items if items[e] == max(items.values())])))
    )
    near = set[str]().union(*(texts[other] for other in others[:3]))
    terms = inputs.terms
    contained = {each: terms.find_contained_terms(np.array([each]))[0] for each in rows}
    name = np.any([contained[other] for other in others[:3]], axis=0)
    return {
        "shares an entity with the best passage": max((get_rarity(snapshot, entity) for entity in shared), default=0),
        "mentions a subject of the best three": any(
            set(get_subjects(snapshot, other)) & get_entities(snapshot, row) for other in rows[:3] if other != row
        ),
        "terms of the question that the best three lack": float(terms.weights[contained[row] & ~name].sum()),
        "share of its title in the question or the best three": len(title & (question | near)) / max(1, len(title)),
        "has a subject of the best three": any(set(items) & set(get_subjects(snapshot, other)) for other in others[:3]),
    }


def test_features_equal_a_slow_reference(inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot) -> None:
    best, features = compare_candidates(inputs, scores, snapshot)
    rows = inputs.candidates[best].tolist()
    assert scores[best].tolist() == sorted(scores, reverse=True)
    assert len(rows) > 3
    for rank in range(len(rows)):
        for name, expected in compute_slowly(inputs, snapshot, rows, rank).items():
            assert features[rank, FEATURES.index(name)] == pytest.approx(float(expected), abs=1e-6), (name, rank)


def test_linkability_0_leaves_the_first_stage_alone(
    inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot
) -> None:
    assert not compute_score_adjustments(replace(inputs, linkability=0.0), scores, WEIGHTS, snapshot).any()


def test_weights_of_0_leave_the_first_stage_alone(inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot) -> None:
    assert not compute_score_adjustments(inputs, scores, 0 * WEIGHTS, snapshot).any()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_candidates_that_are_not_compared_stay_below_in_their_order(
    inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_stage, "MAX_CANDIDATES", count)
    monkeypatch.setattr(type(snapshot), "linkability", 1.0)
    adjusted = scores + compute_score_adjustments(inputs, scores, 9 * WEIGHTS, snapshot)
    compared, rest = np.split((-scores).argsort(), [count])
    assert adjusted[compared].max() == pytest.approx(scores.max())
    assert adjusted[compared].min() >= adjusted[rest].max() - 1e-5
    assert (np.diff(adjusted[rest]) < 0).all()


def test_the_second_stage_is_a_reason_and_part_of_the_score(
    small_engine: Engine, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(snapshot), "linkability", 1.0)
    bundled = LinearScorer.from_settings("")
    only_second = replace(bundled, weights=dict.fromkeys(bundled.weights, 0.0))

    def search(scorer: LinearScorer) -> list[tuple[str, float, str]]:
        components = small_engine.components
        retriever = DefaultRetriever(components.embedder, components.extractor, DefaultSettings(), scorer)
        hits = retriever.retrieve(Query(QUESTION, 6), snapshot).passages
        return [(hit.passage.id, hit.score, hit.reason) for hit in hits]

    assert search(bundled) == search(bundled)
    assert [score for _, score, _ in search(only_second)] == sorted(
        (score for _, score, _ in search(only_second)), reverse=True
    )
    boosted = replace(only_second, second_stage={name: float(name.startswith("terms")) for name in FEATURES})
    first, *_, last = search(boosted)
    assert first[1] == 0
    assert last[1] < 0


def test_subjects_name_the_passage_of_each(snapshot: Snapshot) -> None:
    rows: IntArray = np.arange(snapshot.passage_count)
    entities, owners, strengths = snapshot.graph.subjects(rows)
    titles = {
        passage.title.casefold(): row
        for row, passage in zip(rows.tolist(), snapshot.get(Passage, rows.tolist()), strict=True)
    }
    keys = snapshot.ids("entity", entities)
    strong = {
        key: owner for key, owner, strength in zip(keys, owners.tolist(), strengths, strict=True) if strength >= 1
    }
    assert titles.items() <= strong.items()


def test_training_finds_the_feature_that_tells_evidence(small_engine: Engine) -> None:
    (candidates,) = extract_signals(small_engine, [QUESTION])
    holds = np.array([[document == "moreau"] for document in candidates.documents])
    example = TrainingExample(candidates.signals, holds, 1.0, candidates.documents, QUESTION)
    bundled = LinearScorer.from_settings("")
    (compared,) = build_second_stage_examples(small_engine, [example], bundled)
    assert compared.signals.shape == (len(candidates.documents), 1 + len(FEATURES))
    assert [d for d, (gold,) in zip(compared.documents, compared.holds, strict=True) if gold] == ["moreau"]
    assert compared.signals[:, 0].tolist() == sorted(compared.signals[:, 0], reverse=True)
    random = np.random.default_rng(0)
    training_examples = [
        replace(compared, signals=random.random(compared.signals.shape, dtype=np.float32)) for _ in range(MIN_QUESTIONS)
    ]
    for each in training_examples:
        each.signals[:, [0, 1 + FEATURES.index("terms of the question")]] = np.where(each.holds, [0.8, 1], [0.6, 0])
    weights = train_second_stage([training_examples])
    assert max(weights, key=weights.__getitem__) == "terms of the question"
    assert weights == train_second_stage([training_examples])
    assert train_second_stage([training_examples[1:]]) == {}, "too few questions"
