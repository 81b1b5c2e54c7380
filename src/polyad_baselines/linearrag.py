"""LinearRAG (Zhuang et al., 2025): a graph without relations, bridged by sentences, ranked by PageRank.

The names in a question activate the entities with the most similar names. Activation spreads for some rounds: an active
entity e selects its ``top_k_sentences`` sentences s most similar to the question q, and each entity of s receives
a(e) * cos(q, s), if that is at least ``threshold``. Then PageRank runs over entities and passages, with edges weighted
by the entity's share of the mentions in the passage, from

    reset(entity)  = sum of the received activations
    reset(passage) = passage_weight * (passage_ratio * sim(q, p) + ln(1 + sum_e a(e) ln(1 + n(e, p)) / tier(e)))

where sim is the cosine scaled to [0, 1], n the number of mentions and tier the round that activated e (section 3.3 and
the public code).

Hyperedges stand for sentences; with ``segmentation.method = sentence`` each is one. n counts hyperedges with the
entity, where the public code counts the name in the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyad.hypergraph.incidence import Hypergraph
from polyad.hypergraph.sparse import rank_by_id
from polyad.model import Evidence, FloatArray, IntArray, Query
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import RankedHyperedge, build_evidence
from polyad.retrieval.question import QuestionLinker
from polyad_baselines.graph import (
    SnapshotCache,
    WeightedGraph,
    Weights,
    build_hypergraph,
    count_mentions,
    normalize_min_max,
    rank_similar,
    select_passages,
)
from polyad_baselines.questions import list_names
from polyad_baselines.settings import LinearRAGSettings


@dataclass(frozen=True, slots=True, eq=False)
class EntityGraph:
    """The graph of LinearRAG: entities first, then passages, as nodes.

    Attributes:
        graph: The weighted graph; passage ``row`` is the node ``entity_count + row``.
        entity_count: Number of entity rows.
        hypergraph: Entities of sentences.
        entities, passages, counts: Mentions in parallel arrays: entity, passage, number of sentences; by entity.
    """

    graph: WeightedGraph
    entity_count: int
    hypergraph: Hypergraph
    entities: IntArray
    passages: IntArray
    counts: IntArray


@dataclass(slots=True)
class Activation:
    """The entities that a question activates.

    Attributes:
        weights: Sum of received activations by entity.
        latest: Latest activation and round, from 1, by entity.
        sentences: Entity from which each selected sentence was reached, and its score, by hyperedge.
    """

    weights: dict[int, float]
    latest: dict[int, tuple[float, int]]
    sentences: dict[int, tuple[int, float]]


class LinearRAGRetriever:
    """Ranks passages by PageRank from the entities that a question activates by way of sentences.

    Args:
        embedder: The embedder of the index.
        linker: Finds the names in the question.
        settings: The parameters of the paper.
    """

    name: ClassVar[str] = "linearrag"

    def __init__(self, embedder: Embedder, linker: QuestionLinker, settings: LinearRAGSettings) -> None:
        self._embedder, self._linker, self._settings = embedder, linker, settings
        self._graphs = SnapshotCache(_build_graph)

    def prepare(self, snapshot: Snapshot) -> EntityGraph:
        """Build the graph of a snapshot and cache it."""
        return self._graphs.get(snapshot)

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the passages with the highest PageRank as evidence, with the bridging sentences and entities."""
        question = query.text
        names = list_names(self._linker.link(question, snapshot))
        vectors = self._embedder.encode([question, *names], "query")
        passages, cosines = rank_similar(snapshot, vectors[0])
        seeds = _find_seeds(snapshot, vectors[1:])
        if not seeds:
            reason = "similar to the question, which names no entity"
            ranked = select_passages(snapshot, passages, cosines, query.k, reason)
            return build_evidence(snapshot, question, self.name, ranked)
        graph = self.prepare(snapshot)
        activation = self._activate(snapshot, graph.hypergraph, vectors[0], seeds)
        reset = np.zeros(graph.graph.node_count)
        reset[list(activation.weights)] = np.maximum(0, list(activation.weights.values()))
        bonus = _compute_bonuses(graph, activation.latest, snapshot.row_count("passage"))[passages]
        scores = self._settings.passage_ratio * normalize_min_max(cosines) + np.log1p(bonus)
        reset[graph.entity_count + passages] = self._settings.passage_weight * scores
        ranks = graph.graph.rank_nodes(reset, self._settings.damping)[graph.entity_count + passages]
        sentences = sorted(activation.sentences.items(), key=lambda item: (-item[1][1], item[0]))
        return build_evidence(
            snapshot,
            question,
            self.name,
            select_passages(snapshot, passages, ranks, query.k, "personalised PageRank from activated entities"),
            [
                RankedHyperedge(sentence, score, question, "bridging sentence", (source,))
                for sentence, (source, score) in sentences
            ],
            sorted(activation.weights.items(), key=lambda item: (-item[1], item[0])),
        )

    def _activate(
        self, snapshot: Snapshot, hypergraph: Hypergraph, vector: FloatArray, seeds: dict[int, float]
    ) -> Activation:
        """Spread activation from the seeds over sentences; the strongest entity of a round selects first."""
        settings = self._settings
        activation = Activation(dict(seeds), {entity: (score, 1) for entity, score in seeds.items()}, {})
        current = seeds
        for round_number in range(2, settings.rounds + 1):
            following: dict[int, float] = {}
            for entity, score in _sort_by_score(snapshot, current):
                if score < settings.threshold:
                    continue
                edges = hypergraph.memberships[entity]
                edges = edges[[edge not in activation.sentences for edge in edges.tolist()]]
                similarities = snapshot.cosines("hyperedge", edges, vector)
                order = np.lexsort((rank_by_id(snapshot, "hyperedge", edges), -similarities))
                for place in order[: settings.top_k_sentences].tolist():
                    edge, received = int(edges[place]), score * float(similarities[place])
                    activation.sentences[edge] = entity, float(similarities[place])
                    if received >= settings.threshold:
                        for member in hypergraph.members[edge].tolist():
                            activation.weights[member] = activation.weights.get(member, 0.0) + received
                            following[member] = received
            activation.latest.update({entity: (score, round_number) for entity, score in following.items()})
            current = following
        return activation


def _find_seeds(snapshot: Snapshot, vectors: FloatArray) -> dict[int, float]:
    """Return the entity with the most similar name for each name in the question, and the highest cosine of each."""
    seeds: dict[int, float] = {}
    if len(vectors):
        for rows, cosines in snapshot.nearest("entity", vectors, 1):
            for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
                seeds[row] = max(seeds.get(row, 0.0), cosine)
    return {row: cosine for row, cosine in seeds.items() if cosine > 0}


def _sort_by_score(snapshot: Snapshot, scores: dict[int, float]) -> list[tuple[int, float]]:
    keys = snapshot.ids("entity", list(scores))
    ranked = sorted(zip(scores.items(), keys, strict=True), key=lambda pair: (-pair[0][1], pair[1]))
    return [item for item, _ in ranked]


def _compute_bonuses(graph: EntityGraph, active: dict[int, tuple[float, int]], passage_count: int) -> Weights:
    """Return for each passage the sum over its active entities of activation * ln(1 + mentions) / tier."""
    factors = np.zeros(graph.entity_count)
    for entity, (score, tier) in active.items():
        factors[entity] = score / tier
    shares = factors[graph.entities] * np.log1p(graph.counts)
    bonuses = np.zeros(passage_count)
    np.add.at(bonuses, graph.passages, shares)
    return bonuses


def _build_graph(snapshot: Snapshot) -> EntityGraph:
    hypergraph = build_hypergraph(snapshot)
    entities, passages, counts = count_mentions(snapshot, hypergraph)
    totals = np.bincount(passages, counts, snapshot.row_count("passage"))
    graph = WeightedGraph.from_edges(
        entities,
        hypergraph.node_count + passages,
        counts / totals[passages],
        hypergraph.node_count + snapshot.row_count("passage"),
    )
    return EntityGraph(graph, hypergraph.node_count, hypergraph, entities, passages, counts)
