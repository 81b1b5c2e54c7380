"""HyperGraphRAG's retrieval (sections 4.2 and 4.3): entities and hyperedges by vector, expanded both ways, fused.

    R_V = the k_V entities with the highest sim(h_Vq, h_v) * score_v, of those above tau_V
    R_H = the k_H hyperedges with the highest sim(h_q, h_e) * score_e, of those above tau_H
    K_H = every hyperedge of an entity in R_V, and every hyperedge in R_H, each with all its entities
    K*  = K_H and the k_C passages most similar to the question, of those above tau_C

The published code multiplies by no score, applies no threshold and never queries its passage vectors; here the paper is
followed. The paper hands K* to the language model as it is. Passages are ranked here, because every retriever ranks
them: by the sum of their reciprocal ranks in up to four lists, one for each way into K*: passages of hyperedges in R_H,
passages that mention an entity in R_V, passages about an entity of a hyperedge in R_H, and all of them by similarity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polyad.calibration import PAPERS, Calibration, calibration_for
from polyad.config import HyperGraphRAGSettings
from polyad.hypergraph.cosines import cosines
from polyad.model import Evidence, FloatArray, IntArray, TraceStep
from polyad.protocols import Embedder
from polyad.retrieval.question import LinkedQuestion, QuestionLinker
from polyad.retrieval.ranking import Hit, above, filled
from polyad.retrieval.snapshot import Snapshot

_RANK_CONSTANT = 5.0
"""Added to ranks before they are inverted: the lower, the more the first places of a list count. Set by hand."""

_LONGEST_LIST = 200
"""Places of a list that count."""


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """K_H as arrays.

    Attributes:
        entities: R_V, rows, best first; ``entity_scores`` in (0, 100].
        retrieved: R_H, rows, best first.
        edges: All hyperedges of K_H, rows, best first; ``edge_scores`` in (0, 10].
        via: Of each of ``edges`` the entity in R_V that brought it in; -1 where none did.
    """

    entities: IntArray
    entity_scores: FloatArray
    retrieved: IntArray
    edges: IntArray
    edge_scores: FloatArray
    via: IntArray


class HyperGraphRAGRetriever:
    """Retrieves entities and hyperedges by vector, expands both ways and adds passages.

    Args:
        snapshot: The index.
        embedder: The one the index was built with.
        linker: Finds the names in the question.
        settings: See :class:`polyad.config.HyperGraphRAGSettings`.
    """

    name = "hypergraphrag"

    def __init__(
        self, snapshot: Snapshot, embedder: Embedder, linker: QuestionLinker, settings: HyperGraphRAGSettings
    ) -> None:
        self._snapshot = snapshot
        self._embedder = embedder
        self._linker = linker
        self._settings = settings
        self._thresholds = _thresholds(settings, embedder.name)

    def retrieve(self, question: str, k: int) -> Evidence:
        """The ``k`` best passages, with the best of K_H: retrieved hyperedges and entities.

        Where K* has fewer passages than ``k`` the most similar others follow, unless ``use_passages`` is off.
        """
        linked = self._linker.link(question)
        names = _names(linked) or [question]
        each = names if self._settings.names == "each" and len(names) > 1 else []
        vectors = self._embedder.encode([question, ", ".join(names), *each], "query")
        knowledge = self._knowledge(vectors[0], vectors[1:])
        hits = self._ranked(knowledge, cosines(self._snapshot.passage_vectors, vectors[0]), k)
        return self._evidence(question, ", ".join(names), knowledge, hits)

    def _knowledge(self, question: FloatArray, names: FloatArray) -> _Knowledge:
        """K_H of a question, given its vector and those of its names, ``[names, dimension]``."""
        snapshot, settings = self._snapshot, self._settings
        similarity = cosines(snapshot.hyperedge_vectors, question) * snapshot.hyperedge_scores
        scores = np.zeros(len(similarity), dtype=np.float32)
        via = np.full(len(scores), -1)
        entities, entity_scores = self._entities(names)
        edges, owners = snapshot.graph.memberships.gather(entities)
        strength = entity_scores[owners] / 100 * np.maximum(similarity[edges], 0)
        order = np.lexsort((-owners, strength))  # the strongest is written last, the first entity among equals
        scores[edges[order]], via[edges[order]] = strength[order], entities[owners[order]]
        retrieved = np.empty(0, dtype=np.int64)
        if settings.use_hyperedges:
            retrieved = above(similarity, settings.hyperedges, self._thresholds.hyperedge_threshold)
            scores[retrieved] = similarity[retrieved]
        edges = np.union1d(np.flatnonzero(via >= 0), retrieved)
        edges = edges[np.lexsort((edges, -scores[edges]))]
        return _Knowledge(entities, entity_scores, retrieved, edges, scores[edges], via[edges])

    def _entities(self, names: FloatArray) -> tuple[IntArray, FloatArray]:
        """R_V: rows and scores in (0, 100]."""
        snapshot, settings = self._snapshot, self._settings
        if not settings.use_entities:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        similarity = cosines(snapshot.entity_vectors(self._embedder), names).max(axis=1)
        scores = similarity * snapshot.entity_scores
        rows = above(scores, settings.entities, self._thresholds.entity_threshold)
        return rows, scores[rows]

    def _ranked(self, knowledge: _Knowledge, similarity: FloatArray, k: int) -> list[Hit]:
        """(row, score, reason) of the best passages of K*."""
        lists = {
            "similar hyperedge": self._by_hyperedge(knowledge, similarity),
            "similar entity": self._by_entity(knowledge),
            "about what similar hyperedges name": self._by_member(knowledge, similarity),
        }
        if self._settings.use_passages:
            added = above(similarity, self._settings.passages, self._thresholds.passage_threshold)
            known = np.union1d(added, np.flatnonzero(np.max(list(lists.values()), axis=0) > 0))
            lists["similar to the question"] = np.zeros_like(similarity)
            lists["similar to the question"][known] = np.maximum(similarity[known], 0)
        shares = {reason: _reciprocal_ranks(scores) for reason, scores in lists.items()}
        total = np.sum(list(shares.values()), axis=0)
        hits = [
            (row, float(total[row]), "; ".join(reason for reason, share in shares.items() if share[row] > 0))
            for row in above(total, k, 0.0).tolist()
        ]
        return filled(hits, similarity, k) if self._settings.use_passages else hits

    def _by_hyperedge(self, knowledge: _Knowledge, similarity: FloatArray) -> FloatArray:
        """Of each passage its best hyperedge in R_H; 0 where it has none."""
        scores = np.zeros_like(similarity)
        np.maximum.at(scores, self._snapshot.passage_of[knowledge.retrieved], self._strength(knowledge))
        return scores

    def _by_entity(self, knowledge: _Knowledge) -> FloatArray:
        """Of each passage the best entity in R_V that it mentions, the less the more passages do."""
        snapshot = self._snapshot
        scores = np.zeros(snapshot.passage_count, dtype=np.float32)
        passages, owners = snapshot.passages_of_entity.gather(knowledge.entities)
        shares = knowledge.entity_scores / np.sqrt(snapshot.passages_of_entity.degrees(knowledge.entities))
        np.maximum.at(scores, passages, shares[owners].astype(np.float32))
        return scores

    def _by_member(self, knowledge: _Knowledge, similarity: FloatArray) -> FloatArray:
        """Of each passage the best hyperedge in R_H, of another passage, that names what the passage is about."""
        snapshot = self._snapshot
        scores = np.zeros_like(similarity)
        members, owners = snapshot.graph.members.gather(knowledge.retrieved)
        passages, pairs = snapshot.passages_about.gather(members)
        shares = self._strength(knowledge)[owners] / np.sqrt(np.maximum(1, snapshot.passages_about.degrees(members)))
        away = passages != snapshot.passage_of[knowledge.retrieved][owners][pairs]
        np.maximum.at(scores, passages[away], shares[pairs][away].astype(np.float32))
        return scores

    def _strength(self, knowledge: _Knowledge) -> FloatArray:
        """Score of each hyperedge in R_H, which come in the order of their scores."""
        by_row = np.zeros(self._snapshot.graph.edge_count, dtype=np.float32)
        by_row[knowledge.edges] = knowledge.edge_scores
        return by_row[knowledge.retrieved]

    def _evidence(self, question: str, names: str, knowledge: _Knowledge, hits: list[Hit]) -> Evidence:
        snapshot = self._snapshot
        shown = min(len(knowledge.edges), self._settings.expanded)
        by_similarity = np.isin(knowledge.edges[:shown], knowledge.retrieved).tolist()
        edges, scores = knowledge.edges[:shown].tolist(), knowledge.edge_scores[:shown].tolist()
        entity_names = snapshot.entity_names(sorted({via for via in knowledge.via[:shown].tolist() if via >= 0}))
        trace = [
            TraceStep(
                snapshot.hyperedge_id(edge),
                snapshot.passage_id(int(snapshot.passage_of[edge])),
                question if is_similar else names,
                _reached(via >= 0, is_similar),
                (entity_names[via],) if via >= 0 else (),
                score,
            )
            for edge, score, via, is_similar in zip(
                edges, scores, knowledge.via[:shown].tolist(), by_similarity, strict=True
            )
        ]
        return snapshot.evidence(
            question,
            self.name,
            hits,
            list(zip(edges, scores, strict=True)),
            list(zip(knowledge.entities.tolist(), knowledge.entity_scores.tolist(), strict=True)),
            trace,
        )


def _thresholds(settings: HyperGraphRAGSettings, embedder: str) -> Calibration:
    """tau_V, tau_H and tau_C: each as set, else the paper's or what was measured for the embedder."""
    given = {
        "entity_threshold": settings.entity_threshold,
        "hyperedge_threshold": settings.hyperedge_threshold,
        "passage_threshold": settings.passage_threshold,
    }
    defaults = PAPERS if settings.thresholds == "paper" else calibration_for(embedder)
    return replace(defaults, **{name: value for name, value in given.items() if value is not None})


def _names(question: LinkedQuestion) -> list[str]:
    """What the question names, in order, each once."""
    mentions = sorted([*question.entities.values(), *question.unlinked], key=lambda m: (m.start, -m.end))
    return list(dict.fromkeys(mention.name for mention in mentions))


def _reached(by_entity: bool, by_similarity: bool) -> str:
    if by_entity and by_similarity:
        return "both"
    return "entity" if by_entity else "similarity"


def _reciprocal_ranks(scores: FloatArray) -> FloatArray:
    """1 / (constant + rank) of the scores above 0, ties by row; 0 for all others."""
    shares = np.zeros_like(scores)
    rows = above(scores, _LONGEST_LIST, 0.0)
    shares[rows] = 1 / (_RANK_CONSTANT + np.arange(len(rows), dtype=np.float32))
    return shares
