"""What HyperRetriever's scorer is trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.hypergraph.incidence import Hypergraph
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings, HyperRetrieverTraining
from polyad_bench.datasets.beir import Question
from polyad_bench.training.triple_examples import (
    NEGATIVES,
    POSITIVES,
    TripleExamples,
    build_recipe,
    collect_triples,
    compute_distances,
)

Spec = Mapping[str, Sequence[Sequence[str]]]
"""Each passage by its title (which is also its document's id): the members of each of its hyperedges."""

SnapshotOf = Callable[[Spec], Snapshot]

EMBEDDER = HashingEmbedder(16)

CHAIN: Spec = {
    "Bell": [["bell", "moreau", "corven"], ["bell", "ton"]],
    "Moreau": [["moreau", "aldby"], ["moreau", "bronze"]],
    "Other": [["bell", "aldby"]],
}

Fact = tuple[str, frozenset[str], str]
"""A triple as names: head, all members of its hyperedge, tail."""


@pytest.fixture
def snapshot_of(
    build_small_snapshot: Callable[[Mapping[str, Sequence[tuple[str, Sequence[str]]]], Embedder], Snapshot],
) -> SnapshotOf:
    def make(spec: Spec) -> Snapshot:
        without_words = {title: [("", members) for members in units] for title, units in spec.items()}
        return build_small_snapshot(without_words, EMBEDDER)

    return make


def collected(
    snapshot: Snapshot,
    *queries: Question,
    positives: Literal["evidence", "answers"] = "answers",
    negatives: Literal["hop", "equal"] = "hop",
    seed: int = 0,
    **changes: Any,
) -> TripleExamples:
    settings = HyperRetrieverSettings(**changes)
    learning = HyperRetrieverTraining(positives=positives, negatives=negatives, seed=seed)
    return collect_triples(snapshot, EMBEDDER, RuleMentionExtractor(), queries, settings, training_settings=learning)


def facts(snapshot: Snapshot, examples: TripleExamples, *, right: bool) -> list[Fact]:
    names = snapshot.ids("entity", range(snapshot.row_count("entity")))
    return [
        (names[head], frozenset(snapshot.ids("entity", snapshot.graph.members(np.array([edge]))[0])), names[tail])
        for head, edge, tail, label in zip(
            examples.heads.tolist(), examples.edges.tolist(), examples.tails.tolist(), examples.labels, strict=True
        )
        if label == right
    ]


CAST, WEIGHS = frozenset({"bell", "moreau", "corven"}), frozenset({"bell", "ton"})
BORN, SHORT = frozenset({"moreau", "aldby"}), frozenset({"bell", "aldby"})
BRONZE = frozenset({"moreau", "bronze"})


def test_the_path_to_the_answer_inside_gold_passages_is_right_and_all_else_of_its_heads_wrong(
    snapshot_of: SnapshotOf,
) -> None:
    snapshot = snapshot_of(CHAIN)
    query = Question("q", "Who made the Bell?", frozenset({"Bell", "Moreau"}), ("Aldby",))
    examples = collected(snapshot, query, depth=3)
    assert facts(snapshot, examples, right=True) == [("bell", CAST, "moreau"), ("moreau", BORN, "aldby")]
    wrong = {
        ("bell", CAST, "corven"),
        ("bell", WEIGHS, "ton"),
        ("bell", SHORT, "aldby"),
        ("moreau", BRONZE, "bronze"),
        ("aldby", SHORT, "bell"),
    }
    assert set(facts(snapshot, examples, right=False)) == wrong, "of no head but those on the path; none goes on"


def test_without_connected_gold_passages_the_shortest_path_is_positive(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    examples = collected(snapshot, Question("q", "Who made the Bell?", frozenset({"Moreau"}), ("Aldby",)))
    assert facts(snapshot, examples, right=True) == [("bell", SHORT, "aldby")]


@pytest.mark.parametrize("answers", [(), ("yes",), ("Bell",)])
def test_without_an_answer_to_walk_to_the_subjects_of_gold_passages_serve(
    snapshot_of: SnapshotOf, answers: tuple[str, ...]
) -> None:
    snapshot = snapshot_of(CHAIN)
    examples = collected(snapshot, Question("q", "Who made the Bell?", frozenset({"Bell", "Moreau"}), answers))
    assert facts(snapshot, examples, right=True) == [("bell", CAST, "moreau")]


def test_gold_passages_without_a_subject_have_all_their_entities_serve(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    examples = collected(snapshot, Question("q", "What of the Bell?", frozenset({"Other"}), ("no",)))
    assert facts(snapshot, examples, right=True) == [("bell", SHORT, "aldby")]


def test_with_evidence_positives_all_triples_of_gold_passages_are_positive(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    query = Question("q", "Who made the Bell?", frozenset({"Bell", "Moreau"}), ("Aldby",))
    examples = collected(snapshot, query, positives="evidence")
    right = facts(snapshot, examples, right=True)
    assert {edge for _, edge, _ in right} == {CAST, WEIGHS, BORN, BRONZE}
    assert {edge for _, edge, _ in facts(snapshot, examples, right=False)} == {SHORT}
    assert ("moreau", CAST, "bell") not in right, "a followed hyperedge is not met again"


def test_evidence_positives_do_not_look_up_subjects(snapshot_of: SnapshotOf, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = snapshot_of(CHAIN)
    calls: list[bool] = []
    graph_type = type(snapshot.graph)
    mentions = graph_type.mentions

    def count(self: Any, *arguments: Any, **options: Any) -> Any:
        calls.append(True)
        return mentions(self, *arguments, **options)

    monkeypatch.setattr(graph_type, "mentions", count)
    query = Question("q", "Who made the Bell?", frozenset({"Bell"}), ("Aldby",))
    collected(snapshot, query, positives="evidence")
    assert not calls
    collected(snapshot, query, positives="answers")
    assert calls, "only answers as positives need target entities"


def test_a_question_without_anything_right_gives_negatives_of_the_first_hop_only(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of({**CHAIN, "Far": [["far", "away"]]})
    examples = collected(snapshot, Question("q", "What of the Bell?", frozenset({"Far"}), ("Away",)))
    assert not examples.labels.any()
    assert {head for head, _, _ in facts(snapshot, examples, right=False)} == {"bell"}


def test_each_hop_gives_so_many_triples_at_most_by_the_seed(snapshot_of: SnapshotOf) -> None:
    spec: Spec = {
        "Gold": [["hub", *(f"right{number}" for number in range(60))]],
        "Rest": [["hub", *(f"wrong{number}" for number in range(200))]],
    }
    snapshot = snapshot_of(spec)
    query = Question("q", "What of the Hub?", frozenset({"Gold"}))
    first, again, other = (collected(snapshot, query, positives="evidence", depth=1, seed=seed) for seed in (0, 0, 1))
    assert (first.labels.sum(), (~first.labels).sum()) == (POSITIVES, NEGATIVES)
    np.testing.assert_array_equal(first.tails, again.tails)
    assert set(first.tails.tolist()) != set(other.tails.tolist())


def test_negatives_may_be_as_many_as_the_positives_of_their_hop(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(
        {"Gold": [["hub", "one", "two"]], "Rest": [["hub", *(f"wrong{number}" for number in range(20))]]}
    )
    query = Question("q", "What of the Hub?", frozenset({"Gold"}))
    triple_examples = collected(snapshot, query, positives="evidence", negatives="equal", depth=1)
    assert (triple_examples.labels.sum(), (~triple_examples.labels).sum()) == (2, 2)


def test_without_a_depth_there_are_as_many_hops_as_have_anything_right(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of({"Gold": [["hub", "one"], ["one", "two"], ["two", "three"]]})
    query = Question("q", "What of the Hub?", frozenset({"Gold"}))
    for depth, expected in ((1, {"one"}), (0, {"one", "two", "three"})):
        examples = collected(snapshot, query, positives="evidence", depth=depth)
        assert expected <= {tail for _, _, tail in facts(snapshot, examples, right=True)}
        assert depth == 0 or "three" not in {tail for _, _, tail in facts(snapshot, examples, right=True)}


def test_features_are_question_head_hyperedge_tail_and_extras(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    examples = collected(snapshot, Question("q", "What of the Bell?", frozenset({"Bell"}), ("Ton",)))
    row = facts(snapshot, examples, right=True).index(("bell", WEIGHS, "ton"))
    place = np.flatnonzero(examples.labels)[row]
    entities = snapshot.vectors("entity", np.arange(snapshot.row_count("entity")))
    expected = np.hstack(
        [
            EMBEDDER.encode(["What of the Bell?"], "query")[0],
            entities[snapshot.find_rows("entity", ["bell"])["bell"]],
            EMBEDDER.encode(["bell ton"], "passage")[0],
            entities[snapshot.find_rows("entity", ["ton"])["ton"]],
            examples.extras[place],
        ]
    )
    np.testing.assert_allclose(examples.get_features(np.array([place]))[0], expected, atol=1e-6)
    assert examples.recipe == build_recipe(HyperRetrieverSettings(), EMBEDDER)


def test_the_signals_and_the_pairs_can_be_collected_too(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    query = Question("q", "Who made the Bell?", frozenset({"Bell", "Moreau"}), ("Aldby",))
    plain, varied = collected(snapshot, query), collected(snapshot, query, signals=True, binary=True)
    assert facts(snapshot, varied, right=True) == facts(snapshot, plain, right=True)
    assert varied.extras.shape[1] == plain.extras.shape[1] + len(varied.recipe.signals)
    assert np.any(varied.extras[:, plain.extras.shape[1] :] > 0)


def test_distances_count_the_allowed_hyperedges_on_the_way() -> None:
    graph = Hypergraph.from_incidences(np.array([0, 1, 1, 2, 2, 3, 0, 3]), np.array([0, 0, 1, 1, 2, 2, 3, 3]), 5, 4)
    every, some = np.ones(4, dtype=bool), np.array([True, True, True, False])
    assert compute_distances(graph, np.array([0]), every, 3).tolist() == [0, 1, 2, 1, -1]
    assert compute_distances(graph, np.array([0]), some, 3).tolist() == [0, 1, 2, 3, -1]
    assert compute_distances(graph, np.array([0]), some, 2).tolist() == [0, 1, 2, -1, -1]
    assert compute_distances(graph, np.array([], dtype=np.int64), every, 2).tolist() == [-1] * 5


def test_no_questions_give_no_examples(snapshot_of: SnapshotOf) -> None:
    assert len(collected(snapshot_of(CHAIN))) == 0
