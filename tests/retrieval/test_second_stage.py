"""The second stage of the default retriever: its features by a slow reference, and what it may not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.model import FloatArray, IntArray, Passage, Query
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default import second_stage
from polyad.retrieval.default.links import MAX_FOLLOWED_DEGREE, compute_rarity
from polyad.retrieval.default.ranking_network import RankingNetwork
from polyad.retrieval.default.retriever import DefaultRetriever, DefaultSettings
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.second_stage import (
    COMPARISONS,
    FEATURES,
    ROUNDS,
    CandidateScorer,
    PassageComparison,
    rank_by_links,
)
from polyad.retrieval.default.signals import SIGNAL_NAMES, SignalExtractor, SignalInputs, compute_signals
from polyad.retrieval.question import QuestionLinker
from polyad.text.words import extract_query_terms, extract_terms
from polyad_bench.training.linear_scorer import TrainingExample, extract_signals
from polyad_bench.training.network_training import (
    MIN_QUESTIONS,
    SelectNetwork,
    compare_examples,
    fit_network,
    get_half,
    train_second_stage,
)

QUESTION = "Where was the maker of the Bell of Tarn born?"


def create_linear_network(weights: FloatArray) -> RankingNetwork:
    """A network without hidden units, whose features are not standardised."""
    zeros = np.zeros((len(FEATURES), 0), dtype=np.float32)
    return RankingNetwork(0 * weights, 0 * weights + 1, weights, zeros, zeros[0], zeros[0])


def create_random_network(units: int = 3) -> RankingNetwork:
    """A network with random weights."""
    random = np.random.default_rng(5)
    features, hidden = random.normal(size=(3, len(FEATURES))), random.normal(size=(len(FEATURES), units))
    arrays = features[0], abs(features[1]) + 0.1, features[2], hidden, *random.normal(size=(2, units))
    return RankingNetwork(*(array.astype(np.float32) for array in arrays))


NETWORK = create_random_network()


def compute_score_adjustments(
    inputs: SignalInputs, signals: FloatArray, scores: FloatArray, network: CandidateScorer, snapshot: Snapshot
) -> FloatArray:
    ranking = rank_by_links(inputs, signals, scores, network, snapshot)
    return ranking.compute_adjustments(scores, ranking.ranked)


def compare_only(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the second stage compare the best candidates of the first stage alone."""
    for name, value in {"MAX_CANDIDATES": count, "BEST_BY_WORDS": 0, "BEST_BY_SIMILARITY": 0}.items():
        monkeypatch.setattr(second_stage, name, value)


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


def test_comparisons_equal_a_slow_reference(inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot) -> None:
    comparison = PassageComparison(inputs, compute_signals(inputs), scores, snapshot)
    best = comparison.best
    comparisons = comparison.compare(np.arange(len(best)), comparison.first)
    rows = inputs.candidates[best].tolist()
    assert scores[best].tolist() == sorted(scores, reverse=True)
    assert len(rows) > 3
    for rank in range(len(rows)):
        for name, expected in compute_slowly(inputs, snapshot, rows, rank).items():
            assert comparisons[rank, COMPARISONS.index(name)] == pytest.approx(float(expected), abs=1e-6), (name, rank)


def test_features_follow_the_present_ranking(inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot) -> None:
    signals = compute_signals(inputs)
    comparison = PassageComparison(inputs, signals, scores, snapshot)
    ranked = np.random.default_rng(4).permutation(len(comparison.best)).astype(np.float32)
    features = comparison.compute_features(ranked)
    assert features.shape == (len(comparison.best), len(FEATURES))
    assert features[:, : len(SIGNAL_NAMES)].tolist() == signals[comparison.best].tolist()
    assert features[:, FEATURES.index("score of the first stage")].tolist() == comparison.first.tolist()
    ranks = features[:, FEATURES.index("logarithm of the rank")]
    assert np.expm1(ranks[np.argsort(-ranked)]) == pytest.approx(np.arange(len(ranked)), abs=1e-4)
    order = np.argsort(-ranked)
    column = len(SIGNAL_NAMES) + 1
    again = comparison.compare(order, ranked[order])
    assert features[order, column : column + len(COMPARISONS)].tolist() == again.tolist()


def test_the_network_is_a_linear_part_and_hidden_units() -> None:
    features = np.random.default_rng(6).normal(size=(4, len(FEATURES))).astype(np.float32)
    z = np.clip((features - NETWORK.mean) / NETWORK.deviation, -6, 6)
    hidden = np.maximum(z @ NETWORK.hidden + NETWORK.bias, 0)
    assert NETWORK.score(features) == pytest.approx(z @ NETWORK.linear + hidden @ NETWORK.output, rel=1e-4, abs=1e-4)


def test_a_network_is_saved_with_the_weights() -> None:
    scorer = replace(LinearScorer.from_settings(""), network=NETWORK)
    again = LinearScorer.from_text(scorer.to_text(), "weights.tsv").network
    assert again
    features = np.random.default_rng(6).normal(size=(4, len(FEATURES))).astype(np.float32)
    assert again.score(features) == pytest.approx(NETWORK.score(features), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("second stage: terms of the question\t", "second stage: other\t", "other features"),
        ("second stage: bias of each hidden unit\t", "second stage: bias of each hidden unit\t0\t", "expected 4"),
        ("second stage: terms of the question\t", "second stage: terms of the question\tx", "up to 1,000,000"),
    ],
)
def test_a_network_of_other_features_or_lengths_is_refused(old: str, new: str, reason: str) -> None:
    lines = replace(LinearScorer.from_settings(""), network=NETWORK).to_text().splitlines()
    text = "\n".join(line for line in lines if "checksum" not in line).replace(old, new)
    with pytest.raises(ConfigurationError, match=reason):
        LinearScorer.from_text(text, "weights.tsv")


def test_linkability_0_leaves_the_first_stage_alone(
    inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot
) -> None:
    without_links = replace(inputs, linkability=0.0)
    assert not compute_score_adjustments(without_links, compute_signals(inputs), scores, NETWORK, snapshot).any()


def test_the_score_of_the_first_stage_alone_changes_nothing(
    inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot
) -> None:
    network = create_linear_network(np.array([name == "score of the first stage" for name in FEATURES], np.float32))
    adjustments = compute_score_adjustments(
        inputs, compute_signals(inputs), (scores / 20).astype(np.float32), network, snapshot
    )
    assert adjustments == pytest.approx(0, abs=1e-5)


def test_the_last_round_compares_with_the_best_of_the_round_before(
    inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(snapshot), "linkability", 1.0)
    compare_only(4, monkeypatch)
    inputs = replace(inputs, linkability=1.0)
    ranked: list[FloatArray] = []

    class Reversed:
        """Ranks the candidates in the reverse order of the last round."""

        def score(self, features: FloatArray) -> FloatArray:
            ranked.append(features[:, FEATURES.index("logarithm of the rank")])
            return ranked[-1]

    compute_score_adjustments(inputs, compute_signals(inputs), scores, Reversed(), snapshot)
    assert len(ranked) == ROUNDS == 2
    assert ranked[0].tolist() == ranked[1].tolist()[::-1]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_candidates_that_are_not_compared_stay_below_in_their_order(
    inputs: SignalInputs, scores: FloatArray, snapshot: Snapshot, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare_only(count, monkeypatch)
    inputs = replace(inputs, linkability=1.0)
    adjusted = scores + compute_score_adjustments(inputs, compute_signals(inputs), scores, NETWORK, snapshot)
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
    assert bundled.network
    assert [score for _, score, _ in search(only_second)] == sorted(
        (score for _, score, _ in search(only_second)), reverse=True
    )
    weights = np.array([name.startswith("terms") for name in FEATURES], dtype=np.float32)
    first, *_, last = search(replace(only_second, network=create_linear_network(weights)))
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


def test_examples_of_the_second_round_follow_the_network_of_the_first(small_engine: Engine) -> None:
    (candidates,) = extract_signals(small_engine, [QUESTION])
    holds = np.array([[document == "moreau"] for document in candidates.documents])
    example = TrainingExample(candidates.signals, holds, 1.0, candidates.documents, QUESTION)
    bundled = LinearScorer.from_settings("")
    (first,) = compare_examples(small_engine, [example], bundled)
    assert first.signals.shape == (len(candidates.documents), len(FEATURES))
    assert [d for d, (gold,) in zip(first.documents, first.holds, strict=True) if gold] == ["moreau"]
    scores = first.signals[:, FEATURES.index("score of the first stage")]
    assert scores.tolist() == sorted(scores, reverse=True)
    selected: list[TrainingExample] = []

    def select(example: TrainingExample) -> RankingNetwork:
        selected.append(example)
        return NETWORK

    (second,) = compare_examples(small_engine, [example], bundled, select)
    assert selected == [example]
    assert second.documents == first.documents
    assert second.signals.tolist() != first.signals.tolist()


def create_examples(count: int) -> list[TrainingExample]:
    """Examples whose gold candidate is told from others by one feature alone."""
    random = np.random.default_rng(0)
    examples = []
    for number in range(count):
        holds = np.arange(40)[:, np.newaxis] == random.integers(40)
        signals = random.random((40, len(FEATURES)), dtype=np.float32)
        signals[:, FEATURES.index("terms of the question")] = np.where(holds[:, 0], 1, 0)
        examples.append(TrainingExample(signals, holds, 1.0, (), f"Question {number}?"))
    return examples


def test_training_finds_the_feature_that_tells_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = create_examples(MIN_QUESTIONS)
    network = fit_network([examples])
    held_out = create_examples(MIN_QUESTIONS + 50)[MIN_QUESTIONS:]
    is_first = [bool(example.holds[network.score(example.signals).argmax(), 0]) for example in held_out]
    assert sum(is_first) >= 45
    monkeypatch.setattr("polyad_bench.training.network_training._EPOCHS", 1)
    assert fit_network([examples]).to_rows(FEATURES) == fit_network([examples]).to_rows(FEATURES), "the seed decides"


def test_questions_are_ranked_by_a_network_that_did_not_see_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad_bench.training.network_training._EPOCHS", 1)
    fitted: list[set[int]] = []
    fit = fit_network

    def note(datasets: list[list[TrainingExample]], seed: int) -> RankingNetwork:
        fitted.append({get_half(example) for examples in datasets for example in examples})
        return fit(datasets, seed)

    monkeypatch.setattr("polyad_bench.training.network_training.fit_network", note)
    examples = create_examples(MIN_QUESTIONS)
    networks: dict[int, set[int]] = {}

    def compare(select: SelectNetwork | None) -> list[list[TrainingExample]]:
        for example in examples if select else ():
            assert select
            networks.setdefault(get_half(example), set()).add(id(select(example)))
        return [examples]

    assert train_second_stage(compare)
    assert fitted == [{1}, {0}, {0, 1}]
    assert len(networks[0]) == len(networks[1]) == 1
    assert networks[0] != networks[1]
    assert train_second_stage(lambda _: [examples[1:]]) is None, "too few questions"
