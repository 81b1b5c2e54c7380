from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import build_preset_settings
from polyad.errors import ConfigurationError
from polyad.hypergraph.distance import Triples, build_triples, compute_directional_distances
from polyad.hypergraph.incidence import Hypergraph
from polyad.hypergraph.sparse import compute_cosines
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.model import Evidence, FloatArray, IntArray
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Kind, Snapshot
from polyad.retrieval.default.signals import SIGNAL_NAMES
from polyad.retrieval.hyperretriever.expansion import lower_threshold, search_triples, select_triples
from polyad.retrieval.hyperretriever.retriever import HyperRetriever
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings, HyperRetrieverTraining
from polyad.retrieval.hyperretriever.triple_scorer import Recipe, TripleScorer
from polyad.retrieval.hyperretriever.triple_walk import QuestionPreparer, SearchSpace, TripleWalk
from polyad.retrieval.question import QuestionLinker
from tests.retrieval.over import Over

Spec = Mapping[str, Sequence[tuple[str, Sequence[str]]]]
"""Each passage by its title (which is also its document's id): the words of each hyperedge, and its members."""

SnapshotOf = Callable[[Spec], Snapshot]

EMBEDDER = HashingEmbedder(32)

CHAIN: Spec = {
    "Bell": [("the bell was cast by", ["bell", "moreau"]), ("the bell weighs", ["bell", "ton"])],
    "Moreau": [("she was born in", ["moreau", "aldby"])],
    "Aldby": [("walnuts grow on the", ["aldby", "isk"])],
    "Otter": [("otters eat", ["otter", "fish"])],
}

CAST, WEIGHS, BORN, GROW = range(4)
"""Rows of these hyperedges."""


@pytest.fixture
def snapshot_of(build_small_snapshot: Callable[[Spec, Embedder], Snapshot]) -> SnapshotOf:
    return lambda spec: build_small_snapshot(spec, EMBEDDER)


def scorer(*, bias: float = -1.0, closeness: float = 10.0, signal: str = "") -> TripleScorer:
    """One that says sigmoid(closeness * cosine of question and hyperedge + bias), or reads one signal instead."""
    names = SIGNAL_NAMES if signal else ()
    recipe = Recipe(embedder=EMBEDDER.name, dimension=EMBEDDER.dimension, rounds=1, signals=names)
    hidden = np.zeros((1, recipe.width), dtype=np.float32)
    place = recipe.width - len(names) + names.index(signal) if signal else recipe.width - 2
    hidden[0, place] = 1
    return TripleScorer(
        recipe,
        hidden,
        np.zeros(1, dtype=np.float32),
        np.array([closeness], dtype=np.float32),
        np.array([bias], dtype=np.float32),
    )


def retriever(
    snapshot: Snapshot, weights: TripleScorer | None = None, settings: HyperRetrieverSettings | None = None
) -> Over:
    settings = settings or HyperRetrieverSettings(reductions=0, depth=3)
    made = HyperRetriever(
        EMBEDDER, QuestionLinker(RuleMentionExtractor()), settings, weights or scorer(bias=1, closeness=0)
    )
    return Over(snapshot, made)


def titles(evidence: Evidence) -> list[str]:
    return [hit.passage.title for hit in evidence.passages]


def reached(evidence: Evidence) -> dict[str, tuple[str, ...]]:
    """Each hyperedge of the trace: the hop it was met at and the entity it was met from."""
    return {step.hyperedge_id: (step.reached, *step.via) for step in evidence.trace}


def test_plausible_tails_are_followed_hop_by_hop(snapshot_of: SnapshotOf) -> None:
    evidence = retriever(snapshot_of(CHAIN)).retrieve("What about the Bell?", 4)
    assert reached(evidence) == {
        "Bell#0000/000": ("hop 1", "Bell"),
        "Bell#0000/001": ("hop 1", "Bell"),
        "Moreau#0000/000": ("hop 2", "Moreau"),
        "Aldby#0000/000": ("hop 3", "Aldby"),
    }
    assert titles(evidence)[3] == "Otter"
    assert evidence.passages[3].reason == "similar to the question, not reached"
    assert next(hit.reason for hit in evidence.passages if hit.passage.title == "Bell") == "2 plausible hyperedges"


def test_the_walk_ends_at_its_depth(snapshot_of: SnapshotOf) -> None:
    settings = HyperRetrieverSettings(reductions=0, depth=2)
    evidence = retriever(snapshot_of(CHAIN), settings=settings).retrieve("What about the Bell?", 4)
    assert set(reached(evidence)) == {"Bell#0000/000", "Bell#0000/001", "Moreau#0000/000"}


def test_triples_that_are_not_plausible_are_neither_kept_nor_followed(snapshot_of: SnapshotOf) -> None:
    evidence = retriever(snapshot_of(CHAIN), scorer(bias=-1, closeness=0)).retrieve("What about the Bell?", 4)
    assert not evidence.trace
    assert not evidence.hyperedges
    assert {hit.reason for hit in evidence.passages} == {"similar to the question, not reached"}


def test_only_the_plausible_branch_is_followed(snapshot_of: SnapshotOf) -> None:
    spec: Spec = {
        "Bell": [("cast by", ["bell", "moreau"]), ("hangs in", ["bell", "tower"])],
        "Moreau": [("cast by", ["moreau", "aldby"])],
        "Tower": [("cast by", ["tower", "granite"])],
    }
    weights = scorer(bias=-4.5, closeness=10)
    evidence = retriever(snapshot_of(spec), weights).retrieve("bell cast by moreau", 3)
    assert "Tower#0000/000" not in reached(evidence)
    assert reached(evidence)["Moreau#0000/000"] == ("hop 1", "Moreau")


def test_a_passage_counts_by_the_mean_of_its_best_hyperedges_and_its_similarity(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    weights = scorer(bias=-1, closeness=10)
    settings = HyperRetrieverSettings(dense_weight=0.25)
    evidence = retriever(snapshot, weights, settings).retrieve("Bell", 4)
    question = EMBEDDER.encode(["Bell"], "query")[0]
    edges = np.array([CAST, WEIGHS])
    plausibilities = 1 / (1 + np.exp(1 - 10 * np.maximum(0, snapshot.vectors("hyperedge", edges) @ question)))
    (passage,) = snapshot.vectors("passage", snapshot.graph.passages(edges[:1]))
    expected = 0.75 * plausibilities.mean() + 0.25 * float(passage @ question)
    score = next(hit.score for hit in evidence.passages if hit.passage.title == "Bell")
    assert score == pytest.approx(expected, abs=1e-5)


def test_hyperedges_come_by_plausibility_then_by_their_connections_then_by_id(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    by_triples_alone = HyperRetrieverSettings(reductions=0, depth=3, path_weight=0)
    equal = retriever(snapshot, settings=by_triples_alone).retrieve("What about the Bell?", 4)
    # CAST and BORN share members with two others each, GROW and WEIGHS with one.
    assert [hit.hyperedge.id for hit in equal.hyperedges] == snapshot.ids("hyperedge", [CAST, BORN, GROW, WEIGHS])
    assert [step.hyperedge_id for step in equal.trace] == [hit.hyperedge.id for hit in equal.hyperedges]
    varied = retriever(snapshot, scorer(bias=0)).retrieve("Bell, walnuts grow on Aldby, Isk", 4)
    assert varied.hyperedges[0].hyperedge.id == snapshot.ids("hyperedge", [GROW])[0]
    scores = [hit.score for hit in varied.hyperedges]
    assert scores == sorted(scores, reverse=True)


def test_hyperedges_of_passages_that_are_not_among_the_best_are_there_too(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    evidence = retriever(snapshot).retrieve("What about the Bell?", 1)
    assert titles(evidence) == ["Bell"]
    assert [hit.hyperedge.id for hit in evidence.hyperedges] == snapshot.ids("hyperedge", [CAST, WEIGHS, BORN, GROW])
    assert [step.hyperedge_id for step in evidence.trace] == [hit.hyperedge.id for hit in evidence.hyperedges]


def test_hyperedges_of_other_passages_are_limited_to_the_best_connected(
    snapshot_of: SnapshotOf,
) -> None:
    lonely: Spec = {f"A{number:02}": [("leaf", ["bell", f"leaf{number:02}"])] for number in range(20)}
    joined: Spec = {f"B{number:02}": [("oak", ["bell", "oak", f"twig{number:02}"])] for number in range(20)}
    items: Spec = {"Own": [("bell bell bell", ["bell", f"ton{number}"]) for number in range(5)]}
    beyond: Spec = {"Oak": [("grows from", ["oak", "acorn"])]}
    evidence = retriever(snapshot_of({**lonely, **joined, **items, **beyond})).retrieve("bell", 1)
    assert titles(evidence) == ["Own"]
    # Those that join the oak are connected to one more; its own hyperedge is connected to these alone.
    assert [hit.hyperedge.passage_id[0] for hit in evidence.hyperedges] == [*"B" * 20, *"A" * 10, *"O" * 3]


def test_entities_come_with_the_plausibility_of_what_leads_to_them(snapshot_of: SnapshotOf) -> None:
    evidence = retriever(snapshot_of(CHAIN)).retrieve("What about the Bell?", 4)
    scores = {hit.entity.key: hit.score for hit in evidence.entities}
    each = 1 / (1 + np.exp(-1))
    second = each * each**0.5
    expected = {"bell": 1, "moreau": each, "ton": each, "aldby": second, "isk": each * second**0.5}
    assert scores == pytest.approx(expected)


def test_the_score_of_a_triple_depends_on_its_path(snapshot_of: SnapshotOf) -> None:
    spec: Spec = {
        "Bell": [("hangs in", ["bell", "tower"]), ("cast by", ["bell", "moreau"])],
        "Moreau": [("born in", ["moreau", "aldby"])],
        "Tower": [("made of", ["tower", "oak"])],
    }
    snapshot = snapshot_of(spec)

    def scores(path_weight: float) -> dict[str, float]:
        settings = HyperRetrieverSettings(reductions=0, threshold=0.01, path_weight=path_weight)
        hyperedges = retriever(snapshot, scorer(), settings).retrieve("who had the bell cast by", 3).hyperedges
        return {hit.hyperedge.id: hit.score for hit in hyperedges}

    alone, halfway, whole = scores(0), scores(0.5), scores(1)
    for first, second in (("Bell#0000/000", "Tower#0000/000"), ("Bell#0000/001", "Moreau#0000/000")):
        assert alone[first] == halfway[first] == whole[first]
        assert halfway[second] == pytest.approx(alone[second] * alone[first] ** 0.5)
        assert whole[second] == pytest.approx(alone[second] * alone[first])
    assert alone["Bell#0000/000"] != alone["Bell#0000/001"]


def test_a_question_that_names_nothing_starts_from_the_nearest_hyperedges(snapshot_of: SnapshotOf) -> None:
    evidence = retriever(snapshot_of(CHAIN)).retrieve("who eat walnuts", 4)
    assert "Aldby#0000/000" in reached(evidence)
    assert reached(evidence)["Aldby#0000/000"][0] == "hop 1"


def test_the_same_question_gets_the_same_evidence(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    first = retriever(snapshot, scorer()).retrieve("Bell and Otter", 4)
    assert retriever(snapshot, scorer()).retrieve("Bell and Otter", 4) == first
    assert all(one.score >= other.score for one, other in pairwise(first.passages))


def test_equal_scores_are_sorted_by_id_whatever_was_indexed_first(snapshot_of: SnapshotOf) -> None:
    evidence = [
        retriever(snapshot_of(spec)).retrieve("Otter and Bell", 4)
        for spec in (CHAIN, {title: CHAIN[title] for title in reversed(list(CHAIN))})
    ]
    keys = [[hit.entity.key for hit in each.entities] for each in evidence]
    assert keys[0] == keys[1]
    assert keys[0][:2] == ["bell", "otter"]
    assert [step.hyperedge_id for step in evidence[0].trace] == [step.hyperedge_id for step in evidence[1].trace]


def test_an_empty_index_gives_no_evidence(snapshot_of: SnapshotOf) -> None:
    evidence = retriever(snapshot_of({})).retrieve("Bell?", 3)
    assert evidence == Evidence("Bell?", "hyperretriever")


def test_an_index_without_hyperedges_is_searched_by_similarity(snapshot_of: SnapshotOf) -> None:
    evidence = retriever(snapshot_of({"Bell": [], "Otter": []})).retrieve("Bell", 2)
    assert sorted(titles(evidence)) == ["Bell", "Otter"]
    assert not evidence.trace


def test_the_signals_of_the_hyperedges_passage_can_decide(snapshot_of: SnapshotOf) -> None:
    settings = HyperRetrieverSettings(reductions=0, signals=True, dense_weight=0)
    weights = scorer(bias=-1, closeness=10, signal="about a name in the question")
    evidence = retriever(snapshot_of(CHAIN), weights, settings).retrieve("Bell", 4)
    assert set(reached(evidence)) == {"Bell#0000/000", "Bell#0000/001"}, "the others are about none of its entities"


def test_a_scorer_of_another_embedder_or_variant_is_refused(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    other = replace(scorer(), recipe=replace(scorer().recipe, embedder="other"))
    with pytest.raises(ConfigurationError, match="'other'"):
        retriever(snapshot, other)
    with pytest.raises(ConfigurationError, match="signals = false"):
        retriever(snapshot, scorer(), HyperRetrieverSettings(signals=True))
    with pytest.raises(ConfigurationError, match="polyad bench train hyperretriever"):
        HyperRetriever(EMBEDDER, QuestionLinker(RuleMentionExtractor()), HyperRetrieverSettings(), None)


# The walk


def walk_of(
    snapshot: Snapshot, question: str, *, limit: int = 1000, binary: bool = False, recipe: Recipe | None = None
) -> TripleWalk:
    space = SearchSpace.from_snapshot(snapshot, binary=binary)
    reader = QuestionPreparer(snapshot, EMBEDDER, QuestionLinker(RuleMentionExtractor()), signals=())
    return TripleWalk(space, recipe or scorer().recipe, reader.prepare(question), limit)


def entity_vectors(snapshot: Snapshot) -> FloatArray:
    return snapshot.vectors("entity", np.arange(snapshot.row_count("entity")))


def test_a_followed_hyperedge_is_not_met_again(snapshot_of: SnapshotOf) -> None:
    walk = walk_of(snapshot_of(CHAIN), "Bell")
    first, _ = walk.enumerate_hop()
    assert first.edges.tolist() == [CAST, WEIGHS]
    walk.follow(first, np.array([0]))
    second, _ = walk.enumerate_hop()
    assert second.edges.tolist() == [BORN], "not CAST, which led here"
    walk.follow(second, np.array([0]))
    third, _ = walk.enumerate_hop()
    assert third.edges.tolist() == [GROW]


def test_a_walk_takes_the_vectors_of_what_it_reaches_alone(
    snapshot_of: SnapshotOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = snapshot_of(CHAIN)
    selection: dict[str, set[int]] = {"passage": set(), "entity": set(), "hyperedge": set()}
    vectors = type(snapshot).vectors

    def watched(other_snapshot: Snapshot, kind: Kind, rows: IntArray) -> FloatArray:
        selection[kind].update(rows.tolist())
        return vectors(other_snapshot, kind, rows)

    monkeypatch.setattr(type(snapshot), "vectors", watched)
    assert retriever(snapshot).retrieve("What about the Bell?", 4).hyperedges
    assert set(snapshot.ids("entity", sorted(selection["entity"]))) == {"bell", "moreau", "ton", "aldby", "isk"}
    assert selection["hyperedge"] == {CAST, WEIGHS, BORN, GROW}


def test_an_earlier_head_is_not_gone_on_from_again(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of({"Bell": [("", ["bell", "moreau"]), ("", ["bell", "ton"])], "Moreau": [("", ["aldby"])]})
    bell, moreau = (snapshot.find_rows("entity", [key])[key] for key in ("bell", "moreau"))
    walk = walk_of(snapshot, "Bell and Moreau")
    first, _ = walk.enumerate_hop()
    assert set(first.heads.tolist()) == {bell, moreau}
    walk.follow(first, np.flatnonzero(first.tails == bell))
    second, _ = walk.enumerate_hop()
    assert len(second) == 0, "not to the ton, which was met already"


def test_a_hub_costs_its_nearest_hyperedges_only(snapshot_of: SnapshotOf) -> None:
    spec: Spec = {
        "Hub": [(f"word{number} word{number}", ["hub", f"leaf{number}", f"twig{number}"]) for number in range(9)]
    }
    snapshot = snapshot_of(spec)
    question = "hub word4 leaf4 twig4"
    nearest = int(snapshot.nearest("hyperedge", EMBEDDER.encode([question], "query"), 1)[0][0][0])
    space = SearchSpace.from_snapshot(snapshot, binary=False)
    topics = np.array([snapshot.find_rows("entity", ["hub"])["hub"]])
    reader = QuestionPreparer(snapshot, EMBEDDER, QuestionLinker(RuleMentionExtractor()), signals=())
    for limit, edges in ((1, 1), (2, 1), (5, 2), (1000, 9)):
        walk = TripleWalk(space, scorer().recipe, replace(reader.prepare(question), topics=topics), limit)
        triples, _ = walk.enumerate_hop()
        assert len(set(triples.edges.tolist())) == edges
        assert nearest in triples.edges


def crowd(size: int) -> Spec:
    """One fact of very many arguments, and a small one."""
    return {"Crowd": [("they all signed", [f"name{number:04}" for number in range(size)])], "Otter": CHAIN["Otter"]}


@pytest.mark.parametrize(
    ("limit", "triples", "heads"), [(1, 1, 1), (38, 38, 1), (39, 39, 1), (80, 78, 2), (200, 195, 5)]
)
def test_a_fact_of_very_many_arguments_costs_its_nearest_entities_only(
    snapshot_of: SnapshotOf, limit: int, triples: int, heads: int
) -> None:
    snapshot = snapshot_of(crowd(40))
    names = sorted(set(crowd(40)["Crowd"][0][1]))
    walk = walk_of(snapshot, " and ".join(names), limit=limit)
    actual, extras = walk.enumerate_hop()
    assert len(actual) == len(extras) == triples
    closeness = entity_vectors(snapshot) @ EMBEDDER.encode([" and ".join(names)], "query")[0]
    selection = sorted(set(actual.heads.tolist()))
    others = [row for name in names if (row := snapshot.find_rows("entity", [name])[name]) not in selection]
    assert len(selection) == heads
    assert min(closeness[selection]) >= max(closeness[others])


def test_a_large_fact_keeps_the_tails_nearest_to_the_question(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(crowd(40))
    walk = walk_of(snapshot, "name0003", limit=10)
    triples, _ = walk.enumerate_hop()
    closeness = compute_cosines(entity_vectors(snapshot), EMBEDDER.encode(["name0003"], "query")[0])
    keys = snapshot.ids("entity", range(snapshot.row_count("entity")))
    names = [row for row, name in enumerate(keys) if name.startswith("name")]
    others = set(names) - {*triples.tails.tolist(), snapshot.find_rows("entity", ["name0003"])["name0003"]}
    assert len(set(triples.tails.tolist())) == 10
    assert min(closeness[triples.tails]) >= max(closeness[sorted(others)])


def test_a_question_that_names_nothing_starts_from_so_many_entities_at_most(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(crowd(450))
    reader = QuestionPreparer(snapshot, EMBEDDER, QuestionLinker(RuleMentionExtractor()), signals=())
    assert len(reader.prepare("what did they all have in common").topics) == 200


@pytest.mark.parametrize("starts", ["topics", "heads"])
def test_distances_start_where_the_recipe_says(snapshot_of: SnapshotOf, starts: Literal["topics", "heads"]) -> None:
    walk = walk_of(snapshot_of(CHAIN), "Bell", recipe=replace(scorer().recipe, starts=starts))
    first, _ = walk.enumerate_hop()
    walk.follow(first, np.array([0]))
    _, extras = walk.enumerate_hop()
    assert extras[0, 0] == (starts == "heads"), "the head, Moreau, is none of the question's entities"


def test_extras_are_distances_over_all_that_was_met_and_then_cosines(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    walk = walk_of(snapshot, "Bell")
    first, _ = walk.enumerate_hop()
    walk.follow(first, np.arange(len(first)))
    second, extras = walk.enumerate_hop()
    topic = np.array([snapshot.find_rows("entity", ["bell"])["bell"]])
    met = build_triples(snapshot.graph.members, np.array([CAST, WEIGHS]), topic)
    both = Triples(
        np.concatenate([met.heads, second.heads]),
        np.concatenate([met.edges, second.edges]),
        np.concatenate([met.tails, second.tails]),
    )
    rows, encodings = compute_directional_distances(both, topic, 1)
    question = EMBEDDER.encode(["Bell"], "query")[0]
    head, tail = second.heads[0], second.tails[0]
    expected = [
        *encodings[rows == head][0],
        *encodings[rows == tail][0],
        entity_vectors(snapshot)[head] @ question,
        snapshot.vectors("hyperedge", np.array([BORN]))[0] @ question,
        entity_vectors(snapshot)[tail] @ question,
    ]
    np.testing.assert_allclose(extras[0], expected, atol=1e-6)


def test_pairs_lead_where_hyperedges_lead_and_point_back_to_them(snapshot_of: SnapshotOf) -> None:
    spec: Spec = {"Bell": [("cast by", ["bell", "moreau", "corven"])], "Corven": [("is in", ["corven", "isk"])]}
    snapshot = snapshot_of(spec)
    whole, binary = (SearchSpace.from_snapshot(snapshot, binary=binary) for binary in (False, True))
    assert (whole.build_hypergraph().edge_count, binary.build_hypergraph().edge_count) == (2, 4)
    assert binary.density > whole.density
    evidence = retriever(snapshot, settings=HyperRetrieverSettings(reductions=0, binary=True)).retrieve("Bell", 2)
    assert reached(evidence) == {"Bell#0000/000": ("hop 1", "Bell"), "Corven#0000/000": ("hop 2", "Corven")}


# Thresholds

EDGES = np.array([0, 0, 1, 2, 3, 3])
SCORES = np.array([0.9, 0.8, 0.55, 0.35, 0.15, 0.05], dtype=np.float32)


@pytest.mark.parametrize(("minimum", "expected"), [(1, 0.5), (2, 0.5), (3, 0.3), (4, 0.1), (50, 0.0)])
def test_the_threshold_is_lowered_until_enough_hyperedges_reach_it(minimum: int, expected: float) -> None:
    settings = HyperRetrieverSettings(minimum_hyperedges=minimum)
    assert lower_threshold(EDGES, SCORES, settings) == pytest.approx(expected)


@pytest.mark.parametrize(("minimum", "expected"), [(3, 0.5), (4, 0.3), (5, 0.1), (6, 0.0), (50, 0.0)])
def test_the_formula_counts_triples_in_place_of_hyperedges(minimum: int, expected: float) -> None:
    settings = HyperRetrieverSettings(minimum_hyperedges=minimum, minimum_counts="triples")
    assert lower_threshold(EDGES, SCORES, settings) == pytest.approx(expected)


@pytest.mark.parametrize("counted", ["hyperedges", "triples"])
def test_over_a_question_triples_suffice_where_hyperedges_do_not(
    snapshot_of: SnapshotOf, counted: Literal["hyperedges", "triples"]
) -> None:
    assert build_preset_settings("hyperretriever").hyperretriever.minimum_counts == "triples"
    snapshot = snapshot_of({"P0": [("what joins what", ["p0", "p1", "p2", "p3"]), ("otters eat", ["p0", "fish"])]})
    settings = HyperRetrieverSettings(
        depth=1, minimum_over="question", minimum_hyperedges=2, minimum_counts=counted, threshold=0.9, decay=0.2
    )
    evidence = retriever(snapshot, scorer(bias=-2), settings).retrieve("What joins what, P0?", 1)
    other = {"P0#0000/001"} if counted == "hyperedges" else set()
    assert set(reached(evidence)) == {"P0#0000/000"} | other


def test_the_threshold_is_lowered_at_most_so_often() -> None:
    settings = HyperRetrieverSettings(reductions=2)
    assert lower_threshold(EDGES, SCORES, settings) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("density", "remaining", "followed"),
    [(2.35, [0, 1, 2, 3], [0, 1, 2]), (2.36, [0, 1, 2, 3], [0, 1, 2, 3]), (5.1, [0, 1], [0, 1])],
)
def test_density_decides_what_a_lowered_threshold_lets_in(
    density: float, remaining: list[int], followed: list[int]
) -> None:
    settings = HyperRetrieverSettings(minimum_hyperedges=3, max_triples=2)
    numbers = select_triples(EDGES, SCORES, density, settings)
    assert [positions.tolist() for positions in numbers] == [remaining, followed]


def test_without_a_depth_the_search_goes_on_while_triples_are_plausible(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of({f"P{n}": [("leads to", [f"p{n}", f"p{n + 1}"])] for n in range(8)})
    for settings in (
        HyperRetrieverSettings(depth=0, reductions=0),
        HyperRetrieverSettings(depth=0, minimum_over="question"),
    ):
        evidence = retriever(snapshot, settings=settings).retrieve("What of P0?", 8)
        assert {step.reached for step in evidence.trace} == {f"hop {n}" for n in range(1, 9)}


@pytest.mark.parametrize(
    ("minimum", "low", "remaining"),
    [
        (1, 0.0, {"a": 1}),
        (2, 0.0, {"a": 1, "b": 1, "c": 2}),
        (2, 9.0, {"a": 1, "b": 1}),
        (4, 0.0, {"a": 1, "b": 1, "c": 2, "d": 2}),
    ],
)
def test_over_a_question_the_threshold_is_lowered_once_nothing_new_reaches_it(
    minimum: int, low: float, remaining: dict[str, int]
) -> None:
    """From x plausibly by a to y, less so by b to z; from z by c to u, and by d, still less, to v."""
    plausible = {"a": 0.9, "b": 0.35, "c": 0.45, "d": 0.15}
    members = [["x", "y"], ["x", "z"], ["z", "u"], ["z", "v"]]
    rows = {name: row for row, name in enumerate("uvxyz")}
    graph = Hypergraph.from_incidences(
        np.array([rows[name] for member in members for name in member]), np.repeat(np.arange(4), 2), 5, 4
    )

    class Walked:
        """What the search asks a space and a walk."""

        density = 1.0

        def __init__(self) -> None:
            self.frontier, self.were_heads, self.were_followed = [rows["x"]], set[int](), set[int]()
            self.topics, self.space = np.array([rows["x"]]), self

        def to_snapshot_rows(self, edges: IntArray) -> IntArray:
            return edges

        def enumerate_hop(self) -> tuple[Triples, FloatArray]:
            heads = np.array(self.frontier, dtype=np.int64)
            edges = set(graph.memberships.get_neighbours(heads)[0].tolist()) - self.were_followed
            self.were_heads |= set(self.frontier)
            actual = build_triples(graph.members.get_neighbours, np.array(sorted(edges), dtype=np.int64), heads)
            return actual, np.zeros((len(actual), 0), dtype=np.float32)

        def follow(self, triples: Triples, selection: IntArray) -> None:
            self.were_followed |= set(triples.edges[selection].tolist())
            self.frontier = sorted(set(triples.tails[selection].tolist()) - self.were_heads)

    walked = Walked()
    settings = HyperRetrieverSettings(
        depth=0, minimum_over="question", minimum_hyperedges=minimum, low_density=low, high_density=9.0
    )
    accepted_triples = search_triples(
        walked,  # type: ignore[arg-type]
        lambda triples, _: np.array([plausible["abcd"[edge]] for edge in triples.edges], dtype=np.float32),
        settings,
    )
    assert {
        "abcd"[edge]: hop
        for edge, hop in zip(accepted_triples.edges.tolist(), accepted_triples.hops.tolist(), strict=True)
    } == remaining


def test_a_fixed_threshold_stays_where_it_is() -> None:
    remaining, followed = select_triples(EDGES, SCORES, 1.0, HyperRetrieverSettings(reductions=0))
    assert remaining.tolist() == followed.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold", 0.0),
        ("decay", -0.1),
        ("reductions", -1),
        ("minimum_hyperedges", 0),
        ("high_density", 2.0),
        ("depth", -1),
        ("triples_per_hop", 0),
        ("dense_weight", 1.5),
        ("path_weight", -0.5),
    ],
)
def test_a_setting_out_of_range_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is {value!r}"):
        HyperRetrieverSettings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("rounds", -1), ("distance_starts", "tails"), ("positives", "all")])
def test_a_setting_of_training_out_of_range_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is {value!r}"):
        HyperRetrieverTraining(**{name: value})  # type: ignore[arg-type]
