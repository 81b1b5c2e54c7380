"""What HyperRetriever's scorer is trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from polyad.adapters.hashing import HashingEmbedder
from polyad.config import HyperRetrieverSettings
from polyad.evaluation.datasets import Query
from polyad.evaluation.triple_examples import (
    NEGATIVES,
    POSITIVES,
    TripleExamples,
    collect,
    distances,
    recipe_of,
)
from polyad.hypergraph.incidence import Hypergraph
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.protocols import Embedder
from polyad.retrieval.question import QuestionLinker
from polyad.retrieval.snapshot import Snapshot

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
    small_snapshot_of: Callable[[Mapping[str, Sequence[tuple[str, Sequence[str]]]], Embedder], Snapshot],
) -> SnapshotOf:
    def make(spec: Spec) -> Snapshot:
        without_words = {title: [("", members) for members in units] for title, units in spec.items()}
        return small_snapshot_of(without_words, EMBEDDER)

    return make


def collected(
    snapshot: Snapshot, *queries: Query, positives: str = "answers", seed: int = 0, **changes: object
) -> TripleExamples:
    settings = replace(HyperRetrieverSettings(positives="answers"), positives=positives, **changes)  # type: ignore[arg-type]
    linker = QuestionLinker(snapshot, RuleMentionExtractor())
    return collect(snapshot, EMBEDDER, linker, queries, settings, seed)


def facts(snapshot: Snapshot, examples: TripleExamples, *, right: bool) -> list[Fact]:
    names = [snapshot.entity_key(row) for row in range(snapshot.graph.node_count)]
    return [
        (names[head], frozenset(names[row] for row in snapshot.graph.members[edge].tolist()), names[tail])
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
    query = Query("q", "Who made the Bell?", frozenset({"Bell", "Moreau"}), ("Aldby",))
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


def test_where_gold_passages_do_not_connect_the_shortest_path_of_all_is_right(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    examples = collected(snapshot, Query("q", "Who made the Bell?", frozenset({"Moreau"}), ("Aldby",)))
    assert facts(snapshot, examples, right=True) == [("bell", SHORT, "aldby")]


@pytest.mark.parametrize("answers", [(), ("yes",), ("Bell",)])
def test_without_an_answer_to_walk_to_the_subjects_of_gold_passages_serve(
    snapshot_of: SnapshotOf, answers: tuple[str, ...]
) -> None:
    snapshot = snapshot_of(CHAIN)
    examples = collected(snapshot, Query("q", "Who made the Bell?", frozenset({"Bell", "Moreau"}), answers))
    assert facts(snapshot, examples, right=True) == [("bell", CAST, "moreau")]


def test_gold_passages_without_a_subject_have_all_their_entities_serve(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    examples = collected(snapshot, Query("q", "What of the Bell?", frozenset({"Other"}), ("no",)))
    assert facts(snapshot, examples, right=True) == [("bell", SHORT, "aldby")]


def test_as_evidence_every_triple_of_a_gold_passage_is_right(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    query = Query("q", "Who made the Bell?", frozenset({"Bell", "Moreau"}), ("Aldby",))
    examples = collected(snapshot, query, positives="evidence")
    right = facts(snapshot, examples, right=True)
    assert {edge for _, edge, _ in right} == {CAST, WEIGHS, BORN, BRONZE}
    assert {edge for _, edge, _ in facts(snapshot, examples, right=False)} == {SHORT}
    assert ("moreau", CAST, "bell") not in right, "a followed hyperedge is not met again"


def test_a_question_without_anything_right_gives_negatives_of_the_first_hop_only(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of({**CHAIN, "Far": [["far", "away"]]})
    examples = collected(snapshot, Query("q", "What of the Bell?", frozenset({"Far"}), ("Away",)))
    assert not examples.labels.any()
    assert {head for head, _, _ in facts(snapshot, examples, right=False)} == {"bell"}


def test_each_hop_gives_so_many_triples_at_most_by_the_seed(snapshot_of: SnapshotOf) -> None:
    spec: Spec = {
        "Gold": [["hub", *(f"right{number}" for number in range(60))]],
        "Rest": [["hub", *(f"wrong{number}" for number in range(200))]],
    }
    snapshot = snapshot_of(spec)
    query = Query("q", "What of the Hub?", frozenset({"Gold"}))
    first, again, other = (collected(snapshot, query, positives="evidence", depth=1, seed=seed) for seed in (0, 0, 1))
    assert (first.labels.sum(), (~first.labels).sum()) == (POSITIVES, NEGATIVES)
    np.testing.assert_array_equal(first.tails, again.tails)
    assert set(first.tails.tolist()) != set(other.tails.tolist())


def test_features_are_question_head_hyperedge_tail_and_extras(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    examples = collected(snapshot, Query("q", "What of the Bell?", frozenset({"Bell"}), ("Ton",)))
    row = facts(snapshot, examples, right=True).index(("bell", WEIGHS, "ton"))
    place = np.flatnonzero(examples.labels)[row]
    entities = snapshot.entity_vectors(EMBEDDER)
    expected = np.hstack(
        [
            EMBEDDER.encode(["What of the Bell?"], "query")[0],
            entities[snapshot.entity_rows["bell"]],
            EMBEDDER.encode(["bell ton"], "passage")[0],
            entities[snapshot.entity_rows["ton"]],
            examples.extras[place],
        ]
    )
    np.testing.assert_allclose(examples.features(np.array([place]))[0], expected, atol=1e-6)
    assert examples.recipe == recipe_of(HyperRetrieverSettings(), EMBEDDER)


def test_the_signals_and_the_pairs_can_be_collected_too(snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of(CHAIN)
    query = Query("q", "Who made the Bell?", frozenset({"Bell", "Moreau"}), ("Aldby",))
    plain, varied = collected(snapshot, query), collected(snapshot, query, signals=True, binary=True)
    assert facts(snapshot, varied, right=True) == facts(snapshot, plain, right=True)
    assert varied.extras.shape[1] == plain.extras.shape[1] + len(varied.recipe.signals)
    assert np.any(varied.extras[:, plain.extras.shape[1] :] > 0)


def test_distances_count_the_allowed_hyperedges_on_the_way() -> None:
    graph = Hypergraph.from_incidences(np.array([0, 1, 1, 2, 2, 3, 0, 3]), np.array([0, 0, 1, 1, 2, 2, 3, 3]), 5, 4)
    every, some = np.ones(4, dtype=bool), np.array([True, True, True, False])
    assert distances(graph, np.array([0]), every, 3).tolist() == [0, 1, 2, 1, -1]
    assert distances(graph, np.array([0]), some, 3).tolist() == [0, 1, 2, 3, -1]
    assert distances(graph, np.array([0]), some, 2).tolist() == [0, 1, 2, -1, -1]
    assert distances(graph, np.array([], dtype=np.int64), every, 2).tolist() == [-1] * 5


def test_no_questions_give_no_examples(snapshot_of: SnapshotOf) -> None:
    assert len(collected(snapshot_of(CHAIN))) == 0
