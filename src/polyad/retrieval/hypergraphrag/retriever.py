"""HyperGraphRAG's retriever: entities and hyperedges by vector, expanded both ways and fused (sections 4.2 and 4.3).

    R_V = the k_V entities with the highest sim(h_Vq, h_v) * score_v, of those above tau_V
    R_H = the k_H hyperedges with the highest sim(h_q, h_e) * score_e, of those above tau_H
    K_H = every hyperedge of an entity in R_V, and every hyperedge in R_H, each with all its entities
    K*  = K_H and the k_C passages most similar to the question, of those above tau_C

The published code multiplies by no score, applies no threshold and never queries its passage vectors; this module
follows the paper. The paper passes K* to the language model unranked. Here its passages are ranked, as in every
retriever: by the sum of their reciprocal ranks in up to four rankings, one for each way into K*: passages of hyperedges
in R_H, passages that mention an entity in R_V, passages about an entity of a hyperedge in R_H, and similar passages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from polyad.calibration import EmbedderCalibration
from polyad.hypergraph.sparse import Scores, SortKey, find_top_positions, rank_by_id, union
from polyad.model import Evidence, FloatArray, IntArray, Query
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.baselines import NoRetriever
from polyad.retrieval.evidence import RankedHyperedge, RankedPassage, build_evidence, fill_with_similar
from polyad.retrieval.hypergraphrag.settings import HyperGraphRAGSettings
from polyad.retrieval.question import LinkedQuestion, QuestionLinker
from polyad.retrieval.similarity_thresholds import SimilarityThresholds

_RANK_CONSTANT = 5.0
"""Added to ranks before they are inverted. Set by hand: the lower, the more the first ranks count."""

_RANKING_DEPTH = 200
"""Ranks that count in each ranking."""

_MAX_NAMES = 32
"""Names of a question that are compared one by one with all entities; a question of 8,000 characters can have 1,300."""


@dataclass(frozen=True, slots=True)
class _RetrievedGraph:
    """The entities and hyperedges retrieved for a question, with scores, as arrays (K_H in the paper).

    Attributes:
        entities: The retrieved entities R_V, best first.
        entity_scores: Their scores in (0, 100].
        retrieved: The retrieved hyperedges R_H, with scores in (0, 10].
        edges: All hyperedges of K_H, best first.
        edge_scores: Their scores in (0, 10].
        source_entities: The entity in R_V that expansion reached each hyperedge from; -1 if none did.
    """

    entities: IntArray
    entity_scores: FloatArray
    retrieved: Scores
    edges: IntArray
    edge_scores: FloatArray
    source_entities: IntArray


@dataclass(frozen=True)
class HyperGraphRAGRetriever:
    """Finds entities and hyperedges by vector similarity, adds their neighbours, and ranks the passages of both.

    Attributes:
        embedder: The embedder of the index.
        linker: Links the names in the question to entities.
        settings: The parameters of the paper.
    """

    embedder: Embedder
    linker: QuestionLinker
    settings: HyperGraphRAGSettings
    name: ClassVar[str] = "hypergraphrag"

    @cached_property
    def _embedder_thresholds(self) -> SimilarityThresholds:
        return SimilarityThresholds(self.embedder, has_entity_vectors=True)

    def measure_thresholds(self, snapshot: Snapshot) -> None:
        """Measure the thresholds on the whole index, unless the settings or the embedder have them."""
        settings = self.settings
        if None in (settings.entity_threshold, settings.hyperedge_threshold, settings.passage_threshold):
            self._embedder_thresholds.measure(snapshot)

    @property
    def _thresholds(self) -> EmbedderCalibration:
        """The minimum scores of entities, hyperedges and passages: tau_V, tau_H and tau_C of the paper.

        A setting has priority over a value of the embedder or index, and this value over that of the paper.
        """
        names = ("entity_threshold", "hyperedge_threshold", "passage_threshold")
        values = {name: value for name in names if (value := getattr(self.settings, name)) is not None}
        return replace(self._embedder_thresholds.values, **values)

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the best passages as evidence, with the entities and hyperedges that led to the passages (K_H).

        The snapshot must contain entity vectors. If the retrieved hyperedges have fewer than k passages, the
        most similar other passages follow, unless ``top_k_passages`` is 0.
        """
        question = query.text
        linked_question = self.linker.link(question, snapshot)
        names = _list_names(linked_question) or [question]
        single_names = names[:_MAX_NAMES] if self.settings.names == "each" and len(names) > 1 else []
        vectors = self.embedder.encode([question, ", ".join(names), *single_names], "query")
        graph_hits = self._retrieve_graph(snapshot, vectors[0], vectors[1:])
        rank = self._rank_passages if self.settings.passage_source == "ranked" else self._select_similar_passages
        hits = rank(snapshot, graph_hits, vectors[0], query.k)
        return self._build_evidence(snapshot, question, ", ".join(names), graph_hits, hits)

    def _retrieve_graph(self, snapshot: Snapshot, vector: FloatArray, name_vectors: FloatArray) -> _RetrievedGraph:
        """Retrieve hyperedges similar to the question, and hyperedges of entities similar to names in the question.

        The paper calls the result K_H.
        """
        entities = self._retrieve_entities(snapshot, name_vectors)
        retrieved = self._retrieve_hyperedges(snapshot, vector)
        edges, owners = snapshot.graph.memberships(entities.rows)
        similarity = snapshot.cosines("hyperedge", edges, vector, weighted=True)
        strength = (entities.values[owners] / 100 * np.maximum(similarity, 0)).astype(np.float32)
        # Sorted by hyperedge, then strength, then entity: the first entity of each hyperedge is its source.
        order = np.lexsort((rank_by_id(snapshot, "entity", entities.rows)[owners], -strength, edges))
        reached, first = np.unique(edges[order], return_index=True)
        expanded = Scores(reached, strength[order][first])
        rows = union([reached, retrieved.rows])
        scores = expanded.get(rows)
        if len(retrieved):
            positions, is_retrieved = retrieved.find_positions(rows)
            scores[is_retrieved] = retrieved.values[positions[is_retrieved]]
        source_entities = np.full(len(rows), -1)
        source_entities[np.searchsorted(rows, reached)] = entities.rows[owners[order][first]]
        ranked = find_top_positions(scores, len(rows), lambda places: rank_by_id(snapshot, "hyperedge", rows[places]))
        best_entities = entities.top_k(len(entities), partial(rank_by_id, snapshot, "entity"))
        return _RetrievedGraph(
            best_entities, entities.get(best_entities), retrieved, rows[ranked], scores[ranked], source_entities[ranked]
        )

    def _retrieve_entities(self, snapshot: Snapshot, name_vectors: FloatArray) -> Scores:
        """Return the entities most similar to the names in the question, with scores in (0, 100]."""
        settings = self.settings
        if not settings.top_k_entities:
            return Scores.empty()
        nearest = snapshot.nearest("entity", name_vectors, settings.top_k_entities, weighted=True)
        rows, values = (np.concatenate(column) for column in zip(*nearest, strict=True))
        best = Scores.from_max(rows, values).above(self._thresholds.entity_threshold)
        top_rows = best.top_k(settings.top_k_entities, partial(rank_by_id, snapshot, "entity"))
        return Scores.from_pairs(top_rows, best.get(top_rows))

    def _retrieve_hyperedges(self, snapshot: Snapshot, vector: FloatArray) -> Scores:
        """Return the hyperedges most similar to the question, with scores in (0, 10]; R_H in the paper."""
        settings = self.settings
        if not settings.top_k_hyperedges:
            return Scores.empty()
        ((rows, values),) = snapshot.nearest("hyperedge", vector[None], settings.top_k_hyperedges, weighted=True)
        return Scores.from_pairs(rows, values).above(self._thresholds.hyperedge_threshold)

    def _select_similar_passages(
        self, snapshot: Snapshot, _: _RetrievedGraph, question_vector: FloatArray, k: int
    ) -> list[RankedPassage]:
        """Return the ``k`` passages most similar to the question, best first, with scores (K_chunk in the paper).

        The list is empty if ``top_k_passages`` is 0.
        """
        if not self.settings.top_k_passages:
            return []
        ((near, cosines),) = snapshot.nearest("passage", question_vector[None], min(k, self.settings.top_k_passages))
        return [
            (row, cosine, "similar to the question")
            for row, cosine in zip(near.tolist(), cosines.tolist(), strict=True)
            if cosine > self._thresholds.passage_threshold
        ]

    def _rank_passages(
        self, snapshot: Snapshot, graph_hits: _RetrievedGraph, question_vector: FloatArray, k: int
    ) -> list[RankedPassage]:
        """Return the ``k`` best passages as (row, score, reason), by reciprocal rank fusion of several rankings.

        The rankings are by hyperedges, entities and members in ``graph_hits``, and by similarity if
        ``top_k_passages`` is not 0.
        """
        rankings = {
            "contains a hyperedge similar to the question": _score_by_hyperedge(snapshot, graph_hits),
            "mentions an entity similar to a name in the question": _score_by_entity(snapshot, graph_hits),
            "about an entity of a hyperedge similar to the question": _score_by_subject(snapshot, graph_hits),
        }
        if self.settings.top_k_passages:
            ((near, cosines),) = snapshot.nearest("passage", question_vector[None], self.settings.top_k_passages)
            candidates = union(
                [near[cosines > self._thresholds.passage_threshold], *(scores.rows for scores in rankings.values())]
            )
            similarity = Scores(candidates, np.maximum(snapshot.cosines("passage", candidates, question_vector), 0))
            rankings["similar to the question"] = similarity.above(0)
        order = partial(rank_by_id, snapshot, "passage")
        shares = {reason: _invert_ranks(scores, order) for reason, scores in rankings.items()}
        rows = union(share.rows for share in shares.values())
        total = np.sum([share.get(rows) for share in shares.values()], axis=0)
        hits = [
            (row, score, "; ".join(reason for reason, share in shares.items() if row in share.rows))
            for row in Scores(rows, total).top_k(k, order).tolist()
            for score in [float(total[np.searchsorted(rows, row)])]
        ]
        return fill_with_similar(snapshot, hits, question_vector, k) if self.settings.top_k_passages else hits

    def _build_evidence(
        self, snapshot: Snapshot, question: str, names: str, graph_hits: _RetrievedGraph, hits: list[RankedPassage]
    ) -> Evidence:
        count = min(len(graph_hits.edges), self.settings.max_listed_hyperedges or len(graph_hits.edges))
        is_retrieved = np.isin(graph_hits.edges[:count], graph_hits.retrieved.rows).tolist()
        edges, scores = graph_hits.edges[:count].tolist(), graph_hits.edge_scores[:count].tolist()
        sources = graph_hits.source_entities[:count].tolist()
        ranked = [
            RankedHyperedge(
                edge,
                score,
                question if is_similar else names,
                "similarity" if source < 0 else "both" if is_similar else "entity",
                (source,) if source >= 0 else (),
            )
            for edge, score, source, is_similar in zip(edges, scores, sources, is_retrieved, strict=True)
        ]
        retrieves = any(getattr(self.settings, f"top_k_{kind}") for kind in ("entities", "hyperedges", "passages"))
        return build_evidence(
            snapshot,
            question,
            self.name if retrieves else NoRetriever.name,
            hits,
            ranked,
            list(zip(graph_hits.entities.tolist(), graph_hits.entity_scores.tolist(), strict=True)),
        )


def _score_by_hyperedge(snapshot: Snapshot, graph_hits: _RetrievedGraph) -> Scores:
    """Score each passage by its hyperedge that is most similar to the question."""
    retrieved = graph_hits.retrieved
    return Scores.from_max(snapshot.graph.passages(retrieved.rows), retrieved.values).above(0)


def _score_by_entity(snapshot: Snapshot, graph_hits: _RetrievedGraph) -> Scores:
    """Score each passage by the retrieved entity that it mentions; of several, by the best.

    The score of an entity is divided by the root of its number of mentions.
    """
    graph = snapshot.graph
    passages, owners, _ = graph.mentions(graph_hits.entities)
    shares = graph_hits.entity_scores / np.sqrt(graph.mention_counts(graph_hits.entities))
    return Scores.from_max(passages, shares[owners]).above(0)


def _score_by_subject(snapshot: Snapshot, graph_hits: _RetrievedGraph) -> Scores:
    """Score each passage by the best retrieved hyperedge of another passage that contains its subject (main entity).

    Only the hyperedges in ``graph_hits`` that are similar to the question count.
    """
    graph, retrieved = snapshot.graph, graph_hits.retrieved
    members, owners = graph.members(retrieved.rows)
    passages, pairs, _ = graph.mentions(members, as_subject=True)
    counts = np.bincount(pairs, minlength=len(members))
    shares = retrieved.values[owners] / np.sqrt(np.maximum(1, counts))
    elsewhere = passages != graph.passages(retrieved.rows)[owners][pairs]
    return Scores.from_max(passages[elsewhere], shares[pairs][elsewhere]).above(0)


def _list_names(question: LinkedQuestion) -> list[str]:
    """Return the distinct names in a question, in order of appearance."""
    mentions = sorted([*question.entities.values(), *question.unlinked], key=lambda m: (m.start, -m.end))
    return list(dict.fromkeys(mention.name for mention in mentions))


def _invert_ranks(scores: Scores, sort_key: SortKey) -> Scores:
    """Return the reciprocal rank of each row, 1 / (constant + rank) by descending score; ``sort_key`` breaks ties.

    Only the :data:`_RANKING_DEPTH` rows with the highest scores are included.
    """
    rows = scores.top_k(_RANKING_DEPTH, sort_key)
    return Scores.from_pairs(rows, 1 / (_RANK_CONSTANT + np.arange(len(rows), dtype=np.float32)))
