from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyad.calibration import MEASURED_VALUES, PAPER_VALUES
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.language_models.scripted import ScriptedLanguageModel, extract_passage
from polyad.model import (
    SUBJECT,
    Argument,
    Document,
    Entity,
    Evidence,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Mention,
    Passage,
    Query,
)
from polyad.protocols.components import Prompt, TextKind
from polyad.protocols.lookups import get_all, get_digests, get_document_passages, get_hyperedge_ids
from polyad.protocols.snapshot import Snapshot
from polyad.protocols.store import Manifest
from polyad.retrieval.hypergraphrag.retriever import HyperGraphRAGRetriever
from polyad.retrieval.hypergraphrag.settings import HyperGraphRAGSettings
from polyad.retrieval.question import QuestionLinker
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.sqlite import SqliteStore

Vector = tuple[float, float, float]


class TableEmbedder:
    """The vectors of a few texts, by heart."""

    dimension = 3

    def __init__(self, table: Mapping[str, Vector], name: str = "table") -> None:
        self.name = name
        self._table = table

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        return np.array([self._table[text] for text in texts], dtype=np.float32).reshape(-1, 3)


class Named:
    """Finds these names in any question."""

    name = "named"

    def __init__(self, *names: str) -> None:
        self._names = names

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        return [[self._mention(name, text) for name in self._names] for text in texts]

    def _mention(self, name: str, text: str) -> Mention:
        start = text.find(name)
        return Mention(name, start, start + len(name) if start >= 0 else -1)


Members = Mapping[str, tuple[float, str]]
"""Score and role by name."""


def put(store: SqliteStore, id: str, vector: Vector, *edges: tuple[Vector, float, Members]) -> None:
    """A document of one passage with its vector, and hyperedges, each with vector, score and members."""
    indexed = []
    for position, (edge_vector, score, members) in enumerate(edges):
        edge = Hyperedge(f"{id}/{position}", HyperedgeKind.FACT, f"{id} says {position}", id, 0, 1, score)
        incidences = tuple(
            Incidence(name.lower(), edge.id, name, role, score=importance)
            for name, (importance, role) in sorted(members.items())
        )
        indexed.append(IndexedHyperedge(edge, incidences, np.array(edge_vector, dtype=np.float32)))
    passage = Passage(id, id, id, f"text of {id}", 0, 9)
    whole = IndexedPassage(passage, id, np.array(vector, dtype=np.float32), tuple(indexed))
    store.put(IndexedDocument(Document(id, id, passage.text), id, 3, (whole,)))


X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
QUESTION = "What did Ada do?"
TABLE: dict[str, Vector] = {
    QUESTION: Y,
    "Ada": X,
    "Bob": (0.6, 0.8, 0.0),
    "Cy": Z,
    "Cy, Ada": (0.6, 0.0, 0.8),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """Similarity to the question times score: p1/0 8, p3/0 6, p2/0 4.5; to "Ada": Ada 80, Bob 60, Cy 0."""
    opened = SqliteStore.open(tmp_path, Manifest("table", 3, "rules"))
    put(opened, "p1", X, ((0.6, 0.8, 0.0), 10.0, {"Ada": (80.0, ""), "Bob": (100.0, "")}))
    put(opened, "p2", X, (Y, 4.5, {"Bob": (40.0, SUBJECT), "Cy": (60.0, "")}))
    put(opened, "p3", Z, ((0.8, 0.6, 0.0), 10.0, {"Cy": (10.0, SUBJECT)}))
    put(opened, "p4", Y)
    yield opened
    opened.close()


def snapshot_of(store: SqliteStore) -> Snapshot:
    """Its entities described by their names alone."""
    return SnapshotProvider(store, 3).get_with_entity_vectors(TableEmbedder(TABLE))


def retrieved(
    store: SqliteStore, k: int = 9, names: Sequence[str] = ("Ada",), embedder: str = "table", **settings: Any
) -> Evidence:
    snapshot = snapshot_of(store)
    retriever = HyperGraphRAGRetriever(
        TableEmbedder(TABLE, embedder), QuestionLinker(Named(*names)), HyperGraphRAGSettings(**settings)
    )
    return retriever.retrieve(Query(QUESTION, k), snapshot)


def rounded(pairs: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(id, round(score, 4)) for id, score in pairs]


def entities(evidence: Evidence) -> list[tuple[str, float]]:
    return rounded([(entity.entity.name, entity.score) for entity in evidence.entities])


def edges(evidence: Evidence) -> list[tuple[str, float]]:
    return rounded([(hyperedge.hyperedge.id, hyperedge.score) for hyperedge in evidence.hyperedges])


def passages(evidence: Evidence) -> list[tuple[str, float]]:
    return rounded([(passage.passage.id, passage.score) for passage in evidence.passages])


def reached(evidence: Evidence) -> dict[str, tuple[str, tuple[str, ...], str]]:
    return {step.hyperedge_id: (step.reached, step.via, step.matched) for step in evidence.trace}


# By hand


def test_entities_and_hyperedges_above_the_thresholds_of_the_paper_are_expanded_and_fused(store: SqliteStore) -> None:
    evidence = retrieved(store)
    assert entities(evidence) == [("Ada", 80.0), ("Bob", 60.0)], "R_V: Cy is at 0"
    assert edges(evidence) == [("p1/0", 8.0), ("p3/0", 6.0), ("p2/0", 2.7)], "K_H; p2/0 is Bob's, at 0.6 of 4.5"
    assert reached(evidence) == {
        "p1/0": ("both", ("Ada",), QUESTION),
        "p3/0": ("similarity", (), QUESTION),
        "p2/0": ("entity", ("Bob",), "Ada"),
    }
    assert [[member.name for member in hyperedge.members] for hyperedge in evidence.hyperedges] == [
        ["Ada", "Bob"],
        ["Cy"],
        ["Bob", "Cy"],
    ]
    assert passages(evidence) == [
        ("p1", round(1 / 5 + 1 / 5, 4)),  # first by hyperedge and by entity
        ("p2", round(1 / 6 + 1 / 5, 4)),  # second by entity, and about Bob, whom p1/0 names
        ("p4", round(1 / 5, 4)),  # by similarity alone
        ("p3", round(1 / 6, 4)),  # second by hyperedge
    ]
    assert [hyperedge.reason for hyperedge in evidence.passages] == [
        "contains a hyperedge similar to the question; mentions an entity similar to a name in the question",
        "mentions an entity similar to a name in the question; about an entity of a hyperedge similar to the question",
        "similar to the question",
        "contains a hyperedge similar to the question",
    ]
    assert (evidence.retriever, evidence.question) == ("hypergraphrag", QUESTION)


def test_the_trace_has_each_hyperedge_with_its_passage_and_score(store: SqliteStore) -> None:
    evidence = retrieved(store)
    steps = [(step.hyperedge_id, round(step.score, 4)) for step in evidence.trace]
    assert steps == edges(evidence)
    assert [step.passage_id for step in evidence.trace] == ["p1", "p3", "p2"]


def test_k_bounds_entities_hyperedges_and_passages(store: SqliteStore) -> None:
    one_entity = retrieved(store, top_k_entities=1)
    assert entities(one_entity) == [("Ada", 80.0)]
    assert edges(one_entity) == [("p1/0", 8.0), ("p3/0", 6.0)], "Bob's is not there"
    one_edge = retrieved(store, top_k_hyperedges=1, top_k_entities=0)
    assert edges(one_edge) == [("p1/0", 8.0)]
    assert dict(passages(one_edge))["p3"] < 0, "not reached"
    assert [id for id, _ in passages(retrieved(store, k=2))] == ["p1", "p2"]


def test_hyperedges_of_entities_are_not_limited_by_the_hyperedge_count(store: SqliteStore) -> None:
    assert len(edges(retrieved(store, top_k_hyperedges=1))) > 1
    assert edges(retrieved(store, max_listed_hyperedges=2)) == edges(retrieved(store))[:2]


def test_passages_added_by_similarity_are_bounded(store: SqliteStore) -> None:
    put(store, "p5", Y)
    put(store, "p6", (0.0, 0.8, 0.6))
    by_similarity = [
        [
            hit.passage.id
            for hit in retrieved(store, top_k_passages=k).passages
            if hit.reason == "similar to the question"
        ]
        for k in (1, 2, 3, 9)
    ]
    assert by_similarity == [["p4"], ["p4", "p5"], ["p4", "p5", "p6"], ["p4", "p5", "p6"]]


def test_thresholds_are_what_scores_must_exceed(store: SqliteStore) -> None:
    assert entities(retrieved(store, entity_threshold=60.1)) == [("Ada", 80.0)]
    assert entities(retrieved(store, entity_threshold=59.9)) == [("Ada", 80.0), ("Bob", 60.0)]
    assert entities(retrieved(store, entity_threshold=0.0)) == [("Ada", 80.0), ("Bob", 60.0)]
    by_threshold = {
        threshold: {
            id
            for id, (how, _, _) in reached(retrieved(store, hyperedge_threshold=threshold)).items()
            if how != "entity"
        }
        for threshold in (0.0, 4.4, 4.5, 7.0, 8.1)
    }
    every = {"p1/0", "p2/0", "p3/0"}
    assert by_threshold == {0.0: every, 4.4: every, 4.5: {"p1/0", "p3/0"}, 7.0: {"p1/0"}, 8.1: set()}
    nothing = retrieved(store, passage_threshold=1.0)
    assert [hit.reason for hit in nothing.passages if hit.passage.id == "p4"] == [
        "similar to the question, not reached"
    ]


def test_an_embedder_that_was_measured_has_thresholds_of_its_own_unless_told_otherwise(store: SqliteStore) -> None:
    name = "all-MiniLM-L6-v2"
    assert MEASURED_VALUES[name].hyperedge_threshold < 4.5 < PAPER_VALUES.hyperedge_threshold
    assert reached(retrieved(store, embedder=name))["p2/0"][0] == "both"
    assert (
        reached(retrieved(store, embedder=name, hyperedge_threshold=PAPER_VALUES.hyperedge_threshold))["p2/0"][0]
        == "entity"
    )
    assert reached(retrieved(store, embedder=name, hyperedge_threshold=4.6))["p2/0"][0] == "entity"
    assert reached(retrieved(store, embedder="another"))["p2/0"][0] == "entity"


# Ablations


def test_without_entity_retrieval_only_similar_hyperedges_are_left(store: SqliteStore) -> None:
    evidence = retrieved(store, top_k_entities=0)
    assert evidence.entities == ()
    assert edges(evidence) == [("p1/0", 8.0), ("p3/0", 6.0)]
    assert {how for how, _, _ in reached(evidence).values()} == {"similarity"}
    assert all("mentions an entity" not in hit.reason for hit in evidence.passages)


def test_without_hyperedge_retrieval_only_those_of_similar_entities_are_left(store: SqliteStore) -> None:
    evidence = retrieved(store, top_k_hyperedges=0)
    assert edges(evidence) == [("p1/0", 6.4), ("p2/0", 2.7)]
    assert reached(evidence) == {"p1/0": ("entity", ("Ada",), "Ada"), "p2/0": ("entity", ("Bob",), "Ada")}
    assert passages(evidence)[:3] == [("p1", 0.2), ("p4", 0.2), ("p2", round(1 / 6, 4))]


def test_without_passage_retrieval_no_passage_is_there_by_similarity(store: SqliteStore) -> None:
    evidence = retrieved(store, top_k_passages=0)
    assert [id for id, _ in passages(evidence)] == ["p1", "p2", "p3"]
    assert all("similar to the question" not in hit.reason.split("; ") for hit in evidence.passages)


def test_of_chunks_those_above_the_threshold_are_handed_on_and_no_others(store: SqliteStore) -> None:
    evidence = retrieved(store, passage_source="chunks")
    assert passages(evidence) == [("p4", 1.0)], "the others are not similar, whatever their hyperedges are"
    assert edges(evidence) == edges(retrieved(store))
    assert passages(retrieved(store, passage_source="chunks", passage_threshold=1.0)) == []
    assert passages(retrieved(store, passage_source="chunks", top_k_passages=0)) == [], 'the ablation "w/o CR"'
    everything = retrieved(store, passage_source="chunks", passage_threshold=0.0, k=1)
    assert passages(everything) == [("p4", 1.0)]


def test_all_hyperedges_are_expanded_where_none_are_left_out(store: SqliteStore) -> None:
    assert len(edges(retrieved(store, max_listed_hyperedges=1))) == 1
    assert edges(retrieved(store, max_listed_hyperedges=0)) == edges(retrieved(store, max_listed_hyperedges=200))
    with pytest.raises(ConfigurationError, match="max_listed_hyperedges is -1; expected 0 or more"):
        HyperGraphRAGSettings(max_listed_hyperedges=-1)


def test_without_anything_nothing_is_found(store: SqliteStore) -> None:
    evidence = retrieved(store, top_k_entities=0, top_k_hyperedges=0, top_k_passages=0)
    assert (evidence.passages, evidence.hyperedges, evidence.entities, evidence.trace) == ((), (), (), ())


def test_with_passages_alone_it_is_standard_retrieval(store: SqliteStore) -> None:
    evidence = retrieved(store, top_k_entities=0, top_k_hyperedges=0)
    assert evidence.hyperedges == ()
    assert [hit.passage.id for hit in evidence.passages] == ["p4", "p1", "p2", "p3"]
    assert [score > 0 for _, score in passages(evidence)] == [True, False, False, False]


# Names


def test_names_meet_the_entities_each_by_itself_or_together(store: SqliteStore) -> None:
    assert entities(retrieved(store, names=("Ada", "Cy"))) == [("Ada", 80.0), ("Bob", 60.0), ("Cy", 60.0)]


def test_names_that_are_put_together_are_one_text(store: SqliteStore) -> None:
    snapshot = snapshot_of(store)
    settings = HyperGraphRAGSettings(names="together", entity_threshold=40.0)
    evidence = HyperGraphRAGRetriever(TableEmbedder(TABLE), QuestionLinker(Named("Ada", "Cy")), settings).retrieve(
        Query(QUESTION, 5), snapshot
    )
    assert entities(evidence) == [("Ada", 48.0), ("Cy", 48.0)], "0.6 of 80, 0.8 of 60"
    assert {matched for how, _, matched in reached(evidence).values() if how == "entity"} == {"Cy, Ada"}


def test_a_question_that_names_nothing_meets_the_entities_itself(tmp_path: Path) -> None:
    with_bob_alone = SqliteStore.open(tmp_path, Manifest("table", 3, "rules"))
    put(with_bob_alone, "p", X, (Y, 10.0, {"Bob": (100.0, "")}))
    assert entities(retrieved(with_bob_alone, names=())) == [("Bob", 80.0)]
    with_bob_alone.close()


def test_the_strongest_entity_brings_a_hyperedge_in_and_the_first_of_equals(tmp_path: Path) -> None:
    twins = SqliteStore.open(tmp_path, Manifest("table", 3, "rules"))
    put(twins, "p", X, (Y, 10.0, {"Bob": (75.0, ""), "Ada": (45.0, "")}))
    assert reached(retrieved(twins, entity_threshold=40.0))["p/0"][1] == ("Ada",), "both are at 45"
    twins.close()


def test_an_entity_that_many_passages_mention_says_less_of_each(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path, Manifest("table", 3, "rules"))
    for number in range(4):
        put(store, f"p{number}", X, (X, 1.0, {"Ada": (100.0, "")}))
    put(store, "p4", X, (X, 1.0, {"Bob": (90.0, "")}))
    evidence = retrieved(store, top_k_hyperedges=0, top_k_passages=0)
    assert entities(evidence) == [("Ada", 100.0), ("Bob", 54.0)]
    assert [id for id, _ in passages(evidence)] == ["p4", "p0", "p1", "p2", "p3"], "54 / sqrt(1), 100 / sqrt(4)"
    store.close()


def test_the_subject_of_many_passages_counts_less(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path, Manifest("table", 3, "rules"))
    put(store, "a", X, (Y, 10.0, {"Ada": (1.0, ""), "Bob": (1.0, "")}))
    for number in range(4):
        put(store, f"p{number}", X, (X, 1.0, {"Ada": (1.0, SUBJECT)}))
    put(store, "q", X, (X, 1.0, {"Bob": (1.0, SUBJECT)}))
    evidence = retrieved(store, top_k_entities=0, top_k_passages=0)
    assert [id for id, _ in passages(evidence)] == ["a", "q", "p0", "p1", "p2", "p3"]
    store.close()


# Against the definition


def random_store(directory: Path, random: np.random.Generator) -> SqliteStore:
    def vector() -> Vector:
        drawn = random.normal(size=3)
        x, y, z = (drawn / np.linalg.norm(drawn)).tolist()
        return x, y, z

    store = SqliteStore.open(directory, Manifest("table", 3, "rules"))
    for number in range(8):
        items = [
            (
                vector(),
                float(random.integers(1, 11)),
                {
                    str(name): (float(random.integers(1, 101)), str(random.choice(["", SUBJECT])))
                    for name in random.choice(["Ada", "Bob", "Cy"], random.integers(0, 4), replace=False)
                },
            )
            for _ in range(random.integers(0, 4))
        ]
        put(store, f"p{number}", vector(), *items)
    return store


@pytest.mark.parametrize("seed", range(12))
def test_retrieval_equals_the_definition_of_the_paper(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    store = random_store(tmp_path, random)
    k_v, k_h, tau_v, tau_h = 2, 5, 20.0, 1.5
    evidence = retrieved(
        store, top_k_entities=k_v, top_k_hyperedges=k_h, entity_threshold=tau_v, hyperedge_threshold=tau_h
    )
    snapshots = {snapshot.key: snapshot for snapshot in get_all(store, Entity)}
    edges = [edge for item in get_document_passages(store, list(get_digests(store))) for edge in item.hyperedges]
    of_name = {key: float(np.dot(TABLE[snapshot.name], X)) * snapshot.score for key, snapshot in snapshots.items()}
    r_v = sorted((key for key in snapshots if of_name[key] > tau_v), key=lambda key: (-of_name[key], key))[:k_v]
    of_edge = {edge.hyperedge.id: float(edge.vector @ np.array(Y)) * edge.hyperedge.score for edge in edges}
    r_h = sorted((id for id in of_edge if of_edge[id] > tau_h), key=lambda id: (-of_edge[id], id))[:k_h]
    k_all = {id for key in r_v for id in get_hyperedge_ids(store, key)} | set(r_h)

    assert [results.entity.key for results in evidence.entities] == r_v
    results = reached(evidence)
    assert set(results) == k_all
    assert {id for id, (how, _, _) in results.items() if how != "entity"} == set(r_h)
    scores = [(-edge.score, edge.hyperedge.id) for edge in evidence.hyperedges]
    assert scores == sorted(scores)
    outputs = [(-hit.score, hit.passage.id) for hit in evidence.passages]
    assert outputs == sorted(outputs)
    assert len(outputs) == 8
    store.close()


# On every kind of index

DOCUMENTS = [
    Document("alba", "Alba", "Alba is a film that Carla Diaz directed in 1961."),
    Document("carla", "Carla Diaz", "Carla Diaz was born in Lima. She left it early."),
    Document("lima", "Lima", "Lima is the capital of Peru."),
    *(Document(f"x{number}", f"Town {number}", f"Town {number} is a town with {number} wells.") for number in range(6)),
]
GIFTS = [
    Document(
        "g1",
        "",
        "give: giver Carla Diaz, gift Alba",
        arguments=(Argument("giver", "Carla Diaz"), Argument("gift", "Alba")),
    ),
    Document(
        "g2",
        "",
        "live: who Carla Diaz, place Lima",
        arguments=(Argument("who", "Carla Diaz"), Argument("place", "Lima")),
    ),
]
BIRTH_QUESTION = "Where was Carla Diaz, who directed Alba, born?"
LOW = HyperGraphRAGSettings(entity_threshold=20.0, hyperedge_threshold=1.0, passage_threshold=0.1)


def reply_to(prompt: Prompt) -> str:
    if prompt.user == BIRTH_QUESTION:
        return json.dumps({"entities": ["Carla Diaz"]})
    text = extract_passage(prompt.user)
    names = [name for name in ("Carla Diaz", "Alba", "Lima", "Peru") if name in text]
    return json.dumps({"facts": [{"text": text, "score": 9, "entities": names}], "entities": []})


@pytest.fixture(params=["semantic-units", "facts", "tuples"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    model = ScriptedLanguageModel(reply_to)
    settings = Settings(hypergraphrag=LOW)
    with Engine.open(tmp_path, embedder=HashingEmbedder(64), language_model=model, settings=settings) as opened:
        report = opened.index_documents(GIFTS if request.param == "tuples" else DOCUMENTS, method=request.param)
        assert report.failures == ()
        yield opened


def test_every_kind_of_index_can_be_searched(engine: Engine) -> None:
    evidence = engine.search(BIRTH_QUESTION, 2, retriever="hypergraphrag")
    assert {hit.passage.document_id for hit in evidence.passages} & {"carla", "g2"}
    assert [entity.entity.key for entity in evidence.entities[:2]] == [
        "alba",
        "carla diaz",
    ]  # both named: a tie, by key
    assert max(entity.score for entity in evidence.entities) <= 100
    assert any(step.via == ("Carla Diaz",) for step in evidence.trace)
    assert engine.search(BIRTH_QUESTION, 2, retriever="hypergraphrag").passages == evidence.passages


def test_everything_is_in_the_order_of_scores(engine: Engine) -> None:
    evidence = engine.search(BIRTH_QUESTION, 50, retriever="hypergraphrag")
    assert len(evidence.passages) == engine.catalogue.statistics().passages
    for scores in (
        [hit.score for hit in evidence.passages],
        [edge.score for edge in evidence.hyperedges],
        [entity.score for entity in evidence.entities],
    ):
        assert scores == sorted(scores, reverse=True)
    assert [step.hyperedge_id for step in evidence.trace] == [edge.hyperedge.id for edge in evidence.hyperedges]
    assert {step.reached for step in evidence.trace} <= {"both", "entity", "similarity"}


@pytest.mark.parametrize("method", ["semantic-units", "facts"])
def test_without_a_language_model_rules_find_the_names(tmp_path: Path, method: str) -> None:
    settings = Settings(hypergraphrag=LOW)
    model = ScriptedLanguageModel(reply_to)
    with Engine.open(tmp_path, embedder=HashingEmbedder(64), language_model=model, settings=settings) as opened:
        opened.index_documents(DOCUMENTS, method=method)
    with Engine.open(tmp_path, embedder=HashingEmbedder(64), settings=settings) as opened:
        evidence = opened.search(BIRTH_QUESTION, 3, retriever="hypergraphrag")
    assert {"carla diaz", "alba"} <= {entity.entity.key for entity in evidence.entities}
    assert {"carla", "alba"} <= {hit.passage.document_id for hit in evidence.passages}


def test_a_language_model_is_asked_for_the_names_once_a_question(tmp_path: Path) -> None:
    model = ScriptedLanguageModel(reply_to)
    with Engine.open(tmp_path, embedder=HashingEmbedder(64), language_model=model) as opened:
        opened.index_documents(DOCUMENTS)
        for _ in range(2):
            opened.search(BIRTH_QUESTION, 3, retriever="hypergraphrag")
    assert [prompt.user for prompt in model.prompts] == [BIRTH_QUESTION], "the second time its reply is recalled"


def test_an_empty_index_has_no_evidence(tmp_path: Path) -> None:
    model = ScriptedLanguageModel(reply_to)
    with Engine.open(tmp_path, embedder=HashingEmbedder(64), language_model=model) as opened:
        evidence = opened.search(BIRTH_QUESTION, 3, retriever="hypergraphrag")
    assert (evidence.passages, evidence.hyperedges, evidence.entities, evidence.trace) == ((), (), (), ())


def test_facts_without_members_do_no_harm(tmp_path: Path) -> None:
    model = ScriptedLanguageModel(lambda prompt: '{"facts": [{"text": "It rained.", "score": 9, "entities": []}]}')
    with Engine.open(tmp_path, embedder=HashingEmbedder(64), language_model=model) as opened:
        opened.index_documents([Document("a", "", "it rained"), Document("b", "", "it rained again")], method="facts")
        assert opened.catalogue.statistics().entities == 0
        evidence = opened.search("It rained.", 3, retriever="hypergraphrag")
    assert {hit.passage.id for hit in evidence.passages} == {"a#0000", "b#0000"}
    assert (len(evidence.hyperedges), evidence.entities) == (2, ())


def test_a_question_of_a_thousand_names_embeds_few_of_them(tmp_path: Path) -> None:
    texts: list[str] = []

    class RecordingEmbedder(HashingEmbedder):
        def encode(self, questions: Sequence[str], kind: TextKind) -> FloatArray:
            texts.extend(questions)
            return super().encode(questions, kind)

    with Engine.open(tmp_path, embedder=RecordingEmbedder(16)) as engine:
        engine.index_documents([Document("tower", "Corven Tower", "Corven Tower was built by Ines Moreau.")])
        engine.search("Aldby", retriever="hypergraphrag")
        texts.clear()
        names = (f"Ba{first}nor Lo{second}sen" for first in "bcdfghklmnprst" for second in "bcdfghklmnprst")
        question = ", ".join(["Corven Tower", *names])
        evidence = engine.search(question, retriever="hypergraphrag")
    assert [hit.passage.document_id for hit in evidence.passages] == ["tower"]
    assert len(texts) < 50
