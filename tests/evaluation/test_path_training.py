"""Training HyperRetriever's scorer, and what it is trained on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from polyad.adapters.hashing import HashingEmbedder
from polyad.adapters.sqlite import SqliteStore
from polyad.config import HyperRetrieverSettings
from polyad.errors import ConfigurationError
from polyad.evaluation.datasets import Query
from polyad.evaluation.triple_examples import (
    NEGATIVES,
    POSITIVES,
    PathExamples,
    collect,
    distances,
    merged,
    recipe_of,
    split,
)
from polyad.evaluation.triple_training import PathTrainingSettings, save, train
from polyad.hypergraph.incidence import Hypergraph
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.model import (
    SUBJECT,
    Document,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Passage,
)
from polyad.retrieval.hyperretriever.scorer import Plausibility, Recipe
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


def indexed(title: str, units: Sequence[Sequence[str]]) -> IndexedDocument:
    texts = [" ".join(members) for members in units]
    passage = Passage(f"{title}#0000", title, title, " ".join(texts), 0, 1)
    edges = []
    for position, (members, text) in enumerate(zip(units, texts, strict=True)):
        id = f"{passage.id}/{position:03}"
        edge = Hyperedge(id, HyperedgeKind.SEMANTIC_UNIT, text, passage.id, 0, 1)
        incidences = tuple(
            Incidence(key, id, key.title(), SUBJECT if key == title.lower() else "") for key in sorted(members)
        )
        edges.append(IndexedHyperedge(edge, incidences, EMBEDDER.encode([text], "passage")[0]))
    vector = EMBEDDER.encode([passage.text], "passage")[0]
    return IndexedDocument(
        Document(title, title, passage.text), "digest", 1, (IndexedPassage(passage, "digest", vector, tuple(edges)),)
    )


@pytest.fixture
def snapshot_of(tmp_path: Path) -> SnapshotOf:
    def make(spec: Spec) -> Snapshot:
        store = SqliteStore.create(tmp_path / "kb", EMBEDDER.name, EMBEDDER.dimension, "rules:1")
        for title, units in spec.items():
            store.put(indexed(title, units))
        return Snapshot(store)

    return make


def collected(
    snapshot: Snapshot, *queries: Query, positives: str = "answers", seed: int = 0, **changes: object
) -> PathExamples:
    settings = replace(HyperRetrieverSettings(positives="answers"), positives=positives, **changes)  # type: ignore[arg-type]
    linker = QuestionLinker(snapshot, RuleMentionExtractor())
    return collect(snapshot, EMBEDDER, linker, queries, settings, seed)


def facts(snapshot: Snapshot, examples: PathExamples, *, right: bool) -> list[Fact]:
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


def test_questions_are_split_by_their_ids_whatever_their_order() -> None:
    queries = [Query(f"q{number}", "?", frozenset({"d"})) for number in range(1000)]
    parts = split(queries)
    assert [len(part) for part in parts] == [640, 160, 200]
    assert split(queries[::-1]) == parts
    assert sorted(query.id for part in parts for query in part) == sorted(query.id for query in queries)
    assert split(queries, seed=1)[2] != parts[2]


def test_no_questions_give_no_examples(snapshot_of: SnapshotOf) -> None:
    none = collected(snapshot_of(CHAIN))
    assert len(none) == 0
    with pytest.raises(ConfigurationError, match="of 0 triples for training 0 are right"):
        train({"one": (none, none)}, FAST)


# Fitting


def examples(seed: int, count: int = 600, entities: int = 5) -> PathExamples:
    """Triples of which those are right whose first extra, or the hyperedge's first number, is high."""
    random = np.random.default_rng(seed)
    recipe = Recipe(embedder="table", dimension=4, rounds=0, closeness=True)
    extras = random.normal(size=(count, recipe.extras)).astype(np.float32)
    edge_vectors = random.normal(size=(7, 4)).astype(np.float32)
    edges = random.integers(7, size=count)
    return PathExamples(
        recipe,
        question_vectors=random.normal(size=(3, 4)).astype(np.float32),
        entity_vectors=random.normal(size=(entities, 4)).astype(np.float32),
        hyperedge_vectors=edge_vectors,
        questions=random.integers(3, size=count),
        heads=random.integers(entities, size=count),
        edges=edges,
        tails=random.integers(entities, size=count),
        extras=extras,
        labels=extras[:, 0] + edge_vectors[edges, 0] > 0.5,
    )


FAST = PathTrainingSettings(epochs=12, batch=16, rate=1e-2, dropout=0.1, units=16)


def test_training_finds_what_makes_a_triple_right() -> None:
    scorer, report = train({"one": (examples(1), examples(2))}, FAST)
    assert report.reached.validation_loss < 0.8 * report.epochs[0].validation_loss
    assert report.reached.precision > 0.7
    assert report.reached.recall > 0.7
    unseen = examples(3)
    every = np.arange(len(unseen))
    trained, untrained = (
        float(np.mean((one.scores(unseen.features(every)) >= 0.5) == unseen.labels))
        for one in (scorer, Plausibility.untrained(unseen.recipe, 0, 16))
    )
    assert trained > 0.85
    assert trained > untrained + 0.1
    assert scorer.recipe.trained_on == ("one",)


def test_training_again_gives_the_same_weights_and_leaves_chance_alone() -> None:
    torch.rand(7)  # so that the state is not that after an earlier training
    before = torch.random.get_rng_state()
    first, again = (train({"one": (examples(1), examples(2))}, FAST) for _ in range(2))
    np.testing.assert_array_equal(first[0].hidden, again[0].hidden)
    assert first[1] == again[1]
    assert torch.equal(torch.random.get_rng_state(), before)
    other, _ = train({"one": (examples(1), examples(2))}, replace(FAST, seed=1))
    assert not np.array_equal(first[0].hidden, other.hidden)


def test_training_stops_when_validation_no_longer_gains_and_keeps_the_best() -> None:
    noise = replace(examples(2), labels=np.random.default_rng(0).random(600) > 0.5)
    settings = replace(FAST, epochs=40, patience=3)
    scorer, report = train({"one": (examples(1), noise)}, settings)
    assert len(report.epochs) == report.best + 1 + settings.patience < 40
    assert report.reached.validation_loss == min(epoch.validation_loss for epoch in report.epochs)
    scores = scorer.scores(noise.features(np.arange(len(noise)))).astype(np.float64)
    loss = -np.log(np.where(noise.labels, scores, 1 - scores)).mean()
    assert loss == pytest.approx(report.reached.validation_loss)


def test_several_data_sets_are_trained_on_as_one() -> None:
    first, second = examples(1), examples(2, count=200, entities=9)
    both = merged([first, second])
    np.testing.assert_array_equal(
        both.features(np.arange(800)),
        np.concatenate([first.features(np.arange(600)), second.features(np.arange(200))]),
    )
    _, report = train({"one": (first, examples(3)), "two": (second, examples(4))}, replace(FAST, epochs=1))
    assert report.datasets == ("one", "two")
    assert (report.train_triples, report.validation_triples) == (800, 1200)
    assert report.train_positives == int(first.labels.sum() + second.labels.sum())


def test_nothing_right_to_train_on_is_said() -> None:
    nothing = replace(examples(1), labels=np.zeros(600, dtype=bool))
    with pytest.raises(ConfigurationError, match="of 600 triples for training 0 are right"):
        train({"one": (nothing, examples(2))}, FAST)
    with pytest.raises(ConfigurationError, match="of 600 triples for validation 0 are right"):
        train({"one": (examples(1), nothing)}, FAST)


def test_weights_report_and_picture_are_written(tmp_path: Path) -> None:
    scorer, report = train({"one": (examples(1), examples(2))}, replace(FAST, epochs=2))
    path = save(scorer, report, tmp_path / "new")
    assert path.name == "hyperretriever.safetensors"
    features = examples(3).features(np.arange(50))
    np.testing.assert_allclose(Plausibility.load(path).scores(features), scorer.scores(features), atol=5e-3)
    written = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert written["datasets"] == ["one"]
    assert [epoch["validation_loss"] for epoch in written["epochs"]] == [
        epoch.validation_loss for epoch in report.epochs
    ]
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    scorer, report = train({"one": (examples(1), examples(2))}, replace(FAST, epochs=1))
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot write into"):
        save(scorer, report, tmp_path / "file")


@pytest.mark.parametrize(("name", "value"), [("epochs", 0), ("batch", 0), ("rate", 0.0), ("dropout", 1.0)])
def test_a_setting_out_of_range_is_named(name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is {value}"):
        PathTrainingSettings(**{name: value})  # type: ignore[arg-type]
